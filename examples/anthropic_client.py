"""Anthropic's own client over a model in this process: a tool is called, run, and its result used. No port, no key.

Run it: python examples/anthropic_client.py
"""

from __future__ import annotations

from typing import Any

from toolgrammar.adapters.anthropic import client
from toolgrammar.core import Message, ToolCall
from toolgrammar.core.testing import ScriptedModel


def count_trees(park: str, kinds: dict[str, int]) -> str:
    """Count trees in a park."""
    return f"{park} has {sum(kinds.values())} trees"


TOOL: Any = {
    "name": "count_trees",
    "description": count_trees.__doc__,
    "input_schema": {
        "type": "object",
        "properties": {
            "park": {"type": "string"},
            "kinds": {"type": "object", "additionalProperties": {"type": "integer", "minimum": 1}},
        },
        "required": ["park", "kinds"],
    },
}

# A scripted model, so that the output is reproducible. For a real model use "smollm2" or "hf:PATH".
call = Message("assistant", tool_calls=(ToolCall("", "count_trees", {"park": "Abbey", "kinds": {"oak": 3, "ash": 4}}),))
model = ScriptedModel([call, "There are seven."])

with client({"small": model}) as anthropic:
    messages: list[Any] = [{"role": "user", "content": "Count the trees."}]
    asked: Any = {"model": "small", "max_tokens": 200, "tools": [TOOL]}
    answer = anthropic.messages.create(messages=messages, **asked)
    messages.append({"role": "assistant", "content": answer.content})
    for block in answer.content:
        if block.type == "tool_use":
            print(f"model calls: {block.name}({block.input})")
            result = count_trees(**block.input)
            print("tool says:  ", result)
            results = [{"type": "tool_result", "tool_use_id": block.id, "content": result}]
            messages.append({"role": "user", "content": results})
    with anthropic.messages.stream(messages=messages, **asked) as stream:
        print("model says: ", "".join(stream.text_stream))
