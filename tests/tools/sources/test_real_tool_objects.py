"""Tool objects of frameworks that are installed; the others are skipped. `test_tool_objects.py` has their stand-ins."""

from __future__ import annotations

import inspect
import json
from typing import Any

import pytest

from toolgrammar.core import SchemaError
from toolgrammar.tools import Tool, ToolSet

pytestmark = pytest.mark.filterwarnings("default")


def forecast(city: str, days: int = 3) -> str:
    """Forecast the weather.

    Args:
        city: Which city.
        days: How many days.
    """
    return f"{city} {days}"


async def aforecast(city: str, days: int = 3) -> str:
    """Forecast the weather."""
    return f"{city} {days}"


def check(source: Any, *, runs: bool = True, required: tuple[str, ...] = ("city",), city: str = "string") -> Tool:
    """The one tool of a source: its parameters are those of the function, and a call of it runs."""
    (tool,) = tools = ToolSet.from_any([source])
    assert list(tool.parameters["properties"]) == ["city", "days"]
    assert tool.parameters["properties"]["city"]["type"] == city
    assert tuple(tool.parameters.get("required", ())) == required
    text = f'{{"name": "{tool.name}", "arguments": {{"city": "Oslo", "days": 2}}}}'
    assert tools.grammar(tool_choice="required").matches(f"<tool_call>\n{text}\n</tool_call>")
    assert tool.description.startswith("Forecast") or "Forecast" in tool.description
    if runs:
        assert tools.call(json.loads(text), timeout=20) == "Oslo 2"
    else:
        assert tool.function is None
    return tool


def test_smolagents() -> None:
    """Smolagents."""
    smolagents = pytest.importorskip("smolagents")
    tool = smolagents.tool(forecast)
    assert check(tool).parameters["properties"]["days"]["type"] == ["integer", "null"]

    class Picture(smolagents.Tool):  # type: ignore[misc]
        name, description, output_type = "picture", "A picture.", "string"
        inputs = {"image": {"type": "image", "description": "Which."}}  # noqa: RUF012

        def forward(self, image: Any) -> str:
            """Nothing."""
            return ""

    with pytest.raises(SchemaError, match="unknown type 'image'"):
        ToolSet.from_any([Picture()])


def test_llama_index() -> None:
    """LlamaIndex, sync and async."""
    tools = pytest.importorskip("llama_index.core.tools")
    check(tools.FunctionTool.from_defaults(fn=forecast))
    check(tools.FunctionTool.from_defaults(async_fn=aforecast))


def test_dspy() -> None:
    """DSPy, sync and async."""
    dspy = pytest.importorskip("dspy")
    check(dspy.Tool(forecast))
    check(dspy.Tool(aforecast))


def test_pydantic_ai() -> None:
    """Pydantic AI: tools, definitions and toolsets; a tool that takes the run's context is described only."""
    pydantic_ai = pytest.importorskip("pydantic_ai")
    tool = pydantic_ai.Tool(forecast)
    check(tool)
    check(pydantic_ai.Tool(aforecast))
    check(tool.tool_def, runs=False)
    check(pydantic_ai.FunctionToolset([forecast]))

    def with_context(ctx: Any, city: str, days: int = 3) -> str:
        """Forecast."""
        return city

    with_context.__annotations__["ctx"] = pydantic_ai.RunContext[int]
    check(pydantic_ai.Tool(with_context), runs=False)


def test_openai_agents() -> None:
    """OpenAI Agents: strict schemas require every argument."""
    agents = pytest.importorskip("agents")
    if not hasattr(agents, "function_tool"):
        pytest.skip("another package called agents")
    check(agents.function_tool(forecast), required=("city", "days"))
    check(agents.function_tool(strict_mode=False)(aforecast))
    with pytest.raises(SchemaError):
        ToolSet.from_any([agents.WebSearchTool()])


def test_agno() -> None:
    """Agno: functions, processed or not, and toolkits."""
    tools = pytest.importorskip("agno.tools")
    check(tools.tool(forecast))
    check(tools.tool(aforecast))
    check(tools.Function.from_callable(forecast))
    check(tools.Toolkit(name="weather", tools=[forecast]))


def test_haystack() -> None:
    """Haystack: tools and toolsets."""
    tools = pytest.importorskip("haystack.tools")
    tool = tools.create_tool_from_function(forecast)
    check(tool)
    check(tools.Toolset([tool]))


