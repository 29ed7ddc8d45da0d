r"""Regular expressions of Rust's ``regex`` crate, which Pydantic reads ``pattern`` with: text to syntax tree.

Differences from ECMA-262: ``\d``, ``\w``, ``\s`` and ``\b`` follow Unicode (UTS 18, annex C), ``.`` matches all
characters except the line feed, ``\A`` and ``\z`` are the ends of the text, flags may be set inside (``(?i)``,
``(?s:...)``, ``(?x)``), classes may be nested, intersected and subtracted. There are no look-arounds and no
back-references.
"""

from __future__ import annotations

import re
from typing import Final, NoReturn

from ..unicode.charset import CharSet
from ..unicode.properties import loose_property
from .parser import MAX_NESTING, Group, PatternParser
from .syntax import Chars, End, Regex, Start, boundary

_FLAGS = re.compile(r"\(\?([a-zA-Z]*)(-[a-zA-Z]*)?([:)])")
_NAMED = re.compile(r"\(\?P?<([A-Za-z_\u0080-\U0010ffff][\w.\[\]]*)>")
_COUNTS = re.compile(r"\{\s*([0-9]+)\s*(?:(,)\s*([0-9]*)\s*)?\}")
_POSIX = re.compile(r"\[:(\^?)([a-z]+):\]")
_PROPERTY = re.compile(r"\{\s*([^{}]+?)\s*\}|([A-Za-z])")
_CONTROLS: Final = {"a": 7, "f": 12, "t": 9, "n": 10, "r": 13, "v": 11}
_HEX: Final = {"x": 2, "u": 4, "U": 8}
_NEWLINE: Final = CharSet.of("\n")


def _ascii(*ranges: str) -> CharSet:
    return CharSet([(ord(span[0]), ord(span[-1])) for span in ranges])


_POSIX_CLASSES: Final = {
    "alnum": _ascii("09", "AZ", "az"),
    "alpha": _ascii("AZ", "az"),
    "ascii": CharSet.range(0, 0x7F),
    "blank": CharSet.of("\t "),
    "cntrl": CharSet([(0, 0x1F), (0x7F, 0x7F)]),
    "digit": _ascii("09"),
    "graph": _ascii("!~"),
    "lower": _ascii("az"),
    "print": _ascii(" ~"),
    "punct": _ascii("!/", ":@", "[`", "{~"),
    "space": CharSet.of("\t\n\v\f\r "),
    "upper": _ascii("AZ"),
    "word": _ascii("09", "AZ", "az", "__"),
    "xdigit": _ascii("09", "AF", "af"),
}


def perl_class(letter: str) -> CharSet:
    r"""Return the characters of ``\d``, ``\s`` or ``\w`` in Unicode (UTS 18, annex C)."""
    names = {"d": "Nd", "s": "White_Space", "w": "Alphabetic M Nd Pc Join_Control"}[letter]
    charsets = [loose_property(name) for name in names.split()]
    return CharSet.empty().union(*[charset for charset in charsets if charset is not None])


def parse(pattern: str) -> Regex:
    """Return the syntax tree of a pattern.

    Raises:
        PatternError: it is malformed.
        UnsupportedPatternError: it has flags or assertions that are not read.
        LimitError: groups are nested too deeply, or a count is too large.
    """
    return _Parser(pattern).parse()


