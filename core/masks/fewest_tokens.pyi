# Types of a compiled module (Cython in pure-Python mode).
from collections.abc import Iterable, Mapping

from .trie import Trie

class FewestTokens:
    def __init__(self, trie: Trie, special: Mapping[str, int]) -> None: ...
    def tokens(self, parts: Iterable[bytes | str]) -> list[int]: ...
