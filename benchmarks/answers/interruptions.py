"""Does anything invalid come out, or hang, when callers cut, cancel and crowd? Counts for the embedded model.

    python benchmarks/interruptions.py [--seed 0] [--only budgets,cancelling,threads,structured]

- ``budgets``: calls under every budget from 1 to 52 tokens and each tool choice (156 runs);
- ``cancelling``: 100 tasks that are cancelled after up to a quarter of a second, and 100 streams that are left after a
  few events; the model answers afterwards as it did before, and no thread is left;
- ``threads``: 50 threads on one model; each gets the answer that its seed gives alone;
- ``structured``: LangChain's structured output, six kinds of schema by each method, whole, raw and streamed (54 runs).

Every call and answer that is handed over as whole is judged by `jsonschema`, or by the class that was asked for. The
embedded model is noise, so that what it writes is whatever the grammar admits. The exit code is 1 if anything failed.
"""

from __future__ import annotations

import argparse
import asyncio
import enum
import random
import sys
import threading
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Literal, TypedDict, Union

import jsonschema
from pydantic import BaseModel, Field

from toolgrammar.core import BudgetError, Model, ToolCall, load_model
from toolgrammar.tools import ToolSet

#: Seconds after which a run counts as hanging.
PATIENCE = 300

PARAMETERS: dict[str, Any] = {
    "book": {
        "type": "object",
        "properties": {
            "city": {"type": "string", "maxLength": 8},
            "nights": {"type": "integer", "minimum": 1, "maximum": 30},
            "guests": {"type": "array", "items": {"enum": ["a", "b", "c"]}, "maxItems": 2},
        },
        "required": ["city", "nights"],
        "additionalProperties": False,
    },
    "now": {"type": "object", "properties": {}, "additionalProperties": False},
}
TOOLS = ToolSet.from_any([{"name": name, "parameters": schema} for name, schema in PARAMETERS.items()])


def invalid(calls: Iterable[ToolCall]) -> list[str]:
    """Return what is wrong with calls that are handed over as whole."""
    return [
        f"{call.name}: {error.message}"
        for call in calls
        if not call.cut
        for error in jsonschema.Draft202012Validator(PARAMETERS[call.name]).iter_errors(dict(call.arguments))
    ]


def answer(model: Model, number: int, **options: Any) -> tuple[ToolCall, ...]:
    """The calls of one request; a tool is demanded."""
    given = {"tool_choice": "required", "temperature": 1.0, "seed": number, "max_tokens": 80, **options}
    return tuple(model.generate(f"Book room {number}", tools=TOOLS, **given).tool_calls)


def budgets(seed: int) -> tuple[str, list[str]]:
    """Every small budget: a valid call, a cut one, or the error that names the least budget."""
    model = load_model("embedded")
    wrong: list[str] = []
    runs = refused = cut = 0
    for choice in ("auto", "required", "book"):
        for budget in range(1, 53):
            runs += 1
            try:
                calls = answer(model, seed + budget, tool_choice=choice, max_tokens=budget)
            except BudgetError:
                refused += 1
                continue
            wrong += invalid(calls)
            cut += any(call.cut for call in calls)
    return f"{runs} budgets: {refused} refused, {cut} with a cut call", wrong


def cancelling(seed: int) -> tuple[str, list[str]]:
    """Tasks that are cancelled anywhere, and streams that are left."""
    model = load_model("embedded")
    before = answer(model, seed)
    threads = threading.active_count()
    draw = random.Random(seed)
    wrong: list[str] = []

    async def run() -> tuple[int, int]:
        cancelled = finished = 0
        for number in range(100):
            options = {"tool_choice": "required", "temperature": 1.0, "seed": number}
            task = asyncio.ensure_future(model.agenerate(f"Book room {number}", tools=TOOLS, **options))
            await asyncio.sleep(draw.random() / 4)
            task.cancel()
            try:
                wrong.extend(invalid((await asyncio.wait_for(task, PATIENCE)).tool_calls))
                finished += 1
            except asyncio.CancelledError:
                cancelled += 1
        for number in range(100):
            left = draw.randrange(6)
            async for _ in model.astream(f"Book room {number}", tools=TOOLS, tool_choice="required", seed=number):
                left -= 1
                if left < 0:
                    break
            cancelled += 1
        return cancelled, finished

    cancelled, finished = asyncio.run(asyncio.wait_for(run(), PATIENCE))
    if [call.arguments for call in answer(model, seed)] != [call.arguments for call in before]:
        wrong.append("the model answers otherwise afterwards")
    if threading.active_count() > threads:
        wrong.append(f"{threading.active_count() - threads} threads are left")
    return f"{cancelled} cancelled or left, {finished} finished before", wrong


