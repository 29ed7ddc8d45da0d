"""Patterns of strings that hold JSON.

The pattern describes fewer texts than the schema allows: strings are written without escapes, numbers without an
exponent, and values of no use are left out where they are not asked for. What it describes is valid under the schema.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from .number_texts import KEYWORDS, integer_pattern, number_pattern

_ANNOTATIONS = frozenset({"title", "description", "default", "examples", "deprecated"})
#: Longer patterns are not worth it.
_LONGEST = 20_000
#: References are followed so deep.
_DEEPEST = 6

_CHARACTER = r'[^"\\\x00-\x1f\x7f]'
INTEGER = r"(?:0|-?[1-9][0-9]{0,17})"
NUMBER = r"-?(?:0|[1-9][0-9]{0,17})(?:\.[0-9]{1,17})?"
_COMMA, _COLON = ", ?", ": ?"
_MOST_VALUES = 1_000


def json_pattern(schema: Any, definition: Callable[[str], Any]) -> str | None:
    """Return a pattern of JSON texts that are valid under a schema, or None if there is no easy one.

    Args:
        schema: the schema of the decoded text.
        definition: returns what a ``$ref`` stands for, or None.
    """
    found = _Patterns(definition).of(schema, 0)
    return None if found is None or len(found) > _LONGEST else f"^{found}$"


class _Patterns:
    """Patterns of the schemas of one document; None: no easy one."""

    def __init__(self, definition: Callable[[str], Any]) -> None:
        self._definition = definition

    def of(self, schema: Any, depth: int) -> str | None:
        if schema is True:
            return _ANYTHING
        if not isinstance(schema, Mapping) or depth > _DEEPEST:
            return None
        asked = {key: value for key, value in schema.items() if key not in _ANNOTATIONS}
        kind = asked.pop("type", None)
        if "enum" in asked or "const" in asked:
            values = asked.pop("enum") if "enum" in asked else [asked.pop("const")]
            return _choice([_literal(value) for value in values[:_MOST_VALUES]]) if not asked else None
        if kind is None:
            return self._untyped(asked, depth)
        if kind in ("integer", "number"):
            if not asked:
                return INTEGER if kind == "integer" else NUMBER
            if not asked.keys() <= KEYWORDS:
                return None
            return integer_pattern(asked) if kind == "integer" else number_pattern(asked)
        if kind in ("boolean", "null"):
            return {"boolean": "(?:true|false)", "null": "null"}[kind] if not asked else None
        if kind == "string":
            least, most = asked.pop("minLength", 0), asked.pop("maxLength", None)
            return f'"{_CHARACTER}{_times(least, most)}"' if not asked else None
        if kind == "array":
            return self._array(asked, depth)
        return self._object(asked, depth) if kind == "object" else None

    def _untyped(self, asked: dict[str, Any], depth: int) -> str | None:
        if not asked:
            return _ANYTHING
        if asked.keys() == {"$ref"}:
            return self.of(self._definition(asked["$ref"]), depth + 1)
        if asked.keys() == {"anyOf"}:
            options = [self.of(each, depth + 1) for each in asked["anyOf"]]
            return _choice([each for each in options if each is not None])
        return None

    def _array(self, asked: dict[str, Any], depth: int) -> str | None:
        least, most = asked.pop("minItems", 0), asked.pop("maxItems", None)
        if asked.pop("uniqueItems", False):
            most = 1  # items of any kind are not told apart by a pattern
        prefix, items = asked.pop("prefixItems", None), asked.pop("items", True)
        if asked or (most is not None and least > most):
            return None
        if prefix is not None:
            parts = [self.of(each, depth + 1) for each in prefix]
            if None in parts or not least <= len(parts) or (most is not None and most < len(parts)):
                return None
            return rf"\[{_COMMA.join(part for part in parts if part is not None)}\]"
        return _repeated("[", self.of(items, depth + 1), "]", least, most)

    def _object(self, asked: dict[str, Any], depth: int) -> str | None:
        properties, required = asked.pop("properties", {}), asked.pop("required", [])
        rest = asked.pop("additionalProperties", True)
        if asked or not properties.keys() >= set(required):
            return None
        if not properties:
            value = self.of(rest, depth + 1)
            member = None if value is None else f'"{_CHARACTER}*"{_COLON}{value}'
            return _repeated("{", member, "}", 0, None)
        needed: list[str] = []
        optional: list[str] = []
        for name, schema in properties.items():
            value = self.of(schema, depth + 1)
            if value is None and name in required:
                return None
            if value is not None:
                (needed if name in required else optional).append(f"{_literal(name)}{_COLON}{value}")
        if needed:
            body = _COMMA.join(needed) + "".join(f"(?:{_COMMA}{each})?" for each in optional)
        else:
            starts = [
                first + "".join(f"(?:{_COMMA}{each})?" for each in optional[at + 1 :])
                for at, first in enumerate(optional[:4])
            ]
            body = f"(?:{'|'.join(starts)})?" if starts else ""
        return rf"\{{{body}\}}"


def _literal(value: Any) -> str:
    """Return the pattern of the JSON text of a value."""
    return re.sub(r"([\\^$.*+?()\[\]{}|/])", r"\\\1", json.dumps(value))


def _choice(options: Sequence[str]) -> str | None:
    return f"(?:{'|'.join(options)})" if options else None


def _times(least: int, most: int | None) -> str:
    return f"{{{least},{'' if most is None else most}}}"


def _repeated(opening: str, part: str | None, closing: str, least: int, most: int | None) -> str | None:
    """Return the pattern of a list of parts in brackets; of no parts, where there is none."""
    if part is None or most == 0:
        return rf"\{opening}\{closing}" if least == 0 else None
    more = _times(max(least - 1, 0), None if most is None else most - 1)
    some = f"{part}(?:{_COMMA}{part}){more}"
    return rf"\{opening}{some if least else f'(?:{some})?'}\{closing}"


_SCALAR = f'(?:"{_CHARACTER}*"|{NUMBER}|true|false|null)'
_ANYTHING = (
    rf"(?:{_SCALAR}|{_repeated('[', _SCALAR, ']', 0, None)}"
    rf'|{_repeated("{", f""""{_CHARACTER}*"{_COLON}{_SCALAR}""", "}", 0, None)})'
)
