"""Calls run with the function's own types, in time, and every failure is told in words."""

from __future__ import annotations

import asyncio
import contextvars
import functools
import json
import sys
import threading
import time
from dataclasses import dataclass
from datetime import date
from typing import Any

import pytest
from pydantic import BaseModel, Field, field_validator

from toolgrammar.core import (
    ImagePart,
    InvalidArgumentsError,
    TextPart,
    ToolCall,
    ToolCallError,
    ToolTimeoutError,
    UnknownToolError,
)
from toolgrammar.tools import ToolSet

REQUEST: contextvars.ContextVar[str] = contextvars.ContextVar("REQUEST", default="none")


class Guest(BaseModel):
    """A guest."""

    name: str
    born: date

    @field_validator("name")
    @classmethod
    def named(cls, value: str) -> str:
        """Names begin with a capital letter."""
        if not value[:1].isupper():
            raise ValueError("a name begins with a capital letter")
        return value


@dataclass
class Point:
    """A point."""

    x: int
    y: int = 0


def visit(guest: Guest, at: Point, when: date | None = None, tags: set[str] = Field(default_factory=set)) -> Any:  # noqa: B008
    """Visit."""
    return guest, at, when, tags


def slow(seconds: float) -> str:
    """Sleep."""
    time.sleep(seconds)
    return f"slept in {threading.current_thread().name} for {REQUEST.get()}"


async def aslow(seconds: float) -> str:
    """Sleep."""
    try:
        await asyncio.sleep(seconds)
    except asyncio.CancelledError:
        CANCELLED.append(seconds)
        raise
    return "slept"


def impatient() -> None:
    """Give up."""
    raise TimeoutError("the database did not answer")


def leave() -> None:
    """Leave the program."""
    sys.exit("bye")


def shout() -> None:
    """Fail with a long text."""
    raise RuntimeError("x" * 10_000)


def mumble() -> None:
    """Fail without saying why."""

    class Silent(Exception):
        def __str__(self) -> str:
            raise ValueError

    raise Silent


def build() -> Guest:
    """Fail in a model's validator."""
    return Guest(name="ada", born=date(1815, 12, 10))


def picture() -> Any:
    """Return a picture and a text."""
    return (TextPart("Here:"), ImagePart(data=b"png", media_type="image/png"))


CANCELLED: list[float] = []
TOOLS = ToolSet.from_any([visit, slow, aslow, impatient, leave, shout, mumble, build, picture])


def call(name: str, **arguments: Any) -> ToolCall:
    """A call."""
    return ToolCall("c1", name, arguments)


def test_arguments_become_the_types_of_the_function() -> None:
    """Models, dataclasses, dates and sets arrive as such."""
    asked = call("visit", guest={"name": "Ada", "born": "1815-12-10"}, at={"x": 1}, when="2024-02-29", tags=["a", "b"])
    guest, at, when, tags = TOOLS.call(asked)
    assert guest == Guest(name="Ada", born=date(1815, 12, 10))
    assert at == Point(1)
    assert when == date(2024, 2, 29)
    assert tags == {"a", "b"}


def test_a_validator_s_complaint_is_about_the_argument() -> None:
    """What only the function's types can refuse is told with the place and without a traceback."""
    asked = call("visit", guest={"name": "ada", "born": "1815-12-10"}, at={"x": 1})
    result = TOOLS.execute(asked)
    assert (result.code, result.pointer) == ("invalid_arguments", "/guest/name")
    assert "begins with a capital letter" in (result.error or "")
    assert "Traceback" not in (result.error or "")


@pytest.mark.parametrize(
    "source",
    [
        {"name": "slow", "arguments": {"seconds": 0}},
        {"name": "slow", "arguments": '{"seconds": 0}', "id": 7},
        {"id": "c", "type": "function", "function": {"name": "slow", "arguments": '{"seconds": 0}'}},
        {"id": "c", "type": "tool_use", "name": "slow", "input": {"seconds": 0}},
        {"id": "c", "type": "tool_call", "name": "slow", "args": {"seconds": 0}},
    ],
    ids=["plain", "text", "openai", "anthropic", "langchain"],
)
def test_calls_of_servers_and_frameworks(source: dict[str, Any]) -> None:
    """A call may be a dict, as the usual servers and frameworks write it."""
    assert "slept" in TOOLS.call(source)
    assert TOOLS.validate(source).arguments == {"seconds": 0}
    assert TOOLS.execute({"id": 7, **source}).call.id == str(source.get("id", 7))


