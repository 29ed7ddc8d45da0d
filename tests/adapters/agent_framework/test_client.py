"""The chat client for Microsoft Agent Framework: requests in, responses and streams out, agents and workflows around it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pytest

pytest.importorskip("agent_framework", reason="agent-framework-core is not installed")

from agent_framework import (
    ChatMiddleware,
    ChatResponse,
    Content,
    FunctionTool,
    SlidingWindowStrategy,
    WorkflowBuilder,
)
from agent_framework import Message as FrameworkMessage
from agent_framework.exceptions import ChatClientException, ChatClientInvalidRequestException

from toolgrammar.adapters.agent_framework import ToolGrammarChatClient
from toolgrammar.adapters.agent_framework.messages import openai_tool, to_messages
from toolgrammar.core import (
    BudgetError,
    ContextOverflowError,
    ImagePart,
    Message,
    Model,
    ModelError,
    TextPart,
    ToolCall,
    UnknownToolError,
)
from toolgrammar.core.testing import ScriptedModel
from toolgrammar.tools import ToolSet

from ..shared_parts import FAR_PNG, PNG, PNG_ADDRESS, Tree, are_one_image

Call = Callable[..., Message]

pytestmark = pytest.mark.asyncio

HELLO = [FrameworkMessage("user", ["hello"])]


RAN: list[dict[str, Any]] = []


def turn(angle: int = 90, fast: bool = False, note: str = "") -> str:
    """Turn."""
    RAN.append({"angle": angle, "fast": fast, "note": note})
    return "turned"


def grow(tree: Tree, sizes: dict[str, int]) -> str:
    """Grow."""
    RAN.append({"tree": tree, "sizes": sizes})
    return "grown"


@pytest.fixture(autouse=True)
def _fresh() -> None:
    """No calls from other tests."""
    RAN.clear()


def scripted(*replies: str | Message, **options: Any) -> ToolGrammarChatClient:
    """A client that says these replies."""
    return ToolGrammarChatClient(model=ScriptedModel(replies), default_options={"max_tokens": 2000, **options})


def calls_of(response: ChatResponse[Any]) -> list[Content]:
    """The calls in a response."""
    return [each for message in response.messages for each in message.contents if each.type == "function_call"]


# -- requests ------------------------------------------------------------------------------------------------------


async def test_messages() -> None:
    """Instructions, texts, images, thinking, calls and their results become ours, results under their tool's name."""
    call = Content.from_function_call("c1", "turn", arguments='{"angle": 1}')
    messages = to_messages(
        [
            FrameworkMessage("user", ["see", Content.from_data(b"\x89PNG", "image/png")], author_name="ann"),
            FrameworkMessage("assistant", [Content.from_text_reasoning(text="hm"), call]),
            FrameworkMessage("tool", [Content.from_function_result("c1", result="no", exception="it broke")]),
            FrameworkMessage("assistant", ["done"]),
        ],
        "Be brief.",
    )
    assert messages == [
        Message("system", "Be brief."),
        Message("user", (TextPart("see"), ImagePart(data=b"\x89PNG", media_type="image/png")), name="ann"),
        Message("assistant", reasoning="hm", tool_calls=(ToolCall("c1", "turn", {"angle": 1}, raw='{"angle": 1}'),)),
        Message("tool", "no", tool_call_id="c1", name="turn", is_error=True),
        Message("assistant", "done"),
    ]
    with pytest.raises(ModelError, match="audio/wav"):
        to_messages([FrameworkMessage("user", [Content.from_data(b"x", "audio/wav")])])


async def test_every_form_of_an_image_is_one_part() -> None:
    """Data and addresses, in a message and in the result of a tool, which has its texts too."""
    near = [Content.from_data(PNG, "image/png"), Content.from_uri(PNG_ADDRESS, media_type="image/png")]
    contents = [*near, Content.from_uri(FAR_PNG, media_type="image/png")]
    result = Content.from_function_result("c1", result=[Content.from_text("a"), *contents, Content.from_text("b")])
    for made in (FrameworkMessage("user", contents), FrameworkMessage("tool", [result])):
        assert are_one_image(to_messages([made]), 2, 1)
    (answer,) = to_messages([FrameworkMessage("tool", [result])])
    assert answer.role == "tool" and answer.text == "ab"


