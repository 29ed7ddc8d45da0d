"""Sets of tokens as bits: token ``t`` is bit ``t % 32`` of word ``t // 32``.

Compiled modules use ``bits.pxd`` for single bits; this is the interpreted form.
"""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt


def has_bit(bits: array[int], token: int) -> bool:
    """Return True if the bit of a token is set."""
    return bool(bits[token >> 5] >> (token & 31) & 1)


def flip_bit(bits: array[int], token: int) -> int:
    """Set the bit of a token if it is clear, else clear it."""
    bits[token >> 5] ^= 1 << (token & 31)
    return 0


def flags(mask: npt.NDArray[np.uint32]) -> npt.NDArray[np.bool_]:
    """Return a flag for each bit of a mask."""
    return np.unpackbits(mask.view(np.uint8), bitorder="little").view(np.bool_)


def tokens_within(ids: npt.NDArray[np.int64], mask: npt.NDArray[np.uint32]) -> npt.NDArray[np.int64]:
    """Return the tokens of ``ids`` that are set in a mask."""
    within: npt.NDArray[np.int64] = ids[(mask[ids >> 5] >> (ids & 31).astype(np.uint32) & 1).astype(bool)]
    return within
