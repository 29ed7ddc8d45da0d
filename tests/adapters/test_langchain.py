"""The LangChain chat model: requests in, answers out, agents around it."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import Callable, Sequence
from enum import Enum
from typing import Annotated, Any

import pytest
from langchain.agents import create_agent
from langchain.agents.structured_output import ProviderStrategy, ToolStrategy
from langchain_core import exceptions
from langchain_core.caches import InMemoryCache
from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    BaseMessage,
    ChatMessage,
    FunctionMessage,
    HumanMessage,
    RemoveMessage,
    SystemMessage,
    ToolMessage,
    trim_messages,
)
from langchain_core.tools import StructuredTool, Tool, tool
from pydantic import BaseModel, Field
from typing_extensions import TypedDict

from toolgrammar.adapters.langchain import ChatToolGrammar, openai_tool, to_messages
from toolgrammar.core import (
    ContextOverflowError,
    ImagePart,
    Message,
    Model,
    ModelError,
    TextPart,
    ToolCall,
)
from toolgrammar.core.testing import ScriptedModel
from toolgrammar.tools import ToolSet

Call = Callable[..., Message]


class Unit(str, Enum):
    """A unit."""

    celsius = "celsius"
    fahrenheit = "fahrenheit"


class Tree(BaseModel):
    """A tree of numbers."""

    value: int
    children: list[Tree] = []


class Plan(BaseModel):
    """What to plant."""

    tree: Tree
    depth: int = 1


# The schema of a class that contains itself is a reference, and has no title of its own.
TREE_SCHEMA = {"title": "Tree", **Tree.model_json_schema()}


@tool
def set_heat(degrees: int, unit: Unit = Unit.celsius, boost: bool = False) -> str:
    """Set the heat."""
    return f"{degrees} {unit.value}"


def scripted(*replies: str | Message, **fields: Any) -> ChatToolGrammar:
    """A chat model that says these replies."""
    return ChatToolGrammar(model=ScriptedModel(replies), **fields)


def joined(chunks: Sequence[BaseMessage]) -> AIMessageChunk:
    """A stream as one message."""
    total: Any = chunks[0]
    for chunk in chunks[1:]:
        total = total + chunk
    assert isinstance(total, AIMessageChunk)
    return total


# -- requests ------------------------------------------------------------------------------------------------------


def test_messages() -> None:
    """Every kind of message that LangChain has becomes one of ours, nothing of it lost."""
    url = "data:image/png;base64," + base64.b64encode(b"x").decode()
    thinking = {"reasoning_content": "hm"}
    calls = [{"name": "f", "args": {"x": 1}, "id": "c1"}]
    broken = [{"name": "g", "args": '{"x"', "id": "c2", "error": "cut"}]
    messages = [
        SystemMessage("be brief"),
        HumanMessage([{"type": "text", "text": "see"}, {"type": "image_url", "image_url": {"url": url}}], name="ann"),
        AIMessage("calling", tool_calls=calls, invalid_tool_calls=broken, additional_kwargs=thinking),
        ToolMessage("no", tool_call_id="c1", name="f", status="error", artifact=object()),
        ChatMessage("hello", role="developer"),
        FunctionMessage("5", name="g"),
    ]
    g = ToolCall("c2", "g", {}, raw='{"x"', error="the arguments are not a JSON object")
    assert to_messages(messages) == [
        Message("system", "be brief"),
        Message("user", (TextPart("see"), ImagePart(data=b"x", media_type="image/png")), name="ann"),
        Message("assistant", "calling", reasoning="hm", tool_calls=(ToolCall("c1", "f", {"x": 1}), g)),
        Message("tool", "no", tool_call_id="c1", name="f", is_error=True),
        Message("system", "hello"),
        Message("tool", "5", name="g"),
    ]


def test_removal_is_refused() -> None:
    """A message that is an instruction to LangGraph cannot be sent to a model."""
    with pytest.raises(ModelError, match="remove"):
        to_messages([RemoveMessage(id="1")])


class Settings(TypedDict):
    """Settings."""

    depth: Annotated[int, ..., "how deep"]


def plain(x: int, labels: dict[str, int]) -> int:
    """Add.

    Args:
        x: the number
        labels: by name
    """
    return x


def parameters(source: Any) -> dict[str, Any]:
    """The schema that the model gets of a tool."""
    made = openai_tool(source)
    result: dict[str, Any] = made["function"]["parameters"]
    return result


def test_tools_keep_their_schemas() -> None:
    """Recursion, maps and optional arguments survive, which LangChain's own conversion loses."""
    grow = StructuredTool.from_function(lambda tree: "", name="grow", description="Grow.", args_schema=Plan)
    assert "$ref" in json.dumps(parameters(grow))
    assert parameters(plain)["properties"]["labels"]["additionalProperties"] == {"type": "integer"}
    assert parameters(set_heat)["required"] == ["degrees"]