async def test_schemas_are_whole() -> None:
    """Recursion and maps of a tool survive, and objects are closed."""
    tools = ToolSet.from_any([openai_tool(FunctionTool(name="grow", description="Grow.", func=grow))])
    good = {"tree": {"value": 1, "children": [{"value": 2, "children": []}]}, "sizes": {"a": 1}}
    tools.validate({"name": "grow", "arguments": good})
    for bad in ({**good, "sizes": {"a": "1"}}, {**good, "more": 1}, {**good, "tree": {"value": 1, "children": [3]}}):
        with pytest.raises(ValueError, match="grow"):
            tools.validate({"name": "grow", "arguments": bad})


@pytest.mark.parametrize(
    ("choice", "called"),
    [
        ("auto", None),
        ("none", None),
        ("required", "turn"),
        ({"mode": "required", "required_function_name": "grow"}, "grow"),
        ({"mode": "required", "allowed_tools": ["grow"]}, "grow"),
    ],
)
async def test_tool_choice(choice: Any, called: str | None) -> None:
    """A demanded call comes, of the tool or of one of the tools that are allowed."""
    wish = 'No. {"name": "turn", "arguments": {"angle": 5}}'
    client = ToolGrammarChatClient(
        model=ScriptedModel([wish]),
        function_invocation_configuration={"enabled": False},
        default_options={"max_tokens": 300, "allow_multiple_tool_calls": False},
    )
    response = await client.get_response(HELLO, options={"tools": [turn, grow], "tool_choice": choice})
    assert [each.name for each in calls_of(response)] == ([] if called is None else [called])


async def test_impossible_requests_are_the_frameworks_errors() -> None:
    """What cannot be done is the framework's error and ours; a misspelt option is one when the client is made."""
    with pytest.raises(UnknownToolError, match="fly") as caught:
        await scripted("x").get_response(
            HELLO, options={"tools": [turn], "tool_choice": {"mode": "required", "required_function_name": "fly"}}
        )
    assert isinstance(caught.value, ChatClientInvalidRequestException)
    with pytest.raises(ContextOverflowError) as overflow:
        await ToolGrammarChatClient(model=ScriptedModel(["x"], context_window=20)).get_response(
            [FrameworkMessage("user", ["word " * 50])]
        )
    assert isinstance(overflow.value, ChatClientException)
    with pytest.raises(ModelError, match="temprature"):
        scripted("x", temprature=0)
    with pytest.raises(ModelError, match="presence_penalty"):
        await scripted("x").get_response(HELLO, options={"presence_penalty": 1.0})


async def test_options_of_a_call_win() -> None:
    """Options of one call win over those of the client; a stop string ends the text."""
    client = scripted("one two three", "one two three", stop="two")
    assert (await client.get_response(HELLO)).text == "one"  # the framework strips
    assert (await client.get_response(HELLO, options={"stop": ["three"]})).text == "one two"


# -- responses -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("tools", [[], [turn]])
async def test_response_format(tools: list[Any]) -> None:
    """A class, a schema and an envelope are enforced, with tools and without; half an answer is an error."""
    said = '{"value": 1, "children": [{"value": 2, "children": []}]}'
    response = await scripted(said).get_response(HELLO, options={"tools": tools, "response_format": Tree})
    assert response.value == Tree(value=1, children=[Tree(value=2)])
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    for asked in (schema, {"type": "json_schema", "json_schema": {"name": "n", "schema": schema}}):
        response = await scripted('{"n": 7}').get_response(HELLO, options={"tools": tools, "response_format": asked})
        assert json.loads(response.text) == {"n": 7}
    with pytest.raises(BudgetError, match="children"):
        await scripted(said, max_tokens=40).get_response(HELLO, options={"tools": tools, "response_format": Tree})


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("choice", ["auto", "required"])
async def test_stream_equals_response(noise: Model, seed: int, choice: str) -> None:
    """Joined, a stream is the response: contents, finish reason, usage; ids apart."""
    client = ToolGrammarChatClient(
        model=noise,
        function_invocation_configuration={"enabled": False},
        default_options={"temperature": 1.0, "seed": seed, "max_tokens": 50, "tools": [turn], "tool_choice": choice},
    )

    def told(response: ChatResponse[Any]) -> Any:
        contents = [each for message in response.messages for each in message.contents if each.type != "usage"]
        shown = [(each.type, each.text, each.name, each.arguments, each.informational_only) for each in contents]
        usage = dict(response.usage_details or {})
        usage.pop("cache_read_input_token_count")  # the second request finds the prompt of the first
        return shown, response.finish_reason, usage

    whole = await client.get_response(HELLO)
    stream = client.get_response(HELLO, stream=True)
    pieces = [update.text async for update in stream]
    final = await stream.get_final_response()
    assert told(final) == told(whole)
    assert "".join(pieces).strip() == whole.text  # the framework strips


