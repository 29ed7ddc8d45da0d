"""Shared terms: languages that many grammars have (strings, numbers, whitespace, formats), derived once.

A `LazyAutomaton` begins with a copy of `SharedTerms` (its *seed*). The terms and row states have the same numbers in
every copy, so that a vocabulary has one token set for each of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from ..language.queries import begins_deferred
from ..language.terms import Terms
from .byte_rows import ByteRows
from .encoding import QUOTED, RAW


class SharedTerms:
    """The row states of given languages, derived up to the first one that begins with a deferred term.

    Args:
        languages: functions that take a store and return pairs of a term and True if it is a JSON string; the pairs
            with deferred parts come last.

    Law: further ``languages`` do not change the numbers of the terms and states of the first ones.
    """

    def __init__(self, *languages: Callable[[Terms], Iterable[tuple[int, bool]]]) -> None:
        terms = Terms()
        rows = ByteRows(terms)
        state, known = 0, set[int]()
        for each in languages:
            for term, quoted in each(terms):
                rows.start(term, quoted)
            while state < len(rows) and not _begins_deferred(rows, state, known):  # each row may add states
                rows.derive(state)
                state += 1
        self._terms, self._rows = terms, rows

    def copies(self) -> tuple[Terms, ByteRows]:
        """Return copies of the stores of terms and rows."""
        terms = self._terms.copy()
        return terms, self._rows.copy(terms)


def _begins_deferred(rows: ByteRows, state: int, known: set[int]) -> bool:
    """Return True if the row of a state needs a deferred term to be built."""
    kind, term = rows.what(state)
    return RAW <= kind <= QUOTED and begins_deferred(rows.terms, term, known)
