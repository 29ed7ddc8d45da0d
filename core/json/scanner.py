"""`JsonScanner`: recogniser of one JSON value in text that arrives in pieces."""

from __future__ import annotations

import re

from .text import SPACE, SPACES

_PLAIN = re.compile(r'[^"\\\x00-\x1f]*')
_TOKEN = re.compile(r"[-+.0-9A-Za-z]*")
_SCALAR = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?|true|false|null")
_HEX = frozenset("0123456789abcdefABCDEF")


class _ScanError(Exception):
    """The reason why the text is not JSON, and its position."""

    def __init__(self, problem: str, position: int | None = None) -> None:
        super().__init__(problem)
        self.position = position


class JsonScanner:
    """A pushdown recogniser of one JSON value; strict (RFC 8259).

    Call `push` with pieces until `done` or ``problem``. The result depends on the text alone, not on how it is split.

    Attributes:
        done: the value is complete.
        problem: why the text is not JSON, or None.
    """

    def __init__(self) -> None:
        self.done = False
        self.problem: str | None = None
        self._stack: list[str] = []
        self._expect = "value"
        self._token: list[str] = []
        self._hex_left = 0
        self._is_key = False

    def push(self, text: str, position: int) -> int:
        """Read ``text`` from ``position``; return the position of the end of the text, after the value, or of the first
        character that is not JSON.
        """
        try:
            while position < len(text) and not self.done and self.problem is None:
                position = self._step(text, position)
        except _ScanError as error:
            self.problem = str(error)
            return position if error.position is None else error.position
        return position

    def _step(self, text: str, position: int) -> int:
        """Read from a position what ``_expect`` names; return the position after it. Runs of spaces, plain characters
        and scalars are read at once; an escape, one character at a time, because the text may end within it."""
        expect, char = self._expect, text[position]
        if expect == "string":
            return self._string(text, position)
        if expect == "escape":
            if char not in '"\\/bfnrtu':
                raise _ScanError(f"bad escape \\{char}")
            self._hex_left = 4 if char == "u" else 0
            self._expect = "hex" if char == "u" else "string"
        elif expect == "hex":
            if char not in _HEX:
                raise _ScanError("bad \\u escape")
            self._hex_left -= 1
            if not self._hex_left:
                self._expect = "string"
        elif expect == "token":
            end = _end(_TOKEN, text, position)
            self._token.append(text[position:end])
            if end < len(text):
                self._end_token(end)
            return end
        elif char in SPACE:
            return _end(SPACES, text, position)
        elif expect in ("value", "value or ]"):
            return self._value(char, text, position)
        elif expect in ("key", "key or }"):
            self._key(char)
        elif expect == ":":
            if char != ":":
                raise _ScanError(f"expected ':' after a key, found {char!r}")
            self._expect = "value"
        else:
            self._after_value(char)
        return position + 1

    def _string(self, text: str, position: int) -> int:
        """Read characters of a string up to its closing quote, the next backslash or the end of the text; a raw control
        character is an error."""
        end = _end(_PLAIN, text, position)
        if end == len(text):
            return end
        char = text[end]
        if char == "\\":
            self._expect = "escape"
        elif char == '"':
            if self._is_key:
                self._is_key = False
                self._expect = ":"
            else:
                self._end_value()
        else:
            raise _ScanError(f"raw control character {char!r} in a string", end)
        return end + 1

    def _value(self, char: str, text: str, position: int) -> int:
        """Read the first character of a value, or the end of an empty array; return the position after it. A number,
        ``true``, ``false`` or ``null`` is left unread: it is collected as a token."""
        if char == "]" and self._expect == "value or ]":
            self._stack.pop()
            self._end_value()
        elif char == "{":
            self._stack.append(char)
            self._expect = "key or }"
        elif char == "[":
            self._stack.append(char)
            self._expect = "value or ]"
        elif char == '"':
            self._expect = "string"
        elif char == "-" or (char.isascii() and char.isalnum()):
            self._token = []
            self._expect = "token"
            return position
        else:
            raise _ScanError(f"expected a value, found {char!r}")
        return position + 1

    def _key(self, char: str) -> None:
        """Read the opening quote of a key, or the end of an empty object."""
        if char == '"':
            self._is_key = True
            self._expect = "string"
        elif char == "}" and self._expect == "key or }":
            self._stack.pop()
            self._end_value()
        else:
            raise _ScanError(f"expected a key, found {char!r}")

    def _after_value(self, char: str) -> None:
        """Read the comma or the closing bracket after a value in the innermost open array or object."""
        opened = self._stack[-1]
        if char == ",":
            self._expect = "key" if opened == "{" else "value"
        elif char == ("}" if opened == "{" else "]"):
            self._stack.pop()
            self._end_value()
        else:
            raise _ScanError(f"expected ',' or the end of the {'object' if opened == '{' else 'array'}, found {char!r}")

    def _end_token(self, position: int) -> None:
        token = "".join(self._token)
        if not _SCALAR.fullmatch(token):
            raise _ScanError(f"{token[:20]!r} is not a JSON value", position)
        self._end_value()

    def _end_value(self) -> None:
        if self._stack:
            self._expect = "after"
        else:
            self.done = True


def _end(pattern: re.Pattern[str], text: str, position: int) -> int:
    """Return the end of the match of a pattern that also matches the empty string."""
    match = pattern.match(text, position)
    return match.end() if match else position
