"""Filter of events that leaves out calls equal to an earlier one of the same turn."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import NamedTuple

from .events import ArgumentsDelta, CallEnd, CallStart, Event
from .messages import ToolCall


class _Earlier(NamedTuple):
    """A call that has been passed on, and its arguments as the events had them."""

    written: str
    call: ToolCall


class UnequalCalls:
    """Passes the events of one answer on, but for those of calls that equal an earlier call: same tool, same arguments.

    What is sent cannot be taken back, so the events of a call wait while its arguments, as they are written, are the
    beginning of an earlier call's.

    Attributes:
        left_out: number of calls that were left out.
    """

    def __init__(self) -> None:
        self.left_out = 0
        self._earlier: dict[str, list[_Earlier]] = {}  # by names of tools
        self._waiting: list[Event] = []
        self._similar: list[_Earlier] = []  # the earlier calls that the present one may still equal
        self._text: list[str] = []  # its arguments so far
        self._size = 0  # number of characters of these

    def feed(self, events: Iterable[Event]) -> list[Event]:
        """Return the events that are certain now, the calls numbered anew."""
        passed: list[Event] = []
        for event in events:
            if isinstance(event, CallStart):
                passed += self._waiting  # a call that did not end
                self._similar = list(self._earlier.get(event.name, ()))
                self._waiting, self._text, self._size = [], [], 0
            elif isinstance(event, ArgumentsDelta):
                self._text.append(event.text)
                self._similar = [one for one in self._similar if one.written.startswith(event.text, self._size)]
                self._size += len(event.text)
            elif isinstance(event, CallEnd) and self._is_repeated(event.call):
                self._waiting = []
                continue
            if isinstance(event, (CallStart, ArgumentsDelta, CallEnd)):
                event = replace(event, index=event.index - self.left_out)
            self._waiting.append(event)
            if not self._similar:
                passed += self._waiting
                self._waiting = []
        return passed

    def _is_repeated(self, call: ToolCall) -> bool:
        """Return True if a call that has ended equals an earlier one, and count it; else store it as an earlier one."""
        written = "".join(self._text)
        facts = written, call.raw, call.error, call.arguments
        is_equal = any(
            facts == (one.written, one.call.raw, one.call.error, one.call.arguments) for one in self._similar
        )
        self._similar = []
        if is_equal:
            self.left_out += 1
        else:
            self._earlier.setdefault(call.name, []).append(_Earlier(written, call))
        return is_equal
