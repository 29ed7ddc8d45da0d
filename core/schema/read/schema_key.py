"""Keys of schema documents: text that is equal for documents that mean the same."""

from __future__ import annotations

import json
from typing import Any

from .keywords import KEYWORDS, Shape

#: Maximum nesting of the schemas of a document that has a key: each level takes up to four Python frames.
MAX_DEPTH = 100

#: Python types of an annotation's value, by its shape. A value of another type counts.
_ANNOTATED: dict[Shape, type | tuple[type, ...]] = {
    Shape.TEXT: str,
    Shape.FLAG: bool,
    Shape.VALUES: list,
    Shape.VALUE: object,
    Shape.SCHEMA: (dict, bool),
}
_LEFT_OUT = {name: _ANNOTATED[KEYWORDS[name].shape] for name in KEYWORDS.annotations}


def schema_key(schema: Any) -> str:
    """Return a schema document as text that is equal for documents which say the same in the same order.

    Titles, descriptions, defaults and other annotations do not count, nor does the order of keywords. The order of
    ``properties`` does (members are written in it), as does that of everything else.

    Raises:
        RecursionError, ValueError, TypeError: it has no text: too deep, cyclic, or not JSON.
    """
    reader = _KeyWriter()
    text = _dumped(reader.read(schema, 0))
    # A reference may lead into what was left out: then all of it counts.
    return _dumped(schema) if reader.is_referred_to else text


#: Writer of JSON without needless bytes: made once, as that takes longer than to write a schema.
_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))


def _dumped(value: Any) -> str:
    return _ENCODER.encode(value)


class _KeyWriter:
    """Reads one document.

    Attributes:
        is_referred_to: some reference may lead into an annotation.
    """

    def __init__(self) -> None:
        self.is_referred_to = False

    def read(self, schema: Any, depth: int) -> Any:
        """Return a schema without annotations, its keywords in order."""
        if not isinstance(schema, dict):
            return schema
        if depth > MAX_DEPTH:
            raise RecursionError("the schema is nested too deeply")

        def read_inner(inner: Any, *_: object) -> Any:
            return self.read(inner, depth + 1)

        result: dict[str, Any] = {}
        for keyword in sorted(schema):
            value = schema[keyword]
            if keyword in _LEFT_OUT and isinstance(value, _LEFT_OUT[keyword]):
                continue
            if keyword in KEYWORDS.references and not KEYWORDS.annotations.isdisjoint(str(value).split("/")):
                self.is_referred_to = True
            result[keyword] = KEYWORDS.map_subschemas(keyword, value, read_inner)
        return result
