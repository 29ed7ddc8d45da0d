"""The configuration for AG2: events in, responses and streams out, agents around it."""

from __future__ import annotations

import asyncio
import json
from typing import Annotated, Any

import pytest
from pydantic import BaseModel, Field

pytest.importorskip("ag2", reason="ag2 is not installed")

from ag2 import Agent, MemoryStream, PromptedSchema, ResponseSchema, tool
from ag2.events import (
    BinaryInput,
    BinaryType,
    DataInput,
    ImageInput,
    ModelMessage,
    ModelMessageChunk,
    ModelReasoning,
    ModelRequest,
    ModelResponse,
    TextInput,
    ToolCallEvent,
    ToolCallsEvent,
    ToolErrorEvent,
    ToolResult,
    ToolResultEvent,
    ToolResultsEvent,
    UrlInput,
)
from ag2.exceptions import UnsupportedToolError

from toolgrammar.adapters.ag2 import ToolGrammarConfig
from toolgrammar.adapters.ag2.messages import to_messages, to_tool
from toolgrammar.core import (
    BudgetError,
    ImagePart,
    Message,
    Model,
    ModelError,
    TextPart,
    ToolCall,
    UnsupportedSchemaError,
)
from toolgrammar.core.testing import ScriptedModel

from ..shared_parts import FAR_PNG, PNG, PNG_ADDRESS, Even, Tree, are_one_image

pytestmark = pytest.mark.asyncio

RAN: list[dict[str, Any]] = []


@tool
def grow(tree: Tree, sizes: dict[str, int]) -> str:
    """Grow a tree."""
    RAN.append({"tree": tree, "sizes": sizes})
    return "grown"


@tool
def fail(why: str) -> str:
    """Fail."""
    raise ValueError(why)


class JsonBytes:
    """A serializer as AG2's agents have it."""

    @staticmethod
    def encode(value: Any) -> bytes:
        """Return the JSON of a value."""
        return json.dumps(value).encode()


class Context:
    """What a client needs of AG2's context."""

    prompt: tuple[str, ...] = ()

    async def send(self, event: Any) -> None:
        """Take an event."""


def call_of(name: str, **arguments: Any) -> Message:
    """An answer that is a call."""
    return Message("assistant", tool_calls=(ToolCall("", name, arguments),))


def scripted(*replies: str | Message, **arguments: Any) -> ToolGrammarConfig:
    """A configuration whose model says these replies."""
    return ToolGrammarConfig(ScriptedModel(replies), **{"max_tokens": 2000, **arguments})


@pytest.fixture(autouse=True)
def _fresh() -> None:
    RAN.clear()


def kept(stream: MemoryStream, kind: type) -> list[Any]:
    """The events of a kind that a stream gets from now on."""
    found: list[Any] = []

    @stream.where(kind).subscribe
    def keep(event: Any) -> None:
        found.append(event)

    return found


GROWN: dict[str, Any] = {"tree": {"value": 1, "children": [{"value": 2}]}, "sizes": {"oak": 3}}


@pytest.mark.parametrize("streaming", [False, True])
async def test_an_agent_calls_tools_with_their_whole_schemas(streaming: bool) -> None:
    """Recursion and maps arrive; the text after the result is the answer, with the guarantee beside it."""
    config = scripted(call_of("grow", **GROWN), "It has grown.", streaming=streaming)
    stream = MemoryStream()
    pieces, responses = kept(stream, ModelMessageChunk), kept(stream, ModelResponse)
    answer = await Agent("gardener", "Be brief.", config=config, tools=[grow]).ask("Grow.", stream=stream)
    assert await answer.content() == "It has grown."
    assert [{"tree": Tree(value=1, children=[Tree(value=2)]), "sizes": {"oak": 3}}] == RAN
    assert "".join(piece.content for piece in pieces) == ("It has grown." if streaming else "")
    first, last = responses
    assert first.finish_reason == "tool_calls" and last.finish_reason == "stop" and last.provider == "toolgrammar"
    assert last.metadata["guarantee"] == "constrained"
    assert last.usage.total_tokens == last.usage.prompt_tokens + last.usage.completion_tokens > 0


