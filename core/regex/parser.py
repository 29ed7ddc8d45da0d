r"""Parser of regular expressions of ECMA-262, the dialect of JSON Schema's ``pattern``: text to syntax tree.

The meaning is that of the ``u`` flag: characters are whole code points, ``\d`` is ``[0-9]``, ``\w`` is
``[A-Za-z0-9_]``, ``\s`` is ECMA's white space, ``.`` is all but the four line terminators, ``$`` is the very end.
Patterns in real schemas are sloppier than that flag allows. What the flag refuses is taken where it can only mean one
thing, as in Annex B of the standard (``\-``, ``\_``, a lone ``{`` or ``]``, ``[\w-.]``), or means one thing in every
dialect that has it: the flags of ``(?i)`` and ``(?s:...)``, which ECMA-262 has since 2025, ``(?P<name>...)``, ``\A``,
``\z``, and ``\Z``, which is Python's ``\z``. It is refused with a hint where dialects differ (``\h``, ``a++``,
``{,3}``, ``[[:alpha:]]``). Back-references are taken to groups of few words, or for a bound (``back_references.py``).
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final, NoReturn

from ..errors import LimitError, PatternError, Place, UnsupportedPatternError
from ..language.least_text import LOWER_COUNTS, MAX_LEAST_TEXT, too_long
from ..unicode.casefold import fold
from ..unicode.charset import CharSet
from ..unicode.properties import UNICODE_VERSION, find_property
from .back_references import MAX_WORDS, Bound, expanded
from .syntax import (
    Alt,
    BackReference,
    Capture,
    Chars,
    End,
    Look,
    Regex,
    Repeat,
    Start,
    WordBoundary,
    in_a_row,
    line_anchor,
)

MAX_NESTING: Final = 200
"""Maximum nesting of groups."""
MAX_REPEAT: Final = 100_000
"""Maximum repetition count."""
MAX_SIZE: Final = 200_000
"""Maximum number of parts of a pattern."""

DIGIT: Final = CharSet.range("0", "9")
WORD: Final = CharSet([(0x30, 0x39), (0x41, 0x5A), (0x5F, 0x5F), (0x61, 0x7A)])
LINE_TERMINATOR: Final = CharSet.of("\n\r\u2028\u2029")
# WhiteSpace (TAB, VT, FF, ZWNBSP and the category Zs) and LineTerminator, ECMA-262 §12.2 and §12.3.
WHITE_SPACE: Final = (
    CharSet.of("\t\v\f \u00a0\u1680\u202f\u205f\u3000\ufeff") | CharSet.range(0x2000, 0x200A) | LINE_TERMINATOR
)

_CLASS_ESCAPES: Final = {
    "d": DIGIT,
    "D": ~DIGIT,
    "w": WORD,
    "W": ~WORD,
    "s": WHITE_SPACE,
    "S": ~WHITE_SPACE,
}
_CONTROL_ESCAPES: Final = {"t": 0x09, "n": 0x0A, "v": 0x0B, "f": 0x0C, "r": 0x0D}
# Letters that some other dialect (Python, PCRE, Perl, XML Schema, vim) gives a meaning that ECMA-262 does not know.
_FOREIGN_ESCAPES: Final = frozenset("aAeEgGhHiIKlLNoQRUVXyYzZCc") | frozenset("123456789")
_DOT: Final = Chars(~LINE_TERMINATOR)

_QUANTIFIER = re.compile(r"\{([0-9]+)(?:(,)([0-9]*))?\}")
_LOOKS_LIKE_QUANTIFIER = re.compile(r"\{\s*[0-9]*\s*,?\s*[0-9]*\s*\}")
_GROUP_NAME = re.compile(r"\(\?P?<([^\W\d][\w$]*|\$[\w$]*)>")
_MODIFIERS = re.compile(r"\(\?(?=[a-z-]+[:)])([ims]*)(?:-([ims]+))?([:)])")
_REFERENCE = re.compile(r"\\(?:([1-9][0-9]{0,3})|k<([^>]*)>)")
_NUMBERS: Final = frozenset("123456789")
_POSIX_CLASS = re.compile(r"\[:\^?[a-z]+:\]")
_HEX_2 = re.compile(r"[0-9A-Fa-f]{2}")
_HEX_4 = re.compile(r"[0-9A-Fa-f]{4}")
_CODE_POINT = re.compile(r"\{([0-9A-Fa-f]+)\}")
_TRAIL_SURROGATE = re.compile(r"\\u([dD][c-fC-F][0-9A-Fa-f]{2})")
_PROPERTY = re.compile(r"\{([A-Za-z0-9_]+(?:=[A-Za-z0-9_]+)?)\}")


def parse(pattern: str, bound: Bound = "exact") -> Regex:
    r"""Parse a regular expression of ECMA-262 (the ``u`` flag, no other).

    Groups of all kinds are transparent and laziness is dropped: neither changes which strings match. A pattern that
    asks for a lone surrogate asks for no string at all, since strings are sequences of scalar values.

    Args:
        pattern: the text between the slashes.
        bound: of a pattern with back-references, which is not regular: the language that is asked for.

    Returns:
        The tree: ``Empty``, ``Chars``, ``Seq``, ``Alt``, ``Repeat``, ``Start``, ``End``, ``WordBoundary``, ``Look``.

    Raises:
        PatternError: the pattern is malformed, is not regular, or is written in another dialect; its place has the
            offset, its hint the way out.
        LimitError: groups are nested too deeply, a repetition count is too large, there are too many parts, or what a
            part matches is too long for any model.
    """
    text = _join_surrogates(pattern)
    parser = PatternParser(text)
    try:
        return parser.parse()
    except UnsupportedPatternError as error:
        if not parser.refers:
            raise
        refused = error.with_traceback(None)
    tree = expanded(parse_with_groups(pattern), bound)
    if tree is None:
        raise refused
    return tree


def parse_with_groups(pattern: str) -> Regex:
    """Do `parse`, and keep groups and references to them as `Capture` and `BackReference`.

    Raises:
        PatternError: the pattern is malformed, or is written in another dialect.
        LimitError: see `parse`.
    """
    return PatternParser(_join_surrogates(pattern), captures=True).parse()


def _join_surrogates(pattern: str) -> str:
    # A Python string may hold the two halves of one character (JSON read carelessly); the `u` flag reads one.
    if pattern.isascii():
        return pattern
    return pattern.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")


@dataclass
class Group:
    """A group that is still open.

    Attributes:
        offset: where it begins in the pattern.
        flags: the flags of the group around it.
        look: of a look-around, its arguments ``ahead`` and ``negated``.
        alternatives: the alternatives that were read.
        items: the items of the alternative that is being read.
        least: the fewest characters that ``items`` match; those of the last item are ``last``.
        shortest: the fewest of the alternatives that were read; None: there is none.
        repeatable: the last item may be repeated; an assertion may not, and nothing may be repeated twice.
        number: of a group to which references may lead; None: they are not kept.
    """

    offset: int
    flags: frozenset[str] = frozenset()
    look: tuple[bool, bool] | None = None
    alternatives: list[Regex] = field(default_factory=list)
    items: list[Regex] = field(default_factory=list)
    least: int = 0
    last: int = 0
    shortest: int | None = None
    repeatable: bool = False
    number: int | None = None

    def close_alternative(self) -> None:
        """Begin the next alternative."""
        self.alternatives.append(in_a_row(self.items))
        self.shortest = self.least if self.shortest is None else min(self.shortest, self.least)
        self.items = []
        self.least = self.last = 0
        self.repeatable = False

    def close(self) -> Regex:
        """Return the tree of the group."""
        self.close_alternative()
        body = self.alternatives[0] if len(self.alternatives) == 1 else Alt(tuple(self.alternatives))
        if self.number is not None:
            return Capture(self.number, body)
        return body if self.look is None else Look(*self.look, body)


@lru_cache(maxsize=256)
def literal(character: str) -> Chars:
    """Return the node of one character, of which trees have many."""
    return Chars(CharSet.of(character))


class PatternParser:
    """One pass over the pattern with an explicit stack of open groups, so that nesting costs no recursion.

    Args:
        text: the pattern.
        captures: keep groups and references as nodes; else groups are transparent, and references refused.

    Attributes:
        terminators: the line terminators of the dialect.
        dot: the dot without the flag ``s``.
        counts: a count in braces.
    """

    terminators = LINE_TERMINATOR
    dot = _DOT
    counts = _QUANTIFIER

    def __init__(self, text: str, captures: bool = False) -> None:
        self.text = text
        self.captures = captures
        self.count_of_groups = 0
        self.names: dict[str, int] = {}
        self.refers = False
        self.offset = 0
        self.size = 0
        self.flags: frozenset[str] = frozenset()
        self.groups = [Group(0)]

    def refuse(self, message: str, hint: str, offset: int | None = None) -> NoReturn:
        """Raise the error for what is well-formed and not supported."""
        raise UnsupportedPatternError(message, hint=hint, place=Place(offset=self.offset if offset is None else offset))

    def fail(self, message: str, hint: str, offset: int | None = None) -> NoReturn:
        """Raise the error for what is malformed."""
        raise PatternError(message, hint=hint, place=Place(offset=self.offset if offset is None else offset))

    def limit(self, message: str, hint: str) -> NoReturn:
        """Raise the error for what is too large."""
        raise LimitError(message, hint=hint, place=Place(offset=self.offset))

    def add(self, node: Regex, least: int = 0, *, repeatable: bool = True) -> None:
        """Add a part, which matches at least so many characters, to the innermost open group."""
        self.size += 1
        if self.size > MAX_SIZE:
            self.limit(f"the pattern has more than {MAX_SIZE:,} parts", "split the pattern")
        group = self.groups[-1]
        group.items.append(node)
        group.last = least
        group.least += least
        if group.least > MAX_LEAST_TEXT:
            self.limit(too_long("each text that the pattern matches up to here", group.least), LOWER_COUNTS)
        group.repeatable = repeatable

    def parse(self) -> Regex:
        """Return the tree of the pattern. Each turn reads one part at ``offset`` and adds it to the innermost open
        group."""
        text = self.text
        while self.offset < len(text):
            character = text[self.offset]
            if character == "(":
                self.open_group()
            elif character == ")":
                if len(self.groups) == 1:
                    self.fail("unmatched closing parenthesis", r"write \) for the character itself")
                closed = self.groups.pop()
                self.flags = closed.flags
                self.offset += 1
                # Annex B lets look-aheads be repeated, and only them.
                tree = closed.close()
                least = 0 if closed.look is not None or closed.shortest is None else closed.shortest
                self.add(tree, least, repeatable=closed.look is None or closed.look[0])
            elif character == "|":
                self.groups[-1].close_alternative()
                self.offset += 1
            elif character in "*+?{":
                self.quantifier()
            elif character == "[":
                self.add(Chars(self.character_class()), 1)
            elif character == "\\":
                self.atom_escape()
            else:
                self.plain(character)
        if len(self.groups) > 1:
            self.fail("this group is never closed", r"add ), or write \( for the character", self.groups[-1].offset)
        return self.groups[0].close()

    def plain(self, character: str) -> None:
        """Read an anchor, the dot, or a character that stands for itself."""
        self.offset += 1
        if character in "^$":
            anchor = Start() if character == "^" else End()
            self.add(line_anchor(character, self.terminators) if "m" in self.flags else anchor, repeatable=False)
        elif character == ".":
            self.add(Chars(CharSet.full()) if "s" in self.flags else self.dot, 1)
        else:
            self.add(Chars(self.folded(CharSet.of(character))) if self.flags else literal(character), 1)

    def folded(self, charset: CharSet) -> CharSet:
        """Return the characters with their partners of the other case, under the flag ``i``."""
        return fold(charset) if "i" in self.flags else charset

    # -- groups ----------------------------------------------------------------------------------------------------

    def open_group(self) -> None:
        """Read the beginning of a group and put it on the stack; flags without a group, ``(?i)``, hold for the rest of
        the group around them."""
        start, text = self.offset, self.text
        if len(self.groups) > MAX_NESTING:
            self.limit(f"groups are nested more than {MAX_NESTING} deep", "flatten the pattern")
        look: tuple[bool, bool] | None = None
        number: int | None = None
        flags = self.flags
        if not text.startswith("(?", start):
            self.offset += 1
            number = self.numbered()
        elif text.startswith("(?:", start):
            self.offset += 3
        elif text.startswith(("(?=", "(?!"), start):
            look = (True, text[start + 2] == "!")
            self.offset += 3
        elif text.startswith(("(?<=", "(?<!"), start):
            look = (False, text[start + 3] == "!")
            self.offset += 4
        elif (named := _GROUP_NAME.match(text, start)) is not None:
            self.offset = named.end()
            number = self.numbered()
            if number is not None:
                self.names[named[1]] = number
        elif (modified := _MODIFIERS.match(text, start)) is not None:
            self.offset = modified.end()
            self.flags = (flags | set(modified[1])) - set(modified[2] or "")
            if modified[3] == ")":
                return  # for the rest of the group around it
        else:
            self.refuse_group()
        self.groups.append(Group(start, flags, look, number=number))

    def numbered(self) -> int | None:
        """Return the number of a group that is opened; None if groups are transparent."""
        if not self.captures:
            return None
        self.count_of_groups += 1
        return self.count_of_groups

    def refuse_group(self) -> NoReturn:
        """Raise the error for a group of another flavor, with the ECMA-262 form that may replace it."""
        rest = self.text[self.offset + 2 : self.offset + 4]
        if rest.startswith(("P=", "P>", "&", "R", "+")) or rest[:1].isdigit():
            self.refuse("references to groups are not regular", "replace it with a copy of the group")
        if rest.startswith("("):
            self.refuse("conditions on groups are not regular", "write the alternatives out")
        if rest.startswith(">"):
            self.refuse("atomic groups (?>...) are not supported", "write (?:...) if it matches the same")
        if rest.startswith("#"):
            self.fail("comments (?#...) are not part of ECMA-262", "drop the comment")
        if rest.startswith(("<", "P<")):
            self.fail("the name of this group is malformed", "write (?<name>...) with a name of letters and digits")
        if rest[:1].isalpha() or rest.startswith(("-", "^")):
            self.refuse("inline flags other than i, m and s are not supported", "spell out what they mean")
        self.fail("this kind of group is not part of ECMA-262", r"write (?:...), or \( for the character itself")

    # -- repetition ------------------------------------------------------------------------------------------------

    def quantifier(self) -> None:
        """Read a repetition and apply it to the last item: ``*``, ``+``, ``?``, ``{2}``, ``{2,}`` or ``{2,5}``."""
        start, text = self.offset, self.text
        end = start + 1
        least: int
        most: int | None
        if text[start] == "{":
            counts = self.counts.match(text, start)
            if counts is None:
                self.lone_brace()
                return
            end = counts.end()
            least = self.count(counts[1])
            if counts[2] is None:  # no comma
                most = least
            else:
                most = self.count(counts[3]) if counts[3] else None
            if most is not None and most < least:
                self.fail("the counts of this repetition are out of order", f"write {{{most},{least}}}")
        else:
            least, most = {"*": (0, None), "+": (1, None), "?": (0, 1)}[text[start]]
        group = self.groups[-1]
        self.check_repeatable(group, end)
        is_lazy = text.startswith("?", end)  # the same strings match, and groups get other ones
        self.offset = end + is_lazy
        group.least -= group.last
        made = Repeat(group.items.pop(), least, most, is_lazy=is_lazy and self.captures)
        self.add(made, group.last * least, repeatable=False)

    def lone_brace(self) -> None:
        """Read ``{`` that begins no count: a character, unless it looks like a count (``{,3}``, ``{ 2 }``)."""
        if _LOOKS_LIKE_QUANTIFIER.match(self.text, self.offset):
            self.fail(
                "the count after { is not a valid one in ECMA-262",
                r"write {n}, {n,} or {n,m} without spaces, with 0 for no lower end; \{ for the character",
            )
        self.offset += 1
        self.add(Chars(CharSet.of("{")), 1)

    def check_repeatable(self, group: Group, end: int) -> None:
        """Refuse a repetition of nothing (``^*``), and a possessive one (``a++``); ``end`` is the offset after it."""
        if not group.repeatable:
            self.fail("nothing to repeat", f"write \\{self.text[self.offset]} for the character itself")
        if self.text.startswith("+", end):
            self.refuse("possessive repetition is not supported", "drop the second + if it matches the same", end)

    def count(self, digits: str) -> int:
        """Return a count of repetitions."""
        # Compare lengths first: int() refuses very long strings with an error of its own.
        significant = digits.lstrip("0") or "0"
        if len(significant) > len(str(MAX_REPEAT)) or int(significant) > MAX_REPEAT:
            self.limit(f"a repetition count is above {MAX_REPEAT:,}", "use a smaller count, or no upper end")
        return int(significant)

    # -- escapes ---------------------------------------------------------------------------------------------------

    def atom_escape(self) -> None:
        """Read an escape outside of a class: an assertion, a reference to a group, or characters."""
        following = self.text[self.offset + 1 : self.offset + 2]
        if following in ("b", "B"):
            self.offset += 2
            self.add(WordBoundary(following == "B"), repeatable=False)
        elif following in ("A", "Z", "z"):
            self.offset += 2
            self.add(Start() if following == "A" else End(), repeatable=False)
        elif following == "k" or following in _NUMBERS:
            self.back_reference()
        else:
            read = self.escape()
            if isinstance(read, CharSet):
                self.add(Chars(self.folded(read)), 1)
            else:
                self.add(Chars(self.folded(_charset(read))) if self.flags else literal(chr(read)), 1)

    def back_reference(self) -> None:
        """Read a reference to a group before it, by number or by name."""
        start = self.offset
        self.refers = True
        found = _REFERENCE.match(self.text, start)
        # Under the flag i, a reference also matches other spellings than that of the group.
        if self.captures and found is not None and "i" not in self.flags:
            number = self.names.get(found[2], 0) if found[1] is None else int(found[1])
            if 0 < number <= self.count_of_groups:
                self.offset = found.end()
                self.add(BackReference(number))
                return
        self.refuse_reference(start)

    def refuse_reference(self, start: int) -> NoReturn:
        """Raise the error for a back-reference."""
        self.refuse(
            "back-references are not regular",
            f"replace it with a copy of the group, or refer to a group of at most {MAX_WORDS} words that is neither "
            "optional nor repeated",
            start,
        )

    def escape(self) -> int | CharSet:
        """Read one escape, inside a class or outside: one code point, or a set such as that of ``\\d``."""
        start, text = self.offset, self.text
        letter = text[start + 1 : start + 2]
        if not letter:
            self.fail("the pattern ends in a lone backslash", r"write \\ for the character itself")
        self.offset += 2
        if letter in _CLASS_ESCAPES:
            charset = _CLASS_ESCAPES[letter]
            return charset if letter.islower() else ~self.folded(~charset)  # \W: none of \w, in either case
        if letter in _CONTROL_ESCAPES:
            return _CONTROL_ESCAPES[letter]
        if letter == "u":
            return self.unicode_escape(start)
        if letter == "x":
            digits = _HEX_2.match(text, self.offset)
            if digits is None:
                self.fail(r"\x needs two hexadecimal digits", r"write \xHH or \u{H...}", start)
            self.offset = digits.end()
            return int(digits[0], 16)
        if letter in "pP":
            return self.property_escape(start, negated=letter == "P")
        control = text[self.offset : self.offset + 1]
        if letter == "c" and control.isascii() and control.isalpha():
            self.offset += 1
            return ord(control) % 32  # \cA or \ca is U+0001
        if letter == "0" and not (control.isascii() and control.isdigit()):
            return 0
        if letter == "k" or letter in _NUMBERS:
            self.refuse_reference(start)
        if letter == "0":
            self.fail("octal escapes are not part of ECMA-262", r"write \xHH", start)
        if letter in "AZz":
            self.fail(rf"\{letter} is not valid inside of a character class", "write it outside of the brackets", start)
        if letter in _FOREIGN_ESCAPES or letter == "B":
            self.fail(
                rf"\{letter} has no meaning here in ECMA-262",
                f"write {letter} for the letter itself, or spell out the characters you mean",
                start,
            )
        return ord(letter)

    def unicode_escape(self, start: int) -> int:
        r"""Read the digits of ``\u``; return the code point. Escapes of two surrogates are one character; ``start`` is
        the offset of the backslash, for errors."""
        text = self.text
        braced = _CODE_POINT.match(text, self.offset)
        if braced is not None:
            self.offset = braced.end()
            digits = braced[1].lstrip("0") or "0"
            if len(digits) > 6 or int(digits, 16) > 0x10FFFF:
                self.fail("no such code point", r"code points end at \u{10FFFF}", start)
            return int(digits, 16)
        plain = _HEX_4.match(text, self.offset)
        if plain is None:
            self.fail(r"\u needs four hexadecimal digits, or digits in braces", r"write \uHHHH or \u{H...}", start)
        self.offset = plain.end()
        unit = int(plain[0], 16)
        if 0xD800 <= unit <= 0xDBFF and (trail := _TRAIL_SURROGATE.match(text, self.offset)) is not None:
            self.offset = trail.end()
            unit = 0x10000 + ((unit - 0xD800) << 10) + (int(trail[1], 16) - 0xDC00)
        return unit

    def property_escape(self, start: int, *, negated: bool) -> CharSet:
        r"""Read the name of a property after ``\p`` or ``\P`` (``negated``); return its characters. Under the flag
        ``i``, the partners of the other case are added before the negation."""
        named = _PROPERTY.match(self.text, self.offset)
        if named is None:
            self.fail(r"\p needs a property in braces", r"write \p{L}, \p{Letter} or \p{Script=Greek}", start)
        self.offset = named.end()
        charset = find_property(named[1])
        if charset is None:
            self.fail(
                f"no character property {named[1]!r}",
                "use a General_Category, Script=..., Script_Extensions=... or binary property that ECMA-262 names "
                f"(Unicode {UNICODE_VERSION}); case and underscores count",
                start,
            )
        return ~self.folded(charset) if negated else charset

    # -- classes ---------------------------------------------------------------------------------------------------

    def character_class(self) -> CharSet:
        """Read a class in brackets; return its characters."""
        start, text = self.offset, self.text
        self.offset += 1
        negated = text.startswith("^", self.offset)
        self.offset += negated
        ranges: list[tuple[int, int]] = []
        while True:
            if self.offset >= len(text):
                self.fail("this character class is never closed", r"add ], or write \[ for the character", start)
            if text[self.offset] == "]":
                self.offset += 1
                break
            at = self.offset
            low = self.class_atom()
            if not (text.startswith("-", self.offset) and text[self.offset + 1 : self.offset + 2] not in ("", "]")):
                ranges += low.ranges if isinstance(low, CharSet) else ((low, low),)
                continue
            self.offset += 1
            high = self.class_atom()
            if isinstance(low, CharSet) or isinstance(high, CharSet):
                # A set is no end of a range; the dash is then itself ([\w-.], as in Annex B).
                ranges += (*_charset(low).ranges, (0x2D, 0x2D), *_charset(high).ranges)
            elif low > high:
                self.fail("the ends of this range are out of order", r"swap them, or write \- for the dash", at)
            else:
                ranges.append((low, high))
        charset = self.folded(CharSet(ranges))
        return ~charset if negated else charset

    def class_atom(self) -> int | CharSet:
        r"""Read one part of a class: return a code point, which may begin or end a range, or the set of an escape such
        as ``\d``."""
        text = self.text
        if text.startswith("\\b", self.offset):
            self.offset += 2
            return 0x08
        if text[self.offset] == "\\":
            return self.escape()
        if _POSIX_CLASS.match(text, self.offset):
            self.fail("[:name:] classes are not part of ECMA-262", r"write a range, or \p{...}, as in [\p{Alphabetic}]")
        self.offset += 1
        return ord(text[self.offset - 1])


def _charset(read: int | CharSet) -> CharSet:
    return read if isinstance(read, CharSet) else CharSet([(read, read)])
