"""Parts of the vocabulary's trie that a table takes as a whole: every token in them is one that a step accepts."""

from __future__ import annotations

import random
from itertools import combinations, product

import pytest

from toolgrammar.core import Grammar, Vocabulary
from toolgrammar.core.errors import UnsatisfiableSchemaError

# Letters, marks, whole characters of two to four bytes, the two that ECMAScript's dot leaves out, beginnings and ends of
# characters, and bytes that UTF-8 forbids.
PIECES = (
    *(b"a", b"b", b"-", b'"', b"\\", b"0", "é".encode(), "😀".encode(), b"\xe2\x80\xa8", b"\xe2\x80\xa9", b"\xe2\x80"),
    *(b"\xa8", b"\xc3", b"\xf0\x9f", b"\xed\xa0", b"\xff", b"\n"),
)
TOKENS = sorted(
    {b"".join(each) for size in (1, 2, 3) for each in product(PIECES, repeat=size)} | {bytes((b,)) for b in range(256)}
)
VOCABULARY = Vocabulary([*TOKENS, None], eos=[len(TOKENS)])

PATTERNS = (
    *(
        "^[ab]*$",
        "^.*$",
        "^[^-]*$",
        "^[ab]{2,5}$",
        "^[^-]{3,6}$",
        "^a.{0,7}$",
        "^([ab]-)*$",
        "^[a-zé]+(-[0-9a-f]{1,4})?$",
    ),
    *("b-a", "^(a|b-)*0?$", "^[^a]*(é|-)$", "^(?!.*ab)", "^[ab\\u2028]*$", "^[^\\ud83d]*$"),
)
SCHEMAS = [
    *({"type": "string", "pattern": pattern} for pattern in PATTERNS),
    *({"type": "string", "pattern": pattern, "maxLength": 5} for pattern in PATTERNS[:6]),
    {"type": "string", "not": {"pattern": "a-"}},
    {"type": "string", "not": {"enum": ["ab", "a-b", "é"]}},
    {"type": "string", "pattern": "ab0", "not": {"pattern": "00b|b-a"}},
    {"type": "string", "not": {"pattern": "a0-b"}, "maxLength": 6},
    {"type": "string", "pattern": "^(?:[^-]+-+){0,2}[^-]+$", "maxLength": 7},
    {"type": "string", "minLength": 2, "maxLength": 7},
    *({"type": "string", "pattern": "^a", "minLength": least, "maxLength": 6} for least in (0, 4)),
    *(
        {"type": "string", "pattern": pattern}
        for pattern in ("[!-~]", "[!-Z0-9a-f]{2}", "^[^\u2028]*[a-z]", "^[!-~]*$")
    ),
    *({"type": "object", "propertyNames": {"minLength": least, "maxLength": 5}} for least in (0, 4)),
    {"type": "object", "patternProperties": {"^[a-z0-9]+$": {"type": "null"}, "[b-z]": {"type": "null"}}},
    {"type": "string", "oneOf": [{"pattern": "ab-"}, {"pattern": "b0a"}, {"pattern": "-é"}]},
    {"type": "string", "anyOf": [{"pattern": "a-0"}, {"pattern": "b+a+-"}], "not": {"pattern": "0[ab]0"}},
    {"type": "object", "patternProperties": {"a-b": {"type": "null"}, "b0[ab]": {"type": "boolean"}}},
    {"type": "array", "items": {"type": "string", "pattern": "^[ab0]+$"}},
]
GRAMMARS = [
    *(Grammar.from_json_schema(schema, whitespace="flexible") for schema in SCHEMAS),
    *(Grammar.from_regex(pattern) for pattern in ("[ab]*", "(.|\\n)*é", "[^a]{1,4}0*", "(a|-)*b", "([ab0]{3})*")),
    Grammar.text(excluding=["ab-"]),
    Grammar.until("0") + Grammar.json(),
]


@pytest.mark.parametrize("number", range(len(GRAMMARS)))
def test_masks_are_what_steps_accept(number):
    """Along random texts, a token is in the mask if and only if the matcher accepts it."""
    constraint = GRAMMARS[number].bind(VOCABULARY)
    walk = random.Random(number)
    for _ in range(4):
        matcher = constraint.matcher()
        for _ in range(5):
            allowed = matcher.allowed_tokens()
            accepted = [token for token in range(len(TOKENS) + 1) if matcher.fork().accept(token)]
            assert allowed == accepted
            alive = [token for token in allowed if token < len(TOKENS)]
            if not alive:
                break
            matcher.accept(walk.choice(alive))


def test_the_free_string_may_have_few_tokens():
    """A vocabulary of which hardly any token stays inside a string has masks like others."""
    vocabulary = Vocabulary([b'"', b"a", None], eos=[2])
    matcher = Grammar.from_json_schema({"type": "string", "not": {"enum": ["b"]}}).bind(vocabulary).matcher()
    assert matcher.accept(0)
    assert matcher.allowed_tokens() == [0, 1]


