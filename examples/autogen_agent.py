"""An AutoGen agent that calls a tool, thinks about the result, and answers as an object.

    pip install 'toolgrammar[autogen]' autogen-agentchat
    python examples/autogen_agent.py

It runs offline and at once, because the model follows a script. For a real one, replace the model by::

    ToolGrammarChatCompletionClient(model="hf:Qwen/Qwen2.5-1.5B-Instruct")
"""

from __future__ import annotations

import asyncio

from autogen_agentchat.agents import AssistantAgent
from autogen_agentchat.messages import StructuredMessage, ToolCallExecutionEvent, ToolCallRequestEvent
from pydantic import BaseModel

from toolgrammar.adapters.autogen import ToolGrammarChatCompletionClient
from toolgrammar.core import Message, ToolCall
from toolgrammar.core.testing import ScriptedModel


class Folder(BaseModel):
    """A folder with folders in it."""

    name: str
    folders: list[Folder] = []


class Answer(BaseModel):
    """How deep it goes."""

    depth: int
    deepest: str


def depth_of(folder: Folder) -> int:
    """Count the levels of a folder."""
    return 1 + max((depth_of(inner) for inner in folder.folders), default=0)


async def run() -> None:
    """Ask one question and print what the agent does."""
    tree = {"name": "home", "folders": [{"name": "music", "folders": [{"name": "jazz", "folders": []}]}]}
    request = Message("assistant", tool_calls=(ToolCall("", "depth_of", {"folder": tree}),))
    client = ToolGrammarChatCompletionClient(model=ScriptedModel([request, '{"depth": 3, "deepest": "jazz"}']))
    agent = AssistantAgent("archivist", model_client=client, tools=[depth_of], output_content_type=Answer)
    result = await agent.run(task="home has music, music has jazz. How deep is home?")
    for message in result.messages:
        if isinstance(message, ToolCallRequestEvent):
            print(f"model calls:  {message.content[0].name}({message.content[0].arguments})")
        elif isinstance(message, ToolCallExecutionEvent):
            print(f"tool says:    {message.content[0].content}")
        elif isinstance(message, StructuredMessage):
            print(f"agent says:   {message.content!r}")
        else:
            print(f"{message.source + ' says:':13} {message.content}")
    usage = client.total_usage()
    print(f"tokens:       {usage.prompt_tokens} read, {usage.completion_tokens} written")


if __name__ == "__main__":
    asyncio.run(run())
