"""OpenAI's own client over a model in this process: a tool is called, run, and its result used. No port, no key.

Run it: python examples/openai_client.py
"""

from __future__ import annotations

import json
from typing import Any

from toolgrammar.adapters.openai import client
from toolgrammar.core import Message, ToolCall
from toolgrammar.core.testing import ScriptedModel


def find_seat(train: str, window: bool) -> str:
    """Find a free seat in a train."""
    return f"seat 14 in {train}" + (", at the window" if window else "")


TOOL: Any = {
    "type": "function",
    "function": {
        "name": "find_seat",
        "description": find_seat.__doc__,
        "parameters": {
            "type": "object",
            "properties": {"train": {"type": "string", "pattern": "^[A-Z]{2} [0-9]+$"}, "window": {"type": "boolean"}},
            "required": ["train", "window"],
        },
    },
}

# A scripted model, so that the output is reproducible. For a real model use "smollm2" or "hf:PATH".
call = Message("assistant", tool_calls=(ToolCall("", "find_seat", {"train": "IC 702", "window": True}),))
model = ScriptedModel([call, "You have seat 14."])

with client({"small": model}) as openai:
    messages: list[Any] = [{"role": "user", "content": "A seat in IC 702, please."}]
    answer = openai.chat.completions.create(model="small", messages=messages, tools=[TOOL], tool_choice="required")
    message = answer.choices[0].message
    messages.append(message.model_dump(exclude_none=True))
    for wanted in message.tool_calls or []:
        arguments = json.loads(wanted.function.arguments)
        print(f"model calls: {wanted.function.name}({arguments})")
        messages.append({"role": "tool", "tool_call_id": wanted.id, "content": find_seat(**arguments)})
    print("tool says:  ", messages[-1]["content"])
    for chunk in openai.chat.completions.create(model="small", messages=messages, tools=[TOOL], stream=True):
        print(chunk.choices[0].delta.content or "", end="")
    print()
