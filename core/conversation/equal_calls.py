"""Filter of events that leaves out calls equal to an earlier one of the same turn."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from .events import ArgumentsDelta, CallEnd, CallStart, Event
from .messages import ToolCall


class UnequalCalls:
    """Passes the events of one answer on, but for those of calls that equal an earlier call: same tool, same arguments.

    What is sent cannot be taken back, so the events of a call wait while its arguments, as they are written, are the
    beginning of an earlier call's.

    Attributes:
        left_out: number of calls that were left out.
    """

    def __init__(self) -> None:
        self.left_out = 0
        self._calls: dict[str, list[tuple[str, ToolCall]]] = {}  # the arguments as written, and the call, by tools
        self._waiting: list[Event] = []
        self._similar: list[tuple[str, ToolCall]] = []  # the earlier calls that the present one may still equal
        self._text: list[str] = []  # its arguments so far
        self._size = 0

    def feed(self, events: Iterable[Event]) -> list[Event]:
        """Return the events that are certain now, the calls numbered anew."""
        passed: list[Event] = []
        for event in events:
            if isinstance(event, CallStart):
                passed += self._waiting  # a call that did not end
                self._similar = list(self._calls.get(event.name, ()))
                self._waiting, self._text, self._size = [], [], 0
            elif isinstance(event, ArgumentsDelta):
                self._text.append(event.text)
                self._similar = [one for one in self._similar if one[0].startswith(event.text, self._size)]
                self._size += len(event.text)
            elif isinstance(event, CallEnd) and self._ends(event.call):
                self._waiting = []
                continue
            if isinstance(event, (CallStart, ArgumentsDelta, CallEnd)):
                event = replace(event, index=event.index - self.left_out)
            self._waiting.append(event)
            if not self._similar:
                passed += self._waiting
                self._waiting = []
        return passed

    def _ends(self, call: ToolCall) -> bool:
        """Note a call; return True if it is left out."""
        text = "".join(self._text)
        facts = text, call.raw, call.error, call.arguments
        is_equal = any(facts == (written, each.raw, each.error, each.arguments) for written, each in self._similar)
        self._similar = []
        if is_equal:
            self.left_out += 1
        else:
            self._calls.setdefault(call.name, []).append((text, call))
        return is_equal
