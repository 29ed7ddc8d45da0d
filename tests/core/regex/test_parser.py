"""ECMA-262 patterns against Python's `re`, where the two dialects mean the same, and malformed ones as data."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toolgrammar.core import PatternError, UnsupportedPatternError
from toolgrammar.core.language.terms import Terms
from toolgrammar.core.regex.compile import regex_term

ALPHABET = "aBz_09 -.\n\\$"
TEXTS = st.text(alphabet=ALPHABET, max_size=6)

CLASSES = ["[a-z]", "[^a]", "[aB0-9]", r"[\d_]", r"[^\s\-]", r"[\w.]", "[a-]", r"[\x61\\]", r"[\u0042$]"]
ATOMS = [
    "a",
    "B",
    "_",
    "0",
    " ",
    "-",
    r"\.",
    r"\\",
    r"\$",
    ".",
    r"\d",
    r"\D",
    r"\w",
    r"\W",
    r"\s",
    r"\S",
    r"\n",
    r"\x7a",
]
COUNTS = ["*", "+", "?", "{2}", "{1,}", "{0,2}", "*?", "+?", "??", "{1,2}?"]


def patterns() -> st.SearchStrategy[str]:
    """Patterns without assertions that ECMA-262 and `re` read alike."""
    leaves = st.sampled_from(ATOMS + CLASSES)

    def grow(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
        group = st.tuples(st.sampled_from(["(", "(?:"]), inner).map(lambda pair: f"{pair[0]}{pair[1]})")
        single = leaves | group
        return st.one_of(
            st.tuples(single, st.sampled_from(COUNTS)).map("".join),
            st.lists(single, min_size=1, max_size=3).map("".join),
            st.lists(inner, min_size=2, max_size=3).map("|".join),
            group,
        )

    return st.recursive(leaves, grow, max_leaves=6)


@settings(max_examples=250, deadline=None)
@given(patterns(), st.lists(TEXTS, min_size=1, max_size=8))
def test_patterns_match_what_re_matches(pattern: str, texts: list[str]) -> None:
    """As a whole, and anywhere in a text."""
    terms = Terms()
    whole, some = regex_term(terms, pattern, whole=True), regex_term(terms, pattern, whole=False)
    expected = re.compile(pattern, re.ASCII)
    for text in ["", *texts]:
        assert terms.matches(whole, text) == (expected.fullmatch(text) is not None), (pattern, text)
        assert terms.matches(some, text) == (expected.search(text) is not None), (pattern, text)


#: Patterns that `re` does not have, or reads otherwise; texts that they match as a whole, and texts that they do not.
MEANINGS = [
    (r"\u{1F600}", ["\U0001f600"], ["u", ""]),
    (r"\uD83D\uDE00", ["\U0001f600"], ["\ufffd"]),
    (r".", ["\U0001f600", "\x85"], ["\n", "\r", "\u2028", "\u2029", ""]),
    (r"\s", ["\ufeff", "\u2028", "\u00a0", "\t"], ["\u200b", "\x1c", "\x85"]),
    (r"\d", ["0", "9"], ["\u0660"]),
    (r"\w", ["_", "Z"], ["\u00e9", "\u017f"]),
    (r"[^]", ["\n", "\U0001f600"], [""]),
    (r"a[]|b", ["b"], ["a", "a[]"]),
    (r"\cJ\0\v\f", ["\n\x00\x0b\x0c"], ["J0vf"]),
    (r"\/\-?[\-\]]"[:-1].replace(r"\-?", "") + "]", ["/-", "/]"], ["/", "-"]),
    (r"(?<year>\d{4})", ["2024"], ["24"]),
    (r"\p{Lu}\P{Lu}[\p{Nd}\p{sc=Greek}]", ["Aa1", "\u00c9!\u03b1"], ["aA1", "Aab"]),
    (r"\p{Cs}|x", ["x"], ["", "s"]),
    (r"x{2,3}?y*?", ["xx", "xxxyy"], ["x", "xxxx"]),
]


@pytest.mark.parametrize(("pattern", "members", "others"), MEANINGS, ids=[pattern for pattern, _, _ in MEANINGS])
def test_what_is_ecma_alone(pattern: str, members: list[str], others: list[str]) -> None:
    """Escapes, classes and properties mean what ECMA-262 says, with the ``u`` flag."""
    terms = Terms()
    term = regex_term(terms, pattern, whole=True)
    assert [text for text in members if not terms.matches(term, text)] == []
    assert [text for text in others if terms.matches(term, text)] == []


#: What the ``u`` flag forbids, and engines without it read (ECMA-262 annex B): patterns in the wild rely on it.
LENIENT = [
    ("a]", ["a]"], ["a"]),
    ("a}", ["a}"], ["a"]),
    ("a{", ["a{"], ["a"]),
    (r"\-\_", ["-_"], [r"\-\_"]),
    (r"[\d-z]", ["5", "-", "z"], ["a", "y"]),
]


@pytest.mark.parametrize(("pattern", "members", "others"), LENIENT, ids=[pattern for pattern, _, _ in LENIENT])
def test_what_engines_read_without_the_flag(pattern: str, members: list[str], others: list[str]) -> None:
    """What only the ``u`` flag forbids means what it means without."""
    test_what_is_ecma_alone(pattern, members, others)


MALFORMED = ["(", ")", "a)", "[", "[b-a]", "*", "a**", "+a", "?", "{1}", "a{2,1}", "\\", r"\u{110000}"]
MALFORMED += [r"\p{Nope}", r"\p{}", "(?", "(?<1>a)", "(?=", "(?<=a)*"]


@pytest.mark.parametrize("pattern", MALFORMED)
def test_malformed_patterns_are_refused(pattern: str) -> None:
    """What the ``u`` flag makes a syntax error is one here, with the offset at which it shows."""
    with pytest.raises(PatternError) as caught:
        regex_term(Terms(), pattern, whole=True)
    assert not isinstance(caught.value, UnsupportedPatternError)
    assert caught.value.place.offset is not None and 0 <= caught.value.place.offset <= len(pattern)


@pytest.mark.parametrize("pattern", [r"(a)?\1", r"\2(a)", r"(?<n>a)?\k<n>"])
def test_what_is_not_regular_is_not_malformed(pattern: str) -> None:
    """Back-references are valid, and no regular language."""
    with pytest.raises(UnsupportedPatternError):
        regex_term(Terms(), pattern, whole=True)
