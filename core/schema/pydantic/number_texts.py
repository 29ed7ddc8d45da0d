"""Patterns of the JSON texts of bounded numbers, for strings that hold JSON.

Python reads every text that matches as a number within the bounds, but not every number in them has a text: integers
have at most 18 digits, fractions at most six, and there is no exponent.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from decimal import Decimal
from itertools import islice
from typing import Any

from ..read.keywords import KEYWORDS

#: Keywords that constrain numbers.
OF_NUMBERS = frozenset(KEYWORDS.named(types=("number",)))
#: Maximum number of alternatives of a pattern.
MAX_VALUES = 1_000

_LARGEST = 10**18 - 1
#: Maximum magnitude at which doubles are exact to six digits after the point.
_LARGEST_WITH_FRACTION = 10**9
_MAX_DIGITS = 6
_MAX_FRACTIONS = 100


def integer_pattern(bounds: Mapping[str, Any]) -> str | None:
    """Return a pattern of integers under `OF_NUMBERS`, or None if none has a text."""
    least, most = _whole(bounds)
    step = bounds.get("multipleOf")
    if step is None:
        return _between(least, most) if least <= most else None
    if step != int(step) or step <= 0:
        return None
    step = int(step)
    # From zero on, or down from the largest below it.
    first = -(-max(least, 0) // step) * step
    values = range(first, most + 1, step) if most >= 0 else range(most // step * step, least - 1, -step)
    return choice(map(str, values))


def number_pattern(bounds: Mapping[str, Any]) -> str | None:
    """Return a pattern of numbers under `OF_NUMBERS`, or None if none has a text."""
    least, most = _whole(bounds)
    if "multipleOf" in bounds:
        step = Decimal(repr(bounds["multipleOf"]))
        first = math.ceil(Decimal(max(least, 0)) / step)
        steps = range(first, first + MAX_VALUES)
        if most < 0:
            last = math.floor(Decimal(most) / step)
            steps = range(last, last - MAX_VALUES, -1)
        return choice(_plain(step * count) for count in steps if _holds(float(step * count), bounds))
    patterns = []
    if least <= most:
        patterns.append(_between(least, most))
        # From k to below k + 1, where both are within the bounds; likewise below zero.
        low, high = max(least, 0), min(most, _LARGEST_WITH_FRACTION) - 1
        if low <= high:
            patterns.append(rf"{_between(low, high)}\.[0-9]{{1,{_MAX_DIGITS}}}")
        low, high = max(-most, 0), min(-least, _LARGEST_WITH_FRACTION) - 1
        if low <= high:
            patterns.append(rf"-{_between(low, high)}\.[0-9]{{1,{_MAX_DIGITS}}}")
    return choice(patterns) if len(patterns) > 1 else choice(_fractions(bounds)) or choice(patterns)


def _whole(bounds: Mapping[str, Any]) -> tuple[int, int]:
    """Return the least and the largest integer of at most 18 digits within the bounds."""
    least, most = -_LARGEST, _LARGEST
    if "minimum" in bounds:
        least = max(least, math.ceil(bounds["minimum"]))
    if "exclusiveMinimum" in bounds:
        least = max(least, math.floor(bounds["exclusiveMinimum"]) + 1)
    if "maximum" in bounds:
        most = min(most, math.floor(bounds["maximum"]))
    if "exclusiveMaximum" in bounds:
        most = min(most, math.ceil(bounds["exclusiveMaximum"]) - 1)
    return least, most


def _holds(value: float, bounds: Mapping[str, Any]) -> bool:
    within = bounds.get("minimum", -math.inf) <= value <= bounds.get("maximum", math.inf)
    return bool(within and bounds.get("exclusiveMinimum", -math.inf) < value < bounds.get("exclusiveMaximum", math.inf))


def _fractions(bounds: Mapping[str, Any]) -> Iterable[str]:
    """Yield the numbers within narrow bounds with as many digits as leave at most `_MAX_FRACTIONS` of them."""
    low = max(bounds.get("minimum", -math.inf), bounds.get("exclusiveMinimum", -math.inf))
    high = min(bounds.get("maximum", math.inf), bounds.get("exclusiveMaximum", math.inf))
    if not (abs(low) < _LARGEST_WITH_FRACTION and abs(high) < _LARGEST_WITH_FRACTION):
        return
    for digits in reversed(range(_MAX_DIGITS + 1)):
        unit = Decimal(1).scaleb(-digits)
        first, last = math.ceil(Decimal(low) / unit), math.floor(Decimal(high) / unit)
        if last - first <= _MAX_FRACTIONS:
            yield from (_plain(unit * count) for count in range(first, last + 1) if _holds(float(unit * count), bounds))
            return


def _plain(value: Decimal) -> str:
    """Return a pattern of a number: without an exponent, and without zeros at its end."""
    if not value:
        return "0"
    text = f"{value:f}"
    return text.rstrip("0").rstrip(".").replace(".", r"\.") if "." in text else text


def choice(patterns: Iterable[str]) -> str | None:
    """Return the pattern of any of the first `MAX_VALUES` patterns; None if there are none."""
    options = dict.fromkeys(islice(patterns, MAX_VALUES))
    return f"(?:{'|'.join(options)})" if options else None


def _between(least: int, most: int) -> str:
    """Return a pattern of the integers from one to another."""
    options = [f"-{digits}" for digits in _digits(max(1, -most), -least)] if least < 0 else []
    options += _digits(max(0, least), most) if most >= 0 else []
    return f"(?:{'|'.join(options)})"


def _digits(least: int, most: int) -> list[str]:
    """Return patterns of the integers from one to another, none of them below zero."""
    alternatives = []
    while least <= most:
        # As many free digits at the end as the bounds leave.
        free = 0
        while least % 10 ** (free + 1) == 0 and least + 10 ** (free + 1) - 1 <= most and least > 0:
            free += 1
        head, digit = divmod(least // 10**free, 10)
        last = digit
        while last < 9 and least + (last - digit + 2) * 10**free - 1 <= most:
            last += 1
        lead = str(head) if head else ""
        alternatives.append(
            lead + (f"[{digit}-{last}]" if digit < last else str(digit)) + (f"[0-9]{{{free}}}" if free else "")
        )
        least += (last - digit + 1) * 10**free
    return alternatives