async def test_reasoning(thinking: Model) -> None:
    """Thinking is content of its own, and no part of the text."""
    client = ToolGrammarChatClient(model=thinking)
    response = await client.get_response(HELLO)
    assert [each.text for each in response.messages[0].contents] == ["2 and 2", "Four."]
    assert response.text == "Four."
    final = await client.get_response(HELLO, stream=True).get_final_response()
    assert final.text == "Four."


@pytest.mark.parametrize("stream", [False, True])
async def test_cut_call_does_not_run(call: Call, stream: bool) -> None:
    """A cut call is there for the record, with the reason; the framework would run it with the tool's defaults."""
    client = scripted(call("turn", angle=1, note="x" * 500), max_tokens=120)
    agent = client.as_agent(name="agent", tools=[turn])
    if stream:
        result = await agent.run("turn it", stream=True).get_final_response()
    else:
        result = await agent.run("turn it")
    (made,) = [each for message in result.messages for each in message.contents if each.type == "function_call"]
    assert made.informational_only
    assert made.exception == "cut short by the token budget at /note"
    assert RAN == []
    assert result.finish_reason == "length"


@pytest.mark.parametrize("seed", range(4))
async def test_calls_validate(noise: Model, seed: int) -> None:
    """Noise at temperature 1: every call that may run validates against its tool."""
    client = ToolGrammarChatClient(
        model=noise,
        function_invocation_configuration={"enabled": False},
        default_options={"temperature": 1.0, "seed": seed, "max_tokens": 60, "tool_choice": "required"},
    )
    response = await client.get_response(HELLO, options={"tools": [turn, grow]})
    tools = ToolSet.from_any([openai_tool(FunctionTool(name=each.__name__, func=each)) for each in (turn, grow)])
    made = calls_of(response)
    assert made
    for each in made:
        if not each.informational_only:
            tools.validate({"name": each.name, "arguments": json.loads(str(each.arguments))})


# -- agents and workflows ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("stream", [False, True])
async def test_agent(call: Call, stream: bool) -> None:
    """An agent runs two calls of one turn, and answers as an instance; its session remembers."""
    both = Message("assistant", tool_calls=(*call("turn", angle=1).tool_calls, *call("turn", fast=True).tool_calls))
    model = ScriptedModel([both, '{"value": 2, "children": []}', '{"value": 3, "children": []}'])
    client = ToolGrammarChatClient(model=model, default_options={"max_tokens": 2000})
    agent = client.as_agent(name="agent", instructions="Turn.", tools=[turn])
    session = agent.create_session()
    options: Any = {"response_format": Tree}
    if stream:
        result = await agent.run("turn it", stream=True, session=session, options=options).get_final_response()
    else:
        result = await agent.run("turn it", session=session, options=options)
    assert result.value == Tree(value=2)
    assert [ran["angle"] for ran in RAN] == [1, 90]
    again = await agent.run("and again", session=session, options=options)
    assert again.value == Tree(value=3)
    assert [message.role for message in model.requests[-1]] == [
        "system", "user", "assistant", "tool", "tool", "assistant", "user",
    ]  # fmt: skip


async def test_an_agent_as_a_tool(call: Call) -> None:
    """One agent calls another as its tool."""
    helper = scripted("Five.").as_agent(name="helper", description="Counts.")
    client = scripted(call("helper", task="Count."), "The helper says five.")
    agent = client.as_agent(name="boss", tools=[helper.as_tool()])
    assert (await agent.run("count")).text == "The helper says five."


