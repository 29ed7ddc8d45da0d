"""The benchmark of calls in each wire format runs, and notices what is wrong."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks.formats import formats_validity
from toolgrammar.core import Generation, Message, Usage
from toolgrammar.tools import ToolSet

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


def test_benchmark_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Two requests in two formats: no failure, exit code 0, and a row of counts for each."""
    data = tmp_path / "requests.jsonl"
    data.write_text(f"{json.dumps({'id': 'a', 'question': [[]], 'functions': FUNCTIONS})}\n" * 2)
    assert formats_validity.main(data, max_tokens=64, formats="hermes,llama-4", workers=1) == 0
    head, _, *rows = ([cell.strip() for cell in line.split("|")[1:-1]] for line in capsys.readouterr().out.splitlines())
    assert [row[:2] for row in rows] == [["hermes", "2"], ["llama-4", "2"]]
    assert all(row[-1] == "0" and int(row[head.index("calls")]) >= 2 for row in rows)


@pytest.mark.parametrize(
    ("text", "kinds"),
    [
        ('<tool_call>\n{"name": "move.to", "arguments": {"x": 1}}\n</tool_call>', set()),
        ("no call", {"no calls, or text beside them"}),
        ('<tool_call>\n{"name": "run", "arguments": {}}\n</tool_call>', {"call with an error"}),
        ('<tool_call>\n{"name": "move.to", "arguments": {"x": "1"}}\n</tool_call>', {"call with an error"}),
        ("", {"no calls, or text beside them"}),
    ],
)
def test_failures_are_noticed(text: str, kinds: set[str]) -> None:
    """Whatever breaks the promise is a failure of its kind; a valid call is none."""
    tools = ToolSet.from_any(FUNCTIONS)
    parsed = tools.parse(text)
    generation = Generation(Message("assistant", parsed.text, tool_calls=parsed.tool_calls), "stop", Usage(), raw=text)
    assert {problem.split(":")[0] for problem in formats_validity.judge(tools, generation)} == kinds
