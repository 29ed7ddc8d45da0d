"""The AutoGen model client: requests in, results out, agents around it."""

from __future__ import annotations

import asyncio
import base64
import json
import logging
import time
from collections.abc import Callable, Sequence
from typing import Any, Literal

import pytest
from autogen_agentchat.agents import AssistantAgent
from autogen_agentchat.messages import ModelClientStreamingChunkEvent, MultiModalMessage, StructuredMessage, TextMessage
from autogen_core import EVENT_LOGGER_NAME, CancellationToken, FunctionCall, Image
from autogen_core.logging import LLMCallEvent, LLMStreamEndEvent, LLMStreamStartEvent
from autogen_core.model_context import TokenLimitedChatCompletionContext
from autogen_core.models import (
    AssistantMessage,
    ChatCompletionClient,
    CreateResult,
    FunctionExecutionResult,
    FunctionExecutionResultMessage,
    SystemMessage,
    UserMessage,
)
from autogen_core.tools import FunctionTool
from pydantic import BaseModel

from toolgrammar.adapters.autogen import ToolGrammarChatCompletionClient
from toolgrammar.adapters.autogen.messages import openai_tool, to_messages
from toolgrammar.core import (
    BudgetError,
    ImagePart,
    Message,
    Model,
    ModelError,
    SchemaError,
    TextPart,
    ToolCall,
    UnknownToolError,
)
from toolgrammar.core.testing import ScriptedModel
from toolgrammar.tools import ToolSet

from ..shared_parts import CODED_PNG, PNG_ADDRESS, Tree

Call = Callable[..., Message]

pytestmark = pytest.mark.asyncio

HELLO = [UserMessage(content="hello", source="user")]


RAN: list[dict[str, Any]] = []


def turn(angle: int, axis: Literal["x", "y"] = "x", fast: bool = False) -> str:
    """Turn."""
    RAN.append({"angle": angle, "axis": axis, "fast": fast})
    return "turned"


def grow(tree: Tree) -> int:
    """Grow."""
    return tree.value


def note(text: str) -> str:
    """Write something down."""
    raise AssertionError("a cut call must not run")


TURN = FunctionTool(turn, description="Turn.")
GROW = FunctionTool(grow, description="Grow.")
NOTE = FunctionTool(note, description="Write something down.")


def scripted(*replies: str | Message, **arguments: Any) -> ToolGrammarChatCompletionClient:
    """A client that says these replies."""
    return ToolGrammarChatCompletionClient(model=ScriptedModel(replies), **arguments)


# -- requests ------------------------------------------------------------------------------------------------------


async def test_an_image_of_a_message_is_one_part() -> None:
    """A message of several kinds has its images as PNG, in order, whatever they were made of."""
    picture = Image.from_base64(CODED_PNG)
    said = MultiModalMessage(content=["see", picture, Image.from_uri(PNG_ADDRESS), "it"], source="user")
    (made,) = to_messages([said.to_model_message()])
    coded = Image.to_base64(picture)  # AutoGen encodes the picture again
    image = ImagePart(base64.b64decode(coded), media_type="image/png")
    assert made.content == (TextPart("see"), image, image, TextPart("it"))


async def test_messages() -> None:
    """Every kind of message that AutoGen has becomes one of ours; several results become one message each."""
    results = [
        FunctionExecutionResult(content="1", name="f", call_id="c1", is_error=False),
        FunctionExecutionResult(content="no", name="g", call_id="c2", is_error=True),
    ]
    messages = to_messages(
        [
            SystemMessage(content="be brief"),
            UserMessage(content=["see", Image.from_base64(CODED_PNG)], source="ann"),
            AssistantMessage(content=[FunctionCall("c1", '{"x": 1}', "f")], thought="hm", source="bot"),
            FunctionExecutionResultMessage(content=results),
            AssistantMessage(content="done", source="bot"),
        ]
    )
    assert isinstance(messages[1].content, tuple)
    image = messages[1].content[1]
    assert isinstance(image, ImagePart)
    assert image.media_type == "image/png"
    assert messages == [
        Message("system", "be brief"),
        Message("user", (TextPart("see"), image), name="ann"),
        Message("assistant", reasoning="hm", tool_calls=(ToolCall("c1", "f", {"x": 1}, raw='{"x": 1}'),), name="bot"),
        Message("tool", "1", tool_call_id="c1", name="f"),
        Message("tool", "no", tool_call_id="c2", name="g", is_error=True),
        Message("assistant", "done", name="bot"),
    ]


