"""Formats of dates that are past, or still to come, and what they say on a day.

Pydantic asks whether a date is past at the moment of the call; a grammar is made before. A schema names the formats
below, so it holds on every day; the bounds are those of the day on which a grammar is made of it. They are days that
are over, or still to come, on every clock of the world for 24 hours after that, so a grammar is made again each day.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Mapping
from typing import Any

_DAY = datetime.timedelta(days=1)
_KINDS = ("date", "datetime", "naive-datetime", "aware-datetime")

#: What is past or to come, and the format without that.
FORMATS = {f"python-{when}-{kind}": (when, f"python-{kind}") for when in ("past", "future") for kind in _KINDS}

#: Keywords that hold values, or maps from names to schemas.
_VALUES = frozenset({"const", "enum", "default", "examples"})
_NAMED = frozenset({"properties", "patternProperties", "$defs", "definitions", "dependentSchemas"})


def today() -> datetime.date:
    """Return the day in UTC."""
    return datetime.datetime.now(datetime.timezone.utc).date()


def names_a_day(schema: Any) -> bool:
    """Return whether a schema has one of these formats, so that it says something else tomorrow."""
    waiting, seen = [schema], set()
    while waiting:
        part = waiting.pop()
        if isinstance(part, Mapping) and id(part) not in seen:
            seen.add(id(part))
            if isinstance(part.get("format"), str) and part["format"] in FORMATS:
                return True
            waiting += [value for value in part.values() if isinstance(value, (Mapping, list))]
        elif isinstance(part, list) and id(part) not in seen:
            seen.add(id(part))
            waiting += [value for value in part if isinstance(value, (Mapping, list))]
    return False


def text_names_a_day(text: str) -> bool:
    """Return whether the text of a schema may have one of these formats."""
    return '"python-past-' in text or '"python-future-' in text


def of_today(schema: Any) -> Any:
    """Return a schema with the bounds of today instead of these formats; the same object, if it has none."""
    return _dated(schema, today()) if names_a_day(schema) else schema


def _dated(schema: Any, day: datetime.date) -> Any:
    if isinstance(schema, list):
        return [_dated(each, day) for each in schema]
    if not isinstance(schema, Mapping):
        return schema
    found: dict[str, Any] = {}
    for key, value in schema.items():
        if key in _NAMED and isinstance(value, Mapping):
            found[key] = {name: _dated(each, day) for name, each in value.items()}
        else:
            found[key] = value if key in _VALUES else _dated(value, day)
    name = found.get("format")
    if isinstance(name, str) and name in FORMATS:
        found["format"] = FORMATS[name][1]
        found["allOf"] = [*found.get("allOf", ()), {"pattern": bound(name, day)}]
    return found


def bound(name: str, day: datetime.date, spare: int = 2) -> str:
    """Return a pattern for texts that begin with a date of one of these formats on a day, with days to spare."""
    if FORMATS[name][0] == "past":
        return at_most((day - spare * _DAY).isoformat())
    return at_least((day + spare * _DAY).isoformat())


def as_judged(name: str, day: datetime.date) -> dict[str, str]:
    """Return the schema of what is written elsewhere: dates that are past, or to come, on some clock of the world."""
    return {"type": "string", "format": FORMATS[name][1], "pattern": bound(name, day, 0)}


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
    options = [text]
    for index in range(len(text) - 1, -1, -1):
        if text[index].isdigit():
            low, high = others(int(text[index]))
            if low <= high:
                options.append(text[:index] + (f"[{low}-{high}]" if low < high else str(low)))
    return f"^(?:{'|'.join(options)})"
