"""Random answers over all formats and options: each call is valid, nothing raises but what is refused, streams are whole.

    python -m tests.tools.sweep [--first SEED] [--count NUMBER] [--seconds SECONDS]

A model of noise writes; tools are odd ones and random schemas; markers are control tokens, or some of them.
"""

from __future__ import annotations

import argparse
import json
import random
import time
import traceback
from collections import Counter
from typing import Any

import jsonschema

from toolgrammar.core import (
    ArgumentsDelta,
    BudgetError,
    CallEnd,
    Finish,
    Model,
    ReasoningDelta,
    TextDelta,
    ToolGrammarError,
)
from toolgrammar.tools import Tool, ToolSet, close_objects
from toolgrammar.tools.formats import format_names, get_format

from ..core.backends import Noise
from ..core.schema.writing import pythonic
from ..schemas import random_schema
from .odd_tools import ODD
from .test_conveniences import OFF

_SAY = {"type": "object", "properties": {"say": {"type": "string"}, "n": {"type": "integer"}}, "required": ["say"]}

#: Options that every request has or lacks, by chance.
OPTIONS: tuple[tuple[str, tuple[Any, ...]], ...] = (
    ("tool_choice", ("required", "required", "auto", "none")),
    ("temperature", (0.0, 0.7, 1.5)),
    ("top_p", (0.9,)),
    ("top_k", (5,)),
    ("exact_choice", (True,)),
    ("draft", (1, 6)),
    ("thinking", (True, 10, "auto")),
    ("logprobs", (0, 2)),
    ("masses", (True,)),
    ("trace", (True,)),
    ("other_spellings", (False,)),
    ("jump_forward", (False,)),
    ("parallel_tool_calls", (False,)),
    ("equal_calls", (True,)),
    ("tools_in_prompt", ("names", "auto")),
    ("max_repetition", (0, 20)),
    ("stop", (["e"], ["\n"])),
    ("response_schema", (_SAY,)),
)

#: Options that say what is asked for, not how.
_ASKED = ("tool_choice", "response_schema", "parallel_tool_calls")


class SweepError(AssertionError):
    """A fault, with everything needed to see it again."""


def _tools(rng: random.Random) -> tuple[str, ToolSet]:
    if rng.random() < 0.5:
        name = rng.choice(sorted(ODD))
        return name, ODD[name]
    schemas = [schema for schema in (random_schema(rng, 2) for _ in range(4)) if "$defs" not in schema]
    given = {f"p{number}": schema for number, schema in enumerate(schemas)}
    parameters = {"type": "object", "properties": given, "required": [key for key in given if rng.random() < 0.5]}
    try:
        return "random", ToolSet([Tool("f", "", parameters), Tool("get.it", "", {})])
    except ToolGrammarError:
        return "random", ToolSet([Tool("f", "", {})])


def judge(seed: int) -> str:
    """Generate an answer, whole and streamed, and check it; return what became of it.

    Raises:
        SweepError: a call or a JSON answer is not valid, or the stream is not the whole answer.
    """
    rng = random.Random(seed)
    wire = rng.choice(format_names())
    family = get_format(wire)
    special = [*getattr(family, "special", ())]
    if rng.random() < 0.3:
        special = [token for token in special if rng.random() < 0.5]
    special = list(dict.fromkeys([*special, *(["<think>", "</think>"] if rng.random() < 0.6 else [])]))
    name, tools = _tools(rng)
    options: dict[str, Any] = {key: rng.choice(values) for key, values in OPTIONS if rng.random() < 0.25}
    if "draft" in options or not {"<think>", "</think>"}.issubset(special):
        options.pop("thinking", None)
    options |= {"seed": seed, "max_tokens": rng.choice((12, 40, 120, 300))}
    backend = Noise(special, seed, scale=rng.choice((1.0, 4.0)), context_window=100_000)
    if rng.random() < 0.5:  # noise alone never ends
        backend.boost = {ord(char): 6.0 for char in '"]})>'} | dict.fromkeys(backend.vocabulary.eos, 4.0)
        backend.boost |= dict.fromkeys(backend.vocabulary.special.values(), 5.0)
    model = Model(backend)
    where = f"seed {seed}: {name}, {wire}, {special}, {options}"
    asked: dict[str, Any] = {"tools": tools, "tool_format": wire, **options}
    try:
        whole = model.generate("Go.", **asked)
    except BudgetError:
        return "budget"
    except ToolGrammarError as error:
        bare = {key: value for key, value in asked.items() if key in ("tools", "tool_format", *_ASKED)}
        try:
            model.generate("Go.", **bare, **OFF)
        except ToolGrammarError:
            return f"refused: {type(error).__name__}"
        raise SweepError(f"{where}\nan option refuses: {error}") from error
    for call in whole.tool_calls:
        if call.error is not None:
            raise SweepError(f"{where}\n{call}")
        tools.validate(call)
        schema = close_objects(pythonic(tools[call.name].parameters))
        try:
            errors = list(jsonschema.Draft202012Validator(schema).iter_errors(dict(call.arguments)))
        except (OverflowError, ArithmeticError):  # of jsonschema itself
            errors = []
        if errors:
            raise SweepError(f"{where}\n{call}: {errors[0].message}")
    if options.get("tool_choice") == "required" and not whole.tool_calls:
        raise SweepError(f"{where}\nno call: {whole.raw!r}")
    if "response_schema" in options and not whole.tool_calls:
        jsonschema.validate(json.loads(whole.text), _SAY)
    _check_stream(list(model.stream("Go.", **asked)), whole, where)
    return "call" if whole.tool_calls else "text"


def _check_stream(events: list[Any], whole: Any, where: str) -> None:
    """The events are those of the whole answer."""
    text = "".join(event.text for event in events if isinstance(event, TextDelta))
    thoughts = "".join(event.text for event in events if isinstance(event, ReasoningDelta))
    calls = [(event.call.name, event.call.arguments, event.call.cut) for event in events if isinstance(event, CallEnd)]
    deltas = "".join(event.text for event in events if isinstance(event, ArgumentsDelta))
    wanted = [(call.name, call.arguments, call.cut) for call in whole.tool_calls]
    if (text, thoughts, calls) != (whole.text, whole.message.reasoning or "", wanted):
        raise SweepError(f"{where}\nthe stream is {(text, thoughts, calls)}, and the answer {whole.message}")
    if deltas != "".join(call.raw or "" for call in whole.tool_calls):
        raise SweepError(f"{where}\nthe arguments came as {deltas!r}")
    (finish,) = (event for event in events if isinstance(event, Finish))
    if (finish.reason, finish.usage.completion_tokens) != (whole.finish_reason, whole.usage.completion_tokens):
        raise SweepError(f"{where}\nthe stream ends with {finish}")


def main() -> int:
    """Return the exit status: 1 if there are faults."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--count", type=int, default=3_000)
    parser.add_argument("--seconds", type=float, default=3_600)
    options = parser.parse_args()
    outcomes: Counter[str] = Counter()
    faults = 0
    end = time.monotonic() + options.seconds
    for seed in range(options.first, options.first + options.count):
        if time.monotonic() > end:
            break
        try:
            outcomes[judge(seed)] += 1
        except Exception as error:
            faults += 1
            print(str(error) if isinstance(error, SweepError) else f"seed {seed}: {traceback.format_exc()}", flush=True)
    print(f"{sum(outcomes.values()) + faults:,} answers; {dict(outcomes)}; faults {faults}")
    return 1 if faults else 0


if __name__ == "__main__":
    raise SystemExit(main())