async def test_schemas_are_whole() -> None:
    """A tool's recursion survives, from the tool and from the schema with itself inside that agents pass on."""
    for source in (GROW, GROW.schema):
        schema = openai_tool(source)["function"]["parameters"]
        assert "$ref" in json.dumps(schema)
    assert openai_tool(GROW.schema)["function"]["name"] == "grow"


async def test_both_forms_allow_the_same_calls() -> None:
    """The tool and its rendered schema accept and refuse the same arguments."""
    good = {"tree": {"value": 1, "children": [{"value": 2, "children": []}]}}
    bad = {"tree": {"value": 1, "children": [{"value": "two", "children": []}]}}
    for source in (GROW, GROW.schema):
        tools = ToolSet.from_any([openai_tool(source)])
        tools.validate({"name": "grow", "arguments": good})
        with pytest.raises(ValueError, match="children"):
            tools.validate({"name": "grow", "arguments": bad})


@pytest.mark.parametrize(("choice", "called"), [("auto", False), ("none", False), ("required", True), (TURN, True)])
async def test_tool_choice(choice: Any, called: bool) -> None:
    """A demanded call comes, whatever the model wants to say; a free choice is the model's."""
    wish = 'No. {"name": "turn", "arguments": {"angle": 5}}'
    result = await scripted(wish, parallel_tool_calls=False).create(HELLO, tools=[TURN, GROW], tool_choice=choice)
    assert isinstance(result.content, list) is called
    assert result.finish_reason == ("function_calls" if called else "stop")


async def test_impossible_choices_are_refused() -> None:
    """A choice that is not among the tools, or a demand without tools, is an error."""
    with pytest.raises(UnknownToolError, match="turn"):
        await scripted("x").create(HELLO, tools=[GROW], tool_choice=TURN)
    with pytest.raises(ModelError, match="no tools"):
        await scripted("x").create(HELLO, tool_choice="required")


async def test_unknown_arguments_are_refused() -> None:
    """A misspelt argument is an error, when the client is made and when it is used."""
    with pytest.raises(ModelError, match="temprature"):
        scripted("x", temprature=0)
    with pytest.raises(ModelError, match="temprature"):
        await scripted("x").create(HELLO, extra_create_args={"temprature": 0})


async def test_extra_arguments_override() -> None:
    """Arguments of one call win over those of the client."""
    client = scripted("one two three", "one two three", stop="two")
    assert (await client.create(HELLO)).content == "one "
    assert (await client.create(HELLO, extra_create_args={"stop": ["three"]})).content == "one two "


class Number(BaseModel):
    """A number."""

    number: int


SCHEMA = {"type": "json_schema", "json_schema": {"name": "number", "schema": Number.model_json_schema()}}


@pytest.mark.parametrize("stream", [False, True])
async def test_extra_arguments_in_the_form_of_openai(stream: bool) -> None:
    """A tool choice and a response format among the extra arguments are met, as AutoGen's own tests give them."""

    async def create(**arguments: Any) -> Any:
        client = scripted("No.")
        if stream:
            return [one async for one in client.create_stream(HELLO, **arguments)][-1]
        return await client.create(HELLO, **arguments)

    for choice in ("required", {"type": "function", "function": {"name": "turn"}}):
        asked: Any = {"tool_choice": choice, "parallel_tool_calls": False}
        result = await create(tools=[TURN], extra_create_args=asked)
        assert result.content[0].name == "turn"
    for form in (Number, SCHEMA):
        Number.model_validate_json((await create(extra_create_args={"response_format": form})).content)
    assert (await create(extra_create_args={"response_format": {"type": "json_object"}})).content.startswith("{")
    assert (await create(extra_create_args={"response_format": {"type": "text"}})).content == "No."
    for twice in ({"tool_choice": "auto"}, {"response_format": Number}):
        with pytest.raises(ModelError, match="given twice"):
            await create(tools=[TURN], tool_choice="none", json_output=True, extra_create_args=twice)


async def test_errors_are_of_the_kinds_that_autogen_names() -> None:
    """A tool that is not in the list, and a message of no known kind, are a ``ValueError`` that says so."""
    with pytest.raises(ValueError, match="turn"):
        await scripted("x").create(HELLO, tools=[GROW], tool_choice=TURN)
    unknown: Any = ["hello"]
    with pytest.raises(ValueError, match="unknown message type: str"):
        await scripted("x").create(unknown)


