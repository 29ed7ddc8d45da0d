"""Exports of MaskBench's schemas, loaded by their targets and compared with us text by text.

    python -m benchmarks masks/exports [--model MODEL.gguf] [--limit N] [--data FILE] [--sheets FILE]

For every schema: `Grammar.to_gbnf` in llama.cpp's sampler, `to_ebnf` in xgrammar, `to_lark` in llguidance, and
`to_regex` in Python's `re`. The texts are the instances of the schema, as JSON with a space after ``:`` and ``,``, four
random texts of our grammar, and one change in each of these. Where `Exported.unsaid` is empty, the verdicts have to be
the same; else the target may accept more. Schemas come in a random order, the same each time, so ``--limit`` takes a
sample.
"""

from __future__ import annotations

import json
import random
import re
import sys
import time
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from benchmarks.shared.data import MASKBENCH_ALL, rows
from benchmarks.shared.grammar_oracles import Judge, LlamaCpp, compared, llguidance_peer, mutated, xgrammar_peer
from benchmarks.shared.results_io import percentile
from benchmarks.shared.tables import NOTATIONS, show
from benchmarks.shared.workers import Worker, gathered
from toolgrammar.core import Grammar, ToolGrammarError
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


class Target:
    """What reads a notation.

    Args:
        notation: the notation.
        model: a GGUF file, for llama.cpp's vocabulary.
    """

    def __init__(self, notation: str, model: str) -> None:
        self.notation, self.judge = notation, _judge_of(model, notation)


def counted(target: Target, at: str, schema: Any, instances: list[str]) -> dict[str, Any]:
    """Return the counts of a schema in the notation of a target. Runs in a process of its own."""
    draw, why, begin = random.Random(at), "no grammar", time.process_time()
    try:
        grammar = Grammar.from_json_schema(schema)
        texts = texts_of(grammar, [text for text in instances if len(text) < LENGTH], draw)
        why, begin = "not exported", time.process_time()
        rules, name = exported(grammar), target.notation
        written = written_as_regex(rules) if name == "regex" else written_as(name, rules, {})
    except ToolGrammarError as error:
        return {"schemas": 1, why: 1, "why": str(error)[:200]}
    seconds, begin = time.process_time() - begin, time.process_time()
    count = Counter(schemas=1, exported=1, exact=int(not written.unsaid))
    size, different = str(len(written.text)), []
    try:
        judge = target.judge(written.text)
    except Exception as error:
        return {**count, "not loaded": 1, "why": f"{type(error).__name__}: {error}"[:200], "size": size}
    loading = time.process_time() - begin
    for text, ours in compared(grammar, judge, texts, count):
        kind = "refused, ours" if ours else ("accepted, named" if written.unsaid else "accepted, unnamed")
        count[kind] += 1
        if kind != "accepted, named":
            different.append([kind, text[:500]])
            print(name, kind, at, repr(text)[:300], file=sys.stderr)
    times = {"ms": round(1e3 * seconds), "load_ms": round(1e3 * loading)}
    return {**count, **times, "different": different[:5], "size": size}


def _judge_of(model: str, name: str) -> Callable[[str], Judge]:
    if name == "gbnf":
        return LlamaCpp(model).judge
    if name == "regex":
        return lambda text: lambda candidate, compiled=re.compile(text): bool(compiled.fullmatch(candidate))  # type: ignore[misc]
    return (xgrammar_peer() if name == "ebnf" else llguidance_peer()).judge


def reason(message: str) -> str:
    """Return the first line of an error without the parts that differ between schemas."""
    text = re.sub(r"'[^']*'|\"[^\"]*\"", "...", message.splitlines()[0].split(" Hint:")[0])
    return re.sub(r"^at /\S*: ", "", text)[:80]


def main(
    model: str = "",
    limit: int | None = None,
    data: Path = MASKBENCH_ALL,
    only: str = "",
    sheets: Path | None = None,
    keep: bool = False,
) -> int:
    """Compare, and print the counts; 1 if an export is wrong.

    Args:
        model: a GGUF file with a byte-level vocabulary; without it, smollm2
        limit: number of schemas
    """
    path = model or str(PUBLISHED["smollm2"].pull())
    workers = [
        Worker(
            name,
            (__name__, "counted"),
            engine=f"{__name__}:Target",
            options={"notation": name, "model": path},
            deadline=DEADLINE,
        )
        for name in NOTATIONS
    ]
    every = rows(data)
    cases = [case for case in random.Random(7).sample(every, len(every))[:limit] if only in case["id"]]

    def arguments(case: Mapping[str, Any]) -> tuple[str, Any, list[str]]:
        return case["id"], case["schema"], [json.dumps(test["data"], ensure_ascii=False) for test in case["tests"]]

    counts: dict[str, Counter[str]] = {name: Counter() for name in NOTATIONS}
    reasons: dict[str, Counter[str]] = {name: Counter() for name in NOTATIONS}
    sizes: dict[str, list[int]] = {name: [] for name in NOTATIONS}
    for name, of_schema in gathered(workers, cases, arguments, {"deadline": DEADLINE}, sheets).items():
        for count in of_schema.values():
            if "refused" in count:
                count = {"schemas": 1, "crashed" if count["refused"] == "crash" else "timed out": 1}
            count.pop("peak_memory_mb", None)
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
    report = {"schemas": len(cases), "of": len(cases), "deadline": DEADLINE}
    report |= {"counts": counts, "reasons": reasons, "characters": shares}
    show("exports", report, keep=keep)
    return int(any(count["refused, ours"] or count["accepted, unnamed"] for count in counts.values()))
