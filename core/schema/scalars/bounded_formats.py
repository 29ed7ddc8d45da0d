"""Formats that are not regular, each between two regular languages: an inner and an outer bound.

A value that must have the format is written in its *inner* language, which lacks some valid strings. A value that must
not have it is written outside of its *outer* language, which also has some invalid strings. So every written string is
right.

============  ========================================================================================================
hostname      RFC 1123 section 2.1; an A-label must be valid Punycode of a valid U-label (RFC 5890 section 2.3.2.1)
idn-hostname  RFC 5891 section 4.2 and the Bidi rule (RFC 5893 section 2), with the tables of the package ``idna``
regex         ECMA-262 section 22.2.1; what is written is also valid without the ``u`` flag, and in Python's ``re``
============  ========================================================================================================
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from functools import cache
from typing import NamedTuple

from ...errors import LimitError, PatternError, UnsupportedPatternError
from ...language.terms import Terms
from ...regex.compile import regex_term
from ...regex.parser import parse
from ...unicode.charset import CharSet

#: Maximum nesting of groups in a pattern that is written.
MAX_GROUPS = 20

#: Maximum number of labels of a host name of which one is not ASCII: three of them fit in 253 characters in any case.
MAX_IDN_LABELS = 3

#: Maximum length of a label that is not ASCII. Punycode has at most ``1 + log10(d / 26)`` digits, rounded up, for a
#: difference of d (RFC 3492 section 6.2), so that 59 digits suffice for 12 characters below U+10000, and for 20 that
#: are below `_NEAR`.
MAX_LABEL, MAX_NEAR_LABEL = 12, 20
_NEAR = 0x590


class Bounds(NamedTuple):
    """Two regular languages around a format, and its judge.

    Attributes:
        inner: makes the term of a part of the valid strings.
        outer: makes the term of strings among which are all valid ones.
        left_out: the valid strings that the inner language leaves out, for the user.
        judge: returns True if a string has the format.
    """

    inner: Callable[[Terms], int]
    outer: Callable[[Terms], int]
    left_out: str
    judge: Callable[[str], bool]


# -- host names ----------------------------------------------------------------------------------------------------

# A host name has at most 253 characters. Counting them together with those of each label would need 135,000 states;
# these pairs of a number of labels and their maximum length make 900.
_SHAPES = ((3, 63), (5, 49), (8, 30), (16, 14))

_DOTS = r"[.\u3002\uFF0E\uFF61]"
_ANY_LABEL = r"[A-Za-z\d](?:[A-Za-z\d-]{0,61}[A-Za-z\d])?"
_IDN = r"A-Za-z\d\u{80}-\u{3001}\u{3003}-\u{FF0D}\u{FF0F}-\u{FF60}\u{FF62}-\u{10FFFF}"
_ANY_IDN_LABEL = rf"[{_IDN}](?:[{_IDN}-]{{0,61}}[{_IDN}])?"
_LDH_LABEL = re.compile(_ANY_LABEL, re.ASCII)


def _label(most: int) -> str:
    """Return the pattern of ASCII labels without two hyphens at the third and fourth place, up to a length."""
    word, inner = r"[A-Za-z\d]", r"[A-Za-z\d-]"
    return rf"{word}(?:{inner}{{0,2}}{word}|{inner}(?:{inner}{word}|{word}-){inner}{{0,{most - 5}}}{word})?"


def _hostname(terms: Terms) -> int:
    names = [rf"{_label(most)}(?:\.{_label(most)}){{0,{labels - 1}}}" for labels, most in _SHAPES]
    return terms.alt([regex_term(terms, name, whole=True) for name in names])


def _any_hostname(terms: Terms) -> int:
    return regex_term(terms, rf"{_ANY_LABEL}(?:\.{_ANY_LABEL})*", whole=True)


def _any_idn_hostname(terms: Terms) -> int:
    return regex_term(terms, rf"{_ANY_IDN_LABEL}(?:{_DOTS}{_ANY_IDN_LABEL})*", whole=True)


class _IdnCharacters(NamedTuple):
    """Characters of U-labels below U+10000 that need no look at their neighbours.

    Attributes:
        left: letters and digits that are written from left to right.
        right: letters that are written from right to left.
        marks: combining marks, one of which may follow each letter or digit.
        right_marks: the combining marks that may follow letters written from right to left.
    """

    left: CharSet
    right: CharSet
    marks: CharSet
    right_marks: CharSet


@cache
def _idn_characters() -> _IdnCharacters:
    """Return the characters below U+10000 that RFC 5892 allows in any context (PVALID), by direction, without those
    that NFC could change."""
    from idna import idnadata

    # A string is in NFC if it has no second character of a composition, and no two marks in a row. The vowels and
    # final consonants of Hangul are second characters without a decomposition in the tables.
    seconds = set(range(0x1161, 0x1176)) | set(range(0x11A8, 0x11C3))
    for code in range(0x10000):
        parts = unicodedata.decomposition(chr(code)).split()
        if len(parts) == 2 and not parts[0].startswith("<"):
            seconds.add(int(parts[1], 16))
    left, right, marks, right_marks = set[int](), set[int](), set[int](), set[int]()
    for start_and_stop in idnadata.codepoint_classes["PVALID"]:  # each in 32 bits
        for code in range(max(start_and_stop >> 32, 0x80), min(start_and_stop & 0xFFFFFFFF, 0x10000)):
            bidi, category = unicodedata.bidirectional(chr(code)), unicodedata.category(chr(code))
            if code in seconds or not unicodedata.is_normalized("NFC", chr(code)):
                continue
            if category[0] == "M":
                if bidi in ("L", "NSM"):
                    marks.add(code)
                if bidi == "NSM":
                    right_marks.add(code)
            elif bidi == "L":
                left.add(code)
            elif bidi in ("R", "AL"):
                right.add(code)
    kinds = left, right, marks, right_marks
    return _IdnCharacters(*(CharSet([(code, code) for code in codes]) for codes in kinds))


def _idn_hostname(terms: Terms) -> int:
    """Return the term of host names whose labels are all from left to right, or all from right to left or ASCII."""
    kinds = _idn_characters()
    small, digits, hyphen = CharSet.range("a", "z"), CharSet.range("0", "9"), CharSet.of("-")
    dot = regex_term(terms, _DOTS, whole=True)
    ascii_label = regex_term(terms, _label(63), whole=True)
    reserved = regex_term(terms, "^..--", whole=False)

    def label(first: CharSet, last: CharSet, marks: CharSet) -> int:
        """Return the labels of limited length that begin with ``first`` and end with ``last``, without "--" at the
        third and fourth place; hyphens may be between, and one of ``marks`` may follow each character."""
        mark = terms.alt([terms.literal(""), terms.chars(marks)])
        inside = terms.seq(terms.chars(first | last | hyphen), mark)
        ending = terms.sequence([terms.repeat(inside, 0, None), terms.chars(last), mark])
        whole = terms.sequence([terms.chars(first), mark, terms.alt([terms.literal(""), ending])])
        limited = [
            terms.repeat(terms.chars(CharSet([(0, last_code)])), 1, most)
            for most, last_code in ((MAX_LABEL, 0xFFFF), (MAX_NEAR_LABEL, _NEAR - 1))
        ]
        return terms.and_([whole, terms.alt(limited), terms.not_(reserved)])

    def name(labels: int) -> int:
        return terms.seq(labels, terms.repeat(terms.seq(dot, labels), 0, MAX_IDN_LABELS - 1))

    leftward = label(kinds.left | small | digits, kinds.left | small | digits, kinds.marks)
    # In a name with a label from right to left, no label begins with a digit (RFC 5893 section 2, rule 1).
    rightward = label(kinds.right, kinds.right | digits, kinds.right_marks)
    no_digit = regex_term(terms, r"^[^\d]", whole=False)
    return terms.alt(
        [
            _hostname(terms),
            name(terms.alt([ascii_label, leftward])),
            name(terms.alt([terms.and_([ascii_label, no_digit]), rightward])),
        ]
    )


def _is_hostname(text: str) -> bool:
    """Return True for a host name of RFC 1123 whose A-labels are valid."""
    labels = text.split(".")
    return len(text) <= 253 and all(map(_LDH_LABEL.fullmatch, labels)) and all(map(_is_a_label, labels))


def _is_a_label(label: str) -> bool:
    """Return True for a label that is a valid A-label, or claims to be none."""
    import idna

    if label[:4].lower() != "xn--":
        return True
    try:
        idna.ulabel(label)
    except (idna.IDNAError, UnicodeError):
        return False
    return True


def _is_idn_hostname(text: str) -> bool:
    """Return True for a host name of RFC 5890, in U-labels or A-labels."""
    import idna

    try:
        if re.search(_DOTS + "$", text) or len(idna.encode(text)) > 253:
            return False
        labels = [idna.ulabel(label) for label in re.split(_DOTS, text)]
        # RFC 5893: one character from right to left, and every label must satisfy the Bidi rule.
        if any(unicodedata.bidirectional(character) in ("R", "AL", "AN") for label in labels for character in label):
            for label in labels:
                idna.check_bidi(label, check_ltr=True)
    except (idna.IDNAError, UnicodeError):
        return False
    return True


# -- patterns ------------------------------------------------------------------------------------------------------

# Each is valid in ECMA-262 with and without the `u` flag, and in Python's `re`.
_ESCAPE = r"\\(?:[dDsSwWtnvfr^$\\.*+?()\[\]{}|\/]|x[0-9A-Fa-f]{2}|u[0-9A-Fa-f]{4})"
_CLASS_ESCAPE = r"\\(?:[dDsSwWtnvfrb^$\\.*+?()\[\]{}|\/\-]|x[0-9A-Fa-f]{2}|u[0-9A-Fa-f]{4})"
_CHARACTER = r"[^\^$\\.*+?()\[\]{}|]"
_CLASS_CHARACTER = r"[^\\\[\]\^\-]"
_ENDS = [rf"\x{code:02x}" for code in range(0x21, 0x7F) if chr(code) not in r"\[]^-"]
_RANGE = "|".join(rf"{end}-[{''.join(_ENDS[place:])}]" for place, end in enumerate(_ENDS))
_CLASS = rf"\[\^?-?(?:{_RANGE}|{_CLASS_ESCAPE}|{_CLASS_CHARACTER})+-?\]"
_ATOM = rf"(?:\.|{_CHARACTER}|{_ESCAPE}|{_CLASS})"
# Two counts below 100, the second not below the first.
_PAIRS = "|".join(
    [rf"{unit},(?:[{unit}-9]|[1-9]\d)" for unit in range(10)]
    + [rf"{tens}{unit},(?:{tens}[{unit}-9]|[{tens + 1}-9]\d)" for tens in range(1, 9) for unit in range(10)]
    + [rf"9{unit},9[{unit}-9]" for unit in range(10)]
)
_ASSERTION = rf"[\^$]|\\[bB]|\(\?<[=!]{_ATOM}+\)"


def _pattern(terms: Terms) -> int:
    """Return patterns whose groups are nested at most `MAX_GROUPS` deep."""
    atom, assertion = regex_term(terms, _ATOM, whole=True), regex_term(terms, _ASSERTION, whole=True)
    count = regex_term(terms, rf"(?:\d|[1-9]\d{{1,2}}),?|{_PAIRS}", whole=True)
    braces = terms.sequence([terms.literal("{"), count, terms.literal("}")])
    quantifier = terms.seq(
        terms.alt([regex_term(terms, "[*+?]", whole=True), braces]), terms.repeat(terms.literal("?"), 0, 1)
    )
    opening, looking = regex_term(terms, r"\((?:\?:)?", whole=True), regex_term(terms, r"\(\?[=!]", whole=True)

    def nonempty(depth: int) -> Callable[[Terms], int]:
        """Return a function that makes the term of all patterns but the empty one, with groups nested up to a depth."""

        def build(terms: Terms) -> int:
            atoms, assertions = [atom], [assertion]
            if depth:
                inner = terms.deferred(("pattern of a group", depth - 1), nonempty(depth - 1))
                ending = terms.alt([terms.literal(")"), terms.seq(inner, terms.literal(")"))])
                atoms.append(terms.seq(opening, ending))
                assertions.append(terms.seq(looking, ending))
            parts = terms.seq(terms.alt(atoms), terms.repeat(quantifier, 0, 1))
            return terms.repeat(terms.alt([parts, *assertions, terms.literal("|")]), 1, None)

        return build

    return terms.alt([terms.literal(""), nonempty(MAX_GROUPS)(terms)])


def _any_pattern(terms: Terms) -> int:
    """Return all strings but some that are not valid patterns: those with a leading quantifier or a trailing escape."""
    return terms.not_(
        terms.alt([regex_term(terms, r"^[*+?]", whole=False), regex_term(terms, r"(?:[^\\]|\\[^])*\\", whole=True)])
    )


def _is_pattern(text: str) -> bool:
    """Return True for a pattern of ECMA-262 with the ``u`` flag."""
    try:
        parse(text)
    except UnsupportedPatternError:  # well-formed
        return True
    except (PatternError, LimitError):
        return False
    return True


#: The formats that are bounded, by name.
BOUNDED: dict[str, Bounds] = {
    "hostname": Bounds(
        _hostname,
        _any_hostname,
        'labels with "--" at the third and fourth place, such as those of Punycode ("xn--..."); long labels in '
        "names of more than three labels",
        _is_hostname,
    ),
    "idn-hostname": Bounds(
        _idn_hostname,
        _any_idn_hostname,
        f'labels of Punycode ("xn--..."); of names that are not ASCII: those of more than {MAX_IDN_LABELS} labels, '
        f"labels of more than {MAX_LABEL} characters ({MAX_NEAR_LABEL} in Latin, Greek, Cyrillic and Armenian script), "
        "and characters that depend on their neighbours",
        _is_idn_hostname,
    ),
    "regex": Bounds(
        _pattern,
        _any_pattern,
        r"named groups, back-references, \p{...}, \u{...}, \c and \0, pairs of counts above 99, look-behinds with "
        rf"groups or quantifiers in them, ranges beyond printable ASCII, groups nested more than {MAX_GROUPS} deep",
        _is_pattern,
    ),
}
