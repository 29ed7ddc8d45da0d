"""Masks of strings of so many characters of a class, and of strings that are nearly free: exact, and few steps."""

from __future__ import annotations

import gc
import random
import weakref

import pytest

from toolgrammar.core import Grammar, Vocabulary
from toolgrammar.core.automaton import lazy_dfa as program_module

PIECES = [
    b"a", b"b", b"Z", b"0", b"-", b"_", b" ", b'"', b"\\", b"u", b"\\u", b"00", b"41", b"\\n", b'",', b"foo", b"bar",
    "é".encode(), b"\xc3", b"\xa9", "😀".encode(), b"\xf0", b"\x9f\x98", b"\\ud83d", b"\xed", b"\xe0", b"\xa0",
]  # fmt: skip


def vocabulary() -> Vocabulary:
    """Single bytes, random words of pieces, and runs of one letter: enough for subtrees that are answered as a whole."""
    draw = random.Random(7)
    tokens = {bytes((byte,)) for byte in range(256)} | {b"a" * size for size in range(2, 90)}
    while len(tokens) < 900:
        tokens.add(b"".join(draw.choice(PIECES) for _ in range(draw.randint(2, 6))))
    return Vocabulary([*sorted(tokens), None], eos=[len(tokens)])


VOCABULARY = vocabulary()

#: How many nodes the trie of the vocabulary has.
NODES = len({token[:size] for token in VOCABULARY.tokens if token for size in range(len(token) + 1)})

STRINGS = [
    {"pattern": "^.{1,20}$"},
    {"pattern": "^[a-z0-9_-]{3,30}$"},
    {"pattern": "^[a-z]+$", "maxLength": 10},
    {"pattern": "^[a-zA-Z][a-z0-9]{0,9}$"},
    {"pattern": "^a{2,40}$"},
    {"pattern": "^\\w{2,}é?$"},
    {"pattern": "^[^a]*$", "maxLength": 3},
    {"pattern": "^(foo|ba)"},
    {"pattern": "a.*b", "minLength": 3},
    {"pattern": "^(?!foo).{0,12}$"},
    {"not": {"const": "foo"}},
    {"not": {"pattern": "^a"}},
    {"minLength": 2, "not": {"enum": ["ab", "foo"]}},
    {"pattern": "foo"},
    {"pattern": "a.*,.*b$"},
    {"pattern": "^.+:a{2}-b+$"},
    {"pattern": "^[^b]+b[^b]+$"},
    {"pattern": "foo|^[^a]+0", "minLength": 4},
    {"pattern": "\\u00e9", "not": {"const": "aé"}},
]


@pytest.mark.parametrize("keywords", STRINGS, ids=str)
def test_masks_equal_steps(keywords: dict) -> None:
    """Every token is in the mask iff the automaton takes its bytes, at several places of several texts."""
    draw = random.Random(str(keywords))
    constraint = Grammar.from_json_schema({"type": "string", **keywords}).bind(VOCABULARY)
    for _ in range(4):
        matcher = constraint.matcher()
        for _ in range(6):
            allowed = matcher.allowed_tokens()
            taken = []
            for token in range(VOCABULARY.size):
                if matcher.accept(token):
                    matcher.rollback(1)
                    taken.append(token)
            assert allowed == taken
            text = [token for token in allowed if token < VOCABULARY.size - 1]
            if not text:
                break
            assert matcher.accept(draw.choice(text))


@pytest.mark.parametrize("pattern", ["foo", "^[^/]*/foo", ".+:b"])
def test_a_pattern_anywhere_walks_to_quotes_alone(pattern: str) -> None:
    """Where nearly any character may follow, later masks visit a small part of the trie."""
    constraint = Grammar.from_json_schema({"type": "string", "pattern": pattern}).bind(VOCABULARY)
    visited = []
    for text in (b'"', b'"b', b'"f', b'"fo'):
        before = constraint.counters()["mask_visited"]
        matcher = constraint.matcher()
        assert matcher.accept_bytes(text)
        matcher.allowed_tokens()
        visited.append(constraint.counters()["mask_visited"] - before)
    assert max(visited) < 0.7 * NODES


