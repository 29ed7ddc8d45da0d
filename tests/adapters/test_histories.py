"""Histories of frameworks and clients: the model is shown the same conversation through every door."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from toolgrammar.adapters.server import create_app
from toolgrammar.adapters.server.in_process import BASE_URL, InProcess
from toolgrammar.core import ModelError
from toolgrammar.core.conversation.messages import UNREADABLE
from toolgrammar.core.testing import ScriptedModel

pytestmark = pytest.mark.filterwarnings("default")

#: Ids, names and arguments of the calls of one turn: the last one is cut, the third encoded twice.
CALLS = [
    ("c1", "turn", '{"to": "left"}'),
    ("c2", "turn", '{"to": "right"}'),
    ("c3", "look", json.dumps('{"at": "x"}')),
    ("c4", "look", '{"at": "y'),
]
ARGUMENTS = [{"to": "left"}, {"to": "right"}, {"at": "x"}, {UNREADABLE: '{"at": "y'}]
#: Ids and texts of the results, in the order in which they came.
RESULTS = [("c2", "right done"), ("c4", "no"), ("c1", "left done"), ("c3", "x seen")]


def langchain(model: Any) -> None:
    """LangChain's messages, with the call that cannot be read among the invalid ones."""
    messages = pytest.importorskip("langchain_core.messages")
    from toolgrammar.adapters.langchain import ChatToolGrammar

    calls = [
        {"id": i, "name": n, "args": json.loads(a) if i != "c3" else json.loads(json.loads(a))} for i, n, a in CALLS[:3]
    ]
    broken = [{"id": i, "name": n, "args": a, "error": "cut"} for i, n, a in CALLS[3:]]
    turn = messages.AIMessage("", tool_calls=calls, invalid_tool_calls=broken)
    results = [messages.ToolMessage(text, tool_call_id=i) for i, text in RESULTS]
    ChatToolGrammar(model=model).invoke([messages.HumanMessage("Go."), turn, *results])


def autogen(model: Any) -> None:
    """AutoGen's, whose results are one message."""
    core = pytest.importorskip("autogen_core")
    models = pytest.importorskip("autogen_core.models")
    from toolgrammar.adapters.autogen import ToolGrammarChatCompletionClient

    turn = models.AssistantMessage(content=[core.FunctionCall(i, a, n) for i, n, a in CALLS], source="a")
    results = [models.FunctionExecutionResult(content=text, name="", call_id=i, is_error=False) for i, text in RESULTS]
    history = [
        models.UserMessage(content="Go.", source="u"),
        turn,
        models.FunctionExecutionResultMessage(content=results),
    ]
    asyncio.run(ToolGrammarChatCompletionClient(model=model).create(history))


def agent_framework(model: Any) -> None:
    """Agent Framework's, whose results are contents of one message."""
    framework = pytest.importorskip("agent_framework")
    from toolgrammar.adapters.agent_framework import ToolGrammarChatClient

    calls = [framework.Content.from_function_call(i, n, arguments=a) for i, n, a in CALLS]
    results = [framework.Content.from_function_result(i, result=text) for i, text in RESULTS]
    roles = (("user", ["Go."]), ("assistant", calls), ("tool", results))
    history = [framework.Message(role, contents) for role, contents in roles]
    asyncio.run(ToolGrammarChatClient(model=model).get_response(history))


def crewai(model: Any) -> None:
    """CrewAI's, which are OpenAI's dicts."""
    pytest.importorskip("crewai")
    from toolgrammar.adapters.crewai import ToolGrammarLLM

    ToolGrammarLLM(model=model).call(openai_messages())


def pydantic_ai(model: Any) -> None:
    """pydantic-ai's, whose results are parts of one request."""
    messages = pytest.importorskip("pydantic_ai.messages")
    from pydantic_ai.direct import model_request_sync

    from toolgrammar.adapters.pydantic_ai import ToolGrammarModel

    history = [
        messages.ModelRequest([messages.UserPromptPart("Go.")]),
        messages.ModelResponse([messages.ToolCallPart(n, a, i) for i, n, a in CALLS]),
        messages.ModelRequest([messages.ToolReturnPart("", text, i) for i, text in RESULTS]),
    ]
    model_request_sync(ToolGrammarModel(model), history)


def ag2(model: Any) -> None:
    """AG2's events; an image of a result comes after all results."""
    events = pytest.importorskip("ag2.events")
    from toolgrammar.adapters.ag2.messages import to_messages

    calls = [events.ToolCallEvent(n, id=i, arguments=a) for i, n, a in CALLS]
    results = [events.ToolResultEvent(parent_id=i, name="", result=events.ToolResult(text)) for i, text in RESULTS]
    history = [
        events.ModelRequest([events.TextInput("Go.")]),
        events.ModelResponse(None, tool_calls=events.ToolCallsEvent(calls)),
        events.ToolResultsEvent(results),
    ]
    model.generate(to_messages([], history, None))


