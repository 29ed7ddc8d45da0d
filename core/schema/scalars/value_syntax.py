"""Syntaxes of values other than JSON: Python's literals, Gemma's objects, and arguments between markup.

A `ValueSyntax` is the syntax of strings, names, true, false and null; `Arguments` is the markup around the members of
the outermost object, and `NestedTags` the markup around the members and items of all values. Numbers, and the brackets
of arrays and objects, are as in JSON in every syntax.

A syntax also reads the text so far: the names that an object already has, and the items that an array already has.
"""

from __future__ import annotations

import ast
import json
import re
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

from ...dependent.written import Written
from ...errors import Place, UnsupportedSchemaError
from ...json import json_bytes, string_start
from ...language.images import Spelling, spelled
from ...language.node_kinds import CONTROL
from ...language.nodes import Nodes
from ...language.terms import Terms
from ...regex.compile import regex_term
from ...text_grammars.strings import StringGrammar
from ...unicode.charset import CharSet

#: Markup: pieces of text, and the names of control tokens (True).
Mark = tuple[tuple[str, bool], ...]

_SPACE = b" \t\n\r"
_OPENING, _CLOSING = b"{[(", b"}])"

#: Maximum number of characters of a name in YAML: escaped, they have to fit into the 1,024 of an implicit key.
MAX_YAML_NAME = 150

#: The characters that stand unescaped in a string literal of Python: all except NUL and line ends.
_PYTHON_PLAIN = ((0x01, 0x09), (0x0B, 0x0C), (0x0E, 0x10FFFF))

#: Python's escapes of one letter, for characters that a literal cannot have unescaped.
_ESCAPES = {0x07: "a", 0x08: "b", 0x09: "t", 0x0A: "n", 0x0B: "v", 0x0C: "f", 0x0D: "r", 0x5C: "\\"}


def mark(text: str, control: Sequence[str]) -> Mark:
    """Return markup as pieces, each with whether it is a control token: ``a<c>`` -> (("a", False), ("<c>", True))."""
    pieces: list[tuple[str, bool]] = []
    while text:
        words = [(at, -len(word), word) for word in control if (at := text.find(word)) >= 0]
        if not words:
            return (*pieces, (text, False))
        at, _, word = min(words)  # the first one, and of those that begin there the longest
        if at:
            pieces.append((text[:at], False))
        pieces.append((word, True))
        text = text[at + len(word) :]
    return tuple(pieces)


def mark_node(nodes: Nodes, mark: Mark) -> int:
    """Return the node of some markup."""
    return nodes.sequence([nodes.special(text) if control else nodes.literal(text.encode()) for text, control in mark])


def size_of(mark: Mark) -> int:
    """Return the number of bytes of some markup, with one for each control token."""
    return sum(1 if control else len(text.encode()) for text, control in mark)


@dataclass(frozen=True)
class Arguments:
    """Syntax of the outermost object: the markup around its members.

    Attributes:
        names: a regular expression of the names that can be written.
        separator: the markup between two members.
        before_name: the markup before a name.
        after_name: the markup between a name and its value.
        after_value: the markup after a value.
        raw_end: strings are written without quotes and escapes, and none contains this text, which ends a value; None:
            strings are written as inside of other values.
        raw_follows: what follows ``raw_end``, behind white space, where it ends a value: a string may contain it before
            anything else. Empty: it always ends one.
        after_name_raw: the markup between a name and a string, where that differs from other values: a string is then
            never mistaken for one of them.
        python_words: true, false and null, as whole values, are ``True``, ``False`` and ``None`` too.
        after_name_by_type: the markup between a name and a value of these JSON types, where that differs by type.
        escapes: pairs of a character and its spelling in names; the first comes first.
        block: the markup around a string that may contain ``raw_end``, but not the block's end; no other string begins
            with the block's beginning. None: there is none.
        writer: what writes so, for errors.
    """

    names: str
    separator: Mark = ()
    before_name: Mark = ()
    after_name: Mark = ()
    after_value: Mark = ()
    raw_end: str | None = None
    raw_follows: tuple[str, ...] = ()
    after_name_raw: Mark | None = None
    python_words: bool = False
    after_name_by_type: tuple[tuple[str, Mark], ...] = ()
    escapes: tuple[tuple[str, str], ...] = ()
    block: tuple[Mark, Mark] | None = None
    writer: str = "this format"

    def spelled(self, name: str) -> str | None:
        """Return the text of a name; None if it cannot be written."""
        if not re.fullmatch(self.names, name):
            return None
        for char, text in self.escapes:
            name = name.replace(char, text)
        return name

    def ended(self, terms: Terms) -> int:
        """Return the texts that contain the end of a raw string."""
        parts = [terms.ALL, terms.literal(self.raw_end or "")]
        if self.raw_follows:
            parts += [terms.repeat(terms.chars(CharSet.of(_SPACE.decode())), 0, None), terms.words(self.raw_follows)]
        return terms.sequence([*parts, terms.ALL])

    def is_ended(self, text: str) -> bool:
        """Return True if a text contains the end of a raw string."""
        return self.count_ends(text) > 0

    def count_ends(self, text: str) -> int:
        """Return how many times a text contains the end of a raw string."""
        follows = rf"[ \t\n\r]*(?:{'|'.join(map(re.escape, self.raw_follows))})" if self.raw_follows else ""
        return len(re.findall(re.escape(self.raw_end or "") + follows, text))


