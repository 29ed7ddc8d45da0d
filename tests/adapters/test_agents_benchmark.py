"""The storm of agents runs, and notices what is wrong."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
# The frameworks of the storm, and the package that each needs.
FRAMEWORKS = {
    "agent_framework": "agent_framework",
    "autogen": "autogen_agentchat",
    "crewai": "crewai",
    "langchain": "langchain",
}
REQUEST: dict[str, Any] = {
    "id": "a",
    "question": [[{"role": "user", "content": "Go"}]],
    "functions": [
        {
            "name": "move.to",
            "description": "Move.",
            "parameters": {
                "type": "dict",
                "properties": {"x": {"type": "integer"}, "name": {"type": "string"}, "fast": {"type": "boolean"}},
                "required": ["x", "name"],
            },
        },
        {"name": "stop", "description": "Stop.", "parameters": {"type": "dict", "properties": {}}},
    ],
}


@pytest.fixture
def case_module() -> ModuleType:
    """What frameworks get, as a module."""
    return importlib.import_module("benchmarks.answers.agents_case")


@pytest.mark.parametrize("framework", sorted(FRAMEWORKS))
def test_storm_runs(framework: str, tmp_path: Path) -> None:
    """Six agents, every other one streamed: tools ran, none with invalid arguments, and the report says so."""
    if importlib.util.find_spec(FRAMEWORKS[framework]) is None:
        pytest.skip(f"{FRAMEWORKS[framework]} is not installed")
    data = tmp_path / "requests.jsonl"
    data.write_text(json.dumps(REQUEST) + "\n")
    command = [sys.executable, "-m", "benchmarks", "answers/agents_validity", str(data)]
    command += ["--runs", "6", "--workers", "1", "--frameworks", framework]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=110, check=False)
    assert result.returncode == 0, result.stdout + result.stderr
    row = [cell.strip() for cell in result.stdout.splitlines()[-1].split("|")[1:-1]]
    assert (row[:2], row[-1]) == ([framework, "6"], "0")
    assert int(row[2]) >= 6


def test_invalid_arguments_are_noticed(case_module: ModuleType) -> None:
    """A tool that runs with arguments that its own schema forbids is a failure; with valid ones it is none."""
    case = case_module.Case("a", "Go", REQUEST["functions"], 0, 64, case_module.noise())
    case.run_tool("move.to", {"x": 1, "name": "ann"})
    assert case.problems == []
    case.run_tool("move.to", {"x": "1", "name": "ann"})
    case.run_tool("move.to", {"x": 1})
    assert (case.ran, len(case.problems)) == (3, 2)


def test_frameworks_are_all_tested_here() -> None:
    """Each framework of the storm has its run above."""
    found = {path.stem.removeprefix("agents_") for path in (ROOT / "benchmarks" / "answers").glob("agents_*.py")}
    assert found - {"case", "validity"} == set(FRAMEWORKS)
