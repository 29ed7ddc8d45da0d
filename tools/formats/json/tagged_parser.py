"""Streaming parser of calls written as one JSON object in a tag.

Beyond the history form it accepts the variations of unconstrained models: any white space between tag and
object and inside the object; ``parameters`` for ``arguments``; the arguments before the name; the arguments as a
JSON-encoded string, null or missing; other keys beside them; a forgotten last brace or end tag.

Anything else between the tags is a call with ``error`` set whose ``raw`` is the text as written: nothing is lost, and
nothing raises before `close`.
"""

from __future__ import annotations

from collections.abc import Callable

from toolgrammar.core.conversation import Event, TextDelta, ToolCall

from ..stream import StreamParser, marker_search
from ..template.call_reader import ObjectReader, Tags


class TaggedJsonParser(StreamParser):
    """Text and calls from a stream.

    Laws: the events, after joining neighbouring deltas of one kind, do not depend on how the text was cut; for a call
    without ``error``, its `ArgumentsDelta`s join to ``call.raw``; the time is linear in the text.

    Args:
        tags: the markers and keys.
        finish: applied to each call that was read whole.
        new_id: makes the calls' ids.
        whole_text: text stands alone (a JSON answer may hold a marker inside a string): only a marker at the very
            beginning starts calls.
    """

    def __init__(
        self,
        tags: Tags,
        finish: Callable[[ToolCall], ToolCall],
        new_id: Callable[[], str],
        *,
        whole_text: bool = False,
    ) -> None:
        super().__init__()
        self._tags = tags
        self._starts = marker_search((tags.separator + tags.start, tags.start))
        self._ends = marker_search((tags.end, tags.start))
        self._state = self._start if whole_text else self._text
        self._finish = finish
        self._new_id = new_id
        self._calls = 0
        self._call = ObjectReader(tags, 0, "")
        self._space: list[str] = []  # white space that is text only if other text follows

    def _start(self, events: list[Event]) -> bool:
        """Read the beginning of a turn in which calls exclude text."""
        self._space.append(self._buffer.take_space())
        if not self._final and self._buffer.may_begin((self._tags.start,)):
            return False
        self._state = self._text if self._buffer.startswith(self._tags.start) else self._plain
        self._give_back_space()
        return True

    def _plain(self, events: list[Event]) -> bool:
        """Read text in which nothing begins a call."""
        self._send_text(self._buffer.take_all(), events)
        return False

    def _gap(self, events: list[Event]) -> bool:
        """Drop white space after a call, unless text follows."""
        self._space.append(self._buffer.take_space())
        if self._buffer.startswith(self._tags.start):
            self._space.clear()
        elif self._buffer.is_empty or (not self._final and self._buffer.may_begin((self._tags.start,))):
            return False
        self._give_back_space()
        self._state = self._text
        return True

    def _give_back_space(self) -> None:
        self._buffer.unread("".join(self._space))
        self._space.clear()

    def _text(self, events: list[Event]) -> bool:
        text, mark = self._buffer.take_before(self._starts, final=self._final)
        self._send_text(text, events)
        if not mark:
            return False
        self._buffer.skip(len(mark))
        self._call = ObjectReader(self._tags, self._calls, self._new_id())
        self._state = self._body
        return True

    def _send_text(self, text: str, events: list[Event]) -> None:
        if text:
            events.append(TextDelta(text))

    def _body(self, events: list[Event]) -> bool:
        """Give the call what belongs to it: everything up to a tag that stands outside of JSON strings."""
        call, buffer = self._call, self._buffer
        buffer.position = call.read(buffer.text, buffer.position, events)
        if call.problem is None and self._final and not call.at_end and self._tags.end in call.body:
            # The call looks unfinished only because a string in it was never closed: its tag is inside.
            call.problem = "a string is not closed"
        if call.problem is not None:
            # What is broken may have hidden the tag (a string that is never closed): look for it from the beginning.
            buffer.unread(call.give_up(call.problem))
        elif not call.at_end:
            return self._unfinished()
        self._state = self._tail
        return True

    def _tail(self, events: list[Event]) -> bool:
        """Find the tag that ends a call, after its object or in a malformed call."""
        text, tag = self._buffer.take_before(self._ends, final=False)
        self._call.take(text, events)
        if not tag:
            if not self._final:
                return False
            # The beginning of an end tag says no less than none at all.
            rest = self._buffer.take_all()
            self._call.take("" if self._tags.end.startswith(rest) else rest, events)
        elif tag == self._tags.end:
            self._buffer.skip(len(tag))
        # A start tag where an end tag should be: the end was forgotten; the next call begins here.
        self._call.finish(self._finish, events)
        self._calls += 1
        self._state = self._gap
        return True
