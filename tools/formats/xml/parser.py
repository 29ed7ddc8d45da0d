"""Streaming parser of calls with a tag for each argument."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from toolgrammar.core.conversation import Event, ToolCall
from toolgrammar.core.language.json_scanner import JsonScanner
from toolgrammar.core.language.json_text import SPACE, dump_json, read_json
from toolgrammar.core.schema.lower.arguments_object import READINGS

from ..stream import marker_search
from ..template.parser import Syntax, TemplateParser

_STRING = frozenset({"string"})
_PYTHON = {"True": True, "False": False, "None": None}

#: Maximum length of the markup before a value, in characters; anything longer is not markup.
MAX_HEAD = 1 << 16


@dataclass(frozen=True)
class XmlSyntax:
    """Markup around arguments; see `XmlCalls`.

    Attributes:
        head: markup before a value, a regular expression with the group ``key``, and perhaps ``raw`` (``true``: a
            value is a raw string) or ``type`` (``string``: likewise).
        end: markup that ends a value.
        padding: text that is dropped on both sides of a value.
        call_ends: markers that end the arguments.
        kinds: the JSON types that an argument may have, by tool and argument name.
        block: markup around the text of a value; it may come several times, as in XML.
    """

    head: str
    end: str
    padding: str
    call_ends: tuple[str, ...]
    kinds: Callable[[str, str], frozenset[str]]
    block: tuple[str, str] | None = None


class XmlCallsParser(TemplateParser):
    """Text, reasoning and calls from a stream; arguments arrive one by one, as JSON.

    Besides the history form it takes other white space, Python's ``True``, ``False`` and ``None``, and a value that is
    no JSON where JSON is due (a string, for the checks to judge).
    """

    def __init__(
        self, xml: XmlSyntax, syntax: Syntax, finish: Callable[[ToolCall], ToolCall], new_id: Callable[[], str]
    ) -> None:
        super().__init__(syntax, finish, new_id)
        self._xml = xml
        self._parameter = re.compile(xml.head)
        self._end_marks = marker_search((xml.end,))
        self._value = _ValueReader("", None, frozenset(), None)

    def _read_arguments(self, events: list[Event]) -> bool:
        self._open_arguments(events)
        self._state = self._read_parameter
        return True

    def _read_parameter(self, events: list[Event]) -> bool:
        """Read the markup before a value, or the end of the call."""
        buffer = self._buffer
        buffer.take_space()
        match = buffer.match(self._parameter)
        if match is not None and match.end() - buffer.position <= MAX_HEAD:
            if match.end() == len(buffer.text) and not self._final:
                return False  # white space that belongs to the head may follow
            key = match["key"]
            groups = match.groupdict()
            marked = groups.get("raw") or {None: None, "string": "true"}.get(groups.get("type"), "false")
            self._broken.append(buffer.take(match.end()))
            if key in self._values:
                return self._give_up(f"the argument {key!r} is there twice", events)
            self._value = _ValueReader(
                key, None if marked is None else marked == "true", self._xml.kinds(self._name, key), self._xml.block
            )
            self._state = self._read_value
            return True
        if buffer.startswith(self._xml.call_ends):
            return self._close_arguments(events)
        size = len(buffer.text) - buffer.position
        if size and (self._final or not buffer.startswith("<") or size > MAX_HEAD):
            return self._give_up("expected an argument or the end of the call", events)
        return self._unfinished()

    def _read_value(self, events: list[Event]) -> bool:
        value = self._value
        text, mark = self._buffer.take_before(self._end_marks, final=False)
        value.push(text)
        if not mark:
            return self._unfinished()
        self._buffer.skip(len(mark))
        if value.goes_on:
            value.push(mark)
            return True
        written = "".join(value.pieces)
        self._broken.append(written + mark)
        decoded = value.read(written.removesuffix(self._xml.padding))
        self._add_argument(value.key, decoded, dump_json(decoded), events)
        self._state = self._read_parameter
        return True


class _ValueReader:
    """The text of one argument, up to a closing tag that is not part of it.

    Args:
        key: the name of the argument.
        raw: True if the markup announces a raw string, False if it announces JSON, None if it announces nothing.
        kinds: which kinds of values the argument may have.
        block: see `XmlSyntax`.
    """

    def __init__(self, key: str, raw: bool | None, kinds: frozenset[str], block: tuple[str, str] | None) -> None:
        self.key = key
        self.pieces: list[str] = []
        self._marked = raw
        self._kinds = kinds
        self._raw = kinds <= _STRING if raw is None else raw
        # Of a text that may be a string, only what opens an object or an array is taken for JSON here.
        self._decided = self._raw or "string" not in kinds or raw is False
        self._scanner = None if self._raw else JsonScanner()
        self._quoted = False
        self._block = block
        self._in_block = False
        self._has_blocks = False
        self._unread = ""  # the last characters, in which a mark of a block may begin

    def push(self, text: str) -> None:
        """Take more of the text."""
        self.pieces.append(text)
        if self._block is not None and text:
            self._find_blocks(self._block, text)
        if self._scanner is None:
            return
        if not self._decided and (begun := text.lstrip(SPACE)):
            self._decided = True
            if begun[0] not in "[{":
                self._scanner = None
                return
        self._scanner.push(text, 0)
        self._quoted = self._quoted or '"' in text

    def _find_blocks(self, block: tuple[str, str], text: str) -> None:
        """Find out whether the text ends inside a block; only a text that begins with one has blocks."""
        text = self._unread + text
        if not self._has_blocks:
            if len(text) < len(block[0]) and block[0].startswith(text):
                self._unread = text
                return
            if not text.startswith(block[0]):
                self._block = None
                return
            self._has_blocks = True
        at = 0
        while (found := text.find(mark := block[self._in_block], at)) >= 0:
            at = found + len(mark)
            self._in_block = not self._in_block
        self._unread = text[max(at, len(text) - len(mark) + 1) :]

    @property
    def goes_on(self) -> bool:
        """A closing tag at this point is part of a JSON string, or of a block."""
        if self._in_block:
            return True
        scanner = self._scanner
        return self._quoted and scanner is not None and scanner.problem is None and not scanner.done

    def read(self, text: str) -> Any:
        """Return the value of the argument's text."""
        if self._block is not None and self._has_blocks:
            begin, end = map(re.escape, self._block)
            text = re.sub(f"{begin}([\\s\\S]*?){end}", r"\1", text)
            if "string" in self._kinds:
                return text
        if self._raw:
            return text
        return _read(text, self._kinds, strings=self._marked is None and "string" in self._kinds)


def _read(text: str, kinds: frozenset[str], *, strings: bool) -> Any:
    """Return the value of a text that may be JSON; with ``strings``, only if it reads as one of the other kinds."""
    if strings and not any(re.fullmatch(READINGS[kind], text) for kind in kinds - _STRING):
        return text
    value = _decoded(text.strip(SPACE))
    return text if strings and isinstance(value, str) else value


def _decoded(text: str) -> Any:
    if text in _PYTHON:
        return _PYTHON[text]
    try:
        value = read_json(text)
        dump_json(value)
    except (ValueError, RecursionError):
        return text
    return value
