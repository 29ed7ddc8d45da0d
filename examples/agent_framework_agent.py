"""An agent of Microsoft Agent Framework that calls a tool, answers as an object, and is a tool of another agent.

    pip install 'toolgrammar[agent-framework]'
    python examples/agent_framework_agent.py

It runs offline and at once, because the models follow a script. For a real one, replace them by::

    ToolGrammarChatClient(model="hf:Qwen/Qwen2.5-1.5B-Instruct")
"""

from __future__ import annotations

import asyncio

from pydantic import BaseModel

from toolgrammar.adapters.agent_framework import ToolGrammarChatClient
from toolgrammar.core import Message, ToolCall
from toolgrammar.core.testing import ScriptedModel


class Route(BaseModel):
    """A way to go."""

    stops: list[str]
    minutes: int


def timetable(stop: str, lines: dict[str, int], at_night: bool = False) -> str:
    """When lines leave from a stop, in minutes."""
    print(f"tool runs:    timetable({stop!r}, {lines}, at_night={at_night})")
    return ", ".join(f"line {line} in {minutes}" for line, minutes in lines.items())


def says(*replies: Message | str) -> ToolGrammarChatClient:
    """A client whose model says these replies."""
    return ToolGrammarChatClient(model=ScriptedModel(replies), default_options={"max_tokens": 1000})


async def run() -> None:
    """Ask one agent, then another that asks a third; stream the last answer."""
    call = Message("assistant", tool_calls=(ToolCall("", "timetable", {"stop": "Quay", "lines": {"7": 4}}),))
    planner = says(call, '{"stops": ["Quay", "Hill"], "minutes": 11}').as_agent(name="planner", tools=[timetable])
    result = await planner.run("How do I get up the hill?", options={"response_format": Route})
    print(f"agent says:   {result.value!r}")

    helper = says("Take line 7.").as_agent(name="helper", description="Knows the lines.")
    asks = Message("assistant", tool_calls=(ToolCall("", "helper", {"task": "Which line?"}),))
    guide = says(asks, "The helper says: take line 7.").as_agent(name="guide", tools=[helper.as_tool()])
    print("guide says:   ", end="")
    async for update in guide.run("Which line?", stream=True):
        print(update.text, end="")
    print()


if __name__ == "__main__":
    asyncio.run(run())
