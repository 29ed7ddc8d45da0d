"""Signatures as users write them: the corners of Pydantic, of Python functions, and of the frameworks' own tools."""

from __future__ import annotations

import functools
import gzip
import json
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Annotated, Any, Generic, Literal, TypedDict, TypeVar

import pytest
import typing_extensions
from pydantic import (
    AliasChoices,
    AliasPath,
    BaseModel,
    ConfigDict,
    Field,
    computed_field,
    field_validator,
    model_validator,
)
from pydantic.alias_generators import to_camel

from toolgrammar.core import SchemaError
from toolgrammar.tools import ToolSet, tools_from_typescript, tools_to_typescript
from toolgrammar.tools.mcp import tools_to_mcp

from ..schema_equality import spelled
from .common import only, run

DATA = Path(__file__).resolve().parents[3].parent / "shared" / "data" / "bfcl-dev.jsonl.gz"
T = TypeVar("T")


class Camel(BaseModel):
    """Aliases by rule."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, extra="forbid")

    first_name: str
    last_name: str = Field("x", validation_alias=AliasChoices("surname", "familyName"), serialization_alias="last")


class Checked(BaseModel):
    """Validators and a computed field."""

    a: int

    @computed_field  # type: ignore[prop-decorator]
    @property
    def double(self) -> int:
        """Twice ``a``."""
        return self.a * 2

    @field_validator("a")
    @classmethod
    def even(cls, value: int) -> int:
        """Odd numbers are refused."""
        if value % 2:
            raise ValueError("odd")
        return value

    @model_validator(mode="after")
    def small(self) -> Checked:
        """Large numbers are refused."""
        if self.a > 100:
            raise ValueError("large")
        return self


class Page(BaseModel, Generic[T]):
    """A page."""

    items: list[T]


def test_aliases() -> None:
    """Names in the schema are those that the model takes."""
    assert list(only(Camel).parameters["properties"]) == ["firstName", "surname"]
    assert run(Camel, firstName="Ada", surname="L") == Camel.model_validate({"firstName": "Ada", "surname": "L"})


def test_an_alias_that_is_a_path_is_refused() -> None:
    """Pydantic's schema shows such a field under its own name, where the value would be dropped in silence."""

    class Nested(BaseModel):
        ok: int
        deep: int = Field(3, validation_alias=AliasPath("a", "b"))

    with pytest.raises(SchemaError, match="a path into the data") as caught:
        only(Nested)
    assert (caught.value.place.tool, caught.value.place.parameter) == ("Nested", "deep")


def test_validators_and_computed_fields() -> None:
    """Computed fields are no arguments; validators have the last word."""
    assert list(only(Checked).parameters["properties"]) == ["a"]
    assert run(Checked, a=2).double == 4
    for value, said in ((1, "odd"), (102, "large")):
        result = ToolSet.from_any([Checked]).execute({"name": "Checked", "arguments": {"a": value}})
        assert said in (result.error or "")


def test_generic_models() -> None:
    """A generic model is a tool once its types are given."""
    assert run(Page[int], items=[1]).items == [1]


def test_the_field_without_a_schema_is_named() -> None:
    """Of a model's fields, the one that JSON cannot say is named."""

    class Thing:
        pass

    class Bad(BaseModel):
        model_config = ConfigDict(arbitrary_types_allowed=True)
        ok: Checked
        thing: Thing

    class Worse(BaseModel):
        ok: list[int]
        back: Callable[[int], int]

    for cls, field in ((Bad, "thing"), (Worse, "back")):
        with pytest.raises(SchemaError) as caught:
            only(cls)
        assert caught.value.place.parameter == field


def test_keys_that_are_numbers() -> None:
    """The keys of ``dict[int, ...]`` are spelled as integers: what the grammar allows, the function takes."""

    def scores(by_player: dict[int, str]) -> Any:
        return by_player

    tools = ToolSet.from_any([scores])
    grammar = tools.grammar(tool_choice="required")

    def text(key: str) -> str:
        return f'<tool_call>\n{{"name": "scores", "arguments": {{"by_player": {{"{key}": "x"}}}}}}\n</tool_call>'

    assert grammar.matches(text("-12"))
    assert not grammar.matches(text("a"))
    assert run(scores, by_player={"-12": "x"}) == {-12: "x"}