@pytest.mark.parametrize(
    ("source", "name", "properties"),
    [
        (set_heat, "set_heat", ["degrees", "unit", "boost"]),
        (Plan, "Plan", ["tree", "depth"]),
        (Settings, "Settings", ["depth"]),
        (plain, "plain", ["x", "labels"]),
        (Tool(name="search", func=str, description="Search."), "search", ["__arg1"]),
        ({"title": "T", "type": "object", "properties": {"a": {}}}, "T", ["a"]),
        ({"name": "a", "description": "", "input_schema": {"type": "object", "properties": {"b": {}}}}, "a", ["b"]),
        ({"type": "function", "function": {"name": "o", "parameters": {"properties": {"c": {}}}}}, "o", ["c"]),
    ],
)
def test_tool_forms(source: Any, name: str, properties: list[str]) -> None:
    """Tools are taken in every form that LangChain and the providers have."""
    assert openai_tool(source)["function"]["name"] == name
    assert list(parameters(source)["properties"]) == properties


def test_server_tools_are_refused() -> None:
    """A tool that runs at a provider cannot run here, and the error says so."""
    with pytest.raises(exceptions.ModelInvalidRequestError, match="web_search"):
        scripted("x").bind_tools([{"type": "web_search"}])


@pytest.mark.parametrize(
    ("choice", "calls"),
    [
        (None, 0),
        (False, 0),
        ("auto", 0),
        ("none", 0),
        ("any", 1),
        ("required", 1),
        (True, 1),
        ("set_heat", 1),
        ({"type": "function", "function": {"name": "set_heat"}}, 1),
        ({"type": "tool", "name": "set_heat"}, 1),
        ({"type": "any"}, 1),
    ],
)
def test_tool_choice(choice: Any, calls: int) -> None:
    """A demanded call comes, whatever the model wants to say; a free choice is the model's."""
    wish = 'No. {"name": "set_heat", "arguments": {"degrees": 5}}'
    answer = scripted(wish).bind_tools([set_heat], tool_choice=choice, parallel_tool_calls=False).invoke("hello")
    assert len(answer.tool_calls) == calls
    assert bool(answer.text) == (calls == 0)


def test_unknown_choice_is_refused() -> None:
    """A choice that is no tool is an error when it is bound, not silently the model's choice."""
    with pytest.raises(exceptions.ModelInvalidRequestError, match="nothing"):
        scripted("x").bind_tools([set_heat], tool_choice="nothing")
    with pytest.raises(exceptions.ModelInvalidRequestError, match="no tools"):
        scripted("x").bind_tools([], tool_choice="any").invoke("hello")


def test_equal_tools_count_once(call: Call) -> None:
    """A class and its own schema under one name are one tool; two different tools are an error."""
    model = scripted(call("Tree", value=1)).bind_tools([Tree, TREE_SCHEMA])
    assert model.invoke("grow").tool_calls[0]["args"] == {"value": 1}
    other = {"title": "Tree", "type": "object", "properties": {"leaf": {"type": "string"}}}
    with pytest.raises(exceptions.ModelInvalidRequestError, match="Tree"):
        scripted("x").bind_tools([Tree, other]).invoke("grow")


