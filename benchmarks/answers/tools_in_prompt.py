"""What tools cost in a prompt, and what names alone lose: right functions and arguments with few and many tools.

    python -m benchmarks answers/tools_in_prompt [--model smollm2] [--requests 40] [--tools 0,10,100,1000] [--keep NAME]

Requests of BFCL's ``live_multiple`` that one call answers, each with its own tools and, before them, distractors: the
tools of Glaive (from MaskBench), then those of other BFCL requests. The distractors are the same for all requests, so
that the prefix cache has them. Each request is answered greedily by one call, in the ways of ``tools_in_prompt``:

- ``schemas``: the prompt has the schema of each tool;
- ``names``: it has the names and one line each, and a tool's schema is inserted when the call has its name;
- ``names, nothing inserted``: the schemas are in the grammar only.

A call is judged as in ``answer_ways.py``. A cell whose prompt does not fit in the context window says so.
"""

from __future__ import annotations

import re
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from itertools import product
from pathlib import Path
from typing import Any

from benchmarks.shared.answer_ways import Case, judge
from benchmarks.shared.data import BFCL, MASKBENCH_ALL, rows
from benchmarks.shared.sheets import Sheet, Sheets
from benchmarks.shared.tables import show
from toolgrammar.core import ContextOverflowError, Message, ToolGrammarError, load_model
from toolgrammar.core.conversation import Finish, TokenWritten
from toolgrammar.core.models import Model
from toolgrammar.tools import Tool, ToolSet


class NamesOnly(ToolSet):
    """Tools of which the prompt has the names and one line, and never a schema."""

    def to_openai(self, **options: Any) -> list[dict[str, Any]]:
        """Return the tools without schemas."""
        return super().to_openai(**{**options, "brief": self.names})

    def prompt(self, format: Any = "hermes", **_: Any) -> str:
        """Return the prompt without schemas."""
        return super().prompt(format, brief=self.names)


#: For each way: the kind of tool set, and the option of `Model.generate`.
WAYS: dict[str, tuple[Callable[[Any], ToolSet], str]] = {
    "schemas": (ToolSet, "schemas"),
    "names": (ToolSet, "names"),
    "names, nothing inserted": (NamesOnly, "schemas"),
}


