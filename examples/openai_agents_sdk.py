"""OpenAI's Agents SDK over a model in this process: an agent calls a tool and answers in a class of its own.

Run it: python examples/openai_agents_sdk.py
"""

from __future__ import annotations

from agents import Agent, OpenAIChatCompletionsModel, Runner, function_tool, set_tracing_disabled
from pydantic import BaseModel, Field

from toolgrammar.adapters.openai import async_client
from toolgrammar.core import Message, ToolCall
from toolgrammar.core.testing import ScriptedModel


class Report(BaseModel):
    """What the agent answers."""

    bells: int = Field(ge=0)


@function_tool
def count_bells(tower: str) -> str:
    """Count the bells of a tower."""
    return f"{tower}: 7 bells"


# A scripted model, so that the output is reproducible. For a real model use "smollm2" or "hf:PATH".
call = Message("assistant", tool_calls=(ToolCall("", "count_bells", {"tower": "North"}),))
script = ScriptedModel([call, '{"bells": 7}'])

set_tracing_disabled(True)  # it would send traces to OpenAI
model = OpenAIChatCompletionsModel(model="small", openai_client=async_client({"small": script}))
agent = Agent(name="warden", instructions="Be brief.", tools=[count_bells], output_type=Report, model=model)
result = Runner.run_sync(agent, "How many bells has the north tower?")
for item in result.new_items:
    print(item.type, getattr(item, "output", ""))
print(repr(result.final_output))
