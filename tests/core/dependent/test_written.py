"""What a JSON text being written has said so far, against a reader that goes forward through all of it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toolgrammar.core.dependent.written import Written

NAMES = st.sampled_from(["a", "b", "aa", 'q"', "\\", "é", "a b", "{", "", "\U0001f600", "\ud800"])
VALUES = st.recursive(
    st.one_of(st.none(), st.integers(0, 12), st.sampled_from(["", "x,y", '"}', "[\\", "é"])),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=8,
)
STYLES = st.sampled_from([{}, {"separators": (",", ":")}, {"indent": 1}, {"ensure_ascii": False}])


def text_of(value: Any, style: dict[str, Any]) -> bytes:
    """A value as JSON, in one of the ways in which it may be written."""
    text = json.dumps(value, **style)
    return text.encode("utf-8", "surrogatepass") if "\ud800" not in text else json.dumps(value).encode()


def endings_of(written: Written) -> tuple[list[bytes], bool]:
    """The continuations of a text that repeat a name, sorted; True if it ends within an escape."""
    endings, is_partial = written.endings()
    return sorted({name[size:] for names, low, high, size in endings for name in names[low:high]}), is_partial


def name_asks(written: Written) -> list[Any]:
    """What a text answers about its names: which repeat one, of a few that are asked about and of many."""
    asked = [
        json.dumps(name, ensure_ascii=False).encode("utf-8", "replace") for name in ("a", "b", "aa", "é", "a b", "")
    ]
    many = [*asked, *[b'"%d"' % number for number in range(20)]]
    return [endings_of(written), *(sorted(written.spelled_names(among)) for among in ((), asked[:1], many))]


class Reader:
    """Reads JSON forward, byte by byte: the open brackets, the names and items in each, and whether in a string."""

    def __init__(self, text: bytes) -> None:
        self.open: list[tuple[int, list[str], int]] = []  # the bracket, the names so far, where the item begins
        self.items: list[list[bytes]] = []
        self.string = -1
        at, last = 0, None
        while at < len(text):
            byte = text[at : at + 1]
            if byte == b'"':
                end = at + 1
                while end < len(text) and text[end] != 0x22:
                    end += 2 if text[end] == 0x5C else 1
                if end >= len(text):
                    self.string = at
                    return
                last = text[at : end + 1]
                at = end
            elif byte in (b"{", b"["):
                self.open.append((byte[0], [], at + 1))
                self.items.append([])
            elif byte in (b"}", b"]"):
                self.open.pop()
                self.items.pop()
            elif byte == b":" and self.open and last is not None:
                self.open[-1][1].append(json.loads(last))
            elif byte == b"," and self.open:
                kind, names, start = self.open[-1]
                self.items[-1].append(text[start:at].strip())
                self.open[-1] = kind, names, at + 1
            at += 1


@settings(max_examples=200, deadline=None)
@given(st.dictionaries(NAMES, VALUES, max_size=4) | st.lists(VALUES, max_size=4), STYLES)
def test_names_and_items_are_those_of_a_reader(value: Any, style: dict[str, Any]) -> None:
    """At every place outside of strings: the names of the innermost open object, the items of the innermost array."""
    text = text_of(value, style)
    for size in range(1, len(text)):
        prefix = text[:size]
        reader = Reader(prefix)
        if reader.string >= 0 or not reader.open:
            continue
        kind, names, start = reader.open[-1]
        written = Written(prefix)
        if kind == 0x7B:
            assert written.names() == names, prefix
        elif prefix[start:].strip() and prefix[-1:] not in b" \n":
            assert written.items() == [*reader.items[-1], prefix[start:].strip()], prefix


@settings(max_examples=200, deadline=None)
@given(st.dictionaries(NAMES, VALUES, min_size=1, max_size=4), STYLES)
def test_the_last_name_is_read_with_those_before(value: dict[str, Any], style: dict[str, Any]) -> None:
    """Where a name ends, it is that name, and the others of the object are those before it."""
    text = text_of(value, style)
    for size in range(1, len(text)):
        before = Reader(text[: size - 1])
        if text[size - 1] == 0x22 and before.string >= 0 and before.open[-1][0] == 0x7B:
            follows = text[size:].lstrip()
            if follows.startswith(b":"):
                name = json.loads(text[before.string : size])
                assert Written(text[:size]).is_repeated() == (name in before.open[-1][1])
                again = text[:size] + b": 0, " + text[before.string : size]
                assert Written(again).is_repeated()


@settings(max_examples=150, deadline=None)
@given(
    st.dictionaries(NAMES, VALUES, min_size=1, max_size=4),
    STYLES,
    st.lists(st.tuples(st.sampled_from(["write", "cut", "suppose", "ask"]), st.integers(0, 30)), max_size=25),
)
def test_answers_depend_on_the_text_alone(value: Any, style: dict[str, Any], steps: list[tuple[str, int]]) -> None:
    """However a text came about, by pieces, with steps back, and with what was only supposed, the answers are the
    same."""
    text = text_of(value, style)
    written, size = Written(), 0
    for step, count in steps:
        if step == "write":
            written.write(text[size : size + count])
            size = min(size + count, len(text))
        elif step == "cut":
            written.suppose(b"")
            size = max(0, size - count)
            written.cut(size)
        supposed = text[size : size + count] if step == "suppose" else b""
        written.suppose(supposed)
        fresh = Written(text[:size] + supposed)
        assert written.text() == fresh.text() == text[:size] + supposed and len(written) == len(fresh)
        reader = Reader(fresh.text())
        if reader.string < 0:
            assert written.names() == fresh.names()
            if reader.open and reader.open[-1][0] == 0x5B:
                assert written.items() == fresh.items()
        assert name_asks(written) == name_asks(fresh)
        written.suppose(b"")


@pytest.mark.parametrize(
    ("text", "endings", "is_odd"),
    [
        ('{"a": 1, ', [b'"a"'], False),
        ('{"a": 1, "', [b'a"'], False),
        ('{"ab": 1, "ac": 2, "a', [b'b"', b'c"'], False),
        ('{"ab": 1, "x', [], False),
        ('{"é": 1, "\\u00', [], True),
        ('{"éa": 1, "\\u00e9', [b'a"'], False),
        ('{"a": "', [], False),
        ('{"a": {', [], False),
        ('[{"a": 1}, {', [], False),
        ('[{"a": 1}, {"b": 2,', [b'"b"'], False),
        ("free text, then a", [], False),
    ],
)
def test_how_a_name_could_be_repeated(text: str, endings: list[bytes], is_odd: bool) -> None:
    """The ways to go on that repeat a name of the innermost open object, as `json.dumps` writes it."""
    assert endings_of(Written(text.encode())) == (endings, is_odd)


def test_names_are_sorted_once() -> None:
    """A text of many names, asked about at each of them, keeps one sorted list that each name joins."""
    written, lists = Written(b"{"), set()
    for number in range(500):
        written.write(b'"%s%d": 0, ' % (b"x" * (number % 7), number))
        ((names, low, high, size),), _ = written.endings()
        assert (low, high, size) == (0, number + 1, 0) and names == sorted(names)
        lists.add(id(names))
        assert written.spelled_names([b'"x1"', b'"1"']) == ([b'"x1"'] if number else [])
    assert len(lists) == 1
    written.write(b'"xxx1')
    ((names, low, high, size),), _ = written.endings()
    same = [name for name in names if name.startswith(b'"xxx1')]
    assert names[low:high] == same and len(same) > 9 and size == len(b'"xxx1')
