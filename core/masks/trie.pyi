# Types of a compiled module (Cython in pure-Python mode).
from array import array
from collections.abc import Sequence

GROUPS: array[int]

class Trie:
    def __init__(self, tokens: Sequence[bytes | None], saved: Sequence[array[int]] | None = None) -> None: ...
    def saved(self) -> tuple[array[int], ...]: ...
    def byte_count(self) -> int: ...