class _Parser(PatternParser):
    """Parser of ECMA-262, with what Rust reads in another way."""

    terminators = _NEWLINE
    dot = Chars(~_NEWLINE)
    counts = _COUNTS

    def fail(
        self, message: str, hint: str = "write a regular expression that Pydantic takes", offset: int | None = None
    ) -> NoReturn:
        super().fail(f"{message} in {self.text!r}", hint, offset)

    def refuse(self, message: str, hint: str, offset: int | None = None) -> NoReturn:
        super().refuse(f"{message} in {self.text!r}", hint, offset)

    def plain(self, character: str) -> None:
        """Read an anchor, the dot, or a character that stands for itself; under the flag ``x``, white space and
        comments are skipped."""
        if "x" in self.flags and (character.isspace() or character == "#"):
            self.skip()
        else:
            super().plain(character)

    def skip(self) -> None:
        """Skip white space or a comment, under the flag ``x``."""
        if self.text[self.offset] == "#":
            end = self.text.find("\n", self.offset)
            self.offset = len(self.text) if end < 0 else end
        else:
            self.offset += 1

    # -- groups ----------------------------------------------------------------------------------------------------

    def open_group(self) -> None:
        """Read the beginning of a group and put it on the stack; flags without a group, ``(?i)``, hold for the rest of
        the group around them."""
        start, text = self.offset, self.text
        if len(self.groups) > MAX_NESTING:
            self.limit(f"groups are nested more than {MAX_NESTING} deep", "flatten the pattern")
        flags = self.flags
        if not text.startswith("(?", start):
            self.offset += 1
        elif (named := _NAMED.match(text, start)) is not None:
            self.offset = named.end()
        elif (match := _FLAGS.match(text, start)) is not None and (match[1] or match[2] or match[3] == ":"):
            self.flags = self.with_flags(match[1], (match[2] or "")[1:])
            self.offset = match.end()
            if match[3] == ")":
                return  # they hold for the rest of this group
        else:
            self.fail("Rust has no group of this kind", "look-arounds and references need regex_engine='python-re'")
        self.groups.append(Group(start, flags))

    def with_flags(self, on: str, off: str) -> frozenset[str]:
        """Return the flags after some are set, and some are cleared; ``U`` and ``u`` change nothing that is read."""
        for letter in on + off:
            if letter not in "imsxUu" or (letter == "u" and letter in off):
                self.refuse(f"the flag {letter!r} is not supported", "leave it out")
        return (self.flags | set(on)) - set(off)

    # -- repetition ------------------------------------------------------------------------------------------------

    def lone_brace(self) -> None:
        """Refuse ``{`` that begins no count."""
        self.fail("a count is malformed", r"write {n}, {n,} or {n,m}, or \{ for the character itself")

    def check_repeatable(self, group: Group, end: int) -> None:
        """Refuse a repetition of nothing; unlike in ECMA-262, a repetition may be repeated."""
        if not group.items:
            self.fail("nothing to repeat")

    # -- escapes ---------------------------------------------------------------------------------------------------

    def atom_escape(self) -> None:
        """Read an escape outside of a class, an assertion or characters."""
        letter = self.text[self.offset + 1 : self.offset + 2]
        if letter in ("A", "z"):
            self.offset += 2
            self.add(Start() if letter == "A" else End())
        elif letter in ("b", "B"):
            if self.text.startswith(r"\b{", self.offset):
                self.refuse(r"assertions like \b{start} are not supported", r"write \b")
            self.offset += 2
            self.add(boundary(perl_class("w"), negated=letter == "B"))
        elif letter in ("<", ">"):
            self.refuse(rf"the assertion \{letter} is not supported", r"write \b")
        else:
            is_class = letter != "" and letter in "dDsSwWpP"
            self.add(Chars(self.class_escape() if is_class else self.folded(self.literal())), 1)

    def class_escape(self) -> CharSet:
        r"""Read ``\d``, ``\p{...}`` and their like."""
        letter = self.text[self.offset + 1]
        self.offset += 2
        negated = letter.isupper()
        if letter in "dDsSwW":
            charset = perl_class(letter.lower())
        else:
            named = _PROPERTY.match(self.text, self.offset)
            property_ = None if named is None else loose_property(named[1] or named[2])
            if named is None or property_ is None:
                self.fail("unknown character property")
            self.offset = named.end()
            charset = property_
        charset = self.folded(charset)
        return ~charset if negated else charset

    def literal(self) -> CharSet:
        """Read an escape that is one character; return its set. An escaped letter without a meaning is an error."""
        text, start = self.text, self.offset
        letter = text[start + 1 : start + 2]
        self.offset += 2
        if letter in _CONTROLS:
            return CharSet.range(_CONTROLS[letter], _CONTROLS[letter])
        if letter in _HEX:
            match = re.compile(rf"\{{\s*([0-9A-Fa-f]+)\s*\}}|([0-9A-Fa-f]{{{_HEX[letter]}}})").match(text, self.offset)
            if match is None or int(match[1] or match[2], 16) > 0x10FFFF:
                self.fail("a code point is malformed")
            self.offset = match.end()
            code = int(match[1] or match[2], 16)
            return CharSet.range(code, code)
        if not letter or not letter.isascii() or letter.isalnum() or letter in "<>":
            self.offset = start
            self.fail(f"\\{letter} is not a valid escape in Rust's regex syntax")
        return CharSet.of(letter)

    # -- classes ---------------------------------------------------------------------------------------------------

    def character_class(self, depth: int = 0) -> CharSet:
        """Read a class in brackets; return its characters. Classes nest, and ``&&``, ``--`` and ``~~`` combine all
        members before them with those after them, from left to right. ``depth`` is the number of classes around it."""
        start, text = self.offset, self.text
        if depth > MAX_NESTING:
            self.limit(f"classes are nested more than {MAX_NESTING} deep", "flatten the pattern")
        self.offset += 1
        self.skip_inside()
        negated = text.startswith("^", self.offset)
        self.offset += negated
        self.skip_inside()
        result: CharSet | None = None
        operation = ""
        current = CharSet.empty()
        first = True
        while True:
            self.skip_inside()
            if self.offset >= len(text):
                self.offset = start
                self.fail("a character class is never closed")
            here = text[self.offset]
            pair = text[self.offset : self.offset + 2]
            if here == "]" and not first:
                self.offset += 1
                break
            if pair in ("&&", "--", "~~") and not (first and pair == "--"):
                result, operation, current = _combined(result, operation, current), pair, CharSet.empty()
                self.offset += 2
                first = False
                continue
            first = False
            posix = _POSIX.match(text, self.offset)
            if posix is not None and posix[2] in _POSIX_CLASSES:
                self.offset = posix.end()
                charset = self.folded(_POSIX_CLASSES[posix[2]])
                current = current | (~charset if posix[1] else charset)
            elif here == "[":
                current = current | self.character_class(depth + 1)
            elif here == "\\" and pair[1:] and pair[1] in "dDsSwWpP":
                current = current | self.class_escape()
            else:
                current = current | self.member()
        charset = _combined(result, operation, current)
        return ~charset if negated else charset

    def skip_inside(self) -> None:
        while "x" in self.flags and self.offset < len(self.text) and self.text[self.offset] in " \t\n\r\v\f#":
            self.skip()

    def member(self) -> CharSet:
        """Read one character of a class, or a range of them."""
        text = self.text
        low = self.class_character()
        self.skip_inside()
        after = text[self.offset + 1 : self.offset + 2]
        if not text.startswith("-", self.offset) or after in ("", "]", "-"):
            return self.folded(low)
        self.offset += 1
        self.skip_inside()
        end = text[self.offset : self.offset + 2]
        if not end or end[0] == "[" or (end[0] == "\\" and end[1:] in tuple("dDsSwWpP")):
            self.fail("the end of a range is one character")
        high = self.class_character()
        if low.first > high.first:
            self.fail("the ends of a range are out of order")
        return self.folded(CharSet([(low.first, high.first)]))

    def class_character(self) -> CharSet:
        if self.text[self.offset] == "\\":
            if self.text[self.offset + 1 : self.offset + 2] in ("b", "B", "A", "z"):
                self.fail("an assertion is not valid inside of a character class")
            return self.literal()
        self.offset += 1
        return CharSet.of(self.text[self.offset - 1])


def _combined(left: CharSet | None, operation: str, right: CharSet) -> CharSet:
    if left is None:
        return right
    return {"&&": left & right, "--": left - right, "~~": left ^ right}[operation]
