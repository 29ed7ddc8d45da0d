"""Readings of a piece of a broken text: strings, words, numbers and punctuation in other spellings, as JSON.

A reading has the end of the piece, its text as JSON, and the cost of the change. Readings do not depend on the grammar:
the search takes the ones that the grammar allows (see `search`). A cost of 1 is one changed character of a value; a
change of spelling alone costs next to nothing.

Pieces are of text that is nearly JSON (other quotes, comments, names without quotes), so that the tokens of
`generation.json_places`, which are strict, do not apply here.
"""

from __future__ import annotations

import json
import re
from array import array
from collections.abc import Iterator
from itertools import islice
from typing import NamedTuple

from ..json import escaped
from .edits import EDIT, LIKELY, SPELLING

#: Maximum number of ends that are tried for a string without a certain end.
MAX_ENDS = 4

#: By opening quote: the closing quotes.
_QUOTES: dict[bytes, tuple[bytes, ...]] = {
    b'"""': (b'"""',),
    b"'''": (b"'''",),
    b'"': (b'"',),
    b"'": (b"'",),
    b"`": (b"`", b"'"),
    "\u201c".encode(): ("\u201d".encode(), b'"'),
    "\u201d".encode(): ("\u201d".encode(), b'"'),
    "\u2018".encode(): ("\u2019".encode(), b"'"),
    "\u00ab".encode(): ("\u00bb".encode(),),
}

#: An opening quote; and by opening quote: an escape or the end of the string.
_QUOTE = re.compile(b"|".join(map(re.escape, _QUOTES)))
_ENDS = {
    quote: re.compile(rb"\\.|" + b"|".join(map(re.escape, closers)), re.DOTALL) for quote, closers in _QUOTES.items()
}

#: Words of other languages for JSON's words, in lower case; and words without an equivalent.
_WORDS = {b"true": b"true", b"false": b"false", b"null": b"null", b"none": b"null", b"nil": b"null"}
_LOST = {b"undefined": b"null", b"nan": b"null", b"infinity": b"null"}

_WORD = re.compile(rb"[A-Za-z_$\x80-\xff][\w$.\x80-\xff-]*")
_NUMBER = re.compile(rb"[+-]?(?:0[xX][0-9a-fA-F]+|(?:\d[\d_]*(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?)(?![\w.])")
_THOUSANDS = re.compile(rb"[+-]?\d{1,3}(?:,\d{3})+(?:\.\d+)?(?![\w.])")
_COMMENT = re.compile(rb"//[^\n]*\n?|/\*.*?\*/|#[^\n]*\n?", re.DOTALL)
_FENCE = re.compile(rb"```[\w-]*[ \t]*\n?")
_SPACE = re.compile(rb"\s+")
_BOUNDARY = re.compile(rb"[,:}\]\n]")
_AFTER_STRING = re.compile(rb"\s*(?:[,:}\])]|$|</)")
_INNER_STRUCTURE = re.compile(rb"[\"'`]\s*[,:}\]]")
_BARE = re.compile(rb"[^,:{}\[\]\n<>]+")
_UNOPENED = re.compile(rb"([^\"'`:{}\[\]\n<>]+)\"(?=\s*[,}\]])")
_CLOSER = re.compile(rb"\s*(?:[,}\])]|$)")
_ESCAPE = re.compile(r"\\(?:u\{([0-9a-fA-F]+)\}|u([0-9a-fA-F]{4})|x([0-9a-fA-F]{2})|(.))", re.DOTALL)
_NAMED = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "/": "/", "\\": "\\", '"': '"', "'": "'", "`": "`"}
_PUNCTUATION: dict[bytes, tuple[tuple[bytes, float], ...]] = {
    b";": ((b",", LIKELY), (b"", LIKELY)),
    b"=>": ((b":", SPELLING),),
    b"=": ((b":", LIKELY),),
    b":": ((b",", EDIT),),
    b"(": ((b"[", SPELLING), (b"{", LIKELY), (b"", LIKELY)),
    b")": ((b"]", SPELLING), (b"}", LIKELY), (b"", LIKELY)),
    b"}": ((b"", 0.5), (b"]", 0.7), (b"]}", 0.8)),
    b"]": ((b"", 0.5), (b"}", 0.7), (b"}]", 0.8)),
    "\uff0c".encode(): ((b",", SPELLING),),
    "\uff1a".encode(): ((b":", SPELLING),),
    "\u3001".encode(): ((b",", SPELLING),),
}


