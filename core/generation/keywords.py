"""Keyword options of `Model.generate` and its siblings: written by tests/core/generation/generate.py."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypedDict

if TYPE_CHECKING:
    from ..grammar import Grammar
    from .params import JsonMode, ToolsInPrompt


class GenerateOptions(TypedDict, total=False):
    """The fields of `GenerateParams`."""

    max_tokens: int | None
    temperature: float
    top_p: float
    top_k: int
    min_p: float
    repetition_penalty: float
    logit_bias: Mapping[int, float] | None
    seed: int | None
    thinking: bool | int | Literal["auto"] | None
    thinking_markers: tuple[str, str] | None
    draft: int | None
    prefix: str
    stop: str | Sequence[str]
    output_type: Any
    json_mode: JsonMode | Literal[True] | None
    grammar: Grammar | str | Mapping[str, Any] | None
    tools: Any
    tools_in_prompt: ToolsInPrompt
    tool_choice: str
    parallel_tool_calls: bool
    equal_calls: bool
    empty_answer: bool
    other_spellings: bool
    response_schema: Mapping[str, Any] | bool | type[Any] | None
    policy: Any
    tool_format: str | None
    on_budget: Literal["close", "error"]
    max_repetition: int | None
    jump_forward: bool
    exact_choice: bool
    logprobs: int | None
    masses: bool
    trace: bool
    cancel: Callable[[], bool] | None
    timeout: float | None