async def test_handoffs_come_alone(call: Call) -> None:
    """With a handoff among the tools one call is made, since AutoGen acts on the first only; unless asked otherwise."""

    def transfer_to_bob() -> str:
        """Hand over to Bob."""
        return ""

    hand = FunctionTool(transfer_to_bob, description="Hand over.")
    both = Message("assistant", tool_calls=(ToolCall("", "transfer_to_bob", {}), ToolCall("", "turn", {"angle": 1})))
    result = await scripted(both).create(HELLO, tools=[hand, TURN])
    assert [each.name for each in result.content if isinstance(each, FunctionCall)] == ["transfer_to_bob"]
    result = await scripted(both, parallel_tool_calls=True).create(HELLO, tools=[hand, TURN])
    assert len(result.content) == 2


# -- results -------------------------------------------------------------------------------------------------------


async def test_calls(call: Call) -> None:
    """A result has the calls, their ids, and the text beside them as thought."""
    said = Message("assistant", "Let me turn.", tool_calls=call("turn", angle=90).tool_calls)
    result = await scripted(said).create(HELLO, tools=[TURN])
    (made,) = result.content
    assert isinstance(made, FunctionCall)
    assert (made.name, json.loads(made.arguments)) == ("turn", {"angle": 90})
    assert made.id
    assert result.thought is not None
    assert result.thought.strip() == "Let me turn."
    assert result.cached is False


async def test_reasoning_is_the_thought(thinking: Model) -> None:
    """Thinking is the thought of the result, and never streamed as text."""
    client = ToolGrammarChatCompletionClient(model=thinking)
    *pieces, last = [piece async for piece in client.create_stream(HELLO)]
    assert isinstance(last, CreateResult)
    assert (last.thought, last.content, "".join(map(str, pieces))) == ("2 and 2", "Four.", "Four.")
    assert (await client.create(HELLO)).thought == "2 and 2"


async def test_cut_call_does_not_parse(call: Call) -> None:
    """A call that the budget cut is valid JSON, and is handed over in a form that AutoGen does not run."""
    result = await scripted(call("note", text="x" * 500), max_tokens=100).create(HELLO, tools=[NOTE])
    assert result.finish_reason == "length"
    (made,) = result.content
    assert isinstance(made, FunctionCall)
    with pytest.raises(json.JSONDecodeError):
        json.loads(made.arguments)
    assert "cut short by the token budget at /text" in made.arguments


@pytest.mark.parametrize("tools", [[], [TURN]])
async def test_json_output(tools: list[Any]) -> None:
    """A class, or any JSON object, is enforced, with tools and without; half an answer is an error."""
    said = '{"value": 1, "children": [{"value": 2, "children": []}]}'
    result = await scripted(said).create(HELLO, tools=tools, json_output=Tree)
    assert Tree.model_validate_json(str(result.content)).children[0].value == 2
    result = await scripted('{"free": [1]}').create(HELLO, tools=tools, json_output=True)
    assert json.loads(str(result.content)) == {"free": [1]}
    with pytest.raises(BudgetError, match="children"):
        await scripted(said, max_tokens=40).create(HELLO, tools=tools, json_output=Tree)
    assert (await scripted("Free.").create(HELLO, tools=tools, json_output=False)).content == "Free."


@pytest.mark.parametrize("seed", range(4))
async def test_stream_equals_result(noise: Model, seed: int) -> None:
    """The pieces of a stream add up to the text of the result, and the result is that of create, ids apart."""
    client = ToolGrammarChatCompletionClient(model=noise, temperature=1.0, seed=seed, max_tokens=40)
    whole = await client.create(HELLO, tools=[TURN])
    *pieces, last = [piece async for piece in client.create_stream(HELLO, tools=[TURN])]
    assert isinstance(last, CreateResult)
    if isinstance(whole.content, str):
        assert "".join(map(str, pieces)) == whole.content == last.content
    assert (last.finish_reason, last.usage) == (whole.finish_reason, whole.usage)


async def test_calls_are_not_streamed(call: Call) -> None:
    """AutoGen shows what is streamed to people: calls are in the last piece only."""
    pieces = [piece async for piece in scripted(call("turn", angle=1)).create_stream(HELLO, tools=[TURN])]
    (last,) = pieces
    assert isinstance(last, CreateResult)
    assert isinstance(last.content[0], FunctionCall)


@pytest.mark.parametrize("seed", range(5))
async def test_calls_validate(noise: Model, seed: int) -> None:
    """Noise at temperature 1: every call that parses validates against its tool."""
    client = ToolGrammarChatCompletionClient(model=noise, temperature=1.0, seed=seed, max_tokens=60)
    result = await client.create(HELLO, tools=[TURN, GROW], tool_choice="required")
    tools = ToolSet.from_any([openai_tool(TURN), openai_tool(GROW)])
    assert result.content
    for each in result.content:
        assert isinstance(each, FunctionCall)
        if "<cut short" not in each.arguments:
            tools.validate({"name": each.name, "arguments": json.loads(each.arguments)})


