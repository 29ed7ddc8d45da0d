"""Odd tools in LangChain (open roots, odd names, maps, recursion): no convenience refuses what works without it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest
from langchain_core.tools import StructuredTool

from toolgrammar.adapters import _shared
from toolgrammar.adapters.langchain import ChatToolGrammar
from toolgrammar.core.testing import ScriptedModel
from toolgrammar.tools import ToolSet

from ..odd_requests import Ask, as_openai, never_refuses

KNOWN = {*_shared.GENERATION, "logprobs", "masses"}


def as_dicts(model: ScriptedModel, tools: ToolSet, options: dict[str, Any], choice: str) -> Iterable[tuple[str, Any]]:
    """Ask with tools as dicts of OpenAI's form, options as settings."""
    answer = ChatToolGrammar(model=model, **spelled(options)).bind_tools(as_openai(tools), tool_choice=choice)
    message = answer.invoke("Go.")
    return [(call["name"], call["args"]) for call in message.tool_calls]


def as_objects(model: ScriptedModel, tools: ToolSet, options: dict[str, Any], choice: str) -> Iterable[tuple[str, Any]]:
    """Ask with tools as LangChain's MCP adapter makes them, from a schema; options are bound, the answer is a stream."""
    made = [
        StructuredTool(
            name=one["name"], description=one["description"] or "A tool.", args_schema=one["parameters"], func=print
        )
        for one in (each["function"] for each in as_openai(tools))
    ]
    chat = ChatToolGrammar(model=model).bind_tools(made, tool_choice=choice, **spelled(options))
    chunks = [*chat.stream("Go.")]
    total = chunks[0]
    for chunk in chunks[1:]:
        total = total + chunk
    return [(call["name"], call["args"]) for call in total.tool_calls]


def spelled(options: dict[str, Any]) -> dict[str, Any]:
    """The options, log-probabilities in LangChain's form."""
    if "logprobs" in options:
        return {**options, "logprobs": True, "top_logprobs": options["logprobs"]}
    return options


@pytest.mark.parametrize("ask", [as_dicts, as_objects])
def test_no_convenience_refuses_an_odd_tool(ask: Ask) -> None:
    """Of each set of odd tools, as dicts or as objects, a request is answered with each convenience."""
    never_refuses(ask, KNOWN, 1)