def threads(seed: int) -> tuple[str, list[str]]:
    """Many callers of one model."""
    model = load_model("embedded")
    numbers = range(seed, seed + 50)
    alone = [answer(model, number) for number in numbers]
    with ThreadPoolExecutor(len(numbers)) as pool:
        together = list(pool.map(lambda number: answer(model, number), numbers, timeout=PATIENCE))
    wrong = [each for calls in together for each in invalid(calls)]
    for number, one, other in zip(numbers, alone, together, strict=True):
        if [call.arguments for call in one] != [call.arguments for call in other]:
            wrong.append(f"seed {number} gives another answer among threads")
    return f"{len(together)} threads", wrong


class Color(enum.Enum):
    """A color."""

    red = "red"
    blue = "blue"


class Person(BaseModel):
    """A person."""

    name: str = Field(max_length=8)
    age: int = Field(ge=0, le=150)


class Group(BaseModel):
    """A group of people."""

    people: list[Person] = Field(max_length=2)
    color: Color
    note: str | None = Field(None, max_length=5)


class Measure(BaseModel):
    """A value of several types."""

    value: Union[int, Literal["x"], bool]


class Tree(BaseModel):
    """A node and what is below it."""

    kind: Literal["leaf", "node"]
    children: list[Tree] = Field(default_factory=list, max_length=1)


class Stay(TypedDict):
    """A stay in a city."""

    city: Literal["Oslo", "Rome"]
    days: int


THING: dict[str, Any] = {
    "title": "thing",
    "description": "A thing",
    "type": "object",
    "properties": {
        "a": {"type": "array", "items": {"enum": [1, 2, 3]}, "uniqueItems": True, "minItems": 1},
        "b": {"not": {"type": "object"}, "type": ["null", "boolean"]},
    },
    "required": ["a", "b"],
    "additionalProperties": False,
}


def structured(seed: int) -> tuple[str, list[str]]:
    """LangChain's structured output; an error counts as a failure, too."""
    from toolgrammar.adapters.langchain import ChatToolGrammar

    model = ChatToolGrammar(model="embedded", temperature=1.0, max_tokens=220, seed=seed)
    wrong: list[str] = []
    runs = 0
    schemas: list[Any] = [Person, Group, Measure, Tree, Stay, THING]
    for schema in schemas:
        for method in ("function_calling", "json_schema", "json_mode"):
            for way in ("whole", "raw", "streamed"):
                runs += 1
                asked = model.with_structured_output(schema, method=method, include_raw=way == "raw")
                try:
                    value = list(asked.stream("Go"))[-1] if way == "streamed" else asked.invoke("Go")
                    if way == "raw":
                        if value["parsing_error"] is not None:
                            raise value["parsing_error"]
                        value = value["parsed"]
                    if schema is THING:
                        jsonschema.validate(value, schema)
                    elif schema is Stay:
                        assert value["city"] in ("Oslo", "Rome") and type(value["days"]) is int, value
                    else:
                        assert isinstance(value, schema), value
                except Exception as error:
                    name = getattr(schema, "__name__", "THING")
                    wrong.append(f"{name}, {method}, {way}: {type(error).__name__}: {error}")
    return f"{runs} structured answers", wrong


RUNS: dict[str, Callable[[int], tuple[str, list[str]]]] = {
    "budgets": budgets,
    "cancelling": cancelling,
    "threads": threads,
    "structured": structured,
}


def main() -> int:
    """Run all, or some; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default=",".join(RUNS), help="which of the runs, separated by commas")
    given = parser.parse_args()
    failed = 0
    for name in given.only.split(","):
        started = time.monotonic()
        counts, wrong = RUNS[name](given.seed)
        failed += len(wrong)
        print(f"{name}: {counts}; {len(wrong)} wrong ({time.monotonic() - started:.0f} s)", flush=True)
        for each in wrong[:5]:
            print(f"  {each}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