# -- cancelling ----------------------------------------------------------------------------------------------------


async def test_cancelling(noise: Model) -> None:
    """A cancelled token ends a call soon, and the model is free again."""
    client = ToolGrammarChatCompletionClient(model=noise, temperature=1.0, seed=1, max_tokens=2000)
    token = CancellationToken()
    asyncio.get_running_loop().call_later(0.1, token.cancel)
    start = time.monotonic()
    with pytest.raises(asyncio.CancelledError):
        await client.create(HELLO, cancellation_token=token)
    assert time.monotonic() - start < 5
    assert (await client.create(HELLO, extra_create_args={"max_tokens": 2})).content


async def test_cancelling_a_stream(noise: Model) -> None:
    """A cancelled token ends a stream soon, without a result."""
    client = ToolGrammarChatCompletionClient(model=noise, temperature=1.0, seed=1, max_tokens=2000)
    token = CancellationToken()
    stream = client.create_stream(HELLO, cancellation_token=token)
    assert isinstance(await stream.__anext__(), str)
    token.cancel()
    with pytest.raises(asyncio.CancelledError) as caught:
        assert len([piece async for piece in stream]) == 0
    assert not isinstance(caught.value, Exception)  # no handler of errors swallows it


async def test_cancelled_before_it_begins() -> None:
    """A token that is already cancelled makes no call."""
    token = CancellationToken()
    token.cancel()
    with pytest.raises(asyncio.CancelledError):
        await scripted("x").create(HELLO, cancellation_token=token)


async def test_conversations_do_not_mix(call: Call) -> None:
    """Eight conversations at once: each gets its own answer, and cancelling two of them disturbs no other."""

    def script(messages: Sequence[Message]) -> Message:
        return call("turn", angle=int(messages[-1].text))

    client = ToolGrammarChatCompletionClient(model=ScriptedModel(script))
    tokens = [CancellationToken() for _ in range(8)]
    tasks = [
        asyncio.create_task(
            client.create([UserMessage(content=str(n), source="u")], tools=[TURN], cancellation_token=tokens[n])
        )
        for n in range(8)
    ]
    await asyncio.sleep(0.02)
    tokens[2].cancel()
    tokens[5].cancel()
    results = await asyncio.gather(*tasks, return_exceptions=True)
    for number, result in enumerate(results):
        if isinstance(result, CreateResult):
            made = result.content[0]
            assert isinstance(made, FunctionCall)
            assert json.loads(made.arguments) == {"angle": number}
        else:
            assert number in (2, 5)
            assert isinstance(result, asyncio.CancelledError)


# -- the client ----------------------------------------------------------------------------------------------------


async def test_usage_and_counting(noise: Model) -> None:
    """Tokens are counted by the model; what remains may be negative, which is what makes contexts trim."""
    client = ToolGrammarChatCompletionClient(model=noise, max_tokens=3)
    result = await client.create(HELLO)
    again = await client.create(HELLO)
    total = client.total_usage()
    assert total.prompt_tokens == result.usage.prompt_tokens + again.usage.prompt_tokens
    assert client.actual_usage() == total
    assert result.usage.prompt_tokens == client.count_tokens(HELLO)
    assert client.count_tokens(HELLO, tools=[TURN]) > client.count_tokens(HELLO) + 20
    assert client.count_tokens([]) == 0
    long = [UserMessage(content="word " * 5000, source="u")]
    assert client.remaining_tokens(long) < 0
    assert client.remaining_tokens(HELLO) == noise.context_window - client.count_tokens(HELLO)
    context = TokenLimitedChatCompletionContext(client)
    for message in (*long, *HELLO):
        await context.add_message(message)
    assert client.remaining_tokens(await context.get_messages()) >= 0


async def test_events_are_logged(caplog: pytest.LogCaptureFixture) -> None:
    """Calls and streams are logged as AutoGen's own clients log them."""
    caplog.set_level(logging.INFO, logger=EVENT_LOGGER_NAME)
    client = scripted("one", "two")
    await client.create(HELLO)
    assert [piece async for piece in client.create_stream(HELLO)]
    assert [type(record.msg) for record in caplog.records] == [LLMCallEvent, LLMStreamStartEvent, LLMStreamEndEvent]
    assert json.loads(str(caplog.records[0].msg))["response"]["content"] == "one"


