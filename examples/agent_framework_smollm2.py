"""An agent of Microsoft Agent Framework on a small real model: it asks, calls a tool, reads the result and answers.

    pip install 'toolgrammar[agent-framework]'
    python examples/agent_framework_smollm2.py

The model is fetched once. It was never trained for tools, so the first call is demanded; a larger model decides for
itself.
"""

from __future__ import annotations

import asyncio
from typing import Literal

from toolgrammar.adapters.agent_framework import ToolGrammarChatClient


def get_weather(city: str, unit: Literal["celsius", "fahrenheit"]) -> str:
    """Current weather in a city."""
    print(f"model calls: get_weather({city!r}, {unit!r})")
    return f"18 degrees {unit} and sunny in {city}"


async def run() -> None:
    """Ask one question and print the answer."""
    client = ToolGrammarChatClient(model="smollm2", default_options={"temperature": 0, "seed": 1, "max_tokens": 100})
    agent = client.as_agent(name="assistant", tools=[get_weather])
    # Agent Framework requires a call only in the first step.
    options = {"tool_choice": "required", "allow_multiple_tool_calls": False}
    print(f"agent says:  {await agent.run('Weather in Oslo?', options=options)}")


if __name__ == "__main__":
    asyncio.run(run())
