"""Schemas that are read straight off their keywords, without alternatives to multiply out: most of them."""

from __future__ import annotations

from collections.abc import Mapping, Set
from typing import Any

from ..read.keywords import CONSTRAINING, TYPES, Role, Shape, keywords
from ..scalars.numbers import NumberRange
from .assertions import bounds_of, types_of
from .conjunction import ArrayPart, Arrays, Strings

#: The types of values without parts.
_SCALARS = frozenset({"string", "integer", "number", "boolean", "null"})

_TYPE = frozenset({"type"})

_OBJECTS = frozenset({"properties", "required", "additionalProperties"})
_ARRAYS = frozenset({"items", "minItems", "maxItems"})
_STRINGS = frozenset(keywords(types=("string",), roles=(Role.ASSERTION, Role.FORMAT)))
_BOUNDS = frozenset(keywords(shapes=(Shape.BOUND,)))

#: What a plain schema says: of each type, what its values are made of.
PLAIN = _TYPE | _OBJECTS | _ARRAYS | _STRINGS | _BOUNDS

#: What schemas say that only list values, and those that only list schemas.
PLAIN_LIST = frozenset({"type", "enum"})
ALL_OF, ANY_OF, ONE_OF = frozenset({"allOf"}), frozenset({"anyOf"}), frozenset({"oneOf"})


def asserted(schema: Mapping[str, Any]) -> Set[str]:
    """The keywords of a schema that may mean something."""
    return schema.keys() & CONSTRAINING


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


def kinds_of(schema: Mapping[str, Any]) -> tuple[str, ...]:
    """The types of values that a schema names, in the order in which they are lowered; "integer" where only these
    numbers are meant."""
    types, integer = types_of(schema) if "type" in schema else (frozenset(TYPES), False)
    kinds = ("object", "array", "string", "integer" if integer else "number", "boolean", "null")
    return tuple(kind for kind in kinds if kind in types or (kind == "integer" and "number" in types))


def plain_strings(schema: Mapping[str, Any], formats: bool) -> Strings | None:
    """What a plain schema asks of strings; None: nothing (``formats``: whether its format asserts)."""
    if schema.keys().isdisjoint(_STRINGS):
        return None
    most = schema.get("maxLength")
    return Strings(
        int(schema.get("minLength", 0)),
        None if most is None else int(most),
        (schema["pattern"],) if "pattern" in schema else (),
        (schema["format"],) if formats else (),
    )


def plain_numbers(schema: Mapping[str, Any], integer: bool) -> NumberRange | None:
    """What a plain schema asks of numbers; None: no more than that they are integers, if they must be."""
    if schema.keys().isdisjoint(_BOUNDS):
        return None
    numbers = NumberRange(integer=integer)
    for least, value, strict in bounds_of(schema):
        numbers = numbers.at_least(value, strict) if least else numbers.at_most(value, strict)
    return numbers


def plain_arrays(schema: Mapping[str, Any], part: ArrayPart | None) -> Arrays:
    """What a plain schema asks of arrays."""
    most = schema.get("maxItems")
    return Arrays(
        parts=() if part is None else (part,),
        least=int(schema.get("minItems", 0)),
        most=None if most is None else int(most),
    )