@dataclass(frozen=True)
class NestedTags:
    """Syntax of the outermost object: members and items are elements, in one another; strings are raw.

    An element is ``<name>...</name>``, with the mark before either tag.

    Attributes:
        mark: the markup before each tag; no string contains it.
        item: the name of the element of an item.
        names: a regular expression of the names that tags can have.
        writer: what writes so, for errors.
    """

    mark: Mark
    item: str = "item"
    names: str = r"[^\s<>\"'=/]+"
    writer: str = "this format"

    def spelled(self, name: str) -> str | None:
        """Return the text of a name; None if it cannot be written."""
        return name if re.fullmatch(self.names, name) else None


def cannot_write_name(
    writer: str, name: str, place: Place | None = None, left_out: str | None = None
) -> UnsupportedSchemaError:
    """Return the error for a member that a syntax has no name for."""
    return UnsupportedSchemaError(
        f"{writer} cannot write the name {name!r}",
        hint="rename it, or choose a JSON format for this tool, such as hermes",
        place=place or Place(pointer=f"/properties/{name}"),
        left_out=left_out,
    )


def cannot_write_others(writer: str) -> UnsupportedSchemaError:
    """Return the error for members of any name, in a syntax that takes the kind of a value from its name."""
    return UnsupportedSchemaError(
        f"{writer} cannot write properties that the schema does not declare",
        hint="declare them, exclude them, or choose a JSON format for this tool, such as hermes",
        place=Place(pointer="", keyword="additionalProperties"),
    )


class ValueSyntax(ABC):
    """Syntax of values, to write and to read back; immutable, and part of a grammar's identity.

    Attributes:
        true: the text of true.
        false: the text of false.
        null: the text of null.
    """

    true: bytes = b"true"
    false: bytes = b"false"
    null: bytes = b"null"

    @abstractmethod
    def string(self, nodes: Nodes, term: int) -> int:
        """Return the texts of the strings of a term."""

    @abstractmethod
    def string_of(self, nodes: Nodes, grammar: StringGrammar, term: int) -> int:
        """Return the texts of the strings of a term that are of a grammar too."""

    def names(self, name: str) -> tuple[bytes, ...]:
        """Return the texts of a member's name; none if it cannot be written (here: objects are not)."""
        return ()

    def name(self, nodes: Nodes, term: int) -> int:
        """Return the texts of the names of a term (here: objects are not written)."""
        return nodes.EMPTY

    def number(self, terms: Terms, term: int) -> int:
        """Return the numbers of a term of JSON numbers that can be written."""
        return term

    def listed_number(self, value: float) -> bytes:
        """Return the text of a number that a schema lists."""
        return json_bytes(value)

    def scalar(self, text: bytes) -> Any:
        """Return the value of a text that is no array and no object."""
        return json.loads(text)

    def names_before(self, text: bytes) -> list[str]:
        """Return the names in the object that is open at the end of the text, which is not inside a string."""
        return []

    def items_before(self, text: bytes) -> list[Any]:
        """Return the items of the array that is open at the end of the text, which ends with an item; not asked of
        syntaxes without arrays, or whose formats refuse ``uniqueItems``."""
        raise NotImplementedError


