# Types of a compiled module (Cython in pure-Python mode).
from collections.abc import Iterable

class FewestTokens:
    def tokens(self, parts: Iterable[bytes | str]) -> list[int]: ...
