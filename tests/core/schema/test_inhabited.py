"""What is said at first sight to have a value has one."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

from toolgrammar.core import Grammar, UnsupportedSchemaError
from toolgrammar.core.schema.normal.inhabited import is_surely_satisfiable

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
    {"not": {}},
    {"type": []},
]


@pytest.mark.parametrize("schema", SURE, ids=json.dumps)
def test_sure(schema: Any) -> None:
    """These are known to have a value, and have one."""
    assert is_surely_satisfiable(schema)
    assert Grammar.from_json_schema(schema).program


@pytest.mark.parametrize("schema", UNSURE, ids=json.dumps)
def test_unsure(schema: Any) -> None:
    """These contradict themselves, or take a closer look."""
    assert not is_surely_satisfiable(schema)


def test_what_is_sure_is_so() -> None:
    """The engine finds a value of every schema that the quick look is sure of."""
    sure = refused = 0
    for seed in range(600):
        schema = random_schema(random.Random(seed), 2)
        if is_surely_satisfiable(schema):
            sure += 1
            try:
                closely = Grammar.from_json_schema({**schema, "allOf": [{}]})  # a conjunction is looked into
            except UnsupportedSchemaError:
                refused += 1
            else:
                assert not closely.program.is_empty, schema
    assert sure > 150 and refused < 0.1 * sure
