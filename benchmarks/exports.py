"""Exports of MaskBench's schemas, loaded by their targets and compared with us text by text.

    python benchmarks/exports.py [--model MODEL.gguf] [--limit N] [--seconds S] [--data FILE] [--sheets FILE] [--keep]

For every schema: `Grammar.to_gbnf` in llama.cpp's sampler, `to_ebnf` in xgrammar, `to_lark` in llguidance, and
`to_regex` in Python's `re`. The texts are the instances of the schema, as JSON with a space after ``:`` and ``,``, four
random texts of our grammar, and one change in each of these. Where `Exported.unsaid` is empty, the verdicts have to be
the same; else the target may accept more. With ``--sheets``, each schema's counts are a line of a file, and a run that
was stopped goes on from there.
"""

from __future__ import annotations

import argparse
import gzip
import json
import random
import re
import sys
import time
from collections import Counter
from collections.abc import Callable
from functools import cache
from multiprocessing import get_context
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

from grammar_oracles import Judge, LlamaCpp, LLGuidance, XGrammar, compared, mutated
from report import NOTATIONS, exports_table
from results_io import show

from toolgrammar.core import Grammar, ToolGrammarError
from toolgrammar.core.grammar.sampling import random_text
from toolgrammar.core.models.published import PUBLISHED, pull

DATA = Path(__file__).resolve().parents[2] / "shared" / "data" / "maskbench-dev.jsonl.gz"
#: Maximum number of characters of an instance that is judged.
LENGTH = 4_000
#: Maximum number of seconds for a schema in a notation, exporting, loading and judging.
DEADLINE = 40


def texts_of(grammar: Grammar, instances: list[str], draw: random.Random) -> list[str]:
    """Return the texts that are judged."""
    texts = [*instances, *(random_text(grammar, draw, 60) for _ in range(4))]
    return [*texts, *(mutated(draw, text) for text in texts)]


def counted(model: str, case: dict[str, Any], name: str) -> dict[str, Any]:
    """Return the counts of a schema in a notation. Runs in a process of its own."""
    draw = random.Random(case["id"])
    try:
        grammar = Grammar.from_json_schema(case["schema"])
        instances = [json.dumps(test["data"], ensure_ascii=False) for test in case["tests"]]
        texts = texts_of(grammar, [text for text in instances if len(text) < LENGTH], draw)
    except ToolGrammarError as error:
        return {"no grammar": 1, "why": str(error)[:200]}
    return _one(grammar, name, _judge_of(model, name), texts, case)


@cache
def _judge_of(model: str, name: str) -> Callable[[str], Judge]:
    if name == "gbnf":
        return LlamaCpp(model).judge
    if name == "regex":
        return lambda text: lambda candidate, compiled=re.compile(text): bool(compiled.fullmatch(candidate))  # type: ignore[misc]
    return XGrammar().judge if name == "ebnf" else LLGuidance().judge


def _serve(wire: Connection, model: str) -> None:
    while (job := wire.recv()) is not None:
        wire.send(counted(model, *job))


class Process:
    """A process that counts, replaced when it takes too long or ends."""

    def __init__(self, model: str) -> None:
        self._model = model
        self._child: BaseProcess | None = None

    def counts(self, case: dict[str, Any], name: str) -> dict[str, Any]:
        """Return the counts of a schema in a notation."""
        if self._child is None:
            context = get_context("spawn")
            self._wire, theirs = context.Pipe()
            self._child = context.Process(target=_serve, args=(theirs, self._model), daemon=True)
            self._child.start()
            theirs.close()
        self._wire.send((case, name))
        try:
            if self._wire.poll(DEADLINE):
                found: dict[str, Any] = self._wire.recv()
                return found
            why = "timed out"
        except EOFError:
            why = "crashed"
        self._child.kill()
        self._child.join()
        self._child = None
        return {"schemas": 1, why: 1}


def _one(
    grammar: Grammar, name: str, judge_of: Callable[[str], Judge], texts: list[str], case: dict[str, Any]
) -> dict[str, Any]:
    count: Counter[str] = Counter(schemas=1)
    begin = time.perf_counter()
    try:
        exported = getattr(grammar, f"to_{name}")()
    except ToolGrammarError as error:
        return {"schemas": 1, "not exported": 1, "why": str(error)[:200]}
    seconds, begin = time.perf_counter() - begin, time.perf_counter()
    why = []
    count["exported"] += 1
    count["exact"] += not exported.unsaid
    try:
        judge = judge_of(exported.text)
    except Exception as error:
        count["not loaded"] += 1
        return {**count, "why": f"{type(error).__name__}: {error}"[:200], "characters": len(exported.text)}
    loading = time.perf_counter() - begin
    for text, ours in compared(grammar, judge, texts, count):
        kind = "refused, ours" if ours else ("accepted, named" if exported.unsaid else "accepted, unnamed")
        count[kind] += 1
        if kind != "accepted, named":
            why.append([kind, text[:500]])
            print(name, kind, case["id"], repr(text)[:300], file=sys.stderr)
    return {**count, "different": why[:5], "ms": round(1e3 * seconds), "load_ms": round(1e3 * loading)}


def main() -> None:
    """Compare, and print the counts."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--model", help="a GGUF file with a byte-level vocabulary; without it, smollm2")
    parser.add_argument("--limit", type=int)
    parser.add_argument("--seconds", type=float, default=36_000, help="begin no further schema after that")
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--only", help="the id of one schema")
    parser.add_argument("--sheets", type=Path)
    parser.add_argument("--keep", action="store_true", help="write results/exports.json")
    arguments = parser.parse_args()
    process = Process(arguments.model or str(pull(PUBLISHED["smollm2"])))
    with gzip.open(arguments.data, "rt", encoding="utf-8") as lines:
        cases = [json.loads(line) for line in lines]
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
            done[case["id"]] = {name: process.counts(case, name) for name in NOTATIONS}
            if arguments.sheets:
                with arguments.sheets.open("a") as sheets:
                    print(json.dumps([case["id"], done[case["id"]]]), file=sheets, flush=True)
        found.append(done[case["id"]])
    counts: dict[str, Counter[str]] = {name: Counter() for name in NOTATIONS}
    for schema in found:
        for name, count in schema.items():
            counts[name].update({key: value for key, value in count.items() if isinstance(value, int)})
            if "not exported" in count or "not loaded" in count:
                counts[name][("not exported: " if "not exported" in count else "not loaded: ") + count["why"][:50]] += 1
    report = {"schemas": len(found), "counts": counts}
    show("exports", report, exports_table(report), keep=arguments.keep)
    if any(count["refused, ours"] or count["accepted, unnamed"] for count in counts.values()):
        sys.exit(1)


if __name__ == "__main__":
    main()
