"""An agent of Microsoft Agent Framework whose arguments refer to real things: rooms of a floor, and ids of a result.

    pip install 'toolgrammar[agent-framework]'
    python examples/agent_framework_live_values.py

The model follows a script, and names a room and a meeting that do not exist; the grammar lets it write real ones only.
For a real model, replace it by::

    ToolGrammarChatClient(model="hf:Qwen/Qwen2.5-1.5B-Instruct")
"""

import asyncio
from typing import Annotated, Any, Literal

from toolgrammar.adapters.agent_framework import ToolGrammarChatClient
from toolgrammar.core import Message, Seen, ToolCall, Values, given
from toolgrammar.core.testing import ScriptedModel

ROOMS = {("east", 1): ["Oak"], ("east", 2): ["Elm", "Ash"], ("west", 1): ["Fir"]}


def free_rooms(call: dict[str, Any]) -> list[str]:
    """Return the free rooms of a floor, in the building of the user, which the model does not see."""
    return ROOMS.get((call["building"], call["floor"]), [])


def list_meetings() -> str:
    """List the meetings of today."""
    print("tool runs:    list_meetings()")
    return '{"meetings": [{"id": "m-4", "title": "Plan"}]}'


def move_meeting(
    meeting: Annotated[str, Seen("meetings.id")],
    floor: Literal[1, 2],
    room: Annotated[str, Values(free_rooms, after=("floor", "building"))],
) -> str:
    """Move a meeting to another room."""
    print(f"tool runs:    move_meeting({meeting!r}, {floor}, {room!r})")
    return f"{meeting} is in {room}"


def turn(name: str, **arguments: Any) -> Message:
    """Return a turn with one call."""
    return Message("assistant", tool_calls=(ToolCall("", name, arguments),))


async def run() -> None:
    """Ask once, for a user of the east building."""
    wrong = turn("move_meeting", meeting="m-9", floor=2, room="Fir")
    model = ScriptedModel([turn("list_meetings"), wrong, "It is moved."])
    client = ToolGrammarChatClient(model=model, default_options={"max_tokens": 1000})
    agent = client.as_agent(name="secretary", tools=[list_meetings, move_meeting])
    with given(building="east"):
        result = await agent.run("Move the planning to the second floor.")
    print(f"agent says:   {result.text}")


if __name__ == "__main__":
    asyncio.run(run())
