"""Memory for numbers of one type: what a compiled class holds as a pointer, and frees in its ``__dealloc__``.

Compiled modules have these functions in C, as ``memory.pxd`` says, where an array costs one call of the allocator; this
is the same for interpreted ones, with arrays. All memory begins as zeros.
"""

from __future__ import annotations

from array import array


def free(old: array[int]) -> None:
    """Release memory. (Compiled, nothing happens where there is none.)"""


def octets(size: int) -> array[int]:
    """Return memory for bytes (``unsigned char``)."""
    return array("B", bytes(size))


def shorts(size: int) -> array[int]:
    """Return memory for numbers of 16 bits."""
    return array("h", bytes(2 * size))


def ints(size: int) -> array[int]:
    """Return memory for numbers of 32 bits."""
    return array("i", bytes(4 * size))


def longs(size: int) -> array[int]:
    """Return memory for numbers of 64 bits."""
    return array("q", bytes(8 * size))


def ulongs(size: int) -> array[int]:
    """Return memory for numbers of 64 bits without a sign."""
    return array("Q", bytes(8 * size))


def more(old: array[int], had: int, size: int) -> array[int]:
    """Return memory for ``size`` numbers in place of some for ``had``, which it begins with; the old may not be used
    again."""
    old.frombytes(bytes((size - had) * old.itemsize))
    return old


def twin(old: array[int], used: int, size: int) -> array[int]:
    """Return other memory for ``size`` numbers that begins with the first ``used`` ones of some."""
    return more(old[:used], used, size)


def as_bytes(numbers: array[int], count: int) -> bytes:
    """Return the first numbers of 32 bits as bytes."""
    return numbers[:count].tobytes()


def read_bytes(numbers: array[int], data: bytes) -> int:
    """Write the numbers that `as_bytes` made bytes of over the first ones; return their count."""
    read = array("i", data)
    numbers[: len(read)] = read
    return len(read)
