"""Random calls in every wire format: do they parse, and are they valid?

    python -m benchmarks formats/formats_validity DATA [--limit 200] [--formats hermes,llama-4]

A model that gives every token the same probability writes one required call turn for each tool set of the Berkeley
Function Calling Leaderboard, in each format, through the ordinary decoding loop, at temperature 1 and with a budget
that often ends in the middle of a call. Its vocabulary has the 256 bytes, the control tokens of the format, and an end.
The output is parsed by the format's parser, and the arguments of every call are judged by `jsonschema`, which has no
part in writing them. Tool sets that a format cannot write are refused before anything is written, and counted by
reason.
"""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema

from benchmarks.shared.data import rows
from benchmarks.shared.noise import NoiseBackend
from benchmarks.shared.pool import Counts, count
from toolgrammar.core import Generation, ToolGrammarError, Vocabulary
from toolgrammar.core.models import Model
from toolgrammar.tools import ToolSet, close_objects
from toolgrammar.tools.formats import format_names, get_format


@cache
def model_of(tool_format: str) -> Model:
    """The model of single bytes and the control tokens of a format; one per process."""
    special = getattr(get_format(tool_format), "special", ())
    tokens: list[bytes | None] = [bytes((byte,)) for byte in range(256)]
    tokens += [None] * (len(special) + 1)
    names = {name: 257 + index for index, name in enumerate(special)}
    return Model(NoiseBackend(Vocabulary(tokens, eos=[256], special=names), str.encode, "uniform", tool_format))


@dataclass
class Outcome(Counts):
    """What became of one format.

    Attributes:
        sets: tool sets that were written for.
        calls: calls that were written.
        cut: those of them with values that the budget cut short.
        refused: tool sets that the format cannot write, by reason.
    """

    sets: int = 0
    calls: int = 0
    cut: int = 0
    refused: Counter[str] = field(default_factory=Counter)


def judge(tools: ToolSet, generation: Generation) -> list[str]:
    """What is wrong with a turn in which a call was required, each with its kind before a colon."""
    if not generation.tool_calls or generation.text:
        return [f"no calls, or text beside them: {generation.raw!r}"]
    wrong = []
    for call in generation.tool_calls:
        if call.error is not None:
            wrong.append(f"call with an error: {call.error} in {generation.raw!r}")
            continue
        judges = jsonschema.Draft202012Validator(close_objects(tools[call.name].parameters))
        wrong += [
            f"invalid arguments: {error.message} in {generation.raw!r}"
            for error in judges.iter_errors(dict(call.arguments))
        ]
    return wrong


def run(name: str, functions: list[Any], seed: int, max_tokens: int) -> Outcome:
    """One tool set in one format."""
    model, tools = model_of(name), ToolSet.from_any(functions)
    try:
        tools.grammar(get_format(name).for_vocabulary(model.vocabulary.special), tool_choice="required")
    except ToolGrammarError as error:
        return Outcome(refused=Counter([str(error).partition(" Hint:")[0].partition(" (")[0][:100]]))
    generation = model.generate(
        "Go.", tools=tools, tool_choice="required", temperature=1.0, seed=seed, max_tokens=max_tokens
    )
    calls = generation.tool_calls
    outcome = Outcome(sets=1, calls=len(calls), cut=sum(bool(call.cut) for call in calls))
    for problem in judge(tools, generation):
        outcome.fail(problem, f"{name}, seed {seed}")
    return outcome


def main(
    data: Path, limit: int = 200, max_tokens: int = 400, formats: str = "", workers: int = os.cpu_count() or 1
) -> int:
    """Run it; 1 if anything is wrong.

    Args:
        limit: number of tool sets
        formats: their names, separated by commas; all without it
    """
    sets = [row["functions"] for row in rows(data)[:limit]]
    jobs = {
        name: [(name, functions, seed, max_tokens) for seed, functions in enumerate(sets)]
        for name in (formats.split(",") if formats else format_names())
    }
    return count(run, jobs, ("format",), workers)
