"""Masks and compilation on MaskBench, beside llguidance, xgrammar and glrmask, in one run.

    python -m benchmarks masks/maskbench [--limit N] [--peers llguidance,glrmask] [--before PYTHON] [--keep NAME]

For every schema: the time to compile it and give the first mask; then for every token of every instance (written by
the vocabulary's own tokenizer) the time of one mask and one accept, cold (each schema is met for the first time) and,
for us, warm (a second pass over the same instances). And for every instance whether it is judged right, and for every
token whether the mask allows what is then accepted. The Python API, one thread, and a real vocabulary, the same for
every engine: Tekken's 131,072 tokens, or by ``--vocabulary`` Mistral's 32,768, both of which `mistral-common` ships, or
Gemma's 262,144, of a package of npm. Instances are written as ``json.dumps(data, ensure_ascii=False)``; whitespace is
flexible where an engine has the choice (glrmask writes one space after ``,`` and ``:``), and so is the order of
properties, since instances keep an order of their own. ``--peers xgrammar,xgrammar-strict`` has xgrammar twice, without
and with its default ``strict_mode``, which closes objects that the schema leaves open.

``--clock cpu`` is processor time: of the thread for masks, and of the whole process for compiling, since glrmask
compiles in threads of its own. What it takes to read the clock, which for processor time is a system call, is
measured and subtracted from each step, of every engine.

Schema by schema, the engines take turns, each in a process of its own: memory is counted for each, and no engine's
garbage is collected in another's time. One that gives no answer within ``--deadline`` seconds is stopped, begins anew
with the next schema, and counts as refusing this one. A process that waited for others finds its caches empty, and
compiles in twice the time: ``--block N`` gives each engine N schemas at a time, and so measures engines at work. With
``--sheets FILE`` a run that was stopped goes on where it was. ``--before PYTHON`` measures another install of this
library, by its interpreter, as one more engine.
"""

from __future__ import annotations

import functools
import re
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, Literal

import numpy as np

from benchmarks.shared import peers as vocabularies
from benchmarks.shared.data import MASKBENCH, rows
from benchmarks.shared.tables import show
from benchmarks.shared.workers import Sheet, Worker, dumped, gathered, installed
from toolgrammar.core import ToolGrammarError, UnsatisfiableSchemaError

#: By the option: the clock of compiling, and that of masks.
CLOCKS = {"wall": (time.perf_counter, time.perf_counter), "cpu": (time.process_time, time.thread_time)}

#: An instance: whether it is valid, and its tokens.
Test = tuple[bool, list[int]]


def reason(error: Exception) -> str:
    """Return why a schema was refused, without its place: our errors name a keyword, a peer's have a message."""
    if type(error) is not ToolGrammarError and isinstance(error, ToolGrammarError):
        return f"{type(error).__name__} {getattr(error.place, 'keyword', None) or ''}".strip()
    message = re.sub(r"#/\S*:\s*", "", str(error).splitlines()[0] if str(error) else type(error).__name__)
    message = re.sub(r"^\[[\d:]+\] \S+/(\w+\.cc):\d+: ", r"\1: ", message)  # xgrammar begins with the time
    return message.removeprefix("grammar error: ")[:50].rstrip()


@functools.cache
def reading(now: Any) -> float:
    """Return the seconds that an interval of a clock has without any work in it (the median of many)."""
    return sorted(-(now() - now()) for _ in range(2_001))[1_000]


def written(engine: Any, compiled: Any, tokens: Sequence[int], times: list[float], now: Any) -> tuple[bool, bool]:
    """Write a text, and add the time of each step; True if it is accepted, and True if a mask was not what accepts."""
    matcher, bits, differs, empty = engine.start(compiled), engine.bits, False, reading(now)
    for token in tokens:
        begin = now()
        accepted = engine.step(matcher, token)
        times.append(round(max(0.0, now() - begin - empty) * 1e6, 2))
        differs |= bool(bits[token >> 5] >> (token & 31) & 1) != accepted
        if not accepted:
            return False, differs
    return engine.accepts(matcher), differs


