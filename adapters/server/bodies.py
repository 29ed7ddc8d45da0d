"""Bodies of requests as JSON: parsed at once if they are small, else in steps that other threads run between."""

from __future__ import annotations

import json
from collections.abc import Callable
from json import decoder
from typing import Any

from toolgrammar.core.basics import pause

from .fields import RequestError

#: Maximum number of brackets and commas up to which a body is parsed at once, in some 15 ms: no other thread runs
#: meanwhile. Commas within texts count, so a longer body may have few values.
MAX_AT_ONCE = 100_000

#: Maximum number of values in a body.
MAX_VALUES = 500_000

#: Number of values between two pauses.
_BETWEEN = 1_000


def is_small(data: bytes) -> bool:
    """Return True if a body can be parsed at once."""
    return sum(map(data.count, (b",", b"[", b"{"))) <= MAX_AT_ONCE


def parse(data: bytes) -> Any:
    """Return the JSON value of a body.

    Raises:
        RequestError: it is no JSON, or has more than `MAX_VALUES` values.
        Ended: the request is over (see `core/basics/pauses.py`).
    """
    try:
        return json.loads(data, cls=json.JSONDecoder if is_small(data) else _Decoder, parse_constant=_no_constant)
    except (ValueError, RecursionError):
        raise RequestError("the body is not JSON", hint="send a JSON object") from None


class _Decoder(json.JSONDecoder):
    """A decoder whose loop over values is interpreted, and counts them."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        inner: Any = decoder
        arrays, objects = inner.JSONArray, inner.JSONObject
        left = MAX_VALUES

        def counted(scan: Callable[..., Any]) -> Callable[..., Any]:
            def scan_one(text: str, at: int) -> Any:
                nonlocal left
                left -= 1
                if left < 0:
                    hint = f"at most {MAX_VALUES:,} are accepted"
                    raise RequestError("the body has too many values", hint=hint, status=413)
                if left % _BETWEEN == 0:
                    pause()
                return scan(text, at)

            return scan_one

        def array(start: Any, scan: Callable[..., Any], *more: Any) -> Any:
            return arrays(start, counted(scan), *more)

        def members(start: Any, strict: bool, scan: Callable[..., Any], *more: Any) -> Any:
            return objects(start, strict, counted(scan), *more)

        self.parse_array, self.parse_object = array, members
        self.scan_once = inner.scanner.py_make_scanner(self)


def _no_constant(text: str) -> Any:
    raise ValueError(f"{text} is not JSON")
