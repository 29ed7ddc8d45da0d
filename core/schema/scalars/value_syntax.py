"""How values are written where that is not JSON: Python's literals, Gemma's objects, and members between marks.

`Lowering` makes grammar nodes of values; a `Spelling` says how strings, names and the words for true, false and null
look, and `Arguments` how the members of the outermost object are set apart. Numbers, and the brackets of arrays and
objects, are those of JSON in every spelling.

A spelling also reads: which names an object and which items an array already has, from the text so far.
"""

from __future__ import annotations

import ast
import re
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

from ...language.node_kinds import CONTROL
from ...language.nodes import Nodes
from ...language.term_kinds import END
from ...language.terms import Terms
from ...regex.compile import regex_term
from ...unicode.charset import CharSet

#: Markup: pieces of text, and the names of control tokens (True).
Mark = tuple[tuple[str, bool], ...]

_SPACE = b" \t\n\r"
_OPENING, _CLOSING = b"{[(", b"}])"

#: Python's escapes of one letter, for characters that do not stand in a literal as they are.
_ESCAPES = {0x07: "a", 0x08: "b", 0x09: "t", 0x0A: "n", 0x0B: "v", 0x0C: "f", 0x0D: "r", 0x5C: "\\"}


def mark_node(nodes: Nodes, mark: Mark) -> int:
    """The node of some markup."""
    return nodes.sequence([nodes.special(text) if control else nodes.literal(text.encode()) for text, control in mark])


@dataclass(frozen=True)
class Arguments:
    """How the outermost object is written: each member between marks of its own.

    Attributes:
        names: the names that can be written, a regular expression.
        separator: stands between members.
        before_name: stands before a name.
        after_name: stands between a name and its value.
        after_value: stands after a value.
        raw_end: strings are written as they are, and none holds this text, which ends a value; None: values are written
            as they are everywhere else.
        after_name_raw: stands between a name and a string, if that differs; then it is never in doubt what is a string.
    """

    names: str
    separator: Mark = ()
    before_name: Mark = ()
    after_name: Mark = ()
    after_value: Mark = ()
    raw_end: str | None = None
    after_name_raw: Mark | None = None


class Spelling(ABC):
    """How values are written and read back; a value without state, and part of a grammar's identity.

    Attributes:
        true: the word for true.
        false: the word for false.
        null: the word for null.
    """

    true: bytes = b"true"
    false: bytes = b"false"
    null: bytes = b"null"

    @abstractmethod
    def string(self, nodes: Nodes, term: int) -> int:
        """The strings of a term, as they are written."""

    @abstractmethod
    def names(self, name: str) -> tuple[bytes, ...]:
        """The ways in which a member's name is written; none if that is not possible."""

    @abstractmethod
    def name(self, nodes: Nodes, term: int) -> int:
        """The names of a term, as they are written."""

    @abstractmethod
    def names_before(self, text: bytes) -> list[str]:
        """The names in the object that is open at the end of the text, which is outside of strings."""

    @abstractmethod
    def items_before(self, text: bytes) -> list[Any]:
        """The items of the array that is open at the end of the text, which is right after an item."""


@dataclass(frozen=True)
class PythonSpelling(Spelling):
    """Python's literals, with either kind of quotes.

    A character that can stand in a literal does; the others are written with the shortest escape (``\\n``, ``\\x00``).
    """

    true = b"True"
    false = b"False"
    null = b"None"

    def string(self, nodes: Nodes, term: int) -> int:
        """Strings in single or double quotes."""
        return nodes.alt([nodes.text(quoted(nodes.terms, term, quote)) for quote in "\"'"])

    def names(self, name: str) -> tuple[bytes, ...]:
        """The name as a string, in double and in single quotes."""
        return tuple(python_string(name, quote).encode("utf-8", "surrogatepass") for quote in "\"'")

    def name(self, nodes: Nodes, term: int) -> int:
        """Names are strings."""
        return self.string(nodes, term)

    def names_before(self, text: bytes) -> list[str]:
        """Keys of a dictionary, or names of keyword arguments."""
        return _names(text, ((b'"', b"\\"), (b"'", b"\\")))[1]

    def items_before(self, text: bytes) -> list[Any]:
        """Items of a list."""
        start = _names(text, ((b'"', b"\\"), (b"'", b"\\")))[0]
        items: list[Any] = ast.literal_eval((text[start:] + b"]").decode())
        return items


@dataclass(frozen=True)
class BareSpelling(Spelling):
    """Strings as they are between two equal marks, which they do not hold; names without quotes.

    Attributes:
        quote: the mark, and whether it is a control token.
        bare: the names that can be written, a regular expression.
    """

    quote: tuple[str, bool]
    bare: str

    def string(self, nodes: Nodes, term: int) -> int:
        """Strings that do not hold the mark."""
        mark = mark_node(nodes, (self.quote,))
        return nodes.sequence([mark, nodes.text(without(nodes.terms, term, self.quote[0])), mark])

    def names(self, name: str) -> tuple[bytes, ...]:
        """The name as it is."""
        return (name.encode(),) if re.fullmatch(self.bare, name) else ()

    def name(self, nodes: Nodes, term: int) -> int:
        """Names as they are."""
        return nodes.text(nodes.terms.and_([term, regex_term(nodes.terms, self.bare, whole=True)]))

    def names_before(self, text: bytes) -> list[str]:
        """Names before a colon."""
        quote = CONTROL if self.quote[1] else self.quote[0].encode()
        return _names(text, ((quote, b""),))[1]

    def items_before(self, text: bytes) -> list[Any]:
        """Not offered: see `repeating`."""
        raise NotImplementedError


