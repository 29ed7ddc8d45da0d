"""Everything that describes a tool becomes the same `Tool`."""

import dataclasses
import typing
from types import SimpleNamespace
from typing import Annotated, Any, Literal

import jsonschema
import pytest
from pydantic import BaseModel, Field, RootModel
from pydantic import v1 as pydantic_v1

from toolgrammar.core import SchemaError, ToolCall
from toolgrammar.tools import Tool, ToolSet

SCHEMA: dict[str, Any] = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}


class Cat(BaseModel):
    """A cat."""

    kind: Literal["cat"]
    lives: int = Field(9, ge=0, alias="livesLeft")


class Dog(BaseModel):
    """A dog."""

    kind: Literal["dog"]
    barks: bool


class Adopt(BaseModel):
    """Adopt an animal."""

    pet: Annotated[Cat | Dog, Field(discriminator="kind")]
    parent: "Adopt | None" = None


@dataclasses.dataclass
class Move:
    """Move somewhere."""

    x: int
    y: int = 0


class Query(typing.TypedDict):
    """Ask."""

    text: str


class Old(pydantic_v1.BaseModel):
    """A model of Pydantic 1."""

    name: str
    pair: tuple[int, str]


class Declared(BaseModel):
    """A tool as the ``mcp`` package declares it."""

    name: str
    description: str
    inputSchema: dict[str, Any]


class Listing(BaseModel):
    """A ``tools/list`` result as the ``mcp`` package has it."""

    tools: list[Declared]


def only(source: Any) -> Tool:
    """The one tool made of a source."""
    (tool,) = ToolSet.from_any([source])
    return tool


DICTS: dict[str, dict[str, Any]] = {
    "openai": {"type": "function", "function": {"name": "w", "description": "d", "parameters": SCHEMA, "strict": True}},
    "openai, flat": {"type": "function", "name": "w", "description": "d", "parameters": SCHEMA},
    "anthropic": {"name": "w", "description": "d", "input_schema": SCHEMA},
    "anthropic, typed": {"type": "custom", "name": "w", "description": "d", "input_schema": SCHEMA},
    "mcp": {
        "name": "w",
        "title": "W",
        "description": "d",
        "inputSchema": SCHEMA,
        "annotations": {"readOnlyHint": True},
    },
    "bedrock": {"toolSpec": {"name": "w", "description": "d", "inputSchema": {"json": SCHEMA}}},
    "plain": {"name": "w", "description": "d", "parameters": SCHEMA},
    "bfcl": {
        "name": "w",
        "description": "d",
        "parameters": {"type": "dict", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    },
    "schema": {**SCHEMA, "title": "w", "description": "d"},
}


@pytest.mark.parametrize("source", DICTS.values(), ids=DICTS.keys())
def test_dicts(source: dict[str, Any]) -> None:
    """Every provider's dict gives the same tool."""
    assert only(source) == Tool("w", "d", SCHEMA)


def test_lists_of_tools() -> None:
    """A whole MCP result, Gemini's declarations and a tool set are read as the tools in them."""
    tools = [Tool("w", "d", SCHEMA)]
    assert list(ToolSet.from_any({"tools": [DICTS["mcp"]], "nextCursor": None})) == tools
    gemini = {
        "name": "w",
        "description": "d",
        "parameters": {"type": "OBJECT", **{k: SCHEMA[k] for k in ("properties", "required")}},
    }
    assert list(ToolSet.from_any([{"function_declarations": [gemini]}])) == tools
    assert list(ToolSet.from_any(ToolSet(tools))) == tools
    assert list(ToolSet.from_any(DICTS["plain"])) == tools
    assert list(ToolSet.from_any(None)) == []
    assert list(ToolSet.from_any(Listing(tools=[Declared(name="w", description="d", inputSchema=SCHEMA)]))) == tools
    assert list(ToolSet.from_any(Declared(name="w", description="d", inputSchema=SCHEMA))) == tools


def test_pydantic_model() -> None:
    """A model's schema is taken as it is (aliases, unions, references), and a call builds the model."""
    tool = only(Adopt)
    assert (tool.name, tool.description, tool.model) == ("Adopt", "Adopt an animal.", Adopt)
    # A recursive model's root is a reference: arguments are an object all the same.
    assert tool.parameters == {**Adopt.model_json_schema(by_alias=True), "type": "object"}
    arguments = {"pet": {"kind": "cat", "livesLeft": 3}, "parent": {"pet": {"kind": "dog", "barks": True}}}
    made = ToolSet([tool]).call(ToolCall("c", "Adopt", arguments))
    assert made == Adopt.model_validate(arguments)
    assert made.pet.lives == 3


def test_other_classes() -> None:
    """Dataclasses, typed dicts and models of Pydantic 1 are tools, and calls build them."""
    tools = ToolSet.from_any([Move, Query, Old])
    assert tools.names == ("Move", "Query", "Old")
    assert [tool.description for tool in tools] == ["Move somewhere.", "Ask.", "A model of Pydantic 1."]
    assert tools.call(ToolCall("c", "Move", {"x": 1})) == Move(1)
    assert tools.call(ToolCall("c", "Query", {"text": "?"})) == {"text": "?"}
    assert tools.call(ToolCall("c", "Old", {"name": "n", "pair": [1, "a"]})) == Old(name="n", pair=(1, "a"))
    assert "prefixItems" in tools["Old"].parameters["properties"]["pair"]


@pytest.mark.parametrize("source", [RootModel[list[int]], int, dict, "text", 5, object(), SimpleNamespace(name="x")])
def test_no_tool(source: Any) -> None:
    """What is no tool is an error with a way out."""
    with pytest.raises(SchemaError) as caught:
        ToolSet.from_any([source])
    assert caught.value.hint


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ({"type": "web_search"}, "web_search"),
        ({"type": "web_search_20250305", "name": "web_search"}, "provider"),
        ({"type": "custom", "name": "x", "format": "json"}, "format"),
        ({"type": "custom"}, "no name"),
        ({"type": "object", "properties": {}}, "title"),
        ({"description": "x"}, "not a tool"),
        ({"title": "x", "type": "string"}, "object"),
        ({"name": "x", "parameters": {"type": "array"}}, "object"),
        ({"name": "x", "parameters": ["a"]}, "list"),
        ({"name": "x", "parameters": {"properties": {"a": {"type": "strng"}}}}, "strng"),
    ],
)
def test_refused_dicts(source: dict[str, Any], said: str) -> None:
    """A dict that is no callable tool is refused with its reason."""
    with pytest.raises(SchemaError, match=said):
        ToolSet.from_any([source])


