"""Streaming parser of calls written as one JSON object in a tag.

What it takes beyond the history form, because models write it when nothing holds them: any white space between tag and
object and inside the object; ``parameters`` for ``arguments``; the arguments before the name; the arguments as a
JSON-encoded string, null or missing; other keys beside them; a forgotten last brace or end tag.

Anything else between the tags is a call with ``error`` set whose ``raw`` is the text as written: nothing is lost, and
nothing raises before `close`.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ...core.errors import ParseError
from ...core.events import ArgumentsDelta, CallEnd, CallStart, Event, TextDelta
from ...core.messages import ToolCall
from .base import MALFORMED
from .json_scanner import JsonScanner

_SPACE = " \t\n\r"


@dataclass(frozen=True)
class Tags:
    """The strings that the parser looks for.

    Attributes:
        start: begins a call.
        end: ends a call.
        separator: is dropped between text and a call.
        name_key: the key of the name.
        argument_keys: the keys under which arguments are taken.
    """

    start: str
    end: str
    separator: str
    name_key: str
    argument_keys: tuple[str, ...]


class TaggedJsonParser:
    """Text and calls from a stream.

    Laws: the events, after joining neighbouring deltas of one kind, do not depend on how the text was cut; for a call
    without ``error``, its `ArgumentsDelta`s join to ``call.raw``.

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
        self._tags = tags
        self._mode = "undecided" if whole_text else "mixed"
        self._finish = finish
        self._new_id = new_id
        self._rest = ""
        self._calls = 0
        self._gap = False  # nothing but white space since the last call
        self._call: _CallReader | None = None
        self._closed = False

    def feed(self, text: str) -> list[Event]:
        """Take the next piece; return what has become certain.

        Raises:
            ParseError: the parser was closed.
        """
        if self._closed:
            raise ParseError("the parser is closed", hint="make a new parser for each text")
        self._rest += text
        events: list[Event] = []
        while self._advance(events):
            pass
        return events

    def close(self) -> list[Event]:
        """Say that the text is over; return the rest. A whole object without its end tag is a call.

        Raises:
            ParseError: the text ends inside a call.
        """
        if self._closed:
            return []
        self._closed = True
        events: list[Event] = []
        while self._call is not None:
            if self._call.at_end:
                # An end tag that is only half there says no less than none at all.
                cut_tag = self._tags.end.startswith(self._rest.strip(_SPACE))
                self._call.take("" if cut_tag else self._rest, events)
                self._rest = ""
                self._end_call(events)
            elif self._tags.end in self._call.body:
                # The call looks unfinished only because a string in it was never closed: its tag is inside.
                self._rest = self._call.give_up("a string is not closed")
                while self._advance(events):
                    pass
            else:
                raise ParseError(
                    "the text ends inside a tool call",
                    hint="raise the token budget, or generate under the tool set's grammar, which closes calls in time",
                )
        self._send_text(self._rest, events)
        self._rest = ""
        return events

    def _advance(self, events: list[Event]) -> bool:
        """One step; False when more text is needed."""
        return self._text(events) if self._call is None else self._body(self._call, events)

    def _text(self, events: list[Event]) -> bool:
        if self._mode == "undecided":
            beginning = self._rest.lstrip(_SPACE)
            if len(beginning) < len(self._tags.start) and self._tags.start.startswith(beginning):
                return False
            self._mode = "mixed" if beginning.startswith(self._tags.start) else "text"
        if self._mode == "text":
            self._send_text(self._rest, events)
            self._rest = ""
            return False
        at = self._rest.find(self._tags.start)
        if at >= 0:
            text = self._rest[:at]
            self._send_text(text if self._gap else text.removesuffix(self._tags.separator), events)
            self._rest = self._rest[at + len(self._tags.start) :]
            self._call = _CallReader(self._tags, self._calls, self._new_id())
            return True
        certain = len(self._rest) - len(self._held_back())
        self._send_text(self._rest[:certain], events)
        self._rest = self._rest[certain:]
        return False

    def _send_text(self, text: str, events: list[Event]) -> None:
        """Send text, unless it is the white space between two calls."""
        if text and not (self._gap and not text.strip(_SPACE)):
            events.append(TextDelta(text))
            self._gap = False

    def _held_back(self) -> str:
        """The end of the text that may yet turn out to be markup."""
        if self._gap and self._tags.start.startswith(self._rest.lstrip(_SPACE)):
            return self._rest
        return _longest_suffix(self._rest, (self._tags.separator + self._tags.start, self._tags.start))

    def _body(self, call: _CallReader, events: list[Event]) -> bool:
        """Give the call what belongs to it: everything up to a tag that stands outside of JSON strings."""
        if call.at_end:
            return self._look_for_end(call, events)
        self._rest = self._rest[call.read(self._rest, events) :]
        if call.problem is not None:
            # What is broken may have hidden the tag (a string that is never closed): look for it from the beginning.
            self._rest = call.give_up(call.problem) + self._rest
        return call.at_end

    def _look_for_end(self, call: _CallReader, events: list[Event]) -> bool:
        ends = [(at, tag) for tag in (self._tags.end, self._tags.start) if (at := self._rest.find(tag)) >= 0]
        if not ends:
            keep = _longest_suffix(self._rest, (self._tags.end, self._tags.start))
            call.take(self._rest[: len(self._rest) - len(keep)], events)
            self._rest = keep
            return False
        at, tag = min(ends)
        call.take(self._rest[:at], events)
        # A start tag where an end tag should be: the end was forgotten; the next call begins here.
        self._rest = self._rest[at + len(tag) :] if tag == self._tags.end else self._rest[at:]
        self._end_call(events)
        return True

    def _end_call(self, events: list[Event]) -> None:
        assert self._call is not None
        self._call.finish(self._finish, events)
        self._call = None
        self._calls += 1
        self._gap = True


