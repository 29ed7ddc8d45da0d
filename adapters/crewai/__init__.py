"""A CrewAI LLM whose tool calls and structured answers are valid by construction."""

from __future__ import annotations

from .llm import ToolGrammarLLM

__all__ = ["ToolGrammarLLM"]
