"""Assertions as intersections and complements, against Python's `re`."""

from __future__ import annotations

import re
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toolgrammar.core import UnsupportedPatternError
from toolgrammar.core.language.terms import Terms
from toolgrammar.core.regex.compile import regex_term

ALPHABET = "ab-"
#: Every text of up to five characters.
TEXTS = ["".join(text) for size in range(6) for text in product(ALPHABET, repeat=size)]


def agrees(pattern: str) -> None:
    """The pattern is found in exactly those of the texts in which `re` finds it."""
    terms = Terms()
    term = regex_term(terms, pattern, whole=False)
    expected = re.compile(pattern.replace("$", r"\Z"), re.ASCII)  # `re` lets $ match before a last newline
    texts = TEXTS[1:] if r"\B" in pattern else TEXTS  # `re` finds \B in no empty text, before Python 3.14
    differing = [text for text in texts if terms.matches(term, text) != (expected.search(text) is not None)]
    assert differing == [], pattern


@pytest.mark.parametrize(
    "pattern",
    [
        "^a", "b$", "^$", "^", "$", "a^", "$b", "^^a$$", "(^|-)a(-|$)", "(^a|b$)", "a(?=b)", "a(?!b)", "(?=a)", "(?!a)b",
        "(?<=a)b", "(?<!a)b", "(?<!^)a", r"\ba\b", r"\Ba", r"a\B", r"\b", r"\B", "^(?=.*a)(?=.*b)", "^(?!.*--)[ab-]+$",
        "^(?!-)[a-]+(?<!-)$", "(?=ab)a", "(?<=ab)-|^b", "a(?=-|$)", "(?:^|(?<=-))a", "(?!)", "(?=)a", "a(?=b(?!-))",
        "(?<=(?<!b)a)-", "^(a|(?=b))b$", "(a(?!a))+$", "^(?:a(?=b)b?){1,3}$", "(?:^a)?b", "(?:a$)*b", "((?=a)a|b)+-",
        "^(?:(?!b).){2}$", "(?=a)*b", "(?!a){2}b",
    ],
)  # fmt: skip
def test_known_patterns(pattern: str) -> None:
    """Each kind of assertion, at the ends and in the middle, alone and in one another."""
    agrees(pattern)


def trees() -> st.SearchStrategy[str]:
    """Patterns with assertions; what a look-behind looks for has one width, as `re` needs it."""
    plain = st.sampled_from(["a", "b", "-", ".", "[ab]", "[^a]"])
    fixed = st.lists(plain, min_size=1, max_size=2).map("".join)
    looks = st.one_of(
        st.sampled_from(["^", "$", r"\b", r"\B"]),
        st.tuples(
            st.sampled_from(["(?=", "(?!"]), st.one_of(fixed, fixed.map("{}$".format), fixed.map(".*{}".format))
        ).map(lambda pair: f"{pair[0]}{pair[1]})"),
        st.tuples(st.sampled_from(["(?<=", "(?<!"]), fixed).map(lambda pair: f"{pair[0]}{pair[1]})"),
    )
    leaf = st.one_of(plain, plain, st.tuples(plain, st.sampled_from(["*", "+", "?", "{2}"])).map("".join), looks)

    def grow(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
        return st.one_of(
            st.lists(inner, min_size=2, max_size=4).map("".join),
            st.lists(inner, min_size=2, max_size=2).map(lambda parts: f"(?:{'|'.join(parts)})"),
            st.tuples(inner, st.sampled_from(["?", "{0,2}"])).map(lambda pair: f"(?:{pair[0]}){pair[1]}"),
        )

    return st.recursive(leaf, grow, max_leaves=5)


def test_any_pattern_is_exact_or_refused() -> None:
    """Whatever is not refused matches what `re` matches; few patterns are refused."""
    seen: dict[str, bool] = {}

    @settings(max_examples=250, deadline=None, database=None)
    @given(trees())
    def check(pattern: str) -> None:
        try:
            agrees(pattern)
        except UnsupportedPatternError:
            seen[pattern] = False
        else:
            seen[pattern] = True

    check()
    refused = [pattern for pattern, is_exact in seen.items() if not is_exact]
    assert len(refused) <= len(seen) // 10, refused


@pytest.mark.parametrize("pattern", ["^(?:a(?=b)b?)+$", "^(?:a(?=.*b)|b(?<=a.*))*$", "^([^,]+(,|$)){3,}$"])
def test_entangled_assertions_are_unsupported(pattern: str) -> None:
    """A valid pattern whose assertions cannot be rewritten is not supported, not malformed."""
    with pytest.raises(UnsupportedPatternError):
        regex_term(Terms(), pattern, whole=False)
