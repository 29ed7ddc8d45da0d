"""Odd tools in Pydantic AI (open roots, odd names, maps, recursion): no convenience refuses what works without it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable
from typing import Any

import pytest

pytest.importorskip("pydantic_ai", reason="pydantic-ai is not installed")

from pydantic_ai.messages import ModelRequest, ToolCallPart, UserPromptPart
from pydantic_ai.models import ModelRequestParameters
from pydantic_ai.tools import ToolDefinition

from toolgrammar.adapters import _shared
from toolgrammar.adapters.pydantic_ai import ToolGrammarModel
from toolgrammar.core.testing import ScriptedModel
from toolgrammar.tools import ToolSet

from ..odd_requests import as_openai, never_refuses, read

#: Options that have the framework's own names.
THEIRS = ("max_tokens", "temperature", "top_p", "top_k", "seed", "timeout", "logit_bias", "parallel_tool_calls")


def ask(model: ScriptedModel, tools: ToolSet, options: dict[str, Any], choice: Any) -> Iterable[tuple[str, Any]]:
    """Ask with the definitions of tools, as an agent hands them on; a demanded call is a demand for tools' output."""
    definitions = [
        ToolDefinition(name=each["function"]["name"], parameters_json_schema=each["function"]["parameters"])
        for each in as_openai(tools)
    ]
    parameters = ModelRequestParameters(function_tools=definitions, allow_text_output=choice != "required")
    settings: Any = {name if name in THEIRS else f"toolgrammar_{name}": value for name, value in options.items()}
    client = ToolGrammarModel(model)
    hello: Any = [ModelRequest(parts=[UserPromptPart(content="Go.")])]
    answer = asyncio.run(client.request(hello, settings, parameters))
    calls = [part for part in answer.parts if isinstance(part, ToolCallPart)]
    return read((call.tool_name, call.args if isinstance(call.args, str) else json.dumps(call.args)) for call in calls)


def test_no_convenience_refuses_an_odd_tool() -> None:
    """Of each set of odd tools a request is answered with each convenience."""
    never_refuses(ask, _shared.GENERATION, 6)