def test_a_counted_class_is_walked_once() -> None:
    """However many characters were written, the trie is walked for the class once, as soon as it was met often."""
    vocabulary = Vocabulary(VOCABULARY.tokens, eos=VOCABULARY.eos, cache_dir=False)
    constraint = Grammar.from_json_schema({"type": "string", "pattern": "^[a-z]{3,63}$"}).bind(vocabulary)
    matcher = constraint.matcher()
    assert matcher.accept_bytes(b'"')
    for number in range(50):
        assert matcher.accept_bytes(b"a")
        matcher.allowed_tokens()
        if number == 10:
            before = constraint.counters()["mask_visited"]
    assert constraint.counters()["mask_visited"] == before


def test_a_nearly_free_string_visits_what_differs() -> None:
    """A string that excludes a word is compared with the free string, and only where they differ."""
    free = Grammar.from_json_schema({"type": "string"}).bind(VOCABULARY)
    other = Grammar.from_json_schema({"type": "string", "not": {"const": "Z"}}).bind(VOCABULARY)
    visited = []
    for constraint in (free, other):
        matcher = constraint.matcher()
        assert matcher.accept_bytes(b'"')
        before = constraint.counters()["mask_visited"]
        matcher.allowed_tokens()
        visited.append(constraint.counters()["mask_visited"] - before)
    nodes = 1 + len({token[:size] for token in VOCABULARY.tokens if token for size in range(1, len(token) + 1)})
    assert visited[1] < nodes // 2


def test_escapes_of_nearly_free_strings() -> None:
    """A whole escape in one token is judged alike by the mask and by the step (printable ASCII is spelled plainly)."""
    tokens = [b'"', b"\\u0041", b"\\u00e9", b"x", None]
    matcher = Grammar.from_json_schema({"type": "string", "not": {"const": "xy"}}).bind(
        Vocabulary(tokens, eos=[4])
    ).matcher()  # fmt: skip
    assert matcher.accept(0)
    assert matcher.allowed_tokens() == [token for token in range(4) if matcher.fork().accept(token)]


def test_a_full_program_gives_way(monkeypatch: pytest.MonkeyPatch) -> None:
    """Past the bound new texts begin with a fresh program, old texts go on with theirs, and then it is freed."""
    grammar = Grammar.from_json_schema({"type": "string", "pattern": "^(a|b)*a(a|b){9}$"})
    constraint = grammar.bind(VOCABULARY)
    old = constraint.matcher()
    assert old.accept_bytes(b'"abababab') and not constraint.program.is_full
    monkeypatch.setattr(program_module, "PROGRAM_MEMORY", 1)
    first = weakref.ref(constraint.program)
    assert constraint.program.is_full
    new = constraint.matcher()
    assert constraint.program is not first() and grammar.program is not first()
    assert new.accept_bytes(b'"abababab') and new.allowed_tokens() == old.allowed_tokens()
    assert old.accept_bytes(b'aaaaaaaaaa"') and old.is_accepting
    del old
    gc.collect()
    assert first() is None


def test_memory_stays_bounded_over_many_texts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Random texts through one constraint never let its program grow far past the bound."""
    monkeypatch.setattr(program_module, "PROGRAM_MEMORY", 600_000)
    draw = random.Random(3)
    constraint = Grammar.from_json_schema({"type": "string", "pattern": "^(a|b)*a(a|b){12}$"}).bind(VOCABULARY)
    programs = set()
    for _ in range(60):
        matcher = constraint.matcher()
        programs.add(id(constraint.program))
        assert matcher.accept_bytes(b'"' + bytes(draw.choice(b"ab") for _ in range(40)))
        assert constraint.program.rows.byte_count() < 1_200_000
    assert len(programs) > 1