@pytest.mark.parametrize(
    ("source", "code"),
    [
        ({"arguments": {}}, "tool_call"),
        ({"name": "slow", "arguments": "{"}, "invalid_arguments"),
        ({"name": "slow", "arguments": [1]}, "invalid_arguments"),
        ({"name": "slow"}, "invalid_arguments"),
        ({"name": "fast", "arguments": {}}, "unknown_tool"),
        (ToolCall("c", "slow", {"seconds": 1}, cut=("/seconds",)), "invalid_arguments"),
    ],
)
def test_calls_that_cannot_run(source: Any, code: str) -> None:
    """A malformed, unknown or cut call is a structured failure, and nothing runs."""
    result = TOOLS.execute(source)
    assert result.is_error
    assert result.code == code
    assert result.to_dict()["error"]["code"] == code
    with pytest.raises(ToolCallError):
        TOOLS.call(source)


def test_unknown_tools_are_told_the_known_ones() -> None:
    """The failure names the tools that there are."""
    with pytest.raises(UnknownToolError):
        TOOLS.call(call("fast"))
    assert "visit, slow" in (TOOLS.execute(call("fast")).error or "")


def test_timeout() -> None:
    """A function that takes too long is given up, and others are not disturbed."""
    begin = time.monotonic()
    with pytest.raises(ToolTimeoutError, match=r"longer than 0\.05 seconds"):
        TOOLS.call(call("slow", seconds=1), timeout=0.05)
    assert time.monotonic() - begin < 0.9
    assert "slept" in TOOLS.call(call("slow", seconds=0), timeout=5)
    result = TOOLS.execute(call("slow", seconds=1), timeout=0.05)
    assert result.to_dict() == {"error": {"code": "tool_timeout", "message": result.error, "tool": "slow"}}


def test_one_time_limit_for_a_function_and_its_coroutine() -> None:
    """The time of an ordinary function and that of the coroutine which it returns count together."""

    def begin() -> Any:
        """Begin."""
        time.sleep(0.3)
        return asyncio.sleep(0.4, "done")

    tools = ToolSet([begin])
    with pytest.raises(ToolTimeoutError, match=r"longer than 0\.5 seconds"):
        tools.call(call("begin"), timeout=0.5)
    assert tools.call(call("begin"), timeout=5) == "done"


def test_items_of_a_generator_count_for_the_time_limit() -> None:
    """A generator is read within the time limit, as in ``acall``."""

    def count() -> Any:
        """Count."""
        for number in range(20):
            time.sleep(0.05)
            yield number

    tools = ToolSet([count])
    started = time.monotonic()
    with pytest.raises(ToolTimeoutError):
        tools.call(call("count"), timeout=0.1)
    assert time.monotonic() - started < 0.9
    assert tools.execute(call("count"), timeout=30).value == list(range(20))


def test_context_follows_into_the_thread() -> None:
    """A function that runs in a thread sees the caller's context variables."""
    token = REQUEST.set("r1")
    try:
        assert TOOLS.call(call("slow", seconds=0), timeout=5).endswith("for r1")
        assert asyncio.run(TOOLS.acall(call("slow", seconds=0))).endswith("for r1")
    finally:
        REQUEST.reset(token)


def test_async_functions_from_ordinary_code() -> None:
    """``call`` runs an async function in a loop of its own, and cancels it when its time is over."""
    assert TOOLS.call(call("aslow", seconds=0)) == "slept"
    CANCELLED.clear()
    with pytest.raises(ToolTimeoutError):
        TOOLS.call(call("aslow", seconds=5), timeout=0.05)
    assert CANCELLED == [5]


@pytest.mark.asyncio
async def test_timeout_of_async_calls() -> None:
    """``acall`` gives up both kinds in time, and the loop goes on meanwhile."""
    CANCELLED.clear()
    begin = time.monotonic()
    results = await asyncio.gather(
        TOOLS.aexecute(call("aslow", seconds=5), timeout=0.05),
        TOOLS.aexecute(call("slow", seconds=1), timeout=0.05),
        TOOLS.aexecute(call("slow", seconds=0), timeout=5),
    )
    assert [result.code for result in results] == ["tool_timeout", "tool_timeout", None]
    assert time.monotonic() - begin < 0.9
    assert CANCELLED == [5]


@pytest.mark.asyncio
async def test_cancelling_a_call() -> None:
    """A cancelled ``acall`` cancels the function, and is no failure of the tool."""
    CANCELLED.clear()
    task = asyncio.ensure_future(TOOLS.aexecute(call("aslow", seconds=5), timeout=9))
    await asyncio.sleep(0.02)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await asyncio.sleep(0)
    assert CANCELLED == [5]


