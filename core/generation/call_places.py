"""Places of calls in an answer: of their tools, the names of their arguments, and their values."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from ..language.node_kinds import CONTROL
from ..language.reading_marks import RAW
from ..reading import ReadCall, Reader, ReadValue

if TYPE_CHECKING:
    from ..conversation.trace import TokenRole
    from ..grammar import Grammar

#: Values that are no strings and no numbers, in JSON and Python.
_LITERALS = frozenset({"true", "false", "null", "True", "False", "None"})

#: Characters with which a number begins.
_NUMBERS = tuple("-0123456789")

#: Roles of text that is a value, not a name or a bracket.
VALUES = ("string", "number", "literal")


class ValuePlaces:
    """Finds the values of a text by their places.

    Args:
        values: the values, in the order of their beginnings.
        text: the text in which they were read, as characters or bytes.
        index: for each index of that text, and for its end, the place in the caller's text: ``"é"`` as two bytes, with
            characters as places, has ``[0, 0, 1]``.
    """

    def __init__(self, values: Sequence[ReadValue], text: str | bytes, index: Sequence[int]) -> None:
        self._values = values
        self._text: Any = text
        self._index = index
        self._starts = [index[value.start] for value in values]

    def found_at(self, place: int) -> tuple[str, TokenRole]:
        """Return the JSON pointer of the innermost value at a place, and the role of the text there: ``name`` (of a
        member of that value), ``string``, ``number``, ``literal`` or ``structure``."""
        number = bisect_right(self._starts, place) - 1
        if number < 0:
            return "", "structure"
        value = self._values[number]
        while self._end(value) <= place and value.parent is not None:
            value = value.parent
        index = self._index
        name = bisect_right(value.names, place, key=lambda name: index[name[0]]) - 1
        if name >= 0 and place < index[value.names[name][1]]:
            return value.pointer, "name"
        return value.pointer, self._role(value)

    def _end(self, value: ReadValue) -> int:
        return self._index[value.end]  # an incomplete value has the end -1, and so ends with the text

    def _role(self, value: ReadValue) -> TokenRole:
        """Return the role of a value by its first characters; an incomplete literal (``tr``) is one too."""
        if value.form == RAW:
            return "string"
        if value.parts is not None or value.is_object:  # arguments of a call have no parts before their first member
            return "structure"
        is_whole = value.end >= 0
        written = self._text[value.start : value.end if is_whole else None]
        text = (written if isinstance(written, str) else written.decode("utf-8", "replace")).strip()
        if text.startswith(_NUMBERS):
            return "number"
        is_literal = text in _LITERALS if is_whole else text and any(word.startswith(text) for word in _LITERALS)
        return "literal" if is_literal else "string"


class CallPlaces(ValuePlaces):
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
        super().__init__(call.values, text, index)
        self.tool = call.tool or ""
        self.name = index[call.name[0]], index[call.name[1]]
        self.arguments = (self._starts[0], self._end(call.values[0])) if call.values else (0, 0)

    def at(self, place: int) -> tuple[str, TokenRole] | None:
        """Do what `found_at` does; return None outside of the arguments."""
        return self.found_at(place) if self.arguments[0] <= place < self.arguments[1] else None


class AnswerReading:
    """Collects the text of an answer, and reads it when it is complete.

    Args:
        make_grammar: makes the reading grammar of the answer.
    """

    def __init__(self, make_grammar: Callable[[], Grammar]) -> None:
        self._make_grammar = make_grammar
        self._pieces: list[tuple[str, bool]] = []  # texts, and names of control tokens (True)
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
        import numpy as np

        reader = Reader(self._make_grammar())
        for piece, is_control in self._pieces:
            if is_control:
                reader.feed_control(piece)
            else:
                reader.feed(piece.encode("utf-8", "surrogatepass"))
        reader.end()
        text = bytes(reader.text)
        data = np.frombuffer(text, dtype=np.uint8)
        # Bytes 10xxxxxx continue a character in UTF-8; control tokens are no part of the raw text.
        begins_character = ((data & 0xC0) != 0x80) & (data != CONTROL[0])
        index = [self._start, *(self._start + np.cumsum(begins_character)).tolist()]
        return [CallPlaces(call, text, index) for call in reader.calls(text) if call.tool is not None]
