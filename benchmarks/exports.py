"""Exports of MaskBench's schemas, loaded by their targets and compared with us text by text.

    python benchmarks/exports.py MODEL.gguf [--limit N] [--seconds S] [--data FILE] [--json FILE]

For every schema: `Grammar.to_gbnf` in llama.cpp's sampler, `to_ebnf` in xgrammar, `to_lark` in llguidance, and
`to_regex` in Python's `re`. The texts are the instances of the schema, random texts of our grammar, and one change in
each of these. Where `Exported.unsaid` is empty, the verdicts have to be the same; else the target may accept more.
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
from pathlib import Path

from grammar_oracles import Judge, LlamaCpp, LLGuidance, XGrammar
from results_io import machine

from toolgrammar.core import Grammar, ToolGrammarError
from toolgrammar.core.sampling import random_text

DATA = Path(__file__).resolve().parents[2] / "shared" / "data" / "maskbench-dev.jsonl.gz"
#: Maximum number of seconds for a schema and a peer.
DEADLINE = 3


def mutated(draw: random.Random, text: str) -> str:
    """Return a text with one change."""
    at = draw.randrange(len(text) + 1)
    return (
        text[:at] + draw.choice(["", '"', "0", ",", " ", "}", "a", "é", "-", "null"]) + text[at + draw.randrange(2) :]
    )


def texts_of(grammar: Grammar, instances: list[str], draw: random.Random) -> list[str]:
    """Return the texts that are judged."""
    texts = [*instances, *(random_text(grammar, draw, 60) for _ in range(4))]
    return [*texts, *(mutated(draw, text) for text in texts)]


def main() -> None:
    """Compare, and print the counts."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("model")
    parser.add_argument("--limit", type=int, default=100)
    parser.add_argument("--seconds", type=float, default=3_600, help="begin no further schema after that")
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    peers: dict[str, Callable[[str], Judge]] = {
        "gbnf": LlamaCpp(arguments.model).judge,
        "ebnf": XGrammar().judge,
        "lark": LLGuidance().judge,
        "regex": lambda text: lambda candidate, compiled=re.compile(text): bool(compiled.fullmatch(candidate)),
    }
    counts: dict[str, Counter[str]] = {name: Counter() for name in peers}
    draw = random.Random(19)
    with gzip.open(arguments.data, "rt", encoding="utf-8") as lines:
        cases = [json.loads(line) for line in lines]
    start, schemas = time.perf_counter(), 0
    for case in random.Random(7).sample(cases, min(arguments.limit, len(cases))):
        if time.perf_counter() - start > arguments.seconds:
            break
        schemas += 1
        try:
            grammar = Grammar.from_json_schema(case["schema"])
            instances = [json.dumps(test["data"], ensure_ascii=False) for test in case["tests"]]
            texts = texts_of(grammar, [text for text in instances if len(text) < 4_000], draw)
        except ToolGrammarError:
            continue
        for name, judge_of in peers.items():
            count = counts[name]
            begin = time.perf_counter()
            try:
                exported = getattr(grammar, f"to_{name}")()
            except ToolGrammarError as error:
                count[f"not exported: {str(error)[:40]}"] += 1
                continue
            count["exported"] += 1
            count["exact"] += not exported.unsaid
            try:
                judge = judge_of(exported.text)
            except Exception as error:
                count["not loaded"] += 1
                print(name, "NOT LOADED", repr(error)[:200], json.dumps(case["schema"])[:300], file=sys.stderr)
                continue
            for text in texts:
                try:
                    ours, theirs = grammar.matches(text), judge(text)
                except ValueError:
                    count["not judged"] += 1
                    continue
                count["texts"] += 1
                count["valid"] += ours
                if ours != theirs:
                    kind = "refused, ours" if ours else ("accepted, named" if exported.unsaid else "accepted, unnamed")
                    count[kind] += 1
                    if kind != "accepted, named":
                        print(name, kind, repr(text)[:300], json.dumps(case["schema"])[:400], file=sys.stderr)
                if time.perf_counter() - begin > DEADLINE:
                    count["stopped"] += 1
                    break
    print(f"{schemas} schemas")
    for name, count in counts.items():
        print(name, dict(count))
    if arguments.json:
        arguments.json.write_text(json.dumps({"machine": machine(), "counts": counts}, indent=1))


if __name__ == "__main__":
    main()
