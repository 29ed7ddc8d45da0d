"""Answers of real servers, as they were recorded: what was cut is never handed over as whole; errors are the right ones.

``recorded_answers.json`` holds status, type and body of each, with other ids. The models were tiny, or small.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import httpx
import pytest

from toolgrammar.core import (
    BudgetError,
    CallEnd,
    ContextOverflowError,
    InvalidArgumentsError,
    ModelError,
    RateLimitError,
    ServerFailureError,
    ServerTimeoutError,
    TextDelta,
)
from toolgrammar.tools import ToolSet

RECORDED: dict[str, Any] = json.loads(Path(__file__).with_name("recorded_answers.json").read_text("utf-8"))
BOOK = {
    "name": "book",
    "parameters": {
        "type": "object",
        "properties": {
            "city": {"type": "string"},
            "nights": {"type": "integer"},
            "guests": {"type": "array", "items": {"type": "string"}},
            "note": {"type": "string"},
        },
    },
}
TOOLS = ToolSet.from_any([BOOK, {"name": "now", "parameters": {"type": "object", "properties": {}}}])


def recorded(name: str) -> httpx.Response:
    """What the server sent."""
    answer = RECORDED[name]
    return httpx.Response(answer["status"], headers={"content-type": answer["type"]}, text=answer["body"])


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("named choice, cut", {"max_tokens": 12, "tool_choice": "book"}),
        ("named choice, cut in the arguments", {"max_tokens": 30, "tool_choice": "book"}),
        ("cut and closed", {"max_tokens": 100}),
        ("cut and closed, streamed", {"max_tokens": 100}),
        ("cut by its own budget", {}),
    ],
)
def test_calls_that_a_server_cut(serve: Any, name: str, options: dict[str, Any]) -> None:
    """Said to be whole (``tool_calls``), and all arguments optional: only the token counts tell, or JSON that is open."""
    model = serve(recorded(name)).model(retries=0)
    if "streamed" in name:
        (call,) = [event.call for event in model.stream("Go", tools=TOOLS, **options) if isinstance(event, CallEnd)]
    else:
        answer = model.generate("Go", tools=TOOLS, **options)
        (call,) = answer.tool_calls
        assert answer.finish_reason == "length"
    assert (call.name, call.cut, len(call.arguments)) == ("book", ("",), 0) and call.error is not None
    with pytest.raises(InvalidArgumentsError, match="the token budget ended inside its arguments"):
        dict(call.arguments)


def test_an_answer_cut_before_its_call_has_a_name(serve: Any) -> None:
    """There is no tool whose call it could be: an error that names the budget."""
    model = serve(recorded("cut before the tool's name")).model(retries=0)
    with pytest.raises(BudgetError, match="token budget ended inside the answer"):
        model.generate("Go", tools=TOOLS, tool_choice="required", max_tokens=14)


def test_a_cut_name_beside_whole_calls(serve: Any, complete: Any) -> None:
    """The calls before it are whole and are handed over; the finish reason tells that more was to come."""
    reply = complete(None, ("now", {}), ("bo", ""), finish="length")
    answer = serve(reply).model(retries=0).generate("Go", tools=TOOLS)
    assert ([call.name for call in answer.tool_calls], answer.finish_reason) == (["now"], "length")


def test_counts_that_are_taken_for_a_budget_of_the_server(serve: Any, complete: Any) -> None:
    """Powers of two from 1,024: nothing else, so that whole calls are not doubted."""
    for written, cut in ((1023, False), (1024, True), (1025, False), (512, False), (4096, True), (3000, False)):
        reply = complete(None, ("book", {"city": "Oslo"}))
        reply["usage"] = {"prompt_tokens": 10, "completion_tokens": written}
        (call,) = serve(reply).model().generate("Go", tools=TOOLS).tool_calls
        assert bool(call.cut) is cut


def test_a_stream_that_never_begins(serve: Any) -> None:
    """llama_cpp.server cannot stream where a tool may be called: the answer is asked for in one piece."""
    server = serve(recorded("a stream that never begins"), recorded("what it would have been"))
    events = list(server.model().stream("Go", tools=TOOLS))
    assert "".join(event.text for event in events if isinstance(event, TextDelta)) == "functions.book:"
    assert [bool(body.get("stream")) for body in server.asked] == [True, False]
    assert "stream_options" not in server.asked[1]
    with pytest.raises(ModelError, match="not JSON"):
        list(serve(recorded("a stream that never begins")).model().stream("Go"))


def test_two_answers_in_one_stream(serve: Any) -> None:
    """Only the first is read; asking for more than one is refused before anything is sent."""
    events = list(serve(recorded("two answers in one stream")).model().stream("Go"))
    assert "".join(event.text for event in events if isinstance(event, TextDelta)).startswith("124")


@pytest.mark.parametrize("body", [{"n": 2}, {"stream": True}, {"stop": ["x"]}, {"messages": []}])
def test_fields_that_only_the_request_may_set(serve: Any, body: dict[str, Any]) -> None:
    """They would make answers unreadable, or cut calls unseen."""
    with pytest.raises(ModelError, match=f"body may not set '{next(iter(body))}'"):
        serve("Hi").model(body=body)
    harmless = {"n": 1, **dict.fromkeys(body.keys() - {"n"})}
    assert serve("Hi").model(body=harmless)


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("too many requests", RateLimitError),
        ("failed", ServerFailureError),
        ("too long", ContextOverflowError),
        ("timed out", ServerTimeoutError),
    ],
)
@pytest.mark.parametrize("live", [False, True])
def test_errors_of_a_proxy(serve: Any, name: str, kind: type[ModelError], live: bool) -> None:
    """They have the classes that callers and frameworks retry by."""
    model = serve(recorded(name)).model(max_retries=0)
    with pytest.raises(kind):
        list(model.stream("Go")) if live else model.generate("Go")
