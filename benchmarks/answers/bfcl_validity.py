"""Is every call valid? Noise models write calls for real requests, and every one of them is checked.

    python -m benchmarks answers/bfcl_validity DATA [--seeds 3] [--limit 100]

For each request of a file of the Berkeley Function Calling Leaderboard (one JSON object a line: ``id``, ``question``,
``functions``), the union grammar of its functions is written under by two models: the embedded one at temperature 1,
and one that chooses uniformly among the allowed tokens, the hardest test of a guarantee there is. Each produced text
must be in the grammar, parse, and hold only calls of given tools whose arguments validate under the function's own
schema with the ``jsonschema`` library.

With ``auto`` a noise model would hardly ever write the marker that begins a call, so there the uniform model favours
it: one token in twenty. Texts are bounded by ``--max-tokens``; whatever is open then is closed by the decoding loop, so
cut texts are checked like all others. The exit code is 1 if anything failed. Requests whose schemas the library
refuses to enforce are counted and shown, and produce nothing.
"""

from __future__ import annotations

import json
import math
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import product
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np

from benchmarks.shared.data import lines
from benchmarks.shared.noise import NoiseBackend
from benchmarks.shared.pool import Counts, count
from toolgrammar.core import Generation, ToolGrammarError, UnsupportedSchemaError, load_model
from toolgrammar.core.models import Model
from toolgrammar.tools import ToolSet, to_json_schema

MARKER = b"<tool_call>"
MODELS = ("embedded", "uniform")
CHOICES = ("required", "auto")


@dataclass
class Outcome(Counts):
    """Counts over some runs.

    Attributes:
        runs: texts asked for.
        refused: runs whose schemas cannot be enforced; nothing was written.
        calls: calls written.
        texts: turns of text alone.
        tokens: tokens written.
        closed: turns that the token budget closed.
        seconds: time spent.
    """

    runs: int = 0
    refused: int = 0
    calls: int = 0
    texts: int = 0
    tokens: int = 0
    closed: int = 0
    seconds: float = 0.0


def uniform(like: Any, favour: float) -> NoiseBackend:
    """A tokenizer, and no model: uniform choice over the mask.

    Args:
        like: whose tokenizer.
        favour: the share of choices that goes to the marker of a call where it may be written; 0 for its equal share.
    """
    backend = NoiseBackend(like.vocabulary, like.encode, "uniform")
    if favour:
        logits = np.zeros(like.vocabulary.size, dtype=np.float32)
        logits[like.vocabulary.tokens.index(MARKER)] = math.log(like.vocabulary.size * favour / (1 - favour))
        backend.logits = logits
    return backend


@cache
def model_for(name: str, choice: str) -> Model:
    """The model of that name; one per process."""
    if name == "uniform":
        return Model(uniform(model_for("embedded", "").backend, 0.05 if choice == "auto" else 0.0))
    return embedded()


@cache
def embedded() -> Model:
    """The embedded model, with room for the longest tool lists."""
    return load_model("embedded", context_window=32_768)


@lru_cache(maxsize=8)
def tools_for(functions: str) -> ToolSet:
    """The tool set of a request; runs of one request follow each other."""
    return ToolSet.from_any(json.loads(functions))


def failures(
    generation: Generation, tools: ToolSet, functions: Sequence[Mapping[str, Any]], choice: str
) -> Iterator[str]:
    """What is wrong with a generated turn: kind of failure, a colon, and the details."""
    if not tools.grammar(tool_choice=choice).matches(generation.raw):
        yield "not in the grammar: the whole text"
    reparsed = tools.parse(generation.raw)
    if [(c.name, c.arguments) for c in reparsed.tool_calls] != [(c.name, c.arguments) for c in generation.tool_calls]:
        yield "parsed differently: from the whole text"
    if choice == "required" and not generation.tool_calls:
        yield "no call: although one is required"
    if not generation.tool_calls and not generation.text:
        yield "empty turn: neither text nor calls"
    schemas = {function["name"]: function["parameters"] for function in functions}
    for call in generation.tool_calls:
        if call.error is not None:
            yield f"call with an error: {call.error}"
        elif call.name not in schemas:
            yield f"unknown tool: {call.name}"
        else:
            validator = jsonschema.Draft202012Validator(to_json_schema(schemas[call.name]))
            for error in validator.iter_errors(dict(call.arguments)):
                yield f"invalid arguments: {error.message}"


def run(line: str, model: str, choice: str, seeds: int, max_tokens: int) -> Outcome:
    """Write and check the turns of one request."""
    request = json.loads(line)
    outcome = Outcome()
    started = time.perf_counter()
    for seed in range(seeds):
        outcome.runs += 1
        try:
            tools = tools_for(json.dumps(request["functions"]))
            generation = model_for(model, choice).generate(
                request["question"][0][-1]["content"],
                tools=tools, tool_choice=choice, max_tokens=max_tokens, temperature=1.0, seed=seed,
            )  # fmt: skip
            problems = list(failures(generation, tools, request["functions"], choice))
        except UnsupportedSchemaError:
            outcome.refused += 1
            continue
        except ToolGrammarError as error:
            problems = [f"{type(error).__name__}: {error}"]
        else:
            outcome.calls += len(generation.tool_calls)
            outcome.texts += not generation.tool_calls
            outcome.tokens += generation.usage.completion_tokens
            outcome.closed += generation.finish_reason == "length"
        for problem in problems:
            outcome.fail(problem, f"{request['id']}, {model}, {choice}, seed {seed}")
    outcome.seconds = time.perf_counter() - started
    return outcome


def main(
    data: Path,
    seeds: int = 3,
    limit: int = 0,
    max_tokens: int = 512,
    models: Sequence[str] = MODELS,
    choices: Sequence[str] = CHOICES,
    workers: int = os.cpu_count() or 1,
) -> int:
    """Run the benchmark; 1 if anything failed.

    Args:
        seeds: turns of a request, model and choice
        limit: only the first so many requests
    """
    asked = lines(data)[: limit or None]
    jobs = {pair: [(line, *pair, seeds, max_tokens) for line in asked] for pair in product(models, choices)}
    return count(run, jobs, ("model", "choice"), workers)
