"""Every adapter with a model on a server: only valid calls run, cut ones never do, and no key is shown or stored."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import httpx
import pytest
from pydantic import BaseModel

from toolgrammar.core import InvalidArgumentsError, Message, ModelError, ToolCall
from toolgrammar.core.models import Model
from toolgrammar.core.models.remote import RemoteModel
from toolgrammar.core.testing import ScriptedModel

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning:crewai")

KEY = "sk-very-secret-0123456789"
ADDRESS = "openai:m@http://127.0.0.1:9/v1"

TOOL = {
    "type": "function",
    "function": {
        "name": "lamp",
        "description": "Switch it.",
        "parameters": {
            "type": "object",
            "properties": {"on": {"type": "boolean"}, "room": {"type": "string"}},
            "required": ["on"],
        },
    },
}


class Room(BaseModel):
    """A room."""

    name: str
    floor: int


def server(*replies: Any, asked: list[Any] | None = None) -> RemoteModel:
    """A model on a server that gives these replies: texts, or ``(arguments, finish reason)`` of a call of the lamp."""
    script = list(replies)

    def answer(request: httpx.Request) -> httpx.Response:
        body = json.loads(request.content)
        if asked is not None:
            asked.append(body)
        reply = script.pop(0) if len(script) > 1 else script[0]
        message: dict[str, Any] = {"role": "assistant", "content": reply if isinstance(reply, str) else None}
        finish = "stop"
        if not isinstance(reply, str):
            function = {"name": "lamp", "arguments": reply[0]}
            message["tool_calls"] = [{"index": 0, "id": "id0", "type": "function", "function": function}]
            finish = reply[1]
        usage = {"prompt_tokens": 3, "completion_tokens": 2}
        if not body.get("stream"):
            choice = {"index": 0, "message": message, "finish_reason": finish}
            return httpx.Response(200, json={"choices": [choice], "usage": usage})
        chunks = [
            {"choices": [{"delta": message}]},
            {"choices": [{"delta": {}, "finish_reason": finish}], "usage": usage},
        ]
        data = "".join(f"data: {json.dumps(chunk)}\n\n" for chunk in chunks)
        return httpx.Response(200, headers={"content-type": "text/event-stream"}, text=data)

    return RemoteModel("m@http://model.test/v1", transport=httpx.MockTransport(answer))


def test_langchain_calls_answers_and_streams() -> None:
    """Calls, structured answers and streams of a server are those of LangChain; the guarantee says ``validated``."""
    from toolgrammar.adapters.langchain import ChatToolGrammar

    model = ChatToolGrammar(model=server(('{"on": "yes"}', "tool_calls"), ('{"on": true}', "tool_calls")))
    answer = model.bind_tools([TOOL]).invoke("Light!")
    assert [(call["id"], call["args"]) for call in answer.tool_calls] == [("id0", {"on": True})]
    assert answer.response_metadata["guarantee"] == "validated"
    assert answer.usage_metadata["input_tokens"] == 6
    streamed = None
    for chunk in ChatToolGrammar(model=server(('{"on": true}', "tool_calls"))).bind_tools([TOOL]).stream("Light!"):
        streamed = chunk if streamed is None else streamed + chunk
    assert [call["args"] for call in streamed.tool_calls] == [{"on": True}]
    room = ChatToolGrammar(model=server('{"name": "hall", "floor": "2"}', '{"name": "hall", "floor": 2}'))
    assert room.with_structured_output(Room).invoke("Which?") == Room(name="hall", floor=2)
    assert asyncio.run(room.ainvoke("Which?")).content


def test_langchain_tells_how_a_server_was_asked() -> None:
    """The form, what was left out of the schema, and how often the server was asked, whether streamed or not."""
    from toolgrammar.adapters.langchain import ChatToolGrammar

    replies = ('{"on": "never"}', "tool_calls"), ('{"on": true}', "tool_calls")
    answer = ChatToolGrammar(model=server(*replies)).bind_tools([TOOL], tool_choice="any").invoke("Light!")
    assert (answer.response_metadata["form"], answer.response_metadata["attempts"]) == ("tools", 2)
    assert answer.response_metadata["left_out"] == []
    streamed = None
    for chunk in ChatToolGrammar(model=server(*replies)).bind_tools([TOOL], tool_choice="any").stream("Light!"):
        streamed = chunk if streamed is None else streamed + chunk
    for name in ("form", "attempts", "left_out", "guarantee"):
        assert streamed.response_metadata[name] == answer.response_metadata[name]
    room = ChatToolGrammar(model=server("{}", '{"name": "hall", "floor": 2}')).with_structured_output(
        Room, include_raw=True
    )
    assert room.invoke("Which?")["raw"].response_metadata["attempts"] == 2


@pytest.mark.parametrize("written", ['{"on": true, "room": "ki', '{"on": tr', '{"on": true'])
def test_langchain_cut_calls_never_become_calls(written: str) -> None:
    """A cut call is an invalid tool call with the reason, in streams too, though LangChain mends what it streams."""
    from toolgrammar.adapters.langchain import ChatToolGrammar

    bound = ChatToolGrammar(model=server((written, "length"))).bind_tools([TOOL])
    streamed = None
    for chunk in bound.stream("Light!"):
        streamed = chunk if streamed is None else streamed + chunk
    for message in (bound.invoke("Light!"), streamed):
        assert message.tool_calls == []
        (call,) = message.invalid_tool_calls
        assert call["name"] == "lamp" and "token budget" in (call["error"] or "") + call["args"]
        assert message.response_metadata["finish_reason"] in ("length", "max_tokens")


def test_langchain_shows_and_stores_no_key() -> None:
    """The key is in no repr, trace, cache key or saved object; ``env:NAME`` is, and can be loaded again."""
    from langchain_core.load import dumps
    from langchain_core.messages import HumanMessage

    from toolgrammar.adapters.langchain import ChatToolGrammar

    model = ChatToolGrammar(model=ADDRESS, options={"api_key": KEY, "headers": {"X": f"Bearer {KEY}"}})
    shown = [repr(model), str(model), dumps(model), model._get_llm_string(), str(model._identifying_params)]
    assert not any(KEY in text for text in shown)
    assert not any(KEY in text for text in (str(model._get_ls_params()), repr(model.model_dump())))
    with pytest.raises(ModelError, match="tokens"):
        model.get_token_ids("Hi")
    assert model.get_num_tokens_from_messages([HumanMessage("Hello there")]) == 8  # an estimate
    assert 3 <= model.get_num_tokens("Hello there") <= 8
    assert model.get_num_tokens("") == 0
    own = ChatToolGrammar(model=ADDRESS, custom_get_token_ids=lambda text: list(range(len(text))))
    assert own.get_num_tokens("abc") == 3
    assert model.model_copy().loaded is model.loaded


def test_autogen_client_with_a_server(monkeypatch: pytest.MonkeyPatch) -> None:
    """AutoGen gets valid calls; a client is written out without its key, or not at all."""
    from autogen_core import FunctionCall
    from autogen_core.models import UserMessage

    from toolgrammar.adapters.autogen import ToolGrammarChatCompletionClient

    client = ToolGrammarChatCompletionClient(model=server(("{}", "tool_calls"), ('{"on": false}', "tool_calls")))
    tools: Any = [TOOL["function"]]
    result = asyncio.run(client.create([UserMessage(content="Dark!", source="user")], tools=tools))
    assert result.content == [FunctionCall(id="id0", name="lamp", arguments='{"on": false}')]
    answer = ToolGrammarChatCompletionClient(model=server('{"name": "hall", "floor": 2}'))
    found = asyncio.run(answer.create([UserMessage(content="Which?", source="user")], json_output=Room))
    assert Room.model_validate_json(str(found.content)).floor == 2
    with pytest.raises(ModelError, match="env:NAME"):
        ToolGrammarChatCompletionClient(model=ADDRESS, options={"api_key": KEY}).dump_component()
    monkeypatch.setenv("LAMP_KEY", KEY)
    component = ToolGrammarChatCompletionClient(model=ADDRESS, options={"api_key": "env:LAMP_KEY"}).dump_component()
    assert "env:LAMP_KEY" in component.model_dump_json() and KEY not in component.model_dump_json()
    assert isinstance(ToolGrammarChatCompletionClient.load_component(component), ToolGrammarChatCompletionClient)


def test_crewai_llm_with_a_server() -> None:
    """CrewAI gets valid calls, instances of a response model, and an error when nothing valid comes."""
    from toolgrammar.adapters.crewai import ToolGrammarLLM

    asked: list[Any] = []
    llm = ToolGrammarLLM(model=server(("[]", "tool_calls"), ('{"on": true}', "tool_calls"), asked=asked), stop=["X:"])
    (call,) = llm.call("Light!", tools=[TOOL])
    assert json.loads(call["function"]["arguments"]) == {"on": True}
    assert "stop" not in asked[0]
    llm = ToolGrammarLLM(model=server('{"name": "hall", "floor": 2}'))
    assert llm.call("Which?", response_model=Room) == Room(name="hall", floor=2)
    with pytest.raises(InvalidArgumentsError, match="asked 3 times"):
        ToolGrammarLLM(model=server(('{"off": 1}', "tool_calls"))).call("Light!", tools=[TOOL])
    assert KEY not in repr(ToolGrammarLLM(model=ADDRESS, options={"api_key": KEY}))


def test_agent_framework_with_a_server() -> None:
    """Agent Framework runs valid calls only, and counts tokens by the estimate."""
    from toolgrammar.adapters.agent_framework import ToolGrammarChatClient

    seen: list[bool] = []

    def lamp(on: bool) -> str:
        """Switch it."""
        seen.append(on)
        return "done"

    client = ToolGrammarChatClient(model=server(('{"on": 5}', "tool_calls"), ('{"on": true}', "tool_calls"), "Lit."))
    result = asyncio.run(client.as_agent(name="a", instructions="b", tools=[lamp]).run("Light!"))
    assert (result.text, seen) == ("Lit.", [True])
    assert client.get_token_count([]) == 0


def told_by_autogen(model: Model, stream: bool) -> dict[str, Any]:
    """What AutoGen's result tells of an answer."""
    from autogen_core.models import UserMessage

    from toolgrammar.adapters.autogen import ToolGrammarChatCompletionClient

    client = ToolGrammarChatCompletionClient(model=model)
    asked: Any = {"messages": [UserMessage(content="Light!", source="user")], "tools": [TOOL["function"]]}

    async def last() -> Any:
        return [piece async for piece in client.create_stream(**asked, tool_choice="required")][-1]

    result = asyncio.run(last() if stream else client.create(**asked, tool_choice="required"))
    told: dict[str, Any] = result.model_dump()
    return told


