"""Keys of JSON values: the same text for equal values, which JSON reads back."""

from __future__ import annotations

import json
from functools import lru_cache
from json.encoder import encode_basestring_ascii
from typing import Any


@lru_cache(maxsize=4_096)
def value_of_key(key: str) -> Any:
    """Return a value by its key."""
    return json.loads(key)


def value_key(value: Any) -> str:
    """Return the same text for equal values, and only for them: 1 and 1.0 are equal, and members have no order."""
    if type(value) is str:
        return encode_basestring_ascii(value)
    return json.dumps(_normal(value), sort_keys=True)


def _normal(value: Any) -> Any:
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, dict):
        return {name: _normal(item) for name, item in value.items()}
    return [_normal(item) for item in value] if isinstance(value, (list, tuple)) else value