#: Costs: of quotes around a text without them, which may hold more than one word; of each end of a string that is
#: passed over; and of a string as the number or word, or the object or array, that it spells.
_BARE_COST, _NEXT_END, _SCALAR_AS_TEXT, _NESTED_AS_TEXT = 0.5, 0.1, 0.1, 0.15


class Reading(NamedTuple):
    """One reading of a piece of a text.

    Attributes:
        end: the first byte after the piece.
        text: its JSON.
        cost: the cost of the change.
        why: the mistake, for users.
    """

    end: int
    text: bytes
    cost: float
    why: str


def readings(data: bytes, at: int) -> list[Reading]:
    """Return the readings of the piece at a position, except the piece itself."""
    found = list(_all_readings(data, at))
    return [reading for reading in found if reading.text != data[at : reading.end]]


def _all_readings(data: bytes, at: int) -> Iterator[Reading]:
    """Yield the readings of the piece at a position by its kind: space, fence, comment, string, number, word, bare
    text, punctuation. The piece itself may be among them."""
    if space := _SPACE.match(data, at):
        yield Reading(space.end(), b"", SPELLING / 2, "white space")
        yield Reading(space.end(), b" ", SPELLING / 2, "white space")
        return
    if fence := _FENCE.match(data, at):
        yield Reading(fence.end(), b"", SPELLING, "a fence around the text")
    if comment := _COMMENT.match(data, at):
        cost = 2 * SPELLING + EDIT * comment.group().count(b'"')  # a comment with strings may be data
        yield Reading(comment.end(), b"", cost, "a comment")
    if quote := _QUOTE.match(data, at):
        yield from _strings(data, at, quote.group())
        return
    if number := _NUMBER.match(data, at) or _THOUSANDS.match(data, at):
        yield from _numbers(number.group(), number.end())
        if thousands := _THOUSANDS.match(data, at):
            yield from _numbers(thousands.group().replace(b",", b""), thousands.end())
    elif word := _WORD.match(data, at):
        meant = _WORDS.get(word.group().lower())
        if meant is not None:
            yield Reading(word.end(), meant, SPELLING, "a word of another language")
        if word.group().lower() in _LOST:
            yield Reading(word.end(), _LOST[word.group().lower()], EDIT, "a word without a meaning in JSON")
        yield Reading(word.end(), _dumped(word.group()), SPELLING, "a missing pair of quotes")
    if bare := _BARE.match(data, at):
        content = bare.group().strip().strip(b"\"'")
        end = at + len(bare.group().rstrip())
        if content:
            yield Reading(end, _dumped(content), _BARE_COST, "a missing pair of quotes")
        unopened = _UNOPENED.match(data, at) if data.startswith(b",", bare.end()) else None
        if unopened and not unopened.group(1)[-1:].isspace():  # `San Jose, CA"`: a comma of its own, and the end
            yield Reading(unopened.end(), _dumped(unopened.group(1)), _BARE_COST, "a missing opening quote")
    if data.startswith(b",", at):
        trailing = _CLOSER.match(data, at + 1)
        yield Reading(at + 1, b"", 2 * SPELLING if trailing else EDIT, "a comma too many")
    for mark, instead in _PUNCTUATION.items():
        if data.startswith(mark, at):
            for text, cost in instead:
                yield Reading(at + len(mark), text, cost, "punctuation" if text else "a bracket too many")
            return


def _numbers(text: bytes, end: int) -> Iterator[Reading]:
    for number in number_spellings(text):
        yield Reading(end, number, SPELLING, "the spelling of a number")
    yield Reading(end, b'"' + text + b'"', 0.1, "a number where text is asked for")


def number_spellings(text: bytes) -> list[bytes]:
    """Return the JSON spellings of a number in another notation, with and without a zero fraction, so that a grammar of
    integers or of decimals finds one: ``+007`` -> ``7``, ``7.0``; ``0x1f`` -> ``31``. Empty if it is no number."""
    plain = text.strip().replace(b"_", b"").lower().lstrip(b"+")
    if plain.lstrip(b"-").startswith(b"0x"):
        try:
            return [str(int(plain, 16)).encode()]
        except ValueError:
            return []
    if not _NUMBER.fullmatch(plain):
        return []
    mantissa, mark, exponent = plain.partition(b"e")
    sign = b"-" if mantissa.startswith(b"-") else b""
    whole, _, fraction = mantissa.lstrip(b"-").partition(b".")
    whole = whole.lstrip(b"0") or b"0"
    spelled = [sign + whole + (b"." + fraction if fraction else b"") + mark + exponent]
    if not mark:
        spelled.append(sign + whole + b"." + (fraction or b"0"))
        if not fraction.strip(b"0"):
            spelled.append(sign + whole)
    return list(dict.fromkeys(spelled))


