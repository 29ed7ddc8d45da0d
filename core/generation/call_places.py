"""Places of calls in an answer: of their tools, the names of their arguments, and their values."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from ..language.node_kinds import CONTROL
from ..language.reading_marks import RAW
from ..reading import ReadCall, Reader, ReadValue

if TYPE_CHECKING:
    from ..conversation.trace import TokenRole
    from ..grammar import Grammar

#: Values that are no strings and no numbers, in JSON and Python.
_LITERALS = frozenset({b"true", b"false", b"null", b"True", b"False", b"None"})

#: Roles of text that is a value, not a name or a bracket.
VALUES = ("string", "number", "literal")


class CallPlaces:
    """The places of one call, as indices in the raw text of an answer.

    Args:
        call: the call, as it was read.
        text: the text in which it was read.
        index: the index in the raw text of each byte of that text, and of its end.

    Attributes:
        tool: its tool.
        name: the range of the tool's name.
        arguments: the range of its arguments.
    """

    def __init__(self, call: ReadCall, text: bytes, index: Sequence[int]) -> None:
        self.tool = call.tool or ""
        self.name = index[call.name[0]], index[call.name[1]]
        self._values = call.values
        self._text = text
        self._index = index
        self._starts = [index[value.start] for value in call.values]
        self.arguments = (self._starts[0], self._end(call.values[0])) if call.values else (0, 0)

    def at(self, place: int) -> tuple[str, TokenRole] | None:
        """Return the JSON pointer of the innermost value at an index of the raw text, and the role of the text there:
        ``name`` (of a member of that value), ``string``, ``number``, ``literal`` or ``structure``. None: the index is
        not in the arguments."""
        if not self.arguments[0] <= place < self.arguments[1]:
            return None
        value = self._values[bisect_right(self._starts, place) - 1]
        while self._end(value) <= place and value.parent is not None:
            value = value.parent
        if any(self._index[start] <= place < self._index[end] for start, end in value.names):
            return value.pointer, "name"
        return value.pointer, self._role(value)

    def _end(self, value: ReadValue) -> int:
        return self._index[value.end]  # -1: that of the text

    def _role(self, value: ReadValue) -> TokenRole:
        if value.form == RAW or value.parts is not None or value.parent is None:
            return "string" if value.form == RAW else "structure"
        written = self._text[value.start : value.end] if value.end >= 0 else self._text[value.start :]
        if written[:1] in b"-0123456789" and written:
            return "number"
        return "literal" if written.strip() in _LITERALS else "string"


class AnswerReading:
    """Collects the text of an answer, and reads it when it is complete.

    Args:
        make_grammar: makes the reading grammar of the answer.
    """

    def __init__(self, make_grammar: Callable[[], Grammar]) -> None:
        self._make_grammar = make_grammar
        self._pieces: list[tuple[str, bool]] = []
        self._start = 0

    def feed(self, text: str, start: int) -> None:
        """Take the next text, and its index in the raw text."""
        if not self._pieces:
            self._start = start
        self._pieces.append((text, False))

    def feed_control(self, name: str) -> None:
        """Take a control token."""
        self._pieces.append((name, True))

    def calls(self) -> list[CallPlaces]:
        """Return the places of the calls, in order."""
        reader = Reader(self._make_grammar())
        for piece, is_control in self._pieces:
            if is_control:
                reader.feed_control(piece)
            else:
                reader.feed(piece.encode("utf-8", "surrogatepass"))
        reader.end()
        text = bytes(reader.text)
        data = np.frombuffer(text, dtype=np.uint8)
        begins = ((data & 0xC0) != 0x80) & (data != CONTROL[0])
        index = [self._start, *(self._start + np.cumsum(begins)).tolist()]
        return [CallPlaces(call, text, index) for call in reader.calls(text) if call.tool is not None]
