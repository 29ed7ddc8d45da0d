"""Keys of JSON values: a canonical JSON text, equal for equal values."""

from __future__ import annotations

import json
from functools import lru_cache
from json.encoder import encode_basestring_ascii
from typing import Any

#: Maximum length of a key whose value is memoised.
MAX_SHORT = 1_000


def value_of_key(key: str) -> Any:
    """Return the value of a key."""
    return _short_value(key) if len(key) <= MAX_SHORT else json.loads(key)


_short_value = lru_cache(maxsize=4_096)(json.loads)


def value_key(value: Any) -> str:
    """Return the key of a value: 1 and 1.0 have the same key, and so do objects with members in another order."""
    if type(value) is str:
        return encode_basestring_ascii(value)
    return json.dumps(_normal(value), sort_keys=True)


def _normal(value: Any) -> Any:
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, dict):
        return {name: _normal(item) for name, item in value.items()}
    return [_normal(item) for item in value] if isinstance(value, (list, tuple)) else value
