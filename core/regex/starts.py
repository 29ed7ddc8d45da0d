"""Free text that does not begin in certain ways."""

from __future__ import annotations

from collections.abc import Sequence

from ..basics.argument_checks import checked_words
from ..language.free_text import free_text
from ..language.terms import Terms
from .compile import regex_term

#: Beginnings of texts: each a regular expression, several words of which one follows, and a regular expression.
Starts = Sequence[tuple[str, Sequence[str], str]]


def checked_starts(starts: Starts) -> tuple[tuple[str, tuple[str, ...], str], ...]:
    """Return beginnings as tuples, which are hashable, after a check.

    Raises:
        GrammarError: a word is no string.
        PatternError: an expression is malformed, or not regular.
    """
    if not starts:
        return ()
    checked = tuple((before, checked_words(words), after) for before, words, after in starts)
    free_text_without(Terms(), (), 0, checked)  # raises the errors of the expressions
    return checked


def free_text_without(terms: Terms, excluding: tuple[str, ...], min_chars: int, starts: Starts) -> int:
    """Return the term of `free_text` that begins in none of these ways."""
    found = [free_text(terms, excluding, min_chars)]
    for before, words, after in starts:
        first, last = (regex_term(terms, pattern, whole=True) for pattern in (before, after))
        found.append(terms.not_(terms.seq(terms.seq(first, terms.words(words)), terms.seq(last, terms.ALL))))
    return terms.and_(found) if starts else found[0]
