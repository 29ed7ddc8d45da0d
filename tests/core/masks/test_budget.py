"""Budgets: a mask under a budget is that of asking each token by itself, but for a few spare tokens in names."""

from __future__ import annotations

import json
import random
from typing import Any

import numpy as np
import pytest

from toolgrammar.core import DecodingError, Grammar, LimitError, Matcher, SchemaError, Vocabulary
from toolgrammar.core.masks.budget import Budget

from ...schemas import random_schema
from ..schema.writing import WORDS, draw_options

#: Tokens in which names begin, after other names or with escapes.
NAMES = (b', "a', b'"b', b', "b', b'"c', b"\\u0061", b'"\\u0062', b"\\")
EOS = 256 + len(WORDS) + len(NAMES)
VOCABULARY = Vocabulary([*(bytes((byte,)) for byte in range(256)), *WORDS, *NAMES, None], eos=[EOS])
TOKENS = {token: number for number, token in enumerate(VOCABULARY.tokens) if token}
LONGEST = max(map(len, TOKENS))


def least_tokens(parts: list[bytes | str]) -> int:
    """Number of tokens that write a text, as few as possible; a control token is one."""
    count = 0
    for part in parts:
        if isinstance(part, str):
            count += 1
            continue
        least = [0] * (len(part) + 1)
        for at in range(len(part) - 1, -1, -1):
            ends = range(at + 1, min(len(part), at + LONGEST) + 1)
            least[at] = 1 + min(least[end] for end in ends if part[at:end] in TOKENS)
        count += least[0]
    return count


def allowed(row: Any) -> set[int]:
    """The tokens of a mask."""
    return set(np.flatnonzero(np.unpackbits(row.view(np.uint8), bitorder="little")).tolist())


def mask(matcher: Matcher) -> Any:
    """The mask of a text."""
    row = np.zeros(matcher.constraint.words, np.uint32)
    matcher.fill_mask(row)
    return row


def check(matcher: Matcher, rng: random.Random) -> tuple[int, int]:
    """Compare some masks under a budget with the number of tokens that complete the text after each token; return how
    many, and how many tokens fit and are left out."""
    base = mask(matcher)
    after = {}
    for token in allowed(base):
        if token == EOS:
            after[token] = -1
            continue
        assert matcher.accept(token)
        after[token] = least_tokens(matcher.shortest_parts())
        assert after[token] <= matcher.shortest_length()
        for room in (after[token] - 1, after[token]):
            assert Budget(matcher).fits(room) == (room == after[token])
        matcher.rollback(1)
    whole = least_tokens(matcher.shortest_parts())
    assert len(Budget(matcher).completion([])) == whole == Budget(matcher).needed()[0]
    left_out = 0
    rooms = {whole, whole + 1, 10_000, *rng.sample(sorted(after.values()), min(4, len(after)))}
    for room in sorted(room for room in rooms if room >= whole):
        budget, row = Budget(matcher), base.copy()
        budget.narrow(row, [], room)
        kept, fitting = allowed(row), {token for token, count in after.items() if count < room}
        assert kept and (kept <= fitting or kept == set(budget.completion([])[:1]))
        assert (budget.closed_at is None) == (kept == set(after))
        if not matcher.constraint.program.store.is_dependent:
            assert kept == fitting or not fitting
        left_out += len(fitting - kept)
    return len(rooms), left_out


def walk(matcher: Matcher, rng: random.Random) -> tuple[int, int]:
    """Write random tokens, with forks and ways back, and check each place."""
    masks = left_open = 0
    for _ in range(6):
        found = check(matcher, rng)
        masks, left_open = masks + found[0], left_open + found[1]
        choices = sorted(allowed(mask(matcher)) - {EOS})
        if not choices:
            break
        likely = [token for token in choices if token >= 256 or token in b'"]},0:1a']
        if likely and rng.random() < 0.8:
            choices = likely
        if rng.random() < 0.3:
            matcher = matcher.fork()
        if rng.random() < 0.3 and matcher.accept(rng.choice(choices)):
            check(matcher, rng)
            matcher.rollback(1)
        assert matcher.accept(rng.choice(choices))
    return masks, left_open


