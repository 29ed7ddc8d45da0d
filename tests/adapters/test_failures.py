"""Failures of servers, and answers that validators refuse, as each framework's own agents and middleware meet them."""

from __future__ import annotations

import asyncio
import datetime
import json
import pickle
from collections.abc import AsyncIterator, Callable
from typing import Any

import httpx
import pytest
from langchain.agents import create_agent, middleware
from langchain.agents.structured_output import StructuredOutputValidationError, ToolStrategy
from langchain_core import exceptions
from langchain_core.exceptions import OutputParserException
from langchain_core.tools import tool
from pydantic import BaseModel, ConfigDict, field_validator

from toolgrammar.core import InvalidArgumentsError, Message, ServerError, ToolCall, ToolGrammarError
from toolgrammar.core.models.remote import RemoteModel
from toolgrammar.core.testing import ScriptedModel

pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning:crewai"),
    pytest.mark.skipif(not hasattr(exceptions, "ModelRateLimitError"), reason="LangChain's names came with 1.6"),
]

OK = {"choices": [{"message": {"role": "assistant", "content": "Warm."}, "finish_reason": "stop"}]}


class Server(httpx.AsyncBaseTransport):
    """A server that fails in these ways, one after the other, and then answers."""

    def __init__(self, *faults: int | type[httpx.TransportError] | str) -> None:
        self.faults = list(faults)
        self.requests = 0

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Fail, or answer."""
        self.requests += 1
        fault = self.faults.pop(0) if self.faults else None
        if isinstance(fault, type):
            raise fault("provoked")
        if fault == "cut":
            chunk = {"choices": [{"delta": {"content": "Wa"}}]}
            kind = {"content-type": "text/event-stream"}
            return httpx.Response(200, headers=kind, text=f"data: {json.dumps(chunk)}\n\n")
        if isinstance(fault, int):
            return httpx.Response(fault, json={"error": {"message": "provoked"}})
        return httpx.Response(200, json=OK)

    @property
    def model(self) -> RemoteModel:
        """A model on it, that sends nothing again by itself."""
        return RemoteModel("m@http://model.test/v1", transport=self, max_retries=0)


#: A fault, LangChain's name for it, Agent Framework's, and whether the same request may succeed later.
FAULTS: list[tuple[Any, str, str, bool]] = [
    (400, "ModelInvalidRequestError", "ChatClientInvalidRequestException", False),
    (401, "ModelAuthenticationError", "ChatClientInvalidAuthException", False),
    (403, "ModelPermissionDeniedError", "ChatClientInvalidAuthException", False),
    (404, "ModelNotFoundError", "ChatClientInvalidRequestException", False),
    (429, "ModelRateLimitError", "ChatClientException", True),
    (503, "ModelAPIError", "ChatClientException", True),
    (httpx.ConnectError, "ModelConnectionError", "ChatClientException", True),
    (httpx.RemoteProtocolError, "ModelConnectionError", "ChatClientException", True),
    (httpx.ReadTimeout, "ModelTimeoutError", "ChatClientException", True),
]


@tool
def look(room: str) -> str:
    """Look."""
    return "cold"


@pytest.mark.parametrize(("fault", "name", "_", "retried"), FAULTS)
def test_langchains_retry_middleware(fault: Any, name: str, _: str, retried: bool) -> None:
    """LangChain's own middleware tries again what may succeed, and nothing else."""
    from toolgrammar.adapters.langchain import ChatToolGrammar

    server = Server(fault)
    again = middleware.ModelRetryMiddleware(max_retries=2, initial_delay=0, jitter=False, on_failure="error")
    agent = create_agent(ChatToolGrammar(model=server.model), [], middleware=[again])
    if retried:
        assert agent.invoke({"messages": [("user", "How is it?")]})["messages"][-1].text == "Warm."
        assert server.requests == 2
    else:
        with pytest.raises(getattr(exceptions, name)) as caught:
            agent.invoke({"messages": [("user", "How is it?")]})
        assert server.requests == 1
        assert isinstance(caught.value, ServerError) and caught.value.status_code == fault


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(("fault", "name", "framework", "retryable"), FAULTS)
def test_names_of_failures(fault: Any, name: str, framework: str, retryable: bool, stream: bool) -> None:
    """A failure has the framework's class and ours, streamed or not, and can be pickled."""
    import agent_framework.exceptions as theirs
    from agent_framework import Message as FrameworkMessage
    from autogen_core.models import UserMessage

    from toolgrammar.adapters.agent_framework import ToolGrammarChatClient
    from toolgrammar.adapters.autogen import ToolGrammarChatCompletionClient
    from toolgrammar.adapters.crewai import ToolGrammarLLM
    from toolgrammar.adapters.langchain import ChatToolGrammar

    chat = ChatToolGrammar(model=Server(fault).model)
    client = ToolGrammarChatClient(model=Server(fault).model)
    autogen = ToolGrammarChatCompletionClient(model=Server(fault).model)
    llm = ToolGrammarLLM(model=Server(*[fault] * 5).model, stream=stream)
    hello, said = [FrameworkMessage("user", ["x"])], [UserMessage(content="x", source="u")]

    async def stream_of(items: AsyncIterator[Any]) -> None:
        async for _ in items:
            pass

    async def ask_framework() -> None:
        await (stream_of(client.get_response(hello, stream=True)) if stream else client.get_response(hello))

    async def ask_autogen() -> None:
        await (stream_of(autogen.create_stream(said)) if stream else autogen.create(said))

    asked: list[tuple[Callable[[], Any], type[BaseException]]] = [
        (lambda: list(chat.stream("x")) if stream else chat.invoke("x"), getattr(exceptions, name)),
        (lambda: asyncio.run(ask_framework()), getattr(theirs, framework)),
        (lambda: asyncio.run(ask_autogen()), ServerError),
    ]
    if fault != 429:  # CrewAI waits, and tries again by itself
        asked.append((lambda: llm.call("x"), ServerError))
    for ask, kind in asked:
        with pytest.raises(kind) as caught:
            ask()
        error = caught.value
        assert isinstance(error, ToolGrammarError) and error.retryable is retryable
        assert isinstance(error, TimeoutError) is (fault is httpx.ReadTimeout)
        again = pickle.loads(pickle.dumps(error))
        assert isinstance(again, kind) and isinstance(again, ServerError) and str(again) == str(error)


