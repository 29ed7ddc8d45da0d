"""Options of a generation in requests to servers: each is sent, refused, or done on this side."""

from __future__ import annotations

import pytest

from toolgrammar.core import GenerateParams
from toolgrammar.core.errors import ModelError
from toolgrammar.core.generation import OPTIONS
from toolgrammar.core.models.remote.servers import sampling

from ...generation.option_values import other

#: Options that say what the answer is, or what is made of it: they are read by the form of a request, or after it.
HERE = {
    *("tools", "tool_choice", "tool_format", "parallel_tool_calls", "equal_calls", "tools_in_prompt", "empty_answer"),
    *("output_type", "json_mode", "grammar", "other_spellings", "thinking_markers", "on_budget"),
    *("jump_forward", "cancel", "timeout", "policy"),
}


@pytest.mark.parametrize("kind", ["openai", "vllm", "sglang", "llama.cpp", "ollama"])
@pytest.mark.parametrize("name", sorted(OPTIONS.keys() - HERE))
def test_no_option_is_dropped_in_silence(name: str, kind: str) -> None:
    """A server gets an option, or refuses it by its name."""
    try:
        sent = sampling(kind, GenerateParams(**{name: other(name)}))
    except ModelError as error:
        assert name in str(error)
    else:
        assert not OPTIONS[name].local
        assert sent != sampling(kind, GenerateParams())