@pytest.mark.parametrize("streaming", [False, True])
async def test_a_response_schema_is_enforced(streaming: bool) -> None:
    """A class, a type that AG2 embeds in an object, and a schema with tools; validators run in AG2."""
    config = scripted('{"value": 4}', '{"value": 3}', '{"data": [1, 2]}', streaming=streaming)
    answer = await Agent("a", config=config, response_schema=Even).ask("x")
    assert await answer.content() == Even(value=4)
    odd = await Agent("a", config=config, response_schema=Even).ask("x")
    with pytest.raises(ValueError, match="must be even"):
        await odd.content()
    listed = await Agent("a", config=config, response_schema=ResponseSchema(list[int])).ask("x")
    assert await listed.content() == [1, 2]


async def test_a_model_of_noise_cannot_leave_the_schema() -> None:
    """Random weights write a valid object."""
    config = ToolGrammarConfig("embedded", max_tokens=400, temperature=1.0, seed=3)
    answer = await Agent("a", config=config, response_schema=Tree).ask("x")
    assert isinstance(await answer.content(), Tree)


async def test_a_prompted_schema_is_a_prompt() -> None:
    """AG2 hides its schema from a client: the text is free, and AG2 validates it."""
    model = ScriptedModel(['{"value": 2}'])
    answer = await Agent("a", config=ToolGrammarConfig(model), response_schema=PromptedSchema(Even)).ask("x")
    assert await answer.content() == Even(value=2)
    assert "JSON schema" in model.requests[0][0].content


@pytest.mark.parametrize("streaming", [False, True])
async def test_a_call_that_the_budget_cut_does_not_run(streaming: bool) -> None:
    """Its arguments do not parse, so AG2 reports it to the model; a cut object is an error."""
    config = ToolGrammarConfig(
        "embedded", max_tokens=40, temperature=1.0, seed=1, tool_choice="grow", streaming=streaming
    )
    request = [ModelRequest([TextInput("x")])]
    response = await config.create()(
        request, Context(), tools=await grow.schemas(None), response_schema=None, serializer=JsonBytes
    )
    (cut,) = response.tool_calls.calls
    assert response.finish_reason == "length"
    assert "cut short" in cut.arguments
    with pytest.raises(json.JSONDecodeError):
        json.loads(cut.arguments)
    short = ToolGrammarConfig("embedded", max_tokens=12, temperature=1.0, seed=1, streaming=streaming)
    with pytest.raises(BudgetError):
        await Agent("a", config=short, response_schema=Tree).ask("x")


async def test_a_conversation_is_translated() -> None:
    """Texts, data, images, calls with their ids, results and errors."""
    image = BinaryInput(b"\x89PNG", media_type="image/png", kind=BinaryType.IMAGE)
    events = [
        ModelRequest([TextInput("look"), DataInput({"a": 1})]),
        ModelRequest([TextInput("at"), image, UrlInput("https://example.org/a.png", kind=BinaryType.IMAGE)]),
        ModelResponse(
            ModelMessage("well"), tool_calls=ToolCallsEvent([ToolCallEvent("grow", id="c1", arguments="{}")])
        ),
        ToolResultsEvent(
            [
                ToolResultEvent(parent_id="c1", name="grow", result=ToolResult("grown", image)),
                ToolErrorEvent(parent_id="c2", name="fail", error=ValueError("no"), result=ToolResult("no")),
            ]
        ),
    ]
    made = to_messages(["be brief"], events, JsonBytes)
    assert [message.role for message in made] == ["system", "user", "user", "assistant", "tool", "tool", "user"]
    assert made[1].content == 'look\n{"a": 1}'
    assert [type(part) for part in made[2].content] == [TextPart, ImagePart, ImagePart]
    assert made[3].content == "well" and made[3].tool_calls[0].id == "c1"
    assert made[4].content == "grown" and made[4].tool_call_id == "c1" and not made[4].is_error
    assert made[5].is_error and made[5].name == "fail"
    assert [type(part) for part in made[6].content] == [ImagePart]
    with pytest.raises(ModelError, match="unsupported input BinaryInput"):
        to_messages([], [ModelRequest([BinaryInput(b"", media_type="audio/wav", kind=BinaryType.AUDIO)])], JsonBytes)


