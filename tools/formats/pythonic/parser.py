"""Streaming parser of calls in the syntax of Python."""

from __future__ import annotations

import re
from collections.abc import Callable

from toolgrammar.core.conversation import CallStart, Event, ToolCall

from ..literals import PYTHON, LiteralReader
from ..template.parser import Syntax, TemplateParser

#: The names of arguments that the grammar writes: letters, digits and underscores, as in Python, and all characters of
#: most scripts.
ARGUMENT_NAME = r"[A-Za-z_\u00c0-\u1fff\u3040-\ud7ff][A-Za-z0-9_\u00c0-\u1fff\u3040-\ud7ff]*"

_NAME_AND_BRACKET = re.compile(r"(?P<name>[^\W\d][\w.\-]*)\s*\(")
_PERHAPS_NAME = re.compile(r"(?:[^\W\d][\w.\-]*\s*)?")
#: Names of arguments: Python's, and whatever else the grammar writes (`ARGUMENT_NAME`), such as combining marks.
_FIRST, _REST = ARGUMENT_NAME.removesuffix("*").replace("][", "] [").split(" ")
_WORD = rf"(?:[^\W\d]|{_FIRST})(?:\w|{_REST})*"
_KEY = re.compile(rf"(?P<key>{_WORD})\s*=(?!=)\s*")
_PERHAPS_KEY = re.compile(rf"(?:{_WORD}\s*)?(?:=\s*)?")


class PythonicCallsParser(TemplateParser):
    """Text and calls ``name(key=literal, ...)`` from a stream; arguments arrive one by one, as JSON.

    Besides the history form it takes other white space, either kind of quotes (tripled too), all escapes of Python,
    tuples, JSON's ``true``, ``false`` and ``null``, and a comma after the last argument or call. What begins like calls
    and holds none is text.
    """

    def __init__(self, syntax: Syntax, finish: Callable[[ToolCall], ToolCall], new_id: Callable[[], str]) -> None:
        super().__init__(syntax, finish, new_id)
        self._eaten: list[str] = []
        self._key = ""
        self._literal = LiteralReader(PYTHON, ",)")

    def _between(self, events: list[Event]) -> bool:
        buffer = self._buffer
        self._eaten.append(buffer.take_space())
        match = buffer.match(_NAME_AND_BRACKET)
        if match is not None:
            self._eaten = []
            self._come_to_call("")
            self._name = match["name"]
            self._broken = [buffer.take(match.end())]
            self._id = self._new_id()
            events.append(CallStart(self._index, self._id, self._name))
            self._open_arguments(events)
            self._state = self._read_key
            return True
        if not self._final and _PERHAPS_NAME.fullmatch(buffer.text, buffer.position):
            return False
        start = buffer.position
        goes_on = super()._between(events)
        if self._state == self._between:
            self._eaten.append(buffer.text[start : buffer.position])
        elif self._index == 0 and self._syntax.anchored:  # no call: what was taken for the markup of calls is text
            buffer.unread("".join((*self._eaten, buffer.text[start : buffer.position])))
        return goes_on

    def _read_key(self, events: list[Event]) -> bool:
        """Read the name of an argument, or the end of the call."""
        buffer = self._buffer
        buffer.take_space()
        if buffer.startswith(")"):
            buffer.skip(1)
            return self._close_arguments(events)
        if buffer.startswith(",") and self._values:
            buffer.skip(1)
            return True
        match = buffer.match(_KEY)
        if match is None or (match.end() == len(buffer.text) and not self._final):
            if match is None and not _PERHAPS_KEY.fullmatch(buffer.text, buffer.position):
                return self._give_up("expected an argument's name, '=' and a value", events)
            return self._unfinished()
        self._key = match["key"]
        self._broken.append(buffer.take(match.end()))
        if self._key in self._values:
            return self._give_up(f"the argument {self._key!r} is there twice", events)
        self._literal = LiteralReader(PYTHON, ",)")
        self._state = self._read_value
        return True

    def _read_value(self, events: list[Event]) -> bool:
        literal = self._literal
        if not literal.take(self._buffer):
            return self._unfinished()
        if literal.problem is not None:
            return self._give_up(literal.problem, events)
        self._add_argument(self._key, literal.value, literal.json, events)
        self._broken.append(literal.text)
        self._state = self._read_key
        return True
