# Types of a compiled module (Cython in pure-Python mode).
from typing import Any

from ..read.resolve import Document

COMPILED: bool

class Inhabited:
    def __init__(self, document: Document | None = None) -> None: ...
    def is_sure(self, schema: Any) -> bool: ...
