"""Calls drawn from the grammar run in each framework's own way of running its tool: what its class takes is offered."""

from __future__ import annotations

import asyncio
import inspect
import json
import random
from collections.abc import Callable
from enum import Enum
from typing import Annotated, Any, Literal

import pytest
from pydantic import AliasChoices, BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from toolgrammar.core import ToolCall
from toolgrammar.core.grammar.sampling import random_text
from toolgrammar.tools import ToolSet

pytestmark = pytest.mark.filterwarnings("default")

#: Calls drawn of each tool.
CALLS = 12


class Colour(Enum):
    """Two colours."""

    RED = "red"
    BLUE = "blue"


class Inner(BaseModel):
    """An object inside, with a name of its own for a field."""

    of: int = Field(alias="from", ge=0, le=9)


class Plain(BaseModel):
    """No aliases."""

    city: str = Field(max_length=8)
    days: int = Field(3, ge=1, le=9)
    colour: Colour | None = None


class Alias(BaseModel):
    """A word of Python as a name."""

    from_: str = Field(alias="from", max_length=8)
    inner: Inner | None = None


class Generated(BaseModel):
    """Names as JavaScript has them."""

    model_config = ConfigDict(alias_generator=to_camel)
    first_name: str = Field(max_length=8)
    is_new: bool


class Validation(BaseModel):
    """A name for the input alone, required."""

    city: str = Field(validation_alias="CITY", max_length=8)
    days: int = Field(validation_alias=AliasChoices("DAYS", "days"), ge=0, le=9)


class Open(BaseModel):
    """Any more members."""

    model_config = ConfigDict(extra="allow")
    key: Literal["a", "b"]


class Extra(BaseModel):
    """Constraints that are in the schema alone."""

    model_config = ConfigDict(json_schema_extra={"minProperties": 1})
    even: int = Field(0, ge=0, le=9, json_schema_extra={"multipleOf": 2})


CLASSES = (Plain, Alias, Generated, Validation, Open, Extra)


def anything(**given: Any) -> str:
    """Take whatever a tool was given."""
    return f"ran {sorted(given)}"


async def aanything(**given: Any) -> str:
    """Take whatever a tool was given."""
    return f"ran {sorted(given)}"


def drawn(source: Any, count: int = CALLS) -> tuple[ToolSet, list[ToolCall]]:
    """Return the tool set of one tool, and calls drawn from its grammar."""
    tools = ToolSet.from_any([source])
    grammar = tools.grammar(tool_choice="required", parallel=False)
    calls = []
    for seed in range(count):
        (call,) = tools.parse(random_text(grammar, random.Random(seed), 120)).tool_calls
        assert call.error is None
        calls.append(call)
    return tools, calls


def langchain(cls: type[BaseModel]) -> tuple[Any, Callable[[ToolCall], Any]]:
    """LangChain's ``StructuredTool`` and its ``invoke``, with the call as an agent gives it."""
    core = pytest.importorskip("langchain_core.tools")
    tool = core.StructuredTool.from_function(anything, name="t", description="T.", args_schema=cls)

    def run(call: ToolCall) -> Any:
        asked = {"type": "tool_call", "id": call.id, "name": call.name, "args": dict(call.arguments)}
        return tool.invoke(asked).content

    return tool, run


def crewai(cls: type[BaseModel]) -> tuple[Any, Callable[[ToolCall], Any]]:
    """CrewAI's ``BaseTool`` and its ``run``."""
    tools = pytest.importorskip("crewai.tools")

    class T(tools.BaseTool):  # type: ignore[misc]
        name: str = "t"
        description: str = "T."
        args_schema: type[BaseModel] = cls

        def _run(self, **given: Any) -> str:
            return anything(**given)

    tool = T()
    return tool, lambda call: tool.run(**dict(call.arguments))


def autogen(cls: type[BaseModel]) -> tuple[Any, Callable[[ToolCall], Any]]:
    """AutoGen's ``BaseTool`` and its ``run_json``."""
    core = pytest.importorskip("autogen_core")
    tools = pytest.importorskip("autogen_core.tools")

    class T(tools.BaseTool):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__(cls, str, "t", "T.")

        async def run(self, args: BaseModel, cancellation_token: Any) -> str:
            return anything(**args.model_dump())

    tool = T()
    return tool, lambda call: asyncio.run(tool.run_json(dict(call.arguments), core.CancellationToken()))


def agent_framework(cls: type[BaseModel]) -> tuple[Any, Callable[[ToolCall], Any]]:
    """Agent Framework's ``FunctionTool`` and its ``invoke``."""
    framework = pytest.importorskip("agent_framework")
    tool = framework.FunctionTool(name="t", description="T.", func=anything, input_model=cls)
    return tool, lambda call: asyncio.run(tool.invoke(arguments=dict(call.arguments), skip_parsing=True))


def llama_index(cls: type[BaseModel]) -> tuple[Any, Callable[[ToolCall], Any]]:
    """LlamaIndex's ``FunctionTool`` and its ``call``."""
    tools = pytest.importorskip("llama_index.core.tools")
    tool = tools.FunctionTool.from_defaults(fn=anything, name="t", description="T.", fn_schema=cls)
    return tool, lambda call: tool.call(**dict(call.arguments)).raw_output


