"""Parser that splits reasoning from the rest of a turn."""

from __future__ import annotations

from dataclasses import replace

from toolgrammar.core.conversation import CallEnd, Event, ReasoningDelta, ReasoningMarkers, ReasoningSplitter
from toolgrammar.core.repair import Edit

from .base import FormatParser
from .leniencies import lenient
from .stream import marker_search


class ThinkingParser:
    """Reads the reasoning at the beginning of a turn, and passes the rest to the format's parser.

    From the first marker of calls or of an answer on, reasoning is held back until it ends. If it never ends, the held
    text is read as calls or an answer, and stays reasoning if that fails.

    Args:
        inner: the format's parser.
        thinking: the markers.
        opened: the prompt has opened the reasoning already.
        calls: markers that begin calls; none if they are ordinary text.
        text: the marker before a text; empty if there is none.
    """

    def __init__(
        self,
        inner: FormatParser,
        thinking: ReasoningMarkers,
        *,
        opened: bool = False,
        calls: tuple[str, ...] = (),
        text: str = "",
    ) -> None:
        self._inner = inner
        self._thinking = thinking
        self._splitter = ReasoningSplitter(thinking.start, thinking.end, opened=opened)
        self._text_marker = text
        self._marks = marker_search(tuple(filter(None, (*calls, text))))
        self._held: list[str] = []  # the end of the reasoning so far, which is not sent yet
        self._is_marked = False  # the held reasoning begins with a marker
        self._size = 0  # the number of characters so far
        self._start: int | None = None  # where the inner parser's text begins; None: it has not begun
        self._own: list[Edit] = []  # the leniencies of this parser
        self._is_closed = False

    @property
    def leniencies(self) -> list[Edit]:
        """What the text has that the format does not write, as edits of the text."""
        start = self._start
        if start is None:
            return self._own
        moved = (replace(edit, start=edit.start + start, end=edit.end + start) for edit in self._inner.leniencies)
        return [*self._own, *moved]

    def feed(self, text: str) -> list[Event]:
        """Take the next piece of the text; return what has become certain."""
        self._size += len(text)
        return self._read(*self._splitter.feed(text))

    def close(self) -> list[Event]:
        """End the text; return the rest."""
        if self._is_closed:
            return []
        self._is_closed = True
        is_open = self._splitter.is_inside
        reasoning, text = self._splitter.close()
        if is_open:
            return self._close_open_reasoning("".join((*self._held, reasoning)))
        return [*self._read(reasoning, text), *self._inner.close()]

    def _read(self, reasoning: str, text: str) -> list[Event]:
        """Return the events of more reasoning, and of the text after it; both may be empty."""
        self._held.append(reasoning)
        sure = ""  # what is reasoning, whatever comes
        if not self._splitter.is_inside:
            sure, self._held = "".join(self._held), []
        elif not self._is_marked:
            held = "".join(self._held)
            end, mark = self._marks.search(held, 0, final=False)
            self._is_marked = bool(mark)
            sure, self._held = held[:end], [held[end:]]
        events: list[Event] = [ReasoningDelta(sure)] if sure else []
        if not text:
            return events
        if self._start is None:
            self._start = self._size - len(text)
        return [*events, *self._inner.feed(text)]

    def _close_open_reasoning(self, held: str) -> list[Event]:
        """Return the events of reasoning that never ended: from its first marker on, valid calls or an answer, else all
        of it as reasoning."""
        begin, mark = self._marks.search(held, 0, final=True)
        found = [*self._inner.feed(held[begin:]), *self._inner.close()] if mark else []
        calls = [event.call for event in found if isinstance(event, CallEnd)]
        is_broken = any(call.fault is not None for call in calls)
        if not found or is_broken or not (calls or mark == self._text_marker):
            return [ReasoningDelta(held)] if held else []
        self._start = self._size - len(held) + begin
        self._own.append(lenient("unclosed_reasoning", self._start, "", self._thinking.end))
        return [*([ReasoningDelta(held[:begin])] if begin else []), *found]
