"""Protocols between the parts of the type evaluator.

`types.TypeReader` evaluates types, with one helper for each concern: objects, intersections, relations, values
and utility types. Each helper needs the evaluator and some of the others. It sees them through `Evaluator`, so
that no module imports the one that puts them together.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Protocol

from . import jsdoc
from .model import At, Deferred, Literal, Object, Refused, Scope, Type
from .modules import Declaration, Missing, Program
from .source import Source

if TYPE_CHECKING:
    from tree_sitter import Node


class ObjectRules(Protocol):
    """Object types, as the other parts use them; see `objects.ObjectTypes`."""

    def of(self, type_: Type, at: At) -> Object:
        """Return the one object that a type is."""
        ...

    def lookup(self, type_: Type, key: Type, at: At, index: At) -> Type:
        """Return the type of ``T[K]``."""
        ...

    def value(self, shape: Object, name: str) -> Type | None:
        """Return the type of the property of a name, also by an index signature; None if there is none."""
        ...

    def indexed(self, shape: Object, name: str) -> Type | None:
        """Return the type that an index signature gives to the property of a name."""
        ...

    def keys(self, type_: Type, at: At) -> list[Type]:
        """Return the members of a type of keys."""
        ...

    def pick(self, type_: Type, keys: list[Type], at: At, where: At) -> Object:
        """Return the object with only these properties."""
        ...

    def omit(self, type_: Type, keys: list[Type], at: At) -> Object:
        """Return the object without these properties."""
        ...


class RelationRules(Protocol):
    """Relations between types, as the other parts use them; see `relations.Relations`."""

    def belongs(self, member: Type, union: Type, at: At) -> bool:
        """Return True if a member of a union is among the members of another one; refuse what cannot be decided."""
        ...

    def overlap(self, first: Type, second: Type) -> bool:
        """Return True if two types that are neither objects nor unions may have a value in common."""
        ...

    def narrower(self, first: Type, second: Type) -> bool:
        """Return True if the first type is a part of the second."""
        ...

    def without_null(self, type_: Type) -> Type:
        """Return the type without ``null`` and ``undefined``."""
        ...

    def whole(self, type_: Type, kept: list[Type]) -> Type:
        """Return the kept members of a union; the union itself if all are."""
        ...


class ValueRules(Protocol):
    """Values and functions, as the other parts use them; see `values.ConstantValues`."""

    def property_name(self, node: Node, scope: Scope) -> tuple[str, Literal | None]:
        """Return the name of a property, and its `Property.key`."""
        ...

    def enum_values(self, declaration: Declaration) -> dict[str, Any]:
        """Return the values of an enum by the names of its members."""
        ...

    def widened(self, node: Node, scope: Scope) -> Type:
        """Return the type of a variable that is declared with this value."""
        ...


class Evaluator(Protocol):
    """The evaluator and its parts, as a part sees them; see `types.TypeReader` for the meaning of each method."""

    program: Program
    read: set[Declaration]

    @property
    def objects(self) -> ObjectRules:
        """Object types."""
        ...

    @property
    def relations(self) -> RelationRules:
        """Relations between types."""
        ...

    @property
    def values(self) -> ValueRules:
        """Values, enums and functions."""
        ...

    def type(self, node: Node, scope: Scope) -> Type:
        """Evaluate a type expression."""
        ...

    def later(self, node: Node, scope: Scope) -> Deferred:
        """Return a type expression to be evaluated when it is needed."""
        ...

    def doc(self, node: Node, source: Source) -> jsdoc.Doc:
        """Return the comment before a node, parsed."""
        ...

    def nested(self, at: At) -> AbstractContextManager[None]:
        """Count one level of nesting."""
        ...

    def resolve(self, type_: Type, at: At | None = None) -> Type:
        """Follow names and expressions that are not evaluated yet to the type."""
        ...

    def bare(self, type_: Type, at: At | None = None) -> Type:
        """Follow names and comments to the type."""
        ...

    def settled(self, type_: Type) -> Type:
        """Return a property's type evaluated as far as the next name."""
        ...

    def members(self, type_: Type, at: At | None = None) -> list[Type]:
        """Return the members of a union."""
        ...

    def distributed(self, type_: Type, at: At | None = None) -> list[Type]:
        """Return the members of a union without the literals beside ``string`` or ``number``."""
        ...

    def impossible(self, type_: Object) -> bool:
        """Return True if an intersection has contradicting values for a property."""
        ...

    def undefined(self, type_: Type) -> bool:
        """Return True if a value may be ``undefined``."""
        ...

    def named(self, declaration: Declaration, arguments: tuple[Type, ...], at: At) -> Type:
        """Return a declared type, its type arguments completed by their defaults."""
        ...

    def reference(self, name: str, arguments: tuple[Type, ...], at: At, scope: Scope) -> Type:
        """Return the type of a name with type arguments."""
        ...

    def missing(self, found: Missing, name: str, at: At) -> Refused:
        """Return the type of a name that is declared nowhere."""
        ...
