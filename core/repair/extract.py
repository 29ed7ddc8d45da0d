"""Extraction of JSON from the free text of models that cannot be constrained, with repair of its spelling.

Repair corrects spelling (quotes, commas, Python's words). It never supplies an end: a value with open brackets or
quotes was cut, and its rest is unknown.

Brackets are searched in prose, where apostrophes and lone quotes open no string. So the strict tokens of
`generation.json_places` do not apply here.
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from ..errors import MissingDependencyError, ParseError
from ..json import SPACE, read_json, read_json_prefix

_TOKENS = re.compile(r"""[{}\[\]"']""")
_STRINGS = {quote: re.compile(rf"{quote}[^{quote}\\]*(?:\\.[^{quote}\\]*)*{quote}", re.DOTALL) for quote in "\"'"}


def extract_json(text: str, *, repair: bool, whole: bool = False) -> Any:
    """Return the JSON value in a text: the whole text, a fenced block, or the first object or array in prose.

    Args:
        text: the text of a model.
        repair: also read a value that is nearly JSON, with the ``json-repair`` library.
        whole: the value must be the whole text, apart from a fence around it; prose is not searched.

    Raises:
        ParseError: there is no JSON value in the text, or it ends before the value does.
        MissingDependencyError: repair is needed, and ``json-repair`` is not installed.
    """
    stripped = text.strip()
    body = _unfenced(stripped)
    for candidate in dict.fromkeys((stripped, body)):
        try:
            value, end = read_json_prefix(candidate)
        except ValueError:
            continue
        rest = candidate[end:].strip()
        was_fenced = candidate is not stripped  # then the closing fence may follow, and prose after it
        if not rest or (was_fenced and (rest == "```" or not whole)):
            return value
    if ends_early(body):
        raise ParseError("the text ends before its JSON value does", hint="raise max_tokens, or ask again")
    if whole and not _is_one_region(body):
        raise ParseError("the text is not one JSON value", hint="write only one JSON value")
    if not whole and (first := _first_value(stripped)) is not None:
        return first[0]
    if not repair:
        raise ParseError("the text contains no JSON value", hint="constrain the model, or allow repair")
    try:
        import json_repair
    except ImportError:
        raise MissingDependencyError(
            "broken JSON can be repaired only with json-repair", hint="pip install 'toolgrammar[repair]'"
        ) from None
    try:
        value = json_repair.loads(stripped)
    except (ValueError, RecursionError) as error:
        raise ParseError(f"the text contains no readable JSON value: {error}", hint="ask the model again") from None
    if value == "" and stripped not in ('""', "''"):
        raise ParseError("the text contains no JSON value", hint="ask the model for JSON")
    return value


def ends_early(text: str) -> bool:
    """Return True if a text ends inside a JSON value: a bracket or a quote that it opened is still open.

    Single quotes open strings too, as in a repair, so that text that is nearly JSON is judged as well. A number at the
    end of the text does not count, although more digits might follow (see `may_go_on`).
    """
    stripped = text.strip()
    if stripped.startswith('"'):
        return _STRINGS['"'].match(stripped) is None
    return _regions(stripped).is_open


def may_go_on(value: Any) -> bool:
    """Return True if more text could follow a complete JSON value that was cut: it is a number."""
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _unfenced(text: str) -> str:
    """Return the text after the opening fence of a code block (three backquotes and a word), or the whole text."""
    fence = text.find("```")
    if fence < 0:
        return text
    line = text.find("\n", fence)
    return text[line + 1 if line >= 0 else fence + 3 :].lstrip()


def _is_one_region(text: str) -> bool:
    """Return True if a text begins with a bracketed region, with nothing but closing marks after it."""
    spans = _regions(text).spans
    return bool(spans) and spans[0][0] == 0 and not text[spans[0][1] :].strip(" \t\r\n]}`")


def _first_value(text: str) -> tuple[Any] | None:
    """Return the first bracketed region that is JSON, in a tuple; None if there is none."""
    for start, end in _regions(text).spans:
        try:
            return (read_json(text[start:end]),)
        except ValueError:
            continue
    return None


class _Regions(NamedTuple):
    """The outermost bracketed regions of a text: start and end of each; and True if a bracket is open at its end."""

    spans: list[tuple[int, int]]
    is_open: bool


def _regions(text: str) -> _Regions:
    """Return the outermost bracketed regions of a text: ``a {"b": 1} [c`` -> the span of ``{"b": 1}``, and one is open.

    A quote opens a string only inside brackets, and a single quote only where a key or a value may begin, so that
    apostrophes in prose and in double-quoted strings count for nothing.
    """
    spans: list[tuple[int, int]] = []
    depth = start = index = 0
    while (token := _TOKENS.search(text, index)) is not None:
        char, index = token.group(), token.end()
        if char in "{[":
            start = start if depth else token.start()
            depth += 1
        elif not depth:
            continue
        elif char in "}]":
            depth -= 1
            if not depth:
                spans.append((start, index))
        elif char == '"' or _begins_item(text, token.start()):
            string = _STRINGS[char].match(text, token.start())
            if string is None:
                return _Regions(spans, True)
            index = string.end()
    return _Regions(spans, depth > 0)


def _begins_item(text: str, position: int) -> bool:
    """Return True if a key or a value may begin at a position inside of brackets."""
    position -= 1
    while text[position] in SPACE:  # there is a bracket before
        position -= 1
    return text[position] in "{[,:("
