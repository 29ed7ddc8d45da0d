"""The command ``chat``: calls that run only when allowed, and lines of JSON."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from toolgrammar.adapters.cli import app
from toolgrammar.core import Message, ToolCall
from toolgrammar.core.testing import ScriptedModel

TOOLS = '''
"""Tools of a test."""
from math import sqrt
from pathlib import Path

def touch(name: str) -> str:
    """Leave a file."""
    Path(__file__).with_name(name).touch()
    return f"made {name}"

def _secret(a: int) -> int:
    return a
'''


def invoke(*arguments: str, text: str = "") -> tuple[int, str, str]:
    """Run a command; return the exit code, the output and the complaints."""
    result = CliRunner().invoke(app, list(arguments), input=text, env={"NO_COLOR": "1"})
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result.exit_code, result.stdout, result.stderr


@pytest.fixture
def tools(tmp_path: Path) -> Iterator[str]:
    """A file with one public function."""
    file = tmp_path / "tools_of_tests.py"
    file.write_text(TOOLS, encoding="utf-8")
    yield str(file)
    sys.modules.pop("tools_of_tests", None)


@pytest.fixture
def model(monkeypatch: pytest.MonkeyPatch) -> ScriptedModel:
    """A model that calls the tool, then says what came of it."""

    def reply(conversation: Any) -> Any:
        last = conversation[-1]
        if last.role == "tool":
            return f"Result: {last.text}"
        return Message("assistant", "", tool_calls=(ToolCall("1", "touch", {"name": "x.txt"}),))

    scripted = ScriptedModel(reply)
    monkeypatch.setattr("toolgrammar.core.models.load_model", lambda address: scripted)
    return scripted


def test_a_call_runs_only_when_allowed(tools: str, model: ScriptedModel, tmp_path: Path) -> None:
    """With ``--yes`` the function runs and the model reads its result; where nobody can be asked it does not run."""
    code, out, _ = invoke("chat", "scripted", "--tools", tools, "-m", "Make x.txt")
    assert code == 0 and "did not allow" in out
    assert not (tmp_path / "x.txt").exists()


def test_yes_runs_calls(tools: str, model: ScriptedModel, tmp_path: Path) -> None:
    """``--yes`` runs calls; each message is a line of JSON with ``--json``, and all turns are in the trace."""
    page = tmp_path / "trace.html"
    code, out, _ = invoke("chat", "scripted", "--tools", tools, "-m", "x", "--yes", "--json", f"--trace={page}")
    assert code == 0
    assert (tmp_path / "x.txt").exists()
    lines = [json.loads(line) for line in out.splitlines()]
    assert [line["role"] for line in lines] == ["user", "assistant", "tool", "assistant"]
    assert lines[1]["tool_calls"][0]["arguments"] == {"name": "x.txt"}
    assert lines[3]["content"] == "Result: made x.txt"
    assert page.read_text(encoding="utf-8").count('"prompt_tokens"') == 2


@pytest.mark.parametrize(("answer", "runs"), [("y\n", True), ("n\n", False)])
def test_the_user_is_asked(
    answer: str, runs: bool, tools: str, model: ScriptedModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At a terminal, the user's yes decides."""
    monkeypatch.setattr("toolgrammar.adapters.cli.chat._can_ask", lambda: True)
    code, out, err = invoke("chat", "scripted", "--tools", tools, "-m", "x", text=answer)
    assert code == 0 and "run it?" in err
    assert (tmp_path / "x.txt").exists() is runs
    assert 'touch({"name": "x.txt"})' in out


def test_messages_come_from_a_pipe(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each line is a message; the conversation grows."""
    scripted = ScriptedModel(["one", "two"])
    monkeypatch.setattr("toolgrammar.core.models.load_model", lambda address: scripted)
    code, out, _ = invoke("chat", "scripted", text="hello\n\nagain\n")
    assert (code, out) == (0, "one\ntwo\n")
    assert [message.text for message in scripted.requests[1]] == ["hello", "one", "again"]


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("tools.py", "raise ValueError('broken')", "broken"),
        ("tools.py", "_x = 1", "no public function"),
        ("tools.json", "{", "not JSON"),
        ("tools.json", '[{"name": "a", "name": "b"}]', "two members 'name'"),
        ("tools.json", "[" * 100_000, "nested too deeply"),
        ("none.py", None, "not a file"),
        ("tools.json", "[1]", "tools.json: cannot make a tool"),
        ("tools.json", '[{"name": "a", "parameters": {"type": "nothing"}}]', "tools.json: "),
        ("tools.py", "def f(a: 'Nothing'): ...", "tools.py: an annotation"),
    ],
)
def test_tools_that_cannot_be_loaded(name: str, content: str | None, words: str, tmp_path: Path) -> None:
    """A file that is no file of tools is one clean line."""
    if content is not None:
        (tmp_path / name).write_text(content, encoding="utf-8")
    code, out, err = invoke("chat", "embedded", "--tools", str(tmp_path / name), "-m", "x")
    assert code == 2 and out == "" and words in err and "Traceback" not in err


def test_tools_of_a_json_file_are_described(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tools of a JSON file can be called; there is nothing to run, and nobody to give the result."""
    scripted = ScriptedModel([Message("assistant", "", tool_calls=(ToolCall("1", "look", {}),)), "done"])
    monkeypatch.setattr("toolgrammar.core.models.load_model", lambda address: scripted)
    tool = {"type": "function", "function": {"name": "look", "parameters": {"type": "object", "properties": {}}}}
    (tmp_path / "tools.json").write_text(json.dumps([tool]), encoding="utf-8")
    code, out, _ = invoke("chat", "scripted", "--tools", str(tmp_path / "tools.json"), "-m", "x", "--yes")
    assert code == 0 and "only described" in out and out.endswith("done\n")


@pytest.mark.parametrize("options", [[], ["--json"]], ids=["text", "json"])
def test_a_declined_call_is_told_to_the_person(model: ScriptedModel, tools: str, options: list[str]) -> None:
    """Where nobody can be asked, standard error names the option that allows calls."""
    code, _, err = invoke("chat", "m", "--tools", tools, "-m", "make it", *options)
    assert code == 0 and "--yes" in err


@pytest.mark.parametrize("path", ["absolute", "relative"])
@pytest.mark.parametrize(
    ("text", "line"),
    [("a = 1\n\nraise KeyError('closed')", 3), ("a = 1\ndef f(:\n    pass", 2)],
    ids=["raises", "syntax"],
)
def test_errors_of_tool_files_name_the_line(
    model: ScriptedModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, line: int, path: str
) -> None:
    """A file of tools that raises, or is no Python, is refused with the line."""
    file = tmp_path / "broken_tools_of_tests.py"
    file.write_text(text, encoding="utf-8")
    if path == "relative":
        monkeypatch.chdir(tmp_path)
        file = Path(file.name)
    code, _, err = invoke("chat", "m", "--tools", str(file), "-m", "x")
    assert code == 2 and f", line {line} cannot be executed" in err and "Traceback" not in err
    sys.modules.pop("broken_tools_of_tests", None)