@dataclass(frozen=True)
class PythonSyntax(ValueSyntax):
    """Python's literals, with either kind of quotes.

    A character that Python allows in quotes stands for itself; control characters, and those that it does not allow,
    may be escaped, in the shortest way (``\\n``, ``\\x00``).
    """

    true = b"True"
    false = b"False"
    null = b"None"

    def string(self, nodes: Nodes, term: int) -> int:
        """Return strings in single or double quotes."""
        return nodes.alt([nodes.text(quoted(nodes.terms, term, quote)) for quote in "\"'"])

    def string_of(self, nodes: Nodes, grammar: StringGrammar, term: int) -> int:
        """Return strings in single or double quotes."""
        ways = [_grammar_respelled(nodes, grammar, term, _plain(quote), _escapes(quote), quote) for quote in "\"'"]
        return nodes.alt(ways)

    def names(self, name: str) -> tuple[bytes, ...]:
        """Return the name as a string, in double and in single quotes."""
        return tuple(self.literal(name, quote).encode("utf-8", "surrogatepass") for quote in "\"'")

    @staticmethod
    def literal(text: str, quote: str = '"') -> str:
        """Return a string as the literal that is written."""
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

    def name(self, nodes: Nodes, term: int) -> int:
        """Return the names as strings."""
        return self.string(nodes, term)

    def scalar(self, text: bytes) -> Any:
        """Return the value of a literal."""
        return ast.literal_eval(text.decode("utf-8", "surrogatepass"))

    def names_before(self, text: bytes) -> list[str]:
        """Return the keys of a dictionary, or the names of keyword arguments."""
        return _names(text, ((b'"', b"\\"), (b"'", b"\\")))[1]

    def items_before(self, text: bytes) -> list[Any]:
        """Return the items of a list."""
        start = _names(text, ((b'"', b"\\"), (b"'", b"\\")))[0]
        items: list[Any] = ast.literal_eval((text[start:] + b"]").decode())
        return items


@dataclass(frozen=True)
class BareSyntax(ValueSyntax):
    """Strings without escapes between two equal quotes, which they do not contain; names without quotes.

    Attributes:
        quote: the quote, and True if it is a control token.
        bare: a regular expression of the names that can be written.
    """

    quote: tuple[str, bool]
    bare: str
    null: bytes = b"null"

    def string(self, nodes: Nodes, term: int) -> int:
        """Return strings that do not contain the quote."""
        mark = mark_node(nodes, (self.quote,))
        return nodes.sequence([mark, nodes.text(without(nodes.terms, term, self.quote[0])), mark])

    def string_of(self, nodes: Nodes, grammar: StringGrammar, term: int) -> int:
        """Return strings that do not contain the quote."""
        mark = mark_node(nodes, (self.quote,))
        within = without(nodes.terms, term, self.quote[0])
        return nodes.sequence([mark, grammar.node(nodes, within, None), mark])

    def names(self, name: str) -> tuple[bytes, ...]:
        """Return the name without quotes."""
        return (name.encode(),) if re.fullmatch(self.bare, name) else ()

    def name(self, nodes: Nodes, term: int) -> int:
        """Return names without quotes."""
        return nodes.text(nodes.terms.and_([term, regex_term(nodes.terms, self.bare, whole=True)]))

    @property
    def _quote(self) -> bytes:
        return CONTROL if self.quote[1] else self.quote[0].encode()

    def scalar(self, text: bytes) -> Any:
        """Return the string between quotes, or the value."""
        inner = text.removeprefix(self._quote)
        if len(inner) < len(text):
            return inner.removesuffix(self._quote).decode("utf-8", "surrogatepass")
        return None if text == self.null else json.loads(text)

    def names_before(self, text: bytes) -> list[str]:
        """Return the names before a colon."""
        quote = self._quote
        return _names(text, ((quote, b""),), spaced=True)[1]


