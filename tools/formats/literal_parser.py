"""Streaming parsers of calls in a syntax of their own: Python's keyword arguments, and Gemma's objects."""

from __future__ import annotations

import json
import re
from collections.abc import Callable

from ...core.events import ArgumentsDelta, CallEnd, CallStart, Event
from ...core.messages import ToolCall
from .base import dump_json
from .json_calls_parser import JsonCallsParser, Syntax
from .literals import PYTHON, Literals, LiteralScanner, read_literal

_SPACE = " \t\n\r"
_NAME_AND_BRACKET = re.compile(r"(?P<name>[^\W\d][\w.\-]*)\s*\(")
_PERHAPS_NAME = re.compile(r"(?:[^\W\d][\w.\-]*\s*)?")
_KEY = re.compile(r"\s*(?P<key>[^\W\d]\w*)\s*=(?!=)\s*")
_PERHAPS_KEY = re.compile(r"\s*(?:[^\W\d]\w*\s*)?=?\s*")


class PythonicCallsParser(JsonCallsParser):
    """Text and calls ``name(key=literal, ...)`` from a stream; arguments arrive one by one, as JSON.

    Besides the history form it takes other white space, either kind of quotes (tripled too), all escapes of Python,
    tuples, JSON's ``true``, ``false`` and ``null``, and a comma after the last argument or call. What begins like calls
    and holds none is text.
    """

    def __init__(
        self,
        syntax: Syntax,
        finish: Callable[[ToolCall], ToolCall],
        new_id: Callable[[], str],
        *,
        whole_text: bool = False,
    ) -> None:
        super().__init__(syntax, finish, new_id, whole_text=whole_text)
        self._eaten: list[str] = []
        self._values: dict[str, object] = {}
        self._key: str | None = None
        self._literal = LiteralScanner(PYTHON, ",)")

    def _between(self, events: list[Event]) -> bool:
        before = self._rest
        rest = before.lstrip(_SPACE)
        match = _NAME_AND_BRACKET.match(rest)
        if match is not None:
            self._eaten = []
            self._rest = rest[match.end() :]
            self._name = match["name"]
            self._broken = [match.group()]
            self._id = self._new_id()
            self._values = {}
            self._key = None
            self._arguments = ["{"]
            events += [CallStart(self._index, self._id, self._name), ArgumentsDelta(self._index, "{")]
            self._state = self._read_arguments
            return True
        if not self._final and _PERHAPS_NAME.fullmatch(rest):
            return False
        goes_on = super()._between(events)
        if self._state == self._between:
            self._eaten.append(before[: len(before) - len(self._rest)])
        elif self._index == 0 and self._anchored:  # no call: what was taken for the markup of calls is text
            self._rest = "".join(self._eaten) + before
        return goes_on

    def _read_arguments(self, events: list[Event]) -> bool:
        if self._key is None:
            rest = self._rest.lstrip(_SPACE)
            if rest.startswith(")"):
                self._rest = rest[1:]
                self._end_call(events)
                return True
            if rest.startswith(",") and self._values:
                self._rest = rest[1:]
                return True
            match = _KEY.match(rest)
            if match is None or (match.end() == len(rest) and not self._final):
                if match is None and not _PERHAPS_KEY.fullmatch(rest):
                    return self._give_up("expected an argument's name, '=' and a value", events)
                return self._unfinished()
            self._key = match["key"]
            self._rest = rest[match.end() :]
            self._broken.append(match.group())
            self._literal = LiteralScanner(PYTHON, ",)")
            if self._key in self._values:
                return self._give_up(f"the argument {self._key!r} is there twice", events)
        end = self._literal.end(self._rest)
        if end is None:
            return self._unfinished()
        text = self._rest[:end]
        try:
            value = read_literal(text, PYTHON)
            spelled = dump_json(value)
        except (ValueError, RecursionError) as error:
            return self._give_up(str(error), events)
        self._add(self._key, value, spelled, events)
        self._broken.append(text)
        self._rest = self._rest[end:]
        self._key = None
        return True

    def _add(self, key: str, value: object, spelled: str, events: list[Event]) -> None:
        piece = f"{', ' if self._values else ''}{dump_json(key)}: {spelled}"
        self._values[key] = value
        self._arguments.append(piece)
        events.append(ArgumentsDelta(self._index, piece))

    def _end_call(self, events: list[Event]) -> None:
        self._arguments.append("}")
        events.append(ArgumentsDelta(self._index, "}"))
        raw = "".join(self._arguments)
        # Read back, as the receiver will: what JSON has no words for, Python's tuples, say, is a list.
        events.append(CallEnd(self._index, self._finish(ToolCall(self._id, self._name, json.loads(raw), raw=raw))))
        self._next_call()


class BareCallsParser(JsonCallsParser):
    """Text and calls ``name{key:value}`` from a stream; the arguments arrive in one piece, as JSON.

    Besides the history form it takes other white space and JSON's strings and keys.
    """

    def __init__(
        self,
        literals: Literals,
        syntax: Syntax,
        finish: Callable[[ToolCall], ToolCall],
        new_id: Callable[[], str],
        *,
        whole_text: bool = False,
    ) -> None:
        super().__init__(syntax, finish, new_id, whole_text=whole_text)
        self._literals = literals
        self._literal: LiteralScanner | None = None

    def _read_arguments(self, events: list[Event]) -> bool:
        if self._literal is None:
            self._rest = self._rest.lstrip(_SPACE)
            if not self._rest:
                return self._unfinished()
            if not self._rest.startswith("{"):
                return self._give_up("the arguments are not an object", events)
            self._literal = LiteralScanner(self._literals, "")
        end = self._literal.end(self._rest)
        if end is None:
            return self._unfinished()
        self._literal = None
        text = self._rest[:end]
        try:
            value = read_literal(text, self._literals)
            raw = dump_json(value)
        except (ValueError, RecursionError) as error:
            return self._give_up(str(error), events)
        self._rest = self._rest[end:]
        events.append(ArgumentsDelta(self._index, raw))
        events.append(CallEnd(self._index, self._finish(ToolCall(self._id, self._name, json.loads(raw), raw=raw))))
        self._next_call()
        return True
