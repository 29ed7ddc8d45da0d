# cython: language_level=3, boundscheck=False, wraparound=False
"""What a JSON text being written has said so far: the names of the innermost open object, the items of the innermost
open array.

A text may hold other things before its JSON (free text, a tag), so it is read from its end backwards, which is
unambiguous from any place that is known to be outside of strings: there, the nearest quote closes a string, and the
string begins at the nearest quote before it that no odd number of backslashes escapes (RFC 8259 section 7).

Compiled where that is possible, as it is asked for many masks (Cython in pure-Python mode).
"""

from __future__ import annotations

import json
import re
from functools import lru_cache

try:
    import cython
except ImportError:  # interpreted, without Cython installed
    from .. import cython_standin as cython  # type: ignore[no-redef]

#: A JSON string as far as its characters are complete.
_WHOLE = re.compile(
    rb'"(?:[^"\\\x80-\xff]|[\xc2-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}|[\xf0-\xf4][\x80-\xbf]{3}|\\["\\/bfnrt]'
    rb"|\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\u(?![dD][89abAB])[0-9a-fA-F]{4})*"
)


@cython.cfunc
@cython.exceptval(-2, check=False)
def _string_start(text: bytes, end: cython.Py_ssize_t) -> cython.Py_ssize_t:
    """Where the string begins whose closing quote, or whose last byte so far, stands before ``end``; -1 if nowhere."""
    at: cython.Py_ssize_t = end
    slashes: cython.Py_ssize_t
    while True:
        at -= 1
        while at >= 0 and text[at] != 0x22:
            at -= 1
        if at < 0:
            return -1
        slashes = at
        while slashes > 0 and text[slashes - 1] == 0x5C:
            slashes -= 1
        if (at - slashes) % 2 == 0:
            return at


@cython.cfunc
def _opening(text: bytes, end: cython.Py_ssize_t, names: list, commas: list) -> int:
    """Where the innermost bracket that is open at ``end`` (outside of strings) stands, or -1; adds the names directly
    in it to ``names``, as they are spelled, and the places of the commas to ``commas``, the last one first."""
    depth: cython.int = 0
    at: cython.Py_ssize_t = end - 1
    start: cython.Py_ssize_t
    byte: cython.int
    colon: cython.bint = False  # whether the next significant byte to the right is a colon
    while at >= 0:
        byte = text[at]
        if byte == 0x22:
            start = _string_start(text, at)
            if start < 0:
                return -1
            if colon and depth == 0:
                names.append(text[start : at + 1])
            colon = False
            at = start
        elif byte == 0x7D or byte == 0x5D:
            depth += 1
            colon = False
        elif byte == 0x7B or byte == 0x5B:
            if depth == 0:
                return at
            depth -= 1
            colon = False
        elif byte == 0x3A:
            colon = True
        elif byte == 0x2C:
            if depth == 0:
                commas.append(at)
            colon = False
        elif not (byte == 0x20 or byte == 0x09 or byte == 0x0A or byte == 0x0D):
            colon = False
        at -= 1
    return -1


def names_before(text: bytes, end: int) -> list[str]:
    """The names of the members that are complete, or at least named, in the object that is open at ``end``."""
    names: list[bytes] = []
    _opening(text, end, names, [])
    found = [_decoded(name) for name in reversed(names)]
    return [name for name in found if name is not None]


@lru_cache(maxsize=4096)  # the names of an object are read again at each of its members
def _decoded(spelled: bytes) -> str | None:
    """A name, or None if these bytes are no string: then the place was not outside of strings after all."""
    try:
        name: str = json.loads(spelled)
    except ValueError:
        return None
    return name


@lru_cache(maxsize=4096)
def _spelled(name: str) -> bytes:
    return json.dumps(name, ensure_ascii=False).encode("utf-8", "surrogatepass")


def last_name(text: bytes) -> tuple[str, list[str]]:
    """The name that ends where the text ends, and those of the same object before it."""
    start = _string_start(text, len(text) - 1)
    return json.loads(text[start:]), names_before(text, start)


def items_before(text: bytes) -> list[bytes]:
    """The items of the array that is open where the text ends, which is right after an item, as they are spelled."""
    commas: list[int] = []
    start = _opening(text, len(text), [], commas)
    places = [start, *reversed(commas), len(text)]
    return [text[places[i] + 1 : places[i + 1]].strip() for i in range(len(places) - 1)]


@cython.cfunc
def _is_name_place(text: bytes, end: cython.Py_ssize_t) -> bool:
    """Whether a name may begin at ``end``, as far as the byte before it says."""
    at: cython.Py_ssize_t = end - 1
    while at >= 0 and (text[at] == 0x20 or text[at] == 0x09 or text[at] == 0x0A or text[at] == 0x0D):
        at -= 1
    return at >= 0 and (text[at] == 0x7B or text[at] == 0x2C)


def repeats(text: bytes) -> tuple[list[bytes], bool]:
    """How the text, which ends inside a name or where one may begin, could go on to repeat a name of its innermost open
    object.

    Returns:
        Beginnings, one of which every such continuation has that holds no escape other than those of `json.dumps`; and
        whether a name could be repeated that is being spelled otherwise, and whose next character has begun already.
    """
    found: list[bytes] = []
    if _is_name_place(text, len(text)):
        found += [_spelled(name) for name in names_before(text, len(text))]
    start = _string_start(text, len(text))
    if start < 0 or not _is_name_place(text, start):
        return found, False
    written = text[start:]
    names = names_before(text, start)
    if b"\\" not in written:
        found += [spelled[len(written) :] for spelled in map(_spelled, names) if spelled.startswith(written)]
        return list(dict.fromkeys(found)), False
    whole = _WHOLE.match(written)
    beginning = None if whole is None else _decoded(whole.group() + b'"')
    if whole is None or beginning is None:  # not the beginning of a string after all, or not one to be sure of
        return found, bool(names)
    names = [name for name in names if name.startswith(beginning)]
    if whole.end() < len(written):
        return found, bool(names)
    found += [_spelled(name[len(beginning) :])[1:] for name in names]
    return list(dict.fromkeys(found)), False


def spelled_names(text: bytes) -> list[bytes]:
    """The names that the next whole name may not be, as `json.dumps` spells them: those of the innermost open object,
    whether the text ends inside a string or not."""
    names = names_before(text, len(text))
    start = _string_start(text, len(text))
    if start >= 0:
        names += names_before(text, start)
    return [_spelled(name) for name in dict.fromkeys(names)]
