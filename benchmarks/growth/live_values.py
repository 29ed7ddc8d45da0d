"""Cost of live values in a decoding step, beside the same values in the schema.

    python -m benchmarks growth/live_values [--count COUNT]

A call with a project, a note of 200 characters and one of COUNT ids (5,000) is written token by token, as in the loop
of generation: a mask, a token, and a check of the budget. The ids are an ``enum``, or come from a callable that is
asked once (``x-values``). Each row has the median and the longest step, in microseconds; the longest step of the first
answer has the callable and the first sight of its values, that of the second the callable alone.
"""

from __future__ import annotations

import time
from statistics import median
from typing import Any

import numpy as np

from benchmarks.shared.results_io import table
from toolgrammar.core import Constraint, Grammar, LiveValues
from toolgrammar.core.masks.budget import Budget
from toolgrammar.core.models.numpy_llama.bpe import ByteBPE
from toolgrammar.core.models.numpy_llama.embedded import TOKENIZER

#: The text that is written; the id is one of the middle.
NOTE = "the pump stopped again, and " * 7


def schema(ids: Any) -> dict[str, Any]:
    """Return the schema of a call."""
    note = {"type": "string", "maxLength": 1_000}
    return {
        "type": "object",
        "properties": {"project": {"enum": ["a", "b"]}, "note": note, "id": ids},
        "required": ["project", "note", "id"],
        "additionalProperties": False,
    }


def steps(constraint: Constraint, bpe: ByteBPE, text: str, live: LiveValues | None, room: int) -> list[float]:
    """Return the microseconds of each step of an answer."""
    matcher = constraint.matcher(live)
    budget, row = Budget(matcher), np.zeros(constraint.words, dtype=np.uint32)
    taken = []
    for token in bpe.encode(text):
        began = time.perf_counter()
        matcher.fill_mask(row)
        assert matcher.accept(token)
        assert budget.fits(room)
        taken.append(1e6 * (time.perf_counter() - began))
    assert matcher.is_accepting
    return taken


def main(count: int = 5_000) -> None:
    """Print the table.

    Args:
        count: number of ids
    """
    bpe = ByteBPE.load(TOKENIZER)
    ids = [f"order-{number * 7919 % 1_000_003:06d}" for number in range(count)]
    text = f'{{"project": "a", "note": "{NOTE}", "id": "{ids[count // 2]}"}}'
    live = {"type": "string", "x-values": {"source": "ids", "after": ["project"]}}
    measured = []
    for name, member in (("enum", {"enum": ids}), ("x-values", live)):
        for room in (2_000, 300):
            constraint = Grammar.from_json_schema(schema(member)).bind(bpe.vocabulary)
            for answer in (1, 2, 3):
                values = LiveValues({"ids": lambda call: list(ids)}) if name == "x-values" else None
                taken = steps(constraint, bpe, text, values, room)
                asked = values.asked if values is not None else 0
                measured.append([name, room, answer, round(median(taken)), round(max(taken)), asked])
    print(f"{count:,} ids, {len(bpe.encode(text))} tokens\n")
    print(table(("values", "room", "answer", "median", "longest", "asked"), measured))
