"""The calls of a text, with the places of their names and values."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from ..json import to_pointer
from ..language.reading_marks import BARE, CLOSED, DONE, ENTERED, NAMED, OPENED, RAW, TOOL, VALUE, ReadingMark

#: What may stand between two values: white space and a comma.
_BETWEEN = b" \t\r\n,"

#: Words of Python where values are JSON.
_WORDS = {b"True": True, b"False": False, b"None": None}


@dataclass(eq=False)
class ReadValue:
    """A value in a text, or the arguments of a call.

    Attributes:
        parent: the object or array that has it.
        step: its name or index in the parent.
        start: index of its first byte.
        end: index after its last byte; -1: it is not whole.
        form: how it is written (see ``core/language/reading_marks.py``).
        syntax: the `ValueSyntax` in which it is written; None: JSON.
        names: the names of its members, as ranges.
        parts: its members or items; None: it is no object and no array, or the arguments of a call without members.
        is_object: it has members.
    """

    parent: ReadValue | None
    step: str | int
    start: int
    form: int = BARE
    syntax: Any = None
    end: int = -1
    names: list[tuple[int, int]] = field(default_factory=list)
    parts: list[ReadValue] | None = None
    is_object: bool = False

    @property
    def pointer(self) -> str:
        """Its JSON pointer."""
        steps: list[str | int] = []
        value = self
        while value.parent is not None:
            steps.append(value.step)
            value = value.parent
        return to_pointer(reversed(steps))

    def data(self, text: bytes) -> Any:
        """Return the value, given the text; members and items that are not whole are left out.

        Raises:
            ValueError: it is no object and no array, and is not whole.
        """
        if self.parts is not None:
            whole = [part for part in self.parts if part.end >= 0]
            if self.is_object:
                return {part.step: part.data(text) for part in whole}
            return [part.data(text) for part in whole]
        if self.parent is None:  # arguments without any value yet
            return {}
        written = text[self.start : self.end] if self.end >= 0 else text[self.start :]
        if self.form == RAW:
            return written.decode("utf-8", "surrogatepass")
        if self.syntax is not None:
            return self.syntax.scalar(written)
        return _WORDS[written] if written in _WORDS else json.loads(written)


@dataclass(eq=False)
class ReadCall:
    """A call, or a JSON answer.

    Attributes:
        tool: its tool; None: an answer.
        name: the range of the tool's name.
        values: its arguments, with all values in them, in the order of their beginnings.
        is_whole: its arguments are complete.
        open: its objects and arrays that are not complete, outermost first.
    """

    tool: str | None
    name: tuple[int, int]
    values: list[ReadValue] = field(default_factory=list)
    is_whole: bool = False
    open: list[ReadValue] = field(default_factory=list)

    def objects(self, text: bytes) -> list[dict[str, Any]]:
        """Return its open objects, given the text, innermost first, each with its complete members."""
        return [value.data(text) for value in reversed(self.open) if value.is_object]


def calls_of(passed: Iterable[tuple[int, ReadingMark]], text: bytes) -> list[ReadCall]:
    """Return the calls of a text, given the marks that it passes."""
    builder = _Builder(text)
    for at, mark in passed:
        builder.take(at, mark)
    builder.end_scalar(len(text), is_whole=text.rstrip().endswith(b","))
    return builder.calls


class _Builder:
    """Makes calls of marks."""

    def __init__(self, text: bytes) -> None:
        self.calls: list[ReadCall] = []
        self._text = text
        self._open: list[ReadValue] = []  # of the last call
        self._scalar: ReadValue | None = None  # that has begun, and whose end is where the next mark is
        self._name: str | None = None  # of the member whose value comes next
        self._opened = 0  # index of the last mark OPENED

    def take(self, at: int, mark: ReadingMark) -> None:
        """Take the next mark."""
        kind = mark.kind
        if kind == VALUE:
            self.end_scalar(at)
            self._begin(at, mark)
        elif kind == ENTERED:
            if self._scalar is not None:
                self._open.append(self._scalar)
                self._scalar = None
            self._open[-1].parts = []
            self._open[-1].is_object = mark.name == "{"
        elif kind == OPENED:
            self.end_scalar(at)
            self._opened = at
        elif kind == NAMED:
            self._take_name(at, mark)
        elif kind == TOOL:
            self.end_scalar(at)
            self._add_call(mark.name, at - mark.size, at - mark.ending)
        else:  # CLOSED, ENDED, DONE: the value ends before the bracket or the markup
            self._end(at - (1 if kind == CLOSED else mark.size), kind)

    def _add_call(self, tool: str | None, begin: int, end: int) -> None:
        self._open = []
        self.calls.append(ReadCall(tool, (begin, end), open=self._open))

    def _begin(self, at: int, mark: ReadingMark) -> None:
        """Add the value that begins here, below the innermost open one; without one, it is the arguments of a call, or
        a JSON answer."""
        if self._open:
            parent = self._open[-1]
            if parent.parts is None:
                parent.parts = []  # the arguments of a call
            step = len(parent.parts) if self._name is None else self._name
            syntax = parent.syntax if mark.syntax is None else mark.syntax
            value = ReadValue(parent, step, at, mark.form, syntax)
            parent.parts.append(value)
        else:
            if not self.calls or self.calls[-1].values:
                self._add_call(None, at, at)
            value = ReadValue(None, "", at, mark.form, mark.syntax, is_object=True)
        self.calls[-1].values.append(value)
        self._name = None
        if mark.form == BARE:
            self._scalar = value
        else:
            self._open.append(value)

    def _take_name(self, at: int, mark: ReadingMark) -> None:
        """Take the name of the next member: one that the schema declares (the mark has its size), or the text from the
        mark OPENED on."""
        begin, end = (at - mark.size if mark.size else self._opened), at - mark.ending
        self.end_scalar(begin)
        parent = self._open[-1]
        end = begin + len(self._text[begin:end].rstrip())  # without white space after the name
        parent.names.append((begin, end))
        self._name = mark.name if mark.size else _string(self._text[begin:end])

    def end_scalar(self, at: int, *, is_whole: bool = True) -> None:
        """End the value that the text before an index ends with, if it is no object and no array."""
        if self._scalar is not None and is_whole:
            start = self._scalar.start
            self._scalar.end = start + len(self._text[start:at].rstrip(_BETWEEN))
            self._scalar = None

    def _end(self, at: int, kind: int) -> None:
        """End the innermost open value (CLOSED: its bracket is at the index; ENDED: its markup); DONE: all of them."""
        self.end_scalar(at)
        if kind == DONE:
            for value in self._open:
                value.end = at
            self._open.clear()
            self.calls[-1].is_whole = True
            return
        # A bare value ends with its bracket, another one with its markup, and the arguments (the outermost value) at
        # DONE. Other marks are of values inside of it, or of the arguments around it.
        value = self._open[-1]
        ends = value.form == BARE if kind == CLOSED else value.form != BARE and len(self._open) > 1
        if ends:
            value.end = at + 1 if kind == CLOSED else at
            self._open.pop()
            if not self._open:
                self.calls[-1].is_whole = True


def _string(text: bytes) -> str:
    """Return a name as it is written: a string of JSON or Python, or the name itself."""
    spelled = text.decode("utf-8", "replace")
    if text[:1] not in (b'"', b"'"):
        return spelled
    from ast import literal_eval

    try:
        return str(json.loads(spelled))
    except ValueError:
        return str(literal_eval(spelled))
