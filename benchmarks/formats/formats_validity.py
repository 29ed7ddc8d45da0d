"""Random calls in every wire format: do they parse, and are they valid?

    python -m benchmarks formats/formats_validity DATA [--limit 200] [--formats hermes,llama-4] [--json F]

A model that gives every token the same probability writes one required call turn for each tool set of the Berkeley
Function Calling Leaderboard, in each format, through the ordinary decoding loop, at temperature 1 and with a budget
that often ends in the middle of a call. Its vocabulary has the 256 bytes, the control tokens of the format, and an end.
The output is parsed by the format's parser, and the arguments of every call are judged by `jsonschema`, which has no
part in writing them. Tool sets that a format cannot write are refused before anything is written, and counted by
reason.
"""

from __future__ import annotations

import argparse
import json
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import jsonschema

from benchmarks.shared.data import rows
from benchmarks.shared.noise import NoiseBackend
from toolgrammar.core import ToolGrammarError, Vocabulary
from toolgrammar.core.models import Model
from toolgrammar.tools import ToolSet, close_objects
from toolgrammar.tools.formats import format_names, get_format


def uniform(tool_format: str) -> NoiseBackend:
    """A model of single bytes and the control tokens of a format."""
    special = getattr(get_format(tool_format), "special", ())
    tokens: list[bytes | None] = [bytes((byte,)) for byte in range(256)]
    tokens += [None] * (len(special) + 1)
    names = {name: 257 + index for index, name in enumerate(special)}
    return NoiseBackend(Vocabulary(tokens, eos=[256], special=names), str.encode, "uniform", tool_format)


@dataclass
class Outcome:
    """What became of one format.

    Attributes:
        sets: tool sets that were written for.
        calls: calls that were written.
        cut: those of them with values that the budget cut short.
        wrong: what was wrong, with the output.
        refused: tool sets that the format cannot write, by reason.
        seconds: for all of it.
    """

    sets: int = 0
    calls: int = 0
    cut: int = 0
    wrong: list[str] = field(default_factory=list)
    refused: Counter[str] = field(default_factory=Counter)
    seconds: float = 0.0


def judge(tools: ToolSet, generation: Any) -> list[str]:
    """What is wrong with a turn."""
    if not generation.tool_calls or generation.text:
        return [f"no calls, or text beside them: {generation.raw!r}"]
    wrong = []
    for call in generation.tool_calls:
        if call.error is not None:
            wrong.append(f"{call.error} in {generation.raw!r}")
            continue
        judges = jsonschema.Draft202012Validator(close_objects(tools[call.name].parameters))
        wrong += [f"{error.message} in {generation.raw!r}" for error in judges.iter_errors(dict(call.arguments))]
    return wrong


def run(name: str, sets: Sequence[list[Any]], max_tokens: int) -> Outcome:
    """All tool sets in one format."""
    outcome = Outcome()
    model = Model(uniform(name))
    began = time.perf_counter()
    for seed, functions in enumerate(sets):
        tools = ToolSet.from_any(functions)
        try:
            tools.grammar(get_format(name).for_vocabulary(model.vocabulary.special), tool_choice="required")
        except ToolGrammarError as error:
            outcome.refused[str(error).partition(" Hint:")[0].partition(" (")[0][:100]] += 1
            continue
        generation = model.generate(
            "Go.", tools=tools, tool_choice="required", temperature=1.0, seed=seed, max_tokens=max_tokens
        )
        outcome.sets += 1
        outcome.calls += len(generation.tool_calls)
        outcome.cut += sum(bool(call.cut) for call in generation.tool_calls)
        outcome.wrong += judge(tools, generation)
    outcome.seconds = time.perf_counter() - began
    return outcome


def main() -> int:
    """Run it; 0 if nothing is wrong."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("data", type=Path)
    options.add_argument("--limit", type=int, default=200)
    options.add_argument("--max-tokens", type=int, default=400)
    options.add_argument("--formats", default="")
    options.add_argument("--json", type=Path)
    asked = options.parse_args()
    sets = [row["functions"] for row in rows(asked.data)[: asked.limit]]
    results = {}
    for name in asked.formats.split(",") if asked.formats else format_names():
        outcome = results[name] = run(name, sets, asked.max_tokens)
        refused = sum(outcome.refused.values())
        print(
            f"{name:20} {outcome.sets:4} sets {outcome.calls:5} calls, {outcome.cut:4} cut, "
            f"{len(outcome.wrong):3} wrong, {refused:3} refused, {outcome.seconds:6.1f} s",
            flush=True,
        )
        for line in (*outcome.wrong[:3], *(f"refused {count}: {why}" for why, count in outcome.refused.items())):
            print(f"    {line[:300]}")
    if asked.json:
        asked.json.write_text(json.dumps({name: vars(each) for name, each in results.items()}, indent=1))
    return int(any(each.wrong for each in results.values()))
