"""Live values (``x-values``): values of a member that a callable of the user gives while a text is written.

A schema names its callables (`Values`), and each text has a `LiveValues`: the callables, and what they answered. The
kernel says which values it needs (`core/dependent/live.py`); this package asks for them: in threads, within a time, in
the context of the request.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..faces import lazy

if TYPE_CHECKING:
    from .asking import LiveValues as LiveValues
    from .bounds import AtLeast as AtLeast, AtMost as AtMost, DaysFromToday as DaysFromToday
    from .reading import read_call as read_call, read_open as read_open
    from .schema import LiveSchema as LiveSchema
    from .values import Values as Values, given as given

if not TYPE_CHECKING:
    __getattr__, __dir__, __all__ = lazy(
        __name__,
        {
            "asking": "LiveValues",
            "bounds": "AtLeast AtMost DaysFromToday",
            "reading": "read_call read_open",
            "schema": "LiveSchema",
            "values": "Values given",
        },
    )
