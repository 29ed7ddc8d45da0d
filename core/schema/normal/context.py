"""Protocol of the normaliser, for negation and the proofs of disjointness."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Any, Protocol

from ...language.terms import Terms
from ..read.located import Located, SignedSchema
from ..read.resolve import Document
from .conjunction import ArrayPart, Conjunction, Contains, Formula, Goal, ObjectPart
from .prune import Contradictions


class NormalForms(Protocol):
    """The normaliser of one document: its assertions, and the alternatives of goals.

    Attributes:
        document: where the subschemas are.
        unenforced: keywords that are left out, as pairs of a subschema's key and the keyword.
        one_of_as_union: above zero while ``oneOf`` is taken for a plain union.
        pairs: number of pairs of alternatives that were compared.
        contradictions: finds contradictions between facts.
        excluded: by two goals for one member and the depth of the search, True if the goals exclude each other.
    """

    document: Document
    unenforced: Collection[tuple[object, str]]
    one_of_as_union: int
    pairs: int
    contradictions: Contradictions
    excluded: dict[tuple[Goal, Goal, int], bool]

    @property
    def terms(self) -> Terms:
        """Return the store of the terms that patterns and names are compared in."""

    def asserts(self, located: Located, keyword: str) -> bool:
        """Return True if a subschema has a keyword that its dialect knows and that is not left out."""

    def asserts_format(self, located: Located) -> bool:
        """Return True if a subschema's ``format`` is more than an annotation."""

    def values(self, located: Located) -> tuple[Any, ...] | None:
        """Return the values that a schema lists; None: it lists none."""

    def contains(self, located: Located) -> list[Contains]:
        """Return the schemas that a number of items must satisfy, with the bounds of that number."""

    def object_part(self, located: Located) -> ObjectPart:
        """Return the schemas of members by name and by pattern."""

    def array_part(self, located: Located) -> ArrayPart:
        """Return the schemas of items by position."""

    def dependencies(self, located: Located) -> Iterator[tuple[str, Formula]]:
        """Yield names, and the formula for an object that has a member of the name."""

    def constant(self, value: Any) -> Formula:
        """Return the formula of one value."""

    def matches(self, pattern: str, name: str) -> bool:
        """Return True if a pattern matches some part of a name."""

    def branches(self, goal: Goal) -> list[Conjunction]:
        """Return the alternatives of a goal."""

    def denied(self, options: Sequence[SignedSchema]) -> list[Formula]:
        """Return formulas that must all hold for none of some schemas to hold."""

    def overlaps(self, located: Located) -> list[frozenset[int]]:
        """Return, for each option of a ``oneOf``, the others that are not provably disjoint from it."""