def test_crewai_tries_again_when_the_server_is_busy(monkeypatch: pytest.MonkeyPatch) -> None:
    """CrewAI knows a busy server by the status of our error."""
    from crewai.llms import retry

    from toolgrammar.adapters.crewai import ToolGrammarLLM

    monkeypatch.setattr(retry.time, "sleep", lambda seconds: None)
    server = Server(429, 429)
    assert ToolGrammarLLM(model=server.model).call("x") == "Warm."
    assert server.requests == 3


def test_a_broken_stream_may_be_tried_again() -> None:
    """A stream without an end is the server's failure, whoever reads it."""
    from toolgrammar.adapters.langchain import ChatToolGrammar

    with pytest.raises(exceptions.ModelAPIError):
        list(ChatToolGrammar(model=Server("cut").model).stream("x"))


class Slow(httpx.AsyncBaseTransport):
    """A server that begins to answer, and goes on much later."""

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Answer with a stream that does not end."""

        async def chunks() -> AsyncIterator[bytes]:
            yield b'data: {"choices": [{"delta": {"content": "half an ans"}}]}\n\n'
            await asyncio.sleep(60)

        return httpx.Response(200, headers={"content-type": "text/event-stream"}, content=chunks())


def test_half_an_answer_is_never_handed_over() -> None:
    """When the time is over, what came so far is not the answer: every framework gets an error."""
    from agent_framework import Message as FrameworkMessage
    from autogen_core.models import UserMessage

    from toolgrammar.adapters.agent_framework import ToolGrammarChatClient
    from toolgrammar.adapters.autogen import ToolGrammarChatCompletionClient
    from toolgrammar.adapters.crewai import ToolGrammarLLM
    from toolgrammar.adapters.langchain import ChatToolGrammar

    model = RemoteModel("m@http://model.test/v1", transport=Slow())
    chat = ChatToolGrammar(model=model, timeout=0.1)
    client = ToolGrammarChatClient(model=model, default_options={"timeout": 0.1})
    autogen = ToolGrammarChatCompletionClient(model=model, timeout=0.1)

    async def read_framework() -> None:
        async for _ in client.get_response([FrameworkMessage("user", ["x"])], stream=True):
            pass

    async def read_autogen() -> None:
        async for _ in autogen.create_stream([UserMessage(content="x", source="u")]):
            pass

    for ask in (
        lambda: list(chat.stream("x")),
        lambda: asyncio.run(read_framework()),
        lambda: asyncio.run(read_autogen()),
        lambda: ToolGrammarLLM(model=model, timeout=0.1).call("x"),
    ):
        with pytest.raises(TimeoutError):
            ask()


# -- validators ----------------------------------------------------------------------------------------------------


class Even(BaseModel):
    """An even number, which no JSON Schema of Pydantic's says."""

    number: int

    @field_validator("number")
    @classmethod
    def _is_even(cls, value: int) -> int:
        if value % 2:
            raise ValueError("must be even")
        return value


