"""Operations on TypeScript's types: names followed, unions taken apart, ``A & B``, ``T[K]``, ``keyof``, ``Pick``, ...

Nothing here reads syntax. A type is looked into as far as an operation needs it, so `interface Tree { root: Pick<Tree,
"value"> }` is not a circle, and a type that is not needed costs nothing and is never refused.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import NamedTuple

from toolgrammar.core.errors import LimitError, SchemaError

from . import jsdoc
from . import model as ts

MAX_TYPE_DEPTH = 100
MAX_TYPES = 50_000
MAX_TYPE_ALTERNATIVES = 256
NO_VALUES = "the intersection has no JSON values"
_WRITE_OUT = "write the result out"


class _Member(NamedTuple):
    """A type of an intersection."""

    type: ts.Type
    head: ts.Type  # what it is without names and comments


class TypeAlgebra:
    """Types of one program, and what is known of the names among them."""

    def __init__(self) -> None:
        self._known: dict[ts.Type, ts.Type] = {}  # the results of `step`
        self._open: set[ts.Type] = set()  # the types that are evaluated at the moment
        self._depth = 0  # of nested types
        self._count = 0  # of all types

    def evaluated(self, type_: ts.Named | ts.Deferred) -> ts.Type:
        """Evaluate a name or an expression; by the class that reads syntax."""
        raise NotImplementedError

    # -- following names -----------------------------------------------------------------------------------------

    @contextmanager
    def nested(self, at: ts.At) -> Iterator[None]:
        """Count one type, and one level of nesting.

        Raises:
            LimitError: there are too many of either.
        """
        if self._depth >= MAX_TYPE_DEPTH:
            raise LimitError(
                f"types are nested more than {MAX_TYPE_DEPTH} levels deep",
                hint="give inner types names; a type must not be infinitely recursive",
                place=at.source.place(at.node),
            )
        if self._count >= MAX_TYPES:
            raise LimitError(
                f"more than {MAX_TYPES:,} types come of this text",
                hint="give types interfaces instead of copies of their members",
                place=at.source.place(at.node),
            )
        self._count += 1
        self._depth += 1
        try:
            yield
        finally:
            self._depth -= 1

    def resolve(self, type_: ts.Type, at: ts.At | None = None) -> ts.Type:
        """Follow names and expressions that are not evaluated yet to the type.

        Args:
            type_: any type.
            at: where it is needed, for the error that it is defined by itself.
        """
        seen: set[ts.Type] = set()
        while isinstance(type_, (ts.Named, ts.Deferred, ts.Both)):
            if type_ in seen or type_ in self._open:
                raise _circle(type_, at)
            seen.add(type_)
            type_ = self.step(type_)
        return type_

    def step(self, type_: ts.Named | ts.Deferred | ts.Both) -> ts.Type:
        """Follow a name or an expression by one step."""
        result = self._known.get(type_)
        if result is None:
            self._open.add(type_)
            try:
                result = self._intersection(type_) if isinstance(type_, ts.Both) else self.evaluated(type_)
                self._known[type_] = result
            finally:
                self._open.discard(type_)
        return result

    def bare(self, type_: ts.Type, at: ts.At | None = None) -> ts.Type:
        """Follow names and comments to the type."""
        type_ = self.resolve(type_, at)
        while isinstance(type_, ts.Documented):
            type_ = self.resolve(type_.type, at)
        return type_

    def members(self, type_: ts.Type, at: ts.At | None = None) -> list[ts.Type]:
        """Return the members of a type: those of nested unions, true and false of ``boolean``, none of ``never``.

        A type that is no union is returned as it is, with its name and comment.
        """
        bare = self.bare(type_, at)
        if isinstance(bare, ts.Union):
            return [inner for member in bare.members for inner in self.members(member, at)]
        if bare == ts.BOOLEAN:
            return [ts.Literal.of(True), ts.Literal.of(False)]
        return [] if bare == ts.NEVER else [type_]

    def may_be_undefined(self, type_: ts.Type) -> bool:
        """Return True if a value may be ``undefined``, which JSON has no word for."""
        bare = self.bare(type_)
        if isinstance(bare, ts.Union):
            return any(self.may_be_undefined(member) for member in bare.members)
        return bare in (ts.UNDEFINED, ts.VOID)

    def plain(self, type_: ts.Type, at: ts.At) -> ts.Type:
        """Return a type without its names and comments.

        Raises:
            UnsupportedSchemaError: a comment constrains it, which would be lost; or it has no JSON values.
        """
        type_ = self.resolve(type_, at)
        while isinstance(type_, ts.Documented):
            doc = type_.doc
            if doc.schema or doc.integer or any(jsdoc.CONSTRAINTS.get(name) for name in doc.keywords):
                raise at.source.refuse(at.node, "the tags of the comment on this type would be lost", _WRITE_OUT)
            type_ = self.resolve(type_.type, at)
        if isinstance(type_, ts.Refused):
            raise type_.at.source.refuse(type_.at.node, type_.reason, type_.hint)
        return type_

    # -- objects -------------------------------------------------------------------------------------------------

    def object(self, type_: ts.Type, at: ts.At) -> ts.Object:
        """Return the one object that a type is.

        Raises:
            UnsupportedSchemaError: it is none, or several.
        """
        members = self.members(type_, at)
        if len(members) != 1:
            raise at.source.refuse(at.node, "this is not evaluated for a union", _WRITE_OUT)
        bare = self.plain(members[0], at)
        if bare == ts.OBJECT:
            return ts.Object()
        if not isinstance(bare, ts.Object):
            raise at.source.refuse(
                at.node, "this needs an object of known properties", "use an interface, or write the result out"
            )
        return bare

    def keyof(self, type_: ts.Type, at: ts.At) -> ts.Type:
        """Return the names of an object's properties as a type."""
        bare = self.bare(type_, at)
        if bare == ts.ANY:
            return ts.STRING
        shape = self.object(bare, at)
        if any(one.name.lstrip("-").isdecimal() for one in shape.properties):
            raise at.source.refuse(at.node, "keyof is not evaluated where a property's name is a number", _WRITE_OUT)
        return ts.STRING if shape.index else ts.union(ts.Literal.of(one.name) for one in shape.properties)

    def lookup(self, type_: ts.Type, key: ts.Type, at: ts.At, index: ts.At) -> ts.Type:
        """Return the type of ``T[K]``; of a union, that of each member."""
        owners = [self.bare(member, at) for member in self.members(type_, at)]
        names = [self.bare(name, index) for name in self.members(key, index)]
        return ts.union([self._entry(owner, name, at, index) for owner in owners for name in names])

    def _entry(self, owner: ts.Type, key: ts.Type, at: ts.At, index: ts.At) -> ts.Type:
        """Return ``T[K]``: the type of an item or of a property.

        Args:
            owner: T.
            key: K, without unions.
            at: the place of T.
            index: the place of K.

        Raises:
            UnsupportedSchemaError: there is none.
        """
        if owner == ts.ANY or isinstance(owner, ts.Refused):
            return owner
        if isinstance(key, ts.Refused):
            return key
        if isinstance(owner, (ts.Array, ts.Tuple)):
            if key != ts.NUMBER:
                raise index.source.refuse(index.node, "of arrays only T[number] is evaluated", "write the item's type")
            return owner.item if isinstance(owner, ts.Array) else ts.union(one.type for one in owner.elements)
        name = _name(key)
        found = None if name is None else self.object(owner, at).get(name)
        if found is None:
            raise index.source.wrong(index.node, "there is no such property", "name one that is declared")
        type_ = found.type
        while isinstance(type_, ts.Deferred) and type_ not in self._open:  # so that equal types are found to be equal
            type_ = self.step(type_)
        type_ = ts.documented(type_, found.doc, found.at)
        return ts.union([type_, ts.UNDEFINED]) if found.optional else type_

    def record(self, keys: ts.Type, value: ts.Type, at: ts.At, where: ts.At) -> ts.Object:
        """Return ``Record<K, T>``: literal keys are properties, others an index signature; ``where``: the place of the
        keys."""
        plain = [self.plain(key, where) for key in self.members(keys, where)]
        names = [name for key in plain if (name := _name(key)) is not None]
        properties = tuple(ts.Property(name, value, at=at) for name in names)
        return ts.Object(properties, index([key for key in plain if _name(key) is None], value, None, where))

    def pick(self, type_: ts.Type, keys: ts.Type, at: ts.At, where: ts.At) -> ts.Object:
        """Return ``Pick<T, K>``; ``where``: the place of the keys."""
        shape, names = self.object(type_, at), self._names(keys, where)
        for name in names:
            if shape.get(name) is None:
                raise where.source.wrong(where.node, f"there is no property {name!r} to pick", "check its name")
        return ts.Object(tuple(one for one in shape.properties if one.name in names))

    def omit(self, type_: ts.Type, keys: ts.Type, at: ts.At, where: ts.At) -> ts.Object:
        """Return ``Omit<T, K>``; ``where``: the place of the keys."""
        shape, names = self.object(type_, at), self._names(keys, where)
        return ts.Object(tuple(one for one in shape.properties if one.name not in names), shape.index)

    def _names(self, keys: ts.Type, at: ts.At) -> list[str]:
        """Return the names of properties that a type of keys means."""
        names = [_name(self.plain(key, at)) for key in self.members(keys, at)]
        if None in names:
            raise at.source.refuse(at.node, "names of properties are literals here", _WRITE_OUT)
        return [name for name in names if name is not None]

    def partial(self, type_: ts.Type, at: ts.At, *, optional: bool) -> ts.Type:
        """Return ``Partial<T>``, or ``Required<T>``; of a union, that of each member."""
        shapes = [self.object(member, at) for member in self.members(type_, at)]
        return ts.union(
            ts.Object(
                tuple(replace(one, optional=optional, definite=not optional) for one in shape.properties),
                shape.index,
            )
            for shape in shapes
        )

    # -- intersections -------------------------------------------------------------------------------------------

    def _intersection(self, both: ts.Both) -> ts.Type:
        """Evaluate an intersection; one of unions, member by member: ``(A | B) & C`` is ``A & C | B & C``."""
        with self.nested(both.at):
            options = [self.members(member, both.at) for member in both.members]
            if math.prod(map(len, options)) > MAX_TYPE_ALTERNATIVES:
                raise LimitError(
                    f"the intersection has more than {MAX_TYPE_ALTERNATIVES} alternatives",
                    hint="intersect smaller unions",
                    place=both.at.source.place(both.at.node),
                )
            return ts.union(self._joined(list(chosen), both.at) for chosen in itertools.product(*options))

    def _joined(self, types: list[ts.Type], at: ts.At) -> ts.Type:
        """Return the intersection of types that are not unions."""
        members = [_Member(each, self.bare(each, at)) for each in dict.fromkeys(types)]
        if any(member.head == ts.ANY for member in members):
            return ts.ANY
        members = [member for member in members if member.head != ts.UNKNOWN]
        empty_objects = [member.head for member in members if member.head in (ts.OBJECT, ts.Object())]
        if empty_objects and not all(_is_object(member.head) for member in members):
            # `string & {}` keeps an editor from folding a union of literals into string; it means string.
            members = [member for member in members if member.head not in empty_objects]
            nothings = (ts.NULL, ts.UNDEFINED, ts.VOID)
            if any(each.head in nothings or (ts.OBJECT in empty_objects and _is_scalar(each.head)) for each in members):
                return ts.NEVER
        if len(members) < 2:
            return members[0].type if members else ts.UNKNOWN
        heads = [member.head for member in members]
        for head in heads:
            if isinstance(head, ts.Refused):
                return ts.unknown(head.reason, head.hint, head.at)
            if isinstance(head, ts.Function):
                where = head.scope.at(head.node)
                return ts.unknown("a function is not a JSON value", "leave it out, or give its result's type", where)
        if all(map(_is_object, heads)):
            return self.both_objects([self.object(member.type, at) for member in members])
        if not all(map(_is_scalar, heads)) and not all(isinstance(head, (ts.Array, ts.Tuple)) for head in heads):
            # In TypeScript such a type marks ("brands") a value; JSON has none.
            return ts.unknown(NO_VALUES, "leave out the part that only marks the type", at)
        return self._common_part(members, at)

    def _common_part(self, members: list[_Member], at: ts.At) -> ts.Type:
        """Return the intersection of scalars, or of arrays: of a type and a part of it (``string``, ``"a"``) the part,
        of different scalars ``never``. Otherwise, and where the tags of a comment on the whole would be lost, a
        `ts.unknown` with the reason."""
        left = list(members)
        for part, whole in itertools.permutations(members, 2):
            if part in left and whole in left:
                is_part = _is_part(part.head, whole.head)
                if _is_scalar(part.head) and not (is_part or _is_part(whole.head, part.head)):
                    return ts.NEVER
                if is_part and not self._is_constrained(whole.type):
                    left.remove(whole)
        if len(left) > 1:
            return ts.unknown("this intersection is not evaluated here", _WRITE_OUT, at)
        return left[0].type

    def _is_constrained(self, type_: ts.Type) -> bool:
        """Return True if a comment constrains the values of a type."""
        while isinstance(type_, (ts.Documented, ts.Named, ts.Deferred, ts.Both)):
            if isinstance(type_, ts.Documented) and type_.doc.constrains:
                return True
            type_ = type_.type if isinstance(type_, ts.Documented) else self.step(type_)
        return False

    def both_objects(self, objects: list[ts.Object]) -> ts.Object:
        """Return the intersection of objects: their properties, and their index signatures for all names."""
        whole = objects[0]
        for other in objects[1:]:
            properties: dict[str, ts.Property] = {one.name: one for one in whole.properties}
            for theirs in other.properties:
                mine = properties.get(theirs.name)
                properties[theirs.name] = theirs if mine is None else _both(mine, theirs)
            # A property of one object also has the type that an index signature of the other gives to its name.
            for name, one in properties.items():
                for shape in (whole, other):
                    indexed = None if shape.get(name) else shape.index
                    if indexed is not None and indexed.type != one.type and one.at is not None:
                        properties[name] = replace(one, type=ts.Both((one.type, indexed.type), one.at))
            # Two index signatures become one, of both types.
            index, known = other.index or whole.index, whole.index
            if index is not None and known is not None and known.type != index.type and index.at is not None:
                index = replace(index, type=ts.Both((known.type, index.type), index.at))
            whole = ts.Object(tuple(properties.values()), index, whole.call or other.call)
        return whole


