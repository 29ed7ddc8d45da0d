"""Values that have so many parts, each of so many parts, that no model finishes them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..read.located import Located
from ..read.resolve import Document

#: Maximum number of bytes of the shortest text of a value. A lower bound of it is compared, and text may be open inside
#: of text, so shortest completions have room for more (`automaton.lazy_dfa.MAX_TEXT`).
MAX_LEAST_TEXT = 4_000_000

#: Nesting from which on a part counts as one byte: with two items on each level, it is beyond the maximum by then.
_MAX_DEPTH = 64

#: The shortest values of the types that are written in one way.
_LEAST = {"null": 4, "boolean": 4}


class LeastSizes:
    """Lower bounds of the shortest texts of subschemas, from the keywords that ask for characters, items and members.

    Args:
        document: the schema; its subschemas are well-formed.
    """

    def __init__(self, document: Document) -> None:
        self._document = document
        self._known: dict[object, int] = {}

    def least(self, located: Located, depth: int = 0) -> int:
        """Return a number of bytes that each text of a subschema has at least; 1 also for one that has no text."""
        schema = located.schema
        if not isinstance(schema, Mapping) or depth == _MAX_DEPTH:
            return 1
        found = self._known.get(located.key)
        if found is None:
            self._known[located.key] = 1  # inside of itself
            found = self._known[located.key] = self._of(located, schema, depth + 1)
        return found

    def _value(self, schema: Mapping[str, Any], keyword: str, otherwise: Any) -> Any:
        """Return the value of a keyword, if the schema has it and the dialect knows it."""
        return schema[keyword] if keyword in schema and self._document.knows(keyword) else otherwise

    def _of(self, located: Located, schema: Mapping[str, Any], depth: int) -> int:
        bounds = [1]
        if "$ref" in schema:
            bounds.append(self.least(self._document.resolve(located), depth))
            if self._document.ref_hides_siblings:
                return max(bounds)
        if "allOf" in schema:
            bounds += [self.least(each, depth) for each in located.items("allOf")]
        bounds += [
            min(self.least(each, depth) for each in located.items(keyword))
            for keyword in ("anyOf", "oneOf")
            if keyword in schema
        ]
        bounds.append(_length(self._value(schema, "const", None)))
        bounds.append(min(map(_length, self._value(schema, "enum", ())), default=1))
        names = self._value(schema, "type", "any")
        sizes = {"string": self._string, "array": self._array, "object": self._object}
        of_types = [
            sizes[name](located, schema, depth) if name in sizes else _LEAST.get(name, 1)
            for name in ([names] if isinstance(names, str) else names)
        ]
        return max(*bounds, min(of_types, default=1))

    def _string(self, located: Located, schema: Mapping[str, Any], depth: int) -> int:
        return 2 + int(self._value(schema, "minLength", 0))

    def _array(self, located: Located, schema: Mapping[str, Any], depth: int) -> int:
        listed = "items" if self._value(schema, "prefixItems", None) is None else "prefixItems"
        first: list[Located] = []
        rest = 1
        if isinstance(schema.get(listed), (list, tuple)):
            first = located.items(listed)
            others = "items" if listed == "prefixItems" else "additionalItems"
            if others in schema:
                rest = self.least(located.under(others), depth)
        elif "items" in schema:
            rest = self.least(located.under("items"), depth)
        count = int(self._value(schema, "minItems", 0))
        size = sum(self.least(each, depth) for each in first[:count]) + max(0, count - len(first)) * rest
        if self._value(schema, "contains", None) is not None:
            needed = int(self._value(schema, "minContains", 1))
            size = max(size, needed * self.least(located.under("contains"), depth))
            count = max(count, needed)
        return 2 + size + max(0, count - 1)

    def _object(self, located: Located, schema: Mapping[str, Any], depth: int) -> int:
        declared = schema.get("properties", {})
        names = self._value(schema, "required", ())
        names = set(names) if isinstance(names, (list, tuple)) else set()  # Draft 3 has a flag
        size = 2 + max(0, len(names) - 1) + max(0, int(self._value(schema, "minProperties", 0)) - len(names)) * 4
        for name in names:
            size += 3 + len(name)
            size += self.least(located.below(declared[name], ("properties", name)), depth) if name in declared else 1
        return size


def _length(value: object) -> int:
    """Return a lower bound of the length of a JSON value."""
    if isinstance(value, str):
        return 2 + len(value)
    if isinstance(value, (list, tuple)):
        return 2 + sum(map(_length, value))
    if isinstance(value, Mapping):
        return 2 + sum(3 + len(name) + _length(inner) for name, inner in value.items())
    return 1
