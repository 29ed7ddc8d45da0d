"""Masks and compilation on MaskBench, beside llguidance and xgrammar, in one run.

    python benchmarks/maskbench.py [--limit N] [--peers llguidance,xgrammar] [--json FILE] [--data FILE]

For every schema: the time to compile it and give the first mask; then for every token of every instance (written by
the vocabulary's own tokenizer) the time of one mask and one accept, cold (each schema is met for the first time) and,
for us, warm (a second pass over the same instances). And for every instance whether it is judged right. One thread, the
Python API, the real 131,072-token Tekken vocabulary that `mistral-common` ships.
Instances are written as ``json.dumps(data, ensure_ascii=False)``; whitespace is flexible, and so is the order of
properties, since instances keep an order of their own.
"""

from __future__ import annotations

import argparse
import gc
import gzip
import importlib.metadata
import json
import platform
import resource
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import numpy as np
from peers import llguidance_tokenizer, tekken, xgrammar_info
from results_io import machine
from rich.console import Console
from rich.progress import track
from rich.table import Table

from toolgrammar.core import Grammar, ToolGrammarError, UnsatisfiableSchemaError, Vocabulary
from toolgrammar.core.automaton import COMPILED

DATA = Path(__file__).resolve().parents[2] / "shared" / "data" / "maskbench-dev.jsonl.gz"


class Clock:
    """Times of one engine, in microseconds, and its verdicts."""

    def __init__(self, now: Callable[[], float]) -> None:
        self.now = now
        self.compile: list[float] = []
        self.token: list[float] = []
        self.warm: list[float] = []
        # The same, of the schemas that all engines take.
        self.common_compile: list[float] = []
        self.common_token: list[float] = []
        self.refused: Counter[str] = Counter()
        self.right = self.too_strict = self.too_lax = self.schemas_right = self.schemas = 0
        self.worst: tuple[float, str] = (0.0, "")


def percentiles(values: list[float]) -> dict[str, float]:
    """p50 .. worst and mean, in microseconds."""
    if not values:
        return {}
    ordered = np.sort(np.array(values))
    names = {"p50": 0.5, "p90": 0.9, "p99": 0.99, "p99.9": 0.999}
    found = {name: float(ordered[min(len(ordered) - 1, int(len(ordered) * at))]) for name, at in names.items()}
    return {**found, "worst": float(ordered[-1]), "mean": float(ordered.mean())}