def cases(count: int) -> list[tuple[Case, Any]]:
    """Return requests with one call as the answer, spread over the file, each with its conversation."""
    asked = [one for one in rows(BFCL) if one["category"] == "live_multiple"]
    asked = [one for one in asked if len(one["answers"]) == 1 and len(one["functions"]) > 1]
    found = []
    for one in asked[:: max(1, len(asked) // count)][:count]:
        messages = [Message(turn["role"], turn["content"]) for turn in one["question"][0]]
        found.append((Case(one["id"], "", ToolSet.from_any(one["functions"]), one["answers"][0]), messages))
    return found


def distractors(count: int) -> list[Tool]:
    """Return tools with different names: Glaive's, then those of BFCL, then Glaive's variants under numbered names."""
    glaive: dict[str, list[Any]] = {}
    for one in rows(MASKBENCH_ALL):
        if one["id"].startswith("Glaiveai2K---"):
            glaive.setdefault(re.sub(r"_[0-9a-f]+$", "", one["id"].split("---")[1]), []).append(one["schema"])
    made: dict[str, Tool] = {}

    def add(name: str, description: str, schema: Any) -> None:
        if name not in made and len(made) < count:
            try:
                tool = Tool(name, description, schema)
                ToolSet([tool]).grammar(tool_choice="required")
            except ToolGrammarError:
                return  # an unsupported schema
            made[name] = tool

    def words(name: str) -> str:
        return f"{name.replace('_', ' ').capitalize()}."

    for name, schemas in glaive.items():
        add(name, words(name), schemas[0])
    for row in rows(BFCL):
        if len(made) < count:
            for tool in ToolSet.from_any(row["functions"]):
                add(tool.name, tool.description, tool.parameters)
    for name, schemas in glaive.items():
        for number, schema in enumerate(schemas[1:], 2):
            add(f"{name}_{number}", words(name), schema)
    return list(made.values())


def answer(model: Model, case: Case, messages: Sequence[Message], tools: Sequence[Tool], way: str) -> Sheet:
    """Return what one answer is worth, and what it costs."""
    kind, option = WAYS[way]
    given = kind([*(tool for tool in tools if tool.name not in case.tools), *case.tools])
    begun, first, last = time.perf_counter(), None, None
    calls = []
    options: Any = {"tool_choice": "required", "parallel_tool_calls": False, "max_tokens": 200}
    stream = model.stream(messages, tools=given, tools_in_prompt=option, logprobs=0, **options)
    try:
        for event in stream:
            if first is None and isinstance(event, TokenWritten) and not event.forced:
                first = time.perf_counter() - begun
            if isinstance(event, Finish):
                last = event
            elif hasattr(event, "call"):
                calls.append(event.call)
    except ContextOverflowError as error:
        return {"overflow": int(re.findall(r"has (\d+) tokens", error.message)[0])}
    assert last is not None
    sheet = judge(case, calls, whole=last.reason != "length")
    usage = last.usage
    return {
        "function": sheet["function"],
        "right": sheet["right"],
        "valid": sheet["valid"],
        "prompt": usage.prompt_tokens,
        "cached": usage.cached_tokens,
        "passes": usage.forward_passes,
        "first": first,
        "seconds": time.perf_counter() - begun,
        "called": [call.name for call in calls],
    }


def summary(count: int, way: str, answers: Sequence[Sheet]) -> dict[str, Any]:
    """Return the row of a cell."""
    long = [one["overflow"] for one in answers if "overflow" in one]
    if long:
        return {"tools": count, "way": way, "overflow": max(long)}
    timed = answers[1:] or answers  # the first request reads the distractors for all
    return {
        "tools": count,
        "way": way,
        "asked": len(answers),
        **{name: sum(one[name] for one in answers) for name in ("function", "right", "valid")},
        "prompt": round(statistics.median(one["prompt"] for one in answers)),
        **{name: round(statistics.median(one[name] for one in timed), 2) for name in ("first", "seconds")},
    }


def main(
    model: str = "smollm2",
    context: int = 0,
    prefix_cache: int = 2048,
    requests: int = 40,
    tools: str = "0,10,100,1000",
    ways: str = ";".join(WAYS),
    sheets: Path | None = None,
    name: str = "",
    keep: str = "",
) -> None:
    """Answer the requests, and show the table.

    Args:
        context: context window, for a model that takes one
        prefix_cache: in MB; it has the distractors of each cell
        tools: numbers of tools beside the request's own
        ways: what the prompt has of the tools; separated by ;
        keep: write benchmarks/results/KEEP.json
    """
    known, chosen = Sheets(sheets), cases(requests)
    others = {count: distractors(count) for count in map(int, tools.split(","))}
    cells: dict[tuple[int, str], list[Sheet]] = {cell: [] for cell in product(others, ways.split(";"))}
    window = {"context_window": context} if context else {}
    with load_model(model, prefix_cache=prefix_cache << 20, **window) as loaded:
        for number, (case, messages) in enumerate(chosen, 1):  # all ways of a request together: a stopped run has pairs
            for (count, way), answers in cells.items():
                if answers and "overflow" in answers[-1]:
                    continue  # the prompts of the other requests have the same distractors
                key = (model, str(count), way, case.id)
                answers.append(known.answer(key, answer, loaded, case, messages, others[count], way))
            print(f"{number} of {len(chosen)}", file=sys.stderr, flush=True)
    report = {
        "model": name or model.rpartition("/")[2],
        "context": context or None,
        "requests": len(chosen),
        "cells": [summary(*cell, answers) for cell, answers in cells.items()],
    }
    show(keep or "tools_in_prompt", report, keep=bool(keep), table="tools_in_prompt")
