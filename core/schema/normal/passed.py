"""The references on the way to a formula: a schema that is reached a second time is a loop."""

from __future__ import annotations

from typing import NamedTuple


class Passed(NamedTuple):
    """References that led to a formula.

    Attributes:
        keys: of each, the key of its schema and the sign.
        joined: of each since which only conjunctions (or, negated, the unions of their negations) were passed: the key,
            the sign, and the number of scopes (see `unevaluated.Scope`).
    """

    keys: frozenset[tuple[object, bool]] = frozenset()
    joined: frozenset[tuple[object, bool, int]] = frozenset()

    def of_sign(self, positive: bool) -> Passed:
        """Return the references with only those of one sign still joined."""
        return Passed(self.keys, frozenset({each for each in self.joined if each[1] == positive}))