def run(engine: Any, schema: Any, tests: Sequence[Test], clock: str) -> Sheet:
    """Return what an engine makes of a schema: times in microseconds, and verdicts.

    Either ``{"refused": reason}``, or ``compile``; ``token`` and ``warm``: a list for each instance; ``right``,
    ``too_strict`` and ``too_lax``: counts of instances; ``mask_differs``: instances with a mask that does not say what
    is accepted.
    """
    compile_clock, now = CLOCKS[clock]
    sheet: Sheet = {"token": [], "warm": [], "right": 0, "too_strict": 0, "too_lax": 0, "mask_differs": 0}
    begin = compile_clock()
    try:
        compiled = engine.compile(schema)
    except UnsatisfiableSchemaError:  # a verdict about every instance
        too_strict = sum(valid for valid, _ in tests)
        return {**sheet, "right": len(tests) - too_strict, "too_strict": too_strict}
    except Exception as error:  # a peer may raise anything; a refusal is a result
        return {"refused": reason(error)}
    sheet["compile"] = round((compile_clock() - begin) * 1e6, 2)
    if engine.name == "toolgrammar":
        engine.warm(compiled)
    try:
        for valid, tokens in tests:
            times: list[float] = []
            sheet["token"].append(times)
            accepted, differs = written(engine, compiled, tokens, times, now)
            sheet["right"] += accepted == valid
            sheet["too_lax"] += accepted and not valid
            sheet["too_strict"] += valid and not accepted
            sheet["mask_differs"] += differs
    except Exception as error:  # a limit that only shows on the way
        return {"refused": f"{reason(error)}, in mid-text"}
    if engine.name == "toolgrammar":
        for _, tokens in tests:
            times = []
            sheet["warm"].append(times)
            written(engine, compiled, tokens, times, now)
    return sheet


def percentiles(values: Iterable[float]) -> dict[str, float]:
    """Return p50 .. worst and mean."""
    ordered = np.sort(np.fromiter(values, dtype=float))
    if not len(ordered):
        return {}
    names = {"p50": 0.5, "p90": 0.9, "p99": 0.99, "p99.9": 0.999}
    found = {name: float(ordered[min(len(ordered) - 1, int(len(ordered) * at))]) for name, at in names.items()}
    return {**found, "worst": float(ordered[-1]), "mean": float(ordered.mean())}


def tokens_of(found: Iterable[Sheet], key: str = "token") -> list[float]:
    """Return the times of all tokens."""
    return [each for sheet in found for each in chain.from_iterable(sheet[key])]


def times_of(found: Sequence[Sheet]) -> dict[str, Any]:
    """Return the distributions of some schemas."""
    return {
        "compile_and_first_mask_us": percentiles(sheet["compile"] for sheet in found if "compile" in sheet),
        "mask_and_accept_us": percentiles(tokens_of(found)),
    }


def summary(found: Mapping[str, Sheet], common: Sequence[str]) -> dict[str, Any]:
    """Return the sheets of one engine added up: all schemas that it takes, and those that all engines take."""
    taken = {name: sheet for name, sheet in found.items() if "refused" not in sheet}
    both = [taken[name] for name in common]
    return {
        "schemas_compiled": len(taken),
        "schemas_right": sum(not sheet["too_strict"] and not sheet["too_lax"] for sheet in taken.values()),
        "instances": {key: sum(sheet[key] for sheet in taken.values()) for key in ("right", "too_strict", "too_lax")},
        "mask_differs": sum(sheet["mask_differs"] for sheet in taken.values()),
        "refused": dict(Counter(sheet["refused"] for sheet in found.values() if "refused" in sheet).most_common(12)),
        "schemas_refused": len(found) - len(taken),
        **times_of(list(taken.values())),
        "warm_us": percentiles(tokens_of(taken.values(), "warm")),
        "common": {"schemas": len(both), "tokens": len(tokens_of(both)), **times_of(both)},
        "tokens": len(tokens_of(taken.values())),
        "peak_memory_mb": max((sheet.get("peak_memory_mb", 0) for sheet in found.values()), default=0),
    }