@pytest.mark.parametrize("name", ["", "a\nb", "\x00", " a", "a ", "x" * 257, "\ud800"])
def test_bad_names(name: str) -> None:
    """A name that no format can carry is refused."""
    with pytest.raises(SchemaError):
        Tool(name, "", {})


@pytest.mark.parametrize("name", ["a", "a.b-c_d", "über", "工具", 'say "hi"', "two words", "x" * 256, "🎉"])
def test_good_names(name: str) -> None:
    """Dots, unicode, quotes and inner spaces are fine."""
    assert Tool(name, "", {}).name == name


def test_missing_parameters() -> None:
    """No parameters, or an empty schema, is a tool without arguments; true is one that takes any object."""
    assert only({"name": "x"}).parameters == {"type": "object", "properties": {}}
    assert only({"name": "x", "parameters": {}}).parameters == {"type": "object", "properties": {}}
    assert Tool("x", "", typing.cast(Any, True)).parameters == {"type": "object"}


def test_equal_tools_are_one() -> None:
    """A class and its schema are one tool, which keeps the class; annotations do not matter, order of keys neither."""
    schema = Move_schema = {"title": "Cat", **Cat.model_json_schema(by_alias=True), "description": "another"}
    tools = ToolSet.from_any([schema, Cat, dict(reversed(Move_schema.items()))])
    assert len(tools) == 1
    assert tools["Cat"].model is Cat


def test_different_tools_of_one_name() -> None:
    """Two schemas, or two functions, under one name are an error."""
    with pytest.raises(SchemaError, match="same name"):
        ToolSet([Tool("x", "", SCHEMA), Tool("x", "", {})])

    def make(number: int) -> Any:
        def same() -> int:
            return number

        return same

    with pytest.raises(SchemaError, match="same name"):
        ToolSet.from_any([make(1), make(2)])


def test_framework_shapes() -> None:
    """Tool objects are told by their attributes: LangChain, CrewAI, AutoGen and MCP."""
    langchain = SimpleNamespace(
        name="w", description="d", tool_call_schema=Cat, invoke=lambda arguments: arguments, func=print
    )
    crewai = SimpleNamespace(name="w", description="d", args_schema=Cat, run=lambda **arguments: arguments)
    autogen = SimpleNamespace(name="w", description="d", args_type=lambda: Cat)
    mcp = SimpleNamespace(name="w", description="d", inputSchema=Cat.model_json_schema())
    for source in (langchain, crewai, autogen, mcp):
        tool = only(source)
        assert (tool.name, tool.description) == ("w", "d")
        assert tool.fingerprint == Tool("w", "", Cat.model_json_schema()).fingerprint
    for source in (langchain, crewai):
        call = ToolCall("c", "w", {"kind": "cat"})
        assert ToolSet.from_any([source]).call(call) == {"kind": "cat"}


def test_parameters_are_a_copy() -> None:
    """Changing what a tool was made of, or what it shows, does not change the tool."""
    source = {"name": "w", "parameters": {"type": "object", "properties": {"a": {"type": "string"}}}}
    tool = only(source)
    source["parameters"]["properties"]["a"]["type"] = "integer"  # type: ignore[index]
    tool.to_openai()["function"]["parameters"]["properties"].clear()
    assert tool.parameters == {"type": "object", "properties": {"a": {"type": "string"}}}
    jsonschema.Draft202012Validator.check_schema(tool.parameters)


def test_a_list_that_holds_itself() -> None:
    """Sources that contain themselves end."""
    sources: list[Any] = [{"title": "w", **SCHEMA}]
    sources.append(sources)
    assert ToolSet.from_any(sources).names == ("w",)


@pytest.mark.parametrize(
    ("text", "line", "column"),
    [
        ('{"name": "f", "parameters": {"type": "object"}', 1, 47),
        ('[\n  {"name": "f",}\n]', 2, 16),
        ("{'name': 'f'}", 1, 2),
    ],
)
def test_a_text_that_begins_as_json_is_not_read_as_typescript(text: str, line: int, column: int) -> None:
    """The error has the place at which the JSON ends to be JSON."""
    with pytest.raises(SchemaError, match="begins as JSON") as caught:
        ToolSet(text)
    assert (caught.value.place.line, caught.value.place.column) == (line, column)
