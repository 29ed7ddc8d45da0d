"""Which schemas of MaskBench does each engine take, and which instances does it judge right?

    python -m benchmarks masks/verdicts --data maskbench-all.jsonl.gz [--limit N] [--peers A,B] [--sheets FILE] [--keep]

An engine compiles a schema and reads its test instances (`json.dumps`, valid and invalid ones) byte by byte, without a
mask: the vocabulary is the 256 bytes, on which no verdict depends. A schema is *right* if all its instances are judged
right, *too strict* if a valid instance is refused, *too lax* if an invalid one is accepted, and *refused* if the engine
raises an error, crashes or gives no answer within ``--deadline`` seconds. Whitespace is flexible, and the order of
members free, where an engine has the choice. With ``--keep``, a peer that does not run keeps its row, with its version,
if number of schemas and deadline are the same.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.masks.maskbench import reason
from benchmarks.shared.data import MASKBENCH, rows
from benchmarks.shared.results_io import RESULTS
from benchmarks.shared.tables import show
from benchmarks.shared.workers import Sheet, Worker, dumped, gathered, installed
from toolgrammar.core import UnsatisfiableSchemaError

#: How the engines are made.
ENGINES: dict[str, dict[str, Any]] = {
    "toolgrammar": {"whitespace": "flexible", "property_order": "any"},
    "llguidance": {},
    "xgrammar": {},
    "glrmask": {},
    "outlines-core": {},
}

#: A part of the data: the beginning of the ids, or of their part before `---`.
FAMILIES = ("Github", "Glaiveai2K", "BFCL", "Kubernetes", "JsonSchemaStore", "Snowplow", "Synthesized", "Handwritten")
FAMILIES = (*FAMILIES, "WashingtonPost", "JME", "MCPspec")


def judge(engine: Any, schema: Any, tests: Sequence[tuple[bool, str]]) -> Sheet:
    """Return the verdicts about the instances of a schema: counts, or ``{"refused": reason}``."""
    sheet: Sheet = {"right": 0, "too_strict": 0, "too_lax": 0}
    try:
        compiled = engine.compile(schema)
        for valid, text in tests:
            state = engine.start(compiled)
            accepted = engine.read(state, text.encode()) and engine.accepts(state)
            sheet["right" if accepted == valid else "too_lax" if accepted else "too_strict"] += 1
    except UnsatisfiableSchemaError:  # a verdict about every instance
        valid = sum(valid for valid, _ in tests)
        return {"right": len(tests) - valid, "too_strict": valid, "too_lax": 0}
    except BaseException as error:  # a peer may raise anything, also a panic; a refusal is a result
        return {"refused": reason(error)}
    return sheet


def verdict(sheet: Sheet) -> str:
    """Return the verdict about a schema."""
    if "refused" in sheet:
        return "refused"
    return "too_lax" if sheet["too_lax"] else "too_strict" if sheet["too_strict"] else "right"


def counted(rows: Sequence[Mapping[str, Any]], sheets: Mapping[str, Sheet]) -> dict[str, Any]:
    """Return the counts of an engine: schemas by family and verdict, reasons, and instances."""
    families: dict[str, Counter[str]] = {family: Counter() for family in FAMILIES}
    reasons: Counter[str] = Counter()
    instances: Counter[str] = Counter()
    for row in rows:
        sheet = sheets[row["id"]]
        family = next(name for name in FAMILIES if row["id"].startswith(name))
        families[family][verdict(sheet)] += 1
        families[family]["schemas"] += 1
        if "refused" in sheet:
            reasons[sheet["refused"]] += 1
        else:
            instances.update({key: sheet[key] for key in ("right", "too_strict", "too_lax")})
    return {
        "families": {family: dict(counts) for family, counts in families.items() if counts},
        "refused": dict(reasons.most_common(12)),
        "instances": dict(instances),
    }


def asked(
    job: str,
    engines: Mapping[str, tuple[str, dict[str, Any]]],
    chosen: Sequence[Mapping[str, Any]],
    peers: str,
    deadline: float,
    sheets: Path | None,
) -> tuple[dict[str, Any], list[Worker], dict[str, dict[str, Sheet]]]:
    """Ask engines about rows of MaskBench, over single bytes; return the settings, the workers and their sheets.

    Args:
        job: the module whose ``judge`` is asked.
        engines: the engine of each row of the table, and its options.
        chosen: the rows.
        peers: names of the engines beside ours.
        deadline: seconds of processor time for a schema.
        sheets: where answers are kept.
    """
    names = ("toolgrammar", *installed(peers))
    workers = [
        Worker(
            name, (job, "judge"), engine=engine, options={**options, "vocabulary": "single_bytes"}, deadline=deadline
        )
        for name, (engine, options) in engines.items()
        if engine in names
    ]
    settings = {"schemas": len(chosen), "deadline_s": deadline}
    return settings, workers, gathered(workers, chosen, dumped, settings, sheets, 20)


def kept_rows(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the rows of the kept run by engine, which a run with fewer peers leaves; none if its settings differ."""
    file = RESULTS / "verdicts.json"
    kept = json.loads(file.read_text()) if file.is_file() else {}
    same = kept and all(kept[name] == value for name, value in settings.items())
    return dict(kept["engines"]) if same else {}


def main(
    data: Path = MASKBENCH,
    limit: int = 0,
    peers: str = ",".join(list(ENGINES)[1:]),
    deadline: float = 10,
    sheets: Path | None = None,
    keep: bool = False,
) -> int:
    """Run the benchmark; 1 if this library accepts an invalid instance."""
    chosen, named = rows(data, limit), {name: (name, options) for name, options in ENGINES.items()}
    settings, workers, found = asked(__name__, named, chosen, peers, deadline, sheets)
    engines = kept_rows(settings) | {
        worker.name: {"version": worker.version, **counted(chosen, found[worker.name])} for worker in workers
    }
    report = {**settings, "engines": {name: engines[name] for name in ENGINES if name in engines}}
    show("verdicts", report, keep=keep)
    return 1 if report["engines"]["toolgrammar"]["instances"].get("too_lax") else 0
