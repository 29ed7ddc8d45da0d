"""Values that the operator of a server gives: the schemas of clients name them in ``x-values``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from toolgrammar.core.errors import InvalidSchemaError, Place
from toolgrammar.core.json import resolve_local
from toolgrammar.core.live import LiveSchema, Values
from toolgrammar.core.schema import KEYWORDS

from .fields import RequestError


class NamedValues:
    """Values by name. A client sends names only, so it decides which callable runs, and not what that does.

    Args:
        values: for each name a callable or a `Values`, or a list of values that never change.

    Raises:
        InvalidSchemaError: one is neither.
    """

    def __init__(self, values: Mapping[str, Any]) -> None:
        self._values = {name: _values(name, source) for name, source in values.items()}

    def bound(self, schema: Any, tool: str | None = None) -> Any:
        """Return a client's schema with the names that the values have in this process; the same object without names.

        Args:
            schema: the schema.
            tool: the tool of which it has the arguments; None: it is of the answer.

        Raises:
            RequestError: a name is not known.
        """
        live = LiveSchema(schema)
        if not live.has_values:
            return schema
        unknown: set[str] = set()

        def bind(part: dict[str, Any]) -> dict[str, Any]:
            name = _name(part.get(Values.KEYWORD))
            if name in self._values:
                return {**part, Values.KEYWORD: _bound(part[Values.KEYWORD], self._values[name])}
            if name is not None and Values.named(name) is None:  # nor the name of values in this process
                unknown.add(name)
            return part

        result = KEYWORDS.map_schemas(schema, bind)
        if unknown:
            named = ((_name(resolve_local(schema, f"#{quote(at)}")), at) for at in live.places(in_grammar=True))
            name, pointer = next((name, pointer) for name, pointer in named if name in unknown)  # the first place
            known = ", ".join(map(repr, self._values)) or "none: its operator gives them (toolgrammar serve --values)"
            raise RequestError(
                f"{Values.KEYWORD} names values that this server does not have: {name!r} "
                f"({Place(tool=tool, pointer=pointer)})",
                field="schema" if tool is None else "tools",
                hint=f"it has {known}",
            )
        return result


def _name(keyword: Any) -> str | None:
    """Return the name in a value of ``x-values``; None if it has none, which the reader of the schema says."""
    source = keyword.get("source") if isinstance(keyword, Mapping) else keyword
    return source if isinstance(source, str) else None


def _bound(keyword: Any, values: Values) -> dict[str, Any]:
    """Return a client's value of ``x-values`` with the name that the operator's values have in this process.

    ``after`` lists the arguments that the callable reads: those that the operator names, then those of the client.
    """
    given = keyword if isinstance(keyword, Mapping) else {}  # it is the name alone
    bound = {**given, **values.mark(values.name)}
    after = given.get("after") or []
    if not isinstance(after, list) or not all(isinstance(name, str) for name in after):
        return {**bound, "after": after}  # malformed: the reader of the schema refuses it, with its place
    return bound if values.after is None else {**bound, "after": list(dict.fromkeys([*values.after, *after]))}


def _values(name: str, source: Any) -> Values:
    """Return what an operator gives under a name as `Values`.

    Raises:
        InvalidSchemaError: it is neither a callable, nor a `Values`, nor a list.
    """
    if isinstance(source, Values) or callable(source):
        return Values.of(source)
    if isinstance(source, (list, tuple)):
        fixed = list(source)
        return Values(lambda: fixed, after=())
    raise InvalidSchemaError(
        f"the values {name!r} are {type(source).__name__}", hint="give a callable, a Values or a list of values"
    )