def paired(ours: Mapping[str, Sheet], before: Mapping[str, Sheet]) -> dict[str, Any]:
    """Compare two engines on the schemas that both take: total times divided, and the median of schemas' quotients."""
    names = [name for name, sheet in ours.items() if "compile" in sheet and "compile" in before.get(name, {})]
    found: dict[str, Any] = {"schemas": len(names)}
    for key in ("compile", "token", "warm"):
        sums = [
            [sheet["compile"] if key == "compile" else sum(tokens_of([sheet], key)) for sheet in (ours[at], before[at])]
            for at in names
        ]
        quotients = sorted(now / then for now, then in sums if then)
        if quotients:
            total = sum(now for now, _ in sums) / sum(then for _, then in sums)
            found[key] = {"of_totals": total, "median_of_schemas": quotients[len(quotients) // 2]}
    return found


def main(
    limit: int = 0,
    peers: str = "llguidance,xgrammar,glrmask",
    before: str = "",
    warm: float = 0,
    clock: Literal["wall", "cpu"] = "wall",
    order: Literal["any", "schema"] = "any",
    whitespace: Literal["flexible", "single"] = "flexible",
    vocabulary: Literal["tekken", "mistral", "gemma"] = "tekken",
    deadline: float = 60,
    block: int = 1,
    sheets: Path | None = None,
    data: Path = MASKBENCH,
    keep: str = "",
) -> int:
    """Run the benchmark; 1 if a verdict or a mask of this library is wrong.

    Args:
        before: the interpreter of another install of this library, as one more engine
        warm: seconds of `Constraint.warm`, of one more engine: this library, warmed
        clock: cpu, for a machine that is busy
        order: property_order of this library
        whitespace: of this library
        vocabulary: of all engines: 131,072, 32,768 or 262,144 tokens
        block: schemas that an engine is given at a time
        keep: write benchmarks/results/KEEP.json
    """
    chosen, job, words = rows(data, limit), (__name__, "run"), {"vocabulary": vocabulary}
    tokens, encode = getattr(vocabularies, vocabulary)()
    own = {"whitespace": whitespace, "property_order": order}
    ours: dict[str, Any] = {"options": own | words, "deadline": deadline, "engine": "toolgrammar"}
    workers = [Worker("toolgrammar", job, **ours)]
    if before:
        workers.append(Worker("before", job, python=before, **ours))
    if warm:
        workers.append(Worker("warmed", job, **{**ours, "options": {**own, **words, "warm_seconds": warm}}))
    workers += [Worker(name, job, options=words, deadline=deadline) for name in installed(peers)]

    def arguments(row: Mapping[str, Any]) -> tuple[Any, list[Test], str]:
        schema, tests = dumped(row)
        return schema, [(valid, encode(text)) for valid, text in tests], clock

    settings: dict[str, Any] = {"schemas": len(chosen), "clock": clock, "deadline_s": deadline, "block": block}
    settings |= {**own, **words}
    measured = gathered(workers, chosen, arguments, settings, sheets, block)
    common = [row["id"] for row in chosen if all("compile" in each[row["id"]] for each in measured.values())]
    report: dict[str, Any] = {
        **settings,
        "compiled": all(worker.compiled for worker in workers),
        "without_clock": True,
        "compile_clock": "process" if clock == "cpu" else "wall",
        "order": order,
        "vocabulary": tokens.size,
        "engines": {
            worker.name: {"version": worker.version, **summary(measured[worker.name], common)} for worker in workers
        },
    }
    if before:
        report["paired"] = paired(measured["toolgrammar"], measured["before"])
        print(f"now divided by before: {report['paired']}")
    if warm:
        report["warmed"] = paired(measured["warmed"], measured["toolgrammar"])
        print(f"warmed divided by not: {report['warmed']}")
    show(keep or "maskbench", report, keep=bool(keep), table="maskbench")
    wrong = report["engines"]["toolgrammar"]
    return 1 if wrong["instances"]["too_lax"] or wrong["mask_differs"] else 0
