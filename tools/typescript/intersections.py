"""Intersections of TypeScript: ``A & B``."""

from __future__ import annotations

import itertools
from dataclasses import replace

from toolgrammar.core.errors import LimitError

from . import model as ts
from .context import Evaluator

MAX_TYPE_ALTERNATIVES = 256
NO_VALUES = "the intersection has no JSON values"
_SCALARS = ("string", "number", "boolean", "null", "undefined", "void", "symbol")


class Intersections:
    """Intersections of one program's types.

    Args:
        reader: their evaluator.
    """

    def __init__(self, reader: Evaluator) -> None:
        self.reader = reader

    def evaluated(self, both: ts.Both) -> ts.Type:
        """Evaluate an intersection; one of unions, member by member."""
        options = [self.reader.members(member, both.at) for member in both.members]
        count = 1
        for option in options:
            count *= len(option)
        if count > MAX_TYPE_ALTERNATIVES:
            raise LimitError(
                f"the intersection has more than {MAX_TYPE_ALTERNATIVES} alternatives",
                hint="intersect smaller unions",
                place=both.at.source.place(both.at.node),
            )
        return ts.union(self._joined(list(chosen), both.at) for chosen in itertools.product(*options))

    def _joined(self, types: list[ts.Type], at: ts.At) -> ts.Type:
        """Return the intersection of types that are not unions."""
        types = list(dict.fromkeys(types))
        bare = [self.reader.bare(one, at) for one in types]
        if ts.ANY in bare:
            return ts.ANY
        kept = [(one, head) for one, head in zip(types, bare, strict=True) if head != ts.UNKNOWN]
        if not kept:
            return ts.UNKNOWN
        others = [(one, head) for one, head in kept if head not in (ts.Object(), ts.OBJECT)]
        # `string & {}` keeps an editor from folding a union of literals into string; it means string.
        if others and not all(isinstance(head, ts.Object) for _, head in others):
            if len(others) < len(kept) and any(head in (ts.NULL, ts.UNDEFINED, ts.VOID) for _, head in others):
                return ts.NEVER
            if (ts.OBJECT in bare) and any(_scalar(head) for _, head in others):
                return ts.NEVER
            kept = others
        if len(kept) == 1:
            return kept[0][0]
        heads = [head for _, head in kept]
        if all(isinstance(head, ts.Object) or head == ts.OBJECT for head in heads):
            return self.objects([self.reader.objects.of(one, at) for one, head in kept if head != ts.OBJECT])
        refused = next((head for head in heads if isinstance(head, ts.Refused)), None)
        if refused is not None:
            return ts.unknown(refused.reason, refused.hint, refused.at)
        if all(isinstance(head, (ts.Object, ts.Function)) or head == ts.OBJECT for head in heads):
            calls = [head for head in heads if isinstance(head, ts.Function)]
            return self.objects(
                [
                    ts.Object(call=replace(head, overloaded=len(calls) > 1))
                    if isinstance(head, ts.Function)
                    else self.reader.objects.of(one, at)
                    for one, head in kept
                    if head != ts.OBJECT
                ]
            )
        function = next((head for head in heads if isinstance(head, ts.Function)), None)
        if function is not None:
            where = function.scope.at(function.node)
            return ts.unknown("a function is not a JSON value", "leave it out, or give its result's type", where)
        if _disjoint([_lengths(head) for head in heads if isinstance(head, ts.Tuple)]):
            return ts.NEVER
        scalars = [head for head in heads if _scalar(head)]
        if scalars and len(scalars) < len(heads):
            # In TypeScript such a type marks ("brands") a value; JSON has none.
            return ts.unknown(NO_VALUES, "leave out the part that only marks the type", at)
        left = list(kept)
        for one, head in kept:
            for other, other_head in kept:
                if one is not other and (one, head) in left and (other, other_head) in left:
                    if _scalar(head) and _scalar(other_head) and not self.reader.relations.overlap(head, other_head):
                        return ts.NEVER
                    plain = not isinstance(other, (ts.Documented, ts.Named))
                    if plain and self.reader.relations.narrower(head, other_head):
                        left.remove((other, other_head))
        arrays = [isinstance(head, (ts.Array, ts.Tuple)) for _, head in left]
        if any(arrays) and not all(arrays):
            return ts.unknown(NO_VALUES, "leave out one of its parts", at)
        return left[0][0] if len(left) == 1 else ts.AllOf(tuple(one for one, _ in left))

    def objects(self, objects: list[ts.Object]) -> ts.Object:
        """Return the object that is all of these."""
        whole = objects[0]
        for other in objects[1:]:
            properties: dict[str, ts.Property] = {one.name: one for one in whole.properties}
            for theirs in other.properties:
                mine = properties.get(theirs.name)
                properties[theirs.name] = theirs if mine is None else self._both(mine, theirs)
            for name, one in properties.items():
                for shape in (whole, other):
                    extra = None if shape.get(name) else self.reader.objects.indexed(shape, name)
                    if extra is not None and extra != one.type and one.at is not None:
                        properties[name] = replace(one, type=ts.Both((one.type, extra), one.at, indexed=True))
            indexes: dict[ts.Type, ts.Index] = {one.key: one for one in whole.indexes}
            for index in other.indexes:
                mine_index = indexes.get(index.key)
                if mine_index is not None and mine_index.type != index.type and index.at is not None:
                    index = replace(index, type=ts.Both((mine_index.type, index.type), index.at))
                indexes[index.key] = index
            whole = ts.Object(
                tuple(properties.values()),
                tuple(indexes.values()),
                _calls(whole.call, other.call),
                whole.declared or other.declared,
            )
        return whole

    def _both(self, mine: ts.Property, theirs: ts.Property) -> ts.Property:
        optional = mine.optional and theirs.optional
        if mine.type == theirs.type or theirs.at is None:
            first = mine if mine.doc is not None and (mine.doc.constrains or mine.doc.description) else theirs
            return replace(first, optional=optional)
        kinds = (ts.documented(mine.type, mine.doc, mine.at), ts.documented(theirs.type, theirs.doc, theirs.at))
        return replace(
            mine,
            type=ts.Both(kinds, theirs.at),
            optional=optional,
            definite=mine.definite or theirs.definite,
            method=mine.method and theirs.method,
            doc=None,
        )


def _calls(one: ts.Function | None, other: ts.Function | None) -> ts.Function | None:
    if one is None or other is None:
        return one or other
    return replace(other, overloaded=True)


def _lengths(tuple_: ts.Tuple) -> frozenset[int] | None:
    """Return how many items a tuple may have; None for any number above the least."""
    if any(one.rest for one in tuple_.elements):
        return None
    least = max((index + 1 for index, one in enumerate(tuple_.elements) if not one.optional), default=0)
    return frozenset(range(least, len(tuple_.elements) + 1))


def _disjoint(lengths: list[frozenset[int] | None]) -> bool:
    finite = [one for one in lengths if one is not None]
    return bool(finite) and not frozenset.intersection(*finite)


def _scalar(type_: ts.Type) -> bool:
    return isinstance(type_, (ts.Literal, ts.Template)) or (isinstance(type_, ts.Keyword) and type_.name in _SCALARS)