def test_unknown_argument_is_refused() -> None:
    """A misspelt generation argument is an error; it would otherwise change nothing, unseen."""
    with pytest.raises(exceptions.ModelInvalidRequestError, match="temprature"):
        scripted("x").invoke("hello", temprature=0)


# -- answers -------------------------------------------------------------------------------------------------------


def test_answer(call: Call) -> None:
    """An answer has its call, the counts, and how much of it the grammar wrote."""
    answer = scripted(call("set_heat", degrees=20)).bind_tools([set_heat]).invoke("warm, please")
    assert isinstance(answer, AIMessage)
    assert [(each["name"], each["args"]) for each in answer.tool_calls] == [("set_heat", {"degrees": 20})]
    assert answer.tool_calls[0]["id"]
    assert answer.usage_metadata is not None
    assert answer.usage_metadata["total_tokens"] == (
        answer.usage_metadata["input_tokens"] + answer.usage_metadata["output_tokens"]
    )
    metadata = answer.response_metadata
    assert (metadata["finish_reason"], metadata["model_name"]) == ("tool_calls", "scripted")
    assert metadata["model_provider"] == "toolgrammar"
    assert 0.3 < metadata["forced_share"] < 1


@pytest.mark.parametrize("choice", ["auto", "any"])
@pytest.mark.parametrize("seed", range(3))
def test_stream_equals_answer(noise: Model, choice: str, seed: int) -> None:
    """The chunks of a stream add up to the answer that invoke gives, ids apart."""
    model = ChatToolGrammar(model=noise, temperature=1.0, seed=seed, max_tokens=40)
    bound = model.bind_tools([set_heat], tool_choice=choice)
    whole = bound.invoke("warm, please")
    chunks = list(bound.stream("warm, please"))
    total = joined(chunks)
    assert total.text == whole.text
    assert [(c["name"], c["args"]) for c in total.tool_calls] == [(c["name"], c["args"]) for c in whole.tool_calls]
    assert len(total.invalid_tool_calls) == len(whole.invalid_tool_calls)
    assert total.usage_metadata == whole.usage_metadata
    assert {**whole.response_metadata, **total.response_metadata} == whole.response_metadata
    assert chunks[-1].chunk_position == "last"
    assert all(not (chunk.content and chunk.tool_call_chunks) for chunk in chunks)
    assert sum(chunk.usage_metadata is not None for chunk in chunks) == 1


@tool
def note(text: str) -> str:
    """Write something down."""
    raise AssertionError("a cut call must not run")


@pytest.mark.parametrize("stream", [False, True])
def test_cut_call_is_invalid(call: Call, stream: bool) -> None:
    """A call that the budget cut is valid JSON, and still never among the calls that LangChain would run."""
    model = scripted(call("note", text="x" * 500), max_tokens=100).bind_tools([note])
    answer: Any = joined(list(model.stream("note it"))) if stream else model.invoke("note it")
    assert answer.tool_calls == []
    (invalid,) = answer.invalid_tool_calls
    assert (invalid["name"], bool(invalid["id"])) == ("note", True)
    assert invalid["args"].startswith('{"text": "xx')
    assert answer.response_metadata["finish_reason"] == "length"
    assert answer.response_metadata["cut"] == ["note/text"]
    if not stream:
        assert "/text" in invalid["error"]


def test_reasoning_is_apart(thinking: Model) -> None:
    """Thinking comes in its own place, streamed or not, becomes a reasoning block, and is sent back from there."""
    model = ChatToolGrammar(model=thinking)
    for answer in (model.invoke("2 and 2?"), joined(list(model.stream("2 and 2?")))):
        assert answer.text == "Four."
        assert answer.additional_kwargs == {"reasoning_content": "2 and 2"}
        assert [block["type"] for block in answer.content_blocks] == ["reasoning", "text"]
        assert to_messages([answer]) == [Message("assistant", "Four.", reasoning="2 and 2")]


