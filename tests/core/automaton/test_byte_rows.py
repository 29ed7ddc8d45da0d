"""Byte rows: how decoded text is spelled, exactly, and never a dead end."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolgrammar.core import Grammar
from toolgrammar.core.automaton.byte_rows import ByteRows
from toolgrammar.core.automaton.encoding import DEAD, DONE, OPEN
from toolgrammar.core.automaton.shared_terms import SharedTerms
from toolgrammar.core.language.terms import Terms
from toolgrammar.core.regex.compile import regex_term
from toolgrammar.core.schema.scalars.common import FORMATS, common_languages, common_values
from toolgrammar.core.schema.scalars.formats import format_term
from toolgrammar.core.testing import byte_vocabulary

PATTERNS = [
    "", "^[a-z]+$", "^a{2,3}$", "[^a]", "^(18|2[0-2]):[0-5]0$", "^\\w+é?$", "^[\\u0000-\\u001f]*$", '^["\\\\]+$',
    "^[\\u{1F600}-\\u{1F64F}]{1,2}$", "^\\S(.*\\S)?$", "^(?!ab).{2}$", "^\\p{Lu}", "^[\\ud7ff\\ue000]$", "^/+$", "^[^\\x00-\\x7f]$",
]  # fmt: skip
CHARACTERS = st.sampled_from(list('ab"\\/:19 \n\t\x01\x7féß߿ࠀ\ud7ff\ue000\uffff😀🙏𐀀\U0010ffff'))


@pytest.mark.parametrize("pattern", PATTERNS)
@pytest.mark.parametrize("quoted", [True, False])
def test_no_row_is_a_dead_end(pattern: str, quoted: bool) -> None:
    """From every row state that a text can reach, it can be finished, and the shortest way to do so is right."""
    terms = Terms()
    rows = ByteRows(terms)
    queue = [rows.start(regex_term(terms, pattern, whole=False), quoted)]
    seen = set(queue)
    for state in queue[:400]:
        successors = {target for target in rows.row(state) if target != DEAD}
        assert successors or rows.nullable(state), rows.what(state)
        here = state
        for byte in rows.shortest(state):
            here = rows.row(here)[byte]
            assert here != DEAD
        assert rows.nullable(here)
        for target in successors - seen - {DONE}:
            seen.add(target)
            queue.append(target)
        if len(queue) > 2_000:
            break


def reached(rows: ByteRows, start: int, most: int = 150) -> list[list[int]]:
    """The rows of the states that a text can reach, numbered in the order in which it does."""
    number = {DEAD: DEAD, DONE: DONE, start: 1}
    queue = [start]
    table = []
    for state in queue:
        for target in rows.row(state):
            if target not in number and len(queue) < most:
                number[target] = len(queue) + 1
                queue.append(target)
        table.append([number.get(target, -2) for target in rows.row(state)])
    return table


def test_copies_of_a_seed_know_it_and_not_one_another() -> None:
    """Stores that begin with a seed spell as a store of their own does, whatever other copies have added."""
    seed = SharedTerms(lambda terms: [(terms.ALL, True), (regex_term(terms, "^[a-z]+$", whole=False), True)])
    stores = [seed.copies() for _ in PATTERNS]
    for turn in range(2):
        for pattern, (terms, rows) in zip(PATTERNS, stores, strict=True):
            before = len(rows)
            found = reached(rows, rows.start(regex_term(terms, pattern, whole=False), True))
            own = Terms()
            alone = ByteRows(own)
            assert found == reached(alone, alone.start(regex_term(own, pattern, whole=False), True)), (pattern, turn)
            assert rows.seeded() == len(seed.copies()[1]) and (turn == 0 or before == len(rows))


def test_a_seed_ends_where_a_term_is_deferred() -> None:
    """Of languages with deferred parts a seed has the states before them, under the numbers that a smaller one has."""
    common, more = (SharedTerms(*languages) for languages in ((common_languages,), (common_languages, common_values)))
    few, small = common.copies()
    many, large = more.copies()
    assert small.seeded() == len(small) < large.seeded() < len(large) < 2_000  # leap seconds alone have 10,000
    assert [small.what(state) for state in range(len(small))] == [large.what(state) for state in range(len(small))]
    assert [few.shape(term) for term in range(len(few))] == [many.shape(term) for term in range(len(few))]
    day = "2024-02-29"
    texts = [
        "http://a.b/c?d#e",
        "email@a.de",
        day,
        "12345678-1234-1234-1234-123456789012",
        day,
        f"{day}T01:02",
        f"{day}T01:02:03Z",
    ]
    for name, text in zip(FORMATS, texts, strict=True):
        assert many.matches(format_term(many, name), text) and not many.matches(format_term(many, name), text + "/ ")
    for text, valid in {"T15:59:60-08:00": True, "T15:59:60-07:00": False, "T12:00:00.5z": True}.items():
        assert many.matches(format_term(many, "date-time"), f"1990-12-31{text}") == valid


def test_a_row_takes_room_when_it_is_asked_for() -> None:
    """A state that was only numbered has no row, and one that was derived is not derived again."""
    terms = Terms()
    rows = ByteRows(terms)
    start = rows.start(terms.ALL, True)
    rows.derive(start)
    held, count = rows.byte_count(), len(rows)
    rows.derive(start)
    assert (rows.byte_count(), len(rows)) == (held, count)
    body = rows.row(start)[0x22]
    before = rows.row(body)  # not stored
    rows.derive(body)
    assert len(rows) == 11 and rows.byte_count() < held + 4_096
    assert rows.row(body) == before


def spellings(draw: st.DrawFn, text: str, *, raw_ascii: bool) -> str:
    """A JSON string of the text, each character spelled in some legal way."""
    short = {'"': '\\"', "\\": "\\\\", "/": "\\/", "\n": "\\n", "\t": "\\t"}
    pieces = []
    for char in text:
        ways = []
        code = ord(char)
        if code >= 0x20 and char not in '"\\':
            ways.append(char)
        if char in short:
            ways.append(short[char])
        if not (raw_ascii and 0x20 <= code < 0x7F):
            units = char.encode("utf-16-be")
            escape = "".join(f"\\u{units[i] << 8 | units[i + 1]:04x}" for i in range(0, len(units), 2))
            ways.append(draw(st.sampled_from([escape, escape.upper().replace("\\U", "\\u")])))
        pieces.append(draw(st.sampled_from(ways)))
    return '"' + "".join(pieces) + '"'


@given(st.data(), st.text(CHARACTERS, max_size=4), st.sampled_from(PATTERNS))
def test_every_spelling_of_a_character_counts_as_the_character(data: st.DataObject, text: str, pattern: str) -> None:
    """However a string is escaped, it is accepted iff its decoded value matches (printable ASCII written as itself)."""
    grammar = Grammar.from_json_schema({"type": "string", "pattern": pattern})
    spelled = data.draw(st.composite(lambda draw: spellings(draw, text, raw_ascii=bool(pattern)))())
    assert json.loads(spelled) == text
    terms = Terms()
    assert grammar.matches(spelled) == terms.matches(regex_term(terms, pattern, whole=False), text)


@given(st.data(), st.text(CHARACTERS, max_size=5), st.integers(0, 3), st.integers(0, 4))
def test_counted_strings_count_characters(data: st.DataObject, text: str, least: int, more: int) -> None:
    """minLength and maxLength count code points, whatever their spelling."""
    grammar = Grammar.from_json_schema({"type": "string", "minLength": least, "maxLength": least + more})
    spelled = data.draw(st.composite(lambda draw: spellings(draw, text, raw_ascii=False))())
    assert grammar.matches(spelled) == (least <= len(text) <= least + more)


@pytest.mark.parametrize(
    "data",
    [
        b'"\xc0\x80"', b'"\xe0\x80\x80"', b'"\xed\xa0\x80"', b'"\xf4\x90\x80\x80"', b'"\xff"', b'"\x80"', b'"\xc3"',
        b'"\n"', b'"\x00"', b'"\\ud800"', b'"\\udc00"', b'"\\ud800\\ud800"', b'"\\ud83dx"', b'"\\x41"', b'"\\u12g4"', b'"a',
    ],
)  # fmt: skip
def test_what_is_no_string(data: bytes) -> None:
    """Overlong and surrogate UTF-8, raw control characters, lone surrogate escapes and broken escapes are refused."""
    for schema in ({"type": "string"}, {"type": "string", "maxLength": 9}, {"type": "string", "pattern": "^[^z]*$"}):
        assert not Grammar.from_json_schema(schema).matches(data)


@pytest.mark.parametrize("state", [-1, 10**6, 2**31 - 1])
def test_a_row_of_nowhere_is_an_error(state: int) -> None:
    """Every question about a row state that the store does not have raises IndexError."""
    rows = ByteRows(Terms())
    for ask in (rows.row, rows.derive, rows.what, rows.nullable, rows.class_term):
        with pytest.raises(IndexError):
            ask(state)
    with pytest.raises(ValueError, match="no such kind"):
        rows.state(14, 55)
    with pytest.raises(IndexError):
        rows.row(rows.state(OPEN, 10**6))


@pytest.mark.parametrize(
    ("grammar", "text"),
    [
        (Grammar.text(min_chars=1), b"."),
        (Grammar.text(excluding=["<tool_call>", "."], min_chars=2), b"00"),
        (Grammar.text(excluding=["<tool_call>"], min_chars=1), b"."),
        (Grammar.from_regex(r".{3}"), b"..."),
        (Grammar.from_regex(r"[^a]{2}"), b".."),
        (Grammar.from_regex(r"[^.\n]\S"), b"a."),
        (Grammar.from_regex(r"[^\x20-\x7e]"), b"\t"),
        (Grammar.from_json_schema({"type": "string", "pattern": "^[^x]{2}$"}), b'"aa"'),
    ],
)
def test_shortest_texts_can_be_read(grammar: Grammar, text: bytes) -> None:
    """What closes a text by force is no control character where another one may stand: people read it."""
    assert grammar.bind(byte_vocabulary()).matcher().shortest_completion() == text


def test_what_may_be_escaped_leads_from_many_terms_to_the_same_states() -> None:
    """Strings that lack different words have the same states behind a backslash, since words need none."""
    terms = Terms()
    rows = ByteRows(terms)
    escapes = {
        rows.row(rows.body(terms.not_(terms.words(words)), True))[0x5C] for words in (["ab"], ["cd", "é"], ["c"])
    }
    assert len(escapes) == 2
    assert DEAD not in escapes
    free, *_ = (rows.row(rows.row(rows.body(terms.ALL, True))[0x5C]),)
    assert all(rows.row(escape)[byte] == free[byte] for escape in escapes for byte in b'"/bfnrt')
