"""Values of a JSON text: the value, and the member name, that each character belongs to; and truncated values.

The text is valid JSON that may break off anywhere: a grammar wrote it. Other modules scan other languages, so they
share no tokens with this one: `core.json.scanner` validates text that arrives in pieces and finds the end of its
first value, `repair.extract` finds brackets in prose, and `repair.readings` reads text that is nearly JSON.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

from ..reading import ReadValue
from .call_places import ValuePlaces

if TYPE_CHECKING:
    from ..conversation.trace import TokenRole

#: Tokens of JSON except commas and colons. The last string may be incomplete.
_TOKEN = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*(?:"|\\?$)|[{}\[\]]|[^\s"{}\[\],:]+', re.DOTALL)

#: Tokens that are complete at the end of a text.
_ENDED = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"|true|false|null', re.DOTALL)

#: Characters at the beginning of a token that precede the value to which it belongs.
_BEFORE = re.compile(r"[\s,:]*")


def values_of(text: str) -> list[ReadValue]:
    """Return the values in a JSON text, in the order of their beginnings; the text may be truncated anywhere. A value
    that is not complete has no end; a number at the end of the text is one. ``{"a": [1`` -> the object, the array, 1.
    """
    values: list[ReadValue] = []
    parent: ReadValue | None = None
    key: str | None = None
    for match in _TOKEN.finditer(text):
        token = match.group()
        if token in "}]":
            if parent is None:
                break
            parent.end = match.end()
            parent = parent.parent
            continue
        if parent is not None and parent.is_object and key is None:
            parent.names.append(match.span())
            key = _string(token)
            continue
        siblings = [] if parent is None or parent.parts is None else parent.parts
        value = ReadValue(parent, key if key is not None else len(siblings), match.start())
        values.append(value)
        siblings.append(value)
        key = None
        if token in "{[":
            value.parts, value.is_object = [], token == "{"
            parent = value
        elif match.end() < len(text) or _ENDED.fullmatch(token):
            value.end = match.end()
    return values


def _string(token: str) -> str:
    """Return the string of a JSON token; an incomplete one unchanged."""
    try:
        return str(json.loads(token))
    except ValueError:
        return token.strip('"')


class JsonPlaces(ValuePlaces):
    """Finds the value and the role of characters of a JSON text, which may be truncated anywhere."""

    def __init__(self, text: str) -> None:
        super().__init__(values_of(text), text, range(len(text) + 1))

    def at(self, place: int) -> tuple[str, TokenRole]:
        """Return the JSON pointer and the role of the text at a character; white space, commas and colons from there
        are skipped."""
        ahead = _BEFORE.match(self._text, place)
        return self.found_at(min(ahead.end() if ahead else place, max(len(self._text) - 1, 0)))


def truncated_pointers(text: str, offset: int) -> tuple[str, ...]:
    """Return the JSON pointers (RFC 6901) of the truncated values.

    Args:
        text: a valid JSON text.
        offset: index of the first forced character.

    Returns:
        The innermost value that was incomplete at ``offset``, then every value that begins there or later (not its
        parts). Empty if the text is not JSON.
    """
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return ()
    if offset <= 0:
        return ("",)
    innermost, later = unfinished_pointers(text, offset)
    return tuple(dict.fromkeys(([] if innermost is None else [innermost]) + list(later)))


def unfinished_pointers(text: str, offset: int) -> tuple[str | None, tuple[str, ...]]:
    """Return the JSON pointers of the values that are incomplete at a character of a JSON text.

    Returns:
        The innermost value that is incomplete there, if any; and each value that begins there or later (not its parts).
    """
    innermost: str | None = None
    later: list[str] = []
    for value in values_of(text):
        is_number = text[value.start] in "-0123456789"
        end = value.end if value.end >= 0 else len(text)
        if value.start >= offset:
            if value.parent is None or value.parent.start < offset:
                later.append(value.pointer)
        elif end > offset or (is_number and end == offset < len(text)):  # the number could continue
            innermost = value.pointer
    return innermost, tuple(later)


def complete_pointers(text: str, since: int = 0) -> list[str]:
    """Return the JSON pointers of the values that are complete in a JSON text that may be truncated anywhere, in the
    order of their ends.

    Args:
        text: the text.
        since: values that end before this character are left out.
    """
    complete = [value for value in values_of(text) if value.end >= since]  # the end of an incomplete value is -1
    return [value.pointer for value in sorted(complete, key=lambda value: value.end)]
