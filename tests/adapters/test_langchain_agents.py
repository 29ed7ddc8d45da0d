"""LangChain's agents, graphs and chains around the model: scripts for what they do, noise for what is valid."""

from __future__ import annotations

import json
from collections.abc import Callable
from enum import Enum
from typing import Annotated, Any

import pytest
from langchain.agents import create_agent
from langchain.agents.structured_output import ProviderStrategy, ToolStrategy
from langchain_core.tools import tool
from pydantic import BaseModel

from toolgrammar.adapters.langchain import ChatToolGrammar
from toolgrammar.core import Message, Model
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


TREE = '{"value": 1, "children": [{"value": 2, "children": []}]}'


@tool
def set_heat(degrees: int, unit: Unit = Unit.celsius, boost: bool = False) -> str:
    """Set the heat."""
    return f"{degrees} {unit.value}"


@tool
def note(text: str) -> str:
    """Write something down."""
    raise AssertionError("a cut call must not run")


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
