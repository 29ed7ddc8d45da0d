"""Masks and compilation on MaskBench, beside llguidance and xgrammar, in one run.

    python benchmarks/maskbench.py [--limit N] [--peers llguidance,xgrammar] [--json FILE] [--data FILE]

For every schema: the time to compile it and give the first mask; then for every token of every instance (written by
the vocabulary's own tokenizer) the time of one mask and one accept, cold (each schema is met for the first time) and,
for us, warm (a second pass over the same instances). And for every instance whether it is judged right. One thread, the
Python API, the real 131,072-token Tekken vocabulary that `mistral-common` ships.
Instances are written as ``json.dumps(data, ensure_ascii=False)``; whitespace is flexible, and so is the order of
properties, since instances keep an order of their own.

Schema by schema, the engines take turns, each in a process of its own: memory is counted for each, and no engine's
garbage is collected in another's time. One that gives no answer within ``--deadline`` seconds is stopped, begins anew
with the next schema, and is said to refuse this one.
"""

from __future__ import annotations

import argparse
import gc
import gzip
import importlib.util
import json
import multiprocessing
import platform
import resource
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np
from engines import ENGINES
from peers import tekken
from results_io import machine
from rich.console import Console
from rich.progress import track
from rich.table import Table

from toolgrammar.core import ToolGrammarError, UnsatisfiableSchemaError
from toolgrammar.core.masks import COMPILED

DATA = Path(__file__).resolve().parents[2] / "shared" / "data" / "maskbench-dev.jsonl.gz"
CLOCKS = {"wall": time.perf_counter, "cpu": time.thread_time}

#: An instance: whether it is valid, and its tokens.
Test = tuple[bool, list[int]]


@dataclass
class Sheet:
    """What one engine made of one schema; times in microseconds."""

    compile: float | None = None
    token: list[float] = field(default_factory=list)
    warm: list[float] = field(default_factory=list)
    refused: str | None = None
    right: int = 0
    too_strict: int = 0
    too_lax: int = 0
    peak_memory_mb: int = 0


class Tally:
    """The sheets of one engine, added up."""

    def __init__(self) -> None:
        self.compile: list[float] = []
        self.token: list[float] = []
        self.warm: list[float] = []
        # The same, of the schemas that all engines take.
        self.common_compile: list[float] = []
        self.common_token: list[float] = []
        self.refused: Counter[str] = Counter()
        self.right = self.too_strict = self.too_lax = self.schemas_right = self.schemas = self.peak_memory_mb = 0
        self.worst: tuple[float, str] = (0.0, "")

    def add(self, sheet: Sheet, schema: str, common: bool) -> None:
        """Add what was found for one schema, which all engines take, or not."""
        self.peak_memory_mb = max(self.peak_memory_mb, sheet.peak_memory_mb)
        self.token += sheet.token
        self.warm += sheet.warm
        self.worst = max(self.worst, (max(sheet.token, default=0.0), schema))
        if sheet.compile is not None:
            self.compile.append(sheet.compile)
        self.right += sheet.right
        self.too_strict += sheet.too_strict
        self.too_lax += sheet.too_lax
        if sheet.refused is not None:
            self.refused[sheet.refused] += 1
            return
        self.schemas += 1
        self.schemas_right += not sheet.too_strict and not sheet.too_lax
        if common and sheet.compile is not None:
            self.common_compile.append(sheet.compile)
            self.common_token += sheet.token


def percentiles(values: list[float]) -> dict[str, float]:
    """p50 .. worst and mean, in microseconds."""
    if not values:
        return {}
    ordered = np.sort(np.array(values))
    names = {"p50": 0.5, "p90": 0.9, "p99": 0.99, "p99.9": 0.999}
    found = {name: float(ordered[min(len(ordered) - 1, int(len(ordered) * at))]) for name, at in names.items()}
    return {**found, "worst": float(ordered[-1]), "mean": float(ordered.mean())}


def run(engine: Any, schema: Any, tests: list[Test], clock: str) -> Sheet:
    """Time one schema on one engine."""
    now, sheet = CLOCKS[clock], Sheet()
    begin = now()
    try:
        compiled = engine.compile(schema)
    except UnsatisfiableSchemaError:  # a verdict about every instance
        sheet.too_strict = sum(expected for expected, _ in tests)
        sheet.right = len(tests) - sheet.too_strict
        return sheet
    except Exception as error:  # a peer may raise anything; a refusal is a result
        place = getattr(error, "place", None)
        sheet.refused = f"{type(error).__name__} {getattr(place, 'keyword', None) or ''}".strip()
        return sheet
    sheet.compile = (now() - begin) * 1e6
    for expected, tokens in tests:
        matcher = engine.start(compiled)
        accepted = True
        for token in tokens:
            begin = now()
            try:
                accepted = engine.step(matcher, token)
            except ToolGrammarError as error:  # a limit that only shows on the way
                sheet.refused = type(error).__name__
                return sheet
            sheet.token.append((now() - begin) * 1e6)
            if not accepted:
                break
        accepted = accepted and engine.accepts(matcher)
        sheet.right += accepted == expected
        sheet.too_lax += accepted and not expected
        sheet.too_strict += expected and not accepted
    if engine.name == "toolgrammar":
        for _, tokens in tests:
            matcher = engine.start(compiled)
            for token in tokens:
                begin = now()
                accepted = engine.step(matcher, token)
                sheet.warm.append((now() - begin) * 1e6)
                if not accepted:
                    break
    return sheet


