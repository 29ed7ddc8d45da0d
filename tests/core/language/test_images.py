"""Images: a context-free language within a regular one, and texts whose characters are spelled."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable

import pytest

from toolgrammar.core import Grammar, LimitError
from toolgrammar.core.language.images import Spelling, image, json_escaped
from toolgrammar.core.language.terms import Terms

#: Balanced brackets with counted, ambiguous and empty parts: sums, and lists of one to three words.
SUMS = Grammar.from_lark('start: sum\nsum: sum "+" unit | unit\nunit: /[ab]+/ | "(" sum ")"\n')
LISTS = Grammar.from_lark('start: word~1..3\nword: "a" | "(" word* ")" | ""\n')


def made(grammar: Grammar, within: Callable[[Terms], int] | None = None, spelling: Spelling | None = None) -> Grammar:
    """Return an image of a grammar."""
    return Grammar(
        lambda nodes: image(nodes, grammar._node(nodes), within=within and within(nodes.terms), spelling=spelling),
        ("image", object()),
    )


def texts(alphabet: str, most: int) -> list[str]:
    """Every text of at most some characters."""
    return ["".join(chars) for size in range(most + 1) for chars in itertools.product(alphabet, repeat=size)]


@pytest.mark.parametrize("marker", ["+b", "a+b)", "))", "aa", ")+", "(", "+(a"])
def test_without_a_marker(marker: str) -> None:
    """Exactly the texts that do not contain it, wherever rules meet in it."""
    without = made(SUMS, lambda terms: terms.not_(terms.sequence([terms.ALL, terms.literal(marker), terms.ALL])))
    found = [text for text in texts("ab+()", 6) if SUMS.matches(text)]
    assert len(found) > 100 and any(marker in text for text in found)
    assert [text for text in found if without.matches(text)] == [text for text in found if marker not in text]
    assert not any(without.matches(text) for text in texts("a+()", 5) if not SUMS.matches(text))


@pytest.mark.parametrize(("least", "most"), [(0, 3), (2, 5), (4, 4)])
def test_bounded_length(least: int, most: int) -> None:
    """Repetitions of parts that may be empty, with and without bounds."""
    bounded = made(LISTS, lambda terms: terms.repeat(terms.ANY, least, most))
    for text in texts("a()", 7):
        assert bounded.matches(text) == (LISTS.matches(text) and least <= len(text) <= most), text


def test_no_text_is_left() -> None:
    """An intersection without texts is empty, whatever its rules look like."""
    assert not made(SUMS, lambda terms: terms.literal("a+")).matches("a+")
    with pytest.raises(LimitError, match="300 states"):
        made(SUMS, lambda terms: terms.repeat(terms.ANY, 0, 400)).matches("a")


def test_json_strings() -> None:
    """Every spelling decodes to a text of the grammar; raw, shortest and of ASCII alone are all taken."""
    quoted = Grammar.from_lark('start: item+\nitem: /[^\\x00]/ | "(" item* ")" | "\\u0000"\n')
    escaped = made(quoted, spelling=json_escaped)
    some = [*'ab"\\/\b\t\n\f\r\x00\x1f\x7f\x80éÿ\u2028\ud7ff\ue000\uffff😀\U00010000\U0010ffff', "(é)", "é😀\n"]
    for text in some:
        for is_ascii in (True, False):
            spelled = json.dumps(text, ensure_ascii=is_ascii)[1:-1]
            assert escaped.matches(spelled), spelled
    for wrong in ('"', "\\", "\\x41", "\n", "\\ud83d", "\\ude00", "\\ud83d\\ud83d", "\\u00g0", "\\u0041", ""):
        assert not escaped.matches(wrong), wrong
    few = made(Grammar.from_lark('start: "[" start? "]" | /[\\u00e8-\\u0100]/ | /[😀-😂]/'), spelling=json_escaped)
    for code in (0xE7, 0xE8, 0xE9, 0xFF, 0x100, 0x101, 0x1F5FF, 0x1F600, 0x1F602, 0x1F603):
        units = chr(code).encode("utf-16-be")
        words = [units[at : at + 2].hex() for at in range(0, len(units), 2)]
        for form in (str.lower, str.upper):
            spelled = "".join(f"\\u{form(word)}" for word in words)
            is_in = 0xE8 <= code <= 0x100 or 0x1F600 <= code <= 0x1F602
            assert few.matches(spelled) == is_in == few.matches(chr(code)), spelled
