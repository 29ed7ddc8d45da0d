"""Schemas with formats of past or future dates (see `scalars.dates`), and their bounds of the current date."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..scalars import dates
from .keywords import KEYWORDS


def names_a_day(schema: Any) -> bool:
    """Return True if a schema has a format of past or future dates, so that its grammar differs from day to day; of the
    text of a schema, or its serialisation (a str, or bytes), True if it may have one."""
    if isinstance(schema, (str, bytes)):
        return "python-" in schema if isinstance(schema, str) else b"python-" in schema
    waiting, seen = [schema], set()
    while waiting:
        part = waiting.pop()
        if isinstance(part, Mapping) and id(part) not in seen:
            seen.add(id(part))
            if isinstance(part.get("format"), str) and part["format"] in dates.FORMATS:
                return True
            waiting += [value for value in part.values() if isinstance(value, (Mapping, list))]
        elif isinstance(part, list) and id(part) not in seen:
            seen.add(id(part))
            waiting += [value for value in part if isinstance(value, (Mapping, list))]
    return False


def of_today(schema: Any) -> Any:
    """Return a schema with bounds by today's date instead of formats of past or future dates; the same object if it has
    no such format."""
    if not names_a_day(schema):
        return schema
    day = dates.today()

    def dated(inner: dict[str, Any]) -> dict[str, Any]:
        name = inner.get("format")
        if not isinstance(name, str) or name not in dates.FORMATS:
            return inner
        bound = {"pattern": dates.bound(name, day)}
        return {**inner, "format": dates.FORMATS[name].any_date, "allOf": [*inner.get("allOf", ()), bound]}

    return KEYWORDS.map_schemas(schema, dated)
