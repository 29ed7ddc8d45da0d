# Types of a compiled module (Cython in pure-Python mode).
from array import array

class ClassSurvey:
    def __init__(
        self,
        token: array[int],
        until: array[int],
        partial: array[int],
        exit: array[int],
        chars: array[int],
        start: array[int],
    ) -> None: ...
    def saved(self) -> tuple[array[int], ...]: ...

class Chain: ...
