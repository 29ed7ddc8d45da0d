"""Budgets of a text: whatever is chosen under the masks, it is closed validly in time. No engine is needed."""

from __future__ import annotations

import json
import random
from typing import Any

import jsonschema
import numpy as np
import pytest

from toolgrammar.adapters.vllm.sequence import Ends, Sequence, fill_batch
from toolgrammar.adapters.vllm.spelling import Spelling
from toolgrammar.core import Grammar, LimitError, SchemaError
from toolgrammar.core.masks.budget import Budget

from ...core.schema.writing import EOS, VOCABULARY, draw_options, pythonic
from ...schemas import random_schema

SPELLING = Spelling(VOCABULARY, lambda text: list(text.encode("utf-8", "surrogatepass")))
ENDS = Ends(SPELLING, VOCABULARY.eos)


def allowed(text: Sequence) -> list[int]:
    """The tokens that the mask of a text allows, also as one row of a batch."""
    row = np.full((len(VOCABULARY) + 31) // 32, 0xFFFFFFFF, np.uint32)
    text.fill(row)
    rows = np.zeros((2, len(row)), np.uint32)
    fill_batch([None, text], rows)
    assert (rows[1] == row).all()
    return np.flatnonzero(np.unpackbits(row.view(np.uint8), bitorder="little")).tolist()


def write(constraint: Any, budget: int, rng: random.Random) -> bytes:
    """Write random tokens under a budget, with drafts that are taken back on the way; return the text."""
    text = Sequence(constraint, SPELLING, ENDS)
    text.room = lambda: budget - text.steps
    while not text.is_over and text.steps < budget:
        choices = allowed(text)
        assert choices, "a dead end"
        if rng.random() < 0.2:  # drafts
            count = 0
            while text.steps < budget and not text.is_over and count < 3:
                assert text.accept([rng.choice(allowed(text))])
                count += 1
            text.rollback(count)
            assert allowed(text) == choices
        openers = [token for token in choices if token >= 256 or token in b'"[{,:a1']
        token = rng.choice(openers if openers and rng.random() < 0.6 else choices)
        assert text.accept([token])
    assert text.is_whole, "cut open"
    return VOCABULARY.decode(text.tokens)


@pytest.mark.timeout(300)
def test_every_budget_from_the_least_on_closes_validly() -> None:
    """Schemas that mix all keywords: every budget that the shortest text fits in ends with a valid text."""
    texts = 0
    for seed in range(1_000, 1_120):
        rng = random.Random(seed)
        schema, options = random_schema(rng, rng.choice((1, 2, 2, 3))), draw_options(rng)
        judging = jsonschema.Draft202012Validator(pythonic(schema))
        try:
            constraint = Grammar.from_json_schema(schema, **options).bind(VOCABULARY)
        except (SchemaError, LimitError):
            continue
        least, _ = Budget(constraint.matcher()).needed()
        for more in (0, 1, 2, 3, 5, 8, 21):
            try:
                written = write(constraint, least + more, rng)
            except AssertionError as error:
                raise AssertionError(f"seed {seed}, {least} + {more} tokens: {json.dumps(schema)} {options}") from error
            assert judging.is_valid(json.loads(written)), (seed, least, more, written, schema)
            texts += 1
    assert texts > 500


def test_a_budget_allows_the_end() -> None:
    """The end stays allowed where the text may end, however little is left."""
    text = Sequence(Grammar.from_regex("a[bc]{0,9}").bind(VOCABULARY), SPELLING, ENDS)
    text.room = lambda: 1
    assert text.accept([ord("a")])
    assert EOS in allowed(text) and {ord("b"), ord("c")} <= set(allowed(text))
    text = Sequence(Grammar.from_regex("a(bbbb)?").bind(VOCABULARY), SPELLING, ENDS)
    text.room = lambda: 3
    assert text.accept([ord("a")]) and allowed(text) == [EOS]
