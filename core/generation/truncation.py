"""Truncated values of a JSON text that the token budget closed by force."""

from __future__ import annotations

import json

from ..json_pointer import to_pointer


def cut_pointers(text: str, offset: int) -> tuple[str, ...]:
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
    found: list[str] = []
    innermost: str | None = None
    path: list[str | int] = []  # the key or index of the value that is being read, for each open container
    opened: list[str] = []  # kinds of the open containers
    hidden = 0  # depth inside a value that was reported as a whole
    index, size = 0, len(text)
    expect_key = False
    while index < size:
        char = text[index]
        if char in " \t\n\r":
            index += 1
        elif char in "}]":
            opened.pop()
            path.pop()
            if hidden:
                hidden -= 1
            index += 1
            if index <= offset:
                innermost = None if not opened else to_pointer(path[:-1])
        elif char == ",":
            if opened[-1] == "[":
                path[-1] = int(path[-1]) + 1
            else:
                expect_key = True
            index += 1
        elif char == ":":
            index += 1
        elif expect_key:
            end = _string_end(text, index)
            path[-1] = _decode(text[index:end])
            expect_key = False
            index = end
        else:
            pointer = to_pointer(path)
            forced = index >= offset
            if forced and not hidden:
                found.append(pointer)
            if char in "{[":
                if forced and not hidden:
                    hidden = 1
                elif hidden:
                    hidden += 1
                elif not forced:
                    innermost = pointer
                opened.append(char)
                path.append("" if char == "{" else 0)
                expect_key = char == "{" and text[index + 1 :].lstrip()[:1] != "}"
                index += 1
            else:
                end = _string_end(text, index) if char == '"' else _scalar_end(text, index)
                if not forced:
                    if end > offset or (end == offset and char != '"' and end < size):
                        innermost = pointer
                    else:
                        innermost = to_pointer(path[:-1]) if opened else None
                index = end
    if innermost is not None:
        found.insert(0, innermost)
    return tuple(dict.fromkeys(found))


def _string_end(text: str, index: int) -> int:
    index += 1
    while text[index] != '"':
        index += 2 if text[index] == "\\" else 1
    return index + 1


def _scalar_end(text: str, index: int) -> int:
    while index < len(text) and text[index] not in ",]} \t\n\r":
        index += 1
    return index


def _decode(text: str) -> str:
    return str(json.loads(text))
