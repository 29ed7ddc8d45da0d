"""Ranges of options: which values an option may have, and the error for any other."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import inf
from numbers import Integral, Real
from typing import Any

from ..errors import ModelError

#: For each option: a check of a value, and the allowed values in words.
Ranges = Mapping[str, tuple[Callable[[Any], bool], str]]


def is_number(value: Any) -> bool:
    """Return True if a value is a finite number; booleans are not."""
    return not isinstance(value, bool) and isinstance(value, Real) and bool(-inf < value < inf)  # type: ignore[operator]


def is_whole(value: Any) -> bool:
    """Return True if a value is a whole number; booleans are not."""
    return isinstance(value, Integral) and not isinstance(value, bool)


#: The range of options that are on or off.
FLAG = (lambda value: isinstance(value, bool), "True or False")


def check_ranges(given: Mapping[str, Any], ranges: Ranges) -> None:
    """Check the values of options; those that have no range pass.

    Raises:
        ModelError: an option has a value that is not allowed; names the option and the value.
    """
    for name, value in given.items():
        is_good, wanted = ranges.get(name, (lambda _: True, ""))
        if not is_good(value):
            shown = repr(value)
            raise ModelError(f"{name} is {shown if len(shown) <= 80 else shown[:80] + '...'}", hint=f"give {wanted}")
