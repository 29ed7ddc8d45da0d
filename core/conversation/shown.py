"""A conversation as models are shown it: results in the order of their calls, and arguments that could not be read.

Many chat templates write results without ids, so that a model pairs them with the calls by their order. And a call
whose arguments are no object cannot be written as a call by most templates and servers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from .messages import Message, ToolCall

#: The member that holds arguments that are not a JSON object, as they were written. pydantic-ai shows models the same.
UNREADABLE = "INVALID_JSON"


def as_shown(messages: Sequence[Message]) -> tuple[Message, ...]:
    """Return a conversation as a model is shown it.

    Results that follow a turn with calls are in the order of the calls, if the calls of all are known and different.
    A call whose arguments could not be read has one argument, `UNREADABLE`, with their text.
    """
    told: list[Message] = []
    results: list[Message] = []
    calls: tuple[ToolCall, ...] = ()
    for message in messages:
        if message.role == "tool":
            results.append(message)
            continue
        told += _in_order(results, calls)
        results = []
        if message.tool_calls:
            follows = bool(told) and bool(told[-1].tool_calls)  # some histories have a turn for each call
            calls = calls + message.tool_calls if follows else message.tool_calls
            message = _readable(message)
        told.append(message)
    return (*told, *_in_order(results, calls))


def _in_order(results: list[Message], calls: Sequence[ToolCall]) -> list[Message]:
    """Return results in the order of their calls: by ids, or by the tools' names where no result has an id."""
    if len(results) < 2:
        return results
    by_id = any(result.tool_call_id for result in results)
    keys = [result.tool_call_id if by_id else result.name for result in results]
    known = [call.id if by_id else call.name for call in calls]
    places: Mapping[str | None, int] = {key: place for place, key in enumerate(known)}
    if len(places) < len(known) or len({*keys}) < len(keys) or not places.keys() >= {*keys}:
        return results
    return [result for _, result in sorted(zip(keys, results, strict=True), key=lambda pair: places[pair[0]])]


def _readable(message: Message) -> Message:
    """Return a turn whose calls all have arguments that a model can read."""
    if all(call.error is None or call.arguments for call in message.tool_calls):
        return message
    return replace(message, tool_calls=tuple(map(_with_text, message.tool_calls)))


def _with_text(call: ToolCall) -> ToolCall:
    """Return a call with the text of its arguments as its argument, if they could not be read."""
    if call.error is None or call.arguments:
        return call
    if not call.raw or "".join(call.raw.split()) == "{}":
        return replace(call, arguments={}, error=None)  # with an error, `NoArguments` would take their place
    return replace(call, arguments={UNREADABLE: call.raw})