async def test_every_form_of_an_image_is_one_part() -> None:
    """Data and addresses, in a request and in the result of a tool."""
    given = [
        BinaryInput(PNG, media_type="image/png", kind=BinaryType.IMAGE),
        ImageInput(data=PNG, media_type="image/png"),
        ImageInput(PNG_ADDRESS),
        ImageInput(FAR_PNG),
    ]
    result = ToolResultEvent(parent_id="c1", name="see", result=ToolResult(*given))
    for event in (ModelRequest(given), ToolResultsEvent([result])):
        assert are_one_image(to_messages([], [event], JsonBytes), 3, 1)


async def test_a_failed_tool_is_told_to_the_model() -> None:
    """The next request has its error as a result."""
    model = ScriptedModel([call_of("fail", why="rain"), "Sorry."])
    answer = await Agent("a", config=ToolGrammarConfig(model), tools=[fail]).ask("x")
    assert await answer.content() == "Sorry."
    told = model.requests[1][-1]
    assert told.role == "tool" and told.is_error and "rain" in told.content


async def test_wrong_settings_and_tools_are_errors() -> None:
    """At once, with their names."""
    with pytest.raises(ModelError, match="max_tokns"):
        ToolGrammarConfig("embedded", max_tokns=3)
    with pytest.raises(UnsupportedToolError, match="web_search"):
        to_tool(type("Hosted", (), {"type": "web_search"})())

    class Odd(BaseModel):
        text: str

        model_config = {"json_schema_extra": {"pattern": 3}}

    with pytest.raises((UnsupportedSchemaError, ModelError, ValueError)):
        await Agent("a", config=scripted("x"), response_schema=Odd).ask("x")


async def test_copies_share_the_model_unless_it_differs() -> None:
    """So a config of an agent can be changed without another load."""
    config = ToolGrammarConfig("embedded", temperature=0.5)
    warmer = config.copy(temperature=0.9)
    assert warmer._loaded is config._loaded and warmer._params.temperature == 0.9
    assert config._params.temperature == 0.5
    assert config.copy(options={"seed": 4})._loaded is not config._loaded
    assert config.model == "embedded"
    with pytest.raises(NotImplementedError):  # AG2's names of providers have none for ours
        _ = config.provider


@pytest.mark.parametrize("streaming", [False, True])
async def test_a_cancelled_request_ends_the_model(streaming: bool) -> None:
    """The task ends at once, and the model can be used again."""
    config = ToolGrammarConfig("embedded", max_tokens=100_000, temperature=1.0, max_repetition=0, streaming=streaming)
    long = ResponseSchema(
        Annotated[list[int], Field(min_length=1_200)]
    )  # free text may end before the task is cancelled
    agent = Agent("a", config=config, response_schema=long)
    task = asyncio.ensure_future(agent.ask("x"))
    await asyncio.sleep(0.3)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(task, 10)
    again = config.copy(max_tokens=5)
    assert await (await Agent("a", config=again).ask("x")).content() is not None


@pytest.mark.parametrize("streaming", [False, True])
async def test_reasoning_is_an_event_of_its_own(thinking: Model, streaming: bool) -> None:
    """It is sent, and is not part of the answer."""
    stream = MemoryStream()
    thoughts = kept(stream, ModelReasoning)
    config = ToolGrammarConfig(thinking, streaming=streaming)
    answer = await Agent("a", config=config).ask("x", stream=stream)
    assert await answer.content() == "Four."
    assert "".join(each.content for each in thoughts) == "2 and 2"


@pytest.mark.parametrize("streaming", [False, True])
async def test_several_calls_in_a_turn_keep_their_ids(streaming: bool) -> None:
    """Each call has an id, and its result names it."""
    both = Message("assistant", tool_calls=(ToolCall("", "grow", GROWN), ToolCall("", "fail", {"why": "x"})))
    model = ScriptedModel([both, "Done."])
    await Agent("a", config=ToolGrammarConfig(model, streaming=streaming), tools=[grow, fail]).ask("x")
    *_, asked, first, second = model.requests[1]
    assert [call.id for call in asked.tool_calls] == [first.tool_call_id, second.tool_call_id]
    assert len({call.id for call in asked.tool_calls}) == 2
