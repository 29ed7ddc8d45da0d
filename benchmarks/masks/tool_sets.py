"""Changing tool sets, the agents' case: each request has its own 50 tools, drawn from 1,000 that were seen before.

    python -m benchmarks masks/tool_sets [--requests N] [--tools N] [--each N] [--peers llguidance,xgrammar] [--keep]

The tools are those of the BFCL sample (their first 1,000 distinct pairs of name and parameters, or as many as there
are; a name that comes again gets a number). A request is: from a list of tools to a compiled grammar of at least one
call, the matcher, and the first mask; then, apart, the mask behind what is fixed, where the names part. All engines
write the same wire format (`<tool_call>`, a JSON object with name and arguments, `</tool_call>`), have seen every tool
once (requests that together hold all of them), keep whatever caches they have, and run on one thread: toolgrammar with
a `ConstraintCache`, xgrammar with structural tags and its compiler's cache, llguidance with a Lark grammar of
alternatives whose arguments are JSON Schemas. xgrammar gets fewer requests, since each takes long. The sets overlap,
and none is asked twice. Times are those of the thread's own processor time.
"""

from __future__ import annotations

import gc
import json
import random
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.shared import engines
from benchmarks.shared.data import BFCL, distinct_tools
from benchmarks.shared.peers import tekken
from benchmarks.shared.results_io import percentile
from benchmarks.shared.tables import show
from benchmarks.shared.workers import installed
from toolgrammar.core import Constraint, ConstraintCache, Grammar, Vocabulary
from toolgrammar.tools import Tool, ToolSet
from toolgrammar.tools.closed_schema import close_objects

FIXED = b'<tool_call>\n{"name": "'
#: As this library's default.
SPACING = {"item_separator": ", ", "key_separator": ": ", "whitespace_flexible": False}


class Ours(engines.Ours):
    """toolgrammar, of schemas and of lists of tools.

    Args:
        vocabulary: of the masks.
        bind: binds a grammar to a vocabulary.
    """

    def __init__(self, vocabulary: Vocabulary, bind: Callable[..., Constraint] = Grammar.bind) -> None:
        self.vocabulary, self._bind = vocabulary, bind
        self.mask = self.bits = np.zeros((vocabulary.size + 31) // 32, dtype=np.uint32)

    def prepare(self, subject: Any) -> Any:
        """Return what is handed in: making it is not counted."""
        return subject

    def compile(self, subject: Any) -> Constraint:
        """Compile, and give the first mask."""
        if isinstance(subject, list):
            grammar = ToolSet(subject).grammar("hermes", tool_choice="required")
        else:
            grammar = Grammar.from_json_schema(subject, whitespace="single", property_order="schema")
        constraint = self._bind(grammar, self.vocabulary)
        constraint.matcher().fill_mask(self.mask)
        return constraint


class LLGuidance(engines.LLGuidance):
    """llguidance: its own JSON Schema, or a Lark grammar of alternatives."""

    def prepare(self, subject: Any) -> str:
        """Return the grammar's text: making it is not counted."""
        if not isinstance(subject, list):
            return str(self.matcher.grammar_from_json_schema(json.dumps({**subject, "x-guidance": SPACING})))
        heads = [json.dumps(json.dumps(tool.name) + ', "arguments": ') for tool in subject]
        lines = ['start: "<tool_call>\\n{\\"name\\": " call "}\\n</tool_call>"']
        lines.append("call: " + "\n    | ".join(f"{head} args_{at}" for at, head in enumerate(heads)))
        for at, tool in enumerate(subject):
            lines.append(f"args_{at}: %json {json.dumps({**close_objects(tool.parameters), 'x-guidance': SPACING})}")
        return str(self.matcher.grammar_from_lark("\n".join(lines)))

    def compile(self, text: str) -> Any:
        """Compile, and give the first mask."""
        matcher = self.load(text)
        self.fill(matcher)
        return matcher


class XGrammar(engines.XGrammar):
    """xgrammar, with structural tags of tools."""

    def prepare(self, chosen: Sequence[Tool]) -> Any:
        """Return the structural tag: making it is not counted."""
        from xgrammar import structural_tag

        tags = [
            structural_tag.TagFormat(
                begin=f'<tool_call>\n{{"name": {json.dumps(tool.name)}, "arguments": ',
                content=structural_tag.JSONSchemaFormat(json_schema=close_objects(tool.parameters)),
                end="}\n</tool_call>",
            )
            for tool in chosen
        ]
        choice = structural_tag.TagsWithSeparatorFormat(tags=tags, separator="\n", at_least_one=True)
        return structural_tag.StructuralTag(format=choice)

    def compile(self, tag: Any) -> Any:
        """Compile, and give the first mask."""
        compiled = self.compiler.compile_structural_tag(tag)
        self.matcher(compiled).fill_next_token_bitmask(self.mask)
        return compiled


def measure(engine: Any, requests: Sequence[Sequence[Tool]], clock: Callable[[], int]) -> dict[str, Any]:
    """Times of an engine over some requests, in microseconds."""
    first, behind, refused = [], [], 0
    for chosen in requests:
        handed = engine.prepare(chosen)
        begin = clock()
        try:
            compiled = engine.compile(handed)
        except Exception:  # a peer may raise anything; a refusal is a result
            refused += 1
            continue
        first.append((clock() - begin) / 1e3)
        matcher, begin = engine.start(compiled), clock()
        assert engine.read(matcher, FIXED)
        engine.fill(matcher)
        behind.append((clock() - begin) / 1e3)
    return {"compile_and_first_mask_us": first, "second_mask_us": behind, "refused": refused}


def main(
    requests: int = 1_000,
    tools: int = 1_000,
    each: int = 50,
    xgrammar_requests: int = 50,
    peers: str = "llguidance,xgrammar",
    data: Path = BFCL,
    keep: bool = False,
) -> None:
    """Run the benchmark.

    Args:
        tools: number of tools
        each: tools of a request
    """
    pool = distinct_tools(data, tools)
    vocabulary, encode = tekken()
    made: dict[str, Callable[[], Any]] = {
        "llguidance": lambda: LLGuidance(vocabulary, encode),
        "xgrammar": lambda: XGrammar(vocabulary, cache=True),
    }
    draw = random.Random(0)
    shuffled = draw.sample(pool, len(pool))
    seen = [shuffled[at : at + each] for at in range(0, len(shuffled), each)]
    asked = [draw.sample(pool, each) for _ in range(requests)]
    gc.collect()
    gc.freeze()
    report: dict[str, Any] = {"tools": len(pool), "each": each, "engines": {}}
    for engine in [Ours(vocabulary, ConstraintCache().bind), *(made[peer]() for peer in installed(peers))]:
        own = asked[:xgrammar_requests] if engine.name == "xgrammar" else asked
        # Tools are handed in anew, as the requests of an agent would: nothing hangs on the objects.
        begin = time.perf_counter()
        measure(engine, seen, time.perf_counter_ns)
        seconds = time.perf_counter() - begin
        found = measure(engine, [[replace(tool) for tool in chosen] for chosen in own], time.thread_time_ns)
        times = {name: found[name] for name in ("compile_and_first_mask_us", "second_mask_us") if found[name]}
        report["engines"][engine.name] = {
            "requests": len(own),
            "first_pass_seconds": seconds,
            "refused": found["refused"],
            **{
                name: {"p50": percentile(values, 0.5), "p99": percentile(values, 0.99), "worst": max(values)}
                for name, values in times.items()
            },
        }
    show("tool_sets", report, keep=keep)
