"""Sets of tokens as bits: token ``t`` is bit ``t % 32`` of word ``t // 32``.

Compiled modules use ``bits.pxd``; this is the same for interpreted ones.
"""

from __future__ import annotations

from array import array


def has_bit(bits: array[int], token: int) -> bool:
    """Return True if the bit of a token is set."""
    return bool(bits[token >> 5] >> (token & 31) & 1)


def flip_bit(bits: array[int], token: int) -> int:
    """Set the bit of a token if it is clear, else clear it."""
    bits[token >> 5] ^= 1 << (token & 31)
    return 0
