"""An AutoGen agent with a model on a server: its answers are validated before any tool runs.

    pip install 'toolgrammar[autogen]' autogen-agentchat
    python examples/autogen_remote.py

It runs offline and at once, because it starts a server of its own with a scripted model. For a real one say where::

    ToolGrammarChatCompletionClient(model="llama.cpp:default@http://localhost:8080/v1")
"""

from __future__ import annotations

import asyncio

from autogen_agentchat.agents import AssistantAgent
from autogen_agentchat.messages import ToolCallExecutionEvent, ToolCallRequestEvent
from local_server import LocalServer

from toolgrammar.adapters.autogen import ToolGrammarChatCompletionClient

# The replies of the server. The first one calls an unknown tool.
SCRIPT = [
    ("find_trains", '{"to": "Bergen"}'),
    ("find_train", '{"to": "Bergen", "after": 14}'),
    "Take the train at 14:35.",
]


def find_train(to: str, after: int) -> str:
    """Find the next train to a town after an hour of the day."""
    return f"{after}:35 to {to}, track 3"


async def run() -> None:
    """Ask one question and print what the agent does."""
    with LocalServer(SCRIPT) as server:
        client = ToolGrammarChatCompletionClient(model=f"openai:small@{server.url}")
        agent = AssistantAgent("conductor", model_client=client, tools=[find_train], reflect_on_tool_use=True)
        result = await agent.run(task="When can I go to Bergen after two?")
        for message in result.messages:
            if isinstance(message, ToolCallRequestEvent):
                print(f"model calls: {message.content[0].name}({message.content[0].arguments})")
            elif isinstance(message, ToolCallExecutionEvent):
                print(f"tool says:   {message.content[0].content}")
            else:
                print(f"{message.source + ' says:'} {message.to_text()}")
        print(f"requests:    {len(server.requests)}; {client.total_usage().prompt_tokens} tokens read")


if __name__ == "__main__":
    asyncio.run(run())
