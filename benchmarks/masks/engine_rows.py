"""Masks of the rows of a batch as the vLLM plug-in fills them, under ample and narrow token budgets. No vLLM is needed.

    python -m benchmarks masks/engine_rows DATA --tokenizer PATH [--rows 1 32 256]
        [--max-tokens 2048 32 16] [--open] [--keep]

``PATH`` is a folder of ``transformers`` (the model ``smollm2`` of `engine_models.py`, say). Each row writes JSON of the
arguments of one function of the Berkeley Function Calling Leaderboard, random tokens under its masks, to the end of its
budget; a row that is over begins again. ``--open`` leaves ``additionalProperties`` as it is: names may be added. A
budget that is less than the length of the shortest answer is raised to it.

Times are those of `fill_batch`, by row, in processor time: the first texts derive their masks, the second ones are the
same texts. Each text is checked to be valid at the end of its budget.
"""

from __future__ import annotations

import random
import statistics
import time
from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.shared.data import is_valid, schemas_of
from benchmarks.shared.results_io import show
from toolgrammar.adapters.vllm.sequence import Ends, fill_batch
from toolgrammar.adapters.vllm.sequence import Sequence as Text
from toolgrammar.adapters.vllm.spelling import Spelling
from toolgrammar.core import ConstraintCache, Grammar, Vocabulary

STEPS = 64


class Row:
    """A row of the batch: one text after the other under one grammar."""

    def __init__(self, spelling: Spelling, ends: Ends, constraint: Any, schema: Any, most: int, seed: str) -> None:
        self.schema, self.spelling, self.seed = schema, spelling, seed
        self.text = Text(constraint, spelling, ends)
        self.budget = max(most, self.text.matcher.shortest_length())
        self.text.room = lambda: self.budget - self.text.steps
        self.invalid = self.texts = 0
        self.begin()

    def begin(self) -> None:
        """Begin the next text."""
        self.text.reset()
        self.rng = random.Random(f"{self.seed} {self.texts}")
        self.texts += 1

    def step(self, mask: Any) -> None:
        """Write a random token of a mask."""
        allowed = np.flatnonzero(np.unpackbits(mask.view(np.uint8), bitorder="little"))
        token = int(self.rng.choice(allowed))
        assert self.text.accept([token])
        if self.text.is_over or self.text.steps >= self.budget:
            self.check()
            self.begin()

    def check(self) -> None:
        """Count a text that is not valid."""
        written = self.spelling.vocabulary.decode(self.text.tokens)
        self.invalid += not is_valid(self.schema, written.decode("utf-8", "replace"))


def walk(rows: list[Row], words: int) -> list[float]:
    """Fill and write; return the microseconds of each step, by row."""
    masks = np.zeros((len(rows), words), np.uint32)
    spent = []
    for _ in range(STEPS):
        begin = time.process_time()
        fill_batch([row.text for row in rows], masks)
        spent.append(1e6 * (time.process_time() - begin) / len(rows))
        for row, mask in zip(rows, masks, strict=True):
            row.step(mask)
    return spent


def main(
    data: Path,
    *,
    tokenizer: str,
    rows: Sequence[int] = (1, 32, 256),
    max_tokens: Sequence[int] = (2048, 32, 16),
    open: bool = False,
    keep: bool = False,
) -> None:
    """Measure and print.

    Args:
        tokenizer: a folder of transformers
        rows: texts at a time
        open: objects may have further members
    """
    from transformers import AutoTokenizer

    read = AutoTokenizer.from_pretrained(tokenizer)
    schemas = schemas_of(data, closed=not open)
    report: dict[str, Any] = {}
    for count, most in product(rows, max_tokens):
        # Nothing is known at first: neither of the grammars nor of the vocabulary.
        vocabulary = Vocabulary.from_transformers(read)
        spelling = Spelling(vocabulary, lambda text: list(read.encode(text, add_special_tokens=False)))
        ends, cache = Ends(spelling, vocabulary.eos), ConstraintCache()
        some = (schemas * (count // len(schemas) + 1))[:count]
        constraints = [cache.bind(Grammar.from_json_schema(schema), vocabulary) for schema in some]
        found = report[f"{count} rows, max_tokens {most}"] = {}
        for attempt in ("first", "again"):
            batch = [
                Row(spelling, ends, constraint, schema, most, str(number))
                for number, (constraint, schema) in enumerate(zip(constraints, some, strict=True))
            ]
            spent = walk(batch, (vocabulary.size + 31) // 32)
            found[attempt] = {
                "median": statistics.median(spent),
                "mean": statistics.mean(spent),
                "longest": max(spent),
                "texts": sum(row.texts for row in batch),
                "invalid": sum(row.invalid for row in batch),
            }
    show("engine_rows", {"open": open, "batches": report}, keep=keep)