class Plain(BaseModel):
    """A number."""

    number: int


class Dated(BaseModel):
    """A strict class: Python's dates are dates there, and texts are only in JSON."""

    model_config = ConfigDict(strict=True)
    number: int
    day: datetime.date


def call(number: int) -> Message:
    """A call with a number."""
    return Message("assistant", tool_calls=(ToolCall("", "Even", {"number": number}),))


@pytest.mark.parametrize("method", ["json_schema", "json_mode", "function_calling"])
def test_langchain_asks_again(method: str) -> None:
    """An answer that a validator refuses is asked for again, with the reason; the third refusal is the last."""
    from toolgrammar.adapters.langchain import ChatToolGrammar

    def said(number: int) -> Any:
        return call(number) if method == "function_calling" else json.dumps({"number": number})

    for how in (lambda chain: chain.invoke("x"), lambda chain: asyncio.run(chain.ainvoke("x"))):
        model = ScriptedModel([said(1), said(2)])
        assert how(ChatToolGrammar(model=model).with_structured_output(Even, method=method)) == Even(number=2)
        assert "must be even" in model.requests[1][-1].text
        assert model.requests[1][-2].role == "assistant"
    stubborn = ScriptedModel([said(1)] * 3)
    with pytest.raises(OutputParserException, match="must be even"):
        ChatToolGrammar(model=stubborn).with_structured_output(Even, method=method).invoke("x")
    raw = ChatToolGrammar(model=ScriptedModel([said(1)] * 3)).with_structured_output(
        Even, method=method, include_raw=True
    )
    found = raw.invoke("x")
    assert found["parsed"] is None and isinstance(found["parsing_error"], OutputParserException)
    model = ScriptedModel([said(1), said(2)])
    pieces = list(ChatToolGrammar(model=model).with_structured_output(Even, method=method).stream("x"))
    assert pieces[-1] == Even(number=2)


