"""The LangChain chat model: requests in, answers out, agents around it."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import pytest
from langchain_core import exceptions
from langchain_core.messages import (
    AIMessage,
    ChatMessage,
    FunctionMessage,
    HumanMessage,
    RemoveMessage,
    SystemMessage,
    ToolMessage,
)
from langchain_core.messages.content import create_image_block
from langchain_core.tools import StructuredTool, Tool, tool
from pydantic import BaseModel, Field, TypeAdapter
from typing_extensions import NotRequired, TypedDict

from toolgrammar.adapters.langchain import ChatToolGrammar
from toolgrammar.adapters.langchain.messages import openai_tool, to_messages
from toolgrammar.core import (
    BudgetError,
    Grammar,
    ImagePart,
    Message,
    Model,
    ModelError,
    TextPart,
    ToolCall,
    ToolGrammarError,
)
from toolgrammar.core.testing import ScriptedModel
from toolgrammar.tools import ToolSet

from ..shared_parts import CODED_PNG, FAR_PNG, PNG_ADDRESS, Tree, are_one_image
from .common import Unit, joined

Call = Callable[..., Message]

# LangChain's own name for this came in 1.6; before, our errors pass as they are.
REFUSED = getattr(exceptions, "ModelInvalidRequestError", ToolGrammarError)


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


def test_every_form_of_an_image_is_one_part() -> None:
    """Blocks of all versions of LangChain, and those that it passes on of OpenAI and Anthropic, in messages and results
    of tools."""
    near: list[Any] = [
        {"type": "image_url", "image_url": {"url": PNG_ADDRESS}},
        {"type": "image_url", "image_url": PNG_ADDRESS},
        {"type": "input_image", "image_url": PNG_ADDRESS},
        create_image_block(base64=CODED_PNG, mime_type="image/png"),
        {"type": "image", "source_type": "base64", "data": CODED_PNG, "mime_type": "image/png"},
        {"type": "image", "source": {"type": "base64", "data": CODED_PNG, "media_type": "image/png"}},
    ]
    far: list[Any] = [
        create_image_block(url=FAR_PNG),
        {"type": "image", "source_type": "url", "url": FAR_PNG},
        {"type": "image", "source": {"type": "url", "url": FAR_PNG}},
    ]
    for made in (HumanMessage([*near, *far]), ToolMessage([*near, *far], tool_call_id="c1")):
        assert are_one_image(to_messages([made]), len(near), len(far))


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


@pytest.mark.parametrize("seed", range(3))
def test_custom_tools(noise: Model, seed: int) -> None:
    """A tool as ``langchain_openai.custom_tool`` makes it: its input is of the grammar, and LangChain runs the call."""
    grammar = {"type": "grammar", "syntax": "lark", "definition": 'start: "a" start "b" | "-"'}
    echo = Tool(
        name="echo", func=lambda text: text, description="", metadata={"type": "custom_tool", "format": grammar}
    )
    model = ChatToolGrammar(model=noise, temperature=1.5, seed=seed).bind_tools([echo], tool_choice="any")
    message = model.invoke("Hello")
    assert isinstance(message, AIMessage) and message.tool_calls
    for call in message.tool_calls:
        text = echo.invoke(call).content
        inner = text.partition("-")[0]
        assert text == f"{inner}-{'b' * len(inner)}" and set(inner) <= {"a"}


def test_server_tools_are_refused() -> None:
    """A tool that runs at a provider cannot run here, and the error says so."""
    with pytest.raises(REFUSED, match="web_search"):
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
    with pytest.raises(REFUSED, match="nothing"):
        scripted("x").bind_tools([set_heat], tool_choice="nothing")
    with pytest.raises(REFUSED, match="no tools"):
        scripted("x").bind_tools([], tool_choice="any").invoke("hello")


def test_equal_tools_count_once(call: Call) -> None:
    """A class and its own schema under one name are one tool; two different tools are an error."""
    model = scripted(call("Tree", value=1)).bind_tools([Tree, TREE_SCHEMA])
    assert model.invoke("grow").tool_calls[0]["args"] == {"value": 1}
    other = {"title": "Tree", "type": "object", "properties": {"leaf": {"type": "string"}}}
    with pytest.raises(REFUSED, match="Tree"):
        scripted("x").bind_tools([Tree, other]).invoke("grow")


def test_unknown_argument_is_refused() -> None:
    """A misspelt generation argument is an error; it would otherwise change nothing, unseen."""
    with pytest.raises(REFUSED, match="temprature"):
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
    assert (metadata["model_provider"], metadata["guarantee"]) == ("toolgrammar", "constrained")
    assert 0.3 < metadata["forced_share"] < 1


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
    # LangChain keeps nothing of a streamed call but its text, so the reason stands there.
    assert "cut short by the token budget at /text" in (invalid["args"] if stream else invalid["error"])
    (past,) = to_messages([answer])[0].tool_calls  # on the next turn the model sees what it wrote
    assert set(past.arguments["text"]) == {"x"}


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


def test_grammar(noise: Model) -> None:
    """A grammar of one's own holds the whole answer, of any model, streamed or not; anything else is refused."""
    plate = Grammar.from_regex("[A-Z]{2}-[0-9]{3}")
    bound = ChatToolGrammar(model=noise, temperature=1.0, seed=2).bind(grammar=plate)
    answer = bound.invoke("Which car?")
    assert plate.matches(answer.text)
    assert joined(list(bound.stream("Which car?"))).text == answer.text
    assert scripted("AB-123").invoke("x", grammar=plate).text == "AB-123"
    with pytest.raises(REFUSED, match="grammar is"):
        scripted("x").invoke("x", grammar="[A-Z]")
    with pytest.raises(REFUSED, match="exclude each other"):
        scripted("x").bind_tools([set_heat]).invoke("x", grammar=plate)


