"""Memory that is given back to the operating system."""

from __future__ import annotations

import ctypes
from contextlib import suppress
from functools import lru_cache
from typing import Any

#: Minimum bytes that are given back at once: it takes some milliseconds.
LEAST_BYTES = 8 * 2**20


@lru_cache(maxsize=1)
def _trim() -> Any:
    """Return glibc's function that gives free memory back; None where there is none."""
    with suppress(OSError, AttributeError, TypeError):
        return ctypes.CDLL(None).malloc_trim
    return None


class Space:
    """The last attribute of an object that takes much memory: when the object is gone, its memory is given back.

    Otherwise glibc keeps it for later, in pieces as small as the smallest number that is still in use.

    Attributes:
        size: bytes of the object; set when it goes.
    """

    __slots__ = ("size",)

    def __init__(self) -> None:
        self.size = 0

    def __del__(self, least: int = LEAST_BYTES, found: Any = _trim) -> None:
        trim = found() if self.size >= least else None  # the names of a module are gone when the interpreter ends
        if trim is not None:
            trim(0)
