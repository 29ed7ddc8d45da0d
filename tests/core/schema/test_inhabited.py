"""What is said at first sight to have a value has one."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolgrammar.core import Grammar
from toolgrammar.core.schema.normal.inhabited import is_surely_satisfiable

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


values = st.sampled_from([None, True, 0, 1, 7, -3, "", "a", "abc", [], [1], {}, {"a": 1}])
kinds = st.sampled_from(["string", "integer", "number", "boolean", "null", "array", "object"])


def schemas() -> st.SearchStrategy[Any]:
    """Schemas that are often sure, and often nearly so."""
    leaves = st.one_of(st.booleans(), st.builds(dict))

    def grow(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
        small = st.integers(0, 3)
        return st.fixed_dictionaries(
            {},
            optional={
                "type": st.one_of(kinds, st.lists(kinds, min_size=1, max_size=2, unique=True)),
                "properties": st.dictionaries(st.sampled_from("ab"), inner, max_size=2),
                "required": st.lists(st.sampled_from("abc"), max_size=2, unique=True),
                "additionalProperties": inner,
                "maxProperties": small,
                "items": inner,
                "maxItems": small,
                "minLength": small,
                "maxLength": small,
                "minimum": st.integers(-2, 2),
                "maximum": st.integers(-2, 2),
                "enum": st.lists(values, min_size=1, max_size=2, unique_by=repr),
                "description": st.just("d"),
            },
        )

    return st.recursive(leaves, grow, max_leaves=5)


@given(schema=schemas())
def test_what_is_sure_is_so(schema: Any) -> None:
    """The engine, which looks closely, finds a value of every schema that is said to have one."""
    if is_surely_satisfiable(schema):
        closely = Grammar.from_json_schema({"allOf": [schema, {}]})  # a conjunction is looked into
        assert not closely.program.is_empty
