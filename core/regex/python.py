r"""Regular expressions of Python's ``re``: text to syntax tree, by way of Python's own parser.

Differences from ECMA-262: ``\d``, ``\w``, ``\s`` and ``\b`` follow Unicode unless the flag ``a`` is set, ``.`` matches
all characters except the line feed, ``$`` also matches before a final line feed, ``\A`` and ``\Z`` are the ends of the
text, and flags may be set inside. Back-references and conditions are refused, as they are not regular, and so are
atomic groups and possessive repetition, as they do not backtrack.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any

from ..errors import PatternError, Place, UnsupportedPatternError
from ..unicode.casefold import fold
from ..unicode.charset import CharSet
from ..unicode.properties import find_property
from .parser import DIGIT, WORD
from .rust import perl_class
from .syntax import Alt, Chars, End, Look, Regex, Repeat, Seq, Start, boundary, in_a_row, line_anchor

try:
    from re import _parser as _python  # type: ignore[attr-defined]
except ImportError:  # Python 3.10
    import sre_parse as _python

_NEWLINE = CharSet.of("\n")
_ASCII_SPACE = CharSet.of(" \t\n\r\f\v")
_REFUSED = {
    "GROUPREF": "back-references are not regular",
    "GROUPREF_EXISTS": "conditions on groups are not supported",
    "ATOMIC_GROUP": "atomic groups are not supported",
    "POSSESSIVE_REPEAT": "possessive repetition is not supported",
}


def parse(pattern: str | re.Pattern[str]) -> Regex:
    """Return the syntax tree of a pattern, with the flags of a compiled one.

    Raises:
        PatternError: it is malformed.
        UnsupportedPatternError: it is not regular, or has atomic groups or possessive repetition.
    """
    text, flags = (pattern, 0) if isinstance(pattern, str) else (pattern.pattern, pattern.flags)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            parsed = _python.parse(text, flags)
    except (re.error, OverflowError, RecursionError) as error:
        raise PatternError(
            f"{str(error) or 'it is nested too deeply'} in {text!r}",
            hint="write a regular expression that Python's re accepts",
            place=Place(offset=getattr(error, "pos", None)),
        ) from None
    return _PatternTranslator(text).sequence(parsed, parsed.state.flags)


@cache
def unicode_class(letter: str) -> CharSet:
    r"""Return the characters of ``\d``, ``\s`` or ``\w``: of ``str.isdecimal``, ``isspace`` and ``isalnum``."""
    if letter == "s":
        return perl_class("s") | CharSet.range(0x1C, 0x1F)
    charsets = [find_property(name) for name in ("Nd" if letter == "d" else "L N").split()]
    named = CharSet.empty().union(*[charset for charset in charsets if charset is not None])
    return named | CharSet.of("_") if letter == "w" else named


class _PatternTranslator:
    """Translator of what Python's own parser returns; ``text`` is the pattern, for errors."""

    def __init__(self, text: str) -> None:
        self.text = text

    def sequence(self, items: Iterable[Any], flags: int) -> Regex:
        """Return the tree of items one after the other."""
        return in_a_row([self.item(str(operation), value, flags) for operation, value in items])

    def item(self, operation: str, value: Any, flags: int) -> Regex:
        """Return the tree of one operation of Python's own parser (``re._parser``), ``value`` being its argument.
        ``flags`` are those that hold there."""
        if operation == "LITERAL":
            return Chars(self.folded(CharSet.range(value, value), flags))
        if operation == "NOT_LITERAL":
            return Chars(~self.folded(CharSet.range(value, value), flags))
        if operation == "ANY":
            return Chars(CharSet.full() if flags & re.DOTALL else ~_NEWLINE)
        if operation == "IN":
            return Chars(self.members(value, flags))
        if operation == "BRANCH":
            return Alt(tuple(self.sequence(option, flags) for option in value[1]))
        if operation == "SUBPATTERN":
            _, added, removed, inner = value
            return self.sequence(inner, (flags | added) & ~removed)
        if operation in ("MAX_REPEAT", "MIN_REPEAT"):
            least, most, inner = value
            return Repeat(self.sequence(inner, flags), least, None if str(most) == "MAXREPEAT" else int(most))
        if operation in ("ASSERT", "ASSERT_NOT"):
            direction, inner = value
            return Look(ahead=direction > 0, negated=operation == "ASSERT_NOT", item=self.sequence(inner, flags))
        if operation == "AT":
            return self.anchor(str(value), flags)
        if operation == "FAILURE":
            return Chars(CharSet.empty())
        raise UnsupportedPatternError(
            f"{_REFUSED.get(operation, f'{operation.lower()} is not supported')} in {self.text!r}",
            hint="write the pattern without it, or check the value in a validator",
            place=Place(offset=0),
        )

    def anchor(self, kind: str, flags: int) -> Regex:
        """Return the tree of an anchor or a word boundary; ``kind`` is Python's own name of it."""
        multiline = bool(flags & re.MULTILINE)
        if kind == "AT_BEGINNING":
            return line_anchor("^", _NEWLINE) if multiline else Start()
        if kind == "AT_BEGINNING_STRING":
            return Start()
        if kind == "AT_END":  # also before a line feed that ends the text
            if multiline:
                return line_anchor("$", _NEWLINE)
            return Alt((End(), Look(ahead=True, negated=False, item=Seq((Chars(_NEWLINE), End())))))
        if kind == "AT_END_STRING":
            return End()
        word = WORD if flags & re.ASCII else unicode_class("w")
        return boundary(word, negated="NON_BOUNDARY" in kind)

    def members(self, items: Sequence[Any], flags: int) -> CharSet:
        """Return the characters of a class, from the items of Python's own parser."""
        negated = bool(items) and str(items[0][0]) == "NEGATE"
        charset = CharSet.empty()
        for operation, value in items[1:] if negated else items:
            if str(operation) == "LITERAL":
                charset = charset | CharSet.range(value, value)
            elif str(operation) == "RANGE":
                charset = charset | CharSet.range(*value)
            else:
                charset = charset | self.category(str(value), flags)
        charset = self.folded(charset, flags)
        return ~charset if negated else charset

    def category(self, name: str, flags: int) -> CharSet:
        """Return the characters of a category of Python's own parser, such as ``CATEGORY_NOT_DIGIT``."""
        kind = {"DIGIT": "d", "SPACE": "s", "WORD": "w"}[name.rpartition("_")[2]]
        if flags & re.ASCII:
            charset = {"d": DIGIT, "s": _ASCII_SPACE, "w": WORD}[kind]
        else:
            charset = unicode_class(kind)
        return ~charset if "NOT" in name else charset

    def folded(self, charset: CharSet, flags: int) -> CharSet:
        return fold(charset, ascii_only=bool(flags & re.ASCII)) if flags & re.IGNORECASE else charset
