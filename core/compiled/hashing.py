"""64-bit hash of a sequence of integers: FNV-1a by words, with a shift.

Compiled modules use ``hashing.pxd``; this is the interpreted form.
"""

from __future__ import annotations

#: The hash of an empty sequence.
BASIS = 14695981039346656037


def mix(so_far: int, value: int) -> int:
    """Return the hash of a sequence with one more value."""
    so_far = (so_far ^ value) * 1099511628211 & 0xFFFFFFFFFFFFFFFF
    return so_far ^ so_far >> 29
