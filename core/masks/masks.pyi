# Types of a compiled module (Cython in pure-Python mode).
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from ..automaton.states import Automaton
from .vocabulary_index import VocabularyIndex

COMPILED: bool

class Masks:
    def __init__(
        self,
        automaton: Automaton,
        index: VocabularyIndex,
        finals: Iterable[int],
        specials: Mapping[int, int],
        limit: int,
    ) -> None: ...
    def byte_count(self) -> int: ...
    def set_special(self, number: int, token: int) -> None: ...
    def below(self, data: bytes, out: npt.NDArray[np.uint32]) -> list[int]: ...
    def is_settled(self, state: int) -> bool: ...
    def fill_known(self, state: int, out: npt.NDArray[np.uint32]) -> bool: ...
    def fill(self, state: int, out: npt.NDArray[np.uint32]) -> list[Any] | None: ...
    def counters(self) -> dict[str, int]: ...
