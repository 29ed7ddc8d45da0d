"""Memory that is given back to the operating system."""

from __future__ import annotations

import ctypes
import weakref
from contextlib import suppress
from functools import lru_cache
from typing import Any, Protocol

#: Minimum bytes that are given back at once: it takes some milliseconds.
LEAST_BYTES = 8 * 2**20


class Owner(Protocol):
    """An object that takes much memory."""

    def byte_count(self) -> int:
        """Return the bytes that it takes, without a lock."""


class _Allocator:
    """The objects that take much memory, and the C library's free memory, given back whenever enough of them are gone.

    Attributes:
        freed: bytes of the objects that are gone since memory was given back.
        owners: the objects that there are, by the identity of their `Space`.
    """

    def __init__(self) -> None:
        self.freed = 0
        self.owners: dict[int, weakref.ref[Owner]] = {}
        self._trim: Any = None
        with suppress(OSError, AttributeError, TypeError):
            self._trim = ctypes.CDLL(None).malloc_trim  # glibc alone has it

    def note(self, size: int) -> None:
        """Note that an object is gone. Of two threads at the same time, both may give memory back."""
        self.freed += size
        if self.freed >= LEAST_BYTES:
            self.freed = 0
            if self._trim is not None:
                self._trim(0)


_allocator = lru_cache(maxsize=1)(_Allocator)


def held() -> int:
    """Return the bytes of all stores of this process, kept or in use: of all objects with a `Space` (estimated)."""
    owners = [each() for each in list(_allocator().owners.values())]
    return sum(owner.byte_count() for owner in owners if owner is not None)


class Space:
    """The last attribute of an object that takes much memory: it counts (`held`), and when such objects are gone, their
    memory is given back.

    Otherwise glibc keeps it for later, in pieces as small as the smallest number that is still in use.

    Args:
        owner: the object, complete but for this attribute.

    Attributes:
        size: bytes of the object; set when it goes.
    """

    __slots__ = ("size",)

    def __init__(self, owner: Owner) -> None:
        self.size = 0
        _allocator().owners[id(self)] = weakref.ref(owner)

    def __del__(self, found: Any = _allocator) -> None:
        found().owners.pop(id(self), None)
        if self.size:
            found().note(self.size)
