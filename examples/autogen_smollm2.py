"""An AutoGen agent on a small real model: it asks, calls a tool, reads the result and answers.

    pip install 'toolgrammar[autogen]' autogen-agentchat
    python examples/autogen_smollm2.py

The model is fetched once. It was never trained for tools, so a call is demanded where tools are offered; a larger model
decides for itself.
"""

from __future__ import annotations

import asyncio
from typing import Any, Literal

from autogen_agentchat.agents import AssistantAgent
from autogen_agentchat.messages import ToolCallExecutionEvent, ToolCallRequestEvent
from autogen_core.models import CreateResult

from toolgrammar.adapters.autogen import ToolGrammarChatCompletionClient


def get_weather(city: str, unit: Literal["celsius", "fahrenheit"]) -> str:
    """Current weather in a city."""
    return f"18 degrees {unit} and sunny in {city}"


class CallingClient(ToolGrammarChatCompletionClient):
    """A client that demands a call where tools are offered."""

    async def create(self, messages: Any, *, tools: Any = (), **options: Any) -> CreateResult:
        """Answer; see the base class."""
        return await super().create(messages, tools=tools, **options, **({"tool_choice": "required"} if tools else {}))


async def run() -> None:
    """Ask one question and print what the agent does."""
    client = CallingClient(model="smollm2", parallel_tool_calls=False, temperature=0, seed=1, max_tokens=100)
    agent = AssistantAgent("assistant", model_client=client, tools=[get_weather], reflect_on_tool_use=True)
    for message in (await agent.run(task="Weather in Oslo?")).messages:
        if isinstance(message, ToolCallRequestEvent):
            print(f"model calls:    {message.content[0].name}({message.content[0].arguments})")
        elif isinstance(message, ToolCallExecutionEvent):
            print(f"tool says:      {message.content[0].content}")
        else:
            print(f"{message.source + ' says:':15} {message.content}")


if __name__ == "__main__":
    asyncio.run(run())
