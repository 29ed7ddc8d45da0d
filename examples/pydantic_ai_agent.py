"""An agent of pydantic-ai that calls a tool and answers as an object, whole and streamed.

    pip install 'toolgrammar[pydantic-ai]'
    python examples/pydantic_ai_agent.py

It runs offline and at once, because the model follows a script. For a real one, replace it by::

    ToolGrammarModel("hf:Qwen/Qwen2.5-1.5B-Instruct")
"""

from __future__ import annotations

import asyncio

from pydantic import BaseModel
from pydantic_ai import Agent

from toolgrammar.adapters.pydantic_ai import ToolGrammarModel
from toolgrammar.core import Message, ToolCall
from toolgrammar.core.testing import ScriptedModel


class Plan(BaseModel):
    """What the agent answers."""

    beds: dict[str, int]


def soil_of(bed: str, measured: dict[str, int]) -> str:
    """Return the soil of a bed."""
    print(f"tool runs:  soil_of({bed!r}, {measured})")
    return "sandy"


async def run() -> None:
    """Ask once for the whole answer, and once for a stream."""
    call = Message("assistant", tool_calls=(ToolCall("", "soil_of", {"bed": "east", "measured": {"ph": 6}}),))
    model = ToolGrammarModel(ScriptedModel([call, '{"beds": {"east": 12}}'] * 2))
    agent = Agent(model, tools=[soil_of], output_type=Plan, instructions="Be brief.")
    result = await agent.run("What grows in the east bed?")
    print(f"agent says: {result.output!r}")
    async with agent.run_stream("What grows in the east bed?") as stream:
        pieces = [piece async for piece in stream.stream_output(debounce_by=None)]
    print(f"in pieces:  {pieces[-1]!r}")


if __name__ == "__main__":
    asyncio.run(run())
