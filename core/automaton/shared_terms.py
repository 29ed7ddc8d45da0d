"""Shared terms: languages that nearly every grammar has (strings, numbers, whitespace), derived once.

A `LazyAutomaton` that begins with a copy of `SharedTerms` knows these languages from the start. Their terms and row
states have the same numbers in all of them, so that a vocabulary shares what it makes of them too (the tokens of a
number, say).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from ..language.terms import Terms
from .byte_rows import ByteRows


class SharedTerms:
    """The row states of some languages, all of them derived.

    Args:
        languages: gives the languages, as terms of a store, and whether they are written as JSON strings. None of them
            may have deferred parts.
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
        """Stores of terms and rows to go on from."""
        terms = self._terms.copy()
        return terms, self._rows.copy(terms)
