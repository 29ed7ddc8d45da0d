"""Decoded JSON values: their types, and when two of them are equal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .keys import value_key

#: JSON types of values.
TYPES = ("null", "boolean", "number", "string", "array", "object")


def type_of(value: Any) -> str:
    """Return the JSON type of a decoded value."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, (int, float)):
        return "number"
    if isinstance(value, str):
        return "string"
    return "array" if isinstance(value, (list, tuple)) else "object"


def same_value(left: Any, right: Any) -> bool:
    """Return True if two values are equal as JSON Schema defines it: 1 and 1.0 are, 1 and true are not."""
    return value_key(left) == value_key(right)


def is_among(value: Any, listed: Sequence[Any]) -> bool:
    """Return True if a value is equal to one of a list as `same_value` has it."""
    kind = type_of(value)
    if kind in ("array", "object"):
        return any(same_value(value, other) for other in listed)
    return any(value == other and type_of(other) == kind for other in listed)  # `==` first: most differ for Python too


def in_both(left: tuple[Any, ...], right: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the values of one list that are in the other as well."""
    keys = set(map(value_key, right))
    return tuple(value for value in left if value_key(value) in keys)
