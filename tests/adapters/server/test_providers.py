"""Models by a provider's own API against our server, which speaks it, and served by it in other protocols."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Literal

import httpx
import pytest

from toolgrammar.adapters.server import create_app
from toolgrammar.adapters.server.in_process import BASE_URL, InProcess
from toolgrammar.core import Message, load_model
from toolgrammar.core.models.remote import RemoteModel
from toolgrammar.tools import ToolSet

from .conftest import openai_tool


def weather(city: Literal["Oslo", "Rome"], days: int = 1) -> str:
    """Return the weather."""
    return f"rain in {city} for {days} days"


def test_our_client_of_anthropic_against_our_server() -> None:
    """The server takes each request of the client: strict tools, cache marks, results of tools, JSON, streams."""
    process = InProcess(create_app({"embedded": load_model("embedded", seed=1)}), httpx)
    model = RemoteModel(f"embedded@{BASE_URL}", server="anthropic", transport=process.async_transport())
    tools = ToolSet.from_any([weather])
    first = model.generate("Weather?", tools=tools, tool_choice="required", parallel_tool_calls=False, max_tokens=200)
    assert (first.form, first.left_out, first.attempts) == ("strict tools", (), 1)
    (call,) = first.tool_calls
    assert tools.check_call(call).error is None and first.usage.prompt_tokens > 0
    history = [Message("system", "Be brief."), Message("user", "Weather?"), first.message]
    history.append(Message("tool", "rain", tool_call_id=call.id))
    again = model.generate(history, tools=tools, tool_choice="weather", max_tokens=200)
    assert again.tool_calls[0].name == "weather" and again.attempts == 1
    schema = {
        "type": "object",
        "properties": {"a": {"type": "integer"}},
        "required": ["a"],
        "additionalProperties": False,
    }
    assert isinstance(model.generate_json("Go", schema, max_tokens=100)["a"], int)
    one = model.stream("Go", tools=tools, tool_choice="required", parallel_tool_calls=False, max_tokens=200)
    kinds = [type(event).__name__ for event in one]
    assert kinds == ["CallStart", "ArgumentsDelta", "CallEnd", "RemoteFinish"]


def test_a_model_of_anthropic_is_served_to_clients_of_openai(http: Callable[..., httpx.Client]) -> None:
    """``toolgrammar serve anthropic:MODEL``: a client of chat completions calls tools of Claude."""
    asked: list[dict[str, Any]] = []

    def provider(request: httpx.Request) -> httpx.Response:
        if request.method == "GET":
            return httpx.Response(404, json={"type": "error", "error": {"type": "not_found_error", "message": "no"}})
        asked.append(json.loads(request.content))
        block = {"type": "tool_use", "id": "toolu_1", "name": "book", "input": {"code": "AB123", "seats": 2}}
        head = {"id": "m", "type": "message", "role": "assistant", "model": "claude", "stop_reason": "tool_use"}
        return httpx.Response(200, json={**head, "content": [block], "usage": {"input_tokens": 3, "output_tokens": 4}})

    model = RemoteModel("claude@http://claude.test", server="anthropic", transport=httpx.MockTransport(provider))
    body = {"model": "claude", "messages": [{"role": "user", "content": "Book."}], "tools": [openai_tool("book")]}
    answer = http({"claude": model}).post("/v1/chat/completions", json=body).json()
    (call,) = answer["choices"][0]["message"]["tool_calls"]
    assert (call["id"], json.loads(call["function"]["arguments"])) == ("toolu_1", {"code": "AB123", "seats": 2})
    assert answer["usage"]["prompt_tokens"] == 3 and asked[0]["tools"][0]["name"] == "book"


@pytest.mark.parametrize("stream", [False, True])
def test_a_cut_call_of_a_server_reaches_no_client(stream: bool, http: Callable[..., httpx.Client]) -> None:
    """What a server cut is passed on as cut, for tools of each kind: without arguments that parse, or not at all."""

    def provider(request: httpx.Request) -> httpx.Response:
        if request.method == "GET":
            return httpx.Response(404, json={})
        name = json.loads(request.content)["tools"][0]["function"]["name"]
        call = {"id": "c1", "type": "function", "function": {"name": name, "arguments": '{"in'}}
        choice = {"index": 0, "message": {"role": "assistant", "tool_calls": [call]}, "finish_reason": "length"}
        return httpx.Response(200, json={"choices": [choice]})

    model = RemoteModel("m@http://m.test/v1", transport=httpx.MockTransport(provider))
    client = http({"m": model})
    asked = {"model": "m", "stream": stream, "messages": [{"role": "user", "content": "Go"}], "tool_choice": "required"}
    custom = {"type": "custom", "custom": {"name": "shell"}}
    for tool in (openai_tool("book", {"type": "object", "properties": {"in": {"type": "string"}}}), custom):
        answer = client.post("/v1/chat/completions", json={**asked, "tools": [tool]})
        assert answer.status_code == 200 and "internal" not in answer.text and '"length"' in answer.text
    asked["input"] = asked.pop("messages")
    plain = {"type": "function", "name": "book", "parameters": {"type": "object", "properties": {}}}
    for own in (plain, {"type": "custom", "name": "shell"}):
        answer = client.post("/v1/responses", json={**asked, "tools": [own]})
        assert answer.status_code == 200 and "internal" not in answer.text and "incomplete" in answer.text
