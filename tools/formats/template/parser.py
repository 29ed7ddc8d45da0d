"""Streaming parser of the JSON shapes: calls whose arguments are one JSON object, in any markup.

In addition to the history form it accepts variations of unconstrained models: any white space, other separators,
missing closing markup. In an object: ``parameters`` for ``arguments``; the arguments before the name; the arguments as
a JSON-encoded string, null or missing; other keys; before a tag, a missing last brace. An unreadable call, or a call
that the end of the text cuts, has ``error`` set and its text in ``raw``: nothing is lost, and nothing raises. If calls
have no marker, text that begins like calls and has none is text.

*Markup* is read and not sent: triggers begin the calls of a turn, openers each call, skips stand between calls, and
frames around text (`TemplateFormat`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from toolgrammar.core.conversation import (
    ArgumentsDelta,
    CallEnd,
    CallStart,
    Event,
    ReasoningDelta,
    ReasoningMarkers,
    TextDelta,
    ToolCall,
)
from toolgrammar.core.json import SPACE, JsonScanner, dump_json

from ..base import decode_object
from ..stream import StreamParser, marker_search
from .call_reader import ObjectReader


def without_space(text: str) -> str:
    """Return a text without its white space."""
    return "".join(text.split())


@dataclass(frozen=True)
class Syntax:
    """Markup that the parser looks for; see `TemplateFormat` for the attributes."""

    triggers: tuple[str, ...]
    openers: tuple[str, ...]
    head: str
    skips: tuple[str, ...]
    frames: tuple[str, ...]
    joint: str
    anchored: bool
    name_key: str
    argument_keys: tuple[str, ...]
    call_id: str
    id_key: str  # key of the id, where name, arguments and id are members of one object
    call_end: str  # tag that ends a call that is one object; empty: the object's last brace does
    thinking: ReasoningMarkers | None
    whole_text: bool  # a turn that is not a call is a JSON answer
    # Markup of the history form, once for each template of a call; empty: it is not known.
    before_first: tuple[str, ...]  # up to the opener of the first call
    between_calls: tuple[str, ...]  # from the arguments of a call to the next opener
    after_last: tuple[str, ...]  # after the arguments of the last call
    head_templates: tuple[str, ...]  # from an opener to the arguments, with ``$name``, ``$quoted`` and ``$id``
    afterwards: bool  # text may follow calls
    triggers_in_text: tuple[str, ...] = ()  # of an anchored format, the triggers that count behind text, too
    beginnings: tuple[str, ...] = ()  # how calls begin, up to a tool's name, where the turn may be a JSON answer
    bare: tuple[str, ...] = ()  # triggers that a text may begin with, too, such as "["
    names: frozenset[str] = frozenset()  # of the tools
    control: tuple[str, ...] = ()  # tokens that are never text


class TemplateParser(StreamParser):
    """Text, reasoning and calls from a stream.

    Its states: text (``_start`` and ``_plain`` of an anchored format, ``_text`` of others) up to a trigger;
    ``_between`` up to an opener; a call, by ``_read_object`` and ``_end_of_object``, or by ``_read_head`` and
    ``_read_arguments``, and by ``_skip`` if it is malformed; then ``_between`` again, which goes back to text.

    Laws: the events, after joining neighbouring deltas of one kind, do not depend on how the text was cut; for a call
    without ``error``, its `ArgumentsDelta`s join to ``call.raw``; the time is linear in the text.

    Args:
        syntax: the markup.
        finish: applied to each call that was read whole.
        new_id: makes the ids of calls that have none on the wire.
    """

    def __init__(self, syntax: Syntax, finish: Callable[[ToolCall], ToolCall], new_id: Callable[[], str]) -> None:
        super().__init__()
        self._syntax = syntax
        self._finish = finish
        self._new_id = new_id
        self._state = self._start if syntax.anchored else self._text
        self._anchors = tuple(mark.lstrip(SPACE) for mark in syntax.triggers)
        self._answer = JsonScanner() if syntax.whole_text else None
        self._bare = tuple(mark.lstrip(SPACE) for mark in syntax.bare)
        # A text that begins as calls do may be an answer, `[1, 2]` say: its events are held until that is known.
        self._undecided: list[Event] | None = None
        self._calls_before = self._leniencies_before = 0  # their numbers before the undecided text
        self._index = 0  # of the present or next call in its turn
        self._head = re.compile(syntax.head)
        # White space in markup does not count.
        self._before_first = tuple(map(without_space, syntax.before_first))
        self._between_calls = tuple(map(without_space, syntax.between_calls))
        self._after_last = tuple(map(without_space, syntax.after_last))
        thinking = syntax.thinking
        opening = (thinking.start,) if thinking is not None and thinking.start else ()
        self._drops = syntax.frames + opening  # what is dropped from text
        self._frame_marks = marker_search((*syntax.frames, *syntax.triggers_in_text))
        joined = tuple(syntax.joint + mark for mark in syntax.triggers) if syntax.joint else ()
        self._text_marks = marker_search((*joined, *syntax.triggers, *self._drops))
        self._between_marks = marker_search((*syntax.openers, *syntax.skips, *self._drops))
        # Marks that end a broken call: long enough to be no JSON.
        stops = tuple(mark for mark in (*syntax.openers, *syntax.skips) if len(mark) > 2)
        self._stop_marks = marker_search(stops)
        # Those of them that end a call, or all calls.
        self._end_marks = marker_search(
            tuple(mark for mark in stops if any(mark in markup for markup in self._after_last))
        )
        # Those that are in no head: where one comes first, the call has no name.
        self._not_in_head = marker_search(tuple(mark for mark in stops if re.escape(mark) not in syntax.head))
        self._closers = frozenset(mark[0] for mark in (syntax.call_end, *syntax.openers) if syntax.call_end)
        # The present call: by `_reader` if it is one object, else by the rest.
        self._reader: ObjectReader | None = None
        self._name = ""
        self._id = ""
        self._scanner = JsonScanner()
        self._arguments: list[str] = []  # the pieces of JSON that were sent
        self._values: dict[str, Any] = {}  # the arguments, where they are read one by one
        self._call_text: list[str] = []  # the text of the call, which is its ``raw`` if it is malformed
        self._problem = ""  # why it is malformed
        self._passed: list[str] = []  # markup since the last call, or since text, and its white space
        self._is_among_calls = False  # a call has come, and what ends the calls of a turn has not
        self._is_after_call = False  # a call has come, and no text since
        self._space: list[str] = []  # white space at the beginning or after a call, which is text only if text follows

    # -- text --------------------------------------------------------------------------------------------------

    def _start(self, events: list[Event]) -> bool:
        """Read the beginning of a turn whose triggers count only there: markup to drop, calls, or text."""
        buffer, syntax = self._buffer, self._syntax
        self._space.append(buffer.take_space())
        self._passed = []
        drops = tuple(mark.lstrip(SPACE) for mark in self._drops)  # the white space that they begin with is taken
        if not self._final and buffer.may_begin((*self._anchors, *drops, *syntax.beginnings)):
            return False
        for mark, stripped in zip(self._drops, drops, strict=True):
            if stripped and buffer.startswith(stripped):
                self._space.clear()
                buffer.unread(mark[: len(mark) - len(stripped)])  # `_drop` takes the whole mark
                return self._drop(mark)
        if buffer.startswith(self._anchors) and (not syntax.beginnings or buffer.startswith(syntax.beginnings)):
            if buffer.startswith(self._bare):  # perhaps an answer: keep the text with its white space, to read it again
                self._give_back_space()
                buffer.keep()
                buffer.take_space()
                self._undecided = []
                self._calls_before, self._leniencies_before = self._index, len(self.leniencies)
            self._space.clear()
            self._state = self._between
            return True
        self._give_back_space()
        self._state = self._plain
        return True

    def _step(self, events: list[Event]) -> bool:
        """Do one step of the present state; while it is undecided whether the text is calls, its events are held.

        If it is none, it is read again from its beginning, as text.
        """
        undecided = self._undecided
        if undecided is None:
            return self._state(events)
        goes_on = self._state(undecided)
        is_call = self._is_call(undecided)
        # A state of text has seen that it is none; and the end of the text, that nothing more comes.
        may_become_call = self._state not in (self._start, self._plain, self._text) and (goes_on or not self._final)
        if is_call is None and may_become_call:
            return goes_on
        self._undecided = None
        if is_call:
            self._buffer.forget()
            events += undecided
            return goes_on
        self._buffer.restore()  # it is text: read it again as such
        self._index = self._calls_before
        del self.leniencies[self._leniencies_before :]
        self._space, self._passed, self._is_among_calls, self._is_after_call = [], [], False, False
        self._state = self._plain
        return True

    def _is_call(self, undecided: list[Event]) -> bool | None:
        """Return True if the undecided events are of a call (it names a tool, or is whole and valid), False if not;
        None: not known yet."""
        for event in undecided:
            if isinstance(event, CallStart) and event.name in self._syntax.names:
                return True
            if isinstance(event, CallEnd):
                lenient = {edit.why for edit in self.leniencies[self._leniencies_before :]}
                return event.call.fault is None and "missing_arguments" not in lenient
        return None

    def _give_back_space(self) -> None:
        self._buffer.unread("".join(self._space))
        self._space.clear()

    def _drop(self, mark: str) -> bool:
        """Take a frame, or the marker that begins reasoning."""
        self._buffer.skip(len(mark))
        if self._syntax.thinking is not None and mark == self._syntax.thinking.start:
            self._state = self._reason
        return True

    def _prose(self) -> Callable[[list[Event]], bool]:
        """Return the state that reads text."""
        return self._plain if self._syntax.anchored else self._text

    def _plain(self, events: list[Event]) -> bool:
        """Read text in which only control tokens (``triggers_in_text``) begin calls; a JSON answer is read to its end
        first, whatever its strings contain."""
        if self._answer is not None:
            end = self._answer.push(self._buffer.text, self._buffer.position)
            self._send(self._buffer.take(end), events)
            if not self._answer.done and self._answer.problem is None:
                return False
            self._answer = None
        text, mark = self._buffer.take_before(self._frame_marks, final=self._final)
        self._send(text, events)
        if mark and mark in self._syntax.triggers_in_text:
            self._note_leniency("other_markup")
            self._passed, self._state = [], self._between
            return True
        thinking = self._syntax.thinking
        if mark and not self._syntax.whole_text and thinking is not None and mark == thinking.after:
            self._state = self._start  # behind reasoning, the next message of the turn begins
        return self._drop(mark) if mark else False

    def _text(self, events: list[Event]) -> bool:
        """Read text up to a trigger, or to what is dropped from text."""
        text, mark = self._buffer.take_before(self._text_marks, final=self._final)
        self._send(text, events)
        if mark in self._drops:
            return self._drop(mark)
        if mark:
            self._passed = []
            self._state = self._between
        return bool(mark)

    def _reason(self, events: list[Event]) -> bool:
        """Read reasoning up to the marker that ends it."""
        assert self._syntax.thinking is not None
        text, mark = self._buffer.take_before(marker_search((self._syntax.thinking.end,)), final=self._final)
        if text:
            events.append(ReasoningDelta(text))
        if mark:
            self._buffer.skip(len(mark))
            self._state = self._start if self._syntax.anchored else self._text
        return bool(mark)

    def _send(self, text: str, events: list[Event]) -> None:
        """Send text, which was just taken; note it if it stands behind calls and the family writes none there."""
        if not text:
            return
        events.append(TextDelta(text))
        if self._is_after_call and (said := text.lstrip(SPACE)):
            self._is_after_call = False
            if not self._syntax.afterwards:
                self._note_leniency("text_after_calls", at=self._buffer.place - len(said))

    def close(self) -> list[Event]:
        """Say that the text is over; return the rest.

        A whole call without its closing markup is a call; one inside of which the text ends is malformed.
        """
        events = super().close()
        self._leave_calls(self._space)
        return events

    # -- markup ------------------------------------------------------------------------------------------------

    def _between(self, events: list[Event]) -> bool:
        """Pass over one mark, up to the next call or to text; between calls, a frame that is also a skip is a skip."""
        buffer = self._buffer
        self._space.append(buffer.take_space())
        if buffer.is_empty:
            return False
        mark = self._between_marks.at(buffer.text, buffer.position, final=self._final)
        if mark is None:
            return False
        if not mark:
            self._give_back_space()
            self._send_markup(events)
            self._leave_calls()
            self._state = self._prose()
            return True
        space, self._space = self._space, []
        if mark in self._syntax.openers:
            self._come_to_call(mark, "".join(space))
            self._begin(mark)
        elif mark in self._drops and not (self._is_among_calls and mark in self._syntax.skips):
            self._leave_calls(space)
            self._state = self._start if self._syntax.anchored else self._text
            return self._drop(mark)
        else:
            self._passed += [*space, mark]
            buffer.skip(len(mark))
        return True

    def _send_markup(self, events: list[Event]) -> None:
        """Send markup behind which no call came as text: the text is about the format, say. Control tokens are no text,
        and the markup of no calls (an empty list) is none."""
        if not self._is_among_calls and not without_space("".join(self._passed)).endswith(self._after_last):
            control = self._syntax.control
            self._send("".join(mark for mark in self._passed if not any(token in mark for token in control)), events)

    def _come_to_call(self, opener: str, space: str) -> None:
        """Note where the markup before a call is not what the format writes; ``space`` was taken before the opener."""
        passed = without_space("".join(self._passed) + opener.removeprefix("{"))
        wanted = self._between_calls if self._is_among_calls else self._before_first
        if wanted and not passed.endswith(wanted):
            written = self._syntax.between_calls if self._is_among_calls else self._syntax.before_first
            taken = "".join((*self._passed, space))
            old = taken if opener.startswith("{") else taken + opener
            self._note_leniency("other_markup", old, written[0], at=self._buffer.place - len(taken))
        self._passed = []
        self._is_among_calls = self._is_after_call = True

    def _leave_calls(self, space: Sequence[str] = ()) -> None:
        """Note where the markup after the last call is not what the format writes; ``space`` was taken behind it."""
        wanted, passed = self._after_last, "".join(self._passed)
        if self._is_among_calls and wanted and not without_space(passed).startswith(wanted):
            at = self._buffer.place - len("".join(space)) - len(passed)
            self._note_leniency("other_markup", passed, self._syntax.after_last[0], at=at)
        self._is_among_calls, self._passed = False, []

    def _begin(self, opener: str) -> None:
        """Begin a call at its opener: with its head, or as one object of name and arguments."""
        if self._syntax.head:
            self._buffer.skip(len(opener))
            self._state = self._read_head
            self._call_text = [opener]
        else:
            if opener != "{":
                self._buffer.skip(len(opener))
            syntax = self._syntax
            self._reader = ObjectReader(
                self._index, self._new_id(), syntax.name_key, syntax.argument_keys, self._closers, syntax.id_key
            )
            self._state = self._read_object

    # -- a call that is one object -----------------------------------------------------------------------------

    def _read_object(self, events: list[Event]) -> bool:
        """Read on in an object of name and arguments; once it is whole or malformed, look for the end of the call."""
        reader, buffer = self._reader, self._buffer
        assert reader is not None
        end = self._syntax.call_end
        buffer.position = reader.read(buffer.text, buffer.position, buffer.origin, events)
        if reader.problem is None and self._final and not reader.at_end:
            if not end or end not in reader.body:
                reader.problem = ToolCall.ENDS_INSIDE
                return self._end_object(events)
            # The tag that ends the call was read as a part of a string, which was never closed.
            reader.problem = "a string is not closed"
        if reader.problem is not None:
            # What is broken may have hidden the closing markup: look for it from the beginning.
            buffer.unread(reader.give_up(reader.problem))
        elif not reader.at_end:
            return False
        elif not end:
            return self._end_object(events)
        self._state = self._end_of_object
        return True

    def _end_of_object(self, events: list[Event]) -> bool:
        """Find the markup that ends a call, after its object or in a malformed call."""
        reader, buffer = self._reader, self._buffer
        assert reader is not None
        text, mark = buffer.take_before(self._stop_marks, final=False)
        reader.take(text, events)
        if not mark:
            if not self._final:
                return False
            rest = buffer.take_all()  # the beginning of the end tag is as good as no end tag
            reader.take("" if self._syntax.call_end.startswith(rest) else rest, events)
        return self._end_object(events)

    def _end_object(self, events: list[Event]) -> bool:
        """Send the end of a call that is one object; leniencies of a malformed one do not count."""
        assert self._reader is not None
        self._reader.finish(self._finish, events)
        self.leniencies += self._reader.leniencies if self._reader.problem is None else ()
        self._next_call()
        return True

    # -- a call whose name is outside of the arguments --------------------------------------------------------

    def _read_head(self, events: list[Event]) -> bool:
        """Read a call up to its arguments: its name, and the id if the format writes one."""
        buffer = self._buffer
        match = buffer.match(self._head)
        if match is not None and self._not_in_head.search(match.group(), 0, final=True)[1]:
            match = None  # as where the text was cut behind the mark
        if match is None:
            if self._not_in_head.search(buffer.text, buffer.position, final=self._final)[1]:
                return self._give_up("the call has no name", events)
            return self._unfinished(events)
        self._name = match["name"]
        groups = match.groupdict()
        if groups.get("quoted"):
            self._name = str(json.loads(groups["quoted"]))
        wire_id = groups.get("id") or ""
        call_id = self._syntax.call_id.replace("$name", self._name).replace("$id", wire_id)
        self._id = call_id if wire_id and call_id else self._new_id()
        values = {"$name": self._name, "$quoted": groups.get("quoted") or "", "$id": wire_id}
        heads = [  # as the format writes them
            re.sub(r"\$(?:name|quoted|id)", lambda hole: values[hole[0]], head) for head in self._syntax.head_templates
        ]
        if heads and without_space(match.group()) not in map(without_space, heads):
            self._note_leniency("other_markup", match.group(), heads[0])
        self._call_text.append(buffer.take(match.end()))
        self._scanner = JsonScanner()
        self._arguments = []
        events.append(CallStart(self._index, self._id, self._name))
        self._state = self._read_arguments
        return True

    def _read_arguments(self, events: list[Event]) -> bool:
        """Read on in the JSON object of the arguments, which is sent as it comes, and end the call behind it."""
        buffer = self._buffer
        if not self._arguments:
            buffer.take_space()
            if buffer.is_empty:
                return self._unfinished(events)
            if not buffer.startswith("{"):
                return self._give_up("the arguments are not an object", events)
        piece = buffer.take(self._scanner.push(buffer.text, buffer.position))
        if piece:
            self._arguments.append(piece)
            events.append(ArgumentsDelta(self._index, piece))
        if self._scanner.problem is None and not self._scanner.done:
            return self._unfinished(events, self._arguments)
        raw = "".join(self._arguments)
        problem = self._scanner.problem
        if problem is None:
            try:
                arguments = decode_object(raw)
            except ValueError as error:
                problem = str(error)
            else:
                return self._end_call(arguments, raw, events)
        buffer.unread(raw)
        return self._give_up(problem, events)

    def _end_call(self, arguments: dict[str, Any], raw: str, events: list[Event]) -> bool:
        events.append(CallEnd(self._index, self._finish(ToolCall(self._id, self._name, arguments, raw=raw))))
        self._next_call()
        return True

    # -- arguments that are written one by one, and sent as one JSON object ------------------------------------

    def _open_arguments(self, events: list[Event]) -> None:
        self._values = {}
        self._arguments = ["{"]
        events.append(ArgumentsDelta(self._index, "{"))

    def _add_argument(self, key: str, value: Any, spelled: str, events: list[Event]) -> None:
        """Send an argument; ``spelled`` is its value as JSON."""
        piece = f"{', ' if self._values else ''}{dump_json(key)}: {spelled}"
        self._values[key] = value
        self._arguments.append(piece)
        events.append(ArgumentsDelta(self._index, piece))

    def _close_arguments(self, events: list[Event]) -> bool:
        """Send the end of the arguments and of the call."""
        events.append(ArgumentsDelta(self._index, "}"))
        raw = "".join((*self._arguments, "}"))
        # Read back, as the receiver will: what JSON has no words for, Python's tuples, say, is a list.
        return self._end_call(json.loads(raw), raw, events)

    def _unfinished(self, events: list[Event], taken: Sequence[str] = ()) -> bool:
        """Wait for more text of a call; if there is none, the call is malformed.

        Args:
            events: as of a state.
            taken: text of the call that is not noted yet.
        """
        if not self._final:
            return False
        text = "".join(taken)
        if self._end_marks.search(text, 0, final=True)[1]:
            self._buffer.unread(text)
            return self._give_up("a string is not closed", events)
        self._call_text.append(text + self._buffer.take_all())
        return self._give_up(ToolCall.ENDS_INSIDE, events)

    @property
    def _is_cut(self) -> bool:
        """The text is over, and the rest of it holds nothing that ends a call."""
        return self._final and not self._stop_marks.search(self._buffer.text, self._buffer.position, final=True)[1]

    def _give_up(self, problem: str, events: list[Event]) -> bool:
        """Go on behind a malformed call (`_skip`); one without a name begins in the stream here, with an empty one."""
        if self._state == self._read_head:
            self._name, self._id = "", self._new_id()
            events.append(CallStart(self._index, self._id, ""))
        self._problem = problem
        self._state = self._skip
        return True

    def _skip(self, events: list[Event]) -> bool:
        """Read a malformed call up to what ends it; send it as unread, unless it can be mended."""
        text, mark = self._buffer.take_before(self._stop_marks, final=self._final)
        self._call_text.append(text)
        if not mark and not self._final:
            return False
        if self._mend(events):
            return True
        raw = "".join(self._call_text).strip(SPACE)
        events.append(CallEnd(self._index, ToolCall.unread(self._id, self._name, raw, self._problem)))
        self._next_call()
        return True

    def _mend(self, events: list[Event]) -> bool:
        """Repair a malformed call, up to the mark that ends it; return False if there is no such mark."""
        return False

    def _next_call(self) -> None:
        self._index += 1
        self._state = self._between
