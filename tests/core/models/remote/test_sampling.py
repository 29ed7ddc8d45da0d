"""Options of a generation in requests to servers: each is sent, refused, or done on this side."""

from __future__ import annotations

from typing import Any

import pytest

from toolgrammar.core import GenerateParams, Message
from toolgrammar.core.basics.options import SERVERS
from toolgrammar.core.errors import ModelError
from toolgrammar.core.generation import OPTIONS
from toolgrammar.core.models.remote.anthropic_messages import AnthropicMessages
from toolgrammar.core.models.remote.chat_completions import ChatCompletions
from toolgrammar.core.models.remote.converse import Converse
from toolgrammar.core.models.remote.form import Form
from toolgrammar.core.models.remote.gemini import Gemini

from ...generation.option_values import other

#: Options that say what the answer is, or what is made of it: they are read by the form of a request, or after it.
HERE = {
    *("tools", "tool_choice", "tool_format", "parallel_tool_calls", "equal_calls", "tools_in_prompt", "empty_answer"),
    *("output_type", "json_mode", "grammar", "other_spellings", "thinking_markers", "on_budget"),
    *("jump_forward", "cancel", "timeout", "policy"),
}


#: The protocol of each kind of server with an API of its own; the others have OpenAI's chat completions.
PROTOCOLS = {"anthropic": AnthropicMessages, "gemini": Gemini, "bedrock": Converse}


def body(kind: str, **options: Any) -> dict[str, Any]:
    """The body of a request of a user's text with some options."""
    protocol: Any = PROTOCOLS.get(kind, ChatCompletions)(kind, "m", None, None)
    made: dict[str, Any] = protocol.body(GenerateParams(**options), Form("text"), [Message("user", "Hi")], is_free=True)
    return made


@pytest.mark.parametrize("kind", SERVERS)
@pytest.mark.parametrize("name", sorted(OPTIONS.keys() - HERE))
def test_no_option_is_dropped_in_silence(name: str, kind: str) -> None:
    """A server gets an option, or refuses it by its name."""
    try:
        sent = body(kind, **{name: other(name)})
    except ModelError as error:
        assert name in str(error)
    else:
        assert not OPTIONS[name].local
        assert sent != body(kind)
