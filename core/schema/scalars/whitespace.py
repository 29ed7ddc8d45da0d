"""The languages that nearly every schema has: free strings, any numbers, whitespace between tokens of JSON."""

from __future__ import annotations

from collections.abc import Iterator

from ...language.terms import Terms
from ...unicode.charset import CharSet
from .numbers import NumberRange, Numbers

#: Longest run of whitespace that the ``flexible`` policy takes between two tokens of JSON.
MAX_SPACES = 20

_SPACES = CharSet.of(" \t\n\r")


def spaces(terms: Terms) -> int:
    """Whitespace between two tokens of JSON (RFC 8259 section 2)."""
    return terms.repeat(terms.chars(_SPACES), 0, MAX_SPACES)


def common_languages(terms: Terms) -> Iterator[tuple[int, bool]]:
    """Terms, each with whether it is written as a JSON string."""
    yield terms.ALL, True
    numbers = Numbers(terms)
    for integer in (False, True):
        for any_spelling in (False, True):
            yield numbers.term(NumberRange(integer=integer), any_spelling=any_spelling), False
    yield spaces(terms), False
