# cython: language_level=3
"""Subschemas at their places in a document, and subschemas with a sign: what the memos of the reading are keyed by.

Compiled where that is possible (Cython in pure-Python mode), as thousands are made and compared; the same file runs
interpreted.
"""

from __future__ import annotations

from ...basics.json_pointer import to_pointer

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
        self.key = _key(schema, scope)
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
        return self.below(schema, steps)

    @cython.ccall
    def under(self, keyword: str) -> Located:
        """Return the subschema that is the value of a keyword."""
        return self.below(self.schema[keyword], (keyword,))

    @cython.ccall
    def items(self, keyword: str) -> list:
        """Return the subschemas that a keyword lists."""
        found: list = []
        for schema in self.schema[keyword]:
            found.append(self.below(schema, (keyword, len(found))))
        return found

    @cython.ccall
    def members(self, keyword: str) -> dict:
        """Return the subschemas that a keyword has, by their names."""
        found: dict = {}
        for name, schema in self.schema[keyword].items():
            found[name] = self.below(schema, (keyword, name))
        return found

    @cython.ccall
    def below(self, schema: object, steps: tuple) -> Located:
        """Return a subschema some steps below."""
        # Without a call of the class, whose arguments would take longer than the rest.
        place: Located = Located.__new__(Located)
        place.schema = schema
        place.scope = self.scope
        place.key = _key(schema, self.scope)
        place.entered = False
        place._start = ""
        place._above = self
        place._steps = steps
        return place

    @cython.ccall
    def inner_key(self, schema: object) -> object:
        """Return the key of a subschema below."""
        return _key(schema, self.scope)


@cython.cfunc
@cython.inline
def _key(schema: object, scope: object) -> object:
    if schema is True or schema is False:
        return schema
    return id(schema) if scope is None else (id(schema), scope.key)


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


@cython.ccall
def signed(located: Located, positive: cython.bint = True) -> SignedSchema:
    """Return a subschema with a sign; faster than the call of the class."""
    made: SignedSchema = SignedSchema.__new__(SignedSchema)
    made.located = located
    made.positive = positive
    return made
