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
    innermost, forced = unfinished_pointers(text, offset)
    return tuple(dict.fromkeys(([] if innermost is None else [innermost]) + list(forced)))


def unfinished_pointers(text: str, offset: int) -> tuple[str | None, tuple[str, ...]]:
    """Return the JSON pointers of what is not finished at a character of a JSON text.

    Returns:
        The innermost value that is open there, if one is; and each value that begins there or after it (not its parts).
    """
    innermost: Value | None = None
    forced: list[Value] = []
    for value in values_of(text):
        is_scalar = text[value.start] not in '"{['
        if value.start >= offset:
            if value.parent is None or value.parent.start < offset:
                forced.append(value)
        elif value.end > offset or (is_scalar and value.end == offset < len(text)):  # a number might have gone on
            innermost = value
    return None if innermost is None else innermost.pointer(), tuple(value.pointer() for value in forced)
