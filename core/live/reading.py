"""The arguments of a call as far as a text has them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

from ..errors import LiveValuesError, ToolGrammarError
from ..grammar import Grammar
from ..reading import Reader, marked_json


def read_call(
    make_grammars: Sequence[Callable[[], Grammar]], text: bytes, controls: Sequence[str]
) -> tuple[str | None, list[dict[str, Any]]]:
    """Return the tool of the call that a text has begun, and the open objects of its arguments, innermost first; of a
    JSON answer, None and its open objects.

    Args:
        make_grammars: makes the reading grammars of the turn, one after the other until one has the text; newlines
            between reasoning and answer may come before it.
        text: the text so far; a control token is `CONTROL`.
        controls: the names of its control tokens.

    Raises:
        LiveValuesError: the text is neither.
    """
    for make_grammar in make_grammars:
        try:
            grammar = make_grammar()
        except ToolGrammarError:
            continue
        for begun in dict.fromkeys((text, text.lstrip(b"\n"))):
            reader = Reader(grammar)
            reader.read(begun, controls)
            calls = reader.calls(begun)
            if not reader.is_lost and calls and calls[-1].open:
                return calls[-1].tool, calls[-1].objects(begun)
    raise LiveValuesError(
        "the library cannot read the call that is being written, so it cannot ask for the values of a parameter",
        hint="please report it, with the tool and the format; another tool_format may read it",
    )


def read_open(text: bytes) -> list[dict[str, Any]]:
    """Return the objects that are open at the end of a text, innermost first, each with its complete members.

    The text is JSON, perhaps with other text before it.
    """
    for begin, byte in enumerate(text):  # the JSON begins at the first bracket from which all is JSON
        if byte in b"{[":
            data = text[begin:]
            reader = Reader(_any_json())
            reader.feed(data)
            calls = reader.calls(data)
            if not reader.is_lost and calls and not calls[-1].is_whole:
                return calls[-1].objects(data)
    return []


@lru_cache(maxsize=1)
def _any_json() -> Grammar:
    return marked_json(True, whitespace="flexible", property_order="any")