def index(keys: Sequence[ts.Type], value: ts.Type, doc: jsdoc.Doc | None, at: ts.At) -> ts.Index | None:
    """Return the index signature ``[key: K]: T``; None if the keys are symbols alone, which JSON does not have.

    Args:
        keys: the members of K.
        value: T.
        doc: the comment on it.
        at: its place.

    Raises:
        UnsupportedSchemaError: K has not all strings.
    """
    kinds = {key for key in keys if key != ts.SYMBOL}
    if not kinds:
        return None
    if kinds.isdisjoint({ts.STRING, ts.ANY}):
        raise at.source.refuse(
            at.node, "a key is a string", 'use string, or the tag @schema {"patternProperties": {...}}'
        )
    return ts.Index(value, doc, at)


def override(base: ts.Object, own: ts.Object) -> ts.Object:
    """Return the object ``interface own extends base``: a property declared again replaces the inherited one."""
    properties = {one.name: one for one in base.properties} | {one.name: one for one in own.properties}
    return ts.Object(tuple(properties.values()), own.index or base.index, own.call or base.call)


def _both(mine: ts.Property, theirs: ts.Property) -> ts.Property:
    """Return a property that two objects of an intersection have: it is of both types."""
    optional = mine.optional and theirs.optional
    if mine.type == theirs.type or theirs.at is None:  # (every property that a text declares has a place)
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