def told_by_crewai(model: Model, stream: bool) -> dict[str, Any]:
    """What the usage of CrewAI's event tells of an answer."""
    from crewai.events.event_bus import crewai_event_bus
    from crewai.events.types.llm_events import LLMCallCompletedEvent

    from toolgrammar.adapters.crewai import ToolGrammarLLM

    seen: list[Any] = []
    with crewai_event_bus.scoped_handlers():
        crewai_event_bus.on(LLMCallCompletedEvent)(lambda source, event: seen.append(event))
        ToolGrammarLLM(model=model, stream=stream, tool_choice="required").call("Light!", tools=[TOOL])
        crewai_event_bus.flush()
    (event,) = seen
    told: dict[str, Any] = event.usage
    return told


def told_by_agent_framework(model: Model, stream: bool) -> dict[str, Any]:
    """What the properties of Agent Framework's response tell of an answer."""
    from agent_framework import FunctionTool, Message

    from toolgrammar.adapters.agent_framework import ToolGrammarChatClient

    lamp = FunctionTool(name="lamp", description="Switch it.", input_model=TOOL["function"]["parameters"])
    client = ToolGrammarChatClient(model=model)
    messages = [Message("user", ["Light!"])]
    options: Any = {"tools": [lamp], "tool_choice": "required"}

    async def response() -> Any:
        if not stream:
            return await client.get_response(messages, options=options)
        return await client.get_response(messages, options=options, stream=True).get_final_response()

    told: dict[str, Any] = asyncio.run(response()).additional_properties
    return told


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("told_by", [told_by_autogen, told_by_crewai, told_by_agent_framework])
def test_frameworks_tell_how_a_server_was_asked(told_by: Any, stream: bool) -> None:
    """The guarantee, the form, what was left out of the schema, and how often the server was asked."""
    told = told_by(server(('{"on": "never"}', "tool_calls"), ('{"on": true}', "tool_calls")), stream)
    assert {name: told[name] for name in ("guarantee", "form", "left_out", "attempts")} == {
        "guarantee": "validated",
        "form": "tools",
        "left_out": [],
        "attempts": 2,
    }
    local = ScriptedModel([Message("assistant", tool_calls=(ToolCall("", "lamp", {"on": True}),))])
    assert told_by(local, stream)["guarantee"] == "constrained"


def test_calls_in_text_for_crewai() -> None:
    """CrewAI's own text form is read and checked as well, with the stop words sent to the server."""
    from crewai import Agent, Crew, Task
    from crewai.tools import tool

    from toolgrammar.adapters.crewai import ToolGrammarLLM

    seen: list[bool] = []

    @tool("lamp")
    def lamp(on: bool) -> str:
        """Switch it."""
        seen.append(on)
        return "done"

    asked: list[Any] = []
    model = server(
        'Thought: hm\nAction: lamp\nAction Input: {"on": "maybe"}',
        'Thought: hm\nAction: lamp\nAction Input: {"on": true}',
        "Thought: done\nFinal Answer: Lit.",
        asked=asked,
    )
    llm = ToolGrammarLLM(model=model, native_tools=False)
    agent = Agent(role="R", goal="G", backstory="B", tools=[lamp], llm=llm)
    result = Crew(agents=[agent], tasks=[Task(description="Light", expected_output="Light", agent=agent)]).kickoff()
    assert (result.raw, seen) == ("Lit.", [True])
    assert all("tools" not in body for body in asked)