def openai_messages() -> list[dict[str, Any]]:
    """The conversation in OpenAI's form."""
    calls = [{"id": i, "type": "function", "function": {"name": n, "arguments": a}} for i, n, a in CALLS]
    return [
        {"role": "user", "content": "Go."},
        {"role": "assistant", "content": "", "tool_calls": calls},
        *({"role": "tool", "tool_call_id": i, "content": text} for i, text in RESULTS),
    ]


def posted(path: str, body: dict[str, Any]) -> Callable[[Any], None]:
    """Return the door of a server's protocol."""

    def door(model: Any) -> None:
        process = InProcess(create_app(model), httpx)
        with httpx.Client(transport=process.transport(), base_url=BASE_URL, timeout=60) as client:
            answer = client.post(path, json={"model": "scripted", **body})
        assert answer.status_code == 200, answer.text

    return door


def responses() -> list[dict[str, Any]]:
    """The conversation as items of the Responses API."""
    calls = [{"type": "function_call", "call_id": i, "name": n, "arguments": a} for i, n, a in CALLS]
    results = [{"type": "function_call_output", "call_id": i, "output": text} for i, text in RESULTS]
    return [{"role": "user", "content": "Go."}, *calls, *results]


@pytest.mark.parametrize(
    "door",
    [
        *(langchain, autogen, agent_framework, crewai, pydantic_ai, ag2),
        pytest.param(posted("/v1/chat/completions", {"messages": openai_messages()}), id="chat completions"),
        pytest.param(posted("/v1/responses", {"input": responses()}), id="responses"),
        pytest.param(lambda model: model.generate(openai_messages()), id="dicts"),
    ],
)
def test_a_history_is_shown_as_it_happened(door: Callable[[Any], None]) -> None:
    """Results of parallel calls are in the order of the calls, arguments that were encoded twice are unwrapped, and
    arguments that cannot be read are shown as they were written."""
    model = ScriptedModel(["Done."])
    door(model)
    (shown,) = model.requests
    (turn,) = (message for message in shown if message.tool_calls)
    assert [dict(call.arguments) for call in turn.tool_calls] == ARGUMENTS
    texts = [message.text for message in shown if message.role == "tool"]
    assert texts == ["left done", "right done", "x seen", "no"]


@pytest.mark.parametrize(
    "door",
    [
        posted(
            "/v1/messages",
            {
                "max_tokens": 50,
                "messages": [
                    {"role": "user", "content": "Go."},
                    {"role": "assistant", "content": [{"type": "tool_use", "id": i, "name": n, "input": {}} for i, n, _ in CALLS]},
                    {"role": "user", "content": [{"type": "tool_result", "tool_use_id": i, "content": text} for i, text in RESULTS]},
                ],
            },
        ),
        posted(
            "/api/chat",
            {
                "stream": False,
                "messages": [
                    {"role": "user", "content": "Go."},
                    {"role": "assistant", "tool_calls": [{"function": {"name": i, "arguments": {}}} for i, *_ in CALLS]},
                    *({"role": "tool", "tool_name": i, "content": text} for i, text in RESULTS),
                ],
            },
        ),
    ],
    ids=["messages", "ollama"],
)  # fmt: skip
def test_results_of_clients_with_objects_as_arguments(door: Callable[[Any], None]) -> None:
    """Anthropic's blocks, and Ollama's results, which name the tool and have no id, are shown in the order of the
    calls."""
    model = ScriptedModel(["Done."])
    door(model)
    texts = [message.text for message in model.requests[0] if message.role == "tool"]
    assert texts == ["left done", "right done", "x seen", "no"]


def langchain_image(model: Any) -> None:
    """An image in a message of LangChain's."""
    messages = pytest.importorskip("langchain_core.messages")
    from toolgrammar.adapters.langchain import ChatToolGrammar

    ChatToolGrammar(model=model).invoke([messages.HumanMessage([IMAGE])])


def crewai_image(model: Any) -> None:
    """An image in a message of CrewAI's."""
    pytest.importorskip("crewai")
    from toolgrammar.adapters.crewai import ToolGrammarLLM

    ToolGrammarLLM(model=model).call([{"role": "user", "content": [IMAGE]}])


IMAGE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,eA=="}}


@pytest.mark.parametrize("door", [langchain_image, crewai_image])
def test_a_scripted_model_sees_no_images(door: Callable[[Any], None]) -> None:
    """A model of tests refuses an image as the model that it stands for does."""
    with pytest.raises(ModelError, match="cannot see the image"):
        door(ScriptedModel(["I see."]))
