"""How stores hash numbers: FNV-1a by words, of 64 bits, with a shift.

Compiled modules have it in C, as ``hashing.pxd`` says; this is the same for interpreted ones.
"""

from __future__ import annotations

#: What a hash begins with.
BASIS = 14695981039346656037


def mix(so_far: int, value: int) -> int:
    """Return a hash, gone on with."""
    so_far = (so_far ^ value) * 1099511628211 & 0xFFFFFFFFFFFFFFFF
    return so_far ^ so_far >> 29
