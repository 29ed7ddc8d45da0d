"""pydantic-ai over a model in this process: an agent calls a tool and answers in a class of its own.

Run it: python examples/openai_pydantic_ai.py
"""

from __future__ import annotations

from pydantic import BaseModel
from pydantic_ai import Agent
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

from toolgrammar.adapters.openai import async_client
from toolgrammar.core import Message, ToolCall
from toolgrammar.core.testing import ScriptedModel


class Plan(BaseModel):
    """What the agent answers."""

    beds: dict[str, int]


def soil_of(bed: str) -> str:
    """Return the soil of a bed."""
    return f"the soil of {bed} is sandy"


# A scripted model, so that the output is reproducible. For a real model use "smollm2" or "hf:PATH".
script = ScriptedModel(
    [
        Message("assistant", tool_calls=(ToolCall("", "soil_of", {"bed": "east"}),)),
        Message("assistant", tool_calls=(ToolCall("", "final_result", {"beds": {"east": 12}}),)),
    ]
)

model = OpenAIChatModel("small", provider=OpenAIProvider(openai_client=async_client({"small": script})))
agent = Agent(model, tools=[soil_of], output_type=Plan, instructions="Be brief.")
result = agent.run_sync("What grows in the east bed?")
for message in result.all_messages():
    for part in message.parts:
        print(f"{part.part_kind}: {getattr(part, 'content', None) or getattr(part, 'args', '')}")
print(repr(result.output))