def test_an_own_timeout_of_the_tool_is_its_failure() -> None:
    """A TimeoutError that the function raises is not taken for ours."""
    result = TOOLS.execute(call("impatient"), timeout=5)
    assert (result.code, result.error) == ("tool_failed", "TimeoutError: the database did not answer")


@pytest.mark.parametrize("value", [float("nan"), float("inf"), {1.0}, (1.0,), object(), 1j, {1: 2}])
def test_arguments_that_json_lacks_are_refused(value: Any) -> None:
    """What no JSON text spells is no argument, wherever it stands and whatever the schema says."""
    for tools, arguments, pointer in (
        (TOOLS, call("slow", seconds=value), "/seconds"),
        (ToolSet.from_any([{"name": "any", "parameters": {"type": "object"}}]), call("any", a=[value]), "/a/0"),
    ):
        result = tools.execute(arguments)
        assert (result.code, result.pointer) == ("invalid_arguments", pointer)


@pytest.mark.parametrize(
    ("name", "said"),
    [("leave", "SystemExit: bye"), ("mumble", "Silent"), ("build", "begins with a capital letter")],
)
def test_failures_of_tools_are_told(name: str, said: str) -> None:
    """Whatever a tool raises is told in words, also an attempt to end the program; links and tracebacks are not."""
    result = TOOLS.execute(call(name))
    assert result.code == "tool_failed"
    assert said in (result.error or "")
    assert "http" not in (result.error or "")
    assert "Traceback" not in (result.error or "")


def test_an_attempt_to_end_the_program_within_a_time_limit() -> None:
    """It does not end the event loop of the caller either."""
    assert asyncio.run(TOOLS.aexecute(call("leave"), timeout=5)).error == "SystemExit: bye"


@pytest.mark.parametrize(
    ("source", "known"),
    [
        ({"id": "c1", "name": "f", "arguments": "[1]"}, ("c1", "f")),
        ({"id": "c1", "function": {"name": "f", "arguments": "{"}}, ("c1", "f")),
        ({"id": "c1", "arguments": "{}"}, ("c1", "")),
        ({"type": "function_call", "id": "fc1", "call_id": "c1", "name": "f", "arguments": "{"}, ("c1", "f")),
        ({"type": "custom_tool_call", "id": "ctc1", "call_id": "c1", "name": "f", "input": "x"}, ("c1", "f")),
        ("f()", ("", "")),
    ],
)
def test_a_result_answers_its_call(source: Any, known: tuple[str, str]) -> None:
    """Also of a call that cannot be read, the result has the id and the name, as far as they can be."""
    result = TOOLS.execute(source)
    assert result.error is not None
    assert (result.call.id, result.call.name) == known


def test_long_failures_are_shortened() -> None:
    """A failure that would fill the prompt is cut."""
    assert len(TOOLS.execute(call("shout")).error or "") <= 2_000


@pytest.mark.skipif(sys.version_info < (3, 11), reason="exception groups came with Python 3.11")
def test_a_group_around_one_failure_is_that_failure() -> None:
    """Task groups wrap exceptions; the model is told the one inside."""

    def grouped() -> None:
        raise ExceptionGroup("unhandled errors", [ValueError("the reason")])  # noqa: F821

    assert ToolSet.from_any([grouped]).execute(call("grouped")).error == "ValueError: the reason"


def test_results_as_data() -> None:
    """A result is JSON-like data whatever it is made of."""
    asked = call("visit", guest={"name": "Ada", "born": "1815-12-10"}, at={"x": 1})
    data = TOOLS.execute(asked).to_dict()
    assert data == {"result": [{"name": "Ada", "born": "1815-12-10"}, {"x": 1, "y": 0}, None, []]}
    assert json.loads(json.dumps(data)) == data


def test_parts_stay_parts() -> None:
    """Texts and images that a tool returns are the parts of the message."""
    message = TOOLS.execute(call("picture")).to_message()
    assert message.content == (TextPart("Here:"), ImagePart(data=b"png", media_type="image/png"))


def test_partials_of_async_functions() -> None:
    """A partial of an async function is async."""
    tools = ToolSet.from_any([functools.partial(aslow, seconds=0)])
    assert tools.call(call("aslow")) == "slept"


def test_nothing_runs_when_arguments_are_wrong() -> None:
    """A call with wrong arguments does not reach the function."""
    ran: list[int] = []

    def note(number: int) -> None:
        ran.append(number)

    tools = ToolSet.from_any([note])
    with pytest.raises(InvalidArgumentsError):
        tools.call(call("note", number="1"))
    with pytest.raises(InvalidArgumentsError):
        tools.call(call("note", number=1, other=2))
    assert ran == []
