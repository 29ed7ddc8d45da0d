# Types of a compiled module (Cython in pure-Python mode).
from array import array
from collections.abc import Sequence

class TokenCounts:
    def saved(self) -> tuple[array[int], ...]: ...

def load_token_counts(saved: Sequence[array[int]]) -> TokenCounts: ...
