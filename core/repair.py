"""JSON out of free text, for models that cannot be constrained: found, and repaired where only its spelling is wrong.

Repairing corrects spelling (quotes, commas, Python's words). It never supplies an end: a value whose brackets or
quotes are still open was cut, or was not written to its end, and what is missing of it is not known.
"""

from __future__ import annotations

import re
from typing import Any

from .errors import MissingDependencyError, ParseError
from .language.json_text import read_json, read_json_prefix

_TOKENS = re.compile(r"""[{}\[\]"']""")


def extract_json(text: str, *, repair: bool, whole: bool = False) -> Any:
    """Return the JSON value that a text holds.

    The value is the whole text, or a fenced block, or the first object or array that stands in prose and is JSON.

    Args:
        text: what a model wrote.
        repair: also read a value that is not quite JSON, with the ``json-repair`` library.
        whole: the value is all of the text (a fence around it aside); none is looked for in prose.

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
        if not rest or (candidate is not stripped and (not whole or rest == "```")):
            return value
    if ends_early(body):
        raise ParseError("the text ends before its JSON value does", hint="raise max_tokens, or ask again")
    if whole and not _is_one_region(body):
        raise ParseError("the text is not one JSON value", hint="write one JSON value, with nothing around it")
    found = None if whole else _first_value(stripped)
    if found is not None:
        return found[0]
    if not repair:
        raise ParseError("the text holds no JSON value", hint="constrain the model, or allow repair")
    try:
        import json_repair
    except ImportError:
        raise MissingDependencyError(
            "broken JSON can be repaired only with json-repair", hint="pip install 'toolgrammar[repair]'"
        ) from None
    try:
        value = json_repair.loads(stripped)
    except (ValueError, RecursionError) as error:
        raise ParseError(f"the text holds no readable JSON value: {error}", hint="ask the model again") from None
    if value == "" and stripped not in ('""', "''"):
        raise ParseError("the text holds no JSON value", hint="ask the model for JSON")
    return value


def ends_early(text: str) -> bool:
    """Return whether a text ends inside a JSON value: a bracket or a quote that it opened is still open.

    Reads quotes as leniently as a repair does, so that it also judges what is not quite JSON. A number at the end of
    the text does not count, although it might have gone on; see `may_go_on`.
    """
    stripped = text.strip()
    if stripped.startswith('"'):
        return _string_end(stripped, 0) is None
    return _regions(stripped)[1]


def may_go_on(value: Any) -> bool:
    """Return whether the JSON text of a value, cut at its end, could be the beginning of another value's: a number."""
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _unfenced(text: str) -> str:
    """Return what follows the opening of a fenced block (three backquotes and a word), or the text itself."""
    fence = text.find("```")
    if fence < 0:
        return text
    line = text.find("\n", fence)
    return text[line + 1 if line >= 0 else fence + 3 :].lstrip()


def _is_one_region(text: str) -> bool:
    """Return whether a text is one bracketed region, with nothing but closing marks behind it."""
    regions = _regions(text)[0]
    return bool(regions) and regions[0][0] == 0 and not text[regions[0][1] :].strip(" \t\r\n]}`")


def _first_value(text: str) -> tuple[Any] | None:
    """Return the first bracketed region that is JSON, in a tuple; None if there is none."""
    for start, end in _regions(text)[0]:
        try:
            return (read_json(text[start:end]),)
        except ValueError:
            continue
    return None


def _regions(text: str) -> tuple[list[tuple[int, int]], bool]:
    """Return the outermost bracketed regions of a text, and whether the last one is still open at its end.

    A quote opens a string only inside brackets, and a single quote only where a key or a value may begin, so that
    apostrophes in prose and in double-quoted strings count for nothing.
    """
    found: list[tuple[int, int]] = []
    depth = start = index = 0
    while (match := _TOKENS.search(text, index)) is not None:
        char, at = match.group(), match.start()
        index = at + 1
        if char in "{[":
            start = start if depth else at
            depth += 1
        elif not depth:
            continue
        elif char in "}]":
            depth -= 1
            if not depth:
                found.append((start, index))
        elif char == '"' or _begins_item(text, at):
            end = _string_end(text, at)
            if end is None:
                return found, True
            index = end
    return found, depth > 0


def _begins_item(text: str, at: int) -> bool:
    """Return whether a key or a value may begin at ``at``, inside brackets."""
    at -= 1
    while text[at] in " \t\r\n":
        at -= 1
    return text[at] in "{[,:("


def _string_end(text: str, start: int) -> int | None:
    """Return the index behind the string whose opening quote stands at ``start``; None if it is not closed."""
    quote = text[start]
    index = start + 1
    while (at := text.find(quote, index)) >= 0:
        slashes = at - len(text[index:at].rstrip("\\")) - index
        if slashes % 2 == 0:
            return at + 1
        index = at + 1
    return None
