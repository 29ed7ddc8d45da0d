"""Values that are not JSON: literals of Python and objects of Gemma, scanned and read. Nothing is ever evaluated."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from typing import Any

from toolgrammar.core.json import dump_json

from .stream import TextBuffer, marker_search

_WORDS = {"True": True, "False": False, "None": None, "true": True, "false": False, "null": None}
_DIGITS = r"[0-9]+(?:_[0-9]+)*"
_NUMBER = re.compile(rf"[-+]?(?:{_DIGITS}(?:\.(?:{_DIGITS})?)?|\.{_DIGITS})(?:[eE][-+]?{_DIGITS})?")
_WORD = re.compile(r"[^\W\d]\w*")
_BARE_KEY = re.compile(r"""[^\s{}\[\]():,"'<]+(?: +[^\s{}\[\]():,"'<]+)*""")
_SPACE = re.compile(r"\s*")
_PLAIN = re.compile(r"[\w\s.,:+\-]*")
_PLAIN_BARE = re.compile(r"[^<']*")
_CLOSING = frozenset("]})")
_PAIRS = {"{": "}", "[": "]", "(": ")"}
_SIMPLE = {
    "a": "\a",
    "b": "\b",
    "f": "\f",
    "n": "\n",
    "r": "\r",
    "t": "\t",
    "v": "\v",
    "\\": "\\",
    "'": "'",
    '"': '"',
    "/": "/",
}
_ESCAPE = re.compile(
    r"\\(?:x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([0-7]{1,3})|(\r?\n)|N\{([^{}]+)\}|([\s\S]))"
)

#: Maximum nesting of a value.
MAX_DEPTH = 200


@dataclass(frozen=True)
class Literals:
    """Syntax of strings and keys.

    Attributes:
        quotes: marks around strings, each with whether a backslash escapes inside.
        bare_keys: keys of objects have no quotes.
    """

    quotes: tuple[tuple[str, bool], ...]
    bare_keys: bool


PYTHON = Literals((('"""', True), ("'''", True), ('"', True), ("'", True)), bare_keys=False)


class LiteralScanner:
    """Finds the end of a value in text that arrives in pieces; `read_literal` then reads it.

    Where it stops and where it fails depends on the text alone, never on how the text was cut.

    Args:
        literals: how strings look.
        until: what ends a value outside of brackets and strings; empty: its last bracket does.

    Attributes:
        done: the value has ended.
        problem: reason why the text is not a value, or None.
    """

    def __init__(self, literals: Literals, until: str) -> None:
        self.done = False
        self.problem: str | None = None
        self._escapes = dict(literals.quotes)  # by quote: whether a backslash escapes inside
        self._marks = marker_search((*self._escapes, *"[](){}", *until))
        self._plain = _PLAIN_BARE if literals.bare_keys else _PLAIN  # what may stand between the marks
        self._until = until
        self._depth = 0  # the number of open brackets
        self._quote = ""  # around the string that is read; empty: none is

    def push(self, text: str, position: int) -> int:
        """Read on from a position; return the position where reading stopped.

        It stops before one of ``until``, after the last bracket, before a character that cannot be part of a value,
        before a possible quotation mark or escape that is incomplete, or at the end of the text.
        """
        while not self.done and self.problem is None:
            before = position
            position = self._string(text, position) if self._quote else self._outside(text, position)
            if position == before:
                break
        return position

    def _outside(self, text: str, position: int) -> int:
        """Read on outside of strings, to the next quote, bracket or end; return where reading stopped."""
        end, mark = self._marks.search(text, position, final=False)
        plain = self._plain.match(text, position, end)
        if plain is None or plain.end() < end:
            position = plain.end() if plain else position
            self.problem = f"{text[position]!r} is not valid in a value"
            return position
        if not mark:
            return end
        if mark in self._escapes:
            self._quote = mark
        elif mark in _PAIRS:
            self._depth += 1
            if self._depth > MAX_DEPTH:
                self.problem = "the arguments are nested too deeply"
        elif self._depth == 0:  # one of `until`, or a bracket that closes what is around the value
            self.done = True
            return end
        elif mark in _CLOSING:
            self._depth -= 1
            self.done = self._depth == 0 and not self._until
        return end + len(mark)

    def _string(self, text: str, position: int) -> int:
        """Read on inside a string, to its end or over an escape; return where reading stopped."""
        quote = self._quote
        marks = marker_search((quote, "\\")) if self._escapes[quote] else marker_search((quote,))
        end, mark = marks.search(text, position, final=False)
        if mark == quote:
            self._quote = ""
        elif mark:  # a backslash escapes the next character
            return end + 2 if end + 2 <= len(text) else end
        return end + len(mark)


def read_literal(text: str, literals: Literals) -> Any:
    """Return the value of a literal, as `ast.literal_eval` does, but with lists for tuples and sets.

    It refuses what has no value in JSON (bytes, keys that are no strings), repeated keys, and strings side by side,
    between which a comma may be missing.

    Raises:
        ValueError: the text is not a literal.
    """
    reader = _LiteralParser(text, literals)
    value = reader.value(0)
    reader.space()
    if reader.at < len(text):
        raise ValueError(f"{text[reader.at : reader.at + 20]!r} follows a value")
    return _without_tuples(value)


def _without_tuples(value: Any) -> Any:
    """Return a value with lists for its tuples."""
    if isinstance(value, (list, tuple)):
        return [_without_tuples(item) for item in value]
    if isinstance(value, dict):
        return {key: _without_tuples(item) for key, item in value.items()}
    return value


class LiteralReader:
    """Reader of one literal from a buffer of text that arrives in pieces.

    Args:
        literals: how strings look.
        until: see `LiteralScanner`.

    Attributes:
        problem: reason why the text is not a literal, or None. The text is then back in the buffer.
        pieces: the text that was taken so far.
        text: the literal.
        value: its value.
        json: the value as JSON.
    """

    def __init__(self, literals: Literals, until: str) -> None:
        self.problem: str | None = None
        self.text = self.json = ""
        self.value: Any = None
        self._literals = literals
        self._scanner = LiteralScanner(literals, until)
        self.pieces: list[str] = []

    def take(self, buffer: TextBuffer) -> bool:
        """Take the next piece of the literal; return True if it has ended, with a value or a problem."""
        scanner = self._scanner
        self.pieces.append(buffer.take(scanner.push(buffer.text, buffer.position)))
        self.problem = scanner.problem
        if self.problem is None and not scanner.done:
            return False
        self.text = "".join(self.pieces)
        if self.problem is None:
            try:
                self.value = read_literal(self.text, self._literals)
                self.json = dump_json(self.value)
            except (ValueError, RecursionError) as error:
                self.problem = str(error)
        if self.problem is not None:
            buffer.unread(self.text)
        return True


class _LiteralParser:
    """Recursive descent over a whole literal, from ``at`` on; its methods raise `ValueError` where it is none.

    Tuples are tuples until the whole is read: only what Python can hash may stand in a set.
    """

    def __init__(self, text: str, literals: Literals) -> None:
        self.text = text
        self.at = 0
        self._literals = literals

    def space(self) -> None:
        match = _SPACE.match(self.text, self.at)
        self.at = match.end() if match else self.at

    def value(self, depth: int) -> Any:
        """Return the value that begins here; a set is a list.

        Raises:
            ValueError: there is none, or it is nested too deeply.
        """
        if depth > MAX_DEPTH:
            raise ValueError("the arguments are nested too deeply")
        self.space()
        char = self.text[self.at : self.at + 1]
        is_string, value = self._string()
        if is_string:
            return value
        if char == "{":
            return self._object(depth)
        if char == "[":
            return self._items(char, depth)[0]
        if char == "(":
            items, has_comma = self._items(char, depth)
            return items[0] if len(items) == 1 and not has_comma else tuple(items)  # "(1)" is 1, "(1,)" a tuple
        word = _WORD.match(self.text, self.at)
        if word is not None and word.group() in _WORDS:
            self.at = word.end()
            return _WORDS[word.group()]
        number = _NUMBER.match(self.text, self.at)
        if number is None:
            raise ValueError(f"{self.text[self.at : self.at + 20]!r} is not a valid value")
        self.at = number.end()
        return _number(number.group())

    def _string(self) -> tuple[bool, str]:
        """Return True and the string that begins here, or False and nothing."""
        for quote, escapes in self._literals.quotes:
            if self.text.startswith(quote, self.at):
                return True, self._body(quote, escapes)
        return False, ""

    def _body(self, quote: str, escapes: bool) -> str:
        """Return the string that begins with this quote; ``escapes``: a backslash in it escapes."""
        start = self.at = self.at + len(quote)
        pattern = re.compile(rf"\\[\s\S]|{re.escape(quote)}") if escapes else re.compile(re.escape(quote))
        for match in pattern.finditer(self.text, start):
            if match.group() == quote:
                body = self.text[start : match.start()]
                self.at = match.end()
                return unescaped(body) if escapes else body
        raise ValueError("a string is not closed")

    def _items(self, opening: str, depth: int) -> tuple[list[Any], bool]:
        """Return the items of the list, tuple or set that begins here with this bracket, and whether a comma follows
        the last."""
        closing = _PAIRS[opening]
        self.at += 1
        items: list[Any] = []
        while not self._take(closing):
            items.append(self.value(depth + 1))
            if not self._take(","):
                self._expect(closing)
                return items, False
        return items, bool(items)

    def _set(self, depth: int) -> list[Any]:
        """Return the items of the set that begins here, each once."""
        try:
            return list(dict.fromkeys(self._items("{", depth)[0]))
        except TypeError:
            raise ValueError("a set contains a list, an object or a set") from None

    def _object(self, depth: int) -> Any:
        """Return the object, or the set as a list, that begins here: ``{"a": 1}``, ``{1, 2} -> [1, 2]``."""
        start = self.at
        self.at += 1
        members: dict[str, Any] = {}
        while not self._take("}"):
            key = self._key()
            if not members and (key is None or self._is_followed_by(",}")):
                self.at = start
                return self._set(depth)
            if key is None:
                raise self._invalid_key()
            if key in members:
                raise ValueError(f"the key {key!r} is repeated")
            self._expect(":")
            members[key] = self.value(depth + 1)
            if not self._take(","):
                self._expect("}")
                break
        return members

    def _key(self) -> str | None:
        """Return the key that begins here: a string, or a bare one; None: there is none, but perhaps an item of a set.

        Raises:
            ValueError: there is a key without quotes, where keys have quotes.
        """
        self.space()
        is_string, key = self._string()
        if is_string:
            return key
        bare = _BARE_KEY.match(self.text, self.at)
        if self._literals.bare_keys and bare is not None:
            self.at = bare.end()
            return bare.group()
        if bare is not None and self.text.startswith(":", bare.end()):
            raise self._invalid_key()
        return None

    def _invalid_key(self) -> ValueError:
        return ValueError(f"{self.text[self.at : self.at + 20]!r} is not a valid key")

    def _is_followed_by(self, chars: str) -> bool:
        self.space()
        return self.text[self.at : self.at + 1] in tuple(chars)

    def _take(self, char: str) -> bool:
        self.space()
        if self.text.startswith(char, self.at):
            self.at += 1
            return True
        return False

    def _expect(self, char: str) -> None:
        if not self._take(char):
            raise ValueError(f"expected {char!r}, found {self.text[self.at : self.at + 20]!r}")


def unescaped(body: str) -> str:
    """Return the string that a literal's text between its quotes stands for.

    Raises:
        ValueError: an escape in it is not a character.
    """
    return _joined(_ESCAPE.sub(_unescape, body)) if "\\" in body else body


def _number(text: str) -> int | float:
    """Return the value of a number (`_NUMBER`).

    Raises:
        ValueError: it is too large.
    """
    plain = text.replace("_", "")
    if plain.lstrip("-+").isdigit():
        if len(plain) > 4300:  # Python's own bound for what is read as an integer
            raise ValueError("a number is too long")
        return int(plain)
    value = float(plain)
    if value in (float("inf"), float("-inf")):
        raise ValueError(f"the number {text[:20]} is too large")
    return value


def _joined(text: str) -> str:
    """Return a text whose pairs of surrogates, JSON's escapes of one character, are that character."""
    if not any("\ud800" <= char <= "\udfff" for char in text):
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")


def _unescape(match: re.Match[str]) -> str:
    """Return the character of an escape (`_ESCAPE`): a code point in hexadecimal (groups 1 to 3) or octal (4), nothing
    for a continued line (5), the name of a character (6), or a single character (7)."""
    code = match[1] or match[2] or match[3]
    if code is not None:
        if int(code, 16) > 0x10FFFF:
            raise ValueError(f"the escape {match.group()} is not a valid character")
        return chr(int(code, 16))
    if match[4] is not None:
        return chr(int(match[4], 8))
    if match[5] is not None:
        return ""
    if match[6] is not None:
        try:
            return unicodedata.lookup(match[6])
        except KeyError:
            raise ValueError(f"the escape {match.group()} is not a valid character") from None
    return _SIMPLE.get(match[7], match.group())
