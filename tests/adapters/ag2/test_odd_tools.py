"""Odd tools in AG2 (open roots, odd names, maps, recursion): no convenience refuses what works without it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any

import pytest

pytest.importorskip("ag2", reason="ag2 is not installed")

from ag2.events import ModelRequest, TextInput
from ag2.tools.final.function_tool import FunctionDefinition, FunctionToolSchema

from toolgrammar.adapters import _shared
from toolgrammar.adapters.ag2 import ToolGrammarConfig
from toolgrammar.core.testing import ScriptedModel
from toolgrammar.tools import ToolSet

from ..odd_requests import as_openai, never_refuses, read


class Context:
    """What a client needs of AG2's context."""

    prompt: tuple[str, ...] = ()

    async def send(self, event: Any) -> None:
        """Take an event."""


def ask(model: ScriptedModel, tools: ToolSet, options: dict[str, Any], choice: Any) -> Iterable[tuple[str, Any]]:
    """Ask a client with the schemas of tools, as an agent hands them on."""
    functions = [each["function"] for each in as_openai(tools)]
    schemas = [
        FunctionToolSchema(
            function=FunctionDefinition(name=each["name"], description="", parameters=each["parameters"])
        )
        for each in functions
    ]
    client = ToolGrammarConfig(model, tool_choice=choice, **options).create()
    asked = client([ModelRequest([TextInput("Go.")])], Context(), tools=schemas, response_schema=None, serializer=None)
    calls = asyncio.run(asked).tool_calls  # type: ignore[arg-type]
    return read((call.name, call.arguments) for call in (calls.calls if calls else ()))


def test_no_convenience_refuses_an_odd_tool() -> None:
    """Of each set of odd tools a request is answered with each convenience."""
    never_refuses(ask, _shared.GENERATION, 5)
