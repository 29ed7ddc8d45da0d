"""Subschemas with their JSON pointers, and subschemas with a sign: the keys of the memos of reading a schema."""

from __future__ import annotations

from typing import Any

from ...json import to_pointer
from .scope import Scope

#: Keywords, names and indices that lead from a schema to one below it.
Steps = tuple[str | int, ...]


class Located:
    """A subschema with its location. Equal iff the schema object, and the meaning of its references, are the same.

    Attributes:
        schema: the subschema.
        scope: the base of its references (see `scope.Scope`); None: the document's root.
        key: equal for two objects iff they are equal, while both are alive.
        entered: ``scope`` allows for an address of the subschema's own.
    """

    __slots__ = ("_above", "_start", "_steps", "entered", "key", "schema", "scope")

    def __init__(
        self,
        schema: Any,
        start: str = "",
        above: Located | None = None,
        steps: Steps = (),
        scope: Scope | None = None,
        entered: bool = False,
    ) -> None:
        """Initialise a located subschema.

        Args:
            schema: the subschema.
            start: the JSON pointer of the subschema, or of the outermost schema around it.
            above: the schema around it.
            steps: the steps from ``above`` to it.
            scope: the base of its references; None: the document's root.
            entered: ``scope`` allows for an address of the subschema's own.
        """
        self.schema = schema
        self.scope = scope
        self.key = _key(schema, scope)
        self.entered = entered
        self._start = start
        self._above = above
        self._steps = steps

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Located) and self.key == other.key)

    def __hash__(self) -> int:
        return hash(self.key)

    @property
    def pointer(self) -> str:
        """The JSON pointer (RFC 6901); made when asked for, since a deep one is long."""
        steps: list[str | int] = []
        here = self
        while here._above is not None:
            steps.extend(reversed(here._steps))
            here = here._above
        return here._start + to_pointer(reversed(steps))

    @property
    def is_placed(self) -> bool:
        """True if the subschema is below the root of a document; False for a root, and for a schema of no document."""
        return bool(self._start) or self._above is not None

    def child(self, *steps: str | int) -> Located:
        """Return the subschema that some steps lead to."""
        schema = self.schema
        for step in steps:
            schema = schema[step]
        return self.below(schema, steps)

    def under(self, keyword: str) -> Located:
        """Return the subschema that is the value of a keyword."""
        return self.below(self.schema[keyword], (keyword,))

    def items(self, keyword: str) -> list[Located]:
        """Return the subschemas that a keyword lists."""
        return [self.below(schema, (keyword, index)) for index, schema in enumerate(self.schema[keyword])]

    def members(self, keyword: str) -> dict[str, Located]:
        """Return the subschemas that a keyword has by name."""
        return {name: self.below(schema, (keyword, name)) for name, schema in self.schema[keyword].items()}

    def below(self, schema: Any, steps: Steps) -> Located:
        """Return a subschema that is known to be where some steps lead."""
        return Located(schema, "", self, steps, self.scope)

    def inner_key(self, schema: Any) -> object:
        """Return the key that a subschema of this one has."""
        return _key(schema, self.scope)


def _key(schema: Any, scope: Scope | None) -> object:
    if schema is True or schema is False:
        return schema
    return id(schema) if scope is None else (id(schema), scope.key)


class SignedSchema:
    """A subschema that must hold, or must not. Immutable."""

    __slots__ = ("located", "positive")

    def __init__(self, located: Located, positive: bool = True) -> None:
        self.located = located
        self.positive = positive

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, SignedSchema):
            return False
        return self.positive == other.positive and self.located.key == other.located.key

    def __hash__(self) -> int:
        return hash(self.located.key) if self.positive else ~hash(self.located.key)

    def __repr__(self) -> str:
        return f"SignedSchema({self.located.pointer!r}, {self.positive})"
