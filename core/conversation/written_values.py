"""Values written in a text: JSON documents, the values after names (``id: 5``, ``id=5``), and numbers in digits."""

from __future__ import annotations

import ast
import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from ..schema.keywords.values import MAX_INTEGER

#: A number in digits, which is no part of a word, a date or a longer number.
_NUMBERS = re.compile(
    r"(?<![\w.,:/+-])(?<!\d-)-?(?:0|[1-9]\d{0,2}(?:,\d{3})+|[1-9]\d{0,17})(?:\.\d{1,17})?(?![\w:/-]|[.,]\d)", re.ASCII
)

#: A JSON value in a text begins with one of these.
OPENING = re.compile(r"[{\[]")
_DECODER = json.JSONDecoder()

#: Halves of characters, which no text in UTF-8 has.
SURROGATES = re.compile(r"[\ud800-\udfff]+")

#: A quoted value in a text, by its quote. An apostrophe before a letter is no quote.
_QUOTED = {
    '"': re.compile(r'"((?:[^"\\\n]|\\.)*)"'),
    "'": re.compile(r"'((?:[^'\\\n]|\\.|'(?=\w))*)'"),
    "`": re.compile(r"`([^`\n]*)`"),
}

#: What may end a value without quotes: white space, markup, the end of a quotation around it, a bracket, and a mark
#: before another pair (``a=1,b=2``).
_ENDS = re.compile(r"""[\s<>()\[\]{}#,;|&]|(?<!["'`*])["'`*]+(?=[\s.,;:!?)\]}|<]|\Z)""")
_CLOSING = {")": "(", "]": "[", "}": "{"}
_NEXT = {"=": re.compile(r"[,;|&][\w.-]+="), ":": re.compile(r"[,;|][\w.-]+:")}

#: The first character of such a value; and the beginning of an address, in which ``a=1&b=2`` is no other pair.
_BEGIN, _ADDRESS = re.compile(r"[\w/~.@+-]"), re.compile(r"(?:\w+:/)?/")

#: What ends a sentence, and marks around a value.
_TRAILING = ".,;:!?|*\"'`"


class Document(NamedTuple):
    """A JSON object or array in a text.

    Attributes:
        begin: the index of its first character.
        end: the index after its last one.
        value: its value.
    """

    begin: int
    end: int
    value: Any


def numbers_in(text: str) -> Iterator[tuple[int, int | float]]:
    """Yield the numbers that stand in a text in digits, after their indices; commas in ``1,250.50`` are left out."""
    for match in _NUMBERS.finditer(text):
        number = json.loads(match[0].replace(",", ""))
        if is_writable(number):
            yield match.start(), number


def values_in(text: str, path: Sequence[str]) -> Iterator[Any]:
    """Yield the values under a path in the text of a result: those in its JSON documents, then, in the text around
    them, those after the last name of the path (``id: 5`` for ``["order", "id"]``)."""
    if text.lstrip().startswith('"'):  # a text as JSON: what it holds may be JSON again
        try:
            said = json.loads(text)
        except ValueError:
            said = text
        text = said if isinstance(said, str) else text
    documents = list(documents_in(text))
    for document in documents:
        yield from under(document.value, path)
    yield from _named(text, path[-1], documents)


def _named(text: str, name: str, documents: Sequence[Document]) -> Iterator[str]:
    """Yield the values that stand after a name and a separator in a text, outside of its JSON documents.

    Args:
        text: the text.
        name: the name, in any case.
        documents: the documents, in order.
    """
    pattern = re.compile(rf"(?<![\w-]){re.escape(name)}([\"'`*]*)\s*(:|=|\bis\b|#)\**\s*\**", re.I)
    later = iter((*documents, Document(len(text) + 1, len(text) + 1, None)))  # with one that no name reaches
    document = next(later)  # the first document that does not end before the name
    unclosed: dict[str, int] = {}  # by quote, the end of a line in which it closes no value: not searched again
    at = 0
    while (head := pattern.search(text, at)) is not None:
        while document.end <= head.start():
            document = next(later)
        if document.begin <= head.start():  # the name is inside a document
            at = document.end
            continue
        at = head.end()
        first = text[at : at + 1]  # of the value
        value = ""
        if first in _QUOTED:
            if at >= unclosed.get(first, 0):
                match = _QUOTED[first].match(text, at)
                if match is not None:
                    value, at = _unquoted(match, is_json=head[1].startswith('"')), match.end()
                else:  # the value may be cut: it does not count
                    line_end = text.find("\n", at)
                    unclosed[first] = len(text) if line_end < 0 else line_end
        elif _BEGIN.match(first):
            is_in_query = text[max(head.start() - 1, 0) : head.start()] in ("?", "&")
            value, at = _bare(text, at, "query" if is_in_query else head[2])
        if value.strip() and not SURROGATES.search(value):
            yield value


