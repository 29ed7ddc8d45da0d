"""Strings of bounded length: their masks come from those without the bound, and are what steps accept."""

from __future__ import annotations

from itertools import product

import pytest

from toolgrammar.core import Grammar, Vocabulary

# Letters, marks, white space of one to three bytes, whole characters, and beginnings of characters.
PIECES = (b"a", b"@", b'"', b" ", "\u00a0".encode(), "\u3000".encode(), "é".encode(), b"\xc2", b"\xe3\x80", b"\\")
TOKENS = sorted(
    {b"".join(each) for size in (1, 2, 3) for each in product(PIECES, repeat=size)}
    | {bytes((byte,)) for byte in range(256)}
    | {piece * size for piece in (b"a", b" ", "é".encode(), b" a", b"a@") for size in range(4, 12)}
    | {b"a" * size + b'"' for size in range(4, 12)}
)
VOCABULARY = Vocabulary([*TOKENS, None], eos=[len(TOKENS)])

SCHEMAS = [
    {"pattern": r"^(?:\S+\s+){0,4}\S+$", "maxLength": 20},
    {"pattern": r"^(?:\S+\s+){0,4}\S+$", "maxLength": 11, "minLength": 4},
    {"pattern": r"^\S+@\S+$", "maxLength": 14, "minLength": 5},
    {"pattern": r"^\S+@\S+$", "maxLength": 40},
    {"pattern": r"^(aé|@@@)*$", "maxLength": 13},
    {"pattern": r"^(a|é{5}) @*$", "maxLength": 9, "minLength": 3},
    {"pattern": r"^\S*$"},
    {"pattern": r"^[^@\s]+$", "maxLength": 30},
]
TEXTS = ["", "a", "aa é", "é@", "a@é", "aé@@@", "@@@aéaéa", "a a a a", "aaaaa a", "ééééé @@"]


@pytest.mark.parametrize("schema", SCHEMAS, ids=str)
def test_masks_are_what_steps_accept(schema):
    """After every beginning of some texts, a token is in the mask if and only if the matcher accepts it."""
    constraint = Grammar.from_json_schema({"type": "string", **schema}).bind(VOCABULARY)
    seen = 0
    for text in dict.fromkeys(whole[:size] for whole in TEXTS for size in range(len(whole) + 1)):
        matcher = constraint.matcher()
        if matcher.accept_bytes(b'"' + text.encode()):
            seen += 1
            accepted = [token for token in range(len(TOKENS) + 1) if matcher.fork().accept(token)]
            assert matcher.allowed_tokens() == accepted, text
    assert seen >= 3


@pytest.mark.parametrize("pattern", [r"^(?:\S+\s+){0,49}\S+$", r"^\S+@\S+$"])
def test_positions_far_from_the_bound_share_a_walk(pattern):
    """The number of characters that are left costs no walk of its own, until a token may be too long."""
    constraint = Grammar.from_json_schema({"type": "string", "pattern": pattern, "maxLength": 200}).bind(VOCABULARY)
    matcher = constraint.matcher()
    assert matcher.accept_bytes(b'"a')
    assert len(matcher.allowed_tokens()) > 100
    visited = constraint.counters()["mask_visited"]
    for _ in range(150):
        assert matcher.accept_bytes(b"a")
        matcher.allowed_tokens()
    assert constraint.counters()["mask_visited"] == visited
