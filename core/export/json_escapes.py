"""The spellings of characters in JSON strings (RFC 8259, section 7), as expressions."""

from __future__ import annotations

from functools import lru_cache

from ..text_grammars.expressions import Chars, Expression, Literal, choice, sequence
from ..unicode.charset import CharSet

_PLAIN = CharSet(((0x20, 0x21), (0x23, 0x5B), (0x5D, 0x10FFFF)))
_SHORT = {'"': '"', "\\": "\\", "/": "/", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_BASIC, _BEYOND = CharSet(((0, 0xFFFF),)), CharSet(((0x10000, 0x10FFFF),))


@lru_cache(maxsize=512)
def spelled(charset: CharSet) -> Expression:
    """Return the texts of one character of a set inside of a JSON string: itself, or an escape."""
    ways: list[Expression] = [Chars(plain)] if (plain := charset & _PLAIN) else []
    letters = "".join(letter for letter, char in _SHORT.items() if ord(char) in charset)
    escapes: list[Expression] = [Chars(CharSet.of(letters))] if letters else []
    for low, high in (charset & _BASIC).ranges:
        escapes.append(sequence(Literal("u"), _hexadecimal(low, high, 4)))
    for low, high in (charset & _BEYOND).ranges:
        escapes.append(_pairs(low - 0x10000, high - 0x10000))
    return choice(*ways, sequence(Literal("\\"), choice(*escapes)))


def _digits(low: int, high: int) -> Chars:
    letters = "".join(f"{digit:x}{digit:X}" for digit in range(low, high + 1))
    return Chars(CharSet.of(letters))


def _hexadecimal(low: int, high: int, digits: int) -> Expression:
    """Return the numbers of a range in hexadecimal, of so many digits."""
    if digits == 1:
        return _digits(low, high)
    unit = 16 ** (digits - 1)
    first, last = low // unit, high // unit
    if first == last:
        return sequence(_digits(first, first), _hexadecimal(low % unit, high % unit, digits - 1))
    ways: list[Expression] = []
    if low % unit:
        ways.append(sequence(_digits(first, first), _hexadecimal(low % unit, unit - 1, digits - 1)))
        first += 1
    tail: list[Expression] = []
    if high % unit != unit - 1:
        tail.append(sequence(_digits(last, last), _hexadecimal(0, high % unit, digits - 1)))
        last -= 1
    if first <= last:
        ways.append(sequence(_digits(first, last), *[_digits(0, 15)] * (digits - 1)))
    return choice(*ways, *tail)


def _pairs(low: int, high: int) -> Expression:
    """Return the surrogate pairs of a range of code points, less 0x10000, without the first backslash."""

    def pair(first: int, last: int, start: int, end: int) -> Expression:
        upper = _hexadecimal(0xD800 + first, 0xD800 + last, 4)
        return sequence(Literal("u"), upper, Literal("\\u"), _hexadecimal(0xDC00 + start, 0xDC00 + end, 4))

    first, last = low >> 10, high >> 10
    if first == last:
        return pair(first, last, low & 0x3FF, high & 0x3FF)
    ways: list[Expression] = []
    if low & 0x3FF:
        ways.append(pair(first, first, low & 0x3FF, 0x3FF))
        first += 1
    if high & 0x3FF != 0x3FF:
        ways.append(pair(last, last, 0, high & 0x3FF))
        last -= 1
    if first <= last:
        ways.append(pair(first, last, 0, 0x3FF))
    return choice(*ways)