def test_stop() -> None:
    """Text ends before a stop string, of the call or of the model, and arguments do not."""
    assert scripted("one two three", stop=["two"]).invoke("count").text == "one "
    assert scripted("one two three", stop=["two"]).invoke("count", stop=["three"]).text == "one two "
    wish = Message("assistant", tool_calls=(ToolCall("", "note", {"text": "two"}),))
    assert scripted(wish, stop=["two"]).bind_tools([note]).invoke("x").tool_calls[0]["args"] == {"text": "two"}


def test_empty_text_is_impossible(noise: Model) -> None:
    """A turn without calls has text, even if the model would end at once."""
    assert scripted("").invoke("hello", max_tokens=3).text
    assert ChatToolGrammar(model=noise, temperature=1.0, seed=1, max_tokens=1).invoke("hello").text


# -- structured answers --------------------------------------------------------------------------------------------

TREE = '{"value": 1, "children": [{"value": 2, "children": []}]}'


@pytest.mark.parametrize("method", ["json_schema", "json_mode", "function_calling"])
@pytest.mark.parametrize("strict", [None, True, False])
def test_structured_output(method: str, strict: bool | None, call: Call) -> None:
    """All three methods give an instance of a class, and a dict for a schema."""
    said = call("Tree", **json.loads(TREE)) if method == "function_calling" else TREE
    expected = Tree(value=1, children=[Tree(value=2)])
    chain = scripted(said).with_structured_output(Tree, method=method, strict=strict)
    assert chain.invoke("grow") == expected
    chain = scripted(said).with_structured_output(TREE_SCHEMA, method=method, strict=strict)
    assert chain.invoke("grow") == expected.model_dump()


def test_structured_output_of_any_model(noise: Model) -> None:
    """Noise gives a valid instance: enums, ranges and booleans are all the schema's."""

    class Choice(BaseModel):
        unit: Unit
        level: int = Field(ge=1, le=9)
        on: bool

    for seed in range(5):
        model = ChatToolGrammar(model=noise, temperature=1.0, seed=seed)
        assert isinstance(model.with_structured_output(Choice).invoke("choose"), Choice)


def test_include_raw() -> None:
    """With include_raw the message comes too, and an error is a value."""
    good = scripted(TREE).with_structured_output(Tree, include_raw=True).invoke("grow")
    assert isinstance(good, dict)
    assert (good["raw"].text, good["parsed"].value, good["parsing_error"]) == (TREE, 1, None)
    bad = scripted(TREE, max_tokens=40).with_structured_output(Tree, include_raw=True).invoke("grow")
    assert isinstance(bad, dict)
    assert bad["parsed"] is None
    assert isinstance(bad["parsing_error"], exceptions.OutputParserException)


@pytest.mark.parametrize("method", ["json_schema", "function_calling"])
def test_cut_structure_is_an_error(method: str, call: Call) -> None:
    """Half an answer is valid for many schemas; it is refused unless it is asked for."""
    said = call("Tree", **json.loads(TREE)) if method == "function_calling" else TREE
    limit = 80 if method == "function_calling" else 40
    with pytest.raises(exceptions.OutputParserException, match="children"):
        scripted(said, max_tokens=limit).with_structured_output(Tree, method=method).invoke("grow")


def test_cut_structure_may_be_allowed() -> None:
    """With allow_cut the valid beginning is taken."""
    chain = scripted(TREE, max_tokens=40).with_structured_output(Tree, allow_cut=True)
    assert isinstance(chain.invoke("grow"), Tree)


def test_structured_stream_grows() -> None:
    """A structured answer streams as dicts that grow to the whole."""
    pieces = list(scripted(TREE).with_structured_output(Tree.model_json_schema()).stream("grow"))
    assert pieces[-1] == json.loads(TREE)
    assert len(pieces) > 3


def test_tools_and_schema_together(call: Call) -> None:
    """With tools and a response format the answer is a call, or JSON of the schema, and nothing else."""
    bound = scripted(call("set_heat", degrees=1), TREE).bind_tools([set_heat], response_format=Tree)
    assert bound.invoke("a").tool_calls[0]["name"] == "set_heat"
    Tree.model_validate_json(bound.invoke("b").text)