class Ours:
    """toolgrammar."""

    name = "toolgrammar"

    def __init__(self, vocabulary: Vocabulary, order: Literal["schema", "any"] = "any") -> None:
        self.vocabulary = vocabulary
        self.order = order
        self.mask = np.zeros((vocabulary.size + 31) // 32, dtype=np.uint32)
        Grammar.json(whitespace="flexible").bind(vocabulary).matcher().fill_mask(
            self.mask
        )  # the vocabulary's own tables

    def compile(self, schema: Any) -> Any:
        """Compile, and give the first mask."""
        grammar = Grammar.from_json_schema(schema, whitespace="flexible", property_order=self.order)
        constraint = grammar.bind(self.vocabulary)
        constraint.matcher().fill_mask(self.mask)
        return constraint

    def start(self, compiled: Any) -> Any:
        """A text's beginning."""
        return compiled.matcher()

    def step(self, matcher: Any, token: int) -> bool:
        """One mask, then one accept."""
        matcher.fill_mask(self.mask)
        return bool(matcher.accept(token))

    def accepts(self, matcher: Any) -> bool:
        """Whether the text may end."""
        return bool(matcher.is_accepting)


class LLGuidance:
    """llguidance, through LLMatcher."""

    name = "llguidance"

    def __init__(self, vocabulary: Vocabulary) -> None:
        import llguidance
        from llguidance import LLMatcher

        self.tokenizer = llguidance_tokenizer(vocabulary)
        self.matcher = LLMatcher
        self.mask = np.zeros((1, (vocabulary.size + 31) // 32), dtype=np.int32)
        import llguidance.numpy as llnp

        self.fill = llnp.fill_next_token_bitmask
        self.version = llguidance.__version__

    def compile(self, schema: Any) -> Any:
        """Compile, and give the first mask."""
        grammar = self.matcher.grammar_from_json_schema(json.dumps(schema))
        matcher = self.matcher(self.tokenizer, grammar)
        if matcher.is_error():
            raise ToolGrammarError(matcher.get_error().splitlines()[0][:60])
        self.fill(matcher, self.mask, 0)
        return matcher

    def start(self, compiled: Any) -> Any:
        """A text's beginning."""
        return compiled.deep_copy()

    def step(self, matcher: Any, token: int) -> bool:
        """One mask, then one accept."""
        self.fill(matcher, self.mask, 0)
        return bool(matcher.try_consume_tokens([token]) == 1)

    def accepts(self, matcher: Any) -> bool:
        """Whether the text may end."""
        return bool(matcher.is_accepting())


class XGrammar:
    """xgrammar, through GrammarMatcher."""

    name = "xgrammar"

    def __init__(self, vocabulary: Vocabulary) -> None:
        import xgrammar

        self.compiler = xgrammar.GrammarCompiler(xgrammar_info(vocabulary), max_threads=1, cache_enabled=False)
        self.matcher = xgrammar.GrammarMatcher
        self.mask = xgrammar.allocate_token_bitmask(1, vocabulary.size)
        self.version = importlib.metadata.version("xgrammar")

    def compile(self, schema: Any) -> Any:
        """Compile, and give the first mask."""
        compiled = self.compiler.compile_json_schema(json.dumps(schema), any_whitespace=True, strict_mode=False)
        self.matcher(compiled).fill_next_token_bitmask(self.mask)
        return compiled

    def start(self, compiled: Any) -> Any:
        """A text's beginning."""
        return self.matcher(compiled)

    def step(self, matcher: Any, token: int) -> bool:
        """One mask, then one accept."""
        matcher.fill_next_token_bitmask(self.mask)
        return bool(matcher.accept_token(token))

    def accepts(self, matcher: Any) -> bool:
        """Whether the text may end."""
        return bool(matcher.is_completed() if hasattr(matcher, "is_completed") else matcher.is_terminated())


def run(engine: Any, row: dict[str, Any], tests: list[tuple[bool, list[int]]], clock: Clock) -> None:
    """Time one schema on one engine."""
    begin = clock.now()
    try:
        compiled = engine.compile(row["schema"])
    except UnsatisfiableSchemaError:  # a verdict about every instance
        valid = sum(expected for expected, _ in tests)
        clock.right += len(tests) - valid
        clock.too_strict += valid
        clock.schemas += 1
        clock.schemas_right += not valid
        return
    except Exception as error:  # a peer may raise anything; a refusal is a result
        place = getattr(error, "place", None)
        clock.refused[f"{type(error).__name__} {getattr(place, 'keyword', None) or ''}".strip()] += 1
        return
    clock.compile.append((clock.now() - begin) * 1e6)
    clock.schemas += 1
    all_right = True
    for expected, tokens in tests:
        matcher = engine.start(compiled)
        accepted = True
        for token in tokens:
            begin = clock.now()
            try:
                accepted = engine.step(matcher, token)
            except ToolGrammarError as error:  # a limit that only shows on the way
                clock.refused[type(error).__name__] += 1
                clock.schemas -= 1
                return
            spent = (clock.now() - begin) * 1e6
            clock.token.append(spent)
            if spent > clock.worst[0]:
                clock.worst = (spent, row["id"])
            if not accepted:
                break
        accepted = accepted and engine.accepts(matcher)
        if accepted == expected:
            clock.right += 1
        else:
            all_right = False
            clock.too_lax += accepted
            clock.too_strict += not accepted
    clock.schemas_right += all_right
    if engine.name == "toolgrammar":
        for _, tokens in tests:
            matcher = engine.start(compiled)
            for token in tokens:
                begin = clock.now()
                accepted = engine.step(matcher, token)
                clock.warm.append((clock.now() - begin) * 1e6)
                if not accepted:
                    break


def main() -> int:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--limit", type=int, default=None)
    parser.add_argument("--peers", default="llguidance,xgrammar")
    parser.add_argument(
        "--clock", choices=["wall", "cpu"], default="wall", help="cpu: of this thread alone, for a machine that is busy"
    )
    parser.add_argument("--order", choices=["schema", "any"], default="any", help="property_order of this library")
    parser.add_argument("--json", type=Path, default=None)
    parser.add_argument("--data", type=Path, default=DATA)
    options = parser.parse_args()
    console = Console()
    if not options.data.is_file():
        console.print(f"{options.data} is not here; give --data")
        return 2
    with gzip.open(options.data, "rt") as file:
        rows = [json.loads(line) for line in file]
    if options.limit:
        rows = rows[:: max(1, len(rows) // options.limit)][: options.limit]
    vocabulary, encode = tekken()
    engines: list[Any] = [Ours(vocabulary, options.order)]
    for peer in [name for name in options.peers.split(",") if name]:
        try:
            engines.append({"llguidance": LLGuidance, "xgrammar": XGrammar}[peer](vocabulary))
        except ImportError as error:
            console.print(f"{peer} is not installed ({error}): pip install 'toolgrammar[bench]'")
    now = time.perf_counter if options.clock == "wall" else time.thread_time
    clocks = {engine.name: Clock(now) for engine in engines}
    # The data set, the tokenizer and the engines stay: the garbage collector need not look at them again and again,
    # which would be counted as somebody's mask. What a schema leaves behind is collected as ever.
    gc.collect()
    gc.freeze()
    for row in track(rows, description="schemas", console=console):
        tests = [(test["valid"], encode(json.dumps(test["data"], ensure_ascii=False))) for test in row["tests"]]
        before = {name: (len(clock.compile), len(clock.token), clock.schemas) for name, clock in clocks.items()}
        for engine in engines:
            run(engine, row, tests, clocks[engine.name])
        if all(
            len(clock.compile) > before[name][0] and clock.schemas > before[name][2] for name, clock in clocks.items()
        ):
            for name, clock in clocks.items():
                clock.common_compile += clock.compile[before[name][0] :]
                clock.common_token += clock.token[before[name][1] :]
    report: dict[str, Any] = {
        "schemas": len(rows),
        "python": platform.python_version(),
        "machine": machine(),
        "compiled": COMPILED,
        "clock": options.clock,
        "order": options.order,
        "peak_memory_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
        "engines": {},
    }
    for engine in engines:
        clock = clocks[engine.name]
        report["engines"][engine.name] = {
            "version": getattr(engine, "version", None) or importlib.metadata.version("toolgrammar"),
            "schemas_compiled": clock.schemas,
            "schemas_right": clock.schemas_right,
            "instances": {"right": clock.right, "too_strict": clock.too_strict, "too_lax": clock.too_lax},
            "refused": dict(clock.refused.most_common(12)),
            "compile_and_first_mask_us": percentiles(clock.compile),
            "mask_and_accept_us": percentiles(clock.token),
            "warm_us": percentiles(clock.warm),
            "common": {
                "schemas": len(clock.common_compile),
                "tokens": len(clock.common_token),
                "compile_and_first_mask_us": percentiles(clock.common_compile),
                "mask_and_accept_us": percentiles(clock.common_token),
            },
            "tokens": len(clock.token),
            "worst": clock.worst[1],
        }
    if options.json:
        options.json.write_text(json.dumps(report, indent=2) + "\n")
    columns = ("p50", "p90", "p99", "p99.9", "worst", "mean")
    for key, title in (
        ("mask_and_accept_us", "mask + accept, us"),
        ("compile_and_first_mask_us", "compile + first mask, us"),
    ):
        for where in ("all", "common"):
            taken = {name: found if where == "all" else found["common"] for name, found in report["engines"].items()}
            if not all(found[key] for found in taken.values()) or (where == "common" and len(taken) == 1):
                continue
            schemas = f"{len(clocks['toolgrammar'].common_compile)} schemas that all take"
            table = Table(title=f"{title}: {schemas if where == 'common' else 'all schemas that an engine takes'}")
            for column in ("engine", *columns):
                table.add_column(column, justify="right")
            for name, found in taken.items():
                table.add_row(name, *(f"{found[key][column]:,.1f}" for column in columns))
            console.print(table)
    ours = report["engines"]["toolgrammar"]
    console.print(f"warm: {ours['warm_us']}")
    for name, found in report["engines"].items():
        console.print(
            f"{name} {found['version']}: compiled {found['schemas_compiled']}, right {found['schemas_right']}"
            f" of {len(rows)} schemas; instances {found['instances']};"
            f" {found['tokens']} tokens; worst in {found['worst']};"
            f" refused {found['refused']}"
        )
    console.print(f"peak memory {report['peak_memory_mb']} MB (all engines together)")
    return 1 if ours["instances"]["too_lax"] else 0


if __name__ == "__main__":
    sys.exit(main())
