"""From the events of a stream to the assistant's message, and from whole calls to events."""

from __future__ import annotations

from collections.abc import Iterable

from ..json import dump_json
from .events import ArgumentsDelta, CallEnd, CallStart, Event, Generation, ReasoningDelta, TextDelta, Usage
from .messages import Message, ToolCall


class MessageBuilder:
    """Collects events; their deltas, joined, are the message."""

    def __init__(self) -> None:
        self._text: list[str] = []
        self._reasoning: list[str] = []
        self._calls: list[ToolCall] = []

    def add(self, event: Event | Generation) -> None:
        """Take the next event; one that is not part of a message changes nothing."""
        if isinstance(event, TextDelta):
            self._text.append(event.text)
        elif isinstance(event, ReasoningDelta):
            self._reasoning.append(event.text)
        elif isinstance(event, CallEnd):
            self._calls.append(event.call)

    @property
    def text(self) -> str:
        """The text so far."""
        return "".join(self._text)

    @property
    def has_calls(self) -> bool:
        """True if a tool call has ended."""
        return bool(self._calls)

    def message(self) -> Message:
        """Return the assistant's message so far."""
        reasoning = "".join(self._reasoning) or None
        return Message("assistant", self.text, reasoning=reasoning, tool_calls=tuple(self._calls))

    def cancelled(self) -> Generation:
        """Return the part of an answer that was there when the caller cancelled it."""
        return Generation(self.message(), "cancelled", Usage())


def arguments_text(call: ToolCall) -> str:
    """Return the arguments of a call as JSON text: as they were written, where that is known."""
    return call.raw if call.raw is not None else dump_json(dict(call.arguments))


def call_events(calls: Iterable[ToolCall]) -> list[Event]:
    """Return the events of calls that are known whole."""
    events: list[Event] = []
    for index, call in enumerate(calls):
        events += [
            CallStart(index, call.id, call.name),
            ArgumentsDelta(index, arguments_text(call)),
            CallEnd(index, call),
        ]
    return events
