"""Back-references against Python's ``re``: exact for groups of few words, between two bounds for the others."""

from __future__ import annotations

import itertools
import re

import pytest

from toolgrammar.core import Grammar, LimitError, UnsupportedPatternError, UnsupportedSchemaError
from toolgrammar.core.language.terms import Terms
from toolgrammar.core.regex import compile
from toolgrammar.core.regex.back_references import Bound
from toolgrammar.core.regex.compile import regex_term

from ...counted import at_most

WORDS = ["".join(word) for length in range(6) for word in itertools.product("abx", repeat=length)]
WORDS += ["'ab'", "'ab\"", "<a x/a>", "<ab x/ab>", "<a x/>", "<a x/b>", "caca", "cacb", "a\na"]

EXACT = [
    r"^(['\"])[ab]*\1$",
    r"(a|b)\1",
    r"^(a|b)(c|x)\2\1$",
    r"^(?:(a|b)x\1)*$",
    r"^(?P<n>ab?)x\1$",
    r"^(a|b)(?!\1)[ab]$",
    r"^((a)b)\2$",
    r"^(?=(a|b)\1)..$",
    r"^(a?)b\1$",
    r"^([ab]{1,2})x\1$",
    r"^(a|ab)(b?)\1\2$",
    r"^(?!(a|b)\1)[ab]{2}",
    r"^([ab])(?:\1x)*$",
    r"^(x|a)b?\1(?<=b\1)",
]
BOUNDED = [
    r"^(a+)b\1$",
    r"^(a*)b\1$",
    r"^(a+)(?!\1)[ab]*$",
    r"^([ab]{2,})x?\1$",
    r"^(?!(a+)b\1$)[ab]*$",
    r"^\s*<([A-Za-z]+).+?(\/>|\/\1>)\s*$",
    r"^(a+)(?:b\1|x)*$",
    r"^(.)\1$",
    r"^(x*)(a*)\1\2$",
    r"^([ab]*)([ab])\2\1$",
    r"^(?:(?!(?!(a+)b\1$)).)*$",
]
REFUSED = [
    r"^(a|b)?\1$",
    r"^(a|b)+\1$",
    r"^(?:(a)|b)\1$",
    r"^((a|b)x)\2\1$",
    r"\1(a)",
    r"(a\1)",
    r"(?<=(a)\1)",
    r"^(?=(a|b))\1",
    r"(?i)(a)\1",
    r"(^a)\1",
    r"(a)\2",
    r"(?<n>a)\k<m>",
    r"(a)[\1]",
    r"(a)[\k]",
    "(a)" * 5 + "".join(rf"\{number}" for number in range(1, 6)),
]


def language(pattern: str, bound: Bound) -> list[bool]:
    """Whether each of the words matches."""
    terms = Terms()
    term = regex_term(terms, pattern, whole=False, bound=bound)
    return [terms.matches(term, word) for word in WORDS]


@pytest.mark.parametrize("pattern", EXACT)
def test_groups_of_few_words_are_exact(pattern: str) -> None:
    """Each word of the group is written out, and so there is one language."""
    expected = [re.search(pattern, word) is not None for word in WORDS]
    assert any(expected) and not all(expected)
    for bound in ("exact", "inner", "outer"):
        assert language(pattern, bound) == expected


@pytest.mark.parametrize("pattern", BOUNDED)
def test_other_groups_lie_between_two_languages(pattern: str) -> None:
    """What the inner language has matches; what matches is in the outer language."""
    with pytest.raises(UnsupportedPatternError, match="back-references are not regular"):
        language(pattern, "exact")
    expected = [re.search(pattern, word) is not None for word in WORDS]
    inner, outer = language(pattern, "inner"), language(pattern, "outer")
    assert any(inner) and all(one <= two <= three for one, two, three in zip(inner, expected, outer, strict=True))


@pytest.mark.parametrize("pattern", REFUSED)
def test_other_references_are_refused(pattern: str) -> None:
    """The place is that of the first reference."""
    for bound in ("exact", "inner", "outer"):
        with pytest.raises(UnsupportedPatternError, match="back-references are not regular") as caught:
            language(pattern, bound)
    assert caught.value.place.offset == re.search(r"\\[1-9k]", pattern).start()  # type: ignore[union-attr]


@pytest.mark.parametrize(
    "pattern",
    [
        "^" + "(.)" * 4 + r"\1\2\3\4$",
        "^(" + "a?" * 90 + r")\1$",
        "^((?:" * 25 + "a" + "*b?)*)" * 25 + r"\1$",
        "^(" + "(?:" * 190 + "a" + ")?" * 190 + r")\1$",
        "(" + "a" * 30_000 + r")\1",
        r"^((?:[ab]{1,5}x?){3,40})\1$",
        r"^(\p{L}*)\1$",
    ],
    ids=lambda pattern: pattern[:20],
)
def test_large_groups(pattern: str) -> None:
    """Many words, parts or levels: an answer with bounded work, or an error of ours."""
    for bound in ("exact", "inner", "outer"):
        with at_most(3_000_000):
            try:
                compile.regex_code(pattern, False, bound)
            except (UnsupportedPatternError, LimitError):
                continue


def test_a_narrowed_pattern_is_named() -> None:
    """The keyword ``pattern`` is narrowed, negated too; the names of members are not."""
    schema = {"type": "string", "pattern": r"^(a+)b\1$"}
    for asked, written in ((schema, [True, True, False]), ({"type": "string", "not": schema}, [False, False, True])):
        grammar = Grammar.from_json_schema(asked)
        assert [grammar.matches(text) for text in ('"aba"', '"aabaa"', '"aab"')] == written
        (narrowed,) = grammar.narrowed
        assert narrowed.place.keyword == "pattern" and narrowed.place.offset == 6 and narrowed.left_out
    assert grammar.matches('"ab"') and grammar.matches('"x"')
    with pytest.raises(UnsupportedSchemaError, match="cannot be enforced exactly"):
        Grammar.from_json_schema(schema, on_unsupported="error")
    with pytest.raises(UnsupportedSchemaError, match="back-references"):
        Grammar.from_json_schema({"patternProperties": {schema["pattern"]: False}})
    names = Grammar.from_json_schema({"patternProperties": {r"^(a|b)\1$": {"type": "integer"}}})
    assert names.matches('{"aa": 1, "ab": ""}') and not names.matches('{"bb": ""}')
