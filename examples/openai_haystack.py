"""Haystack over a model in this process: its generator for OpenAI's chat, with a tool.

Run it: python examples/openai_haystack.py
"""

from __future__ import annotations

from typing import Annotated

from haystack.components.generators.chat import OpenAIChatGenerator
from haystack.dataclasses import ChatMessage
from haystack.tools import create_tool_from_function
from haystack.utils import Secret

from toolgrammar.adapters.openai import client
from toolgrammar.core import Message, ToolCall
from toolgrammar.core.testing import ScriptedModel


def depth(lake: Annotated[str, "which lake"]) -> str:
    """Return the depth of a lake."""
    return f"{lake} is 37 metres deep"


# A scripted model, so that the output is reproducible. For a real model use "smollm2" or "hf:PATH".
call = Message("assistant", tool_calls=(ToolCall("", "depth", {"lake": "Plau"}),))
script = ScriptedModel([call, "37 metres."])

tool = create_tool_from_function(depth)
generator = OpenAIChatGenerator(Secret.from_token("none"), model="small", tools=[tool])
generator.client = client({"small": script})
messages = [ChatMessage.from_user("How deep is lake Plau?")]
messages += generator.run(messages)["replies"]
for wanted in messages[-1].tool_calls:
    print(f"model calls: {wanted.tool_name}({wanted.arguments})")
    messages.append(ChatMessage.from_tool(tool.invoke(**wanted.arguments), origin=wanted))
print("tool says:  ", messages[-1].tool_call_result.result)
print("model says: ", generator.run(messages)["replies"][0].text)
