"""`Thinking`: how a family marks its reasoning, and a parser that sets reasoning at the beginning of a turn apart."""

from __future__ import annotations

from dataclasses import dataclass

from ...core.events import Event, ReasoningDelta
from ...core.params import OutputParser

_SPACE = " \t\n\r"


@dataclass(frozen=True)
class Thinking:
    """The markers around a model's reasoning.

    Attributes:
        start: begins it; empty if nothing does.
        end: ends it.
        after: markup that stands between it and the answer; white space may stand there besides.
    """

    start: str = "<think>"
    end: str = "</think>"
    after: str = ""


class ThinkingParser:
    """Reads the reasoning with which a turn begins, and hands the rest to the format's parser.

    Args:
        inner: the format's parser.
        thinking: the markers.
        opened: the prompt has opened the reasoning already.
    """

    def __init__(self, inner: OutputParser, thinking: Thinking, *, opened: bool = False) -> None:
        self._inner = inner
        self._thinking = thinking
        self._state = "inside" if opened else "before"
        self._rest = ""

    def feed(self, text: str) -> list[Event]:
        """Take the next piece; return what has become certain."""
        return self._read(text, final=False)

    def close(self) -> list[Event]:
        """Say that the text is over; return the rest."""
        return [*self._read("", final=True), *self._inner.close()]

    def _read(self, text: str, *, final: bool) -> list[Event]:
        if self._state == "done":
            return self._inner.feed(text) if text else []
        self._rest += text
        events: list[Event] = []
        if self._state == "before":
            start, begun = self._thinking.start, self._rest.lstrip(_SPACE)
            if begun.startswith(start) and start:
                self._rest = begun[len(start) :]
                self._state = "inside"
            elif start and start.startswith(begun) and not final:
                return []
            else:
                self._state = "done"
                return self._inner.feed(self._rest)
        if self._state == "inside":
            self._inside(events, final=final)
        if self._state == "after":
            self._rest = self._rest.lstrip(_SPACE)
            if self._rest or final:
                self._state = "done"
                events += self._inner.feed(self._rest)
        return events

    def _inside(self, events: list[Event], *, final: bool) -> None:
        end = self._thinking.end
        at = self._rest.find(end)
        if at >= 0:
            piece, self._rest = self._rest[:at], self._rest[at + len(end) :]
            self._state = "after"
        else:
            keep = next(
                (size for size in range(min(len(end) - 1, len(self._rest)), 0, -1) if self._rest.endswith(end[:size])),
                0,
            )
            keep = 0 if final else keep
            piece, self._rest = self._rest[: len(self._rest) - keep], self._rest[len(self._rest) - keep :]
        if piece:
            events.append(ReasoningDelta(piece))
