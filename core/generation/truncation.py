"""Truncated values of a JSON text that the token budget closed by force."""

from __future__ import annotations

import json

from .json_places import Value, values_of


def truncated_pointers(text: str, offset: int) -> tuple[str, ...]:
    """Return the JSON pointers (RFC 6901) of the values that were closed, or written, by force.

    Args:
        text: a valid JSON text.
        offset: from this character on, the text was forced.

    Returns:
        The innermost value that was open at ``offset``, then every value that begins after it (not its parts). Nothing
        if the text is not JSON.
    """
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return ()
    if offset <= 0:
        return ("",)
    innermost: list[Value] = []
    forced: list[Value] = []
    for value in values_of(text):
        is_scalar = text[value.start] not in '"{['
        if value.start >= offset:
            if value.parent is None or value.parent.start < offset:
                forced.append(value)
        elif value.end > offset or (is_scalar and value.end == offset < len(text)):  # a number might have gone on
            innermost = [value]
    return tuple(dict.fromkeys(value.pointer() for value in innermost + forced))
