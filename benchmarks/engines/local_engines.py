"""A model under one local engine, beside the same weights under another: are its calls valid, and are they the same?

    python -m benchmarks engines/local_engines DATA onnx:FOLDER [--beside hf:FOLDER] [--requests 200]

Each request of the Berkeley Function Calling Leaderboard is answered greedily by one required call, which
must validate under its schema with the ``jsonschema`` library; a call that the
budget closed is counted as cut, and is checked like all others. With ``--beside`` the tokens of both models are
compared. At the first difference the tie is measured: the distance of the two logits under each model, which is
rounding if it is below ``--tie``. The exit code is 1 if a call is invalid, or if answers differ by more.
"""

from __future__ import annotations

import random
import time
from collections import Counter
from pathlib import Path
from typing import Any

from benchmarks.formats.formats_validity import judge
from benchmarks.shared.data import rows
from toolgrammar.core import ContextOverflowError, Generation, ToolGrammarError, UnsupportedSchemaError, load_model
from toolgrammar.tools import ToolSet


def drawn(path: Path, count: int) -> list[dict[str, Any]]:
    """Requests of a file, drawn by chance, the same each time."""
    found = rows(path)
    return random.Random(0).sample(found, min(count, len(found)))


def answer(model: Any, request: dict[str, Any], tools: ToolSet, max_tokens: int) -> Generation:
    """The greedy answer to a request."""
    question = request["question"][0][-1]["content"]
    made: Generation = model.generate(
        question, tools=tools, tool_choice="required", parallel_tool_calls=False, max_tokens=max_tokens
    )
    return made


def recorded(model: Any) -> list[list[int]]:
    """The list to which the tokens of each prompt of a model are appended from now on."""
    prompts: list[list[int]] = []
    encode = model.backend.encode_prompt

    def encode_prompt(*arguments: Any, **named: Any) -> list[int]:
        prompts.append(list(encode(*arguments, **named)))
        return list(prompts[-1])

    model.backend.encode_prompt = encode_prompt
    return prompts


def distance(model: Any, ids: list[int], one: int, other: int) -> float:
    """How much more likely one token is than another after a sequence, in logits."""
    session = model.backend.new_session()
    logits = session.extend(ids)
    session.close()
    return float(abs(logits[one] - logits[other]))


def main(
    data: Path,
    model: str,
    beside: str = "",
    threads: int = 0,
    requests: int = 200,
    seconds: float = float("inf"),
    max_tokens: int = 120,
    tie: float = 1e-4,
) -> int:
    """Answer, check, compare; print counts.

    Args:
        beside: another address, of the same weights
        threads: of the first model; others take OMP_NUM_THREADS
        seconds: begin no request after this time
        tie: the greatest distance of logits that is rounding
    """
    models: list[Any] = [load_model(model, **({"threads": threads} if threads else {}))]
    if beside:
        models.append(load_model(beside))
    prompts = [recorded(each) for each in models]
    counts: Counter[str] = Counter()
    bad = 0
    started = time.perf_counter()
    for request in drawn(data, requests):
        if time.perf_counter() - started > seconds:
            break
        try:
            tools = ToolSet.from_any(request["functions"])
            made = [answer(each, request, tools, max_tokens) for each in models]
        except UnsupportedSchemaError:
            counts["refused schemas"] += 1
            continue
        except ContextOverflowError:
            counts["prompts beyond the window"] += 1
            continue
        except ToolGrammarError as error:
            bad += 1
            print(request["id"], type(error).__name__, error)
            continue
        one = made[0]
        problems = judge(tools, one)
        bad += len(problems)
        for problem in problems:
            print(request["id"], problem[:300])
        counts["answers"] += 1
        counts["calls"] += len(one.tool_calls)
        counts["cut calls"] += sum(bool(call.cut) for call in one.tool_calls)
        counts["tokens"] += one.usage.completion_tokens
        counts["forward passes"] += one.usage.forward_passes
        counts["prompt tokens"] += one.usage.prompt_tokens
        counts["prompt tokens from the cache"] += min(one.usage.cached_tokens, one.usage.prompt_tokens)
        if len(made) == 2:
            tokens = [each.token_ids for each in made]
            counts["prompts that differ"] += prompts[0][-1] != prompts[1][-1]
            if tokens[0] == tokens[1]:
                counts["equal answers"] += 1
                continue
            place = next(i for i, pair in enumerate(zip(*tokens, strict=False)) if pair[0] != pair[1])
            pairs = zip(models, prompts, strict=True)
            spans = [distance(each, [*prompt[-1], *tokens[0][:place]], tokens[0][place], tokens[1][place])
                     for each, prompt in pairs]  # fmt: skip
            is_tie = max(spans) < tie
            counts["answers that differ by rounding" if is_tie else "answers that differ"] += 1
            bad += not is_tie
            print(f"{request['id']}: token {place} differs, the logits of both by {spans[0]:.1e} and {spans[1]:.1e}")
    for name, count in counts.items():
        print(f"{name:32} {count:>9,}")
    print(f"{'invalid':32} {bad:>9,}")
    print(f"{'seconds':32} {time.perf_counter() - started:>9.0f}")
    return 1 if bad else 0
