"""What is said at first sight to have a value has one."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

from toolgrammar.core import Grammar, UnsatisfiableSchemaError, UnsupportedSchemaError
from toolgrammar.core.grammar.sampling import random_text
from toolgrammar.core.schema.normal.inhabited import Inhabited
from toolgrammar.core.schema.read.resolve import Document

from ...schemas import random_schema

SURE: list[Any] = [
    True,
    {},
    {"type": "string", "description": "x", "maxLength": 0},
    {"type": ["array", "null"], "items": False},
    {"type": "object", "properties": {"a": False}, "additionalProperties": False},
    {"type": "object", "properties": {"a": {"enum": ["x"]}}, "required": ["a"]},
    {"type": ["object", "integer"], "required": ["a"]},
    {"type": "string", "enum": [1, "a"]},
    {"enum": [None]},
    {"type": "integer", "minimum": 3, "maximum": 3},
    {"type": "string", "minLength": 2, "maxLength": 2},
    {"type": "string", "format": "date", "x-note": 1},
    {"type": ["string", "boolean"], "pattern": "^a$"},
    {"type": "array", "minItems": 2, "items": {"enum": [1]}},
    {"anyOf": [False, {"type": "object", "required": ["a"], "properties": {"a": {"const": "b"}}}]},
    {
        "type": "object",
        "properties": {"a": {"$ref": "#/$defs/a"}, "b": {"$ref": "#"}},
        "required": ["a"],
        "$defs": {"a": {"type": "string", "minLength": 1}},
    },
]
UNSURE: list[Any] = [
    False,
    {"type": "object", "properties": {"a": False}, "required": ["a"]},
    {"type": "object", "properties": {"b": {}}, "required": ["a"]},
    {"type": "object", "required": ["a"], "properties": {"a": {}}, "maxProperties": 0},
    {"type": "string", "enum": [1]},
    {"enum": ["a"], "maxLength": 0},
    {"type": "integer", "minimum": 3, "maximum": 2},
    {"type": "integer", "minimum": 10**300},
    {"type": "string", "minLength": 3, "maxLength": 2},
    *({"type": [], **rest} for rest in ({}, {"minimum": 1}, {"minLength": 1}, {"required": ["a"]}, {"enum": [1]})),
    {"type": "string", "pattern": "^a$"},
    {"type": "string", "format": "date", "maxLength": 3},
    {"type": "null", "enum": [True, 0]},
    {"type": "array", "minItems": 2, "items": {"enum": [1]}, "uniqueItems": True},
    {"type": "array", "minItems": 1, "items": {"type": "integer", "minimum": 1, "maximum": 0}},
    {"type": "object", "properties": {"a": {"$ref": "#"}}, "required": ["a"]},
    {"$ref": "#/$defs/a", "maxLength": 1, "$defs": {"a": {"type": "string", "minLength": 2}}},
    {"oneOf": [{"const": 1}, {"const": 1}]},
    {  # its reference leads into its own resource, where there is nothing to satisfy
        "type": "object",
        "properties": {
            "a": {
                "$id": "https://example.com/a",
                "type": "object",
                "properties": {"b": {"$ref": "#/$defs/c"}},
                "required": ["b"],
                "$defs": {"c": False},
            }
        },
        "required": ["a"],
        "$defs": {"c": True},
    },
    {"not": {}},
    {"type": []},
]


def _is_sure(schema: Any) -> bool:
    return Inhabited(Document(schema)).is_inhabited(schema)


@pytest.mark.parametrize("schema", SURE, ids=json.dumps)
def test_sure(schema: Any) -> None:
    """These are known to have a value, and have one."""
    assert _is_sure(schema)
    assert Grammar.from_json_schema(schema).program


@pytest.mark.parametrize("schema", UNSURE, ids=json.dumps)
def test_unsure(schema: Any) -> None:
    """These contradict themselves, or take a closer look."""
    assert not _is_sure(schema)


def test_what_is_sure_is_so() -> None:
    """The engine finds a value of every schema that the quick look is sure of."""
    sure = refused = 0
    for seed in range(600):
        schema = random_schema(random.Random(seed), 2)
        if _is_sure(schema):
            sure += 1
            try:
                closely = Grammar.from_json_schema({**schema, "allOf": [{}]})  # a conjunction is looked into
            except UnsupportedSchemaError:
                refused += 1
            else:
                assert not closely.program.is_empty, schema
    assert sure > 150 and refused < 0.1 * sure


@pytest.mark.parametrize("levels", range(1, 7))
def test_nested_arrays_use_up_values(levels: int) -> None:
    """Each level of arrays that must not repeat has 7 arrays fewer than the level inside; they are counted exactly."""
    values: list[Any] = list(range(36))
    schema: dict[str, Any] = {"enum": values}
    for _ in range(levels):
        fixed, values = values[:7], [[*values[:7], value] for value in values[7:]]
        schema = {
            "type": "array",
            "uniqueItems": True,
            "prefixItems": [*({"const": value} for value in fixed), schema],
            "minItems": 8,
            "maxItems": 8,
        }
    whole = {"type": "array", "uniqueItems": True, "items": schema, "minItems": 8, "maxItems": 8}
    if len(values) >= 8:
        assert len(json.loads(random_text(Grammar.from_json_schema(whole), random.Random(1)))) == 8
    else:
        with pytest.raises(UnsatisfiableSchemaError):
            random_text(Grammar.from_json_schema(whole), random.Random(1))
