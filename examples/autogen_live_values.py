"""An AutoGen agent whose arguments refer to real things: seats of a train, and ids that a tool returned.

    pip install 'toolgrammar[autogen]' autogen-agentchat
    python examples/autogen_live_values.py

Arguments are a Pydantic class, because AutoGen drops the annotations of a function's parameters.

The model follows a script, and names a seat and a booking that do not exist; the grammar lets it write real ones only.
For a real model, replace it by::

    ToolGrammarChatCompletionClient(model="hf:Qwen/Qwen2.5-1.5B-Instruct")
"""

import asyncio
from typing import Annotated, Any

from autogen_agentchat.agents import AssistantAgent
from autogen_agentchat.messages import ToolCallExecutionEvent, ToolCallRequestEvent
from autogen_core import CancellationToken
from autogen_core.tools import BaseTool
from pydantic import BaseModel

from toolgrammar.adapters.autogen import ToolGrammarChatCompletionClient
from toolgrammar.core import Message, Seen, ToolCall, Values
from toolgrammar.core.testing import ScriptedModel

FREE = {"IC 702": [14, 61], "RE 5": [3]}


async def free_seats(call: dict[str, Any]) -> list[int]:
    """Return the free seats of the train that the call has named; a service would be asked here."""
    return FREE.get(call["train"], [])


def list_bookings() -> str:
    """List the bookings of the user."""
    return '[{"booking_id": "B-77", "train": "IC 702"}]'


class Move(BaseModel):
    """The arguments of `MoveSeat`."""

    booking: Annotated[str, Seen("booking_id")]
    train: str
    seat: Annotated[int, Values(free_seats, after=("train",))]


class MoveSeat(BaseTool[Move, str]):
    """A tool that moves a booking to another seat."""

    def __init__(self) -> None:
        super().__init__(Move, str, "move_seat", "Move a booking to another seat.")

    async def run(self, args: Move, cancellation_token: CancellationToken) -> str:
        """Move the booking."""
        return f"{args.booking} has seat {args.seat} in {args.train}"


def turn(name: str, **arguments: Any) -> Message:
    """Return a turn with one call."""
    return Message("assistant", tool_calls=(ToolCall("", name, arguments),))


async def run() -> None:
    """Ask once and print what the agent does."""
    wrong = turn("move_seat", booking="B-1", train="IC 702", seat=99)
    client = ToolGrammarChatCompletionClient(
        model=ScriptedModel([turn("list_bookings"), wrong, "You have a new seat."])
    )
    agent = AssistantAgent("clerk", client, tools=[list_bookings, MoveSeat()], max_tool_iterations=2)
    result = await agent.run(task="Move me to another seat in IC 702.")
    for message in result.messages:
        if isinstance(message, ToolCallRequestEvent):
            print(f"model calls:  {message.content[0].name}({message.content[0].arguments})")
        elif isinstance(message, ToolCallExecutionEvent):
            print(f"tool says:    {message.content[0].content}")


if __name__ == "__main__":
    asyncio.run(run())