@dataclass(frozen=True)
class QuotedSyntax(ValueSyntax):
    """Strings between quotes, with escapes; arrays and objects, which need a look-back, are refused by the makers.

    Attributes:
        plain: the ranges of the characters that are written as such in quotes.
        escapes: pairs of a character and its escape in quotes. All other characters are not written.
        quote: what comes before and after a string.
        bare: the ranges of the characters of strings that may also stand without quotes; empty: none may.
        bare_least: minimum number of characters of such a string.
        null: the text of null.
    """

    plain: tuple[tuple[int, int], ...]
    escapes: tuple[tuple[str, str], ...] = ()
    quote: str = ""
    bare: tuple[tuple[int, int], ...] = ()
    bare_least: int = 0
    null: bytes = b"null"

    def string(self, nodes: Nodes, term: int) -> int:
        """Return the strings in quotes, and without them where they may stand so."""
        terms = nodes.terms
        parts = [respelled(terms, term, CharSet(self.plain), self.escapes, self.quote)]
        if self.bare:
            parts.append(terms.and_([term, self._bare(terms)]))
        return nodes.text(terms.alt(parts))

    def string_of(self, nodes: Nodes, grammar: StringGrammar, term: int) -> int:
        """Return the strings in quotes, and without them where they may stand so."""
        parts = [_grammar_respelled(nodes, grammar, term, CharSet(self.plain), self.escapes, self.quote)]
        if self.bare:
            parts.append(grammar.node(nodes, nodes.terms.and_([term, self._bare(nodes.terms)]), None))
        return nodes.alt(parts)

    def _bare(self, terms: Terms) -> int:
        return terms.repeat(terms.chars(CharSet(self.bare)), self.bare_least, None)


@dataclass(frozen=True)
class YamlSyntax(ValueSyntax):
    """YAML in flow style that is JSON too, read alike by YAML 1.1 and 1.2: every character that is not printable there
    is escaped, and a number with an exponent has a point and a sign."""

    def string(self, nodes: Nodes, term: int) -> int:
        """Return strings in double quotes."""
        return nodes.text(respelled(nodes.terms, term, CharSet(_YAML_PLAIN), _YAML_ESCAPES, '"'))

    def string_of(self, nodes: Nodes, grammar: StringGrammar, term: int) -> int:
        """Return strings in double quotes."""
        return _grammar_respelled(nodes, grammar, term, CharSet(_YAML_PLAIN), _YAML_ESCAPES, '"')

    def number(self, terms: Terms, term: int) -> int:
        """Return the numbers that are no strings in YAML 1.1."""
        return terms.and_([term, regex_term(terms, r"-?\d+(?:\.\d+(?:[eE][-+]\d+)?)?", whole=True)])

    def listed_number(self, value: float) -> bytes:
        """Return the number with a point in its mantissa."""
        mantissa, e, exponent = json_bytes(value).partition(b"e")
        return mantissa + (b".0" if e and b"." not in mantissa else b"") + e + exponent

    def names(self, name: str) -> tuple[bytes, ...]:
        """Return the name as a string."""
        if len(name) > MAX_YAML_NAME:
            return ()
        escapes = dict(_YAML_ESCAPES)
        return (f'"{"".join(escapes.get(char, char) for char in name)}"'.encode("utf-8", "surrogatepass"),)

    def name(self, nodes: Nodes, term: int) -> int:
        """Return the names as strings, short enough for PyYAML."""
        terms = nodes.terms
        return self.string(nodes, terms.and_([term, terms.repeat(terms.ANY, 0, MAX_YAML_NAME)]))

    def names_before(self, text: bytes) -> list[str]:
        """Return the names of the innermost open object."""
        return Written(text).names()

    def items_before(self, text: bytes) -> list[Any]:
        """Return the items of the innermost open array."""
        return [json.loads(item) for item in Written(text).items()]


_YAML_PLAIN = (
    *((0x20, 0x21), (0x23, 0x5B), (0x5D, 0x7E), (0xA0, 0x2027), (0x202A, 0xD7FF)),
    *((0xE000, 0xFEFE), (0xFF00, 0xFFFD), (0x10000, 0x10FFFF)),
)
_YAML_ESCAPES = (
    ('"', '\\"'),
    ("\\", "\\\\"),
    ("\n", "\\n"),
    ("\t", "\\t"),
    ("\r", "\\r"),
    *((chr(code), f"\\u{code:04x}") for code in (*range(0x20), *range(0x7F, 0xA0)) if chr(code) not in "\n\t\r"),
    *((chr(code), f"\\u{code:04x}") for code in (0x2028, 0x2029, 0xFEFF, 0xFFFE, 0xFFFF)),
)


