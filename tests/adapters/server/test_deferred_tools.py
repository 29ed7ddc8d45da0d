"""Deferred tools and the search of tools: ``defer_loading`` and ``tool_search`` of OpenAI's and Anthropic's protocols."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import openai
import pytest
from openai.types.responses import ResponseToolSearchCall

from toolgrammar.adapters.anthropic import client as anthropic_client
from toolgrammar.adapters.openai import client as openai_client
from toolgrammar.adapters.server.protocols.chat_completions import CHAT_COMPLETIONS
from toolgrammar.adapters.server.protocols.messages import MESSAGES
from toolgrammar.adapters.server.protocols.responses import Responses
from toolgrammar.adapters.server.served import Served
from toolgrammar.adapters.server.unused import HEADER, pattern_of
from toolgrammar.core import Message, ToolCall, load_model
from toolgrammar.core.testing import ScriptedModel

from .conftest import BOOKING

#: Arguments of a call.
BOOKED: dict[str, Any] = {"code": "AB123", "seats": 2}
FUNCTION = {"type": "function", "name": "book", "description": "Book a table.", "parameters": BOOKING}
SEARCH = {
    "type": "tool_search",
    "execution": "client",
    "description": "Search the tools.",
    "parameters": {"type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"]},
}


class Watched(ScriptedModel):
    """A scripted model that keeps the prompts that it was asked to encode, with what was inserted."""

    def __init__(self, replies: Any) -> None:
        super().__init__(replies)
        self.prompts: list[str] = []
        encode = self.backend.encode_prompt

        def encode_prompt(*given: Any) -> list[int]:
            ids = encode(*given)
            self.prompts.append(self.vocabulary.decode(ids).decode())
            return ids

        self.backend.encode_prompt = encode_prompt  # type: ignore[method-assign]


def booking(_: Any) -> Message:
    """A call of the tool."""
    return Message("assistant", tool_calls=(ToolCall("c", "book", BOOKED),))


def schema_shown(prompt: str) -> bool:
    """Return True if a prompt has the parameters of the tool."""
    return '"properties"' in prompt


@pytest.mark.parametrize("stream", [False, True])
def test_a_deferred_function_of_responses(stream: bool) -> None:
    """The prompt has the name and one line; the schema comes with the call; the header does not name the field."""
    model = Watched(booking)
    with openai_client({"m": model}) as client:
        options: Any = {
            "model": "m",
            "input": "x",
            "tools": [{**FUNCTION, "defer_loading": True}, {"type": "tool_search"}],
        }
        if stream:
            with client.responses.stream(**options) as events:
                answer = events.get_final_response()
        else:
            raw = client.responses.with_raw_response.create(**options)
            assert HEADER not in raw.headers
            answer = raw.parse()
    (item,) = answer.output
    assert item.type == "function_call" and json.loads(item.arguments) == BOOKED
    assert answer.tools[0].to_dict()["defer_loading"] is True
    assert "book: Book a table." in model.prompts[0] and not schema_shown(model.prompts[0])
    assert schema_shown(model.prompts[-1])
    assert answer.usage is not None and answer.usage.input_tokens == len(model.encode(model.prompts[-1]))


def test_deferred_tools_of_a_namespace() -> None:
    """They are deferred under the name that the model knows."""
    reply = Message("assistant", tool_calls=(ToolCall("c", "shop__book", BOOKED),))
    model = Watched(lambda _: reply)
    space = {"type": "namespace", "name": "shop", "description": "", "tools": [{**FUNCTION, "defer_loading": True}]}
    with openai_client({"m": model}) as client:
        raw = client.responses.with_raw_response.create(model="m", input="x", tools=[space])  # type: ignore[list-item]
    assert HEADER not in raw.headers
    assert "shop__book: Book a table." in model.prompts[0] and not schema_shown(model.prompts[0])
    assert raw.parse().output[0].to_dict()["namespace"] == "shop"


@pytest.mark.parametrize("kind", ["tool_search_tool_bm25_20251119", "tool_search_tool_regex_20251119"])
def test_a_deferred_tool_of_messages(kind: str) -> None:
    """Anthropic's search has nothing to find: the model calls a deferred tool by its name."""
    model = Watched(booking)
    tools: Any = [
        {"type": kind, "name": kind.rpartition("_")[0]},
        {"name": "book", "description": "Book a table.", "input_schema": BOOKING, "defer_loading": True},
    ]
    with anthropic_client({"m": model}) as client:
        given: Any = {"model": "m", "max_tokens": 200, "messages": [{"role": "user", "content": "x"}], "tools": tools}
        raw = client.messages.with_raw_response.create(**given)
        assert HEADER not in raw.headers
        (block,) = raw.parse().content
        assert block.type == "tool_use" and block.input == BOOKED
        counted = client.messages.count_tokens(**{name: given[name] for name in ("model", "messages", "tools")})
    assert not schema_shown(model.prompts[0])
    assert counted.input_tokens == len(model.encode(model.prompts[0]))


