"""Shared terms: languages that many grammars have (strings, numbers, whitespace, formats), derived once.

A `LazyAutomaton` begins with a copy of `SharedTerms`. Their terms and row states have the same numbers in every copy,
so that a vocabulary derives their token sets once too."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from ..language.queries import begins_deferred
from ..language.terms import Terms
from .byte_rows import ByteRows
from .encoding import QUOTED, RAW


class SharedTerms:
    """The row states of some languages, derived up to the first one that begins with a deferred term.

    Args:
        languages: one or more, derived one after the other: each returns terms of a store, every one with True if it is
            written as a JSON string. Those with deferred parts come last.

    Law: with more ``languages`` behind, the terms and states of the first ones have the same numbers.
    """

    def __init__(self, *languages: Callable[[Terms], Iterable[tuple[int, bool]]]) -> None:
        terms = Terms()
        rows = ByteRows(terms)
        state = 0
        for each in languages:
            for term, quoted in each(terms):
                rows.start(term, quoted)
            while state < len(rows) and not _begins_deferred(rows, state):  # each row may bring new states
                rows.derive(state)
                state += 1
        self._terms, self._rows = terms, rows

    def copies(self) -> tuple[Terms, ByteRows]:
        """Return copies of the stores of terms and rows."""
        terms = self._terms.copy()
        return terms, self._rows.copy(terms)


def _begins_deferred(rows: ByteRows, state: int) -> bool:
    """Return True if a deferred term has to be built for the row of a state."""
    kind, term = rows.what(state)
    return RAW <= kind <= QUOTED and begins_deferred(rows.terms, term)
