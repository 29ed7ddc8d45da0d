"""Quick test for schemas that obviously have a value: most do, and need not be lowered to know it.

A row of the automaton leads only to states from which the text can be finished, so each subschema on the way must be
known to have a value. For most schemas the keywords tell: the empty string, zero, the empty array and the empty object
satisfy all keywords that bound values from above or constrain their parts.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ..keywords.arrays import READ_FOR_ARRAY, surely_has_array
from ..keywords.numbers import READ_FOR_NUMBER, surely_has_number
from ..keywords.objects import READ_FOR_OBJECT, surely_has_object
from ..keywords.strings import READ_FOR_STRING, surely_has_string
from ..read.keywords import CONSTRAINING, KEYWORDS, Holds
from ..read.located import Located
from ..read.resolve import Document
from .conjunction import type_of

#: The types that a keyword constrains, as bits.
_BITS = {"object": 1, "array": 2, "string": 4, "number": 8, "integer": 8, "boolean": 16, "null": 32, "any": 63}
_EVERY_TYPE = 63
_WHOLE = 64  # it lists values, or applies other schemas to the value

_CONSTRAINTS = {name: KEYWORDS[name] for name in CONSTRAINING if name != "type"}

#: By keyword: the type of which the empty value (``""``, ``0``, ``[]``, ``{}``) may not satisfy it, as a bit.
_ASKED = {
    row.name: 0 if row.holds is not Holds.UNKNOWN else _WHOLE if row.type is None else _BITS[row.type]
    for row in _CONSTRAINTS.values()
}

#: By type: what finds out whether it surely has a value other than the empty one, and the keywords that this does not
#: take into account, though they may exclude the value.
_WITNESSES = tuple(
    (
        _BITS[kind],
        surely_has,
        frozenset(
            row.name
            for row in _CONSTRAINTS.values()
            if row.type == kind and row.holds is not Holds.PARTS and row.name not in read
        ),
    )
    for kind, surely_has, read in (
        ("object", surely_has_object, READ_FOR_OBJECT),
        ("array", surely_has_array, READ_FOR_ARRAY),
        ("string", surely_has_string, READ_FOR_STRING),
        ("number", surely_has_number, READ_FOR_NUMBER),
    )
)

#: Maximum nesting of required members and references that are inspected.
_MAX_DEPTH = 100


class Inhabited:
    """Memo of which schemas obviously have a value.

    Args:
        document: the document of the schemas, to follow references; None: none is followed.
    """

    def __init__(self, document: Document | None = None) -> None:
        self._document = document
        self._known: dict[int, bool] = {}  # by the identity of a schema
        self._kept: list[Any] = []
        self._depth = 0

    def is_inhabited(self, schema: Any) -> bool:
        """Return True if some JSON value obviously satisfies a well-formed schema; False: it is not known."""
        if schema is True or schema is False:
            return schema is True
        known = self._known.get(id(schema))
        if known is not None:
            return known
        if not isinstance(schema, dict) or self._depth > _MAX_DEPTH:
            return False
        document = self._document
        if document is not None and schema is not document.schema and document.is_resource(schema):
            return False  # references mean something else inside
        if self._depth == 0:
            self._kept.append(schema)  # and with it all in it, so that ids stay their own
        self._known[id(schema)] = False  # while it is in progress: it may refer to itself
        self._depth += 1
        sure = self._judge(schema)
        self._depth -= 1
        self._known[id(schema)] = sure
        return sure

    def _judge(self, schema: dict[str, Any]) -> bool:
        asked = 0
        words: set[str] = set()
        for word in schema:
            bits = _ASKED.get(word)
            if bits:
                asked |= bits
                words.add(word)
        if asked & _WHOLE:
            return len(words) == 1 and self._applied(schema, words.pop())
        kinds = _kinds(schema["type"]) if "type" in schema else _EVERY_TYPE
        if kinds & ~asked:  # an empty value of these types
            return True
        for kind, surely_has, beyond in _WITNESSES:
            if kinds & kind and beyond.isdisjoint(schema) and surely_has(schema, self.is_inhabited):
                return True
        return False

    def _applied(self, schema: dict[str, Any], word: str) -> bool:
        """Return True if the one keyword of a schema that applies others, or lists values, has a value."""
        for other in schema:
            if other != word and other in _ASKED:
                return False
        if word == "enum" or word == "const":
            values = schema[word] if word == "enum" else (schema[word],)
            if "type" not in schema:
                return len(values) > 0
            kinds = _kinds(schema["type"])
            for value in values:
                if _kind(value) & kinds:
                    return True
            return False
        document = self._document
        if document is None:
            return False
        if word == "$ref":
            target = schema[word]
            if "type" in schema and not document.ref_hides_siblings:
                return False
            if target != "#" and not target.startswith("#/"):
                return False
            place = document.resolve(Located(schema))
            return place.scope is None and self.is_inhabited(place.schema)
        if "type" in schema:
            return False
        if word == "anyOf" or (word == "oneOf" and id(schema) in document.disjoint):
            for option in schema[word]:
                if self.is_inhabited(option):
                    return True
        return False


def _kinds(names: str | Iterable[str]) -> int:
    """Return the bits of some types."""
    found = 0
    if isinstance(names, str):
        return _BITS[names]
    for name in names:
        found |= _BITS[name]
    return found


def _kind(value: object) -> int:
    """Return the bit of a value's type; 0 for a fraction, which an integer may be asked for, and for a list or dict."""
    return 0 if isinstance(value, (float, dict, list, tuple)) else _BITS[type_of(value)]
