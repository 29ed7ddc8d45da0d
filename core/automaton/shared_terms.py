"""What nearly every grammar has (strings, numbers, whitespace), derived once for the process.

A store that begins as a copy of a `Seed` knows these languages from the start: their terms and row states have the same
numbers in all such stores, so that what a vocabulary makes of them (the tokens of a number, say) is shared as well.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from ..language.terms import Terms
from .byte_rows import Rows


class Seed:
    """The row states of some languages, all of them derived.

    Args:
        languages: gives the languages, as terms of a store, and whether they are written as JSON strings. None of them
            may have deferred parts.
    """

    def __init__(self, languages: Callable[[Terms], Iterable[tuple[int, bool]]]) -> None:
        terms = Terms()
        rows = Rows(terms)
        for term, quoted in languages(terms):
            rows.start(term, quoted)
        state = 0
        while state < len(rows):  # each row may bring new states
            rows.derive(state)
            state += 1
        self._terms, self._rows = terms, rows

    def copies(self) -> tuple[Terms, Rows]:
        """Stores of terms and rows to go on from."""
        terms = self._terms.copy()
        return terms, self._rows.copy(terms)
