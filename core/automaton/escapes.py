"""Shortest spelling of a character of a range, raw or in a JSON string."""

from __future__ import annotations

#: The letters after a backslash (RFC 8259 section 7), and the characters that they mean.
SHORT_ESCAPES = {0x22: 0x22, 0x5C: 0x5C, 0x2F: 0x2F, 0x62: 8, 0x66: 12, 0x6E: 10, 0x72: 13, 0x74: 9}

#: Characters to prefer, most readable first: a to z, 0 to 9, A to Z, all of printable ASCII.
_READABLE = (range(0x61, 0x7B), range(0x30, 0x3A), range(0x41, 0x5B), range(0x20, 0x7F))
_POINT, _TAB_AND_LINE_FEED = range(0x2E, 0x2F), range(0x09, 0x0B)


def spell_raw(low: int, high: int) -> bytes:
    """Return the shortest UTF-8 spelling of a character in ``[low, high]``; of equally short ones, the most
    readable."""
    for span in (_POINT, *_READABLE, _TAB_AND_LINE_FEED):
        first = max(low, span.start)
        if first <= min(high, span.stop - 1):
            return bytes((first,))
    if low in range(0xD800, 0xE000):  # surrogates are not characters
        low = 0xE000
    return chr(low).encode()


def spell_quoted(low: int, high: int) -> bytes:
    """Return `spell_raw` for the inside of a JSON string, in which some characters must be escaped."""
    for span in _READABLE:
        for code in range(max(low, span.start), min(high, span.stop - 1) + 1):
            if code not in (0x22, 0x5C):
                return bytes((code,))
    if high > 0x7E and low < 0x800:  # raw, one or two bytes: no escape is shorter
        return chr(max(low, 0x7F)).encode()
    for letter, code in SHORT_ESCAPES.items():
        if low <= code <= high:
            return bytes((0x5C, letter))
    return b"\\u%04x" % low if low < 0x20 else spell_raw(low, high)
