# Types of a compiled module (Cython in pure-Python mode).
from typing import Final

import numpy as np
import numpy.typing as npt

from .fewest_tokens import FewestTokens

UNSURE: Final[int]

class Costs:
    longest: Final[int]
    unsure: Final[list[npt.NDArray[np.int64]]]

class TokenCosts:
    fewest: Final[FewestTokens]
    known: Final[dict[int, Costs]]
    def tokens_left(self, state: int, before: bytes = b"") -> int: ...
    def of(self, state: int) -> Costs: ...
    def narrow(self, costs: Costs, row: npt.NDArray[np.uint32], room: int) -> int: ...
