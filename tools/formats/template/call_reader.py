"""Streaming reader of one call that is a JSON object with the name and the arguments.

The arguments are sent while they are read (*streamed*) if they are an object, and when they are whole if they are a
JSON string that holds it.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from toolgrammar.core.conversation import ArgumentsDelta, CallEnd, CallStart, Event, ToolCall
from toolgrammar.core.json import SPACE, JsonScanner, dump_json
from toolgrammar.core.repair import Edit

from ..base import decode_object
from ..leniencies import Leniency, lenient


class ObjectReader:
    """Reader of one call: a state machine over the characters of the object.

    Args:
        index: the number of the call in its turn.
        call_id: its id.
        name_key: key of the name.
        argument_keys: keys under which arguments are accepted; the family writes the first.
        id_key: key of the id, empty if the family writes none. Nothing is sent before the id is known or the object has
            ended: the id is the first that a stream says of a call.
        closers: characters with which the markup after a call begins: one of them also ends an object whose last brace
            was forgotten.

    Attributes:
        problem: why the text is no call, or None.
        leniencies: see `StreamParser`.
    """

    def __init__(
        self,
        index: int,
        call_id: str,
        name_key: str,
        argument_keys: tuple[str, ...],
        closers: frozenset[str],
        id_key: str = "",
    ) -> None:
        self.problem: str | None = None
        self.leniencies: list[Edit] = []
        self._origin = 0  # the place of the text that is read in the whole text
        self._name_key = name_key
        self._id_key = id_key
        self._is_started = False  # the stream has the beginning of the call
        self._argument_keys = argument_keys
        self._closers = closers
        self._index = index
        self._id = call_id
        self._state = "open"  # what comes next in the object; "after": it has ended; "broken": it is malformed
        self._scanner = JsonScanner()
        self._key = ""  # of the value that is read
        self._value: list[str] = []  # the pieces of a key, or of a value that is not streamed
        self._keys: set[str] = set()
        self._body: list[str] = []  # all text of the call
        self._name: str | None = None
        self._arguments: list[str] = []
        self._sent = 0  # the number of pieces of the arguments that were sent
        self._end = 0  # the place after the last key or value
        self._streams = False  # the value is the object of the arguments, and is sent while it is read

    @property
    def at_end(self) -> bool:
        """The object is complete or malformed: only a tag ends the call now."""
        return self._state in ("after", "broken")

    @property
    def body(self) -> str:
        """Text read so far."""
        return "".join(self._body)

    def read(self, text: str, position: int, origin: int, events: list[Event]) -> int:
        """Read on from a position in a text; return the position where reading stopped.

        Args:
            text: text of the call and perhaps more.
            position: where it has been read to.
            origin: the place of the text in the whole text of the stream.
            events: what is sent is added.
        """
        start = position
        self._origin = origin
        while position < len(text) and not self.at_end:
            position = self._step(text, position, events)
        self._body.append(text[start:position])
        return position

    def give_up(self, problem: str) -> str:
        """Mark the call as malformed; return the text that was read as its body, to be searched for its end."""
        self._break(problem)
        body = self.body
        self._body = []
        return body

    def take(self, text: str, events: list[Event]) -> None:
        """Take text after the object, or in a malformed call, up to a tag."""
        self._body.append(text)
        if text.strip(SPACE) and self._state == "after":
            self._break("there is text after the call's object")

    def finish(self, finish: Callable[[ToolCall], ToolCall], events: list[Event]) -> None:
        """Send what is left of the call, and its end.

        Args:
            finish: applied to the call, if it is not malformed.
            events: what is sent is added.
        """
        if self._name is None:
            self.problem = self.problem or "the call has no name"
        self._start(events)
        arguments: dict[str, Any] = {}
        if self.problem is None:
            if not self._arguments:
                self._note("missing_arguments", self._end, "", f', "{self._argument_keys[0]}": {{}}')
                self._arguments.append("{}")
                self._send(events)
            try:
                arguments = decode_object("".join(self._arguments))
            except ValueError as error:
                self.problem = str(error)
        if self.problem is None:
            call = finish(ToolCall(self._id, self._name or "", arguments, raw="".join(self._arguments)))
        else:
            call = ToolCall.unread(self._id, self._name or "", self.body.strip(SPACE), self.problem)
        events.append(CallEnd(self._index, call))

    def _note(self, name: Leniency, end: int, old: str, new: str) -> None:
        """Note a leniency whose text ends at a place."""
        self.leniencies.append(lenient(name, end - len(old), old, new))

    def _break(self, problem: str) -> None:
        self.problem = self.problem or problem
        self._state = "broken"

    def _step(self, text: str, position: int, events: list[Event]) -> int:
        """Read a character of the object around name and arguments, or a piece of a key or value; return where
        reading stopped."""
        char, state = text[position], self._state
        if state in ("key", "value"):
            return self._scan(text, position, events)
        if char in SPACE:
            return position + 1
        if state == "open" and char == "{":
            self._state = "first key"
        elif state in ("first key", "next key") and char == '"':
            self._begin("key")
            return position
        elif state == "colon" and char == ":":
            self._state = "before value"
        elif state == "before value":
            self._streams = self._key in self._argument_keys and char == "{"
            self._begin("value")
            return position
        elif state == "comma" and char == ",":
            self._state = "next key"
        elif state in ("first key", "comma") and char == "}":
            self._state = "after"
        elif state == "comma" and char in self._closers:
            self._state = "after"  # the last brace was forgotten; what follows must be a tag
            self._note("missing_brace", self._origin + position, "", "}")
            return position
        else:
            expected = {"open": "'{'", "colon": "':'", "comma": "',' or '}'"}.get(state, "a key")
            self._break(f"expected {expected}, found {char!r}")
            return position
        return position + 1

    def _scan(self, text: str, position: int, events: list[Event]) -> int:
        """Read a piece of a key or of a value, and end it where it is whole; return where reading stopped."""
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
            self._end = self._origin + end
            if self._state == "key":
                self._end_key()
            else:
                self._end_value(events)
        return end

    def _begin(self, state: str) -> None:
        """Begin to read a key or a value."""
        self._state = state
        self._scanner = JsonScanner()
        self._value = []

    def _send(self, events: list[Event]) -> None:
        """Send the arguments that have not been sent, once it is known whose they are."""
        if self._is_started and self._sent < len(self._arguments):
            text = "".join(self._arguments[self._sent :])
            self._sent = len(self._arguments)
            if text:
                events.append(ArgumentsDelta(self._index, text))

    def _end_key(self) -> None:
        """Take the key; all keys of the arguments count as one, so that arguments are not there twice."""
        self._key = json.loads("".join(self._value))
        role = "arguments" if self._key in self._argument_keys else self._key
        if role in self._keys:
            self._break(f"the key {self._key!r} is repeated")
            return
        self._keys.add(role)
        if role == "arguments" and self._key != self._argument_keys[0]:
            self._note("other_key", self._end, dump_json(self._key), dump_json(self._argument_keys[0]))
        self._state = "colon"

    def _end_value(self, events: list[Event]) -> None:
        """Take the value of the present key; a key of no meaning is passed over."""
        self._state = "comma"
        if self._key == self._name_key:
            self._end_name("".join(self._value), events)
        elif self._id_key and self._key == self._id_key:
            self._end_id("".join(self._value), events)
        elif self._key in self._argument_keys:
            if not self._streams:
                self._end_plain_arguments("".join(self._value))
            self._send(events)

    def _end_name(self, text: str, events: list[Event]) -> None:
        """Take the name from its JSON text; the call begins in the stream, unless an id may follow."""
        name = json.loads(text) if text.startswith('"') else ""
        if not name:
            self._break("the name is not a string, or empty")
            return
        self._name = name
        if not self._id_key:
            self._start(events)

    def _end_id(self, text: str, events: list[Event]) -> None:
        """Take the id: a text, or a number as it is written; other ids, such as an object, are passed over."""
        wire_id = json.loads(text) if text.startswith('"') else text
        if isinstance(wire_id, str) and wire_id and text[0] not in "{[":
            self._id = wire_id
            self._id_key = ""  # the call waits for no other id
            if self._name is not None:
                self._start(events)

    def _start(self, events: list[Event]) -> None:
        """Begin the call in the stream, if it has not begun."""
        if not self._is_started:
            self._is_started = True
            events.append(CallStart(self._index, self._id, self._name or ""))
        self._send(events)

    def _end_plain_arguments(self, text: str) -> None:
        """Take arguments that are not written as an object: none for ``null``, those of an object in a string
        (``"{\\"a\\": 1}"``, or an empty one); others break the call."""
        if text == "null":
            self._note("missing_arguments", self._end, text, "{}")
            self._arguments.append("{}")
            return
        if not text.startswith('"'):
            self._break("the arguments are not an object")
            return
        inner = str(json.loads(text)).strip(SPACE)
        if inner:
            try:
                decode_object(inner)
            except ValueError as error:
                self._break(f"the arguments are a string that holds no JSON object: {error}")
                return
        self._note("arguments_as_text", self._end, text, inner or "{}")
        self._arguments.append(inner or "{}")