def peak_memory_mb() -> int:
    """The most memory that this process ever had. (What the system counts also holds the process that started it.)"""
    try:
        with open("/proc/self/status", encoding="ascii") as file:
            return next(int(line.split()[1]) for line in file if line.startswith("VmHWM")) // 1024
    except (OSError, StopIteration):  # not Linux
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024


def serve(name: str, options: tuple[Any, ...], clock: str, wire: Connection) -> None:
    """Make an engine, say its version, and run the schemas that come."""
    vocabulary, _ = tekken()
    engine = ENGINES[name](vocabulary, *options)
    # The tokenizer and the engine stay: the garbage collector need not look at them again and again, which would be
    # counted as somebody's mask. What a schema leaves behind is collected as ever.
    gc.collect()
    gc.freeze()
    wire.send(engine.version)
    while (job := wire.recv()) is not None:
        sheet = run(engine, *job, clock)
        sheet.peak_memory_mb = peak_memory_mb()
        wire.send(sheet)


class Worker:
    """An engine in a process of its own, which is stopped when it does not answer in time."""

    def __init__(self, name: str, options: tuple[Any, ...], clock: str, deadline: float) -> None:
        self.name, self.options, self.clock, self.deadline = name, options, clock, deadline
        self.begin()

    def begin(self) -> None:
        """Start the process, and wait until its engine is there."""
        context = multiprocessing.get_context("spawn")
        self.wire, theirs = context.Pipe()
        self.process = context.Process(
            target=serve, args=(self.name, self.options, self.clock, theirs), name=self.name, daemon=True
        )
        self.process.start()
        theirs.close()
        self.version: str = self.wire.recv()

    def run(self, schema: Any, tests: list[Test]) -> Sheet:
        """What the engine makes of a schema."""
        try:
            self.wire.send((schema, tests))
            if self.wire.poll(self.deadline):
                sheet: Sheet = self.wire.recv()
                return sheet
            refused = f"no answer in {self.deadline:g} s"
        except (EOFError, BrokenPipeError):
            refused = "crash"
        self.process.kill()
        self.process.join()
        self.begin()
        return Sheet(refused=refused)

    def end(self) -> None:
        """Let the process end."""
        self.wire.send(None)
        self.process.join()


def main() -> int:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--limit", type=int, default=None)
    parser.add_argument("--peers", default="llguidance,xgrammar")
    parser.add_argument(
        "--clock", choices=["wall", "cpu"], default="wall", help="cpu: of this thread alone, for a machine that is busy"
    )
    parser.add_argument("--order", choices=["schema", "any"], default="any", help="property_order of this library")
    parser.add_argument("--deadline", type=float, default=60, help="seconds that an engine may take for one schema")
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
    _, encode = tekken()
    workers: list[Worker] = []
    for name in ["toolgrammar", *(name for name in options.peers.split(",") if name)]:
        if name != "toolgrammar" and importlib.util.find_spec(name) is None:
            console.print(f"{name} is not installed: pip install 'toolgrammar[bench]'")
            continue
        special = (options.order,) if name == "toolgrammar" else ()
        workers.append(Worker(name, special, options.clock, options.deadline))
    tallies = {worker.name: Tally() for worker in workers}
    for row in track(rows, description="schemas", console=console):
        tests = [(test["valid"], encode(json.dumps(test["data"], ensure_ascii=False))) for test in row["tests"]]
        sheets = {worker.name: worker.run(row["schema"], tests) for worker in workers}
        common = all(sheet.compile is not None and sheet.refused is None for sheet in sheets.values())
        for name, sheet in sheets.items():
            tallies[name].add(sheet, row["id"], common)
    for worker in workers:
        worker.end()
    report: dict[str, Any] = {
        "schemas": len(rows),
        "python": platform.python_version(),
        "machine": machine(),
        "compiled": COMPILED,
        "clock": options.clock,
        "order": options.order,
        "deadline_s": options.deadline,
        "engines": {},
    }
    for worker in workers:
        tally = tallies[worker.name]
        report["engines"][worker.name] = {
            "version": worker.version,
            "schemas_compiled": tally.schemas,
            "schemas_right": tally.schemas_right,
            "instances": {"right": tally.right, "too_strict": tally.too_strict, "too_lax": tally.too_lax},
            "refused": dict(tally.refused.most_common(12)),
            "compile_and_first_mask_us": percentiles(tally.compile),
            "mask_and_accept_us": percentiles(tally.token),
            "warm_us": percentiles(tally.warm),
            "common": {
                "schemas": len(tally.common_compile),
                "tokens": len(tally.common_token),
                "compile_and_first_mask_us": percentiles(tally.common_compile),
                "mask_and_accept_us": percentiles(tally.common_token),
            },
            "tokens": len(tally.token),
            "worst": tally.worst[1],
            "peak_memory_mb": tally.peak_memory_mb,
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
            schemas = f"{len(tallies['toolgrammar'].common_compile)} schemas that all take"
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
            f" {found['tokens']} tokens; worst in {found['worst']}; peak memory {found['peak_memory_mb']} MB;"
            f" refused {found['refused']}"
        )
    return 1 if ours["instances"]["too_lax"] else 0


if __name__ == "__main__":
    sys.exit(main())