@pytest.mark.timeout(300)
def test_masks_under_a_budget_are_those_of_each_token_by_itself() -> None:
    """Schemas that mix all keywords, budgets around the costs that occur, forks and ways back."""
    masks = left_open = written = 0
    for seed in range(150):
        rng = random.Random(seed)
        schema, options = random_schema(rng, rng.choice((1, 2, 2, 3))), draw_options(rng)
        try:
            constraint = Grammar.from_json_schema(schema, **options).bind(VOCABULARY)
        except (SchemaError, LimitError):
            continue
        written += 1
        try:
            found = walk(constraint.matcher(), rng)
        except AssertionError as error:
            raise AssertionError(f"seed {seed}: {json.dumps(schema)} {options}") from error
        masks, left_open = masks + found[0], left_open + found[1]
    assert written > 110 and masks > 2_000 and left_open > 100, (written, masks, left_open)


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "string"},
        {"type": "string", "maxLength": 7},
        {"type": "string", "minLength": 3, "maxLength": 12},
        {"type": "string", "pattern": "^(ab|c)+\\d{2,4}$"},
        {"type": "array", "items": {"type": "string", "minLength": 2}, "minItems": 2},
        {"type": "object", "properties": {"a": {"enum": ["ab", "a", "é"]}, "b": {"type": "number"}}, "required": ["b"]},
    ],
)
def test_strings_cost_the_same_wherever_they_are_counted(schema: dict[str, Any]) -> None:
    """Counted strings share their costs, whatever is written: the bound forbids tokens, it changes no cost."""
    constraint = Grammar.from_json_schema(schema, whitespace="single", additional_properties=False).bind(VOCABULARY)
    for seed in range(8):
        walk(constraint.matcher(), random.Random(seed))


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "object", "additionalProperties": {"type": "integer"}},
        {"type": "object", "additionalProperties": {"type": "boolean"}, "minProperties": 3},
        {"type": "object", "properties": {"a": {"type": "string"}, "bc": {}}, "required": ["bc"]},
        {"type": "object", "additionalProperties": {"type": "object", "additionalProperties": {"type": "null"}}},
        {"type": "object", "propertyNames": {"pattern": "^a"}, "additionalProperties": {"const": 1}},
        {"type": "object", "propertyNames": {"pattern": "bc$"}, "additionalProperties": {"const": 1}},
        {"type": "array", "items": {"type": "string"}, "uniqueItems": True, "minItems": 2},
    ],
)
def test_names_cost_more_where_they_are_repeated(schema: dict[str, Any]) -> None:
    """A token that leads to a repeated name, in whatever pieces and spelling, is not among those of known costs."""
    for whitespace in ("compact", "single", "flexible"):
        constraint = Grammar.from_json_schema(schema, whitespace=whitespace).bind(VOCABULARY)
        for seed in range(6):
            rng = random.Random(seed)
            matcher = constraint.matcher()
            for text in ('{"a": 1, "b": 1', '{"a":1,"abc":1', '["a", "b"', '{"bc": {"a": null, "b": null', '{"a":true'):
                if rng.random() < 0.5 and matcher.accept_bytes(text.encode()):
                    break
            walk(matcher, rng)


def test_control_tokens_cost_one() -> None:
    """A control token of a completion is one token; one that the mask allows costs what follows it."""
    vocabulary = Vocabulary([*(bytes((byte,)) for byte in range(256)), None, None], eos=[256], special={"<end>": 257})
    grammar = Grammar.from_lark('start: "ab" (<end> "cd" | "efghi")')
    matcher = grammar.bind(vocabulary).matcher()
    assert Budget(matcher).completion([]) == [97, 98, 257, 99, 100]
    assert matcher.accept(97) and matcher.accept(98)
    row = mask(matcher)
    assert allowed(row) == {257, ord("e")}
    Budget(matcher).narrow(row, [], 3)
    assert allowed(row) == {257}


def test_a_text_without_tokens_cannot_be_completed() -> None:
    """Where the vocabulary lacks a byte of each completion, it says so."""
    vocabulary = Vocabulary([b"a", b"c", None], eos=[2])
    matcher = Grammar.from_regex("ab?c").bind(vocabulary).matcher()
    assert Budget(matcher).completion([]) == [0, 1]
    matcher = Grammar.from_regex("a|ab").bind(vocabulary).matcher()
    assert Budget(matcher).completion([]) == [0]
    with pytest.raises(DecodingError, match="no token"):
        Budget(Grammar.from_regex("ab").bind(vocabulary).matcher()).completion([])


def test_costs_are_counted_and_bounded() -> None:
    """The memory of costs is part of the constraint's."""
    constraint = Grammar.from_json_schema({"type": "string", "minLength": 5}).bind(VOCABULARY)
    matcher, row = constraint.matcher(), np.zeros(constraint.words, np.uint32)
    matcher.fill_mask(row)
    before = constraint.byte_count()
    Budget(matcher).narrow(row, [], 5)
    assert constraint.byte_count() > before + 400
