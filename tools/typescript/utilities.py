"""Utility types of TypeScript's library: ``Partial``, ``Pick``, ``Exclude``, ``ReturnType``, ..."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from .context import Evaluator
from .model import (
    ANY,
    NEVER,
    NULL,
    SYMBOL,
    UNDEFINED,
    UNKNOWN,
    VOID,
    Array,
    Function,
    Index,
    Literal,
    Object,
    Property,
    Refused,
    Scope,
    Tuple,
    Type,
    key_of,
    text_of,
    union,
    unknown,
)

if TYPE_CHECKING:
    from tree_sitter import Node


#: How many type arguments each takes.
UTILITIES = {
    "Array": 1, "ReadonlyArray": 1, "Record": 2, "Partial": 1, "Required": 1, "Readonly": 1, "Pick": 2, "Omit": 2,
    "Exclude": 2, "Extract": 2, "NonNullable": 1, "ReturnType": 1, "Parameters": 1, "ConstructorParameters": 1,
    "InstanceType": 1, "Awaited": 1, "NoInfer": 1, "Uppercase": 1, "Lowercase": 1, "Capitalize": 1, "Uncapitalize": 1,
}  # fmt: skip
_CASES: dict[str, Callable[[str], str]] = {
    "Uppercase": str.upper,
    "Lowercase": str.lower,
    "Capitalize": lambda text: text[:1].upper() + text[1:],
    "Uncapitalize": lambda text: text[:1].lower() + text[1:],
}


class Utilities:
    """Utility types, applied to their type arguments.

    Args:
        reader: what evaluates the arguments.
    """

    def __init__(self, reader: Evaluator) -> None:
        self.reader = reader

    def apply(self, name: str, given: list[Node], node: Node, scope: Scope) -> Type:
        """Return what ``name<given>`` comes to."""
        count = UTILITIES[name]
        if len(given) != count:
            raise scope.source.wrong(
                node,
                f"{name} takes {count} type arguments, not {len(given)}",
                f"write {name}<{', '.join('KV'[:count])}>",
            )
        reader = self.reader
        types = [reader.type(one, scope) for one in given]
        places = [scope.at(one) for one in given]
        first = types[0]
        if name in ("Array", "ReadonlyArray"):
            return Array(first, places[0], name == "ReadonlyArray")
        if name == "Readonly":
            return self.readonly(first)
        if name == "NoInfer":
            return first
        if name == "Record":
            return self._record(first, types[1], scope, given, node)
        if name == "Pick":
            return reader.objects.pick(first, reader.objects.keys(types[1], places[1]), places[0], places[1])
        if name == "Omit":
            return reader.objects.omit(first, reader.objects.keys(types[1], places[1]), places[0])
        if name == "NonNullable":
            return self.without_null(first)
        if name in ("Exclude", "Extract"):
            kept = [
                member
                for member in reader.distributed(first, places[0])
                if reader.relations.decided(member, types[1], places[1]) == (name == "Extract")
            ]
            return reader.relations.whole(first, kept)
        if name in ("Partial", "Required"):
            return self._optional(first, name == "Partial", scope, given[0])
        if name in _CASES:
            return self._cased(name, first, scope, node)
        if name == "Awaited":
            return self._awaited(first)
        return self._of_function(name, first, scope, given[0])

    def _record(self, keys: Type, value: Type, scope: Scope, given: list[Node], node: Node) -> Type:
        at = scope.at(node)
        properties: list[Property] = []
        indexes: list[Index] = []
        for key in self.reader.objects.keys(keys, scope.at(given[0])):
            if isinstance(key, Literal):
                properties.append(Property(text_of(key) or "", value, key=key_of(key), at=at))
            elif key != SYMBOL:  # JSON has no such names
                indexes.append(Index(key, value, at=at))
        return Object(tuple(properties), tuple(indexes))

    def readonly(self, type_: Type) -> Type:
        """Return the type with its arrays read-only; of objects, that word says nothing here."""
        bare = [self.reader.bare(member) for member in self.reader.members(type_)]
        if not any(isinstance(one, (Array, Tuple)) for one in bare):
            return type_
        return union(replace(one, readonly=True) if isinstance(one, (Array, Tuple)) else one for one in bare)

    def without_null(self, type_: Type) -> Type:
        """Return the type without ``null`` and ``undefined``."""
        bare = self.reader.bare(type_)
        if bare in (UNKNOWN, ANY):
            return bare
        members = self.reader.members(type_)
        kept = [member for member in members if self.reader.bare(member) not in (NULL, UNDEFINED, VOID)]
        return self.reader.relations.whole(type_, kept)

    def _optional(self, type_: Type, partial: bool, scope: Scope, node: Node) -> Type:
        made: list[Type] = []
        for member in self.reader.members(type_, scope.at(node)):
            bare = self.reader.bare(member)
            if isinstance(bare, Array):
                made.append(bare)
                continue
            if isinstance(bare, Tuple):
                elements = tuple(replace(one, optional=partial and not one.rest) for one in bare.elements)
                made.append(replace(bare, elements=elements))
                continue
            shape = self.reader.objects.of(member, scope.at(node))
            properties = [replace(one, optional=partial, definite=not partial) for one in shape.properties]
            made.append(Object(tuple(properties), shape.indexes))
        return union(made)

    def _cased(self, name: str, type_: Type, scope: Scope, node: Node) -> Type:
        made: list[Type] = []
        for member in self.reader.members(type_, scope.at(node)):
            bare = self.reader.bare(member)
            if isinstance(bare, Literal) and bare.kind == "string":
                made.append(Literal.of(_CASES[name](bare.value)))
            else:
                made.append(unknown(f"{name} is evaluated for literals only", "use string", scope.at(node)))
        return union(made)

    def _awaited(self, type_: Type) -> Type:
        made: list[Type] = []
        for member in self.reader.members(type_):
            bare = self.reader.bare(member)
            if isinstance(bare, Refused) and bare.name in ("Promise", "PromiseLike") and len(bare.arguments) == 1:
                made.append(self._awaited(bare.arguments[0]))
            else:
                made.append(member)
        return union(made)

    def _of_function(self, name: str, type_: Type, scope: Scope, node: Node) -> Type:
        made: list[Type] = []
        for member in self.reader.members(type_, scope.at(node)):
            bare = self.reader.bare(member)
            if isinstance(bare, Object) and bare.call is not None:
                bare = bare.call
            if bare == ANY:
                made.append({"Parameters": Array(UNKNOWN), "ConstructorParameters": Array(UNKNOWN)}.get(name, ANY))
                continue
            if not isinstance(bare, Function):
                if isinstance(bare, Refused):
                    made.append(bare)
                    continue
                raise scope.source.refuse(node, f"{name} needs a function", "write the type itself")
            if name in ("Parameters", "ConstructorParameters"):
                made.append(self.reader.values.parameters(bare))
            else:
                made.append(self.reader.values.result(bare))
        return union(made) if made else NEVER
