"""What a text meets when readings or nodes run short: alternatives are left out, and what was begun can be finished."""

from __future__ import annotations

import json
import random
from typing import Any

import jsonschema
import pytest

from toolgrammar.core import Grammar, LimitError
from toolgrammar.core.automaton import completion, lazy_dfa, states

from .writing import VOCABULARY, Tally, WritingError, judge_seed

NAMES = [f"p{number}" for number in range(400)]
INTEGERS = {name: {"type": "integer"} for name in NAMES}
MANY: dict[str, Any] = {
    "members in any order": {
        "type": "object",
        "properties": INTEGERS,
        "required": NAMES,
        "additionalProperties": False,
    },
    "a number of members in any order": {
        "type": "object",
        "properties": INTEGERS,
        "minProperties": 390,
        "additionalProperties": False,
    },
    "objects that begin alike": {
        "anyOf": [{"type": "object", "properties": {f"k{j}": {"const": i} for j in range(5)}} for i in range(450)]
    },
    "arrays in arrays": {
        "$defs": {
            "n": {"anyOf": [{"type": "array", "items": {"$ref": "#/$defs/n"}, "minItems": k} for k in range(12)]}
        },
        "$ref": "#/$defs/n",
    },
    "ways to count items": {
        "type": "array",
        "allOf": [{"contains": {"minimum": number}, "maxContains": 5, "minContains": 2} for number in range(6)],
    },
}


@pytest.mark.parametrize("name", MANY)
def test_many_readings_and_nodes(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """No text meets an error; it can be finished validly, and `Grammar.narrowed` says what was left out."""
    monkeypatch.setattr(lazy_dfa, "SCARCE_NODES", 500)
    grammar = Grammar.from_json_schema(MANY[name], property_order="any")
    matcher = grammar.bind(VOCABULARY).matcher()
    rng = random.Random(1)
    written = b""
    for _ in range(60):
        opening = [token for token in matcher.allowed_tokens() if (VOCABULARY.tokens[token] or b"}") not in b"]}"]
        if not opening:
            break
        ends = [token for token in opening if VOCABULARY.tokens[token] in (b", ", b'"', b'": ')]
        token = rng.choice(ends or opening)
        assert matcher.accept(token)
        written += VOCABULARY.tokens[token] or b""
    completion = matcher.shortest_completion()
    assert matcher.accept_bytes(completion)
    assert jsonschema.Draft202012Validator(MANY[name]).is_valid(json.loads(written + completion))
    assert all(problem.left_out and problem.hint for problem in grammar.narrowed)
    assert grammar.narrowed


@pytest.mark.parametrize(("scarce", "threads", "weighed"), [(10, 3, 20), (200, 6, 100), (1_000_000, 2, 10_000)])
def test_the_judge_where_readings_and_nodes_are_few(
    scarce: int, threads: int, weighed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Everything that the judge asks, except that a completion need not be the shortest."""
    monkeypatch.setattr(lazy_dfa, "SCARCE_NODES", scarce)
    monkeypatch.setattr(states, "MAX_THREADS", threads)
    monkeypatch.setattr(states, "FEW_THREADS", min(threads, 3))
    monkeypatch.setattr(completion, "MAX_WEIGHED", weighed)
    tally = Tally()
    for seed in range(60):
        try:
            judge_seed(seed, tally)
        except WritingError as error:
            if "is shorter" not in error.what:
                raise
    assert tally.outcomes["written"] > 40


def test_a_rule_beyond_a_limit_is_left_out() -> None:
    """An alternative that exceeds a limit when a text gets near it is not written; without others, it is an error."""
    pattern = "^(?=.*a.{30}b)(?=.*c.{30}d)(?=.*e.{25}f).*$"
    with pytest.raises(LimitError):
        Grammar.from_json_schema({"pattern": pattern, "type": "string"}).bind(VOCABULARY)
    grammar = Grammar.from_json_schema({"items": {"anyOf": [{"pattern": pattern, "type": "string"}, {"type": "null"}]}})
    assert grammar.matches("[null, null]") and not grammar.matches('["a"]')
    assert [problem.left_out for problem in grammar.narrowed] == ["what exceeds this limit"]
