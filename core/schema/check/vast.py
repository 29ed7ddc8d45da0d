"""Lower bounds of the lengths of values: some are too long for any model to finish."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from math import inf
from typing import Any

from ...language.least_text import MAX_LEAST_TEXT
from ..keywords.arrays import array_length
from ..keywords.objects import object_length
from ..keywords.strings import string_length
from ..normal.least_texts import least_text
from ..read.keywords import KEYWORDS, Role, Shape
from ..read.located import Located
from ..read.resolve import Document

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
                bound = max(bound, min(map(least_text, values), default=1))
        if "type" not in schema:
            return bound
        types = self.value(schema, "type", "any")
        of_types = [self._of_type(name, located) for name in ((types,) if isinstance(types, str) else types)]
        return max(bound, min(of_types, default=1))

    def _of_type(self, name: str, located: Located) -> int:
        """Return a lower bound of the length of the values of one type."""
        length = _BY_TYPE.get(name)
        return _WORDS.get(name, 1) if length is None else length(self, located)


class MostParts:
    """Upper bounds of the numbers of subschemas that shortest values of a subschema need: as if all of them were
    needed, as often as a count says. References multiply what they lead to.

    Args:
        document: the schema; its subschemas are well-formed.
        failing: the keys of the subschemas that may have to fail: their upper counts are lower ones then.
    """

    def __init__(self, document: Document, failing: Collection[object]) -> None:
        self.document = document
        self._failing = failing
        self._known: dict[object, tuple[float, float]] = {}
        self._depth = 0

    def of(self, located: Located) -> float:
        """Return the bound; 1 inside of itself, and infinity where the nesting is too deep."""
        parts, times = self._of(located)
        return parts * times

    def _of(self, located: Located) -> tuple[float, float]:
        """Return the bound as a product, whose second factor is that of the counts of the value itself."""
        schema = located.schema
        if not isinstance(schema, Mapping):
            return 1, 1
        found = self._known.get(located.key)
        if found is not None:
            return found
        if self._depth == _MAX_DEPTH:
            return inf, 1
        self._known[located.key] = 1, 1
        self._depth += 1
        parts, times = 1.0, 1.0
        for keyword, value in schema.items():
            row = KEYWORDS.get(keyword)
            if row is None or keyword not in KEYWORDS.constraining or not self.document.knows(keyword):
                continue
            if row.shape is Shape.LOWER_COUNT:
                times *= max(1, value)
            elif row.shape is Shape.UPPER_COUNT:
                times *= 1 + min(value, MAX_LEAST_TEXT) if located.key in self._failing else 1
            elif row.role in (Role.REFERENCE, Role.SAME_VALUE):
                for inner in self._in_place(located, keyword, value):
                    more, often = self._of(inner)
                    parts += more
                    times *= often
            elif row.within is not None or row.shape <= Shape.DEPENDENCIES:
                for steps, inner in KEYWORDS.subschemas(keyword, value):
                    parts += self.of(located.below(inner, (keyword, *steps)))
        self._depth -= 1
        self._known[located.key] = parts, times
        return parts, times

    def _in_place(self, located: Located, keyword: str, value: Any) -> Iterator[Located]:
        """Yield the subschemas of a keyword that are about the same value."""
        if KEYWORDS[keyword].role is Role.REFERENCE:
            yield self.document.resolve(located, keyword)
        else:
            for steps, inner in KEYWORDS.subschemas(keyword, value):
                yield located.below(inner, (keyword, *steps))