def test_usage_is_of_all_that_was_asked() -> None:
    """Tokens of refused answers are counted; a class without validators is asked once, and streamed in pieces."""
    from toolgrammar.adapters.langchain import ChatToolGrammar

    refused, good = '{"number": 1}', '{"number": 2}'
    answer = ChatToolGrammar(model=ScriptedModel([refused, good])).invoke("x", response_format=Even)
    assert answer.usage_metadata["output_tokens"] == len(refused) + len(good)
    assert answer.text == good
    with pytest.raises(InvalidArgumentsError, match="in 3 attempts, no answer passed the validators of Even"):
        ChatToolGrammar(model=ScriptedModel([refused] * 3)).invoke("x", response_format=Even)
    plain = ChatToolGrammar(model=ScriptedModel([refused])).bind(response_format=Plain)
    assert len([chunk for chunk in plain.stream("x") if chunk.text]) > 3


def test_strict_classes_are_read_as_json() -> None:
    """A strict class takes a text for a date from JSON, and not from Python: answers are read as JSON."""
    from toolgrammar.adapters.langchain import ChatToolGrammar

    said = {"number": 2, "day": "2024-05-06"}
    chain = ChatToolGrammar(model=ScriptedModel([json.dumps(said)])).with_structured_output(Dated)
    assert chain.invoke("x").day.year == 2024
    calls = Message("assistant", tool_calls=(ToolCall("", "Dated", said),))
    chain = ChatToolGrammar(model=ScriptedModel([calls])).with_structured_output(Dated, method="function_calling")
    assert chain.invoke("x").day.year == 2024


def test_langchain_agents_ask_again() -> None:
    """Agents ask again with our strategy; with LangChain's tool strategy they do it themselves."""
    from toolgrammar.adapters.langchain import ChatToolGrammar, ValidatedStrategy

    model = ChatToolGrammar(model=ScriptedModel([call(1), call(2)]))
    agent = create_agent(model, [look], response_format=ToolStrategy(Even))
    assert agent.invoke({"messages": [("user", "x")]})["structured_response"] == Even(number=2)
    scripted = ScriptedModel(['{"number": 1}', '{"number": 2}'])
    agent = create_agent(ChatToolGrammar(model=scripted), [look], response_format=ValidatedStrategy(Even))
    assert agent.invoke({"messages": [("user", "x")]})["structured_response"] == Even(number=2)
    assert "must be even" in scripted.requests[1][-1].text
    # Why it is needed: LangChain's own strategy ends the agent at the first objection.
    plain = create_agent(ChatToolGrammar(model=ScriptedModel(['{"number": 1}'])), [look], response_format=Even)
    with pytest.raises(StructuredOutputValidationError):
        plain.invoke({"messages": [("user", "x")]})


def test_other_frameworks_ask_again() -> None:
    """Where the framework shows the class, an answer that its validators refuse is asked for again."""
    from agent_framework import Message as FrameworkMessage
    from autogen_core.models import UserMessage

    from toolgrammar.adapters.agent_framework import ToolGrammarChatClient
    from toolgrammar.adapters.autogen import ToolGrammarChatCompletionClient
    from toolgrammar.adapters.crewai import ToolGrammarLLM

    def model(*numbers: int) -> ScriptedModel:
        return ScriptedModel([json.dumps({"number": number}) for number in numbers])

    async def framework(numbers: tuple[int, ...]) -> Any:
        client = ToolGrammarChatClient(model=model(*numbers))
        response = await client.get_response([FrameworkMessage("user", ["x"])], options={"response_format": Even})
        return response.value

    async def autogen(numbers: tuple[int, ...]) -> Any:
        client = ToolGrammarChatCompletionClient(model=model(*numbers))
        result = await client.create([UserMessage(content="x", source="u")], json_output=Even)
        return Even.model_validate_json(str(result.content))

    for ask in (
        lambda numbers: asyncio.run(framework(numbers)),
        lambda numbers: asyncio.run(autogen(numbers)),
        lambda numbers: ToolGrammarLLM(model=model(*numbers)).call("x", response_model=Even),
    ):
        assert ask((1, 3, 2)) == Even(number=2)
        with pytest.raises(InvalidArgumentsError, match="must be even"):
            ask((1, 3, 5))
