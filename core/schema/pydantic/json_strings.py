"""Patterns of strings that hold JSON, from the schema of the decoded value.

Every text that matches decodes to a valid value, but not every valid text matches: strings have no escapes, numbers no
exponent, and optional members without a simple pattern are left out.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from itertools import islice
from typing import Any

from ..read.keywords import KEYWORDS

#: Maximum number of alternatives of a pattern.
MAX_VALUES = 1_000
#: Maximum length of a pattern.
_MAX_LENGTH = 20_000
#: Maximum depth of nested schemas and references.
_MAX_DEPTH = 6
#: Maximum number of optional members that may come first in an object without required ones: each is an alternative.
_MAX_FIRST = 4

_CHARACTER = r'[^"\\\x00-\x1f\x7f]'
INTEGER = r"(?:0|-?[1-9][0-9]{0,17})"
NUMBER = r"-?(?:0|[1-9][0-9]{0,17})(?:\.[0-9]{1,17})?"
_COMMA, _COLON = ", ?", ": ?"


def json_pattern(schema: Any, definition: Callable[[str], Any]) -> str | None:
    """Return a pattern of JSON texts that are valid under a schema, or None if there is no simple one.

    Args:
        schema: the schema of the decoded text.
        definition: returns the schema that a ``$ref`` refers to, or None.
    """
    pattern = _Patterns(definition).of(schema, 0)
    return None if pattern is None or len(pattern) > _MAX_LENGTH else f"^{pattern}$"


class _Patterns:
    """Patterns of the schemas of one document; None where there is no simple one."""

    def __init__(self, definition: Callable[[str], Any]) -> None:
        self._definition = definition

    def of(self, schema: Any, depth: int) -> str | None:
        """Return a pattern of texts that are valid under a schema, which is at a depth of the document; or None."""
        if schema is True:
            return _ANYTHING
        if not isinstance(schema, Mapping) or depth > _MAX_DEPTH:
            return None
        # Keywords that are read are taken out of `asked`. If others are left, there is no pattern.
        asked = {key: value for key, value in schema.items() if key not in KEYWORDS.annotations}
        kind = asked.pop("type", None)
        if "enum" in asked or "const" in asked:
            values = asked.pop("enum") if "enum" in asked else [asked.pop("const")]
            return _choice(_literal(value) for value in values[:MAX_VALUES]) if not asked else None
        if kind is None:
            return self._untyped(asked, depth)
        if kind in ("integer", "number"):
            is_free = all(_is_wide(word, value) for word, value in asked.items())
            return (INTEGER if kind == "integer" else NUMBER) if is_free else None  # closer bounds have no easy pattern
        if kind in ("boolean", "null"):
            return {"boolean": "(?:true|false)", "null": "null"}[kind] if not asked else None
        if kind == "string":
            least, most = asked.pop("minLength", 0), asked.pop("maxLength", None)
            return f'"{_CHARACTER}{_times(least, most)}"' if not asked else None
        if kind == "array":
            return self._array(asked, depth)
        return self._object(asked, depth) if kind == "object" else None

    def _untyped(self, asked: dict[str, Any], depth: int) -> str | None:
        """Return the pattern of a schema without ``type``: any value, a reference, or alternatives, of which only the
        ones with a pattern are kept."""
        if not asked:
            return _ANYTHING
        if asked.keys() == {"$ref"}:
            return self.of(self._definition(asked["$ref"]), depth + 1)
        if asked.keys() == {"anyOf"}:
            options = [self.of(option, depth + 1) for option in asked["anyOf"]]
            return _choice(option for option in options if option is not None)
        return None

    def _array(self, asked: dict[str, Any], depth: int) -> str | None:
        """Return the pattern of arrays: with ``uniqueItems``, of at most one item; with ``prefixItems``, of these items
        alone."""
        least, most = asked.pop("minItems", 0), asked.pop("maxItems", None)
        if asked.pop("uniqueItems", False):
            most = 1  # no pattern compares items
        prefix, items = asked.pop("prefixItems", None), asked.pop("items", True)
        if asked or (most is not None and least > most):
            return None
        if prefix is None:
            return _repeated("[", self.of(items, depth + 1), "]", least, most)
        if len(prefix) < least or (most is not None and len(prefix) > most):
            return None
        parts = [part for item in prefix if (part := self.of(item, depth + 1)) is not None]
        return rf"\[{_COMMA.join(parts)}\]" if len(parts) == len(prefix) else None

    def _object(self, asked: dict[str, Any], depth: int) -> str | None:
        """Return the pattern of objects: the required members, then optional ones, each in the order of the schema;
        optional ones without a pattern are left out. Required a, optional b and c: ``{a(, b)?(, c)?}``; only optional:
        ``{(b(, c)?|c)?}``."""
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
        later = [f"(?:{_COMMA}{member})?" for member in optional]
        if needed:
            body = _COMMA.join(needed) + "".join(later)
        else:
            starts = [first + "".join(later[index:]) for index, first in enumerate(optional[:_MAX_FIRST], 1)]
            body = f"(?:{'|'.join(starts)})?" if starts else ""
        return rf"\{{{body}\}}"


def _is_wide(word: str, value: Any) -> bool:
    """Return True if a keyword allows every number of the patterns `INTEGER` and `NUMBER`."""
    return bool(value <= -(10**18) if word == "minimum" else word == "maximum" and value >= 10**18)


def _choice(patterns: Iterable[str]) -> str | None:
    """Return the pattern of any of the first `MAX_VALUES` patterns; None if there are none."""
    options = dict.fromkeys(islice(patterns, MAX_VALUES))
    return f"(?:{'|'.join(options)})" if options else None


def _literal(value: Any) -> str:
    """Return the pattern of the JSON text of a value."""
    return re.sub(r"([\\^$.*+?()\[\]{}|/])", r"\\\1", json.dumps(value))


def _times(least: int, most: int | None) -> str:
    return f"{{{least},{'' if most is None else most}}}"


def _repeated(opening: str, part: str | None, closing: str, least: int, most: int | None) -> str | None:
    """Return the pattern of ``least`` to ``most`` parts in brackets; ``part`` None: no pattern has any."""
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
