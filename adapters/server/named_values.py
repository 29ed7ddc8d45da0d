"""Values that the operator of a server gives: the schemas of clients name them in ``x-values``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from toolgrammar.core.errors import InvalidSchemaError, Place
from toolgrammar.core.json import escape
from toolgrammar.core.live import Values

from .fields import RequestError

#: Keywords whose values are data, not schemas.
_DATA = ("const", "default", "enum", "examples")


class NamedValues:
    """Values by name. A client sends names only, so it decides what is asked, and not what runs.

    Args:
        values: for each name a callable or a `Values`, or a list of values that never change.

    Raises:
        InvalidSchemaError: one is neither.
    """

    def __init__(self, values: Mapping[str, Any]) -> None:
        self._values = {name: _values(name, one) for name, one in values.items()}

    def bound(self, schema: Any, place: Place) -> Any:
        """Return a schema in which the names are those of this process; the same object if it has none.

        Args:
            schema: of a client.
            place: where it stands in the request: the tool.

        Raises:
            RequestError: a name is not known.
        """
        unknown = next(self._unknown(schema, ""), None)
        if unknown is not None:
            name, pointer = unknown
            names = ", ".join(map(repr, self._values)) or "none: its operator gives them (toolgrammar serve --values)"
            where = Place(tool=place.tool, pointer=pointer)
            field = "schema" if place.tool is None else "tools"
            raise RequestError(
                f"{Values.KEYWORD} names values that this server does not have: {name!r} ({where})",
                field=field,
                hint=f"it has {names}",
            )
        return self._bound(schema)

    def _unknown(self, part: Any, at: str) -> Iterator[tuple[str, str]]:
        """Yield the unknown names in a schema, with their pointers."""
        if isinstance(part, list):
            for index, inner in enumerate(part):
                yield from self._unknown(inner, f"{at}/{index}")
        elif isinstance(part, Mapping):
            for key, inner in part.items():
                if key != Values.KEYWORD and key not in _DATA:
                    yield from self._unknown(inner, f"{at}/{escape(str(key))}")
            name = _name(part.get(Values.KEYWORD))
            if name is not None and name not in self._values and Values.named(name) is None:
                yield name, f"{at}/{Values.KEYWORD}"

    def _bound(self, part: Any) -> Any:
        if isinstance(part, list):
            return [self._bound(inner) for inner in part]
        if not isinstance(part, Mapping):
            return part
        made = {key: self._bound(inner) if key != Values.KEYWORD else inner for key, inner in part.items()}
        values = self._values.get(_name(part.get(Values.KEYWORD)) or "")
        if values is not None:
            said = part[Values.KEYWORD] if isinstance(part[Values.KEYWORD], Mapping) else {}
            mark = {**said, **values.mark(values.name)}
            added = said.get("after") or []
            if not isinstance(added, list) or not all(isinstance(name, str) for name in added):
                mark["after"] = added  # the reader of the schema refuses it
            elif values.after is not None:  # the operator knows what the callable reads, and the client may add to it
                mark["after"] = list(dict.fromkeys([*values.after, *added]))
            made[Values.KEYWORD] = mark
        return made


def _name(mark: Any) -> str | None:
    """Return the name in a value of ``x-values``; None if it has none, which the reader of the schema says."""
    source = mark.get("source") if isinstance(mark, Mapping) else mark
    return source if isinstance(source, str) else None


def _values(name: str, source: Any) -> Values:
    if isinstance(source, Values) or callable(source):
        return Values.of(source)
    if isinstance(source, (list, tuple)):
        fixed = list(source)
        return Values(lambda: fixed, after=())
    raise InvalidSchemaError(
        f"the values {name!r} are {type(source).__name__}", hint="give a callable, a Values or a list of values"
    )
