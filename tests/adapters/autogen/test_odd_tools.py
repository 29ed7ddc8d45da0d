"""Odd tools in AutoGen (open roots, odd names, maps, recursion): no convenience refuses what works without it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any

from autogen_core.models import UserMessage

from toolgrammar.adapters import _shared
from toolgrammar.adapters.autogen import ToolGrammarChatCompletionClient
from toolgrammar.core.testing import ScriptedModel
from toolgrammar.tools import ToolSet

from ..odd_requests import as_openai, never_refuses, read


def ask(model: ScriptedModel, tools: ToolSet, options: dict[str, Any], choice: Any) -> Iterable[tuple[str, Any]]:
    """Ask with schemas of tools, as workbenches list them."""
    schemas: Any = [each["function"] for each in as_openai(tools)]
    client = ToolGrammarChatCompletionClient(model=model)
    hello = [UserMessage(content="Go.", source="user")]
    result = asyncio.run(client.create(hello, tools=schemas, tool_choice=choice, extra_create_args=options))
    calls = result.content if isinstance(result.content, list) else []
    return read((call.name, call.arguments) for call in calls)


def test_no_convenience_refuses_an_odd_tool() -> None:
    """Of each set of odd tools a request is answered with each convenience."""
    never_refuses(ask, _shared.GENERATION, 4)
