"""Requests to engines that write in another process.

An engine can ask no callable, and has no conversation. A *settled* tool or schema needs neither: all values that a
program or a conversation gives are in the schema itself.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from toolgrammar.core.errors import Place, PolicyError, UnsupportedSchemaError
from toolgrammar.core.live import LiveSchema
from toolgrammar.tools import ToolSet

from .options import require_nobody

#: The remedies: of a value that a callable gives, and of one that the conversation does.
_CALLABLE = (
    "the callables are in another process: give the values as an enum, or ask through toolgrammar "
    "(load_model('vllm:MODEL@http://...') checks each answer; hf: and gguf: enforce the values)"
)
_CONVERSATION = (
    "resolve it before: ToolSet(tools).in_conversation(messages).to_openai(bound=True) for tools, "
    "toolgrammar.core.of_conversation(schema, messages) for a schema"
)


def settled(tools: ToolSet) -> list[dict[str, Any]]:
    """Return a tool set in its conversation as settled OpenAI-style dicts.

    Raises:
        PolicyError: they have a policy and no conversation, or the policy lets a person confirm calls.
        UnsupportedSchemaError: a callable gives values of a parameter; with its place.
    """
    if tools.policy is not None:
        require_nobody(tools.policy, "a client of the engine")
        tools.require_conversation()
    found = tools.to_openai(bound=True)
    for tool in found:
        require_settled(tool["function"]["parameters"], tool["function"]["name"])
    return found


def require_no_policy(extra: Mapping[str, Any] | None) -> None:
    """Raise a PolicyError if a request has a field that an engine would ignore: its policy."""
    if extra and extra.get("policy") is not None:
        raise PolicyError(
            "a request of the engine has no field 'policy'",
            hint="ask with load_model('vllm:MODEL@http://...'), or send envelope(ToolSet(...).under(policy)"
            ".in_conversation(messages)) as structured_outputs.grammar",
        )


def require_settled(schema: Any, tool: str | None = None) -> None:
    """Refuse a schema that is not settled.

    Args:
        schema: a JSON Schema, or JSON that holds some.
        tool: the tool of which it has the arguments; None: it is of an answer.

    Raises:
        UnsupportedSchemaError: a keyword of it (``x-values``, ``x-seen``, ...) leaves values open; with its place.
    """
    first = LiveSchema(schema).first()
    if first is not None:
        pointer, keyword, is_callable = first
        what = "is asked of a callable" if is_callable else "comes from the conversation"
        raise UnsupportedSchemaError(
            f"a value {what}, which this engine cannot do",
            hint=_CALLABLE if is_callable else _CONVERSATION,
            place=Place(pointer=pointer, keyword=keyword, tool=tool),
        )


def schemas_in(text: str) -> Iterator[Any]:
    """Yield the schemas in the JSON text of a structural tag, as far as it can be read."""
    try:
        waiting = [json.loads(text)]
    except (ValueError, RecursionError):
        return  # its reader says so
    while waiting:
        part = waiting.pop()
        if isinstance(part, Mapping):
            for key, inner in part.items():
                if key in ("schema", "json_schema"):
                    yield inner
                else:
                    waiting.append(inner)
        elif isinstance(part, list):
            waiting += part
