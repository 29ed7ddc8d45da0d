"""Types of TypeScript as values: the results of evaluation, before they are written as JSON Schema.

A type that is only named, or not evaluated yet, is a value too (`Named`, `Deferred`, `Both`); so recursive types are
finite, and a type that is not needed is never evaluated. Places and comments do not count in comparisons.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

from .jsdoc import Doc

if TYPE_CHECKING:
    from tree_sitter import Node

    from .modules import Declaration, Space
    from .source import Source

_T = TypeVar("_T")


@dataclass(frozen=True)
class At:
    """A place in a text: where to point an error."""

    source: Source
    node: Node


def _hashed_once(class_: type[_T]) -> type[_T]:
    """Keep the hash of each instance: types share their parts, so `T` in `[T, T]` would be hashed twice."""
    fresh = class_.__hash__

    def kept(self: Any) -> int:
        fields = self.__dict__
        if "_hash" not in fields:
            fields["_hash"] = fresh(self)
        return int(fields["_hash"])

    class_.__hash__ = kept  # type: ignore[method-assign]
    return class_


class Scope:
    """Scope of a type expression: the declarations around it, and the type parameters.

    Args:
        space: the namespace or file.
        types: the type parameters.
    """

    def __init__(self, space: Space, types: Mapping[str, Type] | None = None) -> None:
        self.space = space
        self.types: dict[str, Type] = dict(types or {})
        self._items = tuple(self.types.items())
        self._hash = hash((id(space), self._items))

    @property
    def source(self) -> Source:
        """The text."""
        return self.space.source

    def at(self, node: Node) -> At:
        """Return the place of a node of this text."""
        return At(self.space.source, node)

    def with_types(self, types: Mapping[str, Type]) -> Scope:
        """Return the scope with more type parameters."""
        return Scope(self.space, {**self.types, **types})

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Scope) and self.space is other.space and self._items == other._items


@dataclass(frozen=True)
class Keyword:
    """``any``, ``unknown``, ``never``, ``string``, ``number``, ``boolean``, ``object``, ``null``, ``undefined``,
    ``void``, ``symbol``."""

    name: str


@dataclass(frozen=True)
class Literal:
    """One string, number or boolean.

    Attributes:
        kind: its keyword.
        value: the value.
        enum: the enum whose member it is: to TypeScript, another type than the plain value.
    """

    kind: str
    value: Any
    enum: Declaration | None = None

    @classmethod
    def of(cls, value: str | float | bool, enum: Declaration | None = None) -> Literal:
        """Return the type of this value alone."""
        kind = "boolean" if isinstance(value, bool) else "string" if isinstance(value, str) else "number"
        return cls(kind, value, enum)


@_hashed_once
@dataclass(frozen=True)
class Array:
    """An array of any length."""

    item: Type
    at: At | None = field(default=None, compare=False)


@_hashed_once
@dataclass(frozen=True)
class Element:
    """One place of a tuple; ``label`` is its name, if it has one."""

    type: Type
    label: str | None = None
    doc: Doc | None = field(default=None, compare=False)
    at: At | None = field(default=None, compare=False)


@_hashed_once
@dataclass(frozen=True)
class Tuple:
    """An array with a type for each place."""

    elements: tuple[Element, ...]


@_hashed_once
@dataclass(frozen=True)
class Property:
    """One property of an object type.

    Attributes:
        name: its name.
        type: its type.
        optional: marked with ``?``.
        definite: ``undefined`` was taken out of its type (``Required``).
        method: a method or an accessor of a class: code, which JSON leaves out.
        doc: its comment.
        at: where it is declared.
    """

    name: str
    type: Type
    optional: bool = False
    definite: bool = False
    method: bool = False
    doc: Doc | None = field(default=None, compare=False)
    at: At | None = field(default=None, compare=False)


@_hashed_once
@dataclass(frozen=True)
class Index:
    """An index signature: the type of properties of any name."""

    type: Type
    doc: Doc | None = field(default=None, compare=False)
    at: At | None = field(default=None, compare=False)


@_hashed_once
@dataclass(frozen=True)
class Object:
    """An object type.

    Attributes:
        properties: its properties, in order.
        index: its index signature.
        call: how it is called, if it is a function too.
    """

    properties: tuple[Property, ...] = ()
    index: Index | None = None
    call: Function | None = None

    def get(self, name: str) -> Property | None:
        """Return the property of that name."""
        return next((one for one in self.properties if one.name == name), None)


@dataclass(frozen=True)
class Function:
    """A function type, by the node of its signature."""

    node: Node
    scope: Scope
    construct: bool = False


@_hashed_once
@dataclass(frozen=True)
class Union:
    """Any of these; at least two."""

    members: tuple[Type, ...]


@_hashed_once
@dataclass(frozen=True)
class Documented:
    """A type, and the comment before it."""

    type: Type
    doc: Doc = field(compare=False)
    at: At


@dataclass(frozen=True)
class Refused:
    """A type without JSON values, or one that is not evaluated. It is an error if a schema needs it.

    Attributes:
        name: its name; types of different names are different.
        reason: the message of the error.
        hint: the hint of the error.
        at: the location of the error.
        unknown: the location, if nothing is known about the type: it equals no other type.
    """

    name: str
    reason: str = field(compare=False)
    hint: str = field(compare=False)
    at: At = field(compare=False)
    unknown: At | None = None


@_hashed_once
@dataclass(frozen=True)
class Deferred:
    """An expression that is evaluated when it is needed."""

    node: Node
    scope: Scope


@_hashed_once
@dataclass(frozen=True)
class Both:
    """An intersection that is evaluated when it is needed."""

    members: tuple[Type, ...]
    at: At = field(compare=False)


@_hashed_once
@dataclass(frozen=True)
class Named:
    """A declared type with its type arguments."""

    declaration: Declaration
    arguments: tuple[Type, ...] = ()
    at: At | None = field(default=None, compare=False)


Type = (
    Keyword | Literal | Array | Tuple | Object | Function | Union | Documented | Refused | Deferred | Both | Named
)  # fmt: skip

ANY, UNKNOWN, NEVER = Keyword("any"), Keyword("unknown"), Keyword("never")
STRING, NUMBER, BOOLEAN = Keyword("string"), Keyword("number"), Keyword("boolean")
OBJECT, NULL, UNDEFINED, SYMBOL = Keyword("object"), Keyword("null"), Keyword("undefined"), Keyword("symbol")
VOID = Keyword("void")


def union(members: Iterable[Type]) -> Type:
    """Return the union of types, without repetitions."""
    alternatives: dict[Type, None] = {}
    for member in _flat(members):
        if member == ANY:
            return ANY
        if member != NEVER:
            alternatives[member] = None
    if UNKNOWN in alternatives:
        return UNKNOWN
    if not alternatives:
        return NEVER
    return Union(tuple(alternatives)) if len(alternatives) > 1 else next(iter(alternatives))


def documented(type_: Type, doc: Doc | None, at: At | None) -> Type:
    """Return a type with the comment on it, unless that is empty."""
    if doc is None or at is None or not (doc.constrains or doc.description):
        return type_
    return Documented(type_, doc, at)


def unknown(reason: str, hint: str, at: At) -> Refused:
    """Return an unknown type: it is an error only if a schema needs it."""
    return Refused(reason, reason, hint, at, unknown=at)


def _flat(members: Iterable[Type]) -> Iterator[Type]:
    for member in members:
        if isinstance(member, Union):
            yield from member.members
        else:
            yield member
