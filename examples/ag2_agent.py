"""An agent of AG2 that calls a tool, and one that answers as an object, whole and streamed.

    pip install 'toolgrammar[ag2]'
    python examples/ag2_agent.py

It runs offline and at once, because the model follows a script. For a real one, replace it by::

    ToolGrammarConfig("hf:Qwen/Qwen2.5-1.5B-Instruct")
"""

from __future__ import annotations

import asyncio

from ag2 import Agent, MemoryStream, tool
from ag2.events import ModelMessageChunk
from pydantic import BaseModel

from toolgrammar.adapters.ag2 import ToolGrammarConfig
from toolgrammar.core import Message, ToolCall
from toolgrammar.core.testing import ScriptedModel


class Plan(BaseModel):
    """What the agent answers."""

    beds: dict[str, int]


@tool
def soil_of(bed: str, measured: dict[str, int]) -> str:
    """Return the soil of a bed."""
    print(f"tool runs:  soil_of({bed!r}, {measured})")
    return "sandy"


async def run() -> None:
    """Ask with a tool, then for an object, in pieces."""
    call = Message("assistant", tool_calls=(ToolCall("", "soil_of", {"bed": "east", "measured": {"ph": 6}}),))
    config = ToolGrammarConfig(ScriptedModel([call, "The soil is sandy.", '{"beds": {"east": 12}}']), streaming=True)
    gardener = Agent("gardener", "Be brief.", config=config, tools=[soil_of])
    answer = await gardener.ask("What grows in the east bed?")
    print(f"agent says: {await answer.content()}")

    pieces: list[str] = []
    stream = MemoryStream()

    @stream.where(ModelMessageChunk).subscribe
    def keep(event: ModelMessageChunk) -> None:
        pieces.append(event.content)

    planner = Agent("planner", config=config, response_schema=Plan)
    plan = await planner.ask("Plan the east bed.", stream=stream)
    print(f"plan:       {await plan.content()!r}")
    print(f"in pieces:  {len(pieces) > 1}")


if __name__ == "__main__":
    asyncio.run(run())
