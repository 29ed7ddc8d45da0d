"""Tool objects of frameworks, told by their attributes: stand-ins with what the real ones have.

`test_real_tool_objects.py` asks the same of the real ones, where they are installed.
"""

from __future__ import annotations

import inspect
import json
import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from pydantic import BaseModel, Field

from toolgrammar.core import SchemaError
from toolgrammar.tools import Tool, ToolSet

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "days": {"type": "integer", "default": 3}},
    "required": ["city"],
}
ABOUT = {"name": "forecast", "description": "Forecast."}


def forecast(city: str, days: int = 3) -> str:
    """Forecast."""
    return f"{city} {days}"


async def aforecast(city: str, days: int = 3) -> str:
    """Forecast."""
    return f"{city} {days}"


class Arguments(BaseModel):
    """Arguments."""

    city: str
    days: int = 3


class Smol:
    """smolagents 1.26."""

    name, description, output_type = "forecast", "Forecast.", "string"
    inputs = {"city": {"type": "string", "description": "Which."}, "days": {"type": "integer", "nullable": True}}  # noqa: RUF012
    forward = staticmethod(forecast)

    def __call__(self, *args: Any, sanitize_inputs_outputs: bool = False, **kwargs: Any) -> str:
        """Run it."""
        return forecast(*args, **kwargs)


class Llama:
    """llama-index-core 0.14: ``name`` is in the metadata, and the output is wrapped."""

    def __init__(self, function: Any, fn_schema: Any = Arguments) -> None:
        self.real_fn = function
        self.requires_context = False
        self.metadata = SimpleNamespace(**ABOUT, fn_schema=fn_schema, get_parameters_dict=lambda: SCHEMA)

    def call(self, **kwargs: Any) -> Any:
        """Run it."""
        return SimpleNamespace(raw_output=forecast(**kwargs), content="text")

    async def acall(self, **kwargs: Any) -> Any:
        """Run it."""
        return SimpleNamespace(raw_output=await aforecast(**kwargs), content="text")

    def __call__(self, **kwargs: Any) -> Any:
        """Run it."""
        return self.call(**kwargs)


class Dspy:
    """dspy 3.4."""

    name, desc, description = "forecast", "Forecast.", classmethod(lambda cls: "not this")
    args, arg_types, arg_desc = SCHEMA["properties"], {"city": str, "days": int}, None

    def __init__(self, function: Any) -> None:
        self.func = function

    def __call__(self, **kwargs: Any) -> Any:
        """Run it."""
        return self.func(**kwargs)

    async def acall(self, **kwargs: Any) -> Any:
        """Run it."""
        return await self.func(**kwargs)


def pydantic_ai(*, takes_ctx: bool = False) -> Any:
    """pydantic-ai 2.68."""

    async def call(arguments: Any, context: Any) -> Any:
        assert context is None
        return await aforecast(**arguments)

    validator = SimpleNamespace(validate_python=lambda arguments: arguments)
    made = SimpleNamespace(json_schema=SCHEMA, takes_ctx=takes_ctx, validator=validator, call=call)
    return SimpleNamespace(**ABOUT, function=forecast, function_schema=made, takes_ctx=takes_ctx)


class Agno(BaseModel):
    """agno 3.1: a function of a toolkit has no schema before it is processed."""

    name: str = "forecast"
    description: str | None = None
    parameters: dict[str, Any] = Field(default_factory=lambda: {"type": "object", "properties": {}, "required": []})
    entrypoint: Any = forecast
    skip_entrypoint_processing: bool = False

    def process_entrypoint(self) -> None:
        """Fill in what the function says."""
        self.description, self.parameters = "Forecast.", SCHEMA


class Haystack:
    """haystack-ai 3.4."""

    def __init__(self, function: Any) -> None:
        self.name, self.description, self.parameters = "forecast", "Forecast.", SCHEMA
        self.function = None if inspect.iscoroutinefunction(function) else function

    def invoke(self, **kwargs: Any) -> Any:
        """Run it."""
        assert self.function is not None
        return self.function(**kwargs)

    async def invoke_async(self, **kwargs: Any) -> Any:
        """Run it."""
        return await aforecast(**kwargs)


class Declaration(BaseModel):
    """google-genai 3.4's ``FunctionDeclaration``."""

    name: str = "forecast"
    description: str | None = "Forecast."
    parameters: Any = None
    parameters_json_schema: Any = Field(None, serialization_alias="parametersJsonSchema")
    behavior: Any = None


