"""Upper bounds of the numbers of parts that values need: only of many can the length exceed what a model finishes."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from math import inf
from typing import Any, NamedTuple

from ...language.least_text import MAX_LEAST_TEXT
from ..read.keywords import KEYWORDS, Role, Shape
from ..read.located import Located
from ..read.resolve import Document

#: Nesting from which on the bound is infinite. With two items on each level, it exceeds the maximum before that.
_MAX_DEPTH = 64


class _Bound(NamedTuple):
    """A bound as a product. The schemas of one value may each count its items: their ``times`` multiply, and their
    ``parts`` are added."""

    parts: float
    times: float


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
        self._known: dict[object, _Bound] = {}
        self._depth = 0

    def of(self, located: Located) -> float:
        """Return the bound; 1 inside of itself, and infinity where the nesting is too deep."""
        parts, times = self._of(located)
        return parts * times

    def _of(self, located: Located) -> _Bound:
        """Return the bound as a product: the parts of the value, as often as its counts say."""
        schema = located.schema
        if not isinstance(schema, Mapping):
            return _Bound(1, 1)
        found = self._known.get(located.key)
        if found is not None:
            return found
        if self._depth == _MAX_DEPTH:
            return _Bound(inf, 1)
        self._known[located.key] = _Bound(1, 1)  # inside of itself
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
            elif row.shape <= Shape.DEPENDENCIES:
                for steps, inner in KEYWORDS.subschemas(keyword, value):
                    parts += self.of(located.below(inner, (keyword, *steps)))
        self._depth -= 1
        found = self._known[located.key] = _Bound(parts, times)
        return found

    def _in_place(self, located: Located, keyword: str, value: Any) -> Iterator[Located]:
        """Yield the subschemas of a keyword that are about the same value."""
        if KEYWORDS[keyword].role is Role.REFERENCE:
            yield self.document.resolve(located, keyword)
        else:
            for steps, inner in KEYWORDS.subschemas(keyword, value):
                yield located.below(inner, (keyword, *steps))