def _strings(data: bytes, at: int, quote: bytes) -> Iterator[Reading]:
    """Yield the readings of a string in any quotes. Its end may be missing, or later than the first closing quote."""
    begin = at + len(quote)
    # The quotes that may close it: after the first one, those alone that what follows a string follows.
    ends = (match for match in _ENDS[quote].finditer(data, begin) if not match.group().startswith(b"\\"))
    first = next(ends, None)
    if first is not None:
        content = data[begin : first.start()]
        yield Reading(first.end(), _dumped(content), SPELLING, "the quotes or escapes of a string")
        yield from _unquoted(content, first.end())
    doubtful = (end for end in ends if _AFTER_STRING.match(data, end.end()))
    for number, end in enumerate(islice(doubtful, MAX_ENDS)):
        cost = LIKELY + _NEXT_END * min(number + data.count(quote, begin, end.start()), 10)
        if _INNER_STRUCTURE.search(data, begin, end.start()):
            cost += 3 * EDIT  # it holds what looks like the ends of strings
        yield Reading(end.end(), _dumped(data[begin : end.start()]), cost, "quotes inside of a string")
    limit = len(data) if first is None else first.start()
    # If a string may end at its closing quote, a missing quote before that is less likely.
    least = EDIT if first is None or not _AFTER_STRING.match(data, first.end()) else 3 * EDIT
    for number, boundary in enumerate(_BOUNDARY.finditer(data, begin, limit)):
        if number == MAX_ENDS:
            break
        content = data[begin : boundary.start()].rstrip()
        yield Reading(boundary.start(), _dumped(content), least + _NEXT_END * number, "a missing quote")


def _unquoted(content: bytes, end: int) -> Iterator[Reading]:
    """Yield the readings of a string as the number, word, object or array that it spells."""
    text = content.strip()
    for number in number_spellings(text):
        yield Reading(end, number, _SCALAR_AS_TEXT, "a number written as text")
    if text.lower() in _WORDS:
        yield Reading(end, _WORDS[text.lower()], _SCALAR_AS_TEXT, "a value written as text")
    if text[:1] in (b"{", b"["):
        yield Reading(end, _decoded(text).encode("utf-8", "surrogatepass"), _NESTED_AS_TEXT, "a value written as text")


def _dumped(content: bytes) -> bytes:
    """Return the JSON string with some content, in which escapes of other languages are decoded."""
    return escaped(json.dumps(_decoded(content), ensure_ascii=False)).encode("utf-8", "surrogatepass")


def _decoded(content: bytes) -> str:
    text = content.decode("utf-8", "surrogatepass")
    return _ESCAPE.sub(_meant, text) if "\\" in text else text


def _meant(match: re.Match[str]) -> str:
    braced, long, short, char = match.groups()
    if char is not None:
        return _NAMED.get(char, match.group() if char != "\n" else "")
    code = int(braced or long or short, 16)
    return chr(code) if code < 0x110000 else match.group()


# -- pieces of a text ------------------------------------------------------------------------------------------------

_PIECE = re.compile(rb'"(?:[^"\\]|\\.)*"?|[\w$.+\x80-\xff-]+|\s+|.', re.DOTALL)
_OPEN, _CLOSE = b"{[(", b"}])"
_COLON, _COMMA = re.compile(rb"\s*[:=]\s*"), re.compile(rb"\s*,\s*")


def last_pieces(data: bytes, begin: int, end: int, count: int) -> list[int]:
    """Return the starts of the last ``count`` pieces between two positions, last first, without white space."""
    starts = [match.start() for match in _PIECE.finditer(data, begin, end) if not match.group().isspace()]
    return starts[: -count - 1 : -1]


def piece_count(data: bytes, begin: int, end: int, most: int) -> int:
    """Return the number of pieces between two positions, without white space; ``most`` if there are more."""
    count = 0
    for match in _PIECE.finditer(data, begin, end):
        count += not match.group().isspace()
        if count >= most:
            break
    return count


