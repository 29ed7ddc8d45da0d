"""`Thinking`: how a family marks its reasoning, and a parser that sets reasoning at the beginning of a turn apart."""

from __future__ import annotations

from dataclasses import dataclass

from toolgrammar.core.conversation import Event, ReasoningDelta
from toolgrammar.core.generation import OutputParser

from .stream import StreamParser, marker_search


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


class ThinkingParser(StreamParser):
    """Reads the reasoning with which a turn begins, and hands the rest to the format's parser.

    Args:
        inner: the format's parser.
        thinking: the markers.
        opened: the prompt has opened the reasoning already.
    """

    def __init__(self, inner: OutputParser, thinking: Thinking, *, opened: bool = False) -> None:
        super().__init__()
        self._inner = inner
        self._thinking = thinking
        self._end = marker_search((thinking.end,))
        self._state = self._reason if opened else self._start
        self._space: list[str] = []

    def close(self) -> list[Event]:
        """Say that the text is over; return the rest.

        Raises:
            ParseError: the text ends inside a call.
        """
        return [] if self._final else [*super().close(), *self._inner.close()]

    def _start(self, events: list[Event]) -> bool:
        """The beginning of the turn: reasoning, or the answer."""
        buffer, start = self._buffer, self._thinking.start
        if start:
            self._space.append(buffer.take_space())
            if not self._final and buffer.may_begin((start,)):
                return False
            if buffer.startswith(start):
                buffer.skip(len(start))
                self._state = self._reason
                return True
            buffer.unread("".join(self._space))
        self._state = self._answer
        return True

    def _reason(self, events: list[Event]) -> bool:
        text, mark = self._buffer.take_before(self._end, final=self._final)
        if text:
            events.append(ReasoningDelta(text))
        if mark:
            self._buffer.skip(len(mark))
            self._state = self._after
        return bool(mark)

    def _after(self, events: list[Event]) -> bool:
        """White space between the reasoning and the answer is dropped."""
        self._buffer.take_space()
        if self._buffer.is_empty:
            return False
        self._state = self._answer
        return True

    def _answer(self, events: list[Event]) -> bool:
        if not self._buffer.is_empty:
            events += self._inner.feed(self._buffer.take_all())
        return False