@pytest.mark.parametrize(
    "response_format",
    [
        {"type": "json_object"},
        {"type": "json_schema", "json_schema": {"name": "t", "schema": Tree.model_json_schema()}},
        Tree,
        Tree.model_json_schema(),
    ],
)
def test_response_formats(response_format: Any) -> None:
    """Response formats are taken in every form that providers have."""
    assert json.loads(scripted(TREE).bind_tools([], response_format=response_format).invoke("x").text)["value"] == 1


# -- agents --------------------------------------------------------------------------------------------------------


def test_agent_loop(call: Call) -> None:
    """An agent calls its tool with the arguments of the call, and answers with the result in view."""
    model = ScriptedModel([call("set_heat", degrees=20), "It is 20 degrees."])
    agent = create_agent(ChatToolGrammar(model=model), tools=[set_heat])
    messages = agent.invoke({"messages": [("user", "warm, please")]})["messages"]
    assert [message.type for message in messages] == ["human", "ai", "tool", "ai"]
    assert messages[2].content == "20 celsius"
    assert model.requests[1][-1] == Message(
        "tool", "20 celsius", tool_call_id=messages[1].tool_calls[0]["id"], name="set_heat"
    )


@pytest.mark.parametrize("strategy", [Tree, ProviderStrategy(Tree), ToolStrategy(Tree)])
def test_agent_structured_response(strategy: Any, call: Call) -> None:
    """Agents give structured responses; asked by the class alone, they take the constrained text and force no call."""
    by_tool = isinstance(strategy, ToolStrategy)
    last = call("Tree", **json.loads(TREE)) if by_tool else TREE
    model = ScriptedModel([call("set_heat", degrees=20), last])
    agent = create_agent(ChatToolGrammar(model=model), tools=[set_heat], response_format=strategy)
    result = agent.invoke({"messages": [("user", "warm, please")]})
    assert result["structured_response"] == Tree.model_validate_json(TREE)


@pytest.mark.parametrize("mode", ["values", "messages"])
def test_agent_does_not_run_a_cut_call(call: Call, mode: Any) -> None:
    """The agent tells the model that a call was cut; the tool does not run, not even when LangGraph makes it stream."""
    model = ScriptedModel([call("note", text="x" * 500), "Sorry."])
    agent = create_agent(ChatToolGrammar(model=model, max_tokens=100), tools=[note])
    assert list(agent.stream({"messages": [("user", "note it")]}, stream_mode=mode))
    for request in model.requests[1:]:
        assert request[-1].is_error


@pytest.mark.parametrize("seed", range(10))
def test_tools_run_with_valid_arguments(noise: Model, seed: int) -> None:
    """An agent of noise: every tool that runs is given arguments that validate."""
    ran: list[dict[str, Any]] = []

    def turn(angle: int, axis: Annotated[Unit, "the axis"], fast: bool) -> str:
        """Turn."""
        ran.append({"angle": angle, "axis": axis.value, "fast": fast})
        return "done"

    model = ChatToolGrammar(model=noise, temperature=1.0, seed=seed, max_tokens=80)
    bound = model.bind_tools([turn, note], tool_choice="turn")
    tools = ToolSet.from_any([turn])
    answer = bound.invoke("turn it")
    for each in answer.tool_calls:
        tools.call(tools.validate({"name": each["name"], "arguments": each["args"]}))
    assert len(ran) == len(answer.tool_calls) == 1


# -- the model itself ----------------------------------------------------------------------------------------------


def test_token_counting(noise: Model) -> None:
    """Tokens are counted by the model, tools included, so that trimming sees what the model will."""
    model = ChatToolGrammar(model=noise)
    messages = [HumanMessage("word " * 50), HumanMessage("hello")]
    count = model.get_num_tokens_from_messages(messages)
    assert count == noise.count_tokens(to_messages(messages))
    assert model.get_num_tokens_from_messages(messages, tools=[set_heat]) > count + 20
    assert model.get_num_tokens_from_messages([]) == 0
    assert model.get_token_ids("hello") == noise.backend.encode("hello")
    assert trim_messages(messages, max_tokens=count - 10, token_counter=model) == messages[1:]