def test_guarantee_is_stated() -> None:
    """An answer says whether a grammar held all of it, or something was checked afterwards."""
    schema = {"type": "string", "pattern": r"^(b)?[a-z.]+\1?$"}  # a back-reference
    loose = Grammar.from_json_schema(schema, on_unsupported="validate")
    assert loose.unenforced
    said = scripted('"b.org"').invoke("x", grammar=loose)
    assert said.response_metadata["guarantee"] == "validated"
    assert scripted("x").invoke("x").response_metadata["guarantee"] == "constrained"


@pytest.mark.parametrize("tools", [ToolSet.from_any([set_heat.func]), [set_heat], [openai_tool(set_heat)]])
def test_tools_of_one_call(tools: Any, call: Call) -> None:
    """Tools may be given to a single call, in any form, a `ToolSet` among them."""
    wish = Message("assistant", tool_calls=(ToolCall("", "set_heat", {"degrees": 5}),))
    (made,) = scripted(wish).invoke("x", tools=tools, tool_choice="any").tool_calls
    assert made["args"] == {"degrees": 5}
    assert scripted(wish).bind_tools(tools).invoke("x").tool_calls[0]["args"] == {"degrees": 5}


def test_standard_content_blocks(call: Call, thinking: Model) -> None:
    """With LangChain's standard blocks as content, calls and thinking are blocks, and are read back from there."""
    model = scripted(call("set_heat", degrees=5), output_version="v1").bind_tools([set_heat])
    (block,) = model.invoke("x").content
    assert isinstance(block, dict)
    assert (block["type"], block["name"], block["args"]) == ("tool_call", "set_heat", {"degrees": 5})
    answer = ChatToolGrammar(model=thinking, output_version="v1").invoke("2 and 2?")
    assert [block["type"] for block in answer.content_blocks] == ["reasoning", "text"]
    (message,) = to_messages([AIMessage(content=answer.content)])  # as it comes back from a store
    assert (message.text, message.reasoning) == ("Four.", "2 and 2")


# -- structured answers --------------------------------------------------------------------------------------------

TREE = '{"value": 1, "children": [{"value": 2, "children": []}]}'


@pytest.mark.parametrize("method", ["json_schema", "json_mode", "function_calling"])
@pytest.mark.parametrize("has_envelope", [False, True])
def test_structured_output_in_the_form_of_openai(method: str, has_envelope: bool) -> None:
    """A schema with its name, as OpenAI's ``response_format`` has it, is that schema, by each method."""
    schema = {"type": "object", "properties": {"n": {"enum": [7]}}, "required": ["n"]}
    inner = {"name": "seven", "strict": True, "schema": schema}
    given = {"type": "json_schema", "json_schema": inner} if has_envelope else inner
    assert scripted("No.").with_structured_output(given, method=method).invoke("x") == {"n": 7}


@pytest.mark.parametrize("shape", [list[int], Literal["a", "b"], int | str])
def test_structured_output_of_other_types(shape: Any) -> None:
    """What LangChain has no schema for is refused with the way to ask for it, which works."""
    with pytest.raises(ModelError, match=r"bind\(output_type=") as caught:
        scripted("No.").with_structured_output(shape)
    assert str(shape).replace("typing.", "") in str(caught.value)
    TypeAdapter(shape).validate_json(scripted("No.").bind(output_type=shape).invoke("x").text)


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