@pytest.mark.parametrize(
    ("schema", "written"),
    [
        ({"pattern": "^/", "maxLength": 512}, "/a"),  # after the first character, only their number matters
        ({"pattern": "[a-z]"}, "/"),  # other characters than ASCII lead nowhere, though most letters do
        ({"pattern": "^/.*[a-z]"}, "/"),
    ],
)
def test_strings_that_hardly_differ_from_the_free_one(schema, written):
    """What a string may be beside the free one is found without a look at the characters that are alike in both."""
    wide = ["".join(each) for each in product("éß中文😀", repeat=4)]
    tokens = [word.encode() for word in ["/", "a", "1", "/a", *wide]] + [b'"']
    vocabulary = Vocabulary([*tokens, None], eos=[len(tokens)])
    for known in ({}, {"maxLength": 99}):  # the walks of these are not counted below
        free = Grammar.from_json_schema({"type": "string", **known}).bind(vocabulary).matcher()
        assert free.accept_bytes(b'"')
        assert free.allowed_tokens() == list(range(len(tokens)))
    constraint = Grammar.from_json_schema({"type": "string", **schema}).bind(vocabulary)
    matcher = constraint.matcher()
    assert matcher.accept_bytes(b'"' + written.encode())
    before = constraint.counters()["mask_visited"]
    allowed = matcher.allowed_tokens()
    assert constraint.counters()["mask_visited"] - before < len(wide) // 10
    assert allowed == [token for token in range(len(tokens)) if matcher.fork().accept(token)]


def test_ends_behind_other_characters():
    """A part of the trie that begins within a character has the ends of what follows the character."""
    wide = ["".join(each).encode() for each in product("éß中", repeat=4)]
    tokens = sorted([b"d" + word for word in wide] + [word + end for word in wide for end in (b'"', b"")])
    vocabulary = Vocabulary([*tokens, b'"', b"a", b"b", None], eos=[len(tokens) + 3])
    schema = {"type": "string", "pattern": "^[^a]*$", "not": {"pattern": "bb"}}
    matcher = Grammar.from_json_schema(schema).bind(vocabulary).matcher()
    for text in (b'"', b"c", b"b", b"c"):
        assert matcher.accept_bytes(text)
        allowed = matcher.allowed_tokens()
        assert allowed == [token for token in range(vocabulary.size) if matcher.fork().accept(token)]


