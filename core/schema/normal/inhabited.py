"""Quick test for schemas that obviously have a value: most do, and need not be lowered to know it.

A row of the automaton leads only to states from which the text can be finished, so each subschema on the way must be
known to have a value. For most schemas the keywords tell: the empty string, zero, the empty array and the empty object
satisfy all keywords that bound values from above or constrain their parts.
"""

from __future__ import annotations

from typing import Any

from ..read.keywords import CONSTRAINING, KEYWORDS

#: Keywords that hold of ``""``, ``0``, ``[]``, ``{}``, ``true`` and ``null``, and those among them that constrain
#: nothing.
_HARMLESS = frozenset(row.name for row in KEYWORDS.values() if row.trivial)
_IDLE = _HARMLESS - CONSTRAINING
_TYPED = _HARMLESS | {"type"}
#: Keywords of `_HARMLESS` that may fail for an object that is not empty.
_BESIDE_REQUIRED = frozenset({"patternProperties", "propertyNames", "maxProperties"})

#: Maximum nesting of required members that are inspected.
_MAX_DEPTH = 6
_SMALL = 10**15


def is_surely_satisfiable(schema: Any, depth: int = 0, known: set[int] | None = None) -> bool:
    """Return True if some JSON value obviously satisfies a schema; False: it is not known.

    Args:
        schema: a well-formed schema.
        depth: number of required members that it is nested in.
        known: identities of objects that were found to have a value, and stay alive; nested ones are added.
    """
    if schema is True or (known is not None and id(schema) in known):
        return True
    if not isinstance(schema, dict) or depth > _MAX_DEPTH:
        return False
    kinds = schema.get("type", "null")
    if _TYPED.issuperset(schema):
        return len(kinds) > 0
    rest = {word for word in schema if word not in _TYPED}
    kinds = {kinds} if isinstance(kinds, str) else set(kinds)
    if rest == {"required"}:
        if kinds != {"object"} and "type" in schema:
            return bool(kinds - {"object"})
        return "type" not in schema or _has_members(schema, depth, known)
    if rest == {"enum"} and schema.keys().isdisjoint(_HARMLESS - _IDLE):
        return any("type" not in schema or _is_of(value, kinds) for value in schema["enum"])
    if rest <= {"minimum", "maximum"} and kinds and kinds <= {"integer", "number"}:
        low, high = schema.get("minimum", -_SMALL), schema.get("maximum", _SMALL)
        return type(low) is int and type(high) is int and -_SMALL <= low <= high <= _SMALL
    return rest == {"minLength"} and kinds == {"string"} and schema["minLength"] <= schema.get("maxLength", _SMALL)


def _has_members(schema: dict[str, Any], depth: int, known: set[int] | None) -> bool:
    declared = schema.get("properties", {})
    if not schema.keys().isdisjoint(_BESIDE_REQUIRED):
        return False
    for name in schema["required"]:
        if name not in declared or not is_surely_satisfiable(declared[name], depth + 1, known):
            return False
    if known is not None:
        known.add(id(schema))
    return True


def _is_of(value: Any, kinds: set[str]) -> bool:
    """Return True if a value is surely of one of some types."""
    if isinstance(value, bool):
        return "boolean" in kinds
    if isinstance(value, str):
        return "string" in kinds
    return isinstance(value, int) and bool(kinds & {"integer", "number"})
