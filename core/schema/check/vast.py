"""Lower bounds of the lengths of values: some are too long for any model to finish."""

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
        if depth == _MAX_DEPTH or not (type(schema) is dict or isinstance(schema, Mapping)):
            return 1
        key = located.key
        found = self._known.get(key)
        if found is None:
            self._known[key] = 1  # inside of itself
            found = self._of(located, schema, depth + 1)
            self._known[key] = found
        return found

    def _inner(self, located: Located, keyword: str, depth: int) -> int:
        """Return the same for the schema under a keyword."""
        return self.least(located.under(keyword), depth)

    def _value(self, schema: Any, keyword: str, otherwise: Any) -> Any:
        """Return the value of a keyword, if the schema has it and the dialect knows it."""
        return schema[keyword] if keyword in schema and self._document.knows(keyword) else otherwise

    def _of(self, located: Located, schema: Any, depth: int) -> int:
        bound = 1
        if "$ref" in schema:
            bound = max(bound, self.least(self._document.resolve(located), depth))
            if self._document.ref_hides_siblings:
                return bound
        if "allOf" in schema:
            for each in located.items("allOf"):
                bound = max(bound, self.least(each, depth))
        for keyword in ("anyOf", "oneOf"):
            if keyword in schema:
                bound = max(bound, min([self.least(each, depth) for each in located.items(keyword)]))
        if "const" in schema:
            bound = max(bound, _length(self._value(schema, "const", None)))
        if "enum" in schema:
            bound = max(bound, min([_length(each) for each in self._value(schema, "enum", ())], default=1))
        if "type" in schema:
            names = self._value(schema, "type", "any")
            if isinstance(names, str):
                return max(bound, self._of_type(names, located, schema, depth))
            return max(bound, min([self._of_type(name, located, schema, depth) for name in names], default=1))
        return bound

    def _of_type(self, name: str, located: Located, schema: Any, depth: int) -> int:
        """Return the same for the values of one type."""
        if name == "object":
            return self._object(located, schema, depth)
        if name == "array":
            return self._array(located, schema, depth)
        if name == "string":
            return 2 + int(self._value(schema, "minLength", 0))
        return 4 if name == "null" or name == "boolean" else 1

    def _array(self, located: Located, schema: Any, depth: int) -> int:
        listed = "items" if self._value(schema, "prefixItems", None) is None else "prefixItems"
        first: list[Located] = []
        count = int(self._value(schema, "minItems", 0))
        size = 0
        if count:
            rest = 1
            if isinstance(schema.get(listed), (list, tuple)):
                first = located.items(listed)
                others = "items" if listed == "prefixItems" else "additionalItems"
                if others in schema:
                    rest = self._inner(located, others, depth)
            elif "items" in schema:
                rest = self._inner(located, "items", depth)
            for each in first[:count]:
                size += self.least(each, depth)
            size += max(0, count - len(first)) * rest
        if self._value(schema, "contains", None) is not None:
            needed = int(self._value(schema, "minContains", 1))
            size = max(size, needed * self._inner(located, "contains", depth))
            count = max(count, needed)
        return 2 + size + max(0, count - 1)

    def _object(self, located: Located, schema: Any, depth: int) -> int:
        declared = schema.get("properties", {})
        names = self._value(schema, "required", ())
        names = set(names) if isinstance(names, (list, tuple)) else set()  # Draft 3 has a flag
        size = 1
        for name in names:
            size += 4 + len(name)
            size += self.least(located.below(declared[name], ("properties", name)), depth) if name in declared else 1
        others = max(0, int(self._value(schema, "minProperties", 0)) - len(names))
        if others:
            size += others * (4 + self._name(schema) + self._member(located, schema, declared, names, depth))
        return max(2, size)

    def _name(self, schema: Any) -> int:
        """Return a lower bound of the length of a member's name."""
        rule = self._value(schema, "propertyNames", None)
        if not isinstance(rule, Mapping):
            return 0
        return int(self._value(rule, "minLength", 0))

    def _member(self, located: Located, schema: Any, declared: Any, names: set[str], depth: int) -> int:
        """Return the same as `least` for the value of a member that is not required."""
        rest = self._value(schema, "additionalProperties", None)
        if rest is None:
            return 1
        bounds = []
        if not isinstance(rest, bool):
            bounds.append(self._inner(located, "additionalProperties", depth))
        elif rest:
            return 1
        for name in declared:
            if name not in names:
                bounds.append(self.least(located.below(declared[name], ("properties", name)), depth))
        patterns = self._value(schema, "patternProperties", None)
        if patterns is not None:
            for pattern in patterns:
                bounds.append(self.least(located.below(patterns[pattern], ("patternProperties", pattern)), depth))
        return min(bounds, default=1)


def _length(value: Any) -> int:
    """Return a lower bound of the length of a JSON value."""
    if isinstance(value, str):
        return 2 + len(value)
    if isinstance(value, (list, tuple)):
        return 2 + sum([_length(each) for each in value])
    if isinstance(value, Mapping):
        return 2 + sum([3 + len(name) + _length(inner) for name, inner in value.items()])
    return 1