def test_descriptions_in_annotations() -> None:
    """A text or a `Doc` in ``Annotated`` describes the parameter; ``Field(description=...)`` comes first."""

    def find(
        a: Annotated[str, "the a"],
        b: Annotated[int, typing_extensions.Doc("the b")] = 1,
        c: Annotated[int, "not this", Field(description="the c")] = 2,
        d: int = 3,
    ) -> None:
        """Find.

        :param a: Not this.
        :param d: the d
        """

    properties = only(find).parameters["properties"]
    assert [properties[name]["description"] for name in "abcd"] == ["the a", "the b", "the c", "the d"]


class Options(TypedDict, total=False):
    """Options."""

    loud: typing_extensions.Required[typing_extensions.ReadOnly[bool]]
    fast: typing_extensions.ReadOnly[bool]
    times: Annotated[int, Field(ge=1, description="How often.")]


def test_unpacked_options() -> None:
    """``**options: Unpack[...]`` is one parameter for each key; what is left out is not passed."""

    def shout(text: str, **options: typing_extensions.Unpack[Options]) -> Any:
        return text, options

    tool = only(shout)
    assert tool.parameters["required"] == ["text", "loud"]
    assert tool.parameters["properties"]["times"] == {"type": "integer", "minimum": 1, "description": "How often."}
    assert run(shout, text="a", loud=True) == ("a", {"loud": True})
    assert run(shout, text="a", loud=True, times=2) == ("a", {"loud": True, "times": 2})


def test_generators() -> None:
    """What a generator yields is the list of it."""

    def count(to: int) -> Iterator[int]:
        yield from range(to)

    async def acount(to: int) -> AsyncIterator[int]:
        for number in range(to):
            yield number

    assert run(count, to=3) == [0, 1, 2]
    assert run(acount, to=3) == [0, 1, 2]


def test_decorated_functions() -> None:
    """Wrapped, cached and partial functions keep the signature of what they wrap."""

    def add(a: int, b: int = 1) -> int:
        """Add."""
        return a + b

    @functools.wraps(add)
    def wrapped(*arguments: Any, **more: Any) -> int:
        return add(*arguments, **more)

    for function in (wrapped, functools.lru_cache(add), functools.partial(add, b=2)):
        assert only(function).description == "Add."
        assert run(function, a=1) in (2, 3)


def test_gemini_s_numbers_and_order() -> None:
    """Numbers that protocol buffers write as strings are numbers, and the stated order of properties is kept."""
    source = {
        "name": "f",
        "parameters": {
            "type": "OBJECT",
            "properties": {
                "b": {"type": "ARRAY", "items": {"type": "INTEGER"}, "minItems": "1", "maxItems": "3"},
                "a": {"type": "NUMBER", "minimum": "0.5", "nullable": True},
            },
            "propertyOrdering": ["a", "b", "a"],
        },
    }
    parameters = only(source).parameters
    assert list(parameters["properties"]) == ["a", "b"]
    assert parameters["properties"]["a"] == {"type": ["number", "null"], "minimum": 0.5}
    assert parameters["properties"]["b"]["minItems"] == 1
    bad = {"name": "f", "parameters": {"properties": {"a": {"minItems": "many"}}}}
    with pytest.raises(SchemaError, match="minItems"):
        ToolSet.from_any([bad]).grammar(tool_choice="required").matches("")


def test_langchain_tools() -> None:
    """Tools of LangChain: injected arguments are left out, async ones run, tools of one text have one argument."""
    tools = pytest.importorskip("langchain_core.tools")

    def secret(x: int, key: Annotated[str, tools.InjectedToolArg] = "s") -> int:
        """Secret."""
        return x + 1

    secret.__annotations__["key"] = Annotated[str, tools.InjectedToolArg]

    async def later(x: int) -> int:
        """Later."""
        return x + 1

    injected = tools.tool(secret)
    assert list(only(injected).parameters["properties"]) == ["x"]
    assert run(injected, x=1) == 2
    assert run(tools.tool(later), x=1) == 2
    plain = tools.Tool(name="echo", description="Echo.", func=lambda text: text)
    assert only(plain).parameters["required"] == ["__arg1"]
    assert run(plain, __arg1="a") == "a"

    async def echo(text: str) -> str:
        return text

    for metadata in (None, {"type": "custom_tool", "format": {"type": "text"}}):
        only_async = tools.Tool(name="echo", description="Echo.", func=None, coroutine=echo, metadata=metadata)
        assert run(only_async, __arg1="a") == "a"


