"""Shared terms: languages that nearly every grammar has (strings, numbers, whitespace), derived once.

A `LazyAutomaton` begins with a copy of `SharedTerms`. Their terms and row states have the same numbers in every copy,
so that a vocabulary derives their token sets once too."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from ..language.terms import Terms
from .byte_rows import ByteRows


class SharedTerms:
    """The row states of some languages, all of them derived.

    Args:
        languages: returns terms of a store without deferred parts, each with True if it is written as a JSON string.
    """

    def __init__(self, languages: Callable[[Terms], Iterable[tuple[int, bool]]]) -> None:
        terms = Terms()
        rows = ByteRows(terms)
        for term, quoted in languages(terms):
            rows.start(term, quoted)
        state = 0
        while state < len(rows):  # each row may bring new states
            rows.derive(state)
            state += 1
        self._terms, self._rows = terms, rows

    def copies(self) -> tuple[Terms, ByteRows]:
        """Return copies of the stores of terms and rows."""
        terms = self._terms.copy()
        return terms, self._rows.copy(terms)
