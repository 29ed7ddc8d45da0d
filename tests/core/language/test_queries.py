"""Queries of languages, against the words that they are about."""

from __future__ import annotations

from toolgrammar.core.language import Terms
from toolgrammar.core.language.queries import listing


def test_words_are_listed_as_any_other_language() -> None:
    """Shortest first, and none if they are more than are wanted."""
    terms = Terms()
    words = ("b", "", "aa", "a", "\U0001f600", "é")
    same = terms.and_([terms.words(words), terms.not_(terms.words(("c",)))])
    assert listing(terms, terms.words(words), 6) == ["", "a", "b", "é", "\U0001f600", "aa"] == listing(terms, same, 6)
    assert listing(terms, terms.words(words), 5) is None is listing(terms, same, 5)
