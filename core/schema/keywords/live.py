"""``x-values``: the values of a member that a callable gives while the text is written (see `core/dependent/live`)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...dependent.live import KEYWORD
from ..read.located import Located
from .row import Check, Holds, Keyword, Role, Shape
from .shapes import are_names, misfit

#: Keywords that lead from the schema of a member to a schema with the keyword: to the same value, or to its items.
WITHIN = {"anyOf": True, "oneOf": True, "allOf": True, "prefixItems": True, "items": False}

_EXAMPLE = '"name", or {"source": "name", "after": ["other"], "longest": 64}'


def _check(check: Check, located: Located, keyword: str, value: Any) -> None:
    """Note a value that names no source, and a place at which no member has it."""
    said = {"source": value} if isinstance(value, str) else value
    if not isinstance(said, Mapping):
        misfit(check, located, keyword, value, "the name of a source, or an object", f"write {_EXAMPLE}")
        return
    after, longest = said.get("after", []), said.get("longest", 1)
    is_formed = isinstance(said.get("source"), str) and isinstance(after, (list, tuple)) and are_names(after)
    if not is_formed or type(longest) is not int or longest < 1 or set(said) - {"source", "after", "longest"}:
        check.invalid(located, keyword, f"{keyword} does not name its source", f"write {_EXAMPLE}")
    elif not is_at_member(located.pointer):
        check.invalid(
            located,
            keyword,
            f"{keyword} stands where no member of an object has it",
            "write it in the schema of a property itself, in its anyOf, oneOf or allOf, or in its items",
        )


def is_at_member(pointer: str) -> bool:
    """Return True if a schema at a pointer is that of a property, or leads to its value by `WITHIN`."""
    steps = pointer.split("/")[1:]
    while steps:
        if len(steps) >= 2 and steps[-2] == "properties" and "not" not in steps and "if" not in steps:
            return True
        if steps[-1] == "items":
            steps.pop()
        elif len(steps) >= 2 and WITHIN.get(steps[-2]) and steps[-1].isdigit():
            del steps[-2:]
        else:
            return False
    return False


ROWS = (Keyword(KEYWORD, Shape.OWN, Role.LIVE, holds=Holds.UNKNOWN, check=_check),)
