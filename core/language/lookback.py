"""What a JSON text being written has said so far: the names of the innermost open object, the items of the innermost
open array.

A text may hold other things before its JSON (free text, a tag), so it is read from its end backwards, which is
unambiguous from any place that is known to be outside of strings: there, the nearest quote closes a string, and the
string begins at the nearest quote before it that no odd number of backslashes escapes (RFC 8259 section 7).
"""

from __future__ import annotations

import json
from functools import lru_cache
from typing import Any

_SPACE = b" \t\n\r"


def _string_start(text: bytes, end: int) -> int:
    """Where the string begins whose closing quote, or whose last byte so far, stands before ``end``; -1 if nowhere."""
    at = end
    while True:
        at = text.rfind(b'"', 0, at)
        if at < 0:
            return -1
        slashes = at
        while slashes > 0 and text[slashes - 1] == 0x5C:
            slashes -= 1
        if (at - slashes) % 2 == 0:
            return at


def _opening(text: bytes, end: int) -> tuple[int, list[tuple[int, int]]]:
    """Where the innermost bracket that is open at ``end`` (outside of strings) stands, or -1; and the names directly in
    it, as ``(start, end)`` with their quotes."""
    names: list[tuple[int, int]] = []
    depth = 0
    at = end - 1
    colon = False  # whether the next significant byte to the right is a colon
    while at >= 0:
        byte = text[at]
        if byte == 0x22:
            start = _string_start(text, at)
            if start < 0:
                return -1, names
            if colon and depth == 0:
                names.append((start, at + 1))
            colon = False
            at = start
        elif byte in (0x7D, 0x5D):
            depth += 1
            colon = False
        elif byte in (0x7B, 0x5B):
            if depth == 0:
                return at, names
            depth -= 1
            colon = False
        elif byte == 0x3A:
            colon = True
        elif byte not in _SPACE:
            colon = False
        at -= 1
    return -1, names


def names_before(text: bytes, end: int) -> list[str]:
    """The names of the members that are complete, or at least named, in the object that is open at ``end``."""
    return list(_names(text[:end]))


@lru_cache(maxsize=256)  # the tokens of one mask that are tried all ask for the same
def _names(text: bytes) -> tuple[str, ...]:
    return tuple(_decoded(text[start:stop]) for start, stop in reversed(_opening(text, len(text))[1]))


@lru_cache(maxsize=4096)  # the names of an object are read again at each of its members
def _decoded(spelled: bytes) -> str:
    name: str = json.loads(spelled)
    return name


@lru_cache(maxsize=4096)
def _spelled(name: str) -> bytes:
    return json.dumps(name, ensure_ascii=False).encode("utf-8", "surrogatepass")


def last_name(text: bytes) -> tuple[str, list[str]]:
    """The name that ends where the text ends, and those of the same object before it."""
    start = _string_start(text, len(text) - 1)
    return json.loads(text[start:]), names_before(text, start)


def items_before(text: bytes) -> list[Any]:
    """The items of the array that is open where the text ends, which is right after an item."""
    start, _ = _opening(text, len(text))
    items: list[Any] = json.loads(text[start:] + b"]")
    return items


def repeats(text: bytes) -> list[bytes]:
    """How the text, which ends inside a name or where one may begin, could go on to repeat a name of its innermost open
    object: beginnings, one of which every such continuation has that holds no escape other than those of `json.dumps`.
    """
    found: list[bytes] = []
    if text.rstrip(_SPACE)[-1:] in (b"{", b","):
        for name in names_before(text, len(text)):
            found.append(_spelled(name))
    start = _string_start(text, len(text))
    if start < 0 or text[:start].rstrip(_SPACE)[-1:] not in (b"{", b","):
        return found
    written = text[start:]
    for name in names_before(text, start):
        spelled = _spelled(name)
        if spelled.startswith(written):
            found.append(spelled[len(written) :])
        elif b"\\" in written:  # escaped otherwise: whatever closes the name is worth a trial
            found.append(b"")
    return list(dict.fromkeys(found))
