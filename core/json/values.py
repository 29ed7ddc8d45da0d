"""Decoded JSON values: their types, and when two of them are equal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

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
    if type_of(left) != type_of(right):
        return False
    if isinstance(left, dict):
        return left.keys() == right.keys() and all(same_value(value, right[key]) for key, value in left.items())
    if isinstance(left, (list, tuple)):
        return len(left) == len(right) and all(map(same_value, left, right))
    return bool(left == right)


def is_among(value: Any, listed: Sequence[Any]) -> bool:
    """Return True if a value is equal to one of a list as `same_value` has it."""
    kind = type_of(value)
    if kind in ("array", "object"):
        return any(same_value(value, other) for other in listed)
    return any(value == other and type_of(other) == kind for other in listed)  # `==` first: most differ for Python too


def in_both(left: tuple[Any, ...], right: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the values of one list that are in the other as well."""
    scalars, compounds = set(), []
    for value in right:
        kind = type_of(value)
        if kind in ("array", "object"):
            compounds.append(value)
        else:
            scalars.add((kind, value))
    found = []
    for value in left:
        kind = type_of(value)
        if kind in ("array", "object"):
            if any(same_value(value, each) for each in compounds):
                found.append(value)
        elif (kind, value) in scalars:
            found.append(value)
    return tuple(found)
