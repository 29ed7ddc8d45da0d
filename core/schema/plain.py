"""Schemas that are read straight off their keywords, without alternatives to multiply out: most of them."""

from __future__ import annotations

from collections.abc import Mapping, Set
from typing import Any

#: The types of values without parts.
_SCALARS = frozenset({"string", "integer", "number", "boolean", "null"})

#: Keywords that apply other schemas to the same value, or ask one thing of it where another holds.
APPLICATORS = frozenset(
    {"$ref", "$dynamicRef", "$recursiveRef", "allOf", "anyOf", "oneOf", "not", "if", "then", "else"}
    | {"dependencies", "dependentRequired", "dependentSchemas", "unevaluatedItems", "unevaluatedProperties"}
)

#: Every keyword that may constrain a value, or make others do so; the rest are annotations in every dialect.
_KEYWORDS = frozenset(
    {"type", "enum", "const", "nullable"}
    | APPLICATORS
    | {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"}
    | {"minLength", "maxLength", "pattern", "format"}
    | {"items", "prefixItems", "additionalItems", "minItems", "maxItems", "uniqueItems"}
    | {"contains", "minContains", "maxContains"}
    | {"properties", "patternProperties", "additionalProperties", "propertyNames", "required"}
    | {"minProperties", "maxProperties"}
)

_TYPE = frozenset({"type"})

#: What a plain schema of objects says.
PLAIN_OBJECT = frozenset({"type", "properties", "required", "additionalProperties"})

#: What schemas say that only list values, and those that only list schemas.
PLAIN_LIST, ANY_OF, ONE_OF = frozenset({"type", "enum"}), frozenset({"anyOf"}), frozenset({"oneOf"})


def asserted(schema: Mapping[str, Any]) -> Set[str]:
    """The keywords of a schema that may mean something."""
    return schema.keys() & _KEYWORDS


def scalar_types(schema: Mapping[str, Any]) -> tuple[str, ...] | None:
    """The types that a schema names, if it says nothing else, and all of them are scalars."""
    if asserted(schema) != _TYPE:
        return None
    kinds = schema["type"]
    if isinstance(kinds, str):
        return (kinds,) if kinds in _SCALARS else None
    if not _SCALARS.issuperset(kinds):
        return None
    return tuple(kind for kind in kinds if kind != "integer" or "number" not in kinds)


def lists_strings(schema: Mapping[str, Any]) -> bool:
    """Whether a schema lists strings, all of which are of the type that it asks for."""
    values = schema.get("enum")
    return values is not None and schema.get("type", "string") == "string" and all(type(each) is str for each in values)
