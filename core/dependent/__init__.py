"""Data-dependent nodes: places of a grammar at which the text so far decides what may follow."""