def test_the_extension_defers_all_tools(http: Callable[..., httpx.Client]) -> None:
    """``toolgrammar.tools_in_prompt`` works in any protocol; a word that is none is an error at its field."""
    model = Watched(booking)
    function = {
        "type": "function",
        "function": {name: FUNCTION[name] for name in ("name", "description", "parameters")},
    }
    body: dict[str, Any] = {"model": "m", "messages": [{"role": "user", "content": "x"}], "tools": [function]}
    client = http({"m": model})
    answer = client.post("/v1/chat/completions", json={**body, "toolgrammar": {"tools_in_prompt": "names"}})
    assert answer.status_code == 200, answer.text
    assert not schema_shown(model.prompts[0]) and schema_shown(model.prompts[-1])
    wrong = client.post("/v1/chat/completions", json={**body, "toolgrammar": {"tools_in_prompt": "none"}})
    assert wrong.status_code == 400 and "toolgrammar.tools_in_prompt" in wrong.text


def searching(messages: Any) -> Message:
    """Search for tools, then call the one that was found."""
    if messages[-1].role == "tool":
        assert messages[-1].text == "book"
        return booking(messages)
    return Message("assistant", tool_calls=(ToolCall("c", "tool_search", {"query": "table"}),))


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("stored", [False, True])
def test_a_search_that_the_client_runs(stream: bool, stored: bool) -> None:
    """The model calls the search; what it found can be called in the turns after it, without being declared again."""
    model = Watched(searching)

    def ask(client: openai.OpenAI, given: Any, **more: Any) -> Any:
        options: Any = {"model": "m", "input": given, "tools": [SEARCH], "store": stored, **more}
        if not stream:
            return client.responses.create(**options)
        with client.responses.stream(**options) as events:
            return events.get_final_response()

    with openai_client({"m": model}) as client:
        first = ask(client, "x")
        (search,) = first.output
        assert isinstance(search, ResponseToolSearchCall)
        assert search.execution == "client" and search.arguments == {"query": "table"} and search.call_id
        assert first.tools[0].to_dict() == SEARCH
        found = {"type": "tool_search_output", "call_id": search.call_id, "execution": "client", "status": "completed",
                 "tools": [{**FUNCTION, "defer_loading": True}]}  # fmt: skip
        past = [{"role": "user", "content": "x"}, search.to_dict()]
        more: Any = {"previous_response_id": first.id} if stored else {}
        second = ask(client, [found] if stored else [*past, found], **more)
        (call,) = second.output
        assert call.type == "function_call" and json.loads(call.arguments) == BOOKED
        assert "book: Book a table." in model.prompts[-2]
        model.prompts.clear()
        again = {"role": "user", "content": "again"}
        if stored:
            third = ask(client, [again], previous_response_id=second.id)
        else:
            third = ask(client, [*past, found, call.to_dict(), again])
        assert third.output[0].type == "tool_search_call"
        assert "book: Book a table." in model.prompts[0]


def test_a_cut_search_is_left_out() -> None:
    """A search whose arguments the budget cut does not reach the client."""
    model = ScriptedModel(
        lambda _: Message("assistant", tool_calls=(ToolCall("c", "tool_search", {"query": "t" * 99}),))
    )
    with openai_client({"m": model}) as client:
        answer = client.responses.create(model="m", input="x", tools=[SEARCH], max_output_tokens=90)  # type: ignore[list-item]
    assert answer.status == "incomplete" and answer.output == []


@pytest.fixture
def remote() -> Iterator[Served]:
    """A served model on a server, which is not asked."""
    with load_model("openai:m@http://127.0.0.1:9/v1") as model:
        yield Served({"m": model})


def test_a_model_on_a_server_gets_the_schemas(remote: Served) -> None:
    """There ``defer_loading`` has no effect, and is named as such."""

    def found(tool: Any) -> dict[str, Any]:
        return {"type": "tool_search_output", "call_id": "c", "execution": "client", "tools": [tool]}

    space: dict[str, Any] = {"type": "namespace", "name": "a", "tools": [{**FUNCTION, "defer_loading": True}]}
    inner = {"type": "function", "function": {"name": "book", "parameters": BOOKING}, "defer_loading": True}
    said: list[Any] = [{"role": "user", "content": "x"}]
    anthropics = {"name": "book", "input_schema": BOOKING, "defer_loading": True}
    for protocol, body, row in (
        (
            Responses(),
            {"input": "x", "tools": [{**FUNCTION, "defer_loading": True}]},
            "tools[].defer_loading",
        ),
        (Responses(), {"input": "x", "tools": [space]}, "tools[].tools[].defer_loading"),
        (Responses(), {"input": [*said, found(space["tools"][0])]}, "input[].tools[].defer_loading"),
        (Responses(), {"input": [*said, found(space)]}, "input[].tools[].tools[].defer_loading"),
        (CHAT_COMPLETIONS, {"messages": said, "tools": [inner]}, "tools[].defer_loading"),
        (MESSAGES, {"messages": said, "max_tokens": 9, "tools": [anthropics]}, "tools[].defer_loading"),
    ):
        fields = remote.fields({"model": "m", **body}, protocol.form)
        asked = protocol.read(fields, remote)  # type: ignore[attr-defined]
        assert [*map(pattern_of, fields.unused)] == [row]
        assert asked.params.tools.brief_names() == frozenset()
