"""Values of a JSON text: the value, and the member name, that each character belongs to.

The text is valid JSON that may break off anywhere: a grammar wrote it. Other modules scan other languages, so they
share no tokens with this one: `core.json.scanner` validates text that arrives in pieces and finds the end of its
first value, `repair.extract` finds brackets in prose, and `repair.readings` reads text that is nearly JSON.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ..json import to_pointer

if TYPE_CHECKING:
    from ..conversation.trace import TokenRole

#: Tokens of JSON except commas and colons. The last string may be incomplete.
_TOKEN = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*(?:"|\\?$)|[{}\[\]]|[^\s"{}\[\],:]+', re.DOTALL)

#: Tokens that are complete at the end of a text.
_ENDED = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"|true|false|null', re.DOTALL)

#: Characters at the beginning of a token that precede the value to which it belongs.
_BEFORE = re.compile(r"[\s,:]*")


@dataclass
class Value:
    """One value of a JSON text: its range in the text, and its path.

    Attributes:
        parent: the object or array that has it.
        step: its name or index in the parent.
        start: the index of its first character.
        end: the index after its last character; the end of the text if it is incomplete.
        size: number of its members or items.
        names: first characters of the names of its members.
        is_complete: its end is certain; that of a number at the end of the text is not.
    """

    parent: Value | None
    step: str | int
    start: int
    end: int
    size: int = 0
    names: list[int] = field(default_factory=list)
    is_complete: bool = False

    def pointer(self) -> str:
        """Return its JSON pointer."""
        steps: list[str | int] = []
        value = self
        while value.parent is not None:
            steps.append(value.step)
            value = value.parent
        return to_pointer(reversed(steps))


def values_of(text: str) -> list[Value]:
    """Return the values in a JSON text, in the order of their beginnings; the text may be truncated anywhere."""
    values: list[Value] = []
    parent: Value | None = None
    key: str | None = None
    for match in _TOKEN.finditer(text):
        token = match.group()
        if token in "}]":
            if parent is None:
                break
            parent.end = match.end()
            parent.is_complete = True
            parent = parent.parent
            continue
        if parent is not None and text[parent.start] == "{" and key is None:
            parent.names.append(match.start())
            key = _string(token)
            continue
        step = key if key is not None else parent.size if parent is not None else ""
        value = Value(parent, step, match.start(), match.end())
        values.append(value)
        key = None
        if parent is not None:
            parent.size += 1
        if token in "{[":
            value.end = len(text)
            parent = value
        else:
            value.is_complete = value.end < len(text) or _ENDED.fullmatch(token) is not None
    return values


def _string(token: str) -> str:
    """Return the string of a JSON token; an incomplete one unchanged."""
    try:
        return str(json.loads(token))
    except ValueError:
        return token.strip('"')


class Places:
    """Finds the value and the role of characters of a JSON text.

    Args:
        text: the text, which may be truncated anywhere.

    Attributes:
        values: its values, in the order of their beginnings.
    """

    def __init__(self, text: str) -> None:
        self._text = text
        self.values = values_of(text)
        self._starts = [value.start for value in self.values]
        self._pointers: dict[int, str] = {}

    def at(self, offset: int) -> tuple[str, TokenRole]:
        """Return the JSON pointer and the role of the text at a character.

        Args:
            offset: index of the character; white space, commas and colons from there are skipped.

        Returns:
            The pointer of the innermost value, and one of ``name`` (of a member of that value), ``string``, ``number``,
            ``literal``, ``structure``.
        """
        ahead = _BEFORE.match(self._text, offset)
        place = min(ahead.end() if ahead else offset, max(len(self._text) - 1, 0))
        number = bisect_right(self._starts, place) - 1
        if number < 0:
            return "", "structure"
        value: Value | None = self.values[number]
        while value is not None and value.end <= place:
            value = value.parent
        value = value or self.values[0]
        first = self._text[value.start]
        if first in "{[":
            before = bisect_right(value.names, place) - 1
            is_name = before >= 0 and self._covers_name(value.names[before], place)
            return self._pointer(value), "name" if is_name else "structure"
        role: TokenRole = "string" if first == '"' else "number" if first in "-0123456789" else "literal"
        return self._pointer(value), role

    def _covers_name(self, start: int, place: int) -> bool:
        match = _TOKEN.match(self._text, start)
        return match is not None and place < match.end()

    def _pointer(self, value: Value) -> str:
        pointer = self._pointers.get(value.start)
        if pointer is None:
            pointer = self._pointers[value.start] = value.pointer()
        return pointer