def without(terms: Terms, term: int, text: str) -> int:
    """Return the strings of a term that do not contain a text."""
    return terms.and_([term, terms.not_(terms.sequence([terms.ALL, terms.literal(text), terms.ALL]))])


# -- Python's strings ------------------------------------------------------------------------------------------


def quoted(terms: Terms, term: int, quote: str) -> int:
    """Return Python's literals, in these quotes, of the strings of a term."""
    return respelled(terms, term, _plain(quote), _escapes(quote), quote)


def respelled(terms: Terms, term: int, plain: CharSet, escapes: tuple[tuple[str, str], ...], quote: str = "") -> int:
    """Return the strings of a term, in quotes, with some characters escaped.

    Args:
        terms: the store of the term.
        term: the strings.
        plain: the characters that are written as such. Strings with other characters without an escape are left out.
        escapes: pairs of a character and its escape.
        quote: what comes before and after a string.
    """
    if terms.is_empty(term):
        return terms.EMPTY
    inside = spelled(terms, term, (plain, escapes), partial(_written, plain, escapes))
    return terms.sequence([terms.literal(quote), inside, terms.literal(quote)])


def _written(plain: CharSet, escapes: tuple[tuple[str, str], ...], terms: Terms, chars: CharSet) -> int:
    """Return the spellings of any of some characters."""
    return terms.alt([terms.words([text for char, text in escapes if char in chars]), terms.chars(chars & plain)])


def _grammar_respelled(
    nodes: Nodes,
    grammar: StringGrammar,
    term: int,
    plain: CharSet,
    escapes: tuple[tuple[str, str], ...],
    quote: str = "",
) -> int:
    """Return the strings of a term that are of a grammar too, as `respelled` does those of a term."""
    mark = nodes.literal(quote.encode())
    return nodes.sequence([mark, grammar.node(nodes, term, _spelling(plain, escapes)), mark])


@cache
def _spelling(plain: CharSet, escapes: tuple[tuple[str, str], ...]) -> Spelling:
    return lambda terms, term: respelled(terms, term, plain, escapes)


def _plain(quote: str) -> CharSet:
    return CharSet(_PYTHON_PLAIN) & ~CharSet.of("\\" + quote)


def _escape(code: int) -> str:
    return _ESCAPES.get(code) or f"x{code:02x}"


@cache
def _escapes(quote: str) -> tuple[tuple[str, str], ...]:
    escapes = {chr(code): "\\" + _escape(code) for code in (*range(0x20), 0x5C)}
    return tuple({**escapes, quote: "\\" + quote}.items())


# -- reading back ----------------------------------------------------------------------------------------------


def _names(text: bytes, quotes: tuple[tuple[bytes, bytes], ...], *, spaced: bool = False) -> tuple[int, list[str]]:
    """Return the index of the innermost bracket that is open at the end, or -1, and the names directly in it.

    For example, of ``f(a={"b": [1]}, c=``: 1 and ``["a", "c"]``.

    The text is read backwards, as JSON is by `Written`: the last quote closes a string, which begins at the nearest
    unescaped quote of the same kind before it.

    Args:
        text: a text that does not end inside a string.
        quotes: each kind of quotes, and its escape character (empty: it has none).
        spaced: names without quotes may hold spaces; such a name begins after a comma or bracket.
    """
    stops = b",{(" if spaced else b",{(" + _SPACE
    names: list[str] = []
    depth = 0
    at = len(text)
    named = False  # the next byte to the left, spaces aside, ends a name
    while at > 0:
        quote = next((pair for pair in quotes if text.endswith(pair[0], 0, at)), None)
        if quote is not None:
            end = at
            at = string_start(text, at - len(quote[0]), *quote)
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
            while at > 0 and text[at - 1 : at] not in stops:
                at -= 1
            names.append(text[at:end].decode())
        named = False
    return -1, names[::-1]
