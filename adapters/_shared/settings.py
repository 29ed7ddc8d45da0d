"""Generation options as settings of an adapter's class: written by tests/core/generation/generate.py."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel


class Settings(BaseModel):
    """Options of `GenerateParams` that users of an adapter give by name; None means not given."""

    max_tokens: int | None = None
    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    min_p: float | None = None
    repetition_penalty: float | None = None
    logit_bias: dict[int, float] | None = None
    seed: int | None = None
    thinking: bool | int | Literal["auto"] | None = None
    thinking_markers: tuple[str, str] | None = None
    draft: int | None = None
    prefix: str | None = None
    stop: list[str] | None = None
    grammar: Any = None
    tools_in_prompt: str | None = None
    parallel_tool_calls: bool | None = None
    equal_calls: bool | None = None
    empty_answer: bool | None = None
    other_spellings: bool | None = None
    policy: Any | None = None
    tool_format: str | None = None
    on_budget: str | None = None
    max_repetition: int | None = None
    jump_forward: bool | None = None
    exact_choice: bool | None = None
    timeout: float | None = None
