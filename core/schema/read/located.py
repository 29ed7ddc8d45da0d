# cython: language_level=3
"""Subschemas at their places in a document, and subschemas with a sign: what the memos of the reading are keyed by.

Compiled where that is possible (Cython in pure-Python mode), as thousands are made and compared; the same file runs
interpreted.
"""

from __future__ import annotations

from ...json_pointer import to_pointer

try:
    import cython
except ImportError:  # interpreted, without Cython installed
    from ...compiled import standin as cython  # type: ignore[no-redef]

#: True if this module was compiled when it was installed.
COMPILED: bool = bool(cython.compiled)


@cython.no_gc
@cython.cclass
class Located:
    """A subschema and its place. Equal iff the schema object, and what its references mean, are the same.

    Attributes:
        schema: the subschema.
        scope: what references mean here (see `resolve.Scope`); None: they are relative to the document's root.
        key: equal iff two of them are, as long as both are kept.
        entered: ``scope`` allows for an address of the subschema's own.
    """

    def __init__(
        self, schema: object, start: str = "", above: object = None, steps: tuple = (), scope: object = None
    ) -> None:
        """Initialise a place.

        Args:
            schema: the subschema.
            start: the JSON pointer of the subschema, or of ``above`` if that is given.
            above: the place of the schema that this one is in.
            steps: the way from there.
            scope: what references mean here; None: they are relative to the document's root.
        """
        self.schema = schema
        self.scope = scope
        if schema is True or schema is False:
            self.key = schema
        elif scope is None:
            self.key = id(schema)
        else:
            self.key = (id(schema), scope.key)
        self.entered = False
        self._start = start
        self._above = above
        self._steps = steps

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Located) and self.key == other.key)

    def __hash__(self) -> int:
        return hash(self.key)

    @property
    def pointer(self) -> str:
        """The JSON pointer (RFC 6901); put together when asked for, since a deep one is long."""
        steps: list = []
        here: Located = self
        while here._above is not None:
            steps.extend(reversed(here._steps))
            here = here._above
        return here._start + to_pointer(reversed(steps))

    def child(self, *steps: object) -> Located:
        """Return the subschema some steps below."""
        schema = self.schema
        for step in steps:
            schema = schema[step]
        return Located(schema, "", self, steps, self.scope)

    def items(self, keyword: str) -> list:
        """Return the subschemas that a keyword lists."""
        return [
            Located(schema, "", self, (keyword, index), self.scope) for index, schema in enumerate(self.schema[keyword])
        ]

    def members(self, keyword: str) -> list:
        """Return pairs of a name and the subschema that a keyword has under it."""
        return [
            (name, Located(schema, "", self, (keyword, name), self.scope))
            for name, schema in self.schema[keyword].items()
        ]


@cython.no_gc
@cython.cclass
class SignedSchema:
    """A subschema that must hold, or must not. Immutable."""

    def __init__(self, located: Located, positive: bool = True) -> None:
        self.located = located
        self.positive = positive

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, SignedSchema):
            return False
        another: SignedSchema = other
        return self.positive == another.positive and self.located.key == another.located.key

    def __hash__(self) -> int:
        return hash(self.located.key) if self.positive else ~hash(self.located.key)

    def __repr__(self) -> str:
        return f"SignedSchema({self.located.pointer!r}, {self.positive})"
