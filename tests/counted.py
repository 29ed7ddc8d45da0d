"""A bound on work that does not depend on the machine: calls of Python functions, counted."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any


class TooMuchWorkError(BaseException):
    """More calls than a test allows. Not an `Exception`, so that nothing under test handles it."""


@contextmanager
def at_most(calls: int) -> Iterator[None]:
    """Stop the block once it has called so many functions, those of the interpreter included."""
    left = calls

    def count(frame: FrameType, event: str, argument: Any) -> None:
        nonlocal left
        if event in ("call", "c_call"):
            left -= 1
            if left < 0:
                sys.setprofile(None)
                raise TooMuchWorkError(f"more than {calls:,} calls")

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        yield
    finally:
        sys.setprofile(before)