def _unquoted(match: re.Match[str], is_json: bool) -> str:
    """Return a value without its quotes; ``is_json``: its name has quotes too, as in JSON that is cut."""
    if is_json and match[0].startswith('"'):
        try:
            return str(json.loads(match[0]))
        except ValueError:
            pass
    return match[1].replace("\\" + match[0][0], match[0][0])


def _bare(text: str, at: int, separator: str) -> tuple[str, int]:
    """Return the value without quotes that begins at an index of a text, and where it ends: ``A-5`` of ``A-5, see``.

    Args:
        text: the text.
        at: the index.
        separator: what stands before it; ``"query"``: it is that of a name in the query of an address.
    """
    next_pair = None if _ADDRESS.match(text, at) else _NEXT.get(separator)
    opened: list[int] = []  # the indices of the open brackets in the value
    end = len(text)
    for found in _ENDS.finditer(text, at):
        mark = found[0]
        if mark in "([{":
            opened.append(found.start())
            continue
        if mark in _CLOSING:
            is_end = not opened or text[opened.pop()] != _CLOSING[mark]  # its opening bracket is before the value
        elif mark in "#&" and separator == "query":
            is_end = True
        elif mark in "#,;|&":
            is_end = next_pair is not None and next_pair.match(text, found.start()) is not None
        else:  # white space, markup or the end of a quotation
            is_end = True
        if is_end:
            end = found.start()
            break
    # The value ends before a bracket that is not closed.
    value = text[at : opened[0] if opened else end].rstrip(_TRAILING)
    return (value if re.search(r"\w", value) else ""), max(end, at + 1)


def documents_in(text: str) -> Iterator[Document]:
    """Yield the JSON objects and arrays in a text; one in Python's notation too, if it is the whole text."""
    at = 0
    while (begin := OPENING.search(text, at)) is not None:
        try:
            value, at = _DECODER.raw_decode(text, begin.start())
            yield Document(begin.start(), at, value)
            continue
        except (ValueError, RecursionError):
            pass
        if not text[: begin.start()].strip():  # nothing is before it
            try:
                yield Document(0, len(text), ast.literal_eval(text.strip()))
                return
            except (ValueError, SyntaxError, MemoryError, RecursionError, TypeError):
                pass
        at = begin.end()


def under(value: Any, path: Sequence[str]) -> Iterator[Any]:
    """Yield the scalars under a path in a value, at any depth: for ``["order", "id"]``, each ``id`` in an ``order``;
    lists between the two do not count."""
    waiting: list[tuple[Any, tuple[str, ...]]] = [(value, ())]
    while waiting:
        part, names = waiting.pop()
        if isinstance(part, Mapping):
            above = names[max(len(names) - len(path) + 1, 0) :]  # as many as a path has above its last name
            waiting += [(inner, (*above, str(name))) for name, inner in reversed(list(part.items()))]
        elif isinstance(part, (list, tuple)):
            waiting += [(inner, names) for inner in reversed(part)]
        elif names == tuple(path) and is_writable(part):
            yield part


def is_writable(value: Any) -> bool:
    """Return True for a string or a number that a list of values may have."""
    if isinstance(value, str):
        return value.isascii() or SURROGATES.search(value) is None
    if isinstance(value, int):
        return not isinstance(value, bool) and -MAX_INTEGER < value < MAX_INTEGER
    return isinstance(value, float) and math.isfinite(value)
