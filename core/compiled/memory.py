"""Memory for numbers of one type, which a compiled class has as a pointer and frees in its ``__dealloc__``.

Compiled modules use the functions of ``memory.pxd``, which call the allocator once; this is the interpreted form, with
arrays. All memory begins as zeros.
"""

from __future__ import annotations

from array import array


def free(old: array[int]) -> None:
    """Release memory; the compiled form ignores a null pointer."""


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
    """Return memory for ``size`` numbers that begins with the ``had`` ones of ``old``, which is released."""
    old.frombytes(bytes((size - had) * old.itemsize))
    return old


def twin(old: array[int], used: int, size: int) -> array[int]:
    """Return new memory for ``size`` numbers that begins with a copy of the first ``used`` ones of ``old``."""
    return more(old[:used], used, size)


def as_bytes(numbers: array[int], count: int) -> bytes:
    """Return the first ``count`` numbers of 32 bits as bytes."""
    return numbers[:count].tobytes()


def read_bytes(numbers: array[int], data: bytes) -> int:
    """Overwrite the first numbers with those that `as_bytes` encoded; return their count."""
    read = array("i", data)
    numbers[: len(read)] = read
    return len(read)
