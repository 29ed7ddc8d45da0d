"""LlamaIndex over a model in this process: an agent with a tool, then an object of a class.

Run it: python examples/openai_llama_index.py
"""

from __future__ import annotations

import asyncio

from llama_index.core.agent.workflow import FunctionAgent, ToolCallResult
from llama_index.core.prompts import PromptTemplate
from llama_index.llms.openai_like import OpenAILike
from pydantic import BaseModel, Field

from toolgrammar.adapters.openai import async_http_client, http_client
from toolgrammar.core import Message, ToolCall
from toolgrammar.core.testing import ScriptedModel


def height(tower: str) -> str:
    """Return the height of a tower."""
    return f"{tower} is 40 metres high"


class Tower(BaseModel):
    """A tower."""

    name: str
    bells: int = Field(ge=0, le=12)


def call(tool: str, **arguments: object) -> Message:
    """A reply that calls a tool."""
    return Message("assistant", tool_calls=(ToolCall("", tool, arguments),))


# A scripted model, so that the output is reproducible. For a real model use "smollm2" or "hf:PATH".
# At the end it prefers 99 bells, but the grammar enforces the bound.
script = ScriptedModel([call("height", tower="St Mary"), "40 metres.", call("Tower", name="St Mary", bells=99)])


async def main() -> None:
    """Ask the agent, then for an object."""
    models = {"small": script}
    llm = OpenAILike(
        model="small",
        api_key="none",
        is_chat_model=True,
        is_function_calling_model=True,
        http_client=http_client(models),
        async_http_client=async_http_client(models),
    )
    run = FunctionAgent(tools=[height], llm=llm).run("How high is St Mary?")
    async for event in run.stream_events():
        if isinstance(event, ToolCallResult):
            print(f"called {event.tool_name}({event.tool_kwargs}): {event.tool_output.content}")
    print("agent says:", (await run).response.content)
    tower = llm.structured_predict(Tower, PromptTemplate("The tower of St Mary."))
    print(tower.name, 0 <= tower.bells <= 12)


asyncio.run(main())
