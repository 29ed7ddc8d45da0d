"""Quick test for schemas that obviously have a value, without lowering them.

A row of the automaton leads only to states from which the text can be finished, so each subschema on the path must be
known to have a value. For most schemas the keywords show it: the empty string, zero, the empty array and the empty
object satisfy all keywords that bound values from above or constrain their parts.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ..keywords.applied import first_witness
from ..keywords.arrays import READ_FOR_ARRAY, array_witness
from ..keywords.numbers import READ_FOR_NUMBER, number_witness
from ..keywords.objects import READ_FOR_OBJECT, object_witness
from ..keywords.strings import READ_FOR_STRING, string_witness
from ..read.keywords import KEYWORDS, Holds
from ..read.resolve import Document

#: The types that a keyword constrains, as bits.
_BITS = {"object": 1, "array": 2, "string": 4, "number": 8, "integer": 8, "boolean": 16, "null": 32, "any": 63}
_EVERY_TYPE = 63
_WHOLE = 64  # it lists values, or applies other schemas to the value

#: The empty value of each type, by its bit.
_EMPTY: dict[int, Any] = {
    _BITS[kind]: value
    for kind, value in (("object", {}), ("array", []), ("string", ""), ("number", 0), ("boolean", True), ("null", None))
}

#: Types that alone never exceed a limit, if a value other than the empty one surely exists.
_WITHIN_LIMITS = frozenset((_BITS["object"], _BITS["string"], _BITS["number"]))

_CONSTRAINTS = {name: KEYWORDS[name] for name in KEYWORDS.constraining if name != "type"}

#: By keyword: the type whose empty value (``""``, ``0``, ``[]``, ``{}``) may violate it, as a bit.
_VIOLATED = {
    row.name: 0 if row.holds is not Holds.UNKNOWN else _WHOLE if row.type is None else _BITS[row.type]
    for row in _CONSTRAINTS.values()
}

#: Keywords that the empty value of each type may violate. Most schemas have none of them.
_VIOLABLE = frozenset(keyword for keyword, bits in _VIOLATED.items() if bits)

#: By type: the function that returns a value other than the empty one, and the keywords that may exclude this value and
#: that the function ignores.
_WITNESSES = tuple(
    (
        _BITS[kind],
        value_of,
        frozenset(
            row.name
            for row in _CONSTRAINTS.values()
            if row.type == kind and row.holds is not Holds.PARTS and row.name not in read
        ),
    )
    for kind, value_of, read in (
        ("object", object_witness, READ_FOR_OBJECT),
        ("array", array_witness, READ_FOR_ARRAY),
        ("string", string_witness, READ_FOR_STRING),
        ("number", number_witness, READ_FOR_NUMBER),
    )
)

#: Maximum nesting of required members and references that are inspected.
_MAX_DEPTH = 100


class Inhabited:
    """Memo of the schemas that obviously have a value.

    Args:
        document: the document of the schemas, to follow references; None: none is followed.
    """

    def __init__(self, document: Document | None = None) -> None:
        self._document = document
        self._known: dict[int, list[Any] | None] = {}  # the witnesses, by the identity of a schema
        self._kept: list[Any] = []
        self._depth = 0

    def is_inhabited(self, schema: Any) -> bool:
        """Return True if some JSON value obviously satisfies a well-formed schema; False: it is not known."""
        if type(schema) is dict and _VIOLABLE.isdisjoint(schema):
            return "type" not in schema or _types(schema["type"]) > 0
        return self.witness(schema) is not None

    def witness(self, schema: Any) -> list[Any] | None:
        """Return a value that obviously satisfies a well-formed schema, in a list; an empty list if one obviously
        exists and is not known; None if it is not known whether one exists."""
        if schema is True or schema is False:
            return [None] if schema else None
        if id(schema) in self._known:
            return self._known[id(schema)]
        if not isinstance(schema, dict) or self._depth > _MAX_DEPTH:
            return None
        document = self._document
        if document is not None and schema is not document.schema and document.is_resource(schema):
            return None  # references mean something else inside
        if self._depth == 0:
            self._kept.append(schema)  # and with it all in it, so that ids stay their own
        self._known[id(schema)] = None  # while it is in progress: it may refer to itself
        self._depth += 1
        found = self._find_witness(schema)
        self._depth -= 1
        self._known[id(schema)] = found
        return found

    def _find_witness(self, schema: dict[str, Any]) -> list[Any] | None:
        """Return `witness` of a schema: the empty value of a type, if no keyword may exclude one; else another value of
        a type."""
        violated = 0  # types whose empty value may be excluded
        keywords: set[str] = set()  # that may exclude it
        for keyword in schema:
            bits = _VIOLATED.get(keyword)
            if bits:
                violated |= bits
                keywords.add(keyword)
        if violated & _WHOLE:
            return self._applied(schema, keywords.pop()) if len(keywords) == 1 else None
        types = _types(schema["type"]) if "type" in schema else _EVERY_TYPE
        free = types & ~violated
        if free:
            return [_EMPTY[free & -free]]  # of the type of the lowest bit
        found = first_witness(
            value_of(schema, self.witness)
            for kind, value_of, ignored in _WITNESSES
            if types & kind and ignored.isdisjoint(schema)
        )
        # An empty list says that some value exists. That is not enough for several types, or arrays: their values may
        # exceed a limit.
        return found if found or types in _WITHIN_LIMITS else None

    def _applied(self, schema: dict[str, Any], keyword: str) -> list[Any] | None:
        """Return `witness` of a schema with a keyword that applies other schemas, or lists values; None if another
        keyword constrains the value, too."""
        row = KEYWORDS[keyword]
        if row.witness is None:
            return None
        for other in schema:
            if other != keyword and other in _VIOLATED:
                return None
        return row.witness(schema, self._document, self.witness)


def _types(names: str | Iterable[str]) -> int:
    """Return the bits of some types."""
    found = 0
    if isinstance(names, str):
        return _BITS[names]
    for name in names:
        found |= _BITS[name]
    return found
