"""Data of the benchmarks: files of one JSON object a line, gzip or not, beside the repository's folder."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

from toolgrammar.tools import ToolSet

FOLDER = Path(__file__).resolve().parents[3] / "shared" / "data"
BFCL = FOLDER / "bfcl-dev.jsonl.gz"
MASKBENCH = FOLDER / "maskbench-dev.jsonl.gz"
MASKBENCH_ALL = FOLDER / "maskbench-all.jsonl.gz"


def lines(path: Path, count: int | None = None) -> list[str]:
    """Return the lines of a file, or so many of them that are spread over it.

    Raises:
        SystemExit: there is no such file; the status is 2.
    """
    if not path.is_file():
        print(f"{path.name} is not here: give its path; nothing was measured")
        raise SystemExit(2)
    with (gzip.open if path.suffix == ".gz" else open)(path, "rt", encoding="utf-8") as file:
        found = [line for line in file if line.strip()]
    return found[:: max(1, len(found) // count)][:count] if count else found


def rows(path: Path, count: int | None = None) -> list[dict[str, Any]]:
    """Return the objects of a file, as `lines`."""
    return list(map(json.loads, lines(path, count)))


def tool_sets(path: Path, *, closed: bool = True) -> list[list[dict[str, Any]]]:
    """Return the tools of each request of a file, in OpenAI's form."""
    return [ToolSet.from_any(row["functions"]).to_openai(closed=closed) for row in rows(path)]


def schemas_of(path: Path, *, closed: bool = True) -> list[Any]:
    """Return the schemas of the arguments of all tools of a file."""
    return [tool["function"]["parameters"] for tools in tool_sets(path, closed=closed) for tool in tools]
