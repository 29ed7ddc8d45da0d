"""Intersections of TypeScript: ``A & B``."""

from __future__ import annotations

import itertools
from dataclasses import replace

from toolgrammar.core.errors import LimitError

from .context import Evaluator
from .model import (
    ANY,
    NEVER,
    NULL,
    OBJECT,
    UNDEFINED,
    UNKNOWN,
    VOID,
    AllOf,
    Array,
    At,
    Both,
    Documented,
    Function,
    Index,
    Keyword,
    Literal,
    Named,
    Object,
    Property,
    Refused,
    Template,
    Tuple,
    Type,
    documented,
    union,
    unknown,
)

MAX_TYPE_ALTERNATIVES = 256
NO_VALUES = "the intersection has no JSON values"
_SCALARS = ("string", "number", "boolean", "null", "undefined", "void", "symbol")


class Intersections:
    """Intersections of one program's types.

    Args:
        reader: what evaluates these types.
    """

    def __init__(self, reader: Evaluator) -> None:
        self.reader = reader

    def evaluated(self, both: Both) -> Type:
        """Return what an intersection comes to; one of unions, member by member."""
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
        return union(self._joined(list(chosen), both.at) for chosen in itertools.product(*options))

    def _joined(self, types: list[Type], at: At) -> Type:
        """Return the intersection of types that are no unions."""
        types = list(dict.fromkeys(types))
        bare = [self.reader.bare(one, at) for one in types]
        if ANY in bare:
            return ANY
        kept = [(one, head) for one, head in zip(types, bare, strict=True) if head != UNKNOWN]
        if not kept:
            return UNKNOWN
        others = [(one, head) for one, head in kept if head not in (Object(), OBJECT)]
        # `string & {}` keeps an editor from folding a union of literals into string; it means string.
        if others and not all(isinstance(head, Object) for _, head in others):
            if len(others) < len(kept) and any(head in (NULL, UNDEFINED, VOID) for _, head in others):
                return NEVER
            if (OBJECT in bare) and any(_scalar(head) for _, head in others):
                return NEVER
            kept = others
        if len(kept) == 1:
            return kept[0][0]
        heads = [head for _, head in kept]
        if all(isinstance(head, Object) or head == OBJECT for head in heads):
            return self.objects([self.reader.objects.of(one, at) for one, head in kept if head != OBJECT])
        refused = next((head for head in heads if isinstance(head, Refused)), None)
        if refused is not None:
            return unknown(refused.reason, refused.hint, refused.at)
        if all(isinstance(head, (Object, Function)) or head == OBJECT for head in heads):
            calls = [head for head in heads if isinstance(head, Function)]
            return self.objects(
                [
                    Object(call=replace(head, overloaded=len(calls) > 1))
                    if isinstance(head, Function)
                    else self.reader.objects.of(one, at)
                    for one, head in kept
                    if head != OBJECT
                ]
            )
        function = next((head for head in heads if isinstance(head, Function)), None)
        if function is not None:
            where = function.scope.at(function.node)
            return unknown("a function is no JSON value", "leave it out, or give its result's type", where)
        if _disjoint([_lengths(head) for head in heads if isinstance(head, Tuple)]):
            return NEVER
        scalars = [head for head in heads if _scalar(head)]
        if scalars and len(scalars) < len(heads):
            # In TypeScript such a type marks ("brands") a value; JSON has none.
            return unknown(NO_VALUES, "leave out the part that only marks the type", at)
        left = list(kept)
        for one, head in kept:
            for other, other_head in kept:
                if one is not other and (one, head) in left and (other, other_head) in left:
                    if _scalar(head) and _scalar(other_head) and not self.reader.relations.overlap(head, other_head):
                        return NEVER
                    plain = not isinstance(other, (Documented, Named))
                    if plain and self.reader.relations.narrower(head, other_head):
                        left.remove((other, other_head))
        arrays = [isinstance(head, (Array, Tuple)) for _, head in left]
        if any(arrays) and not all(arrays):
            return unknown(NO_VALUES, "leave out one of its parts", at)
        return left[0][0] if len(left) == 1 else AllOf(tuple(one for one, _ in left))

    def objects(self, objects: list[Object]) -> Object:
        """Return the object that is all of these."""
        whole = objects[0]
        for other in objects[1:]:
            properties: dict[str, Property] = {one.name: one for one in whole.properties}
            for theirs in other.properties:
                mine = properties.get(theirs.name)
                properties[theirs.name] = theirs if mine is None else self._both(mine, theirs)
            for name, one in properties.items():
                for shape in (whole, other):
                    extra = None if shape.get(name) else self.reader.objects.indexed(shape, name)
                    if extra is not None and extra != one.type and one.at is not None:
                        properties[name] = replace(one, type=Both((one.type, extra), one.at, indexed=True))
            indexes: dict[Type, Index] = {one.key: one for one in whole.indexes}
            for index in other.indexes:
                mine_index = indexes.get(index.key)
                if mine_index is not None and mine_index.type != index.type and index.at is not None:
                    index = replace(index, type=Both((mine_index.type, index.type), index.at))
                indexes[index.key] = index
            whole = Object(
                tuple(properties.values()),
                tuple(indexes.values()),
                _calls(whole.call, other.call),
                whole.declared or other.declared,
            )
        return whole

    def _both(self, mine: Property, theirs: Property) -> Property:
        optional = mine.optional and theirs.optional
        if mine.type == theirs.type or theirs.at is None:
            first = mine if mine.doc is not None and (mine.doc.constrains or mine.doc.description) else theirs
            return replace(first, optional=optional)
        kinds = (documented(mine.type, mine.doc, mine.at), documented(theirs.type, theirs.doc, theirs.at))
        return replace(
            mine,
            type=Both(kinds, theirs.at),
            optional=optional,
            definite=mine.definite or theirs.definite,
            method=mine.method and theirs.method,
            doc=None,
        )


def _calls(one: Function | None, other: Function | None) -> Function | None:
    if one is None or other is None:
        return one or other
    return replace(other, overloaded=True)


def _lengths(tuple_: Tuple) -> frozenset[int] | None:
    """Return how many items a tuple may have; None for any number above the least."""
    if any(one.rest for one in tuple_.elements):
        return None
    least = max((index + 1 for index, one in enumerate(tuple_.elements) if not one.optional), default=0)
    return frozenset(range(least, len(tuple_.elements) + 1))


def _disjoint(lengths: list[frozenset[int] | None]) -> bool:
    known = [one for one in lengths if one is not None]
    return bool(known) and not frozenset.intersection(*known)


def _scalar(type_: Type) -> bool:
    return isinstance(type_, (Literal, Template)) or (isinstance(type_, Keyword) and type_.name in _SCALARS)