def haystack(cls: type[BaseModel]) -> tuple[Any, Callable[[ToolCall], Any]]:
    """Haystack's ``Tool``, which has a schema and no class."""
    tools = pytest.importorskip("haystack.tools")
    tool = tools.Tool(name="t", description="T.", parameters=cls.model_json_schema(), function=anything)
    return tool, lambda call: tool.invoke(**dict(call.arguments))


def pydantic_ai(cls: type[BaseModel]) -> tuple[Any, Callable[[ToolCall], Any]]:
    """pydantic-ai's ``Tool`` of a function that takes the class alone, whose schema is that of the class."""
    ai = pytest.importorskip("pydantic_ai")

    async def t(given: Any) -> str:
        """T."""
        return anything(**given.model_dump())

    t.__annotations__["given"] = cls
    tool = ai.Tool(t)
    made = tool.function_schema

    def run(call: ToolCall) -> Any:
        return asyncio.run(made.call(made.validator.validate_python(dict(call.arguments)), None))

    return tool, run


def ag2(cls: type[BaseModel]) -> tuple[Any, Callable[[ToolCall], Any]]:
    """AG2's tool of a function with a parameter of the class, run as its executor runs it."""
    framework = pytest.importorskip("ag2")
    events = pytest.importorskip("ag2.events")
    contexts = pytest.importorskip("ag2.context")
    adapter = pytest.importorskip("toolgrammar.adapters.ag2.messages")

    async def t(given: Any) -> str:
        """T."""
        return anything(**given.model_dump())

    t.__annotations__["given"] = cls
    made = framework.tool(t)

    def run(call: ToolCall) -> Any:
        event = events.ToolCallEvent(call.name, id=call.id, arguments=json.dumps(dict(call.arguments)))
        done = asyncio.run(made(event, contexts.ConversationContext(stream=framework.MemoryStream())))
        return done.content if isinstance(done, events.ToolErrorEvent) else done.result

    return adapter.to_tool(made.schema), run


MAKERS = (langchain, crewai, autogen, agent_framework, llama_index, haystack, pydantic_ai, ag2)


@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.__name__)
@pytest.mark.parametrize("make", MAKERS, ids=lambda make: make.__name__)
def test_drawn_calls_run(make: Callable[..., tuple[Any, Callable[[ToolCall], Any]]], cls: type[BaseModel]) -> None:
    """Each call that the grammar admits is one that the framework runs, and that `ToolSet.call` runs the same way."""
    tool, run = make(cls)
    tools, calls = drawn(tool)
    for call in calls:
        assert "ran " in str(run(call)), call
        if tools[call.name].function is not None:
            assert "ran " in str(tools.call(call, timeout=20))
    if cls is Generated:
        assert all("firstName" in json.dumps(dict(call.arguments)) for call in calls)


def test_drawn_calls_of_smolagents_run() -> None:
    """smolagents' tools have a map of inputs, and no class."""
    smolagents = pytest.importorskip("smolagents")

    def t(city: str, days: int = 3, flags: list[bool] | None = None) -> str:
        """T.

        Args:
            city: A city.
            days: Days.
            flags: Flags.
        """
        return "ran"

    tool = smolagents.tool(t)
    tools, calls = drawn(tool)
    for call in calls:
        assert tool(**dict(call.arguments), sanitize_inputs_outputs=True) == "ran"
        assert tools.call(call) == "ran"


def test_injected_fields_are_not_offered() -> None:
    """LangChain fills them in, whatever their names and types are; the others keep their aliases."""
    core = pytest.importorskip("langchain_core.tools")

    class Secret:
        """A type without a schema."""

    class Args(BaseModel):
        model_config = ConfigDict(arbitrary_types_allowed=True)
        k: int = Field(alias="K")
        secret: Annotated[Secret, core.InjectedToolArg]
        call_id: Annotated[str, core.InjectedToolCallId]
        state: Annotated[dict[str, Any], core.InjectedToolArg()] = Field(alias="STATE")

    tool = core.StructuredTool.from_function(anything, name="t", description="T.", args_schema=Args)
    (made,) = ToolSet.from_any([tool])
    assert list(made.parameters["properties"]) == ["K"]
    assert made.parameters["required"] == ["K"]


def test_a_tool_that_says_itself_what_is_shown_is_believed() -> None:
    """A subclass of LangChain's tool with a schema of its own for models keeps it."""
    core = pytest.importorskip("langchain_core.tools")

    class Own(core.StructuredTool):  # type: ignore[misc]
        @property
        def tool_call_schema(self) -> Any:
            return {"type": "object", "properties": {"only": {"type": "integer"}}}

    tool = Own.from_function(anything, name="t", description="T.", args_schema=Plain)
    (made,) = ToolSet.from_any([tool])
    assert list(made.parameters["properties"]) == ["only"]


def test_async_tools_of_langchain_run() -> None:
    """A tool with a coroutine alone is awaited, by its own names."""
    core = pytest.importorskip("langchain_core.tools")
    tool = core.StructuredTool.from_function(coroutine=aanything, name="t", description="T.", args_schema=Alias)
    tools, calls = drawn(tool, 3)
    assert inspect.iscoroutinefunction(tools["t"].function)
    for call in calls:
        assert "from_" in tools.call(call, timeout=20)