async def test_workflow() -> None:
    """Two agents in a workflow: the second reads what the first said."""
    second = ScriptedModel(["It is five."])
    writer = scripted("Five.").as_agent(name="writer")
    editor = ToolGrammarChatClient(model=second).as_agent(name="editor")
    workflow = WorkflowBuilder(start_executor=writer).add_edge(writer, editor).build()
    outputs = (await workflow.run("count")).get_outputs()
    assert "It is five." in "".join(str(getattr(output, "text", output)) for output in outputs)
    assert any("Five." in message.text for message in second.requests[0])


async def test_middleware_and_compaction(call: Call) -> None:
    """Chat middleware sees each call of the model; a strategy that drops messages counts by the model's tokenizer."""
    seen: list[int] = []

    class Look(ChatMiddleware):
        async def process(self, context: Any, call_next: Any) -> None:
            seen.append(len(context.messages))
            await call_next()

    model = ScriptedModel([call("turn", angle=1), "Done."])
    client = ToolGrammarChatClient(
        model=model, middleware=[Look()], compaction_strategy=SlidingWindowStrategy(keep_last_groups=1)
    )
    assert (await client.as_agent(name="agent", tools=[turn]).run("turn it")).text == "Done."
    assert len(seen) == 2
    assert client.tokenizer is not None
    assert client.tokenizer.count_tokens("five!") == len(model.backend.encode("five!"))


# -- the client ----------------------------------------------------------------------------------------------------


async def test_counting_and_data(noise: Model) -> None:
    """Tokens are counted by the model; a client as data names the model, and holds no live object."""
    client = ToolGrammarChatClient(model=noise, default_options={"max_tokens": 3})
    response = await client.get_response(HELLO)
    assert response.usage_details is not None
    assert response.usage_details["input_token_count"] == client.get_token_count(HELLO)
    assert client.get_token_count(HELLO, [turn]) > client.get_token_count(HELLO) + 20
    assert json.loads(json.dumps(client.to_dict()))["model"] == "embedded"
    assert response.model == "embedded"


async def test_cancelling(noise: Model) -> None:
    """Cancelling the task stops the model; it is free again at once."""
    client = ToolGrammarChatClient(model=noise, default_options={"temperature": 1.0, "seed": 1, "max_tokens": 2000})
    task = asyncio.ensure_future(client.get_response(HELLO))
    await asyncio.sleep(0.1)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(task, timeout=5)
    assert (await client.get_response(HELLO, options={"max_tokens": 2})).text


async def test_fifty_conversations(call: Call) -> None:
    """Fifty agents' turns at once, ten cancelled: each of the others gets its own answer, and no task is left."""

    def script(messages: Sequence[Message]) -> Message | str:
        if messages[-1].role == "tool":
            return f"{messages[-2].tool_calls[0].arguments['angle']} done"
        return call("turn", angle=int(messages[-1].text))

    client = ToolGrammarChatClient(model=ScriptedModel(script))
    agent = client.as_agent(name="agent", tools=[turn])
    before = len(asyncio.all_tasks())
    tasks = [asyncio.create_task(agent.run(str(number))) for number in range(50)]
    await asyncio.sleep(0.05)
    for number in range(0, 50, 5):
        tasks[number].cancel()
    results = await asyncio.gather(*tasks, return_exceptions=True)
    for number, result in enumerate(results):
        if isinstance(result, BaseException):
            assert number % 5 == 0 and isinstance(result, asyncio.CancelledError)
        else:
            assert result.text == f"{number} done"
    assert len(asyncio.all_tasks()) == before


@dataclass
class Sized:
    """A thing of some size."""

    size: int


async def test_response_formats_that_are_no_pydantic_class() -> None:
    """OpenAI's format of a free text is free; a dataclass gives a JSON value."""
    free = ToolGrammarChatClient(model=ScriptedModel(lambda _: "Hello there."))
    answer = await free.get_response(HELLO, options={"response_format": {"type": "text"}, "max_tokens": 50})
    assert answer.text == "Hello there."
    sized = ToolGrammarChatClient(model=ScriptedModel(lambda _: '{"size": 1}'))
    options: Any = {"response_format": Sized, "max_tokens": 50}
    assert (await sized.get_response(HELLO, options=options)).value == {"size": 1}
