"""JSON in UTF-8."""

from __future__ import annotations

import json
import re
from typing import Any

_SURROGATE = re.compile("[\ud800-\udfff]")


def escaped(text: str) -> str:
    """JSON in which lone surrogates, which UTF-8 cannot carry (RFC 3629 section 3), are escapes."""
    return text if text.isascii() else _SURROGATE.sub(lambda match: f"\\u{ord(match.group()):04x}", text)


def json_bytes(value: Any, **options: Any) -> bytes:
    """What `json.dumps` writes, with no more escapes than it takes.

    Args:
        value: a JSON value.
        options: of `json.dumps`.

    Law: these bytes are UTF-8, and ``json.loads`` gives back the value (two halves of one character are that one).
    """
    return escaped(json.dumps(value, ensure_ascii=False, **options)).encode()