def piece_end(data: bytes, at: int) -> int:
    """Return the end of the piece at a position."""
    if quote := _QUOTE.match(data, at):
        return _string_end(data, at, quote.group())
    match = _PIECE.match(data, at)
    return match.end() if match else at + 1


class Content(NamedTuple):
    """A string or word: the position after it, with its closing quote; and its text, without quotes."""

    end: int
    text: bytes


def content_of(data: bytes, at: int) -> Content:
    """Return the string or word at a position; for another piece, an empty text that ends where it begins."""
    if opening := _QUOTE.match(data, at):
        quote = opening.group()
        end = _string_end(data, at, quote)
        closing = next((mark for mark in _QUOTES[quote] if data.endswith(mark, at + len(quote), end)), b"")
        return Content(end, data[at + len(quote) : end - len(closing)])
    word = _WORD.match(data, at)
    return Content(word.end(), word.group()) if word else Content(at, b"")


class MemberEnd(NamedTuple):
    """Where a member ends: after its value; and after the comma behind that, if there is one."""

    value: int
    comma: int


def member_end(data: bytes, at: int) -> MemberEnd | None:
    """Return the end of the member (name, colon, value) at a position; None if there is no member."""
    end, name = content_of(data, at)
    colon = _COLON.match(data, end)
    if not name or colon is None:
        return None
    end = _value_end(data, colon.end())
    comma = _COMMA.match(data, end)
    return MemberEnd(end, comma.end() if comma else end)


def _string_end(data: bytes, at: int, quote: bytes) -> int:
    for match in _ENDS[quote].finditer(data, at + len(quote)):
        if not match.group().startswith(b"\\"):
            return match.end()
    return len(data)


def _value_end(data: bytes, at: int) -> int:
    """Return the end of the value at a position: after its closing bracket or quote, or before the comma, line break or
    closing bracket that ends a value without brackets."""
    depth, position = 0, at
    while position < len(data):
        char = data[position : position + 1]
        if char in _OPEN:
            depth += 1
        elif char in _CLOSE:
            if not depth:
                return position
            depth -= 1
            if not depth:
                return position + 1
        elif not depth and char in (b",", b"\n"):
            return position
        elif _QUOTE.match(data, position):
            position = piece_end(data, position)
            if not depth:
                return position
            continue
        position += 1
    return position


OPENING, CLOSING = (b"{", b"["), (b"]", b"}")

#: A bracket of JSON; or a piece that is none: an escaped quote, or a string, which may be unfinished.
_BRACKET = re.compile(rb'\\["\\]|"[^"\\]*(?:\\.[^"\\]*)*["\\]?|[{}\[\]]', re.DOTALL)


def closing_bracket(text: bytes) -> int:
    """Return the position of the first bracket of JSON that closes one opened before the text; 0 if there is none."""
    depth = 0
    for match in _BRACKET.finditer(text):
        if match.group() in OPENING:
            depth += 1
        elif match.group() in CLOSING:
            depth -= 1
            if depth < 0:
                return match.start()
    return 0


class Structure(NamedTuple):
    """By position of a text: the number of open brackets; the position of the quote that opens the string around it, or
    -1."""

    depths: array[int]
    opening_quotes: array[int]


def structure_of(data: bytes) -> Structure:
    """Return the brackets and strings around each position of a text, its end too: ``[1`` has the depths 0, 1, 1."""
    size = len(data) + 1
    depths, opening_quotes = array("i", [0]) * size, array("i", [-1]) * size
    depth = done = 0  # `depths` is written up to `done`
    for match in _BRACKET.finditer(data):
        begin, end = match.span()
        if match.group() in OPENING or match.group() in CLOSING:
            depths[done:end] = array("i", [depth]) * (end - done)
            depth, done = max(0, depth + (1 if match.group() in OPENING else -1)), end
        elif data[begin] == 0x22:
            opening_quotes[begin + 1 : end] = array("i", [begin]) * (end - begin - 1)
    depths[done:] = array("i", [depth]) * (size - done)
    return Structure(depths, opening_quotes)


def kind_of(text: bytes) -> str:
    """Return the type of scalar that a piece begins like; empty for other pieces."""
    if text[:1] in (b'"', b"'"):
        return "string"
    if text in (b"true", b"false"):
        return "boolean"
    return "number" if re.match(rb"[+-]?[.\d]", text) else ""
