"""Streaming parser of calls whose arguments stand each between its own tags."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ...core.events import ArgumentsDelta, CallEnd, Event
from ...core.messages import ToolCall
from ...core.schema.outermost import READINGS
from .base import dump_json
from .json_calls_parser import JsonCallsParser, Syntax
from .json_scanner import JsonScanner

_SPACE = " \t\n\r"
_STRING = frozenset({"string"})
_PYTHON = {"True": True, "False": False, "None": None}


@dataclass(frozen=True)
class XmlSyntax:
    """What stands around arguments; see `XmlCalls`.

    Attributes:
        head: what stands before a value, a regular expression with the group ``key``, and perhaps ``raw`` (``true``: a
            string stands there as it is).
        end: what ends a value.
        padding: is dropped on both sides of a value.
        call_ends: what ends the arguments.
        kinds: which kinds of values an argument may have, by tool and name.
    """

    head: str
    end: str
    padding: str
    call_ends: tuple[str, ...]
    kinds: Callable[[str, str], frozenset[str]]


class XmlCallsParser(JsonCallsParser):
    """Text, reasoning and calls from a stream; arguments arrive one by one, as JSON.

    Besides the history form it takes other white space, Python's ``True``, ``False`` and ``None``, and a value that is
    no JSON where JSON is due (a string, for the checks to judge).
    """

    def __init__(
        self,
        syntax: Syntax,
        xml: XmlSyntax,
        finish: Callable[[ToolCall], ToolCall],
        new_id: Callable[[], str],
        *,
        whole_text: bool = False,
    ) -> None:
        super().__init__(syntax, finish, new_id, whole_text=whole_text)
        self._xml = xml
        self._parameter = re.compile(xml.head)
        self._values: dict[str, Any] = {}
        self._key: str | None = None
        self._raw: bool | None = None  # whether the markup says that a raw string stands there, if it says anything

    def _read_arguments(self, events: list[Event]) -> bool:
        if not self._arguments:
            self._values = {}
            self._key = None
            self._arguments = ["{"]
            events.append(ArgumentsDelta(self._index, "{"))
        if self._key is not None:
            return self._read_value(self._key, events)
        self._rest = self._rest.lstrip(_SPACE)
        rest = self._rest
        match = self._parameter.match(rest)
        if match is not None:
            if match.end() == len(rest) and not self._final:
                return False  # white space that belongs to the head may follow
            self._key = match["key"]
            said = match.groupdict().get("raw")
            self._raw = None if said is None else said == "true"
            self._broken.append(match.group())
            self._rest = rest[match.end() :]
            if self._key in self._values:
                return self._give_up(f"the argument {self._key!r} is there twice", events)
            return True
        if any(rest.startswith(each) for each in self._xml.call_ends):
            self._arguments.append("}")
            events.append(ArgumentsDelta(self._index, "}"))
            raw = "".join(self._arguments)
            call = ToolCall(self._id, self._name, self._values, raw=raw)
            events.append(CallEnd(self._index, self._finish(call)))
            self._next_call()
            return True
        if rest and (self._final or rest[0] != "<" or len(rest) > 1000):
            return self._give_up("expected an argument or the end of the call", events)
        return self._unfinished()

    def _read_value(self, key: str, events: list[Event]) -> bool:
        xml = self._xml
        kinds = xml.kinds(self._name, key)
        raw = kinds <= _STRING if self._raw is None else self._raw
        # Of a text that may be a string, only what opens an object or an array is taken for JSON here.
        scanned = not raw and (
            "string" not in kinds or self._raw is False or self._rest.lstrip(_SPACE)[:1] in ("[", "{")
        )
        at = self._rest.find(xml.end)
        while at >= 0 and scanned:
            # The closing tag may stand in a string of the JSON.
            scanner = JsonScanner()
            scanner.push(self._rest[:at], 0)
            if scanner.problem is not None or scanner.done or '"' not in self._rest[:at]:
                break
            at = self._rest.find(xml.end, at + 1)
        if at < 0:
            return self._unfinished()
        text = self._rest[:at].removesuffix(xml.padding)
        self._broken.append(self._rest[: at + len(xml.end)])
        self._rest = self._rest[at + len(xml.end) :]
        value = text if raw else _read(text, kinds, strings=self._raw is None and "string" in kinds)
        piece = f"{', ' if self._values else ''}{dump_json(key)}: {dump_json(value)}"
        self._values[key] = value
        self._key = None
        self._arguments.append(piece)
        events.append(ArgumentsDelta(self._index, piece))
        return True


def _read(text: str, kinds: frozenset[str], *, strings: bool) -> Any:
    """The value of a text that may be JSON; with ``strings``, only if it reads as one of the other kinds."""
    if strings and not any(re.fullmatch(READINGS[kind], text) for kind in kinds - _STRING):
        return text
    value = _decoded(text.strip(_SPACE))
    return text if strings and isinstance(value, str) else value


def _decoded(text: str) -> Any:
    if text in _PYTHON:
        return _PYTHON[text]
    try:
        value = json.loads(text)
        dump_json(value)
    except (ValueError, RecursionError):
        return text
    return value
