"""Quick test for schemas that obviously have a value: most do, and need not be lowered to know it.

A row of the automaton leads only to states from which the text can be finished, so each subschema on the way must be
known to have a value. For most schemas the keywords tell: the empty string, zero, the empty array and the empty object
satisfy all keywords that bound values from above or constrain their parts.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ..read.keywords import CONSTRAINING, KEYWORDS
from ..read.located import Located
from ..read.resolve import Document

# The types that a keyword constrains, as bits.
OBJECT = 1
ARRAY = 2
STRING = 4
NUMBER = 8
BOOLEAN = 16
NULL = 32
EVERY_TYPE = 63
WHOLE = 64  # it lists values, or applies other schemas to the value

_BITS = {"object": 1, "array": 2, "string": 4, "number": 8, "integer": 8, "boolean": 16, "null": 32, "any": 63}

#: For each keyword that constrains values: the type of which an empty value (``""``, ``0``, ``[]``, ``{}``, true, null)
#: may not satisfy it, as a bit.
_ASKED = {
    row.name: 0 if row.trivial else WHOLE if row.type is None else _BITS[row.type]
    for row in KEYWORDS.values()
    if row.name in CONSTRAINING and row.name != "type"
}
#: Keywords of these that may fail for an object that is not empty.
_BESIDE_REQUIRED = ("patternProperties", "propertyNames", "maxProperties")
#: Keywords of these that may fail for an array that is not empty.
_BESIDE_ITEMS = ("prefixItems", "additionalItems")

#: Maximum nesting of required members and references that are inspected.
_MAX_DEPTH = 100
_SMALL = 10**15


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

    def is_sure(self, schema: Any) -> bool:
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
        if asked & WHOLE:
            return len(words) == 1 and self._applied(schema, words.pop())
        kinds = EVERY_TYPE
        if "type" in schema:
            kinds = _kinds(schema["type"])
        if kinds & ~asked:  # an empty value of these types
            return True
        return bool(
            (kinds & OBJECT and self._has_members(schema, words))
            or (kinds & ARRAY and self._has_items(schema, words))
            or (kinds & STRING and _has_string(schema, words))
            or (kinds & NUMBER and _has_number(schema, words))
        )

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
            return place.scope is None and self.is_sure(place.schema)
        if "type" in schema:
            return False
        if word == "anyOf" or (word == "oneOf" and id(schema) in document.disjoint):
            for option in schema[word]:
                if self.is_sure(option):
                    return True
        return False

    def _has_members(self, schema: dict[str, Any], words: set[str]) -> bool:
        if "required" not in words:
            return False
        for word in words:
            if word != "required" and _ASKED[word] == OBJECT:
                return False
        for word in _BESIDE_REQUIRED:
            if word in schema:
                return False
        declared = schema.get("properties", {})
        for name in schema["required"]:
            inner = declared.get(name)
            if inner is None or not self.is_sure(inner):
                return False
        return True

    def _has_items(self, schema: dict[str, Any], words: set[str]) -> bool:
        for word in words:
            if word != "minItems" and _ASKED[word] == ARRAY:
                return False
        for word in _BESIDE_ITEMS:
            if word in schema:
                return False
        least = schema["minItems"]
        if least > schema.get("maxItems", least) or (least > 1 and schema.get("uniqueItems") is True):
            return False
        return least == 0 or self.is_sure(schema.get("items", True))


def _has_string(schema: dict[str, Any], words: set[str]) -> bool:
    for word in words:
        if word != "minLength" and word != "format" and _ASKED[word] == STRING:
            return False
    if "format" in words:
        return "minLength" not in words and "maxLength" not in schema
    return bool(schema["minLength"] <= schema.get("maxLength", _SMALL))


def _has_number(schema: dict[str, Any], words: set[str]) -> bool:
    for word in words:
        if word != "minimum" and word != "maximum" and _ASKED[word] == NUMBER:
            return False
    low, high = schema.get("minimum", -_SMALL), schema.get("maximum", _SMALL)
    return type(low) is int and type(high) is int and -_SMALL <= low <= high <= _SMALL


def _kinds(names: str | Iterable[str]) -> int:
    """Return the bits of some types."""
    found = 0
    if isinstance(names, str):
        return _BITS[names]
    for name in names:
        found |= _BITS[name]
    return found


def _kind(value: object) -> int:
    """Return the bit of a value's type; 0 for a number that may be none of the integers."""
    if isinstance(value, str):
        return STRING
    if value is None:
        return NULL
    if isinstance(value, bool):
        return BOOLEAN
    if isinstance(value, int):
        return NUMBER
    return 0
