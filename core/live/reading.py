"""The arguments of a call as far as a text has them."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from ..grammar import Grammar
from ..reading import Reader, marked_json

#: The arguments of a call as far as they are written: the tool, and the open objects, innermost first.
Reading = tuple["str | None", "list[dict[str, Any]]"]


def read_open(text: bytes) -> list[dict[str, Any]]:
    """Return the objects that are open at the end of a text, innermost first, each with its complete members.

    The text is JSON, perhaps with other text before it.
    """
    for begin, byte in enumerate(text):
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