class GoogleTool(BaseModel):
    """google-genai 3.4's ``Tool``."""

    function_declarations: list[Declaration] | None = Field(None, serialization_alias="functionDeclarations")
    google_search: dict[str, Any] | None = Field(None, serialization_alias="googleSearch")


class Adk:
    """google-adk 2.13."""

    name, description = "forecast", "Forecast."

    def __init__(self, declaration: Any) -> None:
        self.declaration = declaration

    def _get_declaration(self) -> Any:
        return self.declaration

    async def run_async(self, *, args: dict[str, Any], tool_context: Any) -> Any:
        """Run it."""
        return await aforecast(**args)


class Function(BaseModel):
    """The function of Ollama's ``Tool``."""

    name: str = "forecast"
    description: str | None = "Forecast."
    parameters: Any = None


class Ollama(BaseModel):
    """ollama 0.6's ``Tool``."""

    type: str | None = "function"
    function: Function | None = None


class Cohere(BaseModel):
    """cohere 7.3's ``Tool``."""

    name: str = "forecast"
    description: str = "Forecast."
    parameter_definitions: dict[str, Any] | None = None


class Anthropic:
    """anthropic 2.12's function tools."""

    def __init__(self, *, is_async: bool) -> None:
        self.name, self.description, self.input_schema = "forecast", "Forecast.", SCHEMA
        if is_async:
            self.call = self._acall
        self.func = forecast

    def call(self, input: Any) -> Any:
        """Run it."""
        return forecast(**input)

    async def _acall(self, input: Any) -> Any:
        return await aforecast(**input)


class AgentFramework:
    """agent-framework-core 1.23."""

    name, description, input_model, declaration_only = "forecast", "Forecast.", Arguments, False

    def parameters(self) -> dict[str, Any]:
        """The schema."""
        return SCHEMA

    def __get__(self, instance: Any, owner: Any) -> Any:
        """A tool may be a method."""
        return self

    async def invoke(self, *, arguments: Any = None, context: Any = None, skip_parsing: bool = False) -> Any:
        """Run it; the result is parsed into contents unless that is skipped."""
        assert skip_parsing
        return forecast(**arguments)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run it."""
        return forecast(*args, **kwargs)


class Qwen:
    """qwen-agent 0.0.34."""

    name, description = "forecast", "Forecast."
    parameters = [{"name": "city", "type": "string", "required": True}, {"name": "days", "type": "int"}]  # noqa: RUF012

    def call(self, params: str, **_: Any) -> str:
        """Run it on JSON text."""
        return forecast(**json.loads(params))


RUN: dict[str, Any] = {
    "smolagents": Smol(),
    "LlamaIndex": Llama(forecast),
    "LlamaIndex, async": Llama(aforecast),
    "LlamaIndex, no class": Llama(forecast, None),
    "DSPy": Dspy(forecast),
    "DSPy, async": Dspy(aforecast),
    "Pydantic AI": pydantic_ai(),
    "Pydantic AI, toolset": SimpleNamespace(tools={"forecast": pydantic_ai()}, id=None),
    "agno": Agno(),
    "agno, async": Agno(entrypoint=aforecast),
    "agno, toolkit": SimpleNamespace(name="weather", functions={"forecast": Agno()}, async_functions={}),
    "Haystack": Haystack(forecast),
    "Haystack, async": Haystack(aforecast),
    "FastMCP": SimpleNamespace(**ABOUT, parameters=SCHEMA, fn=aforecast, is_async=True),
    "ADK": Adk(Declaration(parameters_json_schema=SCHEMA)),
    "Anthropic": Anthropic(is_async=False),
    "Anthropic, async": Anthropic(is_async=True),
    "Agent Framework": AgentFramework(),
    "Qwen-Agent": Qwen(),
    "LangGraph, ToolNode": SimpleNamespace(name="tools", tools_by_name={"forecast": Haystack(forecast)}),
}
DESCRIBED: dict[str, Any] = {
    "genai": Declaration(parameters_json_schema=SCHEMA),
    "genai, Tool": GoogleTool(function_declarations=[Declaration(parameters_json_schema=SCHEMA)]),
    "Ollama": Ollama(function=Function(parameters=SCHEMA)),
    "Cohere": Cohere(parameter_definitions={"city": {"type": "str", "required": True}, "days": {"type": "int"}}),
    "Pydantic AI, ToolDefinition": SimpleNamespace(**ABOUT, parameters_json_schema=SCHEMA, kind="function"),
    "Pydantic AI, with a context": pydantic_ai(takes_ctx=True),
}


@pytest.mark.parametrize("source", [*RUN.values(), *DESCRIBED.values()], ids=[*RUN, *DESCRIBED])
def test_described(source: Any) -> None:
    """Name, description, parameters and which of them are required are the object's."""
    (tool,) = ToolSet.from_any(source)
    assert (tool.name, tool.description) == ("forecast", "Forecast.")
    assert list(tool.parameters["properties"]) == ["city", "days"]
    assert tool.parameters["properties"]["city"]["type"] == "string"
    assert tool.parameters["required"] == ["city"]
    assert ToolSet.from_any([source, source]).names == ("forecast",)


