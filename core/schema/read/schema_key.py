# cython: language_level=3
"""Keys of schema documents: text that is equal for documents which say the same of values.

Compiled where that is possible (Cython in pure-Python mode), as a request may bring hundreds of tools; the same file
runs interpreted.
"""

from __future__ import annotations

import json
from typing import Any

from .keywords import ANNOTATIONS, KEYWORDS, REFERENCES, Shape

try:
    import cython
except ImportError:  # interpreted, without Cython installed
    from ...compiled import standin as cython  # type: ignore[no-redef]

#: True if this module was compiled when it was installed.
COMPILED: bool = bool(cython.compiled)

#: Maximum nesting of the schemas of a document that has a key.
MAX_DEPTH = cython.declare(cython.int, 300)

# Where schemas are in the value of a keyword, as numbers of C.
_ONE = cython.declare(cython.int, 1)
_LIST = cython.declare(cython.int, 2)
_ONE_OR_LIST = cython.declare(cython.int, 3)
_BY_NAME = cython.declare(cython.int, 4)
_WHERE = {
    Shape.SCHEMA: 1,
    Shape.SCHEMAS: 2,
    Shape.ALTERNATIVES: 2,
    Shape.ITEMS: 3,
    Shape.BY_NAME: 4,
    Shape.BY_PATTERN: 4,
    Shape.DEPENDENCIES: 4,
}
_HOLDING = {row.name: _WHERE[row.shape] for row in KEYWORDS.values() if row.shape in _WHERE}

#: Python types of an annotation's value, by its shape. A value of another type counts.
_ANNOTATED = {Shape.TEXT: str, Shape.FLAG: bool, Shape.VALUES: list, Shape.VALUE: object, Shape.SCHEMA: (dict, bool)}
_LEFT_OUT = {name: _ANNOTATED[KEYWORDS[name].shape] for name in ANNOTATIONS}


def schema_key(schema: Any) -> str:
    """Return a schema document as text that is equal for documents which say the same in the same order.

    Titles, descriptions, defaults and other annotations do not count, nor does the order of keywords. The order of
    ``properties`` does (members are written in it), as does that of everything else.

    Raises:
        RecursionError, ValueError, TypeError: it has no text: too deep, cyclic, or not JSON.
    """
    reader = _Reader()
    text = _dumped(reader.read(schema, 0))
    # A reference may lead into what was left out: then all of it counts.
    return _dumped(schema) if reader.is_referred_to else text


#: Writer of JSON without needless bytes: made once, as that takes longer than to write a schema.
_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))


def _dumped(value: Any) -> str:
    return _ENCODER.encode(value)


@cython.cclass
class _Reader:
    """Reads one document.

    Attributes:
        is_referred_to: some reference may lead into an annotation.
    """

    is_referred_to: cython.bint

    def __init__(self) -> None:
        self.is_referred_to = False

    @cython.cfunc
    def read(self, schema: object, depth: cython.int) -> object:
        """Return a schema without annotations, its keywords in order."""
        if not isinstance(schema, dict):
            return schema
        if depth > MAX_DEPTH:
            raise RecursionError("the schema is nested too deeply")
        result: dict = {}
        where: cython.int
        for keyword in sorted(schema):
            value = schema[keyword]
            if keyword in _LEFT_OUT and isinstance(value, _LEFT_OUT[keyword]):
                continue
            if keyword in REFERENCES and not ANNOTATIONS.isdisjoint(str(value).split("/")):
                self.is_referred_to = True
            where = _HOLDING.get(keyword, 0)
            if where == _BY_NAME:
                if isinstance(value, dict):
                    value = {name: self.read(inner, depth + 1) for name, inner in value.items()}
            elif isinstance(value, list):
                if where == _LIST or where == _ONE_OR_LIST:
                    value = [self.read(inner, depth + 1) for inner in value]
            elif where == _ONE or where == _ONE_OR_LIST:
                value = self.read(value, depth + 1)
            result[keyword] = value
        return result
