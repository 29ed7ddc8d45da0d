# Types of a compiled module (Cython in pure-Python mode).
from ..read.located import Located
from ..read.resolve import Document

COMPILED: bool
MAX_LEAST_TEXT: int

class LeastSizes:
    def __init__(self, document: Document) -> None: ...
    def least(self, located: Located, depth: int = 0) -> int: ...
