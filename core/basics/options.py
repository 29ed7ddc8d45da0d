"""Named values of options, and their check."""

from __future__ import annotations

from typing import Any, Literal

from ..errors import GrammarError

Whitespace = Literal["compact", "single", "flexible"]

#: Order of the members of an object: that of the schema, or any.
PropertyOrder = Literal["schema", "any"]

#: Treatment of keywords that cannot be enforced exactly: narrow them; raise an error; or, if they cannot be narrowed,
#: check them after generation.
OnUnsupported = Literal["narrow", "error", "validate"]


#: Kinds of servers, which are the schemes of their models' addresses: those with an OpenAI-compatible API, and
#: providers with their own.
SERVERS = ("openai", "vllm", "sglang", "llama.cpp", "ollama", "anthropic", "gemini", "bedrock")

#: Version of the envelopes in which a tool set travels to an engine (see `toolgrammar.adapters.vllm.envelope`).
ENVELOPE_VERSION = 1


def require_word(option: str, value: Any, words: Any) -> None:
    """Check an option with a fixed set of words.

    Args:
        option: its name, for the error.
        value: its value.
        words: the ``Literal`` type of the option.

    Raises:
        GrammarError: the value is not one of the words, which the message lists.
    """
    allowed = words.__args__
    if not isinstance(value, str) or value not in allowed:
        raise GrammarError(f"{option} is {value!r}", hint=f"give one of {', '.join(map(repr, allowed))}")
