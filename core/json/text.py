"""JSON text: written in UTF-8, and read strictly."""

from __future__ import annotations

import json
import math
import re
from typing import Any

#: White space of JSON (RFC 8259, section 2).
SPACE = " \t\n\r"

#: Any amount of it.
SPACES = re.compile(r"[ \t\n\r]*")

_SURROGATE = re.compile("[\ud800-\udfff]")


def escaped(text: str) -> str:
    """Return JSON text with lone surrogates escaped, because UTF-8 cannot encode them (RFC 3629 section 3)."""
    return text if text.isascii() else _SURROGATE.sub(lambda match: f"\\u{ord(match.group()):04x}", text)


def string_start(text: bytes | bytearray, end: int, quote: bytes = b'"', escape: bytes = b"\\") -> int:
    """Return the index of the nearest quote before ``end`` that is not escaped; -1 if there is none.

    If ``end`` is inside a string, or is the index of its closing quote, this is the index of its opening quote.

    Args:
        text: the text.
        end: an index of it.
        quote: the byte that delimits strings.
        escape: the byte that escapes itself and the quote; empty: none.
    """
    at = end
    while True:
        at = text.rfind(quote, 0, at)
        if at < 0 or not escape:
            return at
        slashes = at
        while slashes > 0 and text[slashes - 1 : slashes] == escape:
            slashes -= 1
        if (at - slashes) % 2 == 0:  # an odd number would escape the quote
            return at


def json_bytes(value: Any, **options: Any) -> bytes:
    """Return the UTF-8 of `json.dumps`, with no more escapes than needed.

    Args:
        value: a JSON value.
        options: of `json.dumps`.

    Law: these bytes are UTF-8, and ``json.loads`` gives back the value (a surrogate pair as its character).
    """
    return escaped(json.dumps(value, ensure_ascii=False, **options)).encode()


def dump_json(value: Any, *, compact: bool = False) -> str:
    """Return a value as JSON without needless escapes; lone surrogates are escaped.

    Args:
        value: the value.
        compact: without spaces; else one after each ``,`` and ``:``, as chat templates have it.

    Raises:
        ValueError: it holds NaN or an infinity.
        TypeError: it holds an object that JSON does not have, a set for example.
    """
    separators = (",", ":") if compact else None
    return escaped(json.dumps(value, ensure_ascii=False, allow_nan=False, separators=separators))


def _refuse(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def _float(text: str) -> float:
    value = float(text)
    if math.isinf(value):
        raise ValueError(f"the number {text[:20]} is out of range")
    return value


def _int(text: str) -> int:
    try:
        return int(text)
    except ValueError:  # the limit of sys.set_int_max_str_digits
        raise ValueError(f"an integer of {len(text)} digits is too long") from None


_STRICT = json.JSONDecoder(parse_constant=_refuse, parse_float=_float, parse_int=_int)


def read_json(text: str) -> Any:
    """Return the value of a JSON text (RFC 8259), if Python can represent it.

    Raises:
        ValueError: the text is not JSON, holds ``NaN`` or ``Infinity``, a number out of range or too long to be read,
            or is nested more deeply than Python's decoder goes.
    """
    try:
        return _STRICT.decode(text)
    except RecursionError:
        raise ValueError("the JSON is nested too deeply") from None


def read_json_prefix(text: str) -> tuple[Any, int]:
    """Return the value with which a text begins, and where it ends; otherwise as `read_json`."""
    try:
        return _STRICT.raw_decode(text)
    except RecursionError:
        raise ValueError("the JSON is nested too deeply") from None