def test_google_adk() -> None:
    """The Agent Development Kit; a search that runs at Google is refused."""
    tools = pytest.importorskip("google.adk.tools")
    check(tools.FunctionTool(forecast))
    check(tools.FunctionTool(aforecast))
    with pytest.raises(SchemaError, match="runs at a provider"):
        ToolSet.from_any([tools.google_search])


def test_google_genai() -> None:
    """Google's SDK: declarations, tools, and their dumps with everything that was not given."""
    types = pytest.importorskip("google.genai.types")
    schema = types.Schema(
        type="OBJECT",
        properties={"city": types.Schema(type="STRING"), "days": types.Schema(type="INTEGER", nullable=True)},
        required=["city"],
    )
    declaration = types.FunctionDeclaration(name="forecast", description="Forecast.", parameters=schema)
    tool = check(declaration, runs=False)
    assert tool.parameters["properties"]["days"] == {"type": ["integer", "null"]}
    for source in (
        declaration.model_dump(),
        declaration.model_dump(mode="json", by_alias=True),
        types.Tool(function_declarations=[declaration]),
        types.Tool(function_declarations=[declaration]).model_dump(),
        types.GenerateContentConfig(tools=[types.Tool(function_declarations=[declaration])]),
    ):
        assert check(source, runs=False) == tool
    with pytest.raises(SchemaError):
        ToolSet.from_any([types.Tool(google_search=types.GoogleSearch())])


def test_ollama() -> None:
    """Ollama's tools, and their dumps."""
    ollama = pytest.importorskip("ollama._utils")
    tool = ollama.convert_function_to_tool(forecast)
    for source in (tool, tool.model_dump(), tool.model_dump(by_alias=True), tool.model_dump(exclude_none=True)):
        check(source, runs=False, required=tuple(tool.function.parameters.required))


def test_cohere() -> None:
    """Cohere's tools of both versions."""
    cohere = pytest.importorskip("cohere")
    definition = cohere.ToolParameterDefinitionsValue
    tool = cohere.Tool(
        name="forecast",
        description="Forecast.",
        parameter_definitions={"city": definition(type="str", required=True), "days": definition(type="int")},
    )
    for source in (tool, tool.model_dump()):
        check(source, runs=False)


def test_anthropic() -> None:
    """Anthropic's function tools, sync and async."""
    anthropic = pytest.importorskip("anthropic")
    if not hasattr(anthropic, "beta_tool"):
        pytest.skip("anthropic is too old for function tools")
    check(anthropic.beta_tool(forecast))
    check(anthropic.beta_async_tool(aforecast))


def test_fastmcp() -> None:
    """Tools of a server in the same process: FastMCP of version 1 of the ``mcp`` package, ``mcpserver`` of version 2."""
    pytest.importorskip("mcp")
    try:
        from mcp.server.fastmcp.tools import Tool as ServerTool
    except ImportError:
        ServerTool = pytest.importorskip("mcp.server.mcpserver.tools").Tool
    check(ServerTool.from_function(forecast))
    check(ServerTool.from_function(aforecast))


def test_agent_framework() -> None:
    """Microsoft's Agent Framework, sync and async."""
    agent_framework = pytest.importorskip("agent_framework")
    check(agent_framework.tool(forecast))
    check(agent_framework.tool(aforecast))


def test_autogen() -> None:
    """AutoGen, sync and async."""
    tools = pytest.importorskip("autogen_core.tools")
    check(tools.FunctionTool(forecast, description="Forecast."))
    check(tools.FunctionTool(aforecast, description="Forecast."))


def test_crewai() -> None:
    """CrewAI."""
    tools = pytest.importorskip("crewai.tools")
    check(tools.tool("forecast")(forecast))


def test_langgraph() -> None:
    """LangGraph's ``ToolNode``."""
    prebuilt = pytest.importorskip("langgraph.prebuilt")
    tools = pytest.importorskip("langchain_core.tools")
    check(prebuilt.ToolNode([tools.tool(forecast)]))
    assert inspect.iscoroutinefunction(
        ToolSet.from_any(prebuilt.ToolNode([tools.tool(aforecast)]))["aforecast"].function
    )


def test_qwen_agent() -> None:
    """Qwen-Agent: a list of parameters, and arguments as JSON text."""
    base = pytest.importorskip("qwen_agent.tools.base")

    class Forecast(base.BaseTool):  # type: ignore[misc]
        name, description = "forecast", "Forecast."
        parameters = [  # noqa: RUF012
            {"name": "city", "type": "string", "description": "Which.", "required": True},
            {"name": "days", "type": "int"},
        ]

        def call(self, params: str, **_: Any) -> str:
            """Text for text."""
            return "{city} {days}".format(**json.loads(params))

    check(Forecast())
