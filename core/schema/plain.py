"""Schemas that are read straight off their keywords, without alternatives to multiply out: most of them."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Set
from typing import Any

#: The types of values without parts.
_SCALARS = frozenset({"string", "integer", "number", "boolean", "null"})

#: Every keyword that may constrain a value, or make others do so; the rest are annotations in every dialect.
_KEYWORDS = frozenset(
    {"type", "enum", "const", "nullable", "$ref", "$dynamicRef", "$recursiveRef"}
    | {"allOf", "anyOf", "oneOf", "not", "if", "then", "else"}
    | {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"}
    | {"minLength", "maxLength", "pattern", "format"}
    | {"items", "prefixItems", "additionalItems", "unevaluatedItems", "minItems", "maxItems", "uniqueItems"}
    | {"contains", "minContains", "maxContains"}
    | {"properties", "patternProperties", "additionalProperties", "unevaluatedProperties", "propertyNames", "required"}
    | {"minProperties", "maxProperties", "dependencies", "dependentRequired", "dependentSchemas"}
)

_TYPE = frozenset({"type"})

#: What a plain schema of objects says.
PLAIN_OBJECT = frozenset({"type", "properties", "required", "additionalProperties"})


def asserted(schema: Mapping[str, Any]) -> Set[str]:
    """The keywords of a schema that may mean something."""
    return schema.keys() & _KEYWORDS


def scalar_type(schema: Mapping[str, Any]) -> Hashable | None:
    """What a schema says of types, if it says nothing else, and all of them are scalars."""
    if asserted(schema) != _TYPE:
        return None
    kinds = schema["type"]
    if isinstance(kinds, str):
        return kinds if kinds in _SCALARS else None
    return tuple(kinds) if _SCALARS.issuperset(kinds) else None
