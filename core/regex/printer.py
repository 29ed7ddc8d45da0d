"""The text of a syntax tree: as a pattern of ECMA-262 with the ``u`` flag, the inverse of the parser, or of Python."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache

from ..unicode.charset import CharSet
from ..unicode.properties import find_property
from .parser import DIGIT, LINE_TERMINATOR, WHITE_SPACE, WORD
from .syntax import Alt, BackReference, Capture, Chars, Empty, End, Look, Regex, Repeat, Seq, Start, WordBoundary, fold

_META = frozenset(r"\^$.*+?()[]{}|/")
_CONTROLS = {0x09: r"\t", 0x0A: r"\n", 0x0B: r"\v", 0x0C: r"\f", 0x0D: r"\r"}
_WORD = r"\p{Alphabetic}\p{M}\p{Nd}\p{Pc}\p{Join_Control}"
_SHORT = (
    *((f"[{_WORD}]", r"\w"), (f"[^{_WORD}]", r"\W"), (_WORD, r"\w")),
    *((r"\p{Nd}", r"\d"), (r"\P{Nd}", r"\D"), (r"\p{White_Space}", r"\s"), (r"\P{White_Space}", r"\S")),
)
_ONE_PROPERTY = re.compile(r"\\p\{\w+\}")
_LOOKS = {(True, False): "(?=", (True, True): "(?!", (False, False): "(?<=", (False, True): "(?<!"}


def to_text(tree: Regex) -> str:
    """Return a pattern for which `parse` gives a tree with the same strings. ``tree`` has no groups or references."""

    def combine(node: Regex, parts: Sequence[str]) -> str:
        if isinstance(node, Empty):
            return "(?:)"
        if isinstance(node, Chars):
            return class_text(node.charset)
        if isinstance(node, Seq):
            grouped = zip(node.items, parts, strict=True)
            return "".join(f"(?:{part})" if isinstance(item, Alt) else part for item, part in grouped)
        if isinstance(node, Alt):
            return "|".join(parts)
        if isinstance(node, Repeat):
            atom = parts[0] if isinstance(node.item, Chars) else f"(?:{parts[0]})"
            return atom + _counts(node.min, node.max)
        if isinstance(node, (Start, End)):
            return "^" if isinstance(node, Start) else "$"
        if isinstance(node, WordBoundary):
            return r"\B" if node.negated else r"\b"
        assert isinstance(node, Look)
        return f"{_LOOKS[node.ahead, node.negated]}{parts[0]})"

    return fold(tree, combine)


def to_python(tree: Regex) -> str:
    """Return a pattern of Python's ``re`` that matches in the same texts as a tree of ``parse_with_groups``.

    A reference to a group that has not matched stands for the empty string, as in ECMA-262. Repeated groups keep the
    text of an earlier repetition, which ECMA-262 forgets.
    """

    def combine(node: Regex, parts: Sequence[str]) -> str:
        if isinstance(node, Chars):
            ranges = [f"\\U{low:08x}-\\U{high:08x}" for low, high in node.charset.ranges]
            return f"[{''.join(ranges)}]" if ranges else "(?!)"
        if isinstance(node, Seq):
            return "".join(parts)
        if isinstance(node, Alt):
            return f"(?:{'|'.join(parts)})"
        if isinstance(node, Repeat):
            return f"(?:{parts[0]}){_counts(node.min, node.max)}{'?' if node.is_lazy else ''}"
        if isinstance(node, Capture):
            return f"(?P<g{node.number}>{parts[0]})"
        if isinstance(node, BackReference):
            return f"(?(g{node.number})(?P=g{node.number}))"
        if isinstance(node, WordBoundary):
            # Before Python 3.14, \B does not match in the empty text.
            return r"(?:(?a:\B)|\A\Z)" if node.negated else r"(?a:\b)"
        if isinstance(node, Look):
            return f"{_LOOKS[node.ahead, node.negated]}{parts[0]})"
        return {Empty: "", Start: r"\A", End: r"\Z"}[type(node)]

    return fold(tree, combine)


def with_short_classes(pattern: str) -> str:
    r"""Return a pattern with ``\d``, ``\w`` and ``\s`` for the Unicode classes that `to_text` writes for them.

    For readers whose ``\d`` is that of Unicode anyway, or who know no ``\p``: most servers.
    """
    for long, short in _SHORT:
        pattern = pattern.replace(long, short)
    return pattern


def _counts(least: int, most: int | None) -> str:
    short = {(0, None): "*", (1, None): "+", (0, 1): "?"}.get((least, most))
    if short is not None:
        return short
    return f"{{{least}}}" if least == most else f"{{{least},{'' if most is None else most}}}"


@cache
def _properties() -> tuple[tuple[CharSet, str], ...]:
    r"""Return large sets, each with its text inside a class, such as ``\p{L}``. A set comes before its subsets. Among
    them are ``\w``, ``\d`` and ``\s`` of Rust and Python."""

    def union_of(names: str) -> CharSet:
        charsets = [find_property(name) for name in names.split()]
        return CharSet.empty().union(*[charset for charset in charsets if charset is not None])

    return (
        (union_of("Alphabetic M Nd Pc Join_Control"), _WORD),
        (union_of("L N"), r"\p{L}\p{N}"),
        *((union_of(name), rf"\p{{{name}}}") for name in ("L", "N", "Lu", "Ll", "Nd", "P", "White_Space")),
    )


def class_text(charset: CharSet) -> str:
    """Return the pattern of one character of a set: the shortest of an escape, the dot, and a class of its members or
    of all others."""
    if charset == DIGIT:
        return r"\d"
    for escaped, letter in ((DIGIT, "d"), (WORD, "w"), (WHITE_SPACE, "s")):
        if charset == escaped:
            return "\\" + letter
        if charset == ~escaped:
            return "\\" + letter.upper()
    if charset == ~LINE_TERMINATOR:
        return "."
    if charset.size == 1:
        return _character(charset.ranges[0][0], _META)
    if charset == CharSet.full():
        return r"[\s\S]"
    positive, negative = _members(charset), _members(~charset)
    # One property needs no brackets: \p{L}, and \P{L} for all others.
    if len(negative) < len(positive):
        return negative.replace("p", "P", 1) if _ONE_PROPERTY.fullmatch(negative) else f"[^{negative}]"
    return positive if _ONE_PROPERTY.fullmatch(positive) else f"[{positive}]"


def _members(charset: CharSet) -> str:
    """Return the text of a set inside the brackets of a class: properties whose characters it has, then ranges."""
    pieces: list[str] = []
    rest = charset
    for large, text in _properties():
        if len(large.ranges) > 4 and large <= rest:
            pieces.append(text)
            rest = rest - large
    escaped = _META | {"-"}
    for low, high in rest.ranges:
        if high - low < 2:  # one or two characters: no hyphen
            pieces += [_character(code, escaped) for code in range(low, high + 1)]
        else:
            pieces.append(f"{_character(low, escaped)}-{_character(high, escaped)}")
    return "".join(pieces)


def _character(code: int, escaped: frozenset[str]) -> str:
    if code in _CONTROLS:
        return _CONTROLS[code]
    if 0x20 <= code < 0x7F or (code > 0xA0 and code not in (0xAD, 0x2028, 0x2029) and chr(code).isprintable()):
        return ("\\" if chr(code) in escaped else "") + chr(code)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\u{{{code:x}}}"
