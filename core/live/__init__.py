"""Live values (``x-values``): values of a member that a callable of the user gives while a text is written.

A schema names its callables (`Values`), and each text has a `LiveValues`: the callables, and what they answered. The
kernel says which values it needs (`core/dependent/live.py`); this package asks for them: in threads, within a time, in
the context of the request.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..faces import lazy

if TYPE_CHECKING:
    from .asking import LiveValues
    from .bounds import AtLeast, AtMost, DaysFromToday
    from .reading import Reading, read_open
    from .schema import LiveSchema
    from .values import Values, given

__all__ = [
    "AtLeast",
    "AtMost",
    "DaysFromToday",
    "LiveSchema",
    "LiveValues",
    "Reading",
    "Values",
    "given",
    "read_open",
]

if not TYPE_CHECKING:
    __getattr__, __dir__ = lazy(
        __name__,
        {
            "asking": "LiveValues",
            "bounds": "AtLeast AtMost DaysFromToday",
            "reading": "Reading read_open",
            "schema": "LiveSchema",
            "values": "Values given",
        },
    )
