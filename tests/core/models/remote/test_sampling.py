"""Options of a generation in requests to servers: each is sent, refused, or done on this side."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import pytest

from toolgrammar.core import GenerateParams
from toolgrammar.core.errors import ModelError
from toolgrammar.core.generation import OPTIONS
from toolgrammar.core.models.remote.servers import sampling

#: A value other than the default.
OTHER: dict[str, Any] = {
    "max_tokens": 9,
    "temperature": 0.5,
    "top_p": 0.5,
    "top_k": 3,
    "min_p": 0.1,
    "repetition_penalty": 1.1,
    "logit_bias": {1: 2.0},
    "seed": 4,
    "stop": ("zz",),
    "thinking": True,
    "prefix": "x",
    "draft": 5,
    "max_repetition": 7,
    "exact_choice": True,
    "logprobs": 2,
    "masses": True,
    "trace": True,
}

#: Options that say what the answer is, or what is made of it: they are read by the form of a request, or after it.
HERE = {
    *("tools", "tool_choice", "tool_format", "parallel_tool_calls", "equal_calls", "tools_in_prompt", "empty_answer"),
    *("output_type", "json_mode", "grammar", "other_spellings", "thinking_markers", "on_budget"),
    *("jump_forward", "cancel", "timeout", "policy"),
}


def test_every_option_is_in_one_list() -> None:
    """A new option shows up here."""
    assert {each.name for each in fields(GenerateParams)} == {*OTHER, *HERE}
    assert not {name for name in HERE if OPTIONS[name].local}


@pytest.mark.parametrize("kind", ["openai", "vllm", "sglang", "llama.cpp", "ollama"])
@pytest.mark.parametrize("name", OTHER)
def test_no_option_is_dropped_in_silence(name: str, kind: str) -> None:
    """A server gets an option, or refuses it by its name."""
    try:
        sent = sampling(kind, GenerateParams(**{name: OTHER[name]}))
    except ModelError as error:
        assert name in str(error)
    else:
        assert not OPTIONS[name].local
        assert sent != sampling(kind, GenerateParams())
