"""The validity benchmark runs, and notices what is wrong."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from toolgrammar.core import Generation, Message, Usage
from toolgrammar.tools import ToolSet

ROOT = Path(__file__).resolve().parents[2]
FUNCTIONS: list[dict[str, Any]] = [
    {
        "name": "move.to",
        "description": "Move.",
        "parameters": {
            "type": "dict",
            "properties": {"x": {"type": "integer"}, "fast": {"type": "boolean"}},
            "required": ["x"],
        },
    },
    {"name": "stop", "description": "Stop.", "parameters": {"type": "dict", "properties": {}}},
]


@pytest.fixture(scope="module")
def script() -> ModuleType:
    """The program as a module."""
    return importlib.import_module("benchmarks.answers.bfcl_validity")


def test_benchmark_runs(tmp_path: Path) -> None:
    """Two requests in every mode: no failure, exit code 0, and a row of counts for each."""
    data = tmp_path / "requests.jsonl"
    line = json.dumps({"id": "a", "question": [[{"role": "user", "content": "Go"}]], "functions": FUNCTIONS})
    data.write_text(f"{line}\n{line}\n")
    command = [sys.executable, "-m", "benchmarks", "answers/bfcl_validity", str(data), "--seeds", "2"]
    command += ["--max-tokens", "64", "--workers", "1"]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=100, check=False)
    assert result.returncode == 0, result.stderr
    head, _, *rows = ([cell.strip() for cell in line.split("|")[1:-1]] for line in result.stdout.splitlines()[-6:])
    assert [row[:3] for row in rows] == [
        ["embedded", "required", "4"], ["embedded", "auto", "4"],
        ["uniform", "required", "4"], ["uniform", "auto", "4"],
    ]  # fmt: skip
    assert head[2] == "runs" and all(row[-1] == "0" for row in rows)
    assert int(rows[0][head.index("calls")]) >= 4


@pytest.mark.parametrize(
    ("text", "kinds"),
    [
        ('<tool_call>\n{"name": "move.to", "arguments": {"x": 1}}\n</tool_call>', set()),
        ("no call", {"not in the grammar", "no call"}),
        ('<tool_call>\n{"name": "run", "arguments": {}}\n</tool_call>', {"not in the grammar", "call with an error"}),
        (
            '<tool_call>\n{"name": "move.to", "arguments": {"x": "1"}}\n</tool_call>',
            {"not in the grammar", "call with an error"},
        ),
        ("", {"not in the grammar", "no call", "empty turn"}),
    ],
)
def test_failures_are_noticed(script: ModuleType, text: str, kinds: set[str]) -> None:
    """Whatever breaks the promise is a failure of its kind; a valid call is none."""
    tools = ToolSet.from_any(FUNCTIONS)
    parsed = tools.parse(text)
    generation = Generation(Message("assistant", parsed.text, tool_calls=parsed.tool_calls), "stop", Usage(), raw=text)
    found = {problem.split(":")[0] for problem in script.failures(generation, tools, FUNCTIONS, "required")}
    assert found == kinds
