"""Streaming parser of calls with a tag for each argument.

A *raw* string is written without quotes and escapes, up to the tag that ends it.
"""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from toolgrammar.core.conversation import Event, ToolCall
from toolgrammar.core.json import SPACE, SPACES, JsonScanner, dump_json, read_json
from toolgrammar.core.schema import READINGS

from ...tool import Tool
from ..leniencies import Leniency
from ..literals import PYTHON, read_literal
from ..stream import marker_search
from ..template.arguments import declared_names, kinds_of_arguments
from ..template.call_reader import ObjectReader
from ..template.parser import Syntax, TemplateParser

_STRING = frozenset({"string"})
_OPENED = {"{": "object", "[": "array"}
_PYTHON = {"True": True, "False": False, "None": None}
_ZEROS = re.compile(r"[+-]?0+[0-9]{1,4000}|\+[0-9]{1,4000}")  # integers as `int` reads them, but not JSON

#: Maximum length of the markup before a value, in characters; anything longer is not markup.
MAX_HEAD = 1 << 16


class _Doubt(NamedTuple):
    """A string that contains markup of another argument: perhaps its end tag was forgotten before that."""

    key: str  # the name of its argument
    written: str  # its text
    place: int  # where that begins


class XmlCallsParser(TemplateParser):
    """Text, reasoning and calls from a stream; arguments arrive one by one, as JSON.

    In addition to the history form it accepts other white space, calls that are JSON objects in the same markup,
    Python's literals and XML's entities instead of JSON, and any other text instead of JSON (as a string, for the
    validation). A string without its end tag continues to the next end tag; if the call is valid only with the string
    ended before the argument inside it, it ends there.

    Args:
        wire: the format: an `XmlCalls`, whose module imports this one.
        tools: the tools whose calls may appear: their schemas tell strings from other values.
        syntax: markup of calls, text and reasoning.
        finish: makes the final call of a call that was read.
        new_id: makes the id of a call that has none.
    """

    def __init__(
        self,
        wire: Any,
        tools: Sequence[Tool],
        syntax: Syntax,
        finish: Callable[[ToolCall], ToolCall],
        new_id: Callable[[], str],
    ) -> None:
        super().__init__(syntax, finish, new_id)
        self._wire = wire
        self._kinds = kinds_of_arguments(tools, wire.arguments)
        self._declared = {tool.name: frozenset(declared_names(tool)) for tool in tools}
        self._end: str = wire.parameter_end
        self._call_ends: tuple[str, ...] = wire.call_ends
        self._follows: tuple[str, ...] = wire.follows
        after: str = wire.parameter.partition("$value")[2]
        self._padding = after[: len(after) - len(after.lstrip())]  # white space of the format around a value
        self._parameter = re.compile(wire.parameter_head)
        self._end_marks = marker_search((self._end,))
        # The markup of arguments is part of a broken call, and does not end it.
        stops = (mark for mark in (*syntax.openers, *syntax.skips) if len(mark) > 2 and mark not in self._end)
        self._stop_marks = marker_search(tuple(mark for mark in stops if re.escape(mark) not in wire.parameter_head))
        self._value = ValueReader("", None, frozenset())
        self._value_place = 0  # where its text begins
        self._doubts: list[_Doubt] = []
        self._late: list[Event] = []  # the events since the first doubt, which are sent at the end of the call

    def _key_of(self, match: re.Match[str]) -> str:
        """Return the name of the argument that a match of the markup before a value has."""
        return html.unescape(match["key"]) if self._wire.entities else match["key"]

    def _between(self, events: list[Event]) -> bool:
        self._space.append(self._buffer.take_space())
        if self._passed and self._passed[-1] in self._syntax.triggers and self._buffer.startswith("{"):
            return self._begin_object()
        return super()._between(events)

    def _read_head(self, events: list[Event]) -> bool:
        self._call_text.append(self._buffer.take_space())
        return self._begin_object() if self._buffer.startswith("{") else super()._read_head(events)

    def _begin_object(self) -> bool:
        """Begin a call that is a JSON object between the markup of calls, as the models of other families write it."""
        self._space.clear()
        self._passed, self._is_among_calls, self._is_after_call = [], True, True
        self._note_leniency("other_markup")  # no edit of a few characters makes the format's tags of it
        self._reader = ObjectReader(self._index, self._new_id(), "name", self._syntax.argument_keys, frozenset())
        self._state = self._read_object
        return True

    def _read_arguments(self, events: list[Event]) -> bool:
        """Begin the arguments, behind the head of a call."""
        self._doubts, self._late = [], []
        if self._call_text[-1].endswith("/>"):  # the head is a tag that ends itself: there are none
            self._open_arguments(events)
            return self._close_arguments(events)
        if self._buffer.is_empty and not self._final:
            return False
        self._call_text.append(self._buffer.take_space())
        if self._buffer.is_empty and not self._final:
            return False
        if self._buffer.startswith("{"):  # the object of other families
            self._note_leniency("other_markup")
            self._arguments = []
            self._state = self._read_object_arguments
            return True
        self._open_arguments(events)
        self._state = self._read_parameter
        return True

    def _read_object_arguments(self, events: list[Event]) -> bool:
        return super()._read_arguments(events)

    def _read_parameter(self, events: list[Event]) -> bool:
        """Read the markup before a value, or the end of the call."""
        buffer = self._buffer
        buffer.take_space()
        match = buffer.match(self._parameter)
        if match is not None and match.end() - buffer.position <= MAX_HEAD:
            if match.end() == len(buffer.text) and not self._final:
                return False  # white space that belongs to the head may follow
            key = self._key_of(match)
            groups = match.groupdict()
            # "true" or "false", or a type; None: the markup does not say whether the value is raw.
            kind = groups.get("raw") or groups.get("type")
            self._call_text.append(buffer.take(match.end()))
            if key in self._values:
                return self._give_up(f"the argument {key!r} is repeated", events)
            self._value = self._reader_of(key, None if kind is None else kind in ("true", "string"))
            self._value_place = buffer.place
            self._state = self._read_value
            return True
        if buffer.startswith(self._call_ends) or (self._final and buffer.is_empty and self._wire.is_open_ended):
            return self._settle(events)
        size = len(buffer.text) - buffer.position
        if size and not self._is_cut and (self._final or not buffer.startswith("<") or size > MAX_HEAD):
            return self._give_up("expected an argument or the end of the call", events)
        return self._unfinished(events)

    def _read_value(self, events: list[Event]) -> bool:
        """Read a value and its end tag; such a tag in a JSON string or a block is a part of the value."""
        value = self._value
        text, mark = self._buffer.take_before(self._end_marks, final=False)
        value.push(text)
        if not mark:
            return self._end_without_tag(events) if self._final else False
        is_end = not self._follows or not value.may_be_raw or self._is_end(len(mark))
        if is_end is None:  # more text has to decide
            return False
        self._buffer.skip(len(mark))
        if value.goes_on or not is_end:
            value.push(mark)
            return True
        written = "".join(value.pieces)
        self._call_text.append(written + mark)
        self._end_value(value, written.removesuffix(self._padding), events)
        return True

    def _is_end(self, size: int) -> bool | None:
        """Return True if the next characters, an end tag of that size, end a string: other markup of the call follows.
        None: more text has to decide."""
        buffer = self._buffer
        space = SPACES.match(buffer.text, buffer.position + size)
        at = buffer.position + size if space is None else space.end()
        if buffer.text.startswith(self._follows, at):
            return True
        rest = buffer.text[at : at + max(map(len, self._follows))]
        if not rest or any(each.startswith(rest) for each in self._follows):
            return True if self._final else None
        return False

    def _end_value(self, value: ValueReader, written: str, events: list[Event]) -> None:
        """End an argument; if it may hold others, because its end tag was forgotten, the events wait for the end of the
        call.

        Args:
            value: its reader.
            written: its text, without white space of the format.
            events: what is sent is added.
        """
        decoded = value.read(written)
        for name in value.leniencies:
            self._note_leniency(name, written, dump_json(decoded), at=self._value_place)
        self._state = self._read_parameter
        if value.is_raw and any(True for _ in self._inside(value.key, written)):
            self._doubts.append(_Doubt(value.key, written, self._value_place))
        self._add_argument(value.key, decoded, dump_json(decoded), self._late if self._doubts else events)

    def _reader_of(self, key: str, raw: bool | None = None) -> ValueReader:
        """Return a reader of the value of an argument; ``raw`` as `ValueReader` has it."""
        kinds = self._kinds(self._name, key)
        return ValueReader(key, raw, kinds, block=self._wire.block, python_words=self._wire.python_words)

    # -- forgotten end tags ------------------------------------------------------------------------------------

    def _end_without_tag(self, events: list[Event]) -> bool:
        """End the last value, which has no end tag, at the markup that ends its call; without that, it is malformed."""
        text = "".join(self._value.pieces)
        ends = [at for mark in self._call_ends if (at := text.find(mark)) >= 0]
        if not ends:
            return self._unfinished(events, self._value.pieces)
        end = min(ends)
        self._buffer.unread(text)
        self._buffer.skip(end)
        value = self._reader_of(self._value.key)
        written = text[:end].rstrip(SPACE)
        self._note_leniency("missing_end_tag", at=self._value_place + len(written), new=self._padding + self._end)
        value.push(written)
        self._end_value(value, written, events)
        return True

    def _inside(self, key: str, written: str) -> Iterator[re.Match[str]]:
        """Yield the markup before other arguments in a string, as far as the tool has arguments of such names."""
        known = self._declared.get(self._name, frozenset()) - {key}
        for match in self._parameter.finditer(written) if known else ():
            if (name := self._key_of(match)) in known and name not in self._values:
                yield match

    def _settle(self, events: list[Event]) -> bool:
        """End the call; strings that hold arguments are divided if only that makes it valid."""
        doubts, late = self._doubts, self._late
        self._doubts, self._late = [], []
        if doubts and not self._is_valid(self._values) and self._is_valid(divided := self._divided(doubts)):
            for doubt in doubts:
                end = next((match.start() for match in self._inside(doubt.key, doubt.written)), len(doubt.written))
                end = len(doubt.written[:end].rstrip(SPACE))
                self._note_leniency("missing_end_tag", at=doubt.place + end, new=self._padding + self._end)
            # The pieces of the arguments are "{" and one for each; those from the first doubt on are not sent yet.
            sent = len(self._arguments) - len(late)
            del self._arguments[sent:]
            self._values = dict(list(self._values.items())[: sent - 1])
            late = []
            for key, value in divided.items():
                if key not in self._values:
                    self._add_argument(key, value, dump_json(value), late)
        events += late
        return self._close_arguments(events)

    def _is_valid(self, arguments: dict[str, Any]) -> bool:
        return self._finish(ToolCall(self._id, self._name, dict(arguments))).error is None

    def _divided(self, doubts: list[_Doubt]) -> dict[str, Any]:
        """Return the arguments of the call if each doubtful string ends before the arguments in it:
        ``"a <parameter=b> c" -> "a"``, and the argument ``b`` is ``"c"``.
        """
        texts = {doubt.key: doubt.written for doubt in doubts}
        divided: dict[str, Any] = {}
        for key, value in self._values.items():
            if key not in texts:
                divided.setdefault(key, value)
                continue
            name, start = key, 0  # of the argument that ends where the next one in the string begins
            for match in (*self._inside(key, texts[key]), None):
                end = len(texts[key]) if match is None else match.start()
                written = texts[key][start:end]
                if match is not None:
                    written = written.rstrip(SPACE)
                reader = self._reader_of(name)
                reader.push(written)
                divided.setdefault(name, reader.read(written))
                if match is not None:
                    name, start = self._key_of(match), match.end()
        return divided


