"""Whatever binds can be finished: from the start, from every state of a walk, under every budget, validly."""

from __future__ import annotations

import json
import random
import re
from pathlib import Path
from typing import Any

import pytest

from toolgrammar.core import Grammar, LimitError, SchemaError

from ..regex.patterns import random_pattern
from .writing import VOCABULARY, Tally, WritingError, draw_options, judge, judge_seed

REGRESSIONS = Path(__file__).resolve().parents[2] / "regressions"
CASES = sorted(REGRESSIONS.glob("*.json"))

#: Maximum share of schemas that may be refused though nothing says that they are unsatisfiable.
MAX_REFUSED = 0.07


def judge_seeds(seeds: range) -> None:
    """Judge a schema for each seed; all faults are told, and refusals are counted and bounded."""
    tally = Tally()
    faults = []
    for seed in seeds:
        try:
            judge_seed(seed, tally)
        except WritingError as error:
            faults.append(f"seed {seed}: {error}")
    assert not faults, f"{len(faults)} of {len(seeds)}:\n" + "\n\n".join(faults[:10])
    assert tally.refused <= MAX_REFUSED * len(seeds), tally
    assert tally.outcomes["written"] >= 0.75 * len(seeds), tally


@pytest.mark.timeout(600)
def test_whatever_binds_can_be_finished() -> None:
    """Schemas that mix all keywords."""
    judge_seeds(range(1_000))


def test_patterns_can_be_finished() -> None:
    """Patterns with assertions in one another and in repetitions, also negated and beside bounds of the length."""
    rng = random.Random(15)
    tally = Tally()
    while sum(tally.outcomes.values()) < 150:
        pattern = random_pattern(rng, rng.randint(2, 4))
        try:
            re.compile(pattern.replace("$", r"\Z"))
        except re.error:  # look-behinds of several widths, which the judge cannot read
            continue
        if r"\B" in pattern:  # before Python 3.14, it does not match in the empty text
            continue
        wanted = {"pattern": pattern} if rng.random() < 0.7 else {"not": {"pattern": pattern}}
        bound = rng.choice(({}, {"minLength": rng.randint(1, 8)}, {"maxLength": rng.randint(0, 5)}))
        judge({"type": "string", **wanted, **bound}, draw_options(rng), rng, tally)
    assert tally.outcomes.keys() == {"written", "unsatisfiable"} and tally.outcomes["written"] > 80, tally


@pytest.mark.slow
@pytest.mark.timeout(0)
def test_whatever_binds_can_be_finished_at_length() -> None:
    """100,000 schemas, others than in the ordinary run."""
    judge_seeds(range(1_000_000, 1_100_000))


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_what_failed_once(path: Path) -> None:
    """Every schema that could not be finished once: its file holds the schema, the options, and what was wrong."""
    case: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    tally = Tally()
    for seed in range(3):
        judge(case["schema"], case["options"], random.Random(seed), tally)
    assert list(tally.outcomes) == [case["outcome"]]


def _nested(depth: int, leaf: object) -> object:
    for _ in range(depth):
        leaf = [leaf]
    return leaf


LONG = 10**10_000
LATE: dict[str, tuple[dict[str, Any], str]] = {
    "const": ({"const": LONG}, "const"),
    "enum": ({"enum": [1, {"a": [-LONG]}]}, "enum"),
    "deep": ({"enum": [_nested(900, 1), _nested(900, 2)]}, "enum"),
    **{
        word: ({word: LONG, "contains": {}}, word) for word in ("minItems", "minLength", "minProperties", "minContains")
    },
    **{word: ({word: -LONG}, word) for word in ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum")},
    "step": ({"multipleOf": LONG}, "multipleOf"),
    "loop": ({"items": {"$dynamicAnchor": "x", "$dynamicRef": "#x"}}, "$ref"),
    "pattern": ({"items": {"$dynamicRef": "#p"}, "$defs": {"p": {"$dynamicAnchor": "p", "pattern": "("}}}, "pattern"),
}


@pytest.mark.parametrize("name", LATE)
def test_what_cannot_be_written_is_refused_at_once(name: str) -> None:
    """No text is begun that would fail later: the error comes when a schema is bound, and names the place."""
    schema, keyword = LATE[name]
    with pytest.raises((LimitError, SchemaError)) as caught:
        Grammar.from_json_schema(schema).bind(VOCABULARY)
    assert caught.value.place.pointer is not None and caught.value.place.keyword == keyword
