"""Live values (``x-values``): values of a member that a callable of the user gives while a text is written.

A schema names its callables (`Values`), and each text has a `LiveValues`: the callables, and what they answered. The
kernel says which values it needs (`core/dependent/live.py`); this package asks for them: in threads, within a time, in
the context of the request.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..faces import lazy

if TYPE_CHECKING:
    from ..schema.read.live import KEYWORD, LIVE, has_keyword, has_values, in_order, places_of, without_values
    from .asking import LiveValues
    from .bounds import AtLeast, AtMost, DaysFromToday
    from .check import check_values
    from .reading import Reading, read_open
    from .values import Values, given, named_values, registered, values_of, with_sources

__all__ = [
    "KEYWORD",
    "LIVE",
    "AtLeast",
    "AtMost",
    "DaysFromToday",
    "LiveValues",
    "Reading",
    "Values",
    "check_values",
    "given",
    "has_keyword",
    "has_values",
    "in_order",
    "named_values",
    "places_of",
    "read_open",
    "registered",
    "values_of",
    "with_sources",
    "without_values",
]

if not TYPE_CHECKING:
    __getattr__, __dir__ = lazy(
        __name__,
        {
            ".schema.read.live": "KEYWORD LIVE has_keyword has_values in_order places_of without_values",
            "asking": "LiveValues",
            "bounds": "AtLeast AtMost DaysFromToday",
            "check": "check_values",
            "reading": "Reading read_open",
            "values": "Values given named_values registered values_of with_sources",
        },
    )
