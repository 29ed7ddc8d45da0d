"""Protocol of the normaliser, for the proofs of disjointness."""

from __future__ import annotations

from typing import Protocol

from ...language.terms import Terms
from .conjunction import Conjunction, Formula, Goal
from .prune import Contradictions


class NormalForms(Protocol):
    """The normaliser of one document: the alternatives of goals.

    Attributes:
        pairs: number of pairs of alternatives that were compared.
        contradictions: finds contradictions between facts.
        excluded: by two goals for one part and the depth of the search, True if the goals exclude each other.
        strings: by formula, a term of strings among which are all that satisfy it.
    """

    pairs: int
    contradictions: Contradictions
    excluded: dict[tuple[Goal, Goal, int], bool]
    strings: dict[Formula, int]

    @property
    def terms(self) -> Terms:
        """Return the store of the terms that patterns and names are compared in."""

    def matches(self, pattern: str, name: str) -> bool:
        """Return True if a pattern matches some part of a name."""

    def branches(self, goal: Goal) -> list[Conjunction]:
        """Return the alternatives of a goal."""

    def of_part(self, goal: Goal) -> list[Conjunction]:
        """Return alternatives of the goal of a part among which are all of its own; computed once."""
