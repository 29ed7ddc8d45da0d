"""Settings of pydantic-ai, with the options of `GenerateParams`: written by tests/core/generation/generate.py."""

from __future__ import annotations

from typing import Any, Literal

from .. import _shared

try:
    from pydantic_ai.settings import ModelSettings
except ImportError as error:
    raise _shared.missing("pydantic-ai-slim", "pydantic-ai") from error


class ToolGrammarModelSettings(ModelSettings, total=False):  # type: ignore[misc, call-arg]
    """The framework's settings, and ours that are not among them, prefixed, so that other models ignore them."""

    toolgrammar_min_p: float
    toolgrammar_repetition_penalty: float
    toolgrammar_thinking: bool | int | Literal["auto"]
    toolgrammar_thinking_markers: tuple[str, str]
    toolgrammar_draft: int
    toolgrammar_prefix: str
    toolgrammar_grammar: Any
    toolgrammar_tools_in_prompt: str
    toolgrammar_equal_calls: bool
    toolgrammar_empty_answer: bool
    toolgrammar_other_spellings: bool
    toolgrammar_policy: Any
    toolgrammar_tool_format: str
    toolgrammar_on_budget: str
    toolgrammar_max_repetition: int
    toolgrammar_jump_forward: bool
    toolgrammar_exact_choice: bool
