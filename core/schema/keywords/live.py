"""Keywords of this library for strings and values that a program or a conversation gives.

``x-values``: a callable gives the values of a member while the text is written (see `core/live`).
``x-seen``, ``x-copied``: a conversation gives them (see `core/conversation/bound`); they are resolved before a grammar
is made.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...dependent.live import KEYWORD as KEYWORD
from ...errors import Place, UnsupportedSchemaError
from ..read.located import Located
from .row import Check, Keyword, Role, Shape
from .shapes import are_names, misfit

#: Keywords of strings and values that a conversation gives.
SEEN, COPIED = "x-seen", "x-copied"

#: Whose text may be copied, and what a copy consists of.
SOURCES, UNITS = ("user", "system", "tool", "all"), ("words", "lines", "chars")

#: Keywords that lead from the schema of a member to a schema with the keyword: to the same value, or to its items.
WITHIN = {"anyOf": True, "oneOf": True, "allOf": True, "prefixItems": True, "items": False}

_EXAMPLE = '"name", or {"source": "name", "after": ["other"], "longest": 64}'


def _check(check: Check, located: Located, keyword: str, value: Any) -> None:
    """Note a value of ``x-values`` that names no source, and a place at which no member has it.

    The value has the ``source``, the names of the members that it reads (``after``), a maximum length of its answers
    (``longest``), and the names among ``after`` that are no property of the schema (``given``).
    """
    said = {"source": value} if isinstance(value, str) else value
    if not isinstance(said, Mapping):
        misfit(check, located, keyword, value, "the name of a source, or an object", f"write {_EXAMPLE}")
        return
    after, longest, given = said.get("after", []), said.get("longest", 1), said.get("given", [])
    wrong = None
    if unknown := sorted(map(str, set(said) - {"source", "after", "longest", "given"})):
        wrong = f"has an unknown member {unknown[0]!r}"
    elif not isinstance(said.get("source"), str):
        wrong = "does not name its source"
    elif not (isinstance(after, (list, tuple)) and are_names(after)):
        wrong = "has an 'after' that is not a list of names"
    elif not (isinstance(given, (list, tuple)) and are_names(given)):
        wrong = "has a 'given' that is not a list of names"
    elif type(longest) is not int or longest < 1:
        wrong = "has a 'longest' that is not a positive whole number"
    if wrong:
        check.invalid(located, keyword, f"{keyword} {wrong}", f"write {_EXAMPLE}")
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


def wrong_mark(keyword: str, value: Any) -> tuple[str, str] | None:
    """Return what is wrong with a value of `SEEN` or `COPIED`, and a hint; None: it is well-formed."""
    name = "key" if keyword == SEEN else "source"
    said = {name: value} if isinstance(value, str) else value
    if isinstance(said, Mapping) and _is_mark(keyword, said):
        return None
    hint = (
        'write "order_id", or {"key": ..., "tool": ..., "calls": true}, or {"field": ..., "tool": ..., "without": []}'
    )
    if keyword == COPIED:
        hint = f'write one of {", ".join(SOURCES)}, or {{"source": ..., "unit": one of {", ".join(UNITS)}}}'
    return f"{keyword} names no {name}", hint


def _is_mark(keyword: str, said: Mapping[str, Any]) -> bool:
    """Return True for a well-formed value of `SEEN` (by ``key``, or by ``field``) or `COPIED` (by ``source``).

    ``field`` is a path in results of tools that are one JSON value.
    """
    tool, field, without = said.get("tool", ""), said.get("field"), said.get("without", ())
    if not isinstance(tool, str) or not isinstance(without, (list, tuple)) or not are_names(without):
        return False
    if "field" in said and not (isinstance(field, str) and field):
        return False
    of_results = {"tool", "field", "without"} if "field" in said else {"tool"}
    if keyword == COPIED:
        known = {"source", "unit", "numbers", *(of_results if said.get("source") == "tool" else ())}
        has_words = said.get("source") in SOURCES and said.get("unit", "words") in UNITS
        return has_words and isinstance(said.get("numbers", False), bool) and said.keys() <= known
    if "field" in said:
        return said.keys() <= of_results
    key = said.get("key")
    is_key = isinstance(key, str) and all(key.split("."))
    return is_key and isinstance(said.get("calls", False), bool) and said.keys() <= of_results | {"key", "calls"}


def _check_bound(check: Check, located: Located, keyword: str, value: Any) -> None:
    """Note a malformed value of `SEEN` or `COPIED`, and one that no conversation has replaced."""
    wrong = wrong_mark(keyword, value)
    if wrong is not None:
        check.invalid(located, keyword, *wrong)
    else:
        _unresolved(check, located, keyword)


def _unresolved(check: Check, located: Located, keyword: str) -> None:
    message = f"the keyword {keyword!r} has no meaning outside of a conversation"
    hint = "use it in the parameters of a tool, or resolve it by toolgrammar.core.of_conversation(schema, messages)"
    place = Place(pointer=located.pointer, keyword=keyword)
    check.refuse(located, UnsupportedSchemaError(message, hint=hint, place=place))


ROWS = (
    Keyword(SEEN, Shape.OWN, Role.LIVE, check=_check_bound),
    Keyword(COPIED, Shape.OWN, Role.LIVE, "string", check=_check_bound),
    Keyword(KEYWORD, Shape.OWN, Role.LIVE, check=_check),
)
