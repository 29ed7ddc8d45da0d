"""The JSON Schema of a policy's file, for editors: what `notation.py` reads, and nothing else."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

#: A field of a result as text: ``tool``, ``tool.name.name`` or ``tool/path/from/the/root``.
FIELD = r"[^\s./](?:[^./]*[^\s./])?(?:\.[^./][\s\S]*|/[\s\S]+)?"

#: Words of a rule, and units of copies of the user's messages.
WORDS = ("user", "ask", "free", "never")
UNITS = ("words", "lines", "chars")


def _ref(name: str) -> dict[str, Any]:
    return {"$ref": f"#/$defs/{name}"}


def _members(members: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": members, "additionalProperties": False}


_NAME = {"type": "string", "minLength": 1}
_FIELDS = {"anyOf": [_ref("field"), {"type": "array", "items": _ref("field"), "minItems": 1}]}
_ANY_FIELDS = {"anyOf": [_ref("field"), {"type": "array", "items": _ref("field")}]}
_SOURCE = _members(
    {
        "user": {"enum": [True, *UNITS], "description": "copies from messages of the user"},
        "seen": {**_FIELDS, "description": "values of fields of results"},
        "copied": {**_FIELDS, "description": "words of the texts of fields of results"},
        "values": {"type": "array", "minItems": 1, "description": "one of these"},
        "constant": {"description": "this value"},
        "schema": {"type": ["object", "boolean"], "description": "values of a JSON Schema"},
        "ask": {"const": True, "description": "any value, if a person confirms it; stands alone"},
    }
)
_ROLE = _members({"tools": _ref("tools"), "repeats": _ref("repeats")})
_FILE = _members(
    {
        "$schema": {"description": "this schema, for editors"},
        "policy": {"const": 1, "description": "version of the notation"},
        "tools": _ref("tools"),
        "roles": {"type": "object", "minProperties": 1, "propertyNames": _NAME, "additionalProperties": _ROLE},
        "repeats": _ref("repeats"),
        "untrusted": {**_ANY_FIELDS, "description": "fields of results that give no values, with all below them"},
        "trusted": {**_ANY_FIELDS, "description": "fields that do, although the schema of the result says otherwise"},
    }
)

SCHEMA: dict[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "title": "Policy of toolgrammar",
    **_FILE,
    "oneOf": [{"required": ["tools"]}, {"required": ["roles"]}],
    "$defs": {
        "tools": {
            "type": "object",
            "additionalProperties": _ref("tool"),
            "description": "rules of tools, by names or patterns; others may not be called",
        },
        "tool": {
            "anyOf": [
                {"enum": ["free", "ask", "never", None]},
                {"type": "object", "additionalProperties": _ref("rule")},
            ],
            "description": "free, never, ask (a person confirms each call), or rules of arguments by names or pointers",
        },
        "rule": {
            "anyOf": [{"enum": list(WORDS)}, _ref("source"), {"type": "array", "items": _ref("rule"), "minItems": 1}],
            "description": "where the value of an argument may come from; a list has alternatives",
        },
        "source": {
            **_SOURCE,
            "minProperties": 1,
            "allOf": [
                {"if": {"required": ["ask"]}, "then": {"maxProperties": 1}},
                {"not": {"required": ["values", "constant"]}},
            ],
            "description": "all members hold together",
        },
        "field": {
            "anyOf": [
                {"type": "string", "pattern": f"^{FIELD}$"},
                {**_members({"tool": _NAME, "field": _NAME}), "required": ["tool"]},
            ],
            "description": "tool.field (at any depth), tool/path/from/the/root, or tool for each field",
        },
        "repeats": {
            "anyOf": [
                {"enum": ["allow", "refuse"]},
                _members({"except": {"type": "array", "items": {"type": "string"}}}),
            ],
            "description": "if a call may be made again after its result, before the user writes",
        },
    },
}
