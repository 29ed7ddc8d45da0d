# Types of the module as the rest of the house sees it; the module itself is Cython in pure-Python mode.
from array import array
from collections.abc import Sequence

from .trie import Trie

class Table:
    def saved(self) -> tuple[array[int], ...]: ...

def load_table(trie: Trie, saved: Sequence[array[int]]) -> Table: ...
