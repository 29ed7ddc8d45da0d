"""The command ``diff``: what it reads, what it prints, and its exit codes."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from .test_cli_schemas import invoke

READ = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}
OLD = {"tools": [{"name": "read", "inputSchema": READ}, {"name": "gone", "inputSchema": {"type": "object"}}]}
WIDER = {"type": "object", "properties": {**READ["properties"], "head": {"type": "integer"}}}  # type: ignore[dict-item]
SERVER = Path(__file__).parents[1] / "tools" / "mcp_server.py"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory with some descriptions of tools."""
    monkeypatch.chdir(tmp_path)
    files = {
        "old.json": json.dumps(OLD),
        "new.json": json.dumps({"tools": [{"name": "read", "inputSchema": WIDER}]}),
        "text.json": json.dumps({"type": "string"}),
        "short.json": json.dumps({"type": "string", "maxLength": 2}),
        "host.json": json.dumps({"type": "string", "format": "hostname"}),
        "unmarked.json": json.dumps({"type": "string", "not": {"pattern": "^xn--"}}),
        "one.py": 'def add(a: int, b: int = 0) -> int:\n    "Add."\n    return a + b\n',
        "two.py": 'def add(a: int, b: int) -> int:\n    "Add."\n    return a + b\n',
        "api.yaml": "openapi: 3.1.0\npaths:\n  /a:\n    get:\n      operationId: a\n",
    }
    for name, text in files.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    return tmp_path


def test_a_broken_call_is_shown(folder: Path) -> None:
    """A removed tool and a smallest call that breaks are shown, with its reason; the exit code is 1."""
    code, output, _ = invoke("diff", "old.json", "new.json")
    assert code == 1
    assert "removed    gone" in output
    assert "takes more: {}" in output
    code, output, _ = invoke("diff", "new.json", "old.json")
    assert code == 1
    assert "breaks this call: {}" in output
    assert "'path' is a required property" in output


def test_json_for_programs(folder: Path) -> None:
    """With ``--json`` the same is data."""
    code, output, _ = invoke("diff", "text.json", "short.json", "--json")
    report = json.loads(output)
    assert code == 1
    assert report["compatible"] is False
    assert report["tools"][0]["breaks"][0]["value"] == "aaa"
    assert invoke("diff", "short.json", "text.json", "--json")[0] == 0


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("text.json", "text.json", 0),
        ("host.json", "unmarked.json", 3),
        ("one.py", "two.py", 1),
        ("two.py", "one.py", 0),
        ("text.json", "old.json", 2),
        ("absent.json", "old.json", 2),
        ("api.yaml", "api.yaml", 0),
        ('{"type": "integer"}', '{"type": "number"}', 0),
    ],
)
def test_exit_codes(folder: Path, old: str, new: str, expected: int) -> None:
    """0: nothing breaks, 1: something does, 2: nothing to compare, 3: not decided."""
    if "yaml" in old:
        pytest.importorskip("yaml", reason="PyYAML is not installed")
    assert invoke("diff", old, new)[0] == expected


def test_a_revision_of_git(folder: Path) -> None:
    """A file is compared with what a revision of git has."""

    def git(*arguments: str) -> None:
        who = ["-c", "user.name=a", "-c", "user.email=a@example.com"]
        subprocess.run(["git", *who, *arguments], cwd=folder, check=True, capture_output=True)

    git("init", "-q")
    git("add", ".")
    git("commit", "-qm", "first")
    (folder / "one.py").write_text((folder / "two.py").read_text())
    assert invoke("diff", "HEAD:one.py", "one.py")[0] == 1
    assert invoke("diff", "HEAD:two.py", "one.py")[0] == 0
    code, _, complaint = invoke("diff", "HEAD:none.json", "old.json")
    assert code == 2
    assert "none.json" in complaint


def test_a_running_server(folder: Path) -> None:
    """The command of an MCP server is started, and its list of tools is compared."""
    pytest.importorskip("mcp", reason="the extra mcp is not installed")
    command = f"{sys.executable} {SERVER}"
    code, output, _ = invoke("diff", command, command)
    assert code == 0
    assert "5 compared: 5 same" in output
