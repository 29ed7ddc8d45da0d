"""Cursor over the text of a grammar, whose errors show the line and point to the place."""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import NoReturn

from ..errors import GrammarError, Place

#: Maximum length of the line that an error shows, in characters.
MAX_SHOWN = 100


#: Maximum number of digits of a number.
MAX_DIGITS = 18

_SURROGATE = re.compile("[\ud800-\udfff]")


class Source:
    """The text of a grammar, and a position in it.

    Args:
        text: the text.
        slips: the hint for each text that is right in another notation, where this one expects something else.

    Attributes:
        text: the text.
        position: index of the next character.
    """

    def __init__(self, text: str, slips: Mapping[str, str] = MappingProxyType({})) -> None:
        self._slips = slips
        if not isinstance(text, str):
            raise GrammarError(f"a grammar is text, not {type(text).__name__}", hint="pass the source as a str")
        self.text = text
        self.position = 0
        if surrogate := _SURROGATE.search(text):
            self.fail(
                "a lone surrogate is not a character", at=surrogate.start(), hint="pass text that UTF-8 can encode"
            )

    @property
    def rest_is_empty(self) -> bool:
        """True at the end of the text."""
        return self.position >= len(self.text)

    def peek(self, count: int = 1) -> str:
        """Return the next characters, fewer at the end."""
        return self.text[self.position : self.position + count]

    def take(self, expected: str) -> bool:
        """Advance past a text, if it comes next."""
        if not self.text.startswith(expected, self.position):
            return False
        self.position += len(expected)
        return True

    def match(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        """Advance past a match, if there is one at the position."""
        match = pattern.match(self.text, self.position)
        if match is not None:
            self.position = match.end()
        return match

    def number(self, digits: str, at: int) -> int:
        """Return a whole number that was read; ``at`` is its place."""
        if len(digits) > MAX_DIGITS:
            self.fail(f"the number has {len(digits):,} digits", at=at, hint=f"write at most {MAX_DIGITS}")
        return int(digits)

    def expect(self, expected: str, after: str) -> None:
        """Advance past a text that has to come next.

        Args:
            expected: the text.
            after: what it belongs to, for the error.
        """
        if not self.take(expected):
            self.fail(f"expected {expected!r} {after}")

    def place(self, at: int, keyword: str | None = None) -> Place:
        """Return the line and column of a place, with the keyword that is there."""
        start = self.text.rfind("\n", 0, at) + 1
        return Place(line=self.text.count("\n", 0, at) + 1, column=at - start + 1, keyword=keyword)

    def fail(self, message: str, *, at: int | None = None, hint: str | None = None) -> NoReturn:
        """Raise an error at an offset, with the message, the text found there, the line and a caret."""
        at = self.position if at is None else at
        if message.startswith("expected"):
            message += f", found {self.text[at]!r}" if at < len(self.text) else ", found the end of the text"
            if hint is None:
                rest = self.text[at : at + MAX_SHOWN].lstrip(" ")
                hint = next((said for slip, said in self._slips.items() if rest.startswith(slip)), None)
        start = self.text.rfind("\n", 0, at) + 1
        line = _SURROGATE.sub("\ufffd", self.text[start:].partition("\n")[0].rstrip("\r"))
        cut = max(0, at - start - MAX_SHOWN // 2)  # characters of a long line that are not shown
        shown = f"\n{line[cut : cut + MAX_SHOWN]}\n{' ' * (at - start - cut)}^\n"
        raise GrammarError(message + shown, hint=hint, place=self.place(at))
