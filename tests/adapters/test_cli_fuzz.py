"""The command ``fuzz``: what it calls, what it prints and writes, and its exit codes."""

from __future__ import annotations

import json
import sys
from functools import partial
from pathlib import Path

import pytest

from ..tools.faulty_service import DOCUMENT, running
from .test_cli_diff import served
from .test_cli_schemas import invoke

pytest.importorskip("mcp")

PAGE = Path(__file__).parents[2] / "docs" / "contracts.md"
FAULTY = Path(__file__).parents[1] / "tools" / "faulty_server.py"


def command(fault: str = "") -> str:
    """Return the command of the server with a fault."""
    return f"'{sys.executable}' '{FAULTY}' '{fault}'"


def test_a_failure_is_shown_and_written(tmp_path: Path) -> None:
    """The output is that of the documentation, the JUnit file is written, and the exit code is 1."""
    path = tmp_path / "fuzz.xml"
    code, output, _ = invoke("fuzz", command("takes one more"), "--calls", "100", "--junit", str(path))
    assert code == 1
    assert f"```\n{output}```" in PAGE.read_text(encoding="utf-8")
    assert "failure" in path.read_text(encoding="utf-8")


def test_json_for_programs() -> None:
    """With ``--json`` the report is data; without a failure the exit code is 0."""
    code, output, _ = invoke("fuzz", command(), "--calls", "20", "--json")
    assert code == 0
    assert [tool["failures"] for tool in json.loads(output)["tools"]] == [[], []]


def test_nothing_is_sent_to_other_hosts() -> None:
    """A host that is not this machine is refused, unless it is allowed by name."""
    code, _, errors = invoke("fuzz", "https://tools.example.com/mcp")
    assert code == 2
    assert "tools.example.com is not this machine" in errors
    assert "--allow-host tools.example.com" in errors


def test_what_cannot_be_called_ends_the_command() -> None:
    """A server that does not start, an unknown tool, and a server of which nothing was called are exit code 2."""
    assert invoke("fuzz", "/no/such/program")[0] == 2
    code, _, errors = invoke("fuzz", command(), "--tool", "eras")
    assert code == 2
    assert "no tool 'eras'" in errors
    code, _, errors = invoke("fuzz", command(), "--seconds", "0")
    assert code == 2
    assert "no tool was called" in errors


def test_a_server_at_a_url() -> None:
    """The tools of a server at a URL of this machine are called as those of a command."""
    with served() as url:
        code, output, _ = invoke("fuzz", url, "--tool", "add", "--calls", "20", "--json")
    add = json.loads(output)["tools"][0]
    assert code == 1
    assert add["calls"] == 10
    assert {each["kind"] for each in add["failures"]} == {"accepted"}  # it does not judge its arguments


def test_an_http_service(tmp_path: Path) -> None:
    """The service of an OpenAPI document is called at the URL that is given, and at no other host; POST is not sent."""
    path = tmp_path / "openapi.json"
    path.write_text(json.dumps(DOCUMENT), encoding="utf-8")
    with running() as (service, url):
        service.fault = "takes one more"
        code, output, _ = invoke("fuzz", str(path), "--url", url, "--calls", "80", "--json")
    assert code == 1
    assert [bool(tool["failures"]) for tool in json.loads(output)["tools"]] == [True, False, False]
    assert set(service.seen) == {"GET"}
    for url, said in {"http://a.example": "a.example is not this machine", "here": "here is no URL"}.items():
        assert said in invoke("fuzz", str(path), "--url", url)[2]
    assert "is an OpenAPI document" in invoke("fuzz", str(path))[2]
    assert "--url says where" in invoke("fuzz", "no.json", "--url", "http://127.0.0.1:9")[2]


def test_variables_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """A server gets the variables before its command, and not those of the user; without a command there is no server."""
    server = f"'{sys.executable}' '{FAULTY}'"
    assert invoke("fuzz", f"FAULT='takes less' {server}", "--calls", "60")[0] == 1
    monkeypatch.setenv("FAULT", "takes less")
    assert invoke("fuzz", server, "--calls", "60")[0] == 0
    code, _, errors = invoke("fuzz", "FAULT=1")
    assert (code, "the command of the server is empty" in errors) == (2, True)


def test_a_server_that_never_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that does not start in time ends the command, with a hint that the shell knows."""
    from toolgrammar.tools.mcp import McpServer

    monkeypatch.setattr(McpServer, "stdio", partial(McpServer.stdio, start_timeout=0.1))
    code, _, errors = invoke("fuzz", "sleep 20")
    assert code == 2
    assert "did not answer in 0.1 seconds" in errors
    assert "start_timeout" not in errors