class _CallReader:
    """One call between its tags: tells name and arguments apart while they arrive."""

    def __init__(self, tags: Tags, index: int, call_id: str) -> None:
        self.problem: str | None = None
        self._tags = tags
        self._index = index
        self._id = call_id
        self._state = "open"
        self._scanner = JsonScanner()
        self._key = ""
        self._value: list[str] = []
        self._keys: set[str] = set()
        self._body: list[str] = []
        self._name: str | None = None
        self._arguments: list[str] = []
        self._sent = 0
        self._streams = False

    @property
    def at_end(self) -> bool:
        """The object is over, or can no longer be read: only a tag ends the call now."""
        return self._state in ("after", "broken")

    @property
    def body(self) -> str:
        """What was read so far."""
        return "".join(self._body)

    def read(self, text: str, events: list[Event]) -> int:
        """Read on; return how much of the text was used."""
        position = 0
        while position < len(text) and not self.at_end:
            position = self._step(text, position, events)
        self._body.append(text[:position])
        return position

    def give_up(self, problem: str) -> str:
        """The call cannot be read; returns what was taken for it, to be searched for its end."""
        self._break(problem)
        body = self.body
        self._body = []
        return body

    def take(self, text: str, events: list[Event]) -> None:
        """Text after the object, or in a broken call, up to a tag."""
        self._body.append(text)
        if text.strip(_SPACE) and self._state == "after":
            self._break("there is text after the call's object")

    def finish(self, finish: Callable[[ToolCall], ToolCall], events: list[Event]) -> None:
        """Send what is left of the call, and its end."""
        if self._name is None:
            self.problem = self.problem or "the call has no name"
            events.append(CallStart(self._index, self._id, ""))
        arguments: dict[str, Any] = {}
        if self.problem is None:
            if not self._arguments:
                self._arguments.append("{}")
                self._send(events)
            try:
                arguments = _decode_object("".join(self._arguments))
            except ValueError as error:
                self.problem = str(error)
        if self.problem is None:
            call = finish(ToolCall(self._id, self._name or "", arguments, raw="".join(self._arguments)))
        else:
            why = f"{MALFORMED}: {self.problem}"
            call = ToolCall(self._id, self._name or "", {}, raw=self.body.strip(_SPACE), error=why)
        events.append(CallEnd(self._index, call))

    def _break(self, problem: str) -> None:
        self.problem = self.problem or problem
        self._state = "broken"

    def _step(self, text: str, position: int, events: list[Event]) -> int:
        char, state = text[position], self._state
        if state in ("key", "value"):
            return self._scan(text, position, events)
        if char in _SPACE:
            return position + 1
        if state == "open" and char == "{":
            self._state = "first key"
        elif state in ("first key", "next key") and char == '"':
            self._begin("key")
            return position
        elif state == "colon" and char == ":":
            self._state = "before value"
        elif state == "before value":
            self._streams = self._key in self._tags.argument_keys and char == "{"
            self._begin("value")
            return position
        elif state == "comma" and char == ",":
            self._state = "next key"
        elif state in ("first key", "comma") and char == "}":
            self._state = "after"
        elif state == "comma" and char in (self._tags.start[0], self._tags.end[0]):
            self._state = "after"  # the last brace was forgotten; what follows must be a tag
            return position
        else:
            expected = {"open": "'{'", "colon": "':'", "comma": "',' or '}'"}.get(state, "a key")
            self._break(f"expected {expected}, found {char!r}")
            return position
        return position + 1

    def _scan(self, text: str, position: int, events: list[Event]) -> int:
        end = self._scanner.push(text, position)
        piece = text[position:end]
        if self._state == "value" and self._streams:
            self._arguments.append(piece)
            self._send(events)
        else:
            self._value.append(piece)
        if self._scanner.problem is not None:
            self._break(self._scanner.problem)
        elif self._scanner.done:
            if self._state == "key":
                self._end_key()
            else:
                self._end_value(events)
        return end

    def _begin(self, state: str) -> None:
        self._state = state
        self._scanner = JsonScanner()
        self._value = []

    def _send(self, events: list[Event]) -> None:
        """Send the arguments that have not been sent, once it is known whose they are."""
        if self._name is not None and self._sent < len(self._arguments):
            text = "".join(self._arguments[self._sent :])
            self._sent = len(self._arguments)
            if text:
                events.append(ArgumentsDelta(self._index, text))

    def _end_key(self) -> None:
        self._key = json.loads("".join(self._value))
        role = "arguments" if self._key in self._tags.argument_keys else self._key
        if role in self._keys:
            self._break(f"the key {self._key!r} is there twice")
            return
        self._keys.add(role)
        self._state = "colon"

    def _end_value(self, events: list[Event]) -> None:
        self._state = "comma"
        if self._key == self._tags.name_key:
            self._end_name("".join(self._value), events)
        elif self._key in self._tags.argument_keys:
            if not self._streams:
                self._end_plain_arguments("".join(self._value))
            self._send(events)

    def _end_name(self, text: str, events: list[Event]) -> None:
        name = json.loads(text) if text.startswith('"') else ""
        if not name:
            self._break("the name is not a string, or empty")
            return
        self._name = name
        events.append(CallStart(self._index, self._id, name))
        self._send(events)

    def _end_plain_arguments(self, text: str) -> None:
        """Arguments that are not written as an object: null is none, a string may hold the object's JSON."""
        if text == "null":
            return
        if not text.startswith('"'):
            self._break("the arguments are not an object")
            return
        inner = str(json.loads(text)).strip(_SPACE)
        if inner:
            try:
                _decode_object(inner)
            except ValueError as error:
                self._break(f"the arguments are a string that holds no JSON object: {error}")
                return
            self._arguments.append(inner)


def _decode_object(text: str) -> dict[str, Any]:
    try:
        value = json.loads(text, parse_constant=_refuse)
    except RecursionError:
        raise ValueError("the arguments are nested too deeply") from None
    if not isinstance(value, dict):
        raise ValueError("the arguments are not an object")
    return value


def _refuse(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def _longest_suffix(text: str, markers: tuple[str, ...]) -> str:
    """The longest end of the text with which one of the markers may begin."""
    longest = max(map(len, markers)) - 1
    for start in range(max(0, len(text) - longest), len(text)):
        if any(marker.startswith(text[start:]) for marker in markers):
            return text[start:]
    return ""
