"""Length bounds: what is said of a language without its bound is true of every text."""

from __future__ import annotations

from itertools import product

import pytest

from toolgrammar.core.automaton.length_bounds import without_bound
from toolgrammar.core.language.terms import Terms
from toolgrammar.core.regex.compile import regex_term

PATTERNS = {
    "^(a+b+){0,9}a+$": 3,
    "^(aab|ba)*$": 3,
    "^(ab){2,4}b?$": 4,
    "^a(b|aa){3}$": 4,
    "^(a|bbb)(a|b){0,2}$": 3,
}


def bounded(terms: Terms, pattern: str, least: int, most: int) -> tuple[int, int, int, int] | None:
    """Return what is said of a pattern with a bound on the length."""
    part = regex_term(terms, pattern, whole=False)
    return without_bound(terms, terms.and_([part, terms.repeat(terms.ANY, least, most)]), {})


@pytest.mark.parametrize("pattern", PATTERNS)
def test_every_beginning_is_completed_within_the_margin(pattern):
    """After any beginning of a string, the fewest characters to the end are at most the margin."""
    terms = Terms()
    found = bounded(terms, pattern, 0, 100)
    assert found is not None
    part, least, most, margin = found
    assert (least, most) == (0, 100)
    words = {
        "".join(each) for size in range(13) for each in product("ab", repeat=size) if terms.matches(part, "".join(each))
    }
    needs = {}
    for word in words:
        for size in range(min(5, len(word)) + 1):
            needs[word[:size]] = min(needs.get(word[:size], 99), len(word) - size)
    assert max(needs.values()) <= margin
    assert margin == PATTERNS[pattern]


@pytest.mark.parametrize(("pattern", "is_known"), [("^a+b*$", True), ("^(a|b+)$", False), ("^(ab)*$", False)])
def test_a_minimum_needs_strings_that_go_on(pattern, is_known):
    """A minimum length keeps the bound, unless each string of the language begins another, one character longer."""
    terms = Terms()
    assert (bounded(terms, pattern, 3, 9) is not None) is is_known
    assert bounded(terms, pattern, 0, 9) is not None


def test_languages_of_other_kinds_keep_their_bounds():
    """Nothing is said of complements and of intersections: what completes a text there may be long."""
    terms = Terms()
    part = terms.and_([regex_term(terms, "a", whole=False), terms.not_(regex_term(terms, "b", whole=False))])
    assert without_bound(terms, terms.and_([part, terms.repeat(terms.ANY, 0, 9)]), {}) is None


def test_a_bound_alone_is_one_of_the_free_string():
    """A string of which only the number of characters matters is any string with that bound, completed at once."""
    terms = Terms()
    assert without_bound(terms, terms.repeat(terms.ANY, 0, 9), {}) == (terms.ALL, 0, 9, 0)
    assert without_bound(terms, terms.repeat(terms.ANY, 3, 9), {}) == (terms.ALL, 3, 9, 0)
    assert without_bound(terms, terms.ALL, {}) is None
    assert without_bound(terms, terms.repeat(terms.ANY, 3, None), {}) is None


@pytest.mark.parametrize("lacking", [("",), ("a", "aa", "aaa"), ("", "a", "b", "ab"), ("ba",)])
def test_all_but_some_words_are_completed_by_one_character(lacking):
    """A text that is one of the words is none with another character behind it, whatever length is needed."""
    terms = Terms()
    part = terms.not_(terms.words(lacking))
    for least in (0, 3):
        found = without_bound(terms, terms.and_([part, terms.repeat(terms.ANY, least, 9)]), {})
        assert found == (part, least, 9, 1)
    for size in range(4):
        for each in product("ab", repeat=size):
            word = "".join(each)
            assert terms.matches(part, word) or terms.matches(part, word + "c")
