"""Exports of MaskBench's schemas, loaded by their targets and compared with us text by text.

    python -m benchmarks masks/exports [--model MODEL.gguf] [--limit N] [--seconds S] [--data FILE] [--sheets FILE]

For every schema: `Grammar.to_gbnf` in llama.cpp's sampler, `to_ebnf` in xgrammar, `to_lark` in llguidance, and
`to_regex` in Python's `re`. The texts are the instances of the schema, as JSON with a space after ``:`` and ``,``, four
random texts of our grammar, and one change in each of these. Where `Exported.unsaid` is empty, the verdicts have to be
the same; else the target may accept more. Schemas come in a random order, the same each time, so a run that has not
seen all of them has seen a sample. With ``--sheets``, each schema's counts are a line of a file, and a run that was
stopped goes on from there.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache, partial
from multiprocessing import get_context
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

from benchmarks.shared.answer_tables import NOTATIONS
from benchmarks.shared.data import MASKBENCH_ALL, rows
from benchmarks.shared.grammar_oracles import Judge, LlamaCpp, LLGuidance, XGrammar, compared, mutated
from benchmarks.shared.results_io import percentile, show
from toolgrammar.core import Grammar, ToolGrammarError
from toolgrammar.core.export.rules import ExportedRules
from toolgrammar.core.export.writers import written_as, written_as_regex
from toolgrammar.core.grammar.notations import exported
from toolgrammar.core.grammar.sampling import random_text
from toolgrammar.core.models.published import PUBLISHED

#: Maximum number of characters of an instance that is judged.
LENGTH = 4_000
#: Maximum processor time in seconds for a schema in a notation, exporting, loading and judging.
DEADLINE = 10


def texts_of(grammar: Grammar, instances: list[str], draw: random.Random) -> list[str]:
    """Return the texts that are judged."""
    texts = [*instances, *(random_text(grammar, draw, 60) for _ in range(4))]
    return [*texts, *(mutated(draw, text) for text in texts)]


def counted(model: str, case: dict[str, Any], names: list[str]) -> Iterator[dict[str, Any]]:
    """Yield an empty dictionary, then the counts of a schema in each of some notations. Runs in a process of its own.

    The grammar is compiled once, and its rules are made once for all notations, before the first item.
    """
    draw = random.Random(case["id"])
    why, grammar, rules, texts = "no grammar", None, None, []
    begin = time.process_time()
    try:
        grammar = Grammar.from_json_schema(case["schema"])
        instances = [json.dumps(test["data"], ensure_ascii=False) for test in case["tests"]]
        texts = texts_of(grammar, [text for text in instances if len(text) < LENGTH], draw)
        why, begin = "not exported", time.process_time()
        rules = exported(grammar)
    except ToolGrammarError as error:
        refusal = {"schemas": 1, why: 1, "why": str(error)[:200]}
        yield from ({}, *(refusal for _ in names))
        return
    seconds = time.process_time() - begin
    yield {}
    for name in names:
        yield _one(grammar, rules, seconds, name, partial(_judge_of, model, name), texts, case)


@cache
def _judge_of(model: str, name: str) -> Callable[[str], Judge]:
    if name == "gbnf":
        return LlamaCpp(model).judge
    if name == "regex":
        return lambda text: lambda candidate, compiled=re.compile(text): bool(compiled.fullmatch(candidate))  # type: ignore[misc]
    return XGrammar().judge if name == "ebnf" else LLGuidance().judge


def _serve(wire: Connection, model: str) -> None:
    while (job := wire.recv()) is not None:
        for count in counted(model, *job):
            wire.send(count)


def seconds_of(pid: int | None) -> float:
    """Return the processor time of a process; the time of day where the system does not tell it."""
    if not sys.platform.startswith("linux"):
        return time.monotonic()
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Process:
    """A process that counts, replaced when it takes too long or ends."""

    def __init__(self, model: str) -> None:
        self._model = model
        self._child: BaseProcess | None = None

    def counts(self, case: dict[str, Any]) -> dict[str, dict[str, Any]]:
        """Return the counts of a schema by notation."""
        found: dict[str, dict[str, Any]] = {}
        while left := [name for name in NOTATIONS if name not in found]:
            if self._child is None:
                context = get_context("spawn")
                self._wire, theirs = context.Pipe()
                self._child = context.Process(target=_serve, args=(theirs, self._model), daemon=True)
                self._child.start()
                theirs.close()
            self._wire.send((case, left))
            for name in ["", *left]:  # the rules of all notations come first
                count, why = self._received()
                if count is None:
                    self._child = None
                    found |= {lost: {"schemas": 1, why: 1} for lost in ([name] if name else left)}
                    break
                if name:
                    found[name] = count
        return found

    def _received(self) -> tuple[dict[str, Any] | None, str]:
        """Return what the process sends next, or None and why it is ended."""
        assert self._child is not None
        why = "timed out"
        try:
            begin = seconds_of(self._child.pid)
            while not self._wire.poll(1) and seconds_of(self._child.pid) - begin < DEADLINE:
                pass
            if self._wire.poll(0):
                return self._wire.recv(), ""
        except (EOFError, FileNotFoundError):
            why = "crashed"
        self._child.kill()
        self._child.join()
        return None, why


def _one(
    grammar: Grammar,
    rules: ExportedRules,
    seconds: float,
    name: str,
    judges: Callable[[], Callable[[str], Judge]],
    texts: list[str],
    case: dict[str, Any],
) -> dict[str, Any]:
    """Return the counts of a notation; ``seconds`` were spent on the rules."""
    count: Counter[str] = Counter(schemas=1)
    judge_of = judges()
    begin = time.process_time()
    try:
        exported = written_as_regex(rules) if name == "regex" else written_as(name, rules, {})
    except ToolGrammarError as error:
        return {"schemas": 1, "not exported": 1, "why": str(error)[:200]}
    seconds, begin = seconds + time.process_time() - begin, time.process_time()
    why = []
    count["exported"] += 1
    count["exact"] += not exported.unsaid
    try:
        judge = judge_of(exported.text)
    except Exception as error:
        count["not loaded"] += 1
        return {**count, "why": f"{type(error).__name__}: {error}"[:200], "size": str(len(exported.text))}
    loading = time.process_time() - begin
    for text, ours in compared(grammar, judge, texts, count):
        kind = "refused, ours" if ours else ("accepted, named" if exported.unsaid else "accepted, unnamed")
        count[kind] += 1
        if kind != "accepted, named":
            why.append([kind, text[:500]])
            print(name, kind, case["id"], repr(text)[:300], file=sys.stderr)
    times = {"ms": round(1e3 * seconds), "load_ms": round(1e3 * loading)}
    return {**count, **times, "different": why[:5], "size": str(len(exported.text))}


def reason(message: str) -> str:
    """Return the first line of an error without the parts that differ between schemas."""
    text = re.sub(r"'[^']*'|\"[^\"]*\"", "...", message.splitlines()[0].split(" Hint:")[0])
    return re.sub(r"^at /\S*: ", "", text)[:80]


def main() -> None:
    """Compare, and print the counts."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--model", help="a GGUF file with a byte-level vocabulary; without it, smollm2")
    parser.add_argument("--limit", type=int)
    parser.add_argument("--seconds", type=float, default=36_000, help="begin no further schema after that")
    parser.add_argument("--data", type=Path, default=MASKBENCH_ALL)
    parser.add_argument("--only", help="the id of one schema")
    parser.add_argument("--sheets", type=Path)
    parser.add_argument("--keep", action="store_true", help="write results/exports.json")
    arguments = parser.parse_args()
    process = Process(arguments.model or str(PUBLISHED["smollm2"].pull()))
    cases = rows(arguments.data)
    cases = random.Random(7).sample(cases, len(cases))[: arguments.limit]
    cases = [case for case in cases if arguments.only in (None, case["id"])]
    done: dict[str, Any] = {}
    if arguments.sheets and arguments.sheets.exists():
        done = dict(json.loads(line) for line in arguments.sheets.read_text().splitlines())
    start = time.perf_counter()
    found = []
    for case in cases:
        if case["id"] not in done:
            if time.perf_counter() - start > arguments.seconds:
                break
            done[case["id"]] = process.counts(case)
            if arguments.sheets:
                with arguments.sheets.open("a") as sheets:
                    print(json.dumps([case["id"], done[case["id"]]]), file=sheets, flush=True)
        found.append(done[case["id"]])
    counts: dict[str, Counter[str]] = {name: Counter() for name in NOTATIONS}
    reasons: dict[str, Counter[str]] = {name: Counter() for name in NOTATIONS}
    sizes: dict[str, list[int]] = {name: [] for name in NOTATIONS}
    for schema in found:
        for name, count in schema.items():
            counts[name].update({key: value for key, value in count.items() if isinstance(value, int)})
            for kind in ("no grammar", "not exported", "not loaded"):
                if kind in count:
                    reasons[name][f"{kind}: {reason(count['why'])}"] += 1
            if "size" in count:
                sizes[name].append(int(count["size"]))
    shares = {
        name: {**{f"p{part}": percentile(all_of, part / 100) for part in (50, 90, 99)}, "worst": max(all_of)}
        for name, all_of in sizes.items()
        if all_of
    }
    report = {"schemas": len(found), "of": len(cases), "deadline": DEADLINE}
    report |= {"counts": counts, "reasons": reasons, "characters": shares}
    show("exports", report, keep=arguments.keep)
    if any(count["refused, ours"] or count["accepted, unnamed"] for count in counts.values()):
        sys.exit(1)