@pytest.mark.parametrize("seed", range(12))
def test_states_that_patterns_share(seed):
    """What leads out of a text is found from state to state. A state to which several patterns lead has the masks that
    steps have in each of them: what is known of it within one does not hold within another."""
    # Some letters are missing below each node of the trie.
    words = [
        bytes(word) for letters in combinations(b"abcd", 3) for n in range(4) for word in product(letters, repeat=n)
    ]
    tokens = sorted({b"%c%s" % (0x41 + number // 40, word) for number, word in enumerate(words)})
    tokens += [b"a", b"b", b"c", b"d", b"#", b'"', b'","', "é".encode(), "é#a".encode()]
    vocabulary = Vocabulary([*tokens, None], eos=[len(tokens)], cache_dir=False)
    ends = [tokens.index(end) for end in (b"#", b'"', b'","')]
    walk = random.Random(seed)

    def some() -> str:
        return "".join(walk.sample("abcd", walk.randrange(1, 3)))

    for _ in range(25):
        ways = [f"{letter}+[^{letter}{some()}]" for letter in walk.sample("abcd", walk.randrange(1, 3))]
        rest = f"([^{some()}#]|{'|'.join(ways)})*#$"
        patterns = [f"^{rest}", *(f"^[^{some()}]*{walk.choice(ways)}{rest}" for _ in range(2))]
        schema = {"type": "array", "prefixItems": [{"type": "string", "pattern": each} for each in patterns]}
        constraint = Grammar.from_json_schema({**schema, "minItems": 3}, whitespace="compact").bind(vocabulary)
        for _ in range(2):
            matcher = constraint.matcher()
            assert matcher.accept_bytes(b'["')
            for _ in range(12):
                allowed = matcher.allowed_tokens()
                assert allowed == [token for token in range(vocabulary.size) if matcher.fork().accept(token)], patterns
                alive = [token for token in allowed if token < len(tokens)]
                ending = [token for token in alive if token in ends]
                if not alive:
                    break
                matcher.accept(walk.choice(ending if ending and walk.random() < 0.5 else alive))


def _searching(walk: random.Random) -> dict:
    """Return a schema of a string in which patterns search for words."""
    words = [
        "".join(walk.choices("abcd", k=walk.randrange(1, 5))) + walk.choice(["", "", "+", "[cd]+", "\\d"])
        for _ in range(3)
    ]
    schema: dict = {"type": "string"}
    kind = walk.randrange(4)
    if kind == 0:
        schema["oneOf"] = [{"pattern": word} for word in words]
    elif kind == 1:
        schema |= {"pattern": words[0], "not": {"anyOf": [{"pattern": word} for word in words[1:]]}}
    elif kind == 2:
        schema |= {"not": {"pattern": words[0]}, "allOf": [{"pattern": words[1]}]}
    else:
        schema["pattern"] = f"^[^{walk.choice('abcd#')}]*({'|'.join(words)})"
    if walk.random() < 0.3:
        schema["maxLength"] = walk.randrange(6, 300)
    return schema


@pytest.mark.parametrize("seed", [*range(8), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(8, 100))])
def test_words_that_patterns_search(seed):
    """In a string that patterns search for words, a part of the trie without all letters of one is taken as the free
    string has it, with quotes and bytes that may not be there; and the set within a word is that between words but for
    a few tokens. Both have what steps accept."""
    walk = random.Random(seed)
    # Some letters are missing below each node of the trie, and behind the others there are ends and what is no text.
    tails = [b"", b'"', b'",', b"\n", b'\\"', b"\x7f", b"\\", "é".encode(), b"\xff", b'#"']
    words = {
        bytes(word) for letters in combinations(b"abcd", 3) for n in range(4) for word in product(letters, repeat=n)
    }
    heads = "ABCDEFGH" if seed % 2 else "éßö中文字漢語"
    tokens = {heads[k // 20].encode() + word + walk.choice(tails) for k, word in enumerate(sorted(words))}
    tokens |= {word + tail for word in words if len(word) < 3 for tail in tails} - {b""}
    vocabulary = Vocabulary([*sorted(tokens | {b"d", b"0"}), None], eos=[len(tokens | {b"d", b"0"})], cache_dir=False)
    taken = unsatisfiable = 0
    for _ in range(6):
        schema = _searching(walk)
        names = {"type": "object", "propertyNames": schema, "additionalProperties": True}
        grammar = Grammar.from_json_schema(walk.choice([schema, names]), whitespace="compact")
        try:
            constraint = grammar.bind(vocabulary)
        except UnsatisfiableSchemaError:
            unsatisfiable += 1
            continue
        for _ in range(3):
            matcher = constraint.matcher()
            matcher.accept_bytes(b'{"') or matcher.accept_bytes(b'"')
            for _ in range(8):
                allowed = matcher.allowed_tokens()
                assert allowed == [token for token in range(vocabulary.size) if matcher.fork().accept(token)], schema
                alive = [token for token in allowed if token < vocabulary.size - 1]
                if not alive:
                    break
                taken += matcher.accept(walk.choice(alive))
    assert taken > 20
    assert unsatisfiable <= 2


@pytest.mark.parametrize("seed", [*range(4), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(4, 40))])
def test_runs_behind_words_that_patterns_search(seed):
    """Behind a word that is searched, where any letters may follow before a digit, large parts of the trie without a digit
    are taken as a whole; the masks have what steps accept."""
    walk = random.Random(seed)
    letters = "abcdefghijklmnopqrstuvwxyz"
    tails = ["", "0", "_", '"', '0"', '",', "é", "1a"]
    tokens = {"".join(word) + walk.choice(tails) for word in product(letters, repeat=3)}
    tokens = [*sorted({*tokens, *letters, *'_0123"', *"ABCDEFGH", ": "})]
    vocabulary = Vocabulary([*(token.encode() for token in tokens), None], eos=[len(tokens)], cache_dir=False)
    words = ["".join(walk.choices(letters[:6], k=walk.randrange(2, 4))) + walk.choice(["_", ""]) for _ in range(3)]
    patterns = [words[0] + "[a-z]+[0-9]+", words[1] + "([a-z]+)", words[2] + "(abc|abd|ce)"]
    names = {
        "type": "object",
        "patternProperties": {patterns[0]: {"const": 1}, **{each: {"type": "null"} for each in patterns[1:]}},
    }
    string = {"type": "string", "pattern": patterns[0], "not": {"pattern": patterns[2]}}
    for schema, begin in ((names, '{"'), (string, '"')):
        constraint = Grammar.from_json_schema(schema, whitespace="compact").bind(vocabulary)
        for _ in range(3):
            matcher = constraint.matcher()
            assert matcher.accept_bytes(begin.encode())
            for text in ("", words[0][:-1], words[0][-1], walk.choice(letters), walk.choice(letters), "1", "x"):
                if not matcher.accept_bytes(text.encode()):  # a forbidden word
                    break
                allowed = set(matcher.allowed_tokens())
                some = [
                    *walk.sample(range(len(tokens)), 400),
                    *(number for number, token in enumerate(tokens) if len(token) < 3),
                ]
                for token in some:
                    assert (token in allowed) == matcher.fork().accept(token), (schema, tokens[token], text)
