"""Masks against steps, for every token: drawn patterns that share parts, over drawn vocabularies with large subtrees."""

from __future__ import annotations

import random
from itertools import product
from typing import Any

import pytest

from toolgrammar.core import Grammar, ToolGrammarError, Vocabulary

PIECES = (
    *(b"a", b"b", b"c", b"d", b"0", b"1", b"-", b" ", b"_", b".", b"A", b"\\", b"n", b"u", b'"', b"/", b":", b","),
    *("é".encode(), "中".encode(), "\u2028".encode(), "😀".encode(), b"\xe4", b"\xe4\xb8", b"\xad", b"\xc3", b"\xa9"),
)
CLASSES = (
    *("[ab]", "[abc]", "[^a]", "[^ab-]", "[a-d0-9]", r"\w", r"\d", r"[\w-]", r"[^\s]", r"\S", ".", "[a-cé]", "[^-]"),
    *("[a-zA-Z0-9]", "[^中]"),
)
COUNTS = ("", "", "*", "+", "?", "{2}", "{1,3}", "{0,6}", "{3,}", "{8}")
SEEDS = [*range(3), pytest.param(range(3, 200), marks=pytest.mark.slow)]


def drawn_vocabulary(rng: random.Random) -> Vocabulary:
    """All bytes, all short words over some few pieces each behind some beginning, longer words, and ends of strings."""
    tokens = {bytes((byte,)) for byte in range(256)} | {b'","', b'": "', b'"}', b'"]', b'{"', b'["', b'":'}
    for _ in range(12):
        few = rng.sample(PIECES, rng.randrange(2, 5))
        begin = b"".join(rng.sample(PIECES, rng.randrange(2)))
        tokens |= {begin + b"".join(word) for size in range(1, 5) for word in product(few, repeat=size)}
    tokens |= {b"".join(rng.choices(PIECES, k=rng.randrange(2, 9))) for _ in range(400)}
    listed = sorted(tokens)
    return Vocabulary([*listed, None], eos=[len(listed)], cache_dir=False)


def drawn_regex(rng: random.Random, depth: int) -> str:
    """A sequence of classes, letters, words and groups, each with some count."""
    parts = []
    for _ in range(rng.randrange(1, 4)):
        kind = rng.randrange(7 if depth else 4)
        if kind > 3:
            inner = "|".join(drawn_regex(rng, depth - 1) for _ in range(rng.randrange(1, 4)))
            parts.append(f"({inner})")
        else:
            parts.append(rng.choice((CLASSES, CLASSES, "abcd01", ("ab", "a-", "0a", "cd", "é", "中b"))[kind]))
        parts.append(rng.choice(COUNTS))
    return "".join(parts)


def drawn_pattern(rng: random.Random, shared: list[str]) -> str:
    """A pattern, half of the time with the end of another one; so some states belong to several patterns."""
    regex = drawn_regex(rng, 2)
    if shared and rng.random() < 0.5:
        regex += rng.choice(shared)
    if len(regex) < 60:
        shared.append(regex)
    return rng.choice(("^%s$", "%s", "^%s", "%s$", "^(%s)*$", "^%s$")) % regex


def drawn_string(rng: random.Random, shared: list[str]) -> dict[str, Any]:
    """A schema of strings."""
    schema: dict[str, Any] = {"type": "string"}
    chance = rng.random()
    if chance < 0.75:
        schema["pattern"] = drawn_pattern(rng, shared)
    if chance < 0.2:
        schema["not"] = {"pattern": drawn_pattern(rng, shared)}
    elif chance < 0.35:
        schema["oneOf"] = [{"pattern": drawn_pattern(rng, shared)} for _ in range(2)]
    elif chance > 0.9:
        schema["format"] = rng.choice(("date-time", "uri", "email", "uuid", "date"))
    if rng.random() < 0.2:
        schema["maxLength"] = rng.randrange(1, 9)
    if rng.random() < 0.1:
        schema["minLength"] = rng.randrange(1, 5)
    return schema


def drawn_schema(rng: random.Random, shared: list[str]) -> dict[str, Any]:
    """An array of such strings, or an object whose names have such patterns."""
    if rng.random() < 0.7:
        items = [drawn_string(rng, shared) for _ in range(rng.randrange(1, 4))]
        return {"type": "array", "prefixItems": items, "minItems": len(items), "items": False}
    values = (True, {"type": "null"}, drawn_string(rng, shared))
    patterns = {drawn_pattern(rng, shared): rng.choice(values) for _ in range(rng.randrange(1, 4))}
    return {"type": "object", "patternProperties": patterns, "additionalProperties": rng.random() < 0.5}


@pytest.mark.parametrize("seeds", SEEDS)
def test_every_token_of_every_mask(seeds: int | range) -> None:
    """Along drawn texts a token is in the mask if and only if the matcher accepts it."""
    for seed in [seeds] if isinstance(seeds, int) else seeds:
        assert judged(seed)


def judged(seed: int) -> int:
    """Judge some schemas of a seed; return how many were not refused."""
    rng = random.Random(seed)
    vocabulary = drawn_vocabulary(rng)
    shared: list[str] = []
    count = 0
    for _ in range(8):
        schema = drawn_schema(rng, shared)
        whitespace = rng.choice(("compact", "single"))
        try:
            constraint = Grammar.from_json_schema(schema, whitespace=whitespace, on_unsupported="error").bind(
                vocabulary
            )
        except ToolGrammarError:  # nothing is in both patterns, or it takes too long to tell
            continue
        count += 1
        for _ in range(3):
            matcher = constraint.matcher()
            for _ in range(14):
                allowed = matcher.allowed_tokens()
                accepted = [token for token in range(vocabulary.size) if matcher.fork().accept(token)]
                assert allowed == accepted, schema
                alive = [token for token in allowed if vocabulary.tokens[token]]
                if not alive:
                    break
                matcher.accept(rng.choice(alive))
    return count
