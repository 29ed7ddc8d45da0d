"""Parser that splits reasoning from the rest of a turn."""

from __future__ import annotations

from toolgrammar.core.conversation import Event, ReasoningDelta
from toolgrammar.core.conversation.reasoning import ReasoningMarkers, ReasoningSplitter
from toolgrammar.core.generation import OutputParser


class ThinkingParser:
    """Reads the reasoning with which a turn begins, and hands the rest to the format's parser.

    Args:
        inner: the format's parser.
        thinking: the markers.
        opened: the prompt has opened the reasoning already.
    """

    def __init__(self, inner: OutputParser, thinking: ReasoningMarkers, *, opened: bool = False) -> None:
        self._inner = inner
        self._splitter = ReasoningSplitter(thinking.start, thinking.end, opened=opened)
        self._is_closed = False

    def feed(self, text: str) -> list[Event]:
        """Take the next piece of the text; return what has become certain."""
        return self._read(*self._splitter.feed(text))

    def close(self) -> list[Event]:
        """End the text; return the rest.

        Raises:
            ParseError: the text ends inside a call.
        """
        if self._is_closed:
            return []
        self._is_closed = True
        return [*self._read(*self._splitter.close()), *self._inner.close()]

    def _read(self, reasoning: str, text: str) -> list[Event]:
        events: list[Event] = [ReasoningDelta(reasoning)] if reasoning else []
        return [*events, *self._inner.feed(text)] if text else events
