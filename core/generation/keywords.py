"""Keyword options of `Model.generate` and its siblings: written by tests/core/generation/generate.py."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Generic, Literal, TypedDict

if TYPE_CHECKING:
    from typing_extensions import Required

    from ..conversation.events import T_co
    from ..grammar import Grammar
    from .params import JsonMode, ToolsInPrompt


class OtherOptions(TypedDict, total=False):
    """The fields of `GenerateParams`, without ``output_type``."""

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
    json_mode: JsonMode | Literal[True] | None
    grammar: Grammar | str | Mapping[str, Any] | None
    tools: Any
    tools_in_prompt: ToolsInPrompt
    tool_choice: str
    parallel_tool_calls: bool
    equal_calls: bool
    empty_answer: bool
    other_spellings: bool
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


class GenerateOptions(OtherOptions, total=False):
    """The fields of `GenerateParams`."""

    output_type: Any


if TYPE_CHECKING:

    class TypedOptions(OtherOptions, Generic[T_co], total=False):
        """The same with a Python class, which is the type of the answer's value."""

        output_type: Required[type[T_co]]
