"""Schemas as they are sent: what a server's own dialect cannot take is left out; what comes back is judged whole.

A schema that is sent may only be wider than the one that was asked for, never narrower: a server that followed a
narrower one could not write every valid answer.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

#: What OpenAI's strict mode takes (guide "Structured Outputs", "Supported schemas"); annotations are harmless.
_STRICT = frozenset(
    {"type", "properties", "required", "additionalProperties", "items", "anyOf", "enum", "const", "$ref", "$defs"}
    | {"pattern", "format", "multipleOf", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"}
    | {"minItems", "maxItems", "title", "description"}
)
_STRICT_FORMATS = frozenset({"date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"})
_ANNOTATIONS = frozenset(
    {"title", "description", "default", "examples", "$comment", "deprecated", "readOnly", "writeOnly"}
)

# Keywords that hold schemas: one, several, or several by name.
_ONE = frozenset(
    {"items", "additionalProperties", "not", "if", "then", "else", "contains", "propertyNames"}
    | {"unevaluatedItems", "unevaluatedProperties"}
)
_MANY = ("anyOf", "oneOf", "allOf", "prefixItems")
_NAMED = ("properties", "patternProperties", "$defs", "definitions", "dependentSchemas")

Keep = Callable[[str, Any], bool]


def strict_schema(schema: Any) -> tuple[Any, tuple[str, ...]] | None:
    """The schema for OpenAI's strict mode, and the places of what was left out; None if that mode cannot take it.

    Its objects must be closed, and have no optional members; the root is an object and no union.
    """
    reduced, left_out = without(schema, lambda key, value: key in _STRICT and _strict_value(key, value))
    if not isinstance(reduced, dict) or reduced.get("type") != "object" or "anyOf" in reduced:
        return None
    return (reduced, left_out) if _is_strict(reduced) else None


def anchored_schema(schema: Any) -> tuple[Any, tuple[str, ...]]:
    """The schema for llama.cpp, whose converter refuses patterns that are not anchored at both ends, or look around."""
    return without(schema, lambda key, value: key != "pattern" or _is_anchored(value))


def plain_schema(schema: Any) -> Any:
    """The schema without keywords that say nothing where they stand."""
    return without(schema, lambda key, value: True)[0]


def without(schema: Any, keep: Keep) -> tuple[Any, tuple[str, ...]]:
    """The schema without the keywords that ``keep`` refuses, and the places of those (JSON pointers).

    ``oneOf`` becomes ``anyOf`` where that is what is kept. Below ``not`` and ``if``, leaving out would narrow: such a
    keyword goes as a whole if anything in it would have to.
    """
    left_out: list[str] = []
    return _reduce(schema, keep, "", left_out), tuple(left_out)


def _reduce(schema: Any, keep: Keep, place: str, left_out: list[str]) -> Any:
    if not isinstance(schema, Mapping):
        return schema
    found: dict[str, Any] = {}
    kinds = schema.get("type", "object")
    for key, value in schema.items():
        if key == "additionalProperties" and "object" not in ([kinds] if isinstance(kinds, str) else kinds):
            continue  # says nothing here, and some servers stumble over it
        if key == "oneOf" and not keep(key, value) and "anyOf" not in schema and keep("anyOf", value):
            left_out.append(f"{place}/oneOf")
            key = "anyOf"
        elif not keep(key, value):
            if key not in _ANNOTATIONS:
                left_out.append(f"{place}/{_escaped(key)}")
            continue
        inner: list[str] = []
        found[key] = _inner(key, value, keep, f"{place}/{_escaped(key)}", inner)
        if inner and key in ("not", "if"):
            del found[key]
            inner = [f"{place}/{key}"]
        left_out += inner
    return _widened(schema, found)


def _inner(key: str, value: Any, keep: Keep, place: str, left_out: list[str]) -> Any:
    if key in _ONE and isinstance(value, Mapping):
        return _reduce(value, keep, place, left_out)
    if key in _MANY and isinstance(value, list):
        return [_reduce(each, keep, f"{place}/{index}", left_out) for index, each in enumerate(value)]
    if key in _NAMED and isinstance(value, Mapping):
        return {name: _reduce(each, keep, f"{place}/{_escaped(name)}", left_out) for name, each in value.items()}
    return value


def _widened(schema: Mapping[str, Any], found: dict[str, Any]) -> dict[str, Any]:
    """What is kept, without keywords that mean more where another one is missing."""
    lost = schema.keys() - found.keys()
    if lost & {"patternProperties"}:
        found.pop("additionalProperties", None)
    if lost & {"prefixItems"}:
        found.pop("items", None)
    if lost & {"if", "then", "else"}:
        for key in ("if", "then", "else"):
            found.pop(key, None)
    if lost - _ANNOTATIONS:
        for key in ("unevaluatedProperties", "unevaluatedItems"):
            found.pop(key, None)
    return found


def _strict_value(key: str, value: Any) -> bool:
    return key != "format" or value in _STRICT_FORMATS


def _is_strict(schema: Any) -> bool:
    if not isinstance(schema, dict):
        return False  # True and {} take anything, which strict mode does not
    if not schema.keys() & {"type", "anyOf", "enum", "const", "$ref"}:
        return False
    kind = schema.get("type")
    if kind == "object" or (isinstance(kind, list) and "object" in kind) or "properties" in schema:
        names = set(schema.get("properties", {}))
        if schema.get("additionalProperties") is not False or set(schema.get("required", ())) != names:
            return False
    if (kind == "array" or (isinstance(kind, list) and "array" in kind)) and "items" not in schema:
        return False
    inner = [*schema.get("properties", {}).values(), *schema.get("$defs", {}).values(), *schema.get("anyOf", ())]
    if "items" in schema:
        inner.append(schema["items"])
    return all(map(_is_strict, inner))


def _is_anchored(pattern: Any) -> bool:
    if not isinstance(pattern, str) or not (pattern.startswith("^") and pattern.endswith("$")):
        return False
    body = pattern[1:-1]
    # `^a|b$` is anchored at one end of each alternative only.
    return not re.search(r"\(\?|\\[bBpPkuxc1-9]", body) and "|" not in re.sub(r"\([^()]*\)", "", body)


def _escaped(name: str) -> str:
    return name.replace("~", "~0").replace("/", "~1")
