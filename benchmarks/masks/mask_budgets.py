"""Texts written under the masks of a budget, as an engine writes them: are all valid, and what do the masks leave out?

    python -m benchmarks masks/mask_budgets DATA [--schemas 200] [--more 60] [--step 1]

For each of some real schemas and each budget from the minimum on, a text is written by random draws under the masks of
the vLLM plug-in. Checked: each mask allows a token, the text is whole within the budget, and `jsonschema` accepts it,
with multiples of decimals judged as decimals (by the remainder of doubles, 20628.33 is no multiple of 0.01).
Of each mask that the budget narrowed, some of the tokens that it leaves out are tried: those after which the text could
be completed in time all the same are counted, with the number of tokens to spare.

The exit code is 1 if a text is cut open or not valid.
"""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np

from benchmarks.shared.data import rows
from toolgrammar.adapters.vllm.sequence import Ends, Sequence
from toolgrammar.adapters.vllm.spelling import Spelling
from toolgrammar.core import Constraint, Grammar, ToolGrammarError, Vocabulary, load_model
from toolgrammar.core.masks.budget import Budget

#: Tokens that are tried of those that a mask leaves out.
TRIED = 12


def multiple_of(validator: Any, step: float, value: Any, schema: Any) -> Iterator[jsonschema.ValidationError]:
    """The keyword ``multipleOf``, by the decimals that the schema and the text have."""
    if validator.is_type(value, "number") and Fraction(repr(value)) % Fraction(repr(step)):
        yield jsonschema.ValidationError(f"{value!r} is not a multiple of {step}")


def judge_of(schema: Any) -> Any:
    """A validator of `jsonschema` for a schema."""
    dialect = jsonschema.validators.validator_for(schema, jsonschema.Draft202012Validator)
    return jsonschema.validators.extend(dialect, {"multipleOf": multiple_of})(schema)


def ids(row: Any) -> Any:
    """The tokens of a mask."""
    return np.flatnonzero(np.unpackbits(row.view(np.uint8), bitorder="little"))


def spared(text: Sequence, row: Any, room: int, rng: random.Random) -> list[int]:
    """For some tokens that a mask leaves out and the grammar allows: the tokens to spare after them, negative where
    the text could not be completed."""
    base = np.zeros_like(row)
    text.matcher.fill_mask(base)
    lost = ids(base & ~row).tolist()
    found = []
    for token in rng.sample(lost, min(TRIED, len(lost))):
        if text.matcher.accept(token):
            found.append(room - 1 - Budget(text.matcher).needed()[0])
            text.matcher.rollback(1)
    return found


def write(constraint: Constraint, tokens: tuple[Spelling, Ends], budget: int, rng: random.Random, counts: Any) -> str:
    """Write a text; return what is wrong with it, or the text after ``ok``."""
    text = Sequence(constraint, *tokens)
    text.room = lambda: budget - text.steps
    row = np.zeros(constraint.words, np.uint32)
    while not text.is_over and text.steps < budget:
        text.fill(row)
        allowed = ids(row)
        if not len(allowed):
            return "a dead end"
        counts["masks"] += 1
        if text.closed_at is not None:
            slack = spared(text, row, budget - text.steps, rng)
            counts["narrowed"] += len(slack) > 0
            counts["tried"] += len(slack)
            counts["left out"] += any(each >= 0 for each in slack)
            counts.update(f"{each} to spare" for each in slack if each >= 0)
        if not text.accept([int(rng.choice(allowed))]):
            return "a token of the mask is refused"
    return f"ok{tokens[0].vocabulary.decode(text.tokens).decode()}" if text.is_whole else "cut open"


def main(data: Path, schemas: int = 200, more: int = 60, step: int = 1, property_order: str = "any") -> int:
    """Run the benchmark; 1 if a text is not valid.

    Args:
        schemas: how many, spread over the file
        more: the largest budget beyond the minimum
        step: every so many-th budget
        property_order: as for Grammar.from_json_schema
    """
    vocabulary: Vocabulary = load_model("embedded").vocabulary
    spelling = Spelling(vocabulary, lambda text: list(text.encode()))
    tokens = spelling, Ends(spelling, vocabulary.eos)
    every = rows(data)
    counts: Counter[str] = Counter()
    for number, row in enumerate(every[:: max(1, len(every) // schemas)]):
        try:
            grammar = Grammar.from_json_schema(row["schema"], property_order=property_order)
            constraint = grammar.bind(vocabulary)
            least, is_exact = Budget(constraint.matcher()).needed()
        except ToolGrammarError:
            continue
        if not is_exact or least > 2_000:
            continue
        counts["schemas"] += 1
        judge = judge_of(row["schema"])
        for budget in range(least, least + more + 1, step):
            found = write(constraint, tokens, budget, random.Random(f"{number} {budget}"), counts)
            counts["texts"] += 1
            if not found.startswith("ok") or not judge.is_valid(json.loads(found[2:])):
                counts["failures"] += 1
                print(f"{row.get('id', number)}, budget {budget} of at least {least}: {found[:300]}")
    print(json.dumps(counts, indent=2))
    return int(counts["failures"] > 0)
