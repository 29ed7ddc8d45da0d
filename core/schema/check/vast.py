"""Lower bounds of the lengths of values: some are too long for any model to finish."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..keywords.arrays import array_length
from ..keywords.objects import object_length
from ..keywords.strings import string_length
from ..read.keywords import KEYWORDS, Shape
from ..read.located import Located
from ..read.resolve import Document

#: Maximum number of bytes of the shortest text of a value, as far as the lower bound here shows it. Shortest
#: completions may be longer (`automaton.lazy_dfa.MAX_TEXT`), as the text of a value can be a string inside another
#: text.
MAX_LEAST_TEXT = 4_000_000

#: Nesting from which on a part counts as one byte. With two items on each level, the bound exceeds the maximum before
#: that.
_MAX_DEPTH = 64


#: Lower bounds of the lengths of values, by their type.
_BY_TYPE = {"object": object_length, "array": array_length, "string": string_length}
_WORDS = {"null": 4, "boolean": 4}

#: Rows of the keywords that list schemas of the same value; and of the keywords that list values.
_JOINED = tuple(row for row in KEYWORDS.values() if row.join is not None)
_LISTING = tuple(KEYWORDS[name] for name in KEYWORDS.data if name in KEYWORDS.constraining)


class LeastSizes:
    """Lower bounds of the shortest texts of subschemas, from the keywords that ask for characters, items and members.

    Args:
        document: the schema; its subschemas are well-formed.
    """

    def __init__(self, document: Document) -> None:
        self.document = document
        self._known: dict[object, int] = {}
        self._depth = 0

    def least(self, located: Located) -> int:
        """Return a number of bytes that each text of a subschema has at least; 1 also for one that has no text."""
        schema = located.schema
        if self._depth == _MAX_DEPTH or not (type(schema) is dict or isinstance(schema, Mapping)):
            return 1
        key = located.key
        found = self._known.get(key)
        if found is None:
            self._known[key] = 1  # inside of itself
            self._depth += 1
            found = self._known[key] = self._of(located, schema)
            self._depth -= 1
        return found

    def value(self, schema: Mapping[str, Any], keyword: str, otherwise: Any) -> Any:
        """Return the value of a keyword; ``otherwise`` if the schema lacks it, or the dialect does."""
        return schema[keyword] if keyword in schema and self.document.knows(keyword) else otherwise

    def _of(self, located: Located, schema: Mapping[str, Any]) -> int:
        """Return a lower bound of the length of a schema's values, by its references, needed parts, listed values and
        types."""
        bound = 1
        if "$ref" in schema:
            bound = max(bound, self.least(self.document.resolve(located)))
            if self.document.ref_hides_siblings:
                return bound
        for row in _JOINED:
            if row.name in schema and row.needed is not None:
                for group in row.needed(schema, self.document):
                    bound = max(bound, min([self.least(located.child(row.name, *steps)) for steps in group]))
        for row in _LISTING:
            if row.name in schema and self.document.knows(row.name):
                values = schema[row.name] if row.shape is Shape.VALUES else (schema[row.name],)
                bound = max(bound, min(map(_length, values), default=1))
        if "type" not in schema:
            return bound
        types = self.value(schema, "type", "any")
        of_types = [self._of_type(name, located) for name in ((types,) if isinstance(types, str) else types)]
        return max(bound, min(of_types, default=1))

    def _of_type(self, name: str, located: Located) -> int:
        """Return a lower bound of the length of the values of one type."""
        length = _BY_TYPE.get(name)
        return _WORDS.get(name, 1) if length is None else length(self, located)


def _length(value: Any) -> int:
    """Return a lower bound of the length of a JSON value."""
    if isinstance(value, str):
        return 2 + len(value)
    if isinstance(value, (list, tuple)):
        return 2 + sum([_length(each) for each in value])
    if isinstance(value, Mapping):
        return 2 + sum([3 + len(name) + _length(inner) for name, inner in value.items()])
    return 1