def test_identity(noise: Model) -> None:
    """What changes the output is in the identity; a live model is not."""
    model = ChatToolGrammar(model=noise, temperature=0.5, seed=3)
    assert model.asdict()["temperature"] == 0.5
    assert model.asdict()["seed"] == 3
    assert model.asdict()["model"] == "embedded"
    json.dumps(model.asdict())
    assert model.profile is not None
    assert model.profile["max_input_tokens"] == noise.context_window
    assert model.model_copy().invoke("x", max_tokens=2).text


def test_tracing_parameters(noise: Model) -> None:
    """Traces name us as provider, and the model, the temperature and the stop strings."""
    params = ChatToolGrammar(model=noise, temperature=0.5, stop=["a"])._get_ls_params()
    assert (params["ls_provider"], params["ls_model_name"]) == ("toolgrammar", "embedded")
    assert (params["ls_temperature"], params["ls_stop"]) == (0.5, ["a"])


def test_errors_are_langchains() -> None:
    """A prompt that does not fit is LangChain's overflow error and ours; a timeout is LangChain's timeout."""
    small = ChatToolGrammar(model=ScriptedModel(["x"], context_window=50))
    with pytest.raises(exceptions.ContextOverflowError) as caught:
        small.invoke("word " * 100)
    assert isinstance(caught.value, ContextOverflowError)
    late = ChatToolGrammar(model=ScriptedModel(["x" * 100]), timeout=0.0)
    with pytest.raises(exceptions.ModelTimeoutError):
        late.invoke("hello")
    odd = {"title": "f", "type": "object", "properties": {"x": {"type": "nonsense"}}}
    with pytest.raises(exceptions.ModelInvalidRequestError, match="nonsense"):
        late.bind_tools([odd])


def test_llm_output_is_summed() -> None:
    """Generating for several prompts adds the counts up."""
    result = scripted("one", "two").generate([[HumanMessage("a")], [HumanMessage("b")]])
    assert result.llm_output is not None
    assert result.llm_output["token_usage"]["completion_tokens"] == len("one") + len("two")


@pytest.mark.asyncio
async def test_conversations_do_not_mix(call: Call) -> None:
    """Eight conversations at once: each gets its own answer, and cancelling two of them disturbs no other."""

    def script(messages: Sequence[Message]) -> Message:
        return call("set_heat", degrees=int(messages[-1].text))

    model = ChatToolGrammar(model=ScriptedModel(script)).bind_tools([set_heat])

    async def streamed(number: int) -> AIMessageChunk:
        return joined([chunk async for chunk in model.astream(str(number))])

    tasks = [asyncio.create_task(model.ainvoke(str(n)) if n % 2 else streamed(n)) for n in range(8)]
    await asyncio.sleep(0.02)
    tasks[2].cancel()
    tasks[5].cancel()
    results = await asyncio.gather(*tasks, return_exceptions=True)
    for number, result in enumerate(results):
        if isinstance(result, AIMessage):
            assert result.tool_calls[0]["args"] == {"degrees": number}
        else:
            assert number in (2, 5)
            assert isinstance(result, asyncio.CancelledError)
    assert sum(isinstance(result, AIMessage) for result in results) >= 6


@pytest.mark.parametrize(
    "changed", [{"parallel_tool_calls": False}, {"seed": 2}, {"temperature": 0.5}, {"stop": ["."]}, {"max_tokens": 7}]
)
def test_cache_tells_settings_apart(noise: Model, changed: dict[str, Any]) -> None:
    """An answer is cached under everything that shapes it: other settings never meet in the cache."""
    cache = InMemoryCache()
    settings: dict[str, Any] = {"model": noise, "max_tokens": 5, "temperature": 1.0, "seed": 1, "cache": cache}
    ChatToolGrammar(**settings).invoke("Hello")
    ChatToolGrammar(**settings).invoke("Hello")
    assert len(cache._cache) == 1
    ChatToolGrammar(**{**settings, **changed}).invoke("Hello")
    assert len(cache._cache) == 2
