"""The arguments of a call as far as a text has them."""

from __future__ import annotations

import json
from typing import Any

#: The arguments of a call as far as they are written: the tool, and the open objects, innermost first.
Reading = tuple["str | None", "list[dict[str, Any]]"]

_SPACE = " \t\n\r"
_DECODER = json.JSONDecoder()


def read_open(text: str) -> list[dict[str, Any]]:
    """Return the objects that are open at the end of a text, innermost first, each with its complete members.

    The text is JSON, perhaps with other text before it.
    """
    for begin, char in enumerate(text):
        if char in "{[":
            found = _open_from(text, begin)
            if found is not None:
                return found
    return []


def _open_from(text: str, at: int) -> list[dict[str, Any]] | None:
    """Return the open objects of a JSON text from an index; None if it is not one."""
    objects: list[dict[str, Any]] = []
    brackets = [text[at]]
    names: list[str | None] = [None]
    if text[at] == "{":
        objects.insert(0, {})
    at += 1
    end = len(text)
    while True:
        while at < end and text[at] in _SPACE + ",":
            at += 1
        if at >= end:
            return objects
        in_object = brackets[-1] == "{"
        if text[at] in "}]":
            if text[at] != ("}" if in_object else "]"):
                return None
            done = objects.pop(0) if in_object else None
            brackets.pop()
            names.pop()
            at += 1
            if not brackets:
                return None  # the document is complete
            if names[-1] is not None and brackets[-1] == "{" and in_object:
                objects[0][names[-1]] = done
            continue
        if in_object:
            try:
                name, at = _DECODER.raw_decode(text, at)
            except ValueError:
                return objects if text[at] == '"' and _is_open_string(text, at) else None
            if not isinstance(name, str):
                return None
            while at < end and text[at] in _SPACE:
                at += 1
            if at >= end:
                return objects
            if text[at] != ":":
                return None
            at += 1
            while at < end and text[at] in _SPACE:
                at += 1
            if at >= end:
                return objects
            names[-1] = name
        try:
            value, then = _DECODER.raw_decode(text, at)
        except ValueError:
            if text[at] in "{[":
                brackets.append(text[at])
                names.append(None)
                if text[at] == "{":
                    objects.insert(0, {})
                at += 1
                continue
            return objects if text[at] in '"-+.0123456789tfnTFN' else None
        at = then
        if in_object and names[-1] is not None:
            objects[0][names[-1]] = value


def _is_open_string(text: str, at: int) -> bool:
    """Return True if the string that begins at an index does not end."""
    at += 1
    while at < len(text) and text[at] != '"':
        at += 2 if text[at] == "\\" else 1
    return at >= len(text)
