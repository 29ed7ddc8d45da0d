"""The references on the path to a formula: a schema that is reached a second time is a loop."""

from __future__ import annotations

from typing import NamedTuple


class Passed(NamedTuple):
    """References that led to a formula.

    Attributes:
        keys: pairs of the key of a schema and its sign.
        joined: the references after which the path has only conjunctions (for a negative sign: only unions), as the key
            of the schema, its sign, and the number of scopes (see `unevaluated.Scope`).
    """

    keys: frozenset[tuple[object, bool]] = frozenset()
    joined: frozenset[tuple[object, bool, int]] = frozenset()

    def of_sign(self, positive: bool) -> Passed:
        """Return the references with only those of one sign still joined."""
        return Passed(self.keys, frozenset({each for each in self.joined if each[1] == positive}))