async def test_component() -> None:
    """A client of a named model is data and comes back from it; one around a loaded model says that it cannot."""
    client = ToolGrammarChatCompletionClient("embedded", options={"seed": 5}, temperature=1.0, seed=3, max_tokens=5)
    config = client.dump_component()
    json.loads(config.model_dump_json())
    again = ChatCompletionClient.load_component(config)
    assert isinstance(again, ToolGrammarChatCompletionClient)
    assert (await again.create(HELLO)).content == (await client.create(HELLO)).content
    with pytest.raises(ModelError, match="component"):
        scripted("x").dump_component()


async def test_model_info() -> None:
    """The client says that it calls functions and follows schemas."""
    client = scripted("x")
    assert client.model_info["function_calling"]
    assert client.model_info["structured_output"]
    with pytest.warns(DeprecationWarning, match="model_info"):
        assert client.capabilities["json_output"]
    await client.close()


# -- agents --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("stream", [False, True])
async def test_agent_reflects(call: Call, stream: bool) -> None:
    """An agent runs its tool, and tells the result in the words of a second call, which has no tools."""
    RAN.clear()
    client = scripted(call("turn", angle=90, axis="y"), "It has turned.")
    agent = AssistantAgent(
        "agent", model_client=client, tools=[turn], reflect_on_tool_use=True, model_client_stream=stream
    )
    messages = [message async for message in agent.run_stream(task="turn it")]
    answers = [message for message in messages if isinstance(message, TextMessage) and message.source == "agent"]
    assert [answer.content for answer in answers] == ["It has turned."]
    assert RAN == [{"angle": 90, "axis": "y", "fast": False}]
    pieces = [message.content for message in messages if isinstance(message, ModelClientStreamingChunkEvent)]
    assert "".join(pieces) == ("It has turned." if stream else "")


async def test_agent_answers_as_object(call: Call) -> None:
    """With an output type the agent calls its tool first and then answers as an instance."""
    client = scripted(call("grow", tree={"value": 3, "children": [{"value": 1}]}), '{"value": 3, "children": []}')
    agent = AssistantAgent("agent", model_client=client, tools=[grow], output_content_type=Tree)
    final = (await agent.run(task="grow it")).messages[-1]
    assert isinstance(final, StructuredMessage)
    assert final.content == Tree(value=3)


async def test_agent_reports_a_cut_call(call: Call) -> None:
    """A cut call does not run; the model is told that it failed."""
    model = ScriptedModel([call("note", text="x" * 500), "Sorry."])
    client = ToolGrammarChatCompletionClient(model=model, max_tokens=100)
    agent = AssistantAgent("agent", model_client=client, tools=[note], reflect_on_tool_use=True)
    result = await agent.run(task="note it")
    assert isinstance(result.messages[-1], TextMessage)
    assert model.requests[1][-1].is_error


class Demanding(ToolGrammarChatCompletionClient):
    """Demands a call whenever there are tools; agents never do."""

    async def create(self, messages: Any, *, tools: Any = (), **arguments: Any) -> CreateResult:
        """Answer with a call."""
        arguments["tool_choice"] = "required" if tools else "auto"
        return await super().create(messages, tools=tools, **arguments)


@pytest.mark.parametrize("seed", range(5))
async def test_agent_of_noise(noise: Model, seed: int) -> None:
    """An agent of noise: the tools that run are given arguments that validate."""
    RAN.clear()
    client = Demanding(model=noise, temperature=1.0, seed=seed, max_tokens=60, parallel_tool_calls=False)
    agent = AssistantAgent("agent", model_client=client, tools=[turn])
    assert (await agent.run(task="turn it")).messages
    (arguments,) = RAN
    assert type(arguments["angle"]) is int
    assert arguments["axis"] in ("x", "y")
    assert type(arguments["fast"]) is bool


async def test_what_is_no_tool_of_autogen() -> None:
    """A function is a tool, as for its agents; what is none is an error of ours."""
    client = ToolGrammarChatCompletionClient(model=ScriptedModel(lambda _: "x"), max_tokens=50)
    assert openai_tool(turn)["function"]["name"] == "turn"  # type: ignore[arg-type]
    with pytest.raises(SchemaError):
        await client.create(HELLO, tools=[None])  # type: ignore[list-item]
    with pytest.warns(UserWarning, match="is not a tool"):  # a workbench's schema is left out with a warning
        await client.create(HELLO, tools=[{}])  # type: ignore[typeddict-item]
