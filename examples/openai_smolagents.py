"""smolagents over a model in this process: a tool-calling agent, whose calls are always of its tools.

Run it: python examples/openai_smolagents.py
"""

from __future__ import annotations

from smolagents import OpenAIModel, ToolCallingAgent, tool

from toolgrammar.adapters.openai import http_client
from toolgrammar.core import Message, ToolCall
from toolgrammar.core.testing import ScriptedModel


@tool
def tide(harbour: str, hour: int) -> str:
    """Return the tide.

    Args:
        harbour: where.
        hour: when, from 0 to 23.
    """
    return f"high water in {harbour} at {hour}"


# A scripted model, so that the output is reproducible. For a real model use "smollm2" or "hf:PATH".
script = ScriptedModel(
    [
        Message("assistant", tool_calls=(ToolCall("", "tide", {"harbour": "Husum", "hour": 9}),)),
        Message("assistant", tool_calls=(ToolCall("", "final_answer", {"answer": "Sail at nine."}),)),
    ]
)

http = http_client({"small": script})
model = OpenAIModel("small", api_key="none", client_kwargs={"http_client": http}, parallel_tool_calls=False)
agent = ToolCallingAgent(tools=[tide], model=model, verbosity_level=0, max_steps=3)
print(agent.run("When can I sail?"))
for step in agent.memory.steps[1:]:
    for wanted in step.tool_calls or []:
        print(f"called {wanted.name}({wanted.arguments})")
