"""Fuzzing of servers: faults of real ones are found by small calls, and those without faults have no alarm."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

pytest.importorskip("mcp")
pytest.importorskip("starlette")
pytest.importorskip("uvicorn")

from toolgrammar.core import ToolCallError
from toolgrammar.tools.fuzz_targets import HttpTarget, McpTarget
from toolgrammar.tools.fuzzing import FuzzReport, fuzz
from toolgrammar.tools.mcp import McpServer

from ..shares import share
from .faulty_service import DOCUMENT, Service, running

SERVER = str(Path(__file__).parent / "faulty_server.py")

#: For each fault of the server what it is, and a smallest call that shows it.
FAULTS: dict[str, tuple[str, Any]] = {
    "crashes": ("crash", {"city": "a", "unit": "K"}),
    "crashes at an option": ("crash", {"city": "a", "at": {"lat": 0}}),
    "needs an optional member": ("protocol error", {"city": "a"}),
    "refuses the bound": ("protocol error", {"city": "a", "days": 14}),
    "hangs": ("hang", {"city": "a", "tags": [True, True, True]}),
    "gives another type": ("wrong result", {"city": "a", "unit": "F"}),
    "gives less": ("wrong result", {"city": "aaaaaaaa"}),
    "takes one more": ("accepted", {"city": "a", "days": 15}),
    "takes unknown members": ("accepted", {"city": "a", "unknown": 0}),
    "takes less": ("accepted", {}),
    "takes another case": ("accepted", {"city": "a", "unit": "c"}),
    "takes texts as numbers": ("accepted", {"city": "a", "days": "1"}),
    "takes unknown members of long calls": ("accepted", {"city": "aaaaaaaa", "unknown": 0}),
}


def run(fault: str = "", timeout: float = 10.0, **options: Any) -> FuzzReport:
    """Fuzz the server with a fault."""
    connect = partial(McpServer.stdio, sys.executable, [SERVER, fault], call_timeout=timeout)
    return fuzz(McpTarget(connect), **options)


@pytest.mark.parametrize("fault", share(FAULTS, 0, 2))  # a process for each, and for each crash
def test_each_fault_is_found(fault: str) -> None:
    """Each fault is found within 120 calls, of its kind only, and by a smallest call."""
    kind, arguments = FAULTS[fault]
    report = run(fault, timeout=0.7 if fault == "hangs" else 10.0, calls=120)
    tool = report.tools[0]
    assert report.failed
    assert {each.kind for each in tool.failures} == {kind}
    assert arguments in [each.arguments for each in tool.failures]
    assert tool.calls + tool.refusable <= 120


@pytest.mark.parametrize("seed", share([0, 1], 0, 2))
def test_a_random_call_is_made_small(seed: int) -> None:
    """A fault that only random calls show is reported by a smallest one: no other member, and no letter too many."""
    (failure,) = run("refuses a letter", calls=200, seed=seed).tools[0].failures
    assert failure.shows == "random"
    assert failure.kind == "protocol error"
    assert "e" in failure.arguments["city"]
    assert len(json.dumps(failure.arguments)) == len('{"city": "aae"}')


@pytest.mark.parametrize("seed", share([0, 1], 0, 2))
def test_a_server_that_keeps_its_word_has_no_failure(seed: int) -> None:
    """No call of a server without faults is a failure, and both kinds of calls were made."""
    report = run(calls=300, seed=seed)
    assert not report.failed
    assert report.tools[0].failures == []
    assert report.tools[0].calls >= 50
    assert report.tools[0].refusable >= 30
    assert report.tools[0].errors == 0


def test_what_may_destroy_is_left_out() -> None:
    """A tool without annotations may destroy something, as MCP says, and is called only if it is named."""
    report = run(calls=10)
    assert [bool(tool.left_out) for tool in report.tools] == [False, True]
    assert report.tools[1].calls == report.tools[1].refusable == 0
    named = run(calls=2, names=["erase"])
    assert [tool.calls > 0 for tool in named.tools] == [False, True]
    assert {each.kind for each in named.tools[1].failures} == {"crash"}
    assert run(calls=2, destructive=True).tools[1].failures
    with pytest.raises(ToolCallError, match="no tool 'eras'"):
        run(names=["eras"])


def test_the_end_in_time() -> None:
    """A run that is over says so of the tool that it did not finish."""
    assert run(seconds=0).tools[0].left_out == "the time was over"


def test_a_server_that_does_not_start_again_keeps_its_failure() -> None:
    """A crash is reported if the server cannot be started afterwards, and the rest is said to be left out."""
    starts = iter([[SERVER, "crashes"]])

    def connect() -> McpServer:
        return McpServer.stdio(sys.executable, next(starts, ["-c", "raise SystemExit(1)"]))

    tool = fuzz(McpTarget(connect), calls=120).tools[0]
    assert [each.kind for each in tool.failures] == ["crash"]
    assert "does not work" in tool.left_out


def test_the_report_for_ci() -> None:
    """The XML has a case for each tool, with its failures or why it was not called, and their numbers."""
    suite = ElementTree.fromstring(run("takes less", calls=40).to_junit())
    assert {name: suite.get(name) for name in ("tests", "failures", "skipped")} == {
        "tests": "2",
        "failures": "1",
        "skipped": "1",
    }
    assert [case.get("name") for case in suite] == ["forecast", "erase"]
    assert suite[0][0].get("message") == "accepted: {}"


#: The same for an HTTP service.
HTTP_FAULTS: dict[str, tuple[str, str, Any]] = {
    "fails at the bound": ("forecast", "server error", {"city": "a", "unit": "C", "days": 14}),
    "is not declared": ("forecast", "undeclared status", {"city": "a", "unit": "F"}),
    "hangs": ("forecast", "hang", {"city": "a", "unit": "C", "X-Level": 3}),
    "gives another type": ("forecast", "wrong result", {"city": "a", "unit": "C", "plan": "aaa"}),
    "gives no JSON": ("forecast", "wrong result", {"city": "a", "unit": "C", "X-Level": 3}),
    "gives a page": ("forecast", "wrong result", {"city": "aaaaaaaa", "unit": "C"}),
    "takes one more": ("forecast", "accepted", {"city": "a", "unit": "C", "days": 15}),
    "takes other texts": ("forecast", "accepted", {"city": "a", "unit": "C", "days": 0}),
    "takes longer paths": ("forecast", "accepted", {"city": "aaaaaaaaa", "unit": "C"}),
    "reads no header": ("forecast", "accepted", {"city": "a", "unit": "C", "X-Level": 4}),
    "reads no cookie": ("forecast", "accepted", {"city": "a", "unit": "C", "plan": 0}),
    "takes more items": ("forecast", "accepted", {"city": "a", "unit": "C", "tags": ["sun", "sun", "sun"]}),
    "takes less": ("forecast", "accepted", {"city": "a"}),
    "takes any body": ("note", "accepted", {}),
}


@pytest.fixture(scope="module")
def service() -> Iterator[tuple[Service, str]]:
    """A running service, and its URL."""
    with running() as found:
        yield found


@pytest.mark.parametrize("fault", HTTP_FAULTS)
def test_each_fault_of_a_service_is_found(fault: str, service: tuple[Service, str]) -> None:
    """Each fault of an HTTP service is found within 120 calls, of its kind only, and by a smallest call."""
    name, kind, arguments = HTTP_FAULTS[fault]
    service[0].fault = fault
    target = HttpTarget(DOCUMENT, service[1], 0.5 if fault == "hangs" else 10.0)
    (tool,) = (each for each in fuzz(target, calls=120, names=[name]).tools if each.name == name)
    assert {each.kind for each in tool.failures} == {kind}
    assert arguments in [each.arguments for each in tool.failures]
    assert tool.calls + tool.refusable <= 120


def test_a_service_that_keeps_its_word_has_no_failure(service: tuple[Service, str]) -> None:
    """A service without faults has no failure; only safe methods are called, unless others are named."""
    service[0].fault = ""
    service[0].seen.clear()
    report = fuzz(HttpTarget(DOCUMENT, service[1], 10.0), calls=300)
    assert [tool.failures for tool in report.tools] == [[], [], []]
    assert [tool.left_out for tool in report.tools] == ["", *["it may destroy something"] * 2]
    assert report.tools[0].calls >= 100
    assert report.tools[0].refusable >= 20
    assert report.tools[0].errors == 0
    assert set(service[0].seen) == {"GET"}
    named = fuzz(HttpTarget(DOCUMENT, service[1], 10.0), calls=100, names=["note", "erase"])
    assert not named.failed
    assert set(service[0].seen) == {"GET", "POST", "DELETE"}


def test_nobody_answers_at_the_url() -> None:
    """A service that does not run is said to be absent."""
    with pytest.raises(ToolCallError, match=r"nobody answers at http://127\.0\.0\.1:9"):
        fuzz(HttpTarget(DOCUMENT, "http://127.0.0.1:9", 1.0))
