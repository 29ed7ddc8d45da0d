"""Wire formats that write each argument as an element."""
