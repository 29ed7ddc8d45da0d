"""Strings that lack some names: their masks are kept as differences to those of the free string, and are what steps
accept."""

from __future__ import annotations

from itertools import product

import pytest

from toolgrammar.core import Grammar, Vocabulary

LETTERS = [bytes((byte,)) for byte in b"abcdefghijklmnopqrstuvwxyz"]
WORDS = [b"".join(each) for size in (2, 3) for each in product(LETTERS, repeat=size)]
ENDS = [
    b'a"',
    b'act"',
    b'e":',
    b'e": ',
    b'e": {',
    b'":',
    b'": ',
    b'": {',
    b'": t',
    b'": "',
    b'","',
    b'"}',
    b'", "',
    b'e"}',
]
ODD = [b"\\u00", b"\\n", b'\\n"', b'\\"', "é".encode(), 'é":'.encode(), b"a\\", b"e\\n", b' "', b' "a', b'{"', b'{"ac']
ODD += [
    b"ac\\u0074",
    b"ac\\u00",
    b"a\\u0063t",
    b"act\\u",
    b'act\\u00e9"',
    b"\\u0061",
    b'b\\n"',
    b'"b":',
    b'"act',
    b'"zebra"',
    b'"zebras"',
]
TOKENS = [*(bytes((byte,)) for byte in range(256)), *WORDS, *ENDS, *ODD]
VOCABULARY = Vocabulary([*TOKENS, None], eos=[len(TOKENS)])
NAMES = ["active", "action", "act", "zebra", "new\nline", "é", "b"]
SCHEMA = {
    "properties": {name: {"type": "boolean"} for name in NAMES},
    "additionalProperties": {"type": "string"},
    "type": "object",
}
TEXTS = ['{"active": true, "acts": "x"}', '{"new\\nline": true, "actionable": ""}', '{"": "", "zebras": "", "é!": "b"}']


def constraint(order: str = "any"):
    """Return the constraint of objects with some names and any others."""
    return Grammar.from_json_schema(SCHEMA, property_order=order).bind(VOCABULARY)


def test_masks_are_what_steps_accept():
    """After every beginning of some texts, a token is in the mask if and only if the matcher accepts it."""
    for order in ("any", "schema"):
        bound = constraint(order)
        seen = 0
        for text in dict.fromkeys(whole.encode()[:size] for whole in TEXTS for size in range(len(whole.encode()) + 1)):
            matcher = bound.matcher()
            if not matcher.accept_bytes(text):
                continue
            seen += 1
            accepted = []
            for token in range(0, len(TOKENS), 1 if seen % 8 == 0 else 17):
                if matcher.accept(token):
                    matcher.rollback(1)
                    accepted.append(token)
            some = set(range(0, len(TOKENS), 1 if seen % 8 == 0 else 17))
            assert [token for token in matcher.allowed_tokens() if token in some] == accepted, text
        assert seen > 40


def test_a_position_in_a_name_takes_little_memory():
    """The tokens of a position are those of the free string without a few, and no copy of them."""
    bound = constraint()
    matcher = bound.matcher()
    assert matcher.accept_bytes(b'{"x')
    matcher.allowed_tokens()
    words = bound.words
    for text in ([b"a"], [b"a", b"c"], [b"a", b"c", b"t"], [b"a", b"c", b"t", b"i"]):
        matcher = bound.matcher()
        assert matcher.accept_bytes(b'{"') and matcher.accept_bytes(b"".join(text))
        before = bound.counters()["mask_bytes"]
        matcher.allowed_tokens()
        assert bound.counters()["mask_bytes"] - before < 2 * words


def test_no_rows_are_derived_for_words_that_nobody_writes():
    """The tokens of a string that lacks many words are found from the words, not from the states inside them."""
    names = ["".join(each) for each in product("abcdefgh", repeat=3)]
    schema = {"type": "object", "properties": {key: {"type": "null"} for key in names}}
    bound = Grammar.from_json_schema(schema, property_order="any").bind(VOCABULARY)
    for text in (b"{", b'{"', b'{"a', b'{"ab'):
        matcher = bound.matcher()
        assert matcher.accept_bytes(text)
        before = bound.counters()["rows"]
        assert matcher.allowed_tokens()
        assert bound.counters()["rows"] - before < 60, text


@pytest.mark.parametrize("name", ["x", "é", "xé", "éx", "naïve", "中", "😀b"])
def test_written_names_of_any_characters_are_not_offered_again(name: str) -> None:
    """A token that holds the rest of a name that was written, whatever its characters, is in no mask."""
    spelled = f'"{name}"'.encode()
    ends = [spelled[at:] for at in range(len(spelled))]
    tokens = [*(bytes((byte,)) for byte in range(256)), *ends, *(end + b":" for end in ends)]
    vocabulary = Vocabulary([*tokens, None], eos=[len(tokens)], cache_dir=False)
    matcher = Grammar.from_json_schema({"type": "object"}, whitespace="compact").bind(vocabulary).matcher()
    assert matcher.accept_bytes(b'{%b:1,"b":2,' % spelled)
    for byte in spelled:
        allowed = matcher.allowed_tokens()
        assert allowed == [token for token in range(vocabulary.size) if matcher.fork().accept(token)]
        if not matcher.accept(byte):
            break
    assert byte == 0x22


@pytest.mark.parametrize("order", ["sorted", "reversed"])
def test_names_so_far_forbid_their_repetition_alone(order: str) -> None:
    """Within a name, a mask lacks what would repeat one of 600 names so far, and has every other token that ends it."""
    words = sorted(WORDS, reverse=order == "reversed")[:600]
    closers = [word + b'":' for word in WORDS[::7]] + [word + b'"' for word in WORDS[::5]]
    vocabulary = Vocabulary([bytes((byte,)) for byte in range(256)] + closers + [None], eos=[256 + len(closers)])
    matcher = Grammar.from_json_schema({"type": "object"}, whitespace="compact").bind(vocabulary).matcher()
    assert matcher.accept_bytes(b"{" + b",".join(b'"%b":0' % word for word in words) + b',"')
    for begun in (b"", b"a", b"ab", b"zz"):
        fork = matcher.fork()
        assert fork.accept_bytes(begun)
        allowed = fork.allowed_tokens()
        for token, closer in enumerate(closers, 256):
            name = begun + closer[: closer.index(b'"')]
            assert (token in allowed) == (name not in words)
