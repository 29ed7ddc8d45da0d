"""Stub of the ``cython`` module if Cython is not installed: the names that interpreted modules use, without effect."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from typing import Any, TypeVar

T = TypeVar("T")

compiled = False


def _unchanged(target: T) -> T:
    return target


cclass = cfunc = inline = ccall = no_gc = _unchanged

int = uint = short = ushort = uchar = schar = longlong = ulonglong = bint = int
double = float
void = None
nogil = nullcontext()


def exceptval(*_: Any, **__: Any) -> Callable[[T], T]:
    """Return a decorator that does nothing."""
    return _unchanged


def declare(_: Any, value: Any = None, **_options: Any) -> Any:
    """Return the value itself."""
    return value


def cast(_: Any, value: T) -> T:
    """Return the value itself."""
    return value


def fused_type(*kinds: Any) -> Any:
    """Return the first of the types, which has no effect."""
    return kinds[0]
