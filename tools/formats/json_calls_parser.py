"""Streaming parser of the JSON shapes: calls whose arguments are one JSON object, in any markup.

Beyond the history form it takes what models write when nothing holds them: any white space, other separators,
forgotten closing markup, and inside an object all that `tagged_parser` takes. What cannot be read is a call with
``error`` set whose ``raw`` is the text as written.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass

from ...core.errors import ParseError
from ...core.events import ArgumentsDelta, CallEnd, CallStart, Event, ReasoningDelta, TextDelta
from ...core.messages import ToolCall
from .base import MALFORMED
from .json_scanner import JsonScanner
from .tagged_parser import Tags, _CallReader, _decode_object
from .thinking import Thinking

_SPACE = " \t\n\r"


@dataclass(frozen=True)
class Syntax:
    """What the parser looks for; see `JsonCalls` for the meaning of each."""

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
    thinking: Thinking | None
    beginnings: tuple[str, ...] = ()  # with which calls begin, where a JSON answer may stand instead


class JsonCallsParser:
    """Text, reasoning and calls from a stream.

    Laws: the events, after joining neighbouring deltas of one kind, do not depend on how the text was cut; for a call
    without ``error``, its `ArgumentsDelta`s join to ``call.raw``.

    Args:
        syntax: the markup.
        finish: applied to each call that was read whole.
        new_id: makes the ids of calls that have none on the wire.
        whole_text: text stands alone: only a marker at the very beginning starts calls.
    """

    def __init__(
        self,
        syntax: Syntax,
        finish: Callable[[ToolCall], ToolCall],
        new_id: Callable[[], str],
        *,
        whole_text: bool = False,
    ) -> None:
        self._syntax = syntax
        self._finish = finish
        self._new_id = new_id
        self._anchored = whole_text or syntax.anchored
        self._state = self._start if self._anchored else self._text
        self._rest = ""
        self._final = False
        self._over = False
        self._index = 0
        self._head = re.compile(syntax.head)
        thinking = (syntax.thinking.start,) if syntax.thinking is not None and syntax.thinking.start else ()
        self._drops = syntax.frames + thinking
        # Marks that end a broken call: long enough to be no JSON.
        self._stops = tuple(each for each in (*syntax.openers, *syntax.skips) if len(each) > 2)
        # Those of them that never stand in a head.
        self._foreign = tuple(each for each in self._stops if re.escape(each) not in syntax.head)
        self._reader: _CallReader | None = None
        self._name = ""
        self._id = ""
        self._scanner = JsonScanner()
        self._arguments: list[str] = []
        self._broken: list[str] = []
        self._problem = ""

    def feed(self, text: str) -> list[Event]:
        """Take the next piece; return what has become certain.

        Raises:
            ParseError: the parser was closed.
        """
        if self._over:
            raise ParseError("the parser is closed", hint="make a new parser for each text")
        self._rest += text
        return self._run()

    def close(self) -> list[Event]:
        """Say that the text is over; return the rest. A whole call without its closing markup is a call.

        Raises:
            ParseError: the text ends inside a call.
        """
        if self._over:
            return []
        self._final = True
        events = self._run()
        self._over = True
        return events

    def _run(self) -> list[Event]:
        events: list[Event] = []
        while self._state(events):
            pass
        return events

    # -- text --------------------------------------------------------------------------------------------------

    def _start(self, events: list[Event]) -> bool:
        """The beginning of a turn whose triggers count only there."""
        beginning = self._rest.lstrip(_SPACE)
        wanted = (*self._syntax.triggers, *self._drops)
        if not self._final and any(len(each) > len(beginning) and each.startswith(beginning) for each in wanted):
            return False
        if not beginning:
            self._state = self._plain
            return True
        starts = self._syntax.beginnings
        if (
            starts
            and not self._final
            and any(len(each) > len(beginning) and each.startswith(beginning) for each in starts)
        ):
            return False
        for each in self._syntax.triggers:
            if beginning.startswith(each) and (not starts or beginning.startswith(starts)):
                self._rest = beginning
                self._state = self._between
                return True
        for each in self._drops:
            if beginning.startswith(each):
                self._rest = beginning
                return self._drop(each)
        self._state = self._plain
        return True

    def _drop(self, mark: str) -> bool:
        self._rest = self._rest[len(mark) :]
        if self._syntax.thinking is not None and mark == self._syntax.thinking.start:
            self._state = self._reason
        return True

    def _plain(self, events: list[Event]) -> bool:
        """Text in which nothing begins calls."""
        at, mark, certain = self._find(self._drops)
        self._send(self._rest[: at if mark else certain], events)
        self._rest = self._rest[at if mark else certain :]
        return self._drop(mark) if mark else False

    def _text(self, events: list[Event]) -> bool:
        joint = self._syntax.joint
        marks = (*self._syntax.triggers, *self._drops)
        joined = tuple(joint + each for each in self._syntax.triggers) if joint else ()
        at, mark, certain = self._find((*joined, *marks))
        if not mark:
            self._send(self._rest[:certain], events)
            self._rest = self._rest[certain:]
            return False
        self._send(self._rest[:at], events)
        self._rest = self._rest[at:]
        if mark in self._drops:
            return self._drop(mark)
        self._state = self._between
        return True

    def _reason(self, events: list[Event]) -> bool:
        assert self._syntax.thinking is not None
        at, mark, certain = self._find((self._syntax.thinking.end,))
        piece = self._rest[: at if mark else certain]
        if piece:
            events.append(ReasoningDelta(piece))
        self._rest = self._rest[at + len(mark) if mark else certain :]
        if mark:
            self._state = self._start if self._anchored else self._text
        return bool(mark)

    def _find(self, marks: tuple[str, ...]) -> tuple[int, str, int]:
        """The first mark (the longest of those that begin there), or how much of the text is certain to hold none."""
        rest = self._rest
        found = [(at, -len(mark), mark) for mark in marks if (at := rest.find(mark)) >= 0]
        limit = len(rest)
        if not self._final:
            longest = max(map(len, marks), default=1) - 1
            for start in range(max(0, len(rest) - longest), len(rest)):
                tail = rest[start:]
                if any(len(mark) > len(tail) and mark.startswith(tail) for mark in marks):
                    limit = start
                    break
        if found:
            at, _, mark = min(found)
            if at < limit:
                return at, mark, at
        return -1, "", limit

    def _send(self, text: str, events: list[Event]) -> None:
        if text:
            events.append(TextDelta(text))

    # -- markup ------------------------------------------------------------------------------------------------

    def _between(self, events: list[Event]) -> bool:
        """Pass over markup up to the next call, or to text."""
        self._rest = self._rest.lstrip(_SPACE)
        rest, syntax = self._rest, self._syntax
        marks = (*syntax.openers, *syntax.skips, *self._drops)
        if not self._final and any(len(each) > len(rest) and each.startswith(rest) for each in marks):
            return False
        if not rest:
            return False
        mark = max((each for each in marks if rest.startswith(each)), key=len, default="")
        if not mark:
            self._state = self._plain if self._anchored else self._text
            return True
        if mark in syntax.openers:
            self._begin(mark)
            return True
        if mark in self._drops:
            self._state = self._start if self._anchored else self._text
            return self._drop(mark)
        self._rest = rest[len(mark) :]
        return True

    def _begin(self, opener: str) -> None:
        if self._syntax.head:
            self._rest = self._rest[len(opener) :]
            self._state = self._read_head
            self._broken = [opener]
        else:
            tags = Tags("\0", "\0", "", self._syntax.name_key, self._syntax.argument_keys)
            self._reader = _CallReader(tags, self._index, self._new_id())
            self._state = self._read_object

    # -- a call that is one object -----------------------------------------------------------------------------

    def _read_object(self, events: list[Event]) -> bool:
        reader = self._reader
        assert reader is not None
        self._rest = self._rest[reader.read(self._rest, events) :]
        if reader.problem is not None:
            # What is broken may have hidden the closing markup: look for it from the beginning.
            self._rest = reader.give_up(reader.problem) + self._rest
            self._state = self._skip_object
            return True
        if reader.at_end:
            self._end_object(events)
            return True
        return self._unfinished()

    def _skip_object(self, events: list[Event]) -> bool:
        reader = self._reader
        assert reader is not None
        at, mark, certain = self._find(self._stops)
        reader.take(self._rest[: at if mark else certain], events)
        self._rest = self._rest[at if mark else certain :]
        if not mark and not self._final:
            return False
        self._end_object(events)
        return True

    def _end_object(self, events: list[Event]) -> None:
        assert self._reader is not None
        self._reader.finish(self._finish, events)
        self._index += 1
        self._state = self._between

    # -- a call whose name stands outside of the arguments -----------------------------------------------------

    def _read_head(self, events: list[Event]) -> bool:
        match = self._head.match(self._rest)
        if match is None:
            return self._give_up("the call has no name", events) if self._find(self._foreign)[1] else self._unfinished()
        self._name = match["name"]
        groups = match.groupdict()
        if groups.get("quoted"):
            self._name = str(json.loads(groups["quoted"]))
        wire = groups.get("id")
        made = self._syntax.call_id.replace("$name", self._name).replace("$id", wire or "")
        self._id = made if wire and made else self._new_id()
        self._broken.append(match.group())
        self._rest = self._rest[match.end() :]
        self._scanner = JsonScanner()
        self._arguments = []
        events.append(CallStart(self._index, self._id, self._name))
        self._state = self._read_arguments
        return True

    def _read_arguments(self, events: list[Event]) -> bool:
        if not self._arguments:
            self._rest = self._rest.lstrip(_SPACE)
            if not self._rest:
                return self._unfinished()
            if not self._rest.startswith("{"):
                return self._give_up("the arguments are not an object", events)
        end = self._scanner.push(self._rest, 0)
        piece, self._rest = self._rest[:end], self._rest[end:]
        self._arguments.append(piece)
        if piece:
            events.append(ArgumentsDelta(self._index, piece))
        if self._scanner.problem is not None:
            self._rest = "".join(self._arguments) + self._rest
            return self._give_up(self._scanner.problem, events)
        if not self._scanner.done:
            return self._unfinished()
        raw = "".join(self._arguments)
        try:
            arguments = _decode_object(raw)
        except ValueError as error:
            self._rest = raw + self._rest
            return self._give_up(str(error), events)
        events.append(CallEnd(self._index, self._finish(ToolCall(self._id, self._name, arguments, raw=raw))))
        self._next_call()
        return True

    def _give_up(self, problem: str, events: list[Event]) -> bool:
        if self._state == self._read_head:
            self._name, self._id = "", self._new_id()
            events.append(CallStart(self._index, self._id, ""))
        self._problem = problem
        self._state = self._skip
        return True

    def _skip(self, events: list[Event]) -> bool:
        at, mark, certain = self._find(self._stops)
        self._broken.append(self._rest[: at if mark else certain])
        self._rest = self._rest[at if mark else certain :]
        if not mark and not self._final:
            return False
        raw = "".join(self._broken).strip(_SPACE)
        error = f"{MALFORMED}: {self._problem}"
        events.append(CallEnd(self._index, ToolCall(self._id, self._name, {}, raw=raw, error=error)))
        self._next_call()
        return True

    def _next_call(self) -> None:
        self._index += 1
        self._state = self._between

    def _unfinished(self) -> bool:
        if self._final:
            raise ParseError(
                "the text ends inside a tool call",
                hint="raise the token budget, or generate under the tool set's grammar, which closes calls in time",
            )
        return False
