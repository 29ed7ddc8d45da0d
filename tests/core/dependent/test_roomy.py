"""Roomy languages, against the words that they are about."""

from __future__ import annotations

import pytest

from toolgrammar.core.dependent.roomy import MAX_ROOMY, is_roomy
from toolgrammar.core.language import Terms
from toolgrammar.core.language.queries import listing
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
        ("a(b|c+d)?", False),
        ("(a(b+|(c|d+)*)){0,2}", True),  # as each part ends in a repetition, or may go on with one
        ("(a([^\\x00-\\u{10FFFF}]b*)?){1,2}", False),  # of which none exists
        ("([^\\x00-\\u{10FFFF}])*", False),
        (f"a{{{MAX_ROOMY}}}b*", True),
        (f"a{{{MAX_ROOMY}}}b*c", False),  # too many states to inspect
        ("[^\\x00-\\u{10FFFF}]", False),  # empty
        ("[^\\x00-\\u{10FFFF}]a*", False),
    ],
)
def test_a_language_is_roomy_if_every_beginning_has_infinitely_many_continuations(pattern: str, expected: bool) -> None:
    """Whatever was written, some longer text is possible; a language that is roomy cannot be listed."""
    terms = Terms()
    term = regex_term(terms, pattern, whole=True)
    assert is_roomy(terms, term) is expected
    if expected:
        assert listing(terms, term, 100) is None


def test_finitely_many_words_are_not_roomy() -> None:
    """A list of words is not roomy, however it is made; all other strings are."""
    terms = Terms()
    words = terms.words(("b", "", "aa"))
    assert not is_roomy(terms, words)
    assert not is_roomy(terms, terms.and_([words, terms.not_(terms.words(("c",)))]))
    assert is_roomy(terms, terms.not_(words))


def test_a_language_that_lacks_some_words_is_as_roomy_as_with_them() -> None:
    """Infinitely many continuations less finitely many."""
    terms = Terms()
    others = terms.not_(terms.words(("a", "b" * MAX_ROOMY)))
    for pattern, expected in ((f"[ab]{{1,{2 * MAX_ROOMY}}}[b-d]*", True), ("b{3}a*", True), ("[ab]{1,9}", False)):
        assert is_roomy(terms, terms.and_([regex_term(terms, pattern, whole=True), others])) is expected


@pytest.mark.parametrize(
    ("patterns", "expected"),
    [
        ((f"(a{{{MAX_ROOMY}}}|b+)c", "é"), True),
        ((f".{{{MAX_ROOMY}}}|b+",), True),  # no line break
        ((f"[^]{{{MAX_ROOMY}}}[^a]*", "b{2}"), False),  # too many states to inspect
        ((f"[^]{{0,{MAX_ROOMY}}}",), True),  # finitely many are missing
        (("[^]*a", "b"), True),
        (("[^]+",), False),  # nothing but the empty string is left: no surrogate is a character
    ],
)
def test_a_language_is_roomy_if_some_character_makes_what_follows_it_free(
    patterns: tuple[str, ...], expected: bool
) -> None:
    """All that the patterns do not match: they match nothing that contains a character that none of them has."""
    terms = Terms()
    missing = [terms.not_(regex_term(terms, pattern, whole=True)) for pattern in patterns]
    assert is_roomy(terms, terms.and_(missing)) is expected
