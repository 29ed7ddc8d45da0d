"""Utility types of TypeScript's library: ``Partial``, ``Pick``, ``Exclude``, ..."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from . import model as ts
from .context import Evaluator

if TYPE_CHECKING:
    from tree_sitter import Node


#: Number of type arguments of each.
UTILITIES = {
    "Array": 1, "ReadonlyArray": 1, "Record": 2, "Partial": 1, "Required": 1, "Readonly": 1, "Pick": 2, "Omit": 2,
    "Exclude": 2, "Extract": 2, "NonNullable": 1,
}  # fmt: skip


class Utilities:
    """Utility types, applied to their type arguments.

    Args:
        reader: evaluator of the arguments.
    """

    def __init__(self, reader: Evaluator) -> None:
        self.reader = reader

    def apply(self, name: str, given: list[Node], node: Node, scope: ts.Scope) -> ts.Type:
        """Evaluate ``name<given>``."""
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
            return ts.Array(first, places[0], name == "ReadonlyArray")
        if name == "Readonly":
            return self.readonly(first)
        if name == "Record":
            return self._record(first, types[1], scope, given, node)
        if name == "Pick":
            return reader.objects.pick(first, reader.objects.keys(types[1], places[1]), places[0], places[1])
        if name == "Omit":
            return reader.objects.omit(first, reader.objects.keys(types[1], places[1]), places[0])
        if name == "NonNullable":
            return reader.relations.without_null(first)
        if name in ("Exclude", "Extract"):
            kept = [
                member
                for member in reader.distributed(first, places[0])
                if reader.relations.belongs(member, types[1], places[1]) == (name == "Extract")
            ]
            return reader.relations.whole(first, kept)
        return self._optional(first, name == "Partial", scope, given[0])

    def _record(self, keys: ts.Type, value: ts.Type, scope: ts.Scope, given: list[Node], node: Node) -> ts.Type:
        at = scope.at(node)
        properties: list[ts.Property] = []
        indexes: list[ts.Index] = []
        for key in self.reader.objects.keys(keys, scope.at(given[0])):
            if isinstance(key, ts.Literal):
                properties.append(ts.Property(ts.text_of(key) or "", value, key=ts.key_of(key), at=at))
            elif key != ts.SYMBOL:  # JSON has no such names
                indexes.append(ts.Index(key, value, at=at))
        return ts.Object(tuple(properties), tuple(indexes))

    def readonly(self, type_: ts.Type) -> ts.Type:
        """Return the type with its arrays read-only; ``readonly`` has no effect on objects here."""
        bare = [self.reader.bare(member) for member in self.reader.members(type_)]
        if not any(isinstance(one, (ts.Array, ts.Tuple)) for one in bare):
            return type_
        return ts.union(replace(one, readonly=True) if isinstance(one, (ts.Array, ts.Tuple)) else one for one in bare)

    def _optional(self, type_: ts.Type, partial: bool, scope: ts.Scope, node: Node) -> ts.Type:
        made: list[ts.Type] = []
        for member in self.reader.members(type_, scope.at(node)):
            bare = self.reader.bare(member)
            if isinstance(bare, ts.Array):
                made.append(bare)
                continue
            if isinstance(bare, ts.Tuple):
                elements = tuple(replace(one, optional=partial and not one.rest) for one in bare.elements)
                made.append(replace(bare, elements=elements))
                continue
            shape = self.reader.objects.of(member, scope.at(node))
            properties = [replace(one, optional=partial, definite=not partial) for one in shape.properties]
            made.append(ts.Object(tuple(properties), shape.indexes))
        return ts.union(made)
