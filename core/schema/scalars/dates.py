"""Formats of dates in the past or in the future, and their bounds on a given day.

Pydantic compares a date with the moment of the call; a grammar is made earlier. A schema has one of the formats below,
which is true on every day; a grammar has the bounds of the day on which it is made. A past date is past, and a future
one future, in every time zone and for 24 hours more, so a grammar has to be made again each day.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable
from typing import NamedTuple

_DAY = datetime.timedelta(days=1)
_KINDS = ("date", "datetime", "naive-datetime", "aware-datetime")


class DatedFormat(NamedTuple):
    """A format of dates that are past or future.

    Attributes:
        when: ``"past"`` or ``"future"``.
        any_date: the name of the format without that.
    """

    when: str
    any_date: str


#: By name: ``python-past-date`` is a ``python-date`` in the past.
FORMATS = {
    f"python-{when}-{kind}": DatedFormat(when, f"python-{kind}") for when in ("past", "future") for kind in _KINDS
}


def today() -> datetime.date:
    """Return the current date in UTC."""
    return datetime.datetime.now(datetime.timezone.utc).date()


def bound(name: str, day: datetime.date, spare: int = 2) -> str:
    """Return a pattern for texts that begin with a date that is past (or future) on a day, ``spare`` days on."""
    if FORMATS[name].when == "past":
        return at_most((day - spare * _DAY).isoformat())
    return at_least((day + spare * _DAY).isoformat())


def as_judged(name: str, day: datetime.date) -> dict[str, str]:
    """Return the schema of the dates that are past, or future, in at least one time zone: a validator accepts them."""
    return {"type": "string", "format": FORMATS[name].any_date, "pattern": bound(name, day, spare=0)}


def between(least: datetime.date | None, most: datetime.date | None) -> list[str]:
    """Return patterns for texts that begin with a date between two others."""
    return [
        *([] if least is None else [at_least(least.isoformat())]),
        *([] if most is None else [at_most(most.isoformat())]),
    ]


def at_least(least: str) -> str:
    """Return a pattern for texts that begin like ``least``, with digits that make no smaller number."""
    return _compared(least, lambda digit: (digit + 1, 9))


def at_most(most: str) -> str:
    """Return a pattern for texts that begin like ``most``, with digits that make no larger number."""
    return _compared(most, lambda digit: (0, digit - 1))


def _compared(text: str, others: Callable[[int], tuple[int, int]]) -> str:
    """Return a pattern for texts that begin like one, or differ first in a digit that is among ``others`` of its own:
    ``"2024-12"``, from a digit above on -> ``^(?:2024-12|2024-1[3-9]|2024-[2-9]|202[5-9]|...)``."""
    options = [text]
    for index in range(len(text) - 1, -1, -1):
        if text[index].isdigit():
            low, high = others(int(text[index]))
            if low <= high:
                options.append(text[:index] + (f"[{low}-{high}]" if low < high else str(low)))
    return f"^(?:{'|'.join(options)})"
