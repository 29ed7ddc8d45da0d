"""From the events of a stream to the assistant's message."""

from __future__ import annotations

from .events import CallEnd, Event, Generation, ReasoningDelta, TextDelta, Usage
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
