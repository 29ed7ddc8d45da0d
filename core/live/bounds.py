"""Live values that are bounded by another argument, or by the current date."""

from __future__ import annotations

import datetime
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..schema.scalars import dates
from .values import Values

#: A date, a time, or a date with a time; a time may have an offset.
_MOMENT = re.compile(r"\d{4}-\d\d-\d\d|(?:\d{4}-\d\d-\d\d[Tt ])?\d\d:\d\d(?::\d\d(?:\.\d+)?)?([Zz]|[+-]\d\d:\d\d)?")

#: A date in any format of dates and times, with a time after it or none. A plain string has no format.
_FROM_DATE = r"^[0-9]{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12][0-9]|3[01])(?:[Tt _][0-9:.,]+ ?(?:[Zz]|[+-][0-9:]+)?)?$"

#: A time of day, in any of its formats, perhaps with an offset after it.
_TIME = r"^(?:[01][0-9]|2[0-4]):[0-5][0-9](?::[0-6][0-9](?:[.,][0-9]+)?)?"


@dataclass(frozen=True)
class _Bound:
    """The schema of values that are not below (above) another argument."""

    name: str
    is_least: bool

    def __call__(self, call: Mapping[str, Any]) -> dict[str, Any]:
        """Return the schema of the argument: a bound of a number, or patterns of dates and times as texts, which hold
        together. For example, after ``{"start": "2026-01-31"}``: not below this date; and a whole date."""
        other = call.get(self.name)
        if other is None:
            return {}
        if isinstance(other, (int, float)) and not isinstance(other, bool):
            return {"minimum" if self.is_least else "maximum": other}
        match = _MOMENT.fullmatch(other) if isinstance(other, str) else None
        if match is None:
            raise TypeError(f"{other!r} is neither a number nor a date or time")
        zone = match[1] or ""
        local = other.removesuffix(zone)  # "10:30Z" -> "10:30"
        bounded = dates.at_least if self.is_least else dates.at_most
        patterns = [bounded(local).replace(".", "[.]")]
        has_date, has_time = "-" in local, ":" in local
        patterns.append(_FROM_DATE if has_date else f"{_TIME}{re.escape(zone)}$")
        if has_date and has_time:  # times are compared in the same offset only
            patterns.append(f"{re.escape(zone)}$" if zone else "[Tt ][0-9:.]*$")
        if has_time and not self.is_least:
            # A fraction, or seconds, would be above; the second without its fraction is below.
            patterns.append(f"^(?!{re.escape(local)}[.:0-9])")
            patterns[0] += f"|^{re.escape(local.partition('.')[0])}{re.escape(zone)}$"
        return {"allOf": [{"pattern": pattern} for pattern in patterns]}


class AtLeast(Values):
    """A number, date or time that is not below another argument: ``end: Annotated[date, AtLeast("start")]``.

    Times are compared in the offset of the other argument, in which the value is written too. If that argument is left
    out or null, there is no bound.

    Args:
        name: the other argument, which is written first, or one that is `given`.
    """

    is_strict = True

    def __init__(self, name: str) -> None:
        super().__init__(_Bound(name, True), (name,))


class AtMost(Values):
    """A number, date or time that is not above another argument; see `AtLeast`.

    Args:
        name: the other argument, which is written first, or one that is `given`.
    """

    is_strict = True

    def __init__(self, name: str) -> None:
        super().__init__(_Bound(name, False), (name,))


@dataclass(frozen=True)
class _Days:
    """The schema of dates around the current one."""

    first: int
    last: int | None

    def __call__(self) -> dict[str, Any]:
        today = datetime.date.today()
        last = None if self.last is None else today + datetime.timedelta(days=self.last)
        patterns = dates.between(today + datetime.timedelta(days=self.first), last)
        return {"allOf": [{"pattern": pattern} for pattern in (*patterns, _FROM_DATE)]}


class DaysFromToday(Values):
    """A date relative to the current one, in the time zone of this process: ``Annotated[date, DaysFromToday(0, 30)]``.

    Args:
        first: the first day, as days from today; negative before today.
        last: the last day; None: no last day.
    """

    def __init__(self, first: int = 0, last: int | None = None) -> None:
        super().__init__(_Days(first, last), ())
