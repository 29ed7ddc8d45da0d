"""Truncated values of a JSON text that the token budget closed by force."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass

from ..json_pointer import to_pointer

#: Tokens of a valid JSON text, commas and colons aside.
_TOKEN = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"|[{}\[\]]|[^\s"{}\[\],:]+')


@dataclass
class _Value:
    """One value of a JSON text: the place where it is written, and the steps that lead to it."""

    parent: _Value | None
    step: str | int
    start: int
    end: int
    size: int = 0  # members or items so far

    def pointer(self) -> str:
        steps: list[str | int] = []
        value = self
        while value.parent is not None:
            steps.append(value.step)
            value = value.parent
        return to_pointer(reversed(steps))


def truncated_pointers(text: str, offset: int) -> tuple[str, ...]:
    """Return the JSON pointers (RFC 6901) of the values that were closed, or written, by force.

    Args:
        text: a valid JSON text.
        offset: from this character on, the text was forced.

    Returns:
        The innermost value that was open at ``offset``, then every value that begins after it (not its parts). Nothing
        if the text is not JSON.
    """
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return ()
    if offset <= 0:
        return ("",)
    innermost: list[_Value] = []
    forced: list[_Value] = []
    for value in _values(text):
        is_scalar = text[value.start] not in '"{['
        if value.start >= offset:
            if value.parent is None or value.parent.start < offset:
                forced.append(value)
        elif value.end > offset or (is_scalar and value.end == offset < len(text)):  # a number might have gone on
            innermost = [value]
    return tuple(dict.fromkeys(value.pointer() for value in innermost + forced))


def _values(text: str) -> list[_Value]:
    """Return the values in a JSON text, in the order in which they begin."""
    values: list[_Value] = []
    parent: _Value | None = None
    key: str | None = None
    for match in _TOKEN.finditer(text):
        token = match.group()
        if token in "}]":
            assert parent is not None
            parent.end = match.end()
            parent = parent.parent
            continue
        in_object = parent is not None and text[parent.start] == "{"
        if in_object and key is None:
            key = json.loads(token)
            continue
        step = key if key is not None else parent.size if parent is not None else ""
        value = _Value(parent, step, match.start(), match.end())
        values.append(value)
        key = None
        if parent is not None:
            parent.size += 1
        if token in "{[":
            parent = value
    return values
