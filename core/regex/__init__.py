"""Regular expressions: syntax tree, one parser for each dialect, and compilation to terms.

ECMA-262 is the dialect of JSON Schema; Python's and Rust's are those of Pydantic.
"""
