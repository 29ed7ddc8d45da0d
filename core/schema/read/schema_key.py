"""Keys of schema documents: text that is equal for documents which say the same of values."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from .keywords import ANNOTATIONS, KEYWORDS, REFERENCES, Shape, map_subschemas

#: Python types of an annotation's value, by its shape. A value of another type counts.
_ANNOTATED: Mapping[Shape, Callable[[Any], bool]] = {
    Shape.TEXT: lambda value: isinstance(value, str),
    Shape.FLAG: lambda value: isinstance(value, bool),
    Shape.VALUES: lambda value: isinstance(value, list),
    Shape.VALUE: lambda value: True,
    Shape.SCHEMA: lambda value: isinstance(value, (dict, bool)),
}


def schema_key(schema: Any) -> str:
    """Return a schema document as text that is equal for documents which say the same in the same order.

    Titles, descriptions, defaults and other annotations do not count, nor does the order of keywords. The order of
    ``properties`` does (members are written in it), as does that of everything else.

    Raises:
        RecursionError, ValueError, TypeError: it has no text: too deep, cyclic, or not JSON.
    """
    reader = _Reader()
    text = _dumped(reader.read(schema))
    # A reference may lead into what was left out: then all of it counts.
    return _dumped(schema) if reader.is_referred_to else text


def _dumped(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


class _Reader:
    """Reads one document.

    Attributes:
        is_referred_to: some reference may lead into an annotation.
    """

    def __init__(self) -> None:
        self.is_referred_to = False

    def read(self, schema: Any) -> Any:
        """Return a schema without annotations, its keywords in order."""
        if not isinstance(schema, dict):
            return schema
        result: dict[str, Any] = {}
        for keyword in sorted(schema):
            value = schema[keyword]
            if keyword in ANNOTATIONS and _ANNOTATED[KEYWORDS[keyword].shape](value):
                continue
            if keyword in REFERENCES and not ANNOTATIONS.isdisjoint(str(value).split("/")):
                self.is_referred_to = True
            result[keyword] = map_subschemas(keyword, value, lambda inner, *_: self.read(inner))
        return result
