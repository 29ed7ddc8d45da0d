"""Assertions as intersections, complements and automata, against Python's `re` and the definition of matching."""

from __future__ import annotations

import random
import re
from itertools import product

import pytest

from toolgrammar.core import UnsupportedPatternError
from toolgrammar.core.language.terms import Terms
from toolgrammar.core.regex.compile import regex_term
from toolgrammar.core.regex.parser import WORD, parse
from toolgrammar.core.regex.syntax import Alt, Chars, Empty, End, Look, Regex, Repeat, Seq, Start, WordBoundary

from .patterns import random_pattern

ALPHABET = "ab-"
#: Every text of up to five characters.
TEXTS = ["".join(text) for size in range(6) for text in product(ALPHABET, repeat=size)]


class Matching:
    """Where a pattern matches in a text, by the definition: from each place, the set of places at which it can end."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._known: dict[tuple[int, int], frozenset[int]] = {}

    def is_found(self, node: Regex) -> bool:
        """Return True if the pattern matches somewhere."""
        return any(self._ends(node, start) for start in range(len(self._text) + 1))

    def _ends(self, node: Regex, start: int) -> frozenset[int]:
        key = id(node), start
        if key not in self._known:
            self._known[key] = frozenset(self._find(node, start))
        return self._known[key]

    def _find(self, node: Regex, start: int) -> set[int]:
        if isinstance(node, Chars):
            return {start + 1} if start < len(self._text) and self._text[start] in node.charset else set()
        if isinstance(node, Seq):
            ends = {start}
            for item in node.items:
                ends = {end for place in ends for end in self._ends(item, place)}
            return ends
        if isinstance(node, Alt):
            return {end for item in node.items for end in self._ends(item, start)}
        if isinstance(node, Repeat):
            return self._repeat(node, start)
        return {start} if self._holds(node, start) else set()

    def _repeat(self, node: Repeat, start: int) -> set[int]:
        ends = {start}
        for _ in range(node.min):
            ends = {end for place in ends for end in self._ends(node.item, place)}
        found, left = set(ends), node.max
        while ends and (left is None or left > node.min):
            ends = {end for place in ends for end in self._ends(node.item, place)} - found
            found |= ends
            left = None if left is None else left - 1
        return found

    def _holds(self, node: Regex, place: int) -> bool:
        if isinstance(node, Start):
            return place == 0
        if isinstance(node, End):
            return place == len(self._text)
        if isinstance(node, WordBoundary):
            sides = self._text[max(place - 1, 0) : place], self._text[place : place + 1]
            before, after = (side != "" and side in WORD for side in sides)
            return (before == after) is node.negated
        if isinstance(node, Look) and node.ahead:
            return (self._ends(node.item, place) != frozenset()) != node.negated
        if isinstance(node, Look):
            return any(place in self._ends(node.item, start) for start in range(place + 1)) != node.negated
        assert isinstance(node, Empty)
        return True


def agrees(pattern: str, texts: list[str]) -> None:
    """The pattern is found in exactly those of the texts in which it is by definition, and in which `re` finds it."""
    terms = Terms()
    term = regex_term(terms, pattern, whole=False)
    tree = parse(pattern)
    found = [terms.matches(term, text) for text in texts]
    assert found == [Matching(text).is_found(tree) for text in texts], pattern
    assert terms.is_empty(term) <= (True not in found), pattern
    try:
        expected = re.compile(pattern.replace("$", r"\Z"), re.ASCII)  # `re` lets $ match before a last newline
    except re.error:  # look-behinds of several widths
        return
    first = r"\B" in pattern  # `re` finds \B in no empty text, before Python 3.14
    assert found[first:] == [expected.search(text) is not None for text in texts[first:]], pattern


@pytest.mark.parametrize(
    "pattern",
    [
        "^a", "b$", "^$", "^", "$", "a^", "$b", "^^a$$", "(^|-)a(-|$)", "(^a|b$)", "a(?=b)", "a(?!b)", "(?=a)", "(?!a)b",
        "(?<=a)b", "(?<!a)b", "(?<!^)a", r"\ba\b", r"\Ba", r"a\B", r"\b", r"\B", "^(?=.*a)(?=.*b)", "^(?!.*--)[ab-]+$",
        "^(?!-)[a-]+(?<!-)$", "(?=ab)a", "(?<=ab)-|^b", "a(?=-|$)", "(?:^|(?<=-))a", "(?!)", "(?=)a", "a(?=b(?!-))",
        "(?<=(?<!b)a)-", "^(a|(?=b))b$", "(a(?!a))+$", "^(?:a(?=b)b?){1,3}$", "(?:^a)?b", "(?:a$)*b", "((?=a)a|b)+-",
        "^(?:(?!b).){2}$", "(?=a)*b", "(?!a){2}b",
        # in repetitions
        "^([^-]+(-|$)){3,}$", "^(a?((-{2})|([ab]*))($|a))*$", r"^(?:(?=a)\w+|\bb\b)*$", "^(a(?!b)|b)*$", "^(?:(?<=a)b|a)*$",
        "^(?:a(?=.*b)|b(?<=a.*))*$", "^(?:(?!.*b)a|-)*$", "^(?:(?!ab).)*$", "^(?:(?!ab).){2,4}-$", r"^(?:\b\w+\b-?)+$",
        "^(?:(?=(?:ab|-)*$)a?b?-?)+$", "(?:^|-)(?:a(?!$))*$", r"^(?:(?:\ba)*|(?<!b)-)+$", "^(?:(?:a|(?=b))b){2,4}$",
        # without width
        "^(?:(?=a)|b){2}a", "^(?:(?=a)|b)*$", r"^(?:\b|-){3}$", "(?:(?=a)(?=b)|-)+$", "^(?:(?!a)|a){4,5}$",
        # look-behinds that look ahead, up to their end or at it
        r"(?<=\ba)-", r"^a(?<=a\b)-", "(?<=a(?=b))b", "(?<!a(?!-).)b", r"(?<=(?<=a(?=.)).(?=b$))b", r"(?:(?<=a\b)-|a)*b",
        "(?<=^$)", "(?<=(?!ab)[ab]{2})-", "(?<=$a)b", "(?<=(?:a$|b)-)b",
    ],
)  # fmt: skip
def test_known_patterns(pattern: str) -> None:
    """Each kind of assertion, at the ends and in the middle, in repetitions and in one another."""
    agrees(pattern, TEXTS)


def test_any_pattern_is_exact() -> None:
    """A random pattern matches what the definition says, or is refused; few are, most by a look-behind that looks
    ahead."""
    rng = random.Random(15)
    refused: list[str] = []
    for _ in range(700):
        pattern = random_pattern(rng, rng.randint(2, 5))
        try:
            agrees(pattern, [*TEXTS[:40], *("".join(rng.choices(ALPHABET, k=rng.randint(4, 8))) for _ in range(20))])
        except UnsupportedPatternError:
            refused.append(pattern)
    assert len(refused) <= 25, refused


@pytest.mark.parametrize(
    ("pattern", "accepted", "refused"),
    [
        (r"^([^,]+(,|$)){3,}$", ["a,b,c", "aa,b,c,"], ["a,b", "a,b,,c", ""]),
        (r"^(\/?((\.{2})|([a-z0-9\-]*))($|\/))*$", ["", "/", "a/b", "../a-1/", "/a"], ["a.b", ".", "A/"]),
        (r"^(?:(?!--)[a-z-]){1,900}$", ["a" * 900, "-a-"], ["", "a--b", "a" * 901]),
        (r"^(?:\bfoo\b|-)+$", ["foo", "foo-foo", "-"], ["foofoo", "", "fo"]),
        (r"(?<=\b[a-z]{1,20}(?=[a-z]{1,20}!))x", ["axb!"], ["x!", "axb", "xb!"]),
    ],
)
def test_patterns_as_people_write_them(pattern: str, accepted: list[str], refused: list[str]) -> None:
    """Patterns of real schemas, and longer texts than can be tried one by one."""
    terms = Terms()
    term = regex_term(terms, pattern, whole=False)
    assert [text for text in accepted if not terms.matches(term, text)] == []
    assert [text for text in refused if terms.matches(term, text)] == []


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        ("a" * 1500 + r"\b", "a" * 1500),
        ("(?=a" * 190 + ")" * 190, "a" * 190),
        (r"\b" * 300 + "-", "a-"),
        ("(?:^|a)" * 500 + "b", "b"),
        ("^" + "a(?!b)" * 500 + "$", "a" * 500),
        ("a" * 3_000, "a" * 3_000),
    ],
)
def test_long_and_deep_patterns(pattern: str, text: str) -> None:
    """Long sequences, also without assertions, and deep nesting of assertions are read."""
    terms = Terms()
    term = regex_term(terms, pattern, whole=False)
    assert terms.matches(term, text) and not terms.matches(term, text[:-1])


def test_a_pattern_of_many_characters_is_read_once() -> None:
    """A sequence of 25,000 characters is one term, however often it is read, and differs from a longer one."""
    terms = Terms()
    one, same, longer = (regex_term(terms, "a" * size, whole=True) for size in (25_000, 25_000, 25_001))
    assert one == same != longer and not terms.matches(one, "a" * 99)


def test_what_is_read_does_not_depend_on_the_callers_depth() -> None:
    """A deep pattern is read by a caller that is deep in functions itself, as a web server is."""

    def read(depth: int) -> int:
        return read(depth - 1) if depth else regex_term(terms, "(?=a" * 190 + ")" * 190, whole=False)

    terms = Terms()
    assert terms.matches(read(400), "a" * 190)


@pytest.mark.parametrize(
    "pattern",
    [
        "^(?:(?<!a.{20})b|a|c)*$",
        "(?:" * 150 + "a(?!b)" + ")+" * 150,
        "(?:" * 150 + "a(?!b)" + "){1,3}" * 150,
        "^(?:(?!b)a{1,3}|c){1,5000}-$",
        "".join(f"(?<!{char}.*)x" for char in "abcdefghijkl"),
        "(?<!a(?!-b).)b",
        "(?<=(?<=a(?=.b)).(?=b$))b",
        "(?<=^(?:a(?=.*b))+)-",
        "(?<!(?=b)(?:a|b)*)-",
    ],
)
def test_too_complex_assertions_are_unsupported(pattern: str) -> None:
    """A pattern whose automaton would be too large, or with a look-behind that looks ahead beyond its end, is refused
    when it is read, with its place, as not supported."""
    with pytest.raises(UnsupportedPatternError) as caught:
        regex_term(Terms(), pattern, whole=False)
    assert caught.value.place is not None and caught.value.place.offset == 0
    assert "repetitions" in str(caught.value)
