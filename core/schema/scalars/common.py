"""Common terms: terms that nearly every schema needs, and terms of frequent formats and ranges of numbers."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal

from ...language.terms import Terms
from .formats import format_term, time_of_day
from .number_terms import Numbers
from .numbers import NumberRange
from .whitespace import spaces

#: Formats that many schemas have. The last is deferred in part.
FORMATS = ("uri", "email", "date", "uuid", "python-date", "python-datetime", "date-time")

#: Lower bounds of numbers that many schemas have.
BOUNDS = (0, 1)

_RANGES = [NumberRange(integer=integer, least=Decimal(bound)) for integer in (False, True) for bound in BOUNDS]


def common_languages(terms: Terms) -> Iterator[tuple[int, bool]]:
    """Yield the terms of all strings, all numbers, and whitespace between the tokens of JSON, each with True if it
    describes the decoded text of a JSON string."""
    yield terms.ALL, True
    yield from _numbers(terms, [NumberRange(), NumberRange(integer=True)])
    yield spaces(terms), False


def common_values(terms: Terms) -> Iterator[tuple[int, bool]]:
    """Yield the terms of `FORMATS` and of the numbers from each of `BOUNDS` on, as `common_languages` does.

    Before ``date-time``, which is deferred in part, comes its time of day: the states of that are made without it.
    """
    yield from _numbers(terms, _RANGES)
    for name in FORMATS[:-1]:
        yield format_term(terms, name), True
    yield time_of_day(terms), True
    yield format_term(terms, FORMATS[-1]), True


def _numbers(terms: Terms, ranges: list[NumberRange]) -> Iterator[tuple[int, bool]]:
    numbers = Numbers(terms)
    for what in ranges:
        for any_spelling in (False, True):
            yield numbers.term(what, any_spelling=any_spelling), False
