"""Data of the benchmarks: files of one JSON object a line, gzip or not, beside the repository's folder."""

from __future__ import annotations

import gzip
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from toolgrammar.tools import Tool, ToolSet

FOLDER = Path(__file__).resolve().parents[3] / "shared" / "data"
BFCL = FOLDER / "bfcl-dev.jsonl.gz"
MASKBENCH = FOLDER / "maskbench-dev.jsonl.gz"
MASKBENCH_ALL = FOLDER / "maskbench-all.jsonl.gz"


def spread(found: Sequence[Any], count: int) -> list[Any]:
    """Return so many of some items, spread over them; all for 0."""
    return list(found[:: max(1, len(found) // count)][:count] if count else found)


def lines(path: Path, count: int = 0) -> list[str]:
    """Return the lines of a file, or so many of them that are spread over it.

    Raises:
        SystemExit: there is no such file; the status is 2.
    """
    if not path.is_file():
        print(f"{path.name} is not here: give its path; nothing was measured")
        raise SystemExit(2)
    with (gzip.open if path.suffix == ".gz" else open)(path, "rt", encoding="utf-8") as file:
        return spread([line for line in file if line.strip()], count)


def rows(path: Path, count: int = 0) -> list[dict[str, Any]]:
    """Return the objects of a file, as `lines`."""
    return list(map(json.loads, lines(path, count)))


def is_valid(schema: Any, text: str) -> bool:
    """Return True if a text is JSON that the ``jsonschema`` library finds valid."""
    import jsonschema  # an interpreter that only times need not have it

    try:
        value = json.loads(text)
    except ValueError:
        return False
    return bool(jsonschema.Draft202012Validator(schema).is_valid(value))


def tool_sets(path: Path, *, closed: bool = True) -> list[list[dict[str, Any]]]:
    """Return the tools of each request of a file, in OpenAI's form."""
    return [ToolSet.from_any(row["functions"]).to_openai(closed=closed) for row in rows(path)]


def schemas_of(path: Path, *, closed: bool = True) -> list[Any]:
    """Return the schemas of the arguments of all tools of a file."""
    return [tool["function"]["parameters"] for tools in tool_sets(path, closed=closed) for tool in tools]


def distinct_tools(path: Path, count: int, *, variants: bool = True) -> list[Tool]:
    """Return the first distinct tools of a file; a name that comes again gets a number, or no place."""
    seen: set[str] = set()
    named: dict[str, Tool] = {}
    for row in rows(path):
        for tool in ToolSet.from_any(row["functions"]):
            if tool.fingerprint in seen:
                continue
            seen.add(tool.fingerprint)
            name, again = tool.name, 2
            while variants and name in named:
                name, again = f"{tool.name}_{again}", again + 1
            named.setdefault(name, tool.renamed(name))
            if len(named) == count:
                return list(named.values())
    return list(named.values())