def test_autogen_tools() -> None:
    """Tools of AutoGen run, async or not."""
    tools = pytest.importorskip("autogen_core.tools")

    async def later(text: str, times: int = 2) -> str:
        return text * times

    def now(text: str, times: int = 2) -> str:
        return text * times

    for function in (later, now):
        made = tools.FunctionTool(function, description="Repeat.")
        assert only(made).description == "Repeat."
        assert run(made, text="a") == "aa"


def test_crewai_tools() -> None:
    """Tools of CrewAI run, as classes and as decorated functions."""
    tools = pytest.importorskip("crewai.tools")

    def repeat(text: str, times: int = 2) -> str:
        """Repeat."""
        return text * times

    made = tools.tool("Repeat it")(repeat)
    assert only(made).name.lower().replace("_", " ") == "repeat it"
    assert run(made, text="a") == "aa"


def gemini(schema: Any) -> Any:
    """A schema in Gemini's words: types in upper case."""
    if not isinstance(schema, dict):
        return schema
    result: dict[str, Any] = {}
    for key, value in schema.items():
        if key == "properties":
            result[key] = {name: gemini(sub) for name, sub in value.items()}
        elif key == "type":
            result[key] = value.upper()
        else:
            result[key] = gemini(value) if key in ("items", "additionalProperties") else value
    return result


Dialect = Literal["openai", "responses", "anthropic", "gemini", "bedrock", "mcp", "typescript"]


def written(tools: ToolSet, dialect: Dialect) -> Any:
    """A tool set in another dialect."""
    listed = [{"name": t.name, "description": t.description} for t in tools]
    schemas = [json.loads(json.dumps(t.parameters)) for t in tools]
    pairs = list(zip(listed, schemas, strict=True))
    if dialect == "openai":
        return tools.to_openai()
    if dialect == "responses":
        return [{"type": "function", **about, "parameters": schema, "strict": False} for about, schema in pairs]
    if dialect == "anthropic":
        return [{**about, "input_schema": schema} for about, schema in pairs]
    if dialect == "gemini":
        return [{"functionDeclarations": [{**about, "parameters": gemini(schema)} for about, schema in pairs]}]
    if dialect == "bedrock":
        return {"tools": [{"toolSpec": {**about, "inputSchema": {"json": schema}}} for about, schema in pairs]}
    return tools_to_mcp(tools) if dialect == "mcp" else tools_to_typescript(tools)


@pytest.mark.skipif(not DATA.exists(), reason=f"needs {DATA.name}, which is not part of the repository")
@pytest.mark.parametrize("dialect", Dialect.__args__)  # type: ignore[attr-defined]
def test_real_tools_in_every_dialect(dialect: Dialect) -> None:
    """The functions of BFCL, written in each dialect and read back, are the same tools with the same schemas."""
    with gzip.open(DATA, "rt", encoding="utf-8") as lines:
        sets = [ToolSet.from_any(json.loads(line)["functions"]) for line in lines]
    step = 10 if dialect == "typescript" else 1  # its printer has a test of its own
    for tools in sets[::step]:
        back = ToolSet.from_any(written(tools, dialect))
        assert back.names == tools.names
        assert [spelled(tool.parameters) for tool in back] == [spelled(tool.parameters) for tool in tools]
        assert [tool.description for tool in back] == [tool.description for tool in tools]
        if dialect != "typescript":  # where an enumeration has its type beside it
            assert [tool.parameters for tool in back] == [tool.parameters for tool in tools]


def test_typescript_of_every_kind_of_signature() -> None:
    """What users' classes and functions come to can be said in TypeScript."""
    tools = ToolSet.from_any([Camel, Checked, Page[int]])
    back = tools_from_typescript(tools_to_typescript(tools))
    assert [tool.name for tool in back] == list(tools.names)
