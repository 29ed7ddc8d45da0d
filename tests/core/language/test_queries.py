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
