"""Odd tools in Agent Framework (open roots, odd names, maps, recursion): no convenience refuses what works without it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any

import pytest

pytest.importorskip("agent_framework", reason="agent-framework-core is not installed")

from agent_framework import FunctionTool
from agent_framework import Message as FrameworkMessage

from toolgrammar.adapters import _shared
from toolgrammar.adapters.agent_framework import ToolGrammarChatClient
from toolgrammar.core.testing import ScriptedModel
from toolgrammar.tools import ToolSet

from ..odd_requests import Ask, as_openai, never_refuses, read


def as_dicts(model: ScriptedModel, tools: ToolSet, options: dict[str, Any], choice: str) -> Iterable[tuple[str, Any]]:
    """Ask with tools as dicts of OpenAI's form."""
    return asked(model, as_openai(tools), options, choice)


def as_objects(model: ScriptedModel, tools: ToolSet, options: dict[str, Any], choice: str) -> Iterable[tuple[str, Any]]:
    """Ask with tools as the framework makes them of an MCP server's."""
    functions = [each["function"] for each in as_openai(tools)]
    made = [
        FunctionTool(name=one["name"], description=one["description"], func=None, input_model=one["parameters"])
        for one in functions
    ]
    return asked(model, made, options, choice)


def asked(model: ScriptedModel, tools: Any, options: dict[str, Any], choice: str) -> Iterable[tuple[str, Any]]:
    """Ask, and return the calls; nothing is run."""
    if (several := options.pop("parallel_tool_calls", None)) is not None:
        options["allow_multiple_tool_calls"] = several
    client = ToolGrammarChatClient(model=model, function_invocation_configuration={"enabled": False})
    asking = client.get_response(
        [FrameworkMessage("user", ["Go."])], options={"tools": tools, "tool_choice": choice, **options}
    )
    response = asyncio.run(asking)
    contents = [each for message in response.messages for each in message.contents]
    return read((each.name, each.arguments) for each in contents if each.type == "function_call")


@pytest.mark.parametrize("ask", [as_dicts, as_objects])
def test_no_convenience_refuses_an_odd_tool(ask: Ask) -> None:
    """Of each set of odd tools, as dicts or as objects, a request is answered with each convenience."""
    never_refuses(ask, _shared.GENERATION, 5)
