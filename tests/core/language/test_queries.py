"""Queries of languages, against the words that they are about."""

from __future__ import annotations

import pytest

from toolgrammar.core.language import Terms
from toolgrammar.core.language.queries import MAX_ROOMY, is_roomy, listing
from toolgrammar.core.regex.compile import regex_term


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("[a-z]*", True),
        ("[a-z]+x", True),
        ("(ab)*c*", True),
        ("a*b", False),  # after b nothing follows
        ("ab?", False),
        ("a|b+", False),  # one more letter, or none, after a
        ("a{3}b*", True),
        (f"a{{{MAX_ROOMY}}}b*", False),  # too many states to inspect
        ("[^\\x00-\\u{10FFFF}]", False),  # empty
    ],
)
def test_a_language_is_roomy_if_every_beginning_has_infinitely_many_continuations(pattern: str, expected: bool) -> None:
    """Whatever was written, some longer text is possible; a language that is roomy cannot be listed."""
    terms = Terms()
    term = regex_term(terms, pattern, whole=True)
    assert is_roomy(terms, term) is expected
    if expected:
        assert listing(terms, term, 100) is None


def test_words_are_listed_as_any_other_language() -> None:
    """Shortest first, and none if they are more than are wanted."""
    terms = Terms()
    words = ("b", "", "aa", "a", "\U0001f600", "é")
    same = terms.and_([terms.words(words), terms.not_(terms.words(("c",)))])
    assert listing(terms, terms.words(words), 6) == ["", "a", "b", "é", "\U0001f600", "aa"] == listing(terms, same, 6)
    assert listing(terms, terms.words(words), 5) is None is listing(terms, same, 5)
    assert not is_roomy(terms, terms.words(words)) and not is_roomy(terms, same)
    assert is_roomy(terms, terms.not_(terms.words(words)))
