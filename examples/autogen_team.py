"""An AutoGen team: a selector names who goes on, one hands over to another, and tools are called on the way.

    pip install 'toolgrammar[autogen]' autogen-agentchat
    python examples/autogen_team.py

It runs offline and at once, because the model follows a script. For a real one, replace the model by::

    ToolGrammarChatCompletionClient(model="hf:Qwen/Qwen2.5-1.5B-Instruct")
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from autogen_agentchat.agents import AssistantAgent
from autogen_agentchat.conditions import MaxMessageTermination
from autogen_agentchat.messages import HandoffMessage, TextMessage
from autogen_agentchat.teams import SelectorGroupChat, Swarm

from toolgrammar.adapters.autogen import ToolGrammarChatCompletionClient
from toolgrammar.core import Message, ToolCall
from toolgrammar.core.testing import ScriptedModel


def script(messages: Sequence[Message]) -> Message | str:
    """A model that likes to talk where a name is asked, and hands the work over where it can."""
    if "role play game" in messages[0].text:
        return "I think that line_editor should go on."
    if "You greet" in messages[0].text:
        return Message("assistant", tool_calls=(ToolCall("", "transfer_to_poet", {}),))
    return f"A line by {len(messages)} messages."


async def run() -> None:
    """Run both teams, of agents that share one client."""
    client = ToolGrammarChatCompletionClient(model=ScriptedModel(script), max_tokens=200)
    writers = [AssistantAgent(name, client, description="Writes.") for name in ("poet", "line_editor", "critic")]
    chat = SelectorGroupChat(writers, client, termination_condition=MaxMessageTermination(4), max_selector_attempts=1)
    result = await chat.run(task="Write.")
    print("selected:   ", [message.source for message in result.messages[1:]])

    greeter = AssistantAgent("greeter", client, handoffs=["poet"], system_message="You greet, and hand over.")
    swarm = Swarm([greeter, AssistantAgent("poet", client)], termination_condition=MaxMessageTermination(5))
    for message in (await swarm.run(task="Hello.")).messages:
        if isinstance(message, HandoffMessage):
            print(f"handed over: {message.source} -> {message.target}")
        elif isinstance(message, TextMessage) and message.source == "poet":
            print(f"poet says:   {message.content}")


if __name__ == "__main__":
    asyncio.run(run())
