"""Streaming parser of calls whose arguments are nested elements."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from toolgrammar.core.conversation import Event, ToolCall
from toolgrammar.core.errors import LimitError
from toolgrammar.core.json import SPACE, dump_json
from toolgrammar.core.schema import Reading

from ..stream import marker_search
from ..template.parser import Syntax, TemplateParser
from ..xml.parser import MAX_HEAD, ValueReader

#: Maximum number of elements that are open at a time.
MAX_DEPTH = 400


class _Element:
    """An open element: it holds items, or members, or text.

    Args:
        name: its name.
        reading: what the schema says of its text: the types, and the members or items; None: nothing is known.
        begin: the place of its text in the whole text.
    """

    __slots__ = ("begin", "items", "members", "name", "reading", "repeated", "text")

    def __init__(self, name: str, reading: Reading | None, begin: int) -> None:
        self.name = name
        self.begin = begin
        self.reading = reading
        self.items: list[Any] | None = None  # None: it is no array
        self.members: dict[str, Any] | None = None  # None: it is no object
        self.repeated: set[str] = set()  # names of members that came several times: their values are a list
        self.text = ValueReader(name, None, self.kinds or frozenset({"string"}))

    @property
    def kinds(self) -> frozenset[str]:
        """The types that its value may have; none if it is not known."""
        return frozenset() if self.reading is None else self.reading.kinds

    @property
    def has_elements(self) -> bool:
        """There are elements in it."""
        return self.items is not None or self.members is not None

    def begin_element(self, name: str, item: str) -> Reading | None:
        """Decide by the first element whether this is an array or an object; return the reading of an element in it.

        In an object, an element of the name of items is a member.

        Raises:
            LimitError: the values that the element may have are too many alternatives.

        Args:
            name: the name of the element that begins.
            item: the name of items.
        """
        if not self.has_elements:
            if name == item and "array" in self.kinds:
                self.items = []
            else:
                self.members = {}
        if self.reading is None:
            return None
        return self.reading.member(name) if self.items is None else self.reading.item(len(self.items))

    def add(self, name: str, value: Any) -> bool:
        """Take the value of an element in it; return True if it is a member that repeats a name."""
        if self.members is None:
            assert self.items is not None
            self.items.append(value)
            return False
        if name not in self.members:
            self.members[name] = value
            return False
        if name not in self.repeated:
            self.repeated.add(name)
            self.members[name] = [self.members[name]]
        self.members[name].append(value)
        return True

    def value(self) -> Any:
        """Return the value: items or members, or what the text reads as; without text, an empty array or object where
        it may be no string."""
        if self.has_elements:
            return self.items if self.items is not None else self.members
        written = "".join(self.text.pieces)
        if not written and "string" not in self.kinds and not self.kinds.isdisjoint({"array", "object"}):
            return [] if "array" in self.kinds else {}
        return self.text.read(written)


class NestedCallsParser(TemplateParser):
    """Text, reasoning and calls from a stream; each argument arrives, as JSON, when it is whole.

    In addition to the history form it accepts white space between elements, JSON for an object, an array or a number,
    repeated elements of one name in an object (a list), and a last element without its end tag.

    Args:
        mark: the markup before each tag.
        tag: a regular expression of a tag, with groups ``end`` (its slash, or nothing) and ``name``.
        item: the name of the elements of items.
        call_end: the markup after the arguments of a call.
        reading: returns the reading of the arguments of a tool by its name; None: unknown.
        syntax: markup of calls, text and reasoning.
        finish: makes the final call of a call that was read.
        new_id: makes the id of a call that has none.
    """

    def __init__(
        self,
        mark: str,
        tag: re.Pattern[str],
        item: str,
        call_end: str,
        reading: Callable[[str], Reading | None],
        syntax: Syntax,
        finish: Callable[[ToolCall], ToolCall],
        new_id: Callable[[], str],
    ) -> None:
        super().__init__(syntax, finish, new_id)
        self._mark = mark
        self._marks = marker_search((mark,))
        self._tag = tag
        self._item = item
        self._call_end = call_end
        self._reading = reading
        self._open: list[_Element] = []
        self._unknown: set[str] = set()  # tools whose elements may have too many values to tell types by the schema

    def _read_arguments(self, events: list[Event]) -> bool:
        self._open = []
        self._open_arguments(events)
        self._state = self._read_elements
        return True

    def _read_elements(self, events: list[Event]) -> bool:
        """Read the text of the innermost open element up to a tag, and the tag."""
        buffer, open_ones = self._buffer, self._open
        if not open_ones:
            buffer.take_space()
            if buffer.startswith(self._call_end):
                return self._close_arguments(events)
        else:
            text, mark = buffer.take_before(self._marks, final=False)
            self._call_text.append(text)
            last = open_ones[-1]
            last.text.push(text)
            if not mark:
                return self._unfinished(events)
            if last.text.goes_on and not last.has_elements:  # the mark is a part of a JSON string
                buffer.skip(len(mark))
                self._call_text.append(mark)
                last.text.push(mark)
                return True
        match = buffer.match(self._tag)
        if match is None:
            return self._wait_for_tag(events)
        if match["end"]:
            if not open_ones or match["name"] != open_ones[-1].name:
                return self._give_up_elements(f"an element ends that is not open: {match['name']!r}", events)
            self._call_text.append(buffer.take(match.end()))
            return self._end_element(events)
        self._call_text.append(buffer.take(match.end()))
        return self._begin_element(match["name"], events)

    def _wait_for_tag(self, events: list[Event]) -> bool:
        """Wait for the rest of a tag, or for the end of the call; give up where the text can become neither."""
        buffer = self._buffer
        size = len(buffer.text) - buffer.position
        is_marked = buffer.startswith(self._mark)
        is_no_tag = is_marked and buffer.text.find(">", buffer.position + len(self._mark)) >= 0  # whole, and no match
        may_go_on = is_marked or buffer.may_begin((self._mark, *(() if self._open else (self._call_end,))))
        # Where the text is cut inside of a call, `_unfinished` says so.
        if size and not self._is_cut and (self._final or is_no_tag or not may_go_on or size > MAX_HEAD):
            return self._give_up_elements("expected an argument or the end of the call", events)
        return self._unfinished(events)

    def _begin_element(self, name: str, events: list[Event]) -> bool:
        """Open an element in the innermost open one, or as an argument of the call; its text is read next."""
        open_ones = self._open
        if len(open_ones) == MAX_DEPTH:
            return self._give_up_elements(f"more than {MAX_DEPTH} elements in one another", events)
        if not open_ones:
            if name in self._values:
                return self._give_up_elements(f"the argument {name!r} is repeated", events)
        else:
            parent = open_ones[-1]
            if "".join(parent.text.pieces).strip(SPACE):
                return self._give_up_elements("there is text beside an element", events)
            if parent.items is not None and name != self._item:
                return self._give_up_elements(f"the element {name!r} stands among the items of an array", events)
            parent.text.pieces.clear()  # white space beside elements
        open_ones.append(_Element(name, self._reading_of(name), self._buffer.place))
        return True

    def _reading_of(self, name: str) -> Reading | None:
        """Return the reading of an element that begins in the innermost open one; None: nothing is known."""
        if self._open and self._name in self._unknown:
            self._open[-1].reading = None
        try:
            if self._open:
                return self._open[-1].begin_element(name, self._item)
            root = None if self._name in self._unknown else self._reading(self._name)
            return None if root is None else root.member(name)
        except LimitError:  # the tool is refused when its grammar is made; its written calls are still read
            self._unknown.add(self._name)
            return None

    def _end_element(self, events: list[Event]) -> bool:
        """End the innermost element: its value is an argument, or a part of the element around it."""
        element = self._open.pop()
        if element.has_elements and "".join(element.text.pieces).strip(SPACE):
            return self._give_up_elements("there is text beside an element", events)
        value = element.value()
        for name in element.text.leniencies:
            self._note_leniency(name, "".join(element.text.pieces), dump_json(value), at=element.begin)
        if not self._open:
            self._add_argument(element.name, value, dump_json(value), events)
        elif self._open[-1].add(element.name, value):
            self._note_leniency("repeated_element", at=element.begin)
        return True

    def _give_up_elements(self, problem: str, events: list[Event]) -> bool:
        self._open = []
        return self._give_up(problem, events)