def without(terms: Terms, term: int, text: str) -> int:
    """The strings of a term that do not hold a text."""
    return terms.and_([term, terms.not_(terms.sequence([terms.ALL, terms.literal(text), terms.ALL]))])


# -- Python's strings ------------------------------------------------------------------------------------------


def quoted(terms: Terms, term: int, quote: str) -> int:
    """The literals of Python, in these quotes, of the strings of a term."""
    if terms.is_empty(term):
        return terms.EMPTY
    return terms.seq(terms.literal(quote), _rest(terms, term, quote))


def _rest(terms: Terms, term: int, quote: str) -> int:
    """What follows inside a literal of which the rest of the string is in ``term``, with the closing quote."""

    def build(terms: Terms) -> int:
        parts = [terms.literal(quote)] if terms.nullable(term) else []
        starts, targets = terms.segments(term)
        escaped: list[int] = []
        for index, target in enumerate(targets):
            if terms.is_empty(target):
                continue
            last = (starts[index + 1] if index + 1 < len(starts) else END) - 1
            rest = _rest(terms, target, quote)
            ranges = CharSet(((starts[index], last),))
            plain = ranges & _plain(quote)
            if plain:
                parts.append(terms.seq(terms.chars(plain), rest))
            written = [_escape(code) for code in (*range(0x20), 0x5C) if starts[index] <= code <= last]
            written += [quote] if starts[index] <= ord(quote) <= last else []
            if written:
                escaped.append(terms.seq(terms.words(written), rest))
        if escaped:
            parts.append(terms.seq(terms.literal("\\"), terms.alt(escaped)))
        return terms.alt(parts)

    return terms.deferred(("python", quote, term), build, loops=True)


def _plain(quote: str) -> CharSet:
    return CharSet(((0x20, 0x10FFFF),)) & ~CharSet.of("\\" + quote)


def _escape(code: int) -> str:
    return _ESCAPES.get(code) or f"x{code:02x}"


def python_string(text: str, quote: str = '"') -> str:
    """A string as a literal of Python: the one that `PythonSpelling` writes."""
    parts = []
    for char in text:
        if char == quote:
            parts.append("\\" + char)
        elif char == "\\" or char < " ":
            parts.append("\\" + _escape(ord(char)))
        elif "\ud800" <= char <= "\udfff":
            parts.append(f"\\u{ord(char):04x}")
        else:
            parts.append(char)
    return f"{quote}{''.join(parts)}{quote}"


# -- reading back ----------------------------------------------------------------------------------------------


def _names(text: bytes, quotes: tuple[tuple[bytes, bytes], ...]) -> tuple[int, list[str]]:
    """Where the innermost bracket that is open at the end stands, or -1; and the names directly in it.

    Read backwards, as `toolgrammar.core.language.lookback` says: the nearest quote closes a string, which begins at the
    nearest one of its kind before that no escape precedes.

    Args:
        text: ends outside of strings.
        quotes: each kind of quotes, and what escapes one (empty: nothing does).
    """
    names: list[str] = []
    depth = 0
    at = len(text)
    named = False  # the next significant byte to the right ends a name
    while at > 0:
        quote = next((each for each in quotes if text.endswith(each[0], 0, at)), None)
        if quote is not None:
            end = at
            at = _string_start(text, at - len(quote[0]), *quote)
            if at < 0:
                break
            if named and depth == 0:
                names.append(ast.literal_eval(text[at:end].decode()))
            named = False
            continue
        at -= 1
        byte = text[at : at + 1]
        if byte in _SPACE:
            continue
        if byte in _OPENING and depth == 0:
            return at, names[::-1]
        if byte in _CLOSING:
            depth += 1
        elif byte in _OPENING:
            depth -= 1
        elif byte in b":=":
            named = True
            continue
        elif named and depth == 0:
            end = at + 1
            while at > 0 and text[at - 1 : at] not in b",{(" + _SPACE:
                at -= 1
            names.append(text[at:end].decode())
        named = False
    return -1, names[::-1]


def _string_start(text: bytes, end: int, quote: bytes, escape: bytes) -> int:
    """Where the string begins whose closing quote stands at ``end``; -1 if nowhere."""
    at = end
    while True:
        at = text.rfind(quote, 0, at)
        if at < 0 or not escape:
            return at
        slashes = at
        while slashes > 0 and text[slashes - 1 : slashes] == escape:
            slashes -= 1
        if (at - slashes) % 2 == 0:
            return at
