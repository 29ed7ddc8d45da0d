"""Truncated values of a JSON text that was completed at the end of the token budget."""

from __future__ import annotations

import json

from .json_places import values_of


def truncated_pointers(text: str, offset: int) -> tuple[str, ...]:
    """Return the JSON pointers (RFC 6901) of the truncated values.

    Args:
        text: a valid JSON text.
        offset: index of the first forced character.

    Returns:
        The innermost value that was incomplete at ``offset``, then every value that begins there or later (not its
        parts). Empty if the text is not JSON.
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
    """Return the JSON pointers of the values that are incomplete at a character of a JSON text.

    Returns:
        The innermost value that is incomplete there, if any; and each value that begins there or later (not its parts).
    """
    innermost: str | None = None
    forced: list[str] = []
    for value in values_of(text):
        is_number = text[value.start] in "-0123456789"
        end = value.end if value.end >= 0 else len(text)
        if value.start >= offset:
            if value.parent is None or value.parent.start < offset:
                forced.append(value.pointer)
        elif end > offset or (is_number and end == offset < len(text)):  # it could continue
            innermost = value.pointer
    return innermost, tuple(forced)


def complete_pointers(text: str, since: int = 0) -> list[str]:
    """Return the JSON pointers of the values that are complete in a JSON text that may be truncated anywhere, in the
    order of their ends.

    Args:
        text: the text.
        since: values that end before this character are left out.
    """
    complete = [value for value in values_of(text) if value.end >= since]
    return [value.pointer for value in sorted(complete, key=lambda value: value.end)]
