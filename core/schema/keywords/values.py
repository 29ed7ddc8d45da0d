"""Checks of the values that keywords have: JSON, the names of types, patterns."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from math import inf

from ...basics.recent_memo import memoised_if_short
from ...errors import (
    InvalidSchemaError,
    PatternError,
    ToolGrammarError,
    UnsupportedPatternError,
    UnsupportedSchemaError,
)
from ...json.values import TYPES
from ...regex.back_references import MAX_WORDS
from ...regex.compile import regex_code
from .refusals import NARROW

#: Maximum nesting of a value in ``const`` or ``enum``.
MAX_DEPTH = 64

#: Minimum of the integers that are refused: Python reads and writes at most 4,300 digits, or fewer by its settings.
MAX_INTEGER = 10**600

#: The strings that are left out if a pattern is narrowed.
_LEFT_OUT = f"strings in which a group that is referred to matches other than one of its {MAX_WORDS} shortest words"

#: Names of JSON types in other languages.
_FOREIGN_TYPES = {
    "str": "string",
    "text": "string",
    "float": "number",
    "double": "number",
    "decimal": "number",
    "dict": "object",
    "map": "object",
    "list": "array",
    "tuple": "array",
    "none": "null",
}


def type_hint(name: object) -> str:
    """Return the hint for a name that is not a JSON type: the type that is probably meant, or the list of types."""
    known = [*TYPES, "integer"]
    near = get_close_matches(name.lower(), [*known, *_FOREIGN_TYPES], n=1, cutoff=0.6) if isinstance(name, str) else []
    return f"did you mean {_FOREIGN_TYPES.get(near[0], near[0])!r}?" if near else f"use one of {', '.join(known)}"


def is_small(value: object) -> bool:
    """Return True if a JSON value is nested at most `MAX_DEPTH` deep, and no integer in it is too long to be read."""
    level: list[object] = [value]
    for _ in range(MAX_DEPTH + 1):
        inner: list[object] = []
        for item in level:
            if type(item) is int:
                if not -MAX_INTEGER < item < MAX_INTEGER:
                    return False
            elif isinstance(item, Mapping):
                inner.extend(item.values())
            elif isinstance(item, (list, tuple)):
                inner.extend(item)
        if not inner:
            return True
        level = inner
    return False


def is_json(value: object) -> bool:
    """Return True if a value has a JSON text."""
    stack: list[object] = [value]
    seen: set[int] = set()
    while stack:
        item = stack.pop()
        if isinstance(item, (Mapping, list, tuple)):
            if id(item) in seen:
                continue
            seen.add(id(item))
            if isinstance(item, Mapping):
                if not all(isinstance(name, str) for name in item):
                    return False
                stack.extend(item.values())
            else:
                stack.extend(item)
        elif isinstance(item, float):
            if not -inf < item < inf:
                return False
        elif item is not None and not isinstance(item, (str, bool, int)):
            return False
    return True


@memoised_if_short(256)  # the patterns that people copy are met in schema after schema
def pattern_problem(pattern: str, bounded: bool = False) -> UnsupportedSchemaError | InvalidSchemaError | None:
    """Return the error for a pattern that cannot be enforced, with the offset in the pattern; None if it can be.

    Args:
        pattern: the pattern.
        bounded: one of its regular bounds may be enforced instead (see `regex.back_references`).
    """
    try:
        regex_code(pattern, whole=False)
    except PatternError as error:
        if bounded and _has_bounds(pattern):
            message = f"the keyword 'pattern' cannot be enforced exactly, only without {_LEFT_OUT}"
            hint = f"replace the back-reference with a copy of the group, or {NARROW}"
            return UnsupportedSchemaError(message, hint=hint, place=error.place, left_out=_LEFT_OUT)
        kind = UnsupportedSchemaError if isinstance(error, UnsupportedPatternError) else InvalidSchemaError
        return kind(error.message, hint=error.hint, place=error.place)
    except ToolGrammarError as error:
        return UnsupportedSchemaError(error.message, hint=error.hint, place=error.place)
    return None


def _has_bounds(pattern: str) -> bool:
    """Return True if a pattern that is not regular has regular bounds."""
    try:
        return bool(regex_code(pattern, whole=False, bound="inner") and regex_code(pattern, whole=False, bound="outer"))
    except ToolGrammarError:
        return False
