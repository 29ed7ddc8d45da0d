"""Ids of the calls of a conversation, which chat templates and the APIs of servers need, and callers may leave out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ..conversation.messages import Message


def with_call_ids(messages: Sequence[Message]) -> list[Message]:
    """Return a conversation in which each call has an id, and each result that of its call and its tool's name.

    The second call in message 3 gets ``call_3_1``. A result without an id answers the first call of the last turn with
    calls that has no result yet.
    """
    named: list[Message] = []
    names: dict[str, str] = {}  # of the tools, by the ids of their calls
    waiting: list[str] = []  # ids of the calls of the last turn that have no result
    for number, message in enumerate(messages):
        if message.tool_calls:
            calls = [
                call if call.id else replace(call, id=f"call_{number}_{index}")
                for index, call in enumerate(message.tool_calls)
            ]
            waiting = [call.id for call in calls]
            names |= {call.id: call.name for call in calls}
            message = replace(message, tool_calls=tuple(calls))
        elif message.role == "tool":
            call_id = message.tool_call_id or next(iter(waiting), f"call_{number}")
            if call_id in waiting:
                waiting.remove(call_id)
            message = replace(message, tool_call_id=call_id, name=message.name or names.get(call_id))
        named.append(message)
    return named
