# Types of a compiled module (Cython in pure-Python mode).
from typing import Any

COMPILED: bool

def schema_key(schema: Any) -> str: ...