class ValueReader:
    """The text of one argument, up to a closing tag that is not part of it.

    Args:
        key: the name of the argument.
        raw: True if the markup announces a raw string, False if it announces JSON, None if it announces nothing.
        kinds: which kinds of values the argument may have.
        block: see `XmlCalls`.
        python_words: see `XmlCalls`.

    Attributes:
        leniencies: names of the deviations from the format.
    """

    def __init__(
        self,
        key: str,
        raw: bool | None,
        kinds: frozenset[str],
        *,
        block: tuple[str, str] | None = None,
        python_words: bool = False,
    ) -> None:
        self.key = key
        self.pieces: list[str] = []
        self._announced = raw
        self._kinds = kinds
        self._raw = kinds <= _STRING if raw is None else raw  # it is surely a raw string
        # Whether the scanner reads the text is known; of a text that may be a string, the first character decides.
        self._decided = self._raw or "string" not in kinds or raw is False
        self._scanner = None if self._raw else JsonScanner()  # None: the text is no JSON
        self._quoted = False  # it has a quote, so a closing tag may be inside of a JSON string
        self.leniencies: list[Leniency] = []
        self._python_words = python_words
        self._block = block  # None: the text has no blocks
        self._in_block = False  # the text ends inside a block
        self._has_blocks = False  # it begins with a block
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
            if _OPENED.get(begun[0]) not in self._kinds:  # only "{" and "[" make it JSON rather than a string
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
        # Inside a block its end mark (1) is looked for, outside the mark that begins one (0).
        while (found := text.find(mark := block[self._in_block], at)) >= 0:
            at = found + len(mark)
            self._in_block = not self._in_block
        self._unread = text[max(at, len(text) - len(mark) + 1) :]

    @property
    def may_be_raw(self) -> bool:
        """The text is a string without quotes, as far as is known."""
        return self.is_raw or not self._decided

    @property
    def is_raw(self) -> bool:
        """The text is a string without quotes."""
        return self._raw or (self._scanner is None and not self._has_blocks)

    @property
    def goes_on(self) -> bool:
        """A closing tag at this point is part of a JSON string, or of a block."""
        if self._in_block:
            return True
        scanner = self._scanner
        return self._quoted and scanner is not None and scanner.problem is None and not scanner.done

    def read(self, text: str) -> Any:
        """Return the value of the argument's text, without white space of the format: raw, JSON, or something like JSON
        (`_decoded`)."""
        if self._block is not None and self._has_blocks:
            begin, end = map(re.escape, self._block)
            text = re.sub(f"{begin}([\\s\\S]*?){end}", r"\1", text)
            if "string" in self._kinds:
                return text
        if self._raw:
            return text
        # Where a string may stand, too, what reads as one of the other kinds is of that kind.
        may_be_raw = self._announced is None and "string" in self._kinds
        if may_be_raw and not any(re.fullmatch(READINGS[kind], text) for kind in self._kinds - _STRING):
            return text
        value, name = _decoded(text.strip(SPACE))
        if may_be_raw and isinstance(value, str):
            return text
        if name is not None and not (self._python_words and text.strip(SPACE) in _PYTHON):
            self.leniencies.append(name)
        return value


def _decoded(text: str) -> tuple[Any, Leniency | None]:
    """Return the value of a text, and how it was written if not as JSON: ``"True" -> (True, "python_literal")``.

    What cannot be read is a string: ``"a b" -> ("a b", None)``.
    """
    if text in _PYTHON:
        return _PYTHON[text], "python_literal"
    if _ZEROS.fullmatch(text):
        return int(text), "python_literal"
    readings: tuple[tuple[Leniency | None, Callable[[], Any]], ...] = ((None, lambda: read_json(text)),)
    if "&" in text:
        readings += (("xml_entity", lambda: read_json(html.unescape(text))),)
    if text.startswith(("{", "[")) and '\\"' in text:
        readings += (("arguments_as_text", lambda: read_json(str(read_json(f'"{text}"')))),)
    if text.startswith(("{", "[", "(")):
        readings += (("python_literal", lambda: read_literal(text, PYTHON)),)
    for name, read in readings:
        try:
            value = read()
            dump_json(value)
        except (ValueError, RecursionError):
            continue
        return value, name
    return text, None
