"""Odd tools in CrewAI (open roots, odd names, maps, recursion): no convenience refuses what works without it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from toolgrammar.adapters import _shared
from toolgrammar.adapters.crewai import ToolGrammarLLM
from toolgrammar.core.testing import ScriptedModel
from toolgrammar.tools import ToolSet

from ..odd_requests import as_openai, never_refuses, read

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning:crewai")


def ask(model: ScriptedModel, tools: ToolSet, options: dict[str, Any], choice: str) -> Iterable[tuple[str, Any]]:
    """Ask with tools as CrewAI's executor hands them over."""
    answer = ToolGrammarLLM(model=model, tool_choice=choice, **options).call("Go.", tools=as_openai(tools))
    calls = answer if isinstance(answer, list) else []
    return read((call["function"]["name"], call["function"]["arguments"]) for call in calls)


def test_no_convenience_refuses_an_odd_tool() -> None:
    """Of each set of odd tools a request is answered with each convenience."""
    never_refuses(ask, _shared.GENERATION, 3)
