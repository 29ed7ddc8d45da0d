# cython: language_level=3, boundscheck=False, wraparound=False
"""Text so far, and look-back into its JSON: the names of the innermost open object, the items of the innermost array.

The JSON may follow other text (a tag, say), so it is read backwards from its end. This is unambiguous from any point
outside of strings: the nearest quote closes a string, which begins at the nearest quote before it that is not escaped
by an odd number of backslashes (RFC 8259 section 7). Results are memoised as long as the text before them is unchanged,
so each part of a text is read about once for each bracket around it.

Compiled where that is possible (Cython in pure-Python mode), because each mask inside a name needs it; interpreted, it
takes about five times as long.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_left
from collections.abc import Collection, Iterable
from functools import lru_cache

from ..json import json_bytes, string_start

try:
    import cython
except ImportError:  # interpreted, without Cython installed
    from ..compiled import standin as cython  # type: ignore[no-redef]

#: The complete characters of the beginning of a JSON string.
_WHOLE = re.compile(
    rb'"(?:[^"\\\x80-\xff]|[\xc2-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}|[\xf0-\xf4][\x80-\xbf]{3}|\\["\\/bfnrt]'
    rb"|\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\u(?![dD][89abAB])[0-9a-fA-F]{4})*"
)


#: Maximum length of a name whose spelling (its JSON string) is memoised.
_MAX_SHORT = cython.declare(cython.int, 1_000)

#: Maximum number of offsets in the text for which the names are memoised.
_MAX_NAMED = cython.declare(cython.int, 8)

#: Maximum number of new names that are put into the sorted list one by one.
_FEW = cython.declare(cython.int, 8)

#: By byte: 1 if it may stand in a JSON value outside of strings and is neither a bracket nor punctuation.
_IS_SCALAR = cython.declare(bytes, bytes([chr(byte) in "0123456789+-.Etruefalsn" for byte in range(256)]))


#: ``(names, low, high, size)``: the strings ``names[low:high]`` of a sorted list, without their first ``size`` bytes.
Endings = tuple[list[bytes], int, int, int]


@cython.cfunc
@cython.exceptval(-2, check=False)
def _string_start(text: bytearray, end: cython.Py_ssize_t) -> cython.Py_ssize_t:
    """Return `string_start`, here in C for a quote that no backslash precedes: each mask inside a name asks for it."""
    at: cython.Py_ssize_t = end - 1
    while at >= 0 and text[at] != 0x22:
        at -= 1
    return at if at <= 0 or text[at - 1] != 0x5C else string_start(text, end)


@cython.cfunc
def _decoded(spelled: bytes) -> object:
    """Return the value of a JSON string; None if the bytes are not one, because the text ends inside a string."""
    if b"\\" not in spelled and spelled.isascii():  # nearly all names
        name: str = spelled[1 : len(spelled) - 1].decode("ascii")
        if name.isprintable() and len(spelled) > 1:
            return name
    return _decoded_any(spelled) if len(spelled) <= _MAX_SHORT else _decoded_any.__wrapped__(spelled)


@lru_cache(maxsize=4096)  # shared by the process and bounded: a pure function
def _decoded_any(spelled: bytes) -> str | None:
    try:
        name: str = json.loads(spelled)
    except ValueError:
        return None
    return name


@cython.cfunc
def _spelled(name: str) -> bytes:
    """Return a name as `json.dumps` writes it."""
    if name.isascii() and name.isprintable() and '"' not in name and "\\" not in name:
        return b'"%b"' % name.encode("ascii")
    return _spelled_any(name) if len(name) <= _MAX_SHORT else json_bytes(name)


@lru_cache(maxsize=4096)
def _spelled_any(name: str) -> bytes:
    return json_bytes(name)


@cython.cfunc
@cython.exceptval(-2, check=False)
def _before_space(text: bytearray, end: cython.Py_ssize_t) -> cython.Py_ssize_t:
    """Return the index of the last byte before ``end`` that is no white space; -1: there is none."""
    at: cython.Py_ssize_t = end - 1
    while at >= 0 and (text[at] == 0x20 or text[at] == 0x09 or text[at] == 0x0A or text[at] == 0x0D):
        at -= 1
    return at


@cython.cfunc
@cython.exceptval(-2, check=False)
def _may_begin_name(text: bytearray, end: cython.Py_ssize_t) -> cython.bint:
    """Return True if the last byte before ``end``, white space aside, is an opening brace or a comma."""
    at: cython.Py_ssize_t = _before_space(text, end)
    return at >= 0 and (text[at] == 0x7B or text[at] == 0x2C)


def endings_of(names: list, begun: bytes) -> list:
    """Return the endings with which a begun string becomes one of some strings: for ``"ab"``, after ``"a``, it is
    ``b"`` (see `Written.endings`).

    Args:
        names: the strings as `json.dumps` writes them, sorted.
        begun: the beginning of the string, with its quote; without escapes. Empty: it is not begun.
    """
    if not begun:
        return [(names, 0, len(names), 0)] if names else []
    low: cython.Py_ssize_t = bisect_left(names, begun)
    if low == len(names) or not cython.cast(bytes, names[low]).startswith(begun):
        return []
    return [(names, low, bisect_left(names, begun + b"\xff", low), len(begun))]


def endings_after_escape(names: Iterable[str], begun: bytes) -> tuple[list, bool]:
    """Do `endings_of` for a begun string with escapes: for the name ``ab``, after ``"\\u0061`` the ending ``b"``.
    Return also True if the string ends within an escape, so that other endings may repeat a name, too.

    Args:
        names: the strings, decoded.
        begun: the beginning of the string, with its quote.
    """
    whole = _WHOLE.match(begun)
    beginning = None if whole is None else _decoded(whole.group() + b'"')
    if whole is None or beginning is None:  # perhaps not a prefix of a string
        return [], True
    same: list = [name for name in names if name.startswith(beginning)]
    if whole.end() < len(begun):  # within an escape
        return [], bool(same)
    spelled: list = sorted({_spelled(name[len(beginning) :])[1:] for name in same})  # without the opening quote
    return endings_of(spelled, b""), False


@cython.cclass
class Bracket:
    """An open object or array, read up to its last comma, or up to its bracket if it has none.

    Attributes:
        opening: index of the bracket.
        at: index up to which it is read.
        names: the names of an object before `at`; for an array, its items that are strings.
        known: the same as a set.
        spelled: the same as `json.dumps` writes them, sorted; of the first `sorted` of them.
        commas: the indices of its commas before `at`.
        items: a prefix of the items of an array, as written.
        memo: what others derive from the text before `at`.
    """

    at: cython.Py_ssize_t
    opening: cython.Py_ssize_t
    names: list
    known: set
    spelled: list
    sorted: cython.Py_ssize_t
    commas: list
    items: list
    memo: dict

    def __init__(self, opening: cython.Py_ssize_t):
        self.opening = opening
        self.at = opening + 1
        self.names = []
        self.known = set()
        self.spelled = []
        self.sorted = 0
        self.commas = []
        self.items = []
        self.memo = {}

    @cython.cfunc
    def add(self, names: list) -> object:
        """Add the names (of an array, the strings) up to a new `at`."""
        self.names += names
        self.known.update(names)
        return None

    @cython.cfunc
    def sort(self) -> list:
        """Return `spelled`, of all names."""
        name: str
        new: list = []
        if self.sorted < len(self.names):
            for name in self.names[self.sorted :]:
                new.append(_spelled(name))
            self.sorted = len(self.names)
            if len(new) <= _FEW:  # a few are put in their places
                for spelled in new:
                    at: cython.Py_ssize_t = bisect_left(self.spelled, spelled)
                    if at == len(self.spelled) or self.spelled[at] != spelled:
                        self.spelled.insert(at, spelled)
            else:
                self.spelled = sorted({*self.spelled, *new})
        return self.spelled


@cython.cclass
class _Names:
    """The names of the innermost open object at an offset of the text; for an array, its items that are strings.

    Attributes:
        bracket: the object or array, with its names; None if there is none.
        count: the number of these names.
        others: further names, after those of the bracket: few, as they follow its last comma.
    """

    bracket: Bracket
    count: cython.Py_ssize_t
    others: list
    _lists: list

    def __init__(self, bracket, others):
        self._lists = None
        self.bracket = bracket
        self.count = 0 if bracket is None else len(cython.cast(Bracket, bracket).names)
        self.others = others

    @cython.cfunc
    def all(self) -> list:
        """Return all names, in order."""
        return self.others if self.bracket is None else self.bracket.names + self.others

    @cython.cfunc
    def lists(self) -> list:
        """Return the names as `json.dumps` writes them, in sorted lists."""
        if self._lists is None:
            self._lists = [self.bracket.sort()] if self.count else []
            if self.others:
                self._lists.append(sorted({_spelled(name) for name in self.others}))
        return self._lists


@cython.cclass
class Written:
    """The text so far, and look-back into its JSON.

    Args:
        text: the text.

    Attributes:
        live: the live values of the text (`live.LiveAnswers`); None: it has none.
        is_plan: the text is a completion that nobody has written yet.

    Law: results depend on the text, and on its live values, but not on the pieces in which it was written.
    """

    live = cython.declare(object, visibility="public")
    is_plan = cython.declare(cython.bint, visibility="public")

    _data: bytearray
    _size: cython.Py_ssize_t
    _open: list
    _bracket: Bracket
    _closed: dict
    _bytes: object
    _named: dict

    def __init__(self, text: bytes = b""):
        self._data = bytearray(text)  # with tentative text at its end
        self._size = len(text)  # without that
        self._bytes = None  # all of it, if it was asked for
        self._open = []  # the open brackets (`Bracket`) read so far, innermost last
        self._bracket = None  # the last result of `_look_back`
        self._closed = {}
        self._named = {}  # the names by offset: several tokens in a row need the same
        self.live = None
        self.is_plan = False

    def __len__(self) -> int:
        return len(self._data)

    def text(self) -> bytes:
        """Return all of it."""
        if self._bytes is None:
            self._bytes = bytes(self._data)
        return self._bytes

    def planned(self) -> Written:
        """Return a copy of the text without tentative text, for a completion of it."""
        copy: Written = Written(bytes(self._data[: self._size]))
        copy.live = self.live
        copy.is_plan = True
        return copy

    @property
    def closed(self) -> dict[tuple[int, bytes], int]:
        """Memoised states of `Resolution` for continuations of this text; emptied when the text changes."""
        return self._closed

    def write(self, data: bytes) -> None:
        """Append to the text."""
        self.suppose(b"")
        self._data += data
        self._size = len(self._data)
        self._bytes = None
        if self._closed:
            self._closed = {}

    def cut(self, size: cython.Py_ssize_t) -> None:
        """Shorten the text to its first ``size`` bytes."""
        self._size = size
        del self._data[size:]
        self._bytes = None
        self._closed = {}
        if self._named:
            self._named = {}
        while self._open and cython.cast(Bracket, self._open[len(self._open) - 1]).at > size:
            self._open.pop()

    def suppose(self, data: bytes) -> None:
        """Replace the tentative text, which follows the text, by ``data``."""
        if len(self._data) > self._size:
            del self._data[self._size :]
            self._bytes = None
        if data:
            self._data += data
            self._bytes = None

    # -- reading back ------------------------------------------------------------------------------------------

    @cython.cfunc
    def _look_back(self, end: cython.Py_ssize_t) -> tuple:
        """Read backwards from ``end``, outside of strings, to the innermost open bracket or its part that is already
        read.

        Set ``self._bracket`` to that bracket, or None; return the names (for an array: the items that are strings) and
        the indices of the commas after that part.
        """
        text: bytearray = self._data
        # What follows `at`, last first:
        names: list = []
        items: list = []  # the strings that are not names, as index ranges
        commas: list = []
        ahead: list = []  # for each comma, the numbers of names and of items after it
        depth: cython.int = 0  # brackets that close after `at` and open before it
        at: cython.Py_ssize_t = end - 1
        start: cython.Py_ssize_t
        byte: cython.int
        colon: cython.bint = False  # True if the next significant byte to the right is a colon
        rank: cython.Py_ssize_t = len(self._open)  # in `_open`, of the last bracket that is read up to here or less far
        read_to: cython.Py_ssize_t = end + 1  # up to where: its `at`
        bracket: Bracket = None
        self._bracket = None
        while at >= 0:
            while read_to > at + 1:
                rank -= 1
                read_to = cython.cast(Bracket, self._open[rank]).at if rank >= 0 else -1
            if read_to == at + 1 and depth == 0:
                bracket = self._open[rank]
                break
            byte = text[at]
            if byte == 0x22:  # a quote, which closes a string: go on before that
                start = text.rfind(b'"', 0, at)
                if start > 0 and text[start - 1] == 0x5C:
                    start = _string_start(text, at)
                if start < 0:
                    break
                if depth == 0:
                    if colon:
                        name = _decoded(bytes(text[start : at + 1]))
                        if name is not None:
                            names.append(name)
                    else:
                        items.append((start, at + 1))
                colon = False
                at = start
            elif byte == 0x7D or byte == 0x5D:  # } ]
                depth += 1
                colon = False
            elif byte == 0x7B or byte == 0x5B:  # { [
                if depth == 0:
                    bracket = Bracket(at)
                    rank += 1
                    break
                depth -= 1
                colon = False
            elif byte == 0x3A:  # :
                colon = True
            elif byte == 0x2C:  # ,
                if depth == 0:
                    commas.append(at)
                    ahead.append((len(names), len(items)))
                colon = False
            elif not (byte == 0x20 or byte == 0x09 or byte == 0x0A or byte == 0x0D):
                if not _IS_SCALAR[byte]:  # not JSON: the text ends inside a string
                    return [], []
                colon = False
            at -= 1
        is_array: cython.bint = bracket is not None and text[bracket.opening] == 0x5B
        if is_array:
            names = [_decoded(bytes(text[begin:stop])) or "" for begin, stop in items]
        names.reverse()
        commas.reverse()
        if bracket is None:
            return names, commas
        self._bracket = bracket
        if bracket.at > self._size:  # in tentative text
            return names, commas
        # The text up to the last comma that is not tentative is final.
        final: cython.Py_ssize_t = len(commas)
        while final > 0 and commas[final - 1] >= self._size:
            final -= 1
        if final:
            ahead.reverse()
            count: cython.Py_ssize_t = len(names) - ahead[final - 1][1 if is_array else 0]
            bracket.add(names[:count])
            bracket.commas += commas[:final]
            bracket.at = commas[final - 1] + 1
            names = names[count:]
            commas = commas[final:]
        del self._open[rank:]  # inner brackets are closed
        self._open.append(bracket)
        return names, commas

    @cython.cfunc
    def _names_at(self, end: cython.Py_ssize_t) -> _Names:
        """Return the names at an offset of the text."""
        known = self._named.get(end)
        if known is not None:
            found: _Names = known
            if found.bracket is None or len(found.bracket.names) == found.count:  # else it was read beyond the offset
                return found
        others: list = self._look_back(end)[0]
        found = _Names(self._bracket, others)
        if end <= self._size:  # tentative text may change
            if len(self._named) >= _MAX_NAMED:
                self._named = {}
            self._named[end] = found
        return found

    def names(self) -> list[str]:
        """Return the names of the innermost open object, including a member whose value is missing; for an array, its
        items that are strings."""
        return self._names_at(len(self._data)).all()

    def is_repeated(self) -> bool:
        """Return True if the string at the end of the text, a name or an item of an array, is one of the names before
        it in the same object (the strings in the same array)."""
        text: bytearray = self._data
        start: cython.Py_ssize_t = _string_start(text, len(text) - 1)
        name = _decoded(bytes(text[start:]))
        assert name is not None
        before: _Names = self._names_at(start)
        return name in before.others or (before.bracket is not None and name in before.bracket.known)

    def items(self) -> list[bytes]:
        """Return the items of the innermost open array as written. The text ends after an item, or at a point where the
        next one may begin."""
        commas: list = self._look_back(len(self._data))[1]
        bracket: Bracket = self._bracket
        found: list = []
        begin: cython.Py_ssize_t = 0
        if bracket is not None:
            begin = bracket.at
            found = self._final_items(bracket)[:]
        found += self._divided(begin, commas)
        last: bytes = bytes(self._data[commas[len(commas) - 1] + 1 if commas else begin :]).strip()
        if last:
            found.append(last)
        return found

    def string_start(self, end: cython.Py_ssize_t) -> int:
        """Return the index of the nearest quote before an index that is not escaped (see `string_start` of `json`); -1
        if there is none."""
        return _string_start(self._data, end)

    def text_from(self, start: cython.Py_ssize_t) -> bytes:
        """Return the text from an index on."""
        return bytes(self._data[start:])

    def member_at(self, start: cython.Py_ssize_t) -> tuple[str, int, bytes] | None:
        """Return the member whose value begins at an index, or may begin there: its name, the index of the brace of its
        object, and the object's text before the name. None: no value of a member begins there."""
        text: bytearray = self._data
        at: cython.Py_ssize_t = _before_space(text, start)
        if at < 0 or text[at] != 0x3A:  # :
            return None
        at = _before_space(text, at)
        if at < 0 or text[at] != 0x22:
            return None
        begin: cython.Py_ssize_t = _string_start(text, at)
        name = None if begin < 0 else _decoded(bytes(text[begin : at + 1]))
        if name is None:
            return None
        self._look_back(begin)
        bracket: Bracket = self._bracket
        if bracket is None or text[bracket.opening] != 0x7B:
            return None
        return name, bracket.opening, bytes(text[bracket.opening : begin])

    def items_before(self, end: cython.Py_ssize_t) -> tuple[dict, list[bytes], list[bytes]] | None:
        """Return the items before an index in the innermost array that is open there. None: an object is open there, or
        nothing.

        Returns:
            memo: a dict for what the caller derives from the final items; it lives as long as they are unchanged.
            final: the items, as written, up to the last comma that is not tentative; not to be changed.
            tentative: those after it.
        """
        commas: list = self._look_back(end)[1]
        bracket: Bracket = self._bracket
        if bracket is None or self._data[bracket.opening] != 0x5B:
            return None
        return bracket.memo, self._final_items(bracket), self._divided(bracket.at, commas)

    @cython.cfunc
    def _final_items(self, bracket: Bracket) -> list:
        """Return the items of an array, as written, as far as it is read; the list of the bracket itself."""
        count: cython.Py_ssize_t = len(bracket.items)
        if count < len(bracket.commas):
            start: cython.Py_ssize_t = bracket.commas[count - 1] if count else bracket.opening
            bracket.items += self._divided(start + 1, bracket.commas[count:])
        return bracket.items

    @cython.cfunc
    def _divided(self, begin: cython.Py_ssize_t, commas: list) -> list:
        """Return the text from an index to each of some commas: what is between them, without white space around."""
        found: list = []
        for comma in commas:
            found.append(bytes(self._data[begin:comma]).strip())
            begin = comma + 1
        return found

    def endings(self) -> tuple[list[Endings], bool]:
        """Return the continuations that would repeat a name of the innermost open object, or a string of the innermost
        open array. The text ends inside a name (a string of the array), or at a point where one may begin.

        Returns:
            endings: the endings of the names, as `Endings`. Every continuation that repeats a name and has the escapes
                of `json.dumps` begins with one of them. The lists are not to be changed.
            is_partial: the text ends within an escape, so other continuations may repeat a name too.
        """
        text: bytearray = self._data
        end: cython.Py_ssize_t = len(text)
        found: list = []
        names: list
        if _may_begin_name(text, end):
            found += [(names, 0, len(names), 0) for names in self._names_at(end).lists()]
        start: cython.Py_ssize_t = _string_start(text, end)
        if start < 0 or not _may_begin_name(text, start):
            return found, False
        known: _Names = self._names_at(start)
        if not known.count and not known.others:
            return found, False
        begun: bytes = bytes(text[start:])
        if text.find(0x5C, start) < 0:
            for names in known.lists():
                found += endings_of(names, begun)
            return found, False
        others, is_partial = endings_after_escape(known.all(), begun)
        return found + others, is_partial

    def spelled_names(self, among: Collection[bytes]) -> list[bytes]:
        """Return those of the names ``among`` (as `json.dumps` writes them) that the innermost open object has already,
        so that the next name must not be one of them; of an array, its strings. The text may end inside a string."""
        found: dict = {}
        names: list
        start: cython.Py_ssize_t = _string_start(self._data, len(self._data))
        for end in (len(self._data), start):
            for names in self._names_at(end).lists() if end >= 0 else ():
                if len(names) <= len(among):  # the shorter list is looked up in the longer one
                    found.update([(name, None) for name in names if name in among])
                    continue
                for name in among:
                    at: cython.Py_ssize_t = bisect_left(names, name)
                    if at < len(names) and names[at] == name:
                        found[name] = None
        return list(found)