@pytest.mark.parametrize("source", RUN.values(), ids=RUN.keys())
def test_run(source: Any) -> None:
    """An object that carries something to run runs, with checked arguments."""
    tools = ToolSet.from_any([source])
    assert tools.call({"name": "forecast", "arguments": {"city": "Oslo"}}, timeout=10) == "Oslo 3"
    assert tools.execute({"name": "forecast", "arguments": {"days": 1}}).code == "invalid_arguments"


@pytest.mark.parametrize("source", DESCRIBED.values(), ids=DESCRIBED.keys())
def test_not_run(source: Any) -> None:
    """An object that carries nothing to run, or needs the framework's run, is described only."""
    (tool,) = ToolSet.from_any([source])
    assert tool.function is None


def test_openai_agents(monkeypatch: pytest.MonkeyPatch) -> None:
    """The OpenAI Agents SDK's tool (0.24) runs in a context that its own package makes; without it, it is described."""

    class ToolContext:
        def __init__(self, context: Any, *, tool_name: str, tool_call_id: str, tool_arguments: str) -> None:
            self.arguments = tool_arguments

    async def invoke(context: ToolContext, text: str) -> Any:
        assert context.arguments == text
        return forecast(**json.loads(text))

    source = SimpleNamespace(**ABOUT, params_json_schema=SCHEMA, on_invoke_tool=invoke, strict_json_schema=True)
    monkeypatch.setitem(sys.modules, "agents.tool_context", None)
    (tool,) = ToolSet.from_any(source)
    assert (tool.parameters, tool.function) == (SCHEMA, None)
    module: Any = ModuleType("agents.tool_context")
    module.ToolContext = ToolContext
    monkeypatch.setitem(sys.modules, "agents.tool_context", module)
    assert ToolSet.from_any(source).call({"name": "forecast", "arguments": {"city": "Oslo"}}) == "Oslo 3"


def test_processing_leaves_the_object_alone() -> None:
    """What is processed is a copy: the framework finds its object as it was."""
    source = Agno()
    ToolSet.from_any(source)
    assert source.parameters["properties"] == {}
    (raw,) = ToolSet.from_any(Agno(skip_entrypoint_processing=True, parameters=SCHEMA))
    assert raw.parameters == SCHEMA


@pytest.mark.parametrize(
    ("source", "said"),
    [
        (Adk(None), "runs at a provider"),
        (GoogleTool(google_search={}), "not a tool"),
        (GoogleTool(function_declarations=[Declaration()], google_search={}), "googleSearch"),
        (SimpleNamespace(name="web_search", user_location=None), "SimpleNamespace"),
        (SimpleNamespace(tools_by_name={"a": object()}), "of the type object"),
        (Arguments(city="x"), "not a tool"),
    ],
)
def test_refused(source: Any, said: str) -> None:
    """What has no schema is refused with the reason."""
    with pytest.raises(SchemaError, match=said):
        ToolSet.from_any([source])


def test_functions_may_have_attributes() -> None:
    """A function that carries a name and a schema of its own is still read as a function."""

    def plain(a: int) -> int:
        """Plain."""
        return a

    plain.name, plain.parameters = "other", {"b": {"type": "string"}}  # type: ignore[attr-defined]
    assert ToolSet.from_any([plain]).names == ("plain",)
    assert ToolSet.from_any(iter([plain, Tool("x")])).names == ("plain", "x")
