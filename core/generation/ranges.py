"""Ranges of options: the allowed values as a check, in words and as a JSON Schema; the error for others."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import inf
from numbers import Integral, Real
from typing import Any, NamedTuple

from ..errors import ModelError


class Range(NamedTuple):
    """The allowed values of an option.

    Attributes:
        holds: tells if a value is allowed.
        wanted: the allowed values in words, for an error.
        schema: the allowed values but None as a JSON Schema; empty if they are no JSON values.
    """

    holds: Callable[[Any], bool]
    wanted: str
    schema: Mapping[str, Any] = {}


#: By option: its allowed values.
Ranges = Mapping[str, Range]


def is_number(value: Any) -> bool:
    """Return True if a value is a finite number; booleans are not."""
    return not isinstance(value, bool) and isinstance(value, Real) and bool(-inf < value < inf)  # type: ignore[operator]


def is_whole(value: Any) -> bool:
    """Return True if a value is an integer; booleans are not."""
    return isinstance(value, Integral) and not isinstance(value, bool)


def whole(least: int, most: int | None = None, wanted: str = "", *, none: bool = False) -> Range:
    """Return the range of integers from ``least`` to ``most``; with ``none``, None too."""

    def holds(value: Any) -> bool:
        return is_whole(value) and least <= value and (most is None or value <= most)

    said = f"a whole number from {least}" + (f" to {most}" if most is not None else "")
    bounds = {"minimum": least} if most is None else {"minimum": least, "maximum": most}
    return _or_none(Range(holds, wanted or said, {"type": "integer", **bounds}), none)


def number(least: float, most: float = inf, wanted: str = "", *, above: bool = False, none: bool = False) -> Range:
    """Return the range of numbers from ``least`` (with ``above``: beyond it) to ``most``; with ``none``, None too."""

    def holds(value: Any) -> bool:
        return is_number(value) and (least < value if above else least <= value) and value <= most

    said = (f"a number above {least:g}" if above else f"a number from {least:g}") + (
        f" to {most:g}" if most < inf else ""
    )
    bounds = {"exclusiveMinimum" if above else "minimum": least} | ({"maximum": most} if most < inf else {})
    return _or_none(Range(holds, wanted or said, {"type": "number", **bounds}), none)


def one_of(*words: str) -> Range:
    """Return the range of some words."""
    said = f"{', '.join(map(repr, words[:-1]))} or {words[-1]!r}"
    return Range(lambda value: isinstance(value, str) and value in words, said, {"enum": list(words)})


def of(kind: type, wanted: str, *, none: bool = True) -> Range:
    """Return the range of the objects of a class, without a form in JSON."""
    return _or_none(Range(lambda value: isinstance(value, kind), wanted), none)


def _or_none(values: Range, none: bool) -> Range:
    if not none:
        return values
    return Range(lambda value: value is None or values.holds(value), f"{values.wanted}, or None", values.schema)


#: True or False.
FLAG = Range(lambda value: isinstance(value, bool), "True or False", {"type": "boolean"})

#: Any value: it is checked elsewhere.
ANY = Range(lambda _: True, "any value")


def are_texts(value: Any) -> bool:
    """Return True if a value is a sequence of non-empty texts."""
    return isinstance(value, Sequence) and all(isinstance(text, str) and text for text in value)


def check_ranges(given: Mapping[str, Any], ranges: Ranges) -> None:
    """Check the values of options; options without a range may have any value.

    Raises:
        ModelError: a value is not allowed; the message names the option and the value.
    """
    for name, value in given.items():
        allowed = ranges.get(name, ANY)
        if not allowed.holds(value):
            shown = repr(value)
            raise ModelError(
                f"{name} is {shown if len(shown) <= 80 else shown[:80] + '...'}", hint=f"give {allowed.wanted}"
            )
