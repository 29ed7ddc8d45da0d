# Types of a compiled module (Cython in pure-Python mode).
from array import array
from collections.abc import Sequence

from .trie import Trie

class TokenSet:
    def saved(self) -> tuple[array[int], ...]: ...

def load_token_set(trie: Trie, saved: Sequence[array[int]]) -> TokenSet: ...
