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

import argparse
import gc
import json
import random
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.shared.data import BFCL, rows
from benchmarks.shared.engines import Encode, llguidance_tokenizer, single_bytes, xgrammar_info
from benchmarks.shared.peers import tekken
from benchmarks.shared.results_io import percentile, show
from toolgrammar.core import ConstraintCache, Vocabulary
from toolgrammar.tools import Tool, ToolSet
from toolgrammar.tools.closed_schema import close_objects

FIXED = b'<tool_call>\n{"name": "'


def tools(data: Path, count: int) -> list[Tool]:
    """Distinct tools of the sample, in order, with names of their own."""
    seen: set[str] = set()
    named: dict[str, Tool] = {}
    for row in rows(data):
        for tool in ToolSet.from_any(row["functions"]):
            if tool.fingerprint in seen:
                continue
            seen.add(tool.fingerprint)
            name, again = tool.name, 2
            while name in named:
                name, again = f"{tool.name}_{again}", again + 1
            named[name] = tool.renamed(name)
            if len(named) == count:
                return list(named.values())
    return list(named.values())


class Ours:
    """toolgrammar."""

    name = "toolgrammar"

    def __init__(self, vocabulary: Vocabulary) -> None:
        self.vocabulary = vocabulary
        self.cache = ConstraintCache()
        self.mask = np.zeros((vocabulary.size + 31) // 32, dtype=np.uint32)

    def prepare(self, chosen: Sequence[Tool]) -> Sequence[Tool]:
        """What a request hands in."""
        return chosen

    def first(self, chosen: Sequence[Tool]) -> Any:
        """Compile, and give the first mask."""
        grammar = ToolSet(chosen).grammar("hermes", tool_choice="required")
        matcher = self.cache.bind(grammar, self.vocabulary).matcher()
        matcher.fill_mask(self.mask)
        return matcher

    def second(self, matcher: Any) -> int:
        """Write what is fixed, and give the mask of the names; how many tokens it allows."""
        assert matcher.accept_bytes(FIXED)
        matcher.fill_mask(self.mask)
        return int(np.bitwise_count(self.mask).sum()) if hasattr(np, "bitwise_count") else -1


class LLGuidance:
    """llguidance, with a Lark grammar."""

    name = "llguidance"

    def __init__(self, vocabulary: Vocabulary, encode: Encode | None = None) -> None:
        import llguidance.numpy as llnp
        from llguidance import LLMatcher

        self.single = single_bytes(vocabulary)
        self.tokenizer = llguidance_tokenizer(vocabulary, encode or tekken()[1])
        self.matcher = LLMatcher
        self.fill = llnp.fill_next_token_bitmask
        self.mask = np.zeros((1, (vocabulary.size + 31) // 32), dtype=np.int32)

    def prepare(self, chosen: Sequence[Tool]) -> str:
        """The grammar's text: making it is not counted."""
        lines = ['start: "<tool_call>\\n{\\"name\\": " call "}\\n</tool_call>"']
        heads = [
            json.dumps(json.dumps(tool.name) + ', "arguments": ') + f" args_{at}" for at, tool in enumerate(chosen)
        ]
        lines.append("call: " + "\n    | ".join(heads))
        spacing = {"item_separator": ", ", "key_separator": ": ", "whitespace_flexible": False}
        for at, tool in enumerate(chosen):
            schema = {**close_objects(tool.parameters), "x-guidance": spacing}
            lines.append(f"args_{at}: %json {json.dumps(schema)}")
        return "\n".join(lines)

    def first(self, text: str) -> Any:
        """Compile, and give the first mask."""
        matcher = self.matcher(self.tokenizer, self.matcher.grammar_from_lark(text))
        if matcher.is_error():
            raise RuntimeError(matcher.get_error().splitlines()[0])
        self.fill(matcher, self.mask, 0)
        return matcher

    def second(self, matcher: Any) -> int:
        """Write what is fixed, and give the mask of the names; how many tokens it allows."""
        assert matcher.try_consume_tokens([self.single[byte] for byte in FIXED]) == len(FIXED)
        self.fill(matcher, self.mask, 0)
        return int(np.bitwise_count(self.mask.view(np.uint32)).sum()) if hasattr(np, "bitwise_count") else -1


class XGrammar:
    """xgrammar, with structural tags."""

    name = "xgrammar"

    def __init__(self, vocabulary: Vocabulary) -> None:
        import xgrammar
        from xgrammar import structural_tag

        self.compiler = xgrammar.GrammarCompiler(xgrammar_info(vocabulary), max_threads=1, cache_enabled=True)
        self.matcher = xgrammar.GrammarMatcher
        self.mask = xgrammar.allocate_token_bitmask(1, vocabulary.size)
        self.tags = structural_tag

    def prepare(self, chosen: Sequence[Tool]) -> Any:
        """The structural tag: making it is not counted."""
        tags = [
            self.tags.TagFormat(
                begin=f'<tool_call>\n{{"name": {json.dumps(tool.name)}, "arguments": ',
                content=self.tags.JSONSchemaFormat(json_schema=close_objects(tool.parameters)),
                end="}\n</tool_call>",
            )
            for tool in chosen
        ]
        choice = self.tags.TagsWithSeparatorFormat(tags=tags, separator="\n", at_least_one=True)
        return self.tags.StructuralTag(format=choice)

    def first(self, tag: Any) -> Any:
        """Compile, and give the first mask."""
        matcher = self.matcher(self.compiler.compile_structural_tag(tag))
        matcher.fill_next_token_bitmask(self.mask)
        return matcher

    def second(self, matcher: Any) -> int:
        """Write what is fixed, and give the mask of the names; how many tokens it allows."""
        assert matcher.accept_string(FIXED)
        matcher.fill_next_token_bitmask(self.mask)
        found = self.mask.numpy().view(np.uint32)
        return int(np.bitwise_count(found).sum()) if hasattr(np, "bitwise_count") else -1


def measure(engine: Any, requests: Sequence[Sequence[Tool]], clock: Callable[[], int]) -> dict[str, Any]:
    """Times of an engine over some requests, in microseconds."""
    first, second, allowed = [], [], []
    refused: list[str] = []
    for chosen in requests:
        handed = engine.prepare(chosen)
        begin = clock()
        try:
            matcher = engine.first(handed)
        except Exception as error:  # a peer may raise anything; a refusal is a result
            refused.append(str(error)[:100])
            continue
        middle = clock()
        allowed.append(engine.second(matcher))
        second.append((clock() - middle) / 1e3)
        first.append((middle - begin) / 1e3)
    return {"compile_and_first_mask_us": first, "second_mask_us": second, "allowed": allowed, "refused": refused}


def main() -> int:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--requests", type=int, default=1_000)
    parser.add_argument("--tools", type=int, default=1_000)
    parser.add_argument("--each", type=int, default=50)
    parser.add_argument("--xgrammar-requests", type=int, default=50)
    parser.add_argument("--peers", default="llguidance,xgrammar")
    parser.add_argument("--data", type=Path, default=BFCL)
    parser.add_argument("--keep", action="store_true", help="write benchmarks/results/tool_sets.json")
    options = parser.parse_args()
    pool = tools(options.data, options.tools)
    vocabulary, _ = tekken()
    engines: list[Any] = [Ours(vocabulary)]
    for peer in filter(None, options.peers.split(",")):
        try:
            engines.append({"llguidance": LLGuidance, "xgrammar": XGrammar}[peer](vocabulary))
        except ImportError as error:
            print(f"{peer} is not installed ({error}): pip install 'toolgrammar[bench]'")
    draw = random.Random(0)
    shuffled = draw.sample(pool, len(pool))
    seen = [shuffled[at : at + options.each] for at in range(0, len(shuffled), options.each)]
    requests = [draw.sample(pool, options.each) for _ in range(options.requests)]
    gc.collect()
    gc.freeze()
    report: dict[str, Any] = {"tools": len(pool), "each": options.each, "engines": {}}
    for engine in engines:
        own = requests[: options.xgrammar_requests] if engine.name == "xgrammar" else requests
        # Tools are handed in anew, as the requests of an agent would: nothing hangs on the objects.
        begin = time.perf_counter()
        measure(engine, seen, time.perf_counter_ns)
        seconds = time.perf_counter() - begin
        found = measure(engine, [[replace(tool) for tool in chosen] for chosen in own], time.thread_time_ns)
        first, second = found["compile_and_first_mask_us"], found["second_mask_us"]
        report["engines"][engine.name] = {
            "requests": len(own),
            "first_pass_seconds": seconds,
            "refused": len(found["refused"]),
            "refusals": found["refused"][:3],
            **{
                name: {"p50": percentile(values, 0.5), "p99": percentile(values, 0.99), "worst": max(values)}
                for name, values in (("compile_and_first_mask_us", first), ("second_mask_us", second))
                if values
            },
            "allowed_at_the_names": sorted(found["allowed"])[len(found["allowed"]) // 2] if found["allowed"] else None,
        }
    show("tool_sets", report, keep=options.keep)
    return 0