def _name(key: ts.Type) -> str | None:
    """Return the name of a property that a literal means; None for another type."""
    if not isinstance(key, ts.Literal) or key.kind == "boolean" or isinstance(key.value, float):
        return None
    return str(key.value)


def _is_object(type_: ts.Type) -> bool:
    return type_ == ts.OBJECT or isinstance(type_, ts.Object)


def _is_scalar(type_: ts.Type) -> bool:
    return isinstance(type_, ts.Literal) or (isinstance(type_, ts.Keyword) and type_ != ts.OBJECT)


def _is_part(first: ts.Type, second: ts.Type) -> bool:
    """Return True if the first type is surely a part of the second, or is the second; neither is a union."""
    if first == second or (first == ts.UNDEFINED and second == ts.VOID):
        return True
    if isinstance(first, ts.Literal):
        if isinstance(second, ts.Literal):  # a member of an enum is a plain value, too
            return second.enum is None and (first.kind, first.value) == (second.kind, second.value)
        return second == ts.Keyword(first.kind)
    return False


def _circle(type_: ts.Type, at: ts.At | None) -> SchemaError:
    """Return the error for a type that is defined by itself, at the place that needs it, else at its own."""
    name = repr(type_.declaration.name) if isinstance(type_, ts.Named) else "here"
    if at is None and isinstance(type_, ts.Named):
        at = ts.At(type_.declaration.space.source, type_.declaration.node)
    elif at is None:
        at = type_.at if isinstance(type_, ts.Both) else type_.scope.at(type_.node)  # type: ignore[union-attr]
    return at.source.wrong(at.node, f"the type {name} is defined by itself", "break the circle")