@dataclass
class Point:
    """A point."""

    x: int
    y: int = 0


class Marks(TypedDict):
    """Marks by name."""

    owner: str
    marks: dict[str, int]


@pytest.mark.parametrize("method", ["json_schema", "json_mode", "function_calling"])
@pytest.mark.parametrize(
    ("schema", "name", "value"),
    [(Point, "Point", {"x": 1, "y": 2}), (Marks, "Marks", {"owner": "ann", "marks": {"maths": 1}})],
)
def test_structured_output_of_other_classes(method: str, schema: type, name: str, value: Any, call: Call) -> None:
    """Dataclasses and typed dicts give dicts, by every method; maps in them stay maps."""
    said = call(name, **value) if method == "function_calling" else json.dumps(value)
    assert scripted(said).with_structured_output(schema, method=method).invoke("x") == value


def test_any_json_object() -> None:
    """JSON mode without a schema is any object; the other methods need a schema."""
    assert scripted('{"a": [1]}').with_structured_output(method="json_mode").invoke("x") == {"a": [1]}
    written = scripted("[1]").with_structured_output(method="json_mode", allow_cut=True).invoke("x", max_tokens=20)
    assert isinstance(written, dict)
    with pytest.raises(REFUSED, match="needs a schema"):
        scripted("x").with_structured_output()
    with pytest.raises(REFUSED, match="unknown method"):
        scripted("x").with_structured_output(Tree, method="xml")


def test_structured_output_beside_tools(call: Call) -> None:
    """A model that calls a tool instead of answering gives no answer: None, and the call in the raw message."""
    chain = scripted(call("set_heat", degrees=1), TREE).with_structured_output(Tree, tools=[set_heat], include_raw=True)
    called = chain.invoke("x")
    assert isinstance(called, dict)
    assert (called["parsed"], called["parsing_error"]) == (None, None)
    assert called["raw"].tool_calls[0]["name"] == "set_heat"
    answered = chain.invoke("x")
    assert isinstance(answered, dict)
    assert answered["parsed"] == Tree.model_validate_json(TREE)


def test_include_raw_of_a_call(call: Call) -> None:
    """With include_raw a cut call is in the message, not lost with the error."""
    chain = scripted(call("note", text="x" * 500), max_tokens=100).with_structured_output(
        note.tool_call_schema, method="function_calling", include_raw=True
    )
    result = chain.invoke("x")
    assert isinstance(result, dict)
    assert result["parsed"] is None
    assert result["raw"].invalid_tool_calls[0]["error"] == "cut short by the token budget at /text"
    assert isinstance(result["parsing_error"], exceptions.OutputParserException)


@pytest.mark.parametrize("stream", [False, True])
def test_cut_answer_is_an_error(stream: bool) -> None:
    """Text for a response format that the budget cut is refused, whoever asked for it, unless a cut one is allowed."""
    bound = scripted(TREE, TREE, max_tokens=40).bind_tools([], response_format=Tree)
    with pytest.raises(BudgetError, match="children"):
        assert list(bound.stream("x")) if stream else bound.invoke("x")
    answer: Any = list(bound.stream("x", allow_cut=True)) if stream else bound.invoke("x", allow_cut=True)
    answer = joined(answer) if stream else answer
    assert isinstance(Tree.model_validate_json(answer.text), Tree)
    assert answer.response_metadata["cut"]


class Sized(TypedDict):
    """A thing of some size."""

    name: str
    size: NotRequired[int]


def test_a_typed_dict_with_members_that_may_be_left_out() -> None:
    """LangChain's own conversion raises a TypeError for it."""
    chat = ChatToolGrammar(model=ScriptedModel(lambda _: '{"name": "z"}'), max_tokens=200)
    assert chat.with_structured_output(Sized).invoke("x") == {"name": "z"}
    assert openai_tool(Sized)["function"]["parameters"]["required"] == ["name"]


@pytest.mark.parametrize("wrong", [None, [], lambda x: x])
def test_what_is_no_tool_is_refused(wrong: Any) -> None:
    """The error is ours, or LangChain's for a wrong request."""
    chat = ChatToolGrammar(model=ScriptedModel(lambda _: "x"), max_tokens=200)
    with pytest.raises(ToolGrammarError):
        chat.bind_tools([wrong]).invoke("x")
