"""Schema dialects become Draft 2020-12 without loss."""

from __future__ import annotations

import copy
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolgrammar.core import InvalidSchemaError, LimitError
from toolgrammar.tools import Tool, to_json_schema

CASES: list[tuple[str, Any, Any]] = [
    ("plain", {"type": "object", "properties": {"a": {"type": "string"}}}, None),
    (
        "bfcl types",
        {"type": "dict", "properties": {"a": {"type": "float"}}},
        {"type": "object", "properties": {"a": {"type": "number"}}},
    ),
    ("bfcl any", {"type": "any", "description": "x"}, {"description": "x"}),
    ("bfcl tuple", {"type": "tuple", "items": {"type": "float"}}, {"type": "array", "items": {"type": "number"}}),
    (
        "gemini",
        {"type": "OBJECT", "properties": {"a": {"type": "STRING"}}},
        {"type": "object", "properties": {"a": {"type": "string"}}},
    ),
    ("type list", {"type": ["str", "None"]}, {"type": ["string", "null"]}),
    ("type list with any", {"type": ["string", "any"]}, {}),
    ("nullable", {"type": "string", "nullable": True}, {"type": ["string", "null"]}),
    (
        "nullable enum",
        {"type": "string", "enum": ["a"], "nullable": True},
        {"type": ["string", "null"], "enum": ["a", None]},
    ),
    ("nullable ref", {"$ref": "#/$defs/A", "nullable": True}, {"anyOf": [{"$ref": "#/$defs/A"}, {"type": "null"}]}),
    ("not nullable", {"type": "string", "nullable": False}, {"type": "string"}),
    (
        "optional on a property",
        {"type": "dict", "properties": {"a": {"type": "int", "optional": True}, "b": {}}, "required": ["a", "b"]},
        {"type": "object", "properties": {"a": {"type": "integer"}, "b": {}}, "required": ["b"]},
    ),
    (
        "optional as a word and as a list",
        {"properties": {"a": {"optional": "True"}, "b": {}, "c": {}}, "required": ["a", "b", "c"], "optional": ["b"]},
        {"properties": {"a": {}, "b": {}, "c": {}}, "required": ["c"]},
    ),
    (
        "required on a property",
        {"properties": {"a": {"required": True}, "b": {"required": False}}},
        {"properties": {"a": {}, "b": {}}, "required": ["a"]},
    ),
    (
        "draft 4 bound",
        {"minimum": 1, "exclusiveMinimum": True, "maximum": 9, "exclusiveMaximum": False},
        {"minimum": 1, "exclusiveMinimum": 1, "maximum": 9},
    ),
    (
        "items as a list",
        {"items": [{"type": "int"}, True], "additionalItems": False},
        {"prefixItems": [{"type": "integer"}, True], "items": False},
    ),
    (
        "dependencies",
        {"dependencies": {"a": ["b"], "c": {"required": ["d"]}}},
        {"dependentRequired": {"a": ["b"]}, "dependentSchemas": {"c": {"required": ["d"]}}},
    ),
    (
        "$ref hides its siblings before Draft 2019-09",
        {
            "$schema": "http://json-schema.org/draft-07/schema#",
            "properties": {"a": {"$ref": "#/definitions/A", "type": "null"}},
            "definitions": {"A": {}},
        },
        {"properties": {"a": {"$ref": "#/definitions/A"}}, "definitions": {"A": {}}},
    ),
    ("$ref keeps them since", {"$ref": "#/$defs/A", "description": "x", "minimum": 1}, None),
    (
        "properties called like keywords and types",
        {
            "properties": {
                "type": {"type": "dict"},
                "optional": {"type": "any"},
                "nullable": {},
                "items": {},
                "float": {},
            }
        },
        {"properties": {"type": {"type": "object"}, "optional": {}, "nullable": {}, "items": {}, "float": {}}},
    ),
    (
        "data is not converted",
        {"enum": ["dict", {"type": "dict"}], "default": {"type": "float"}, "const": {"optional": True}},
        None,
    ),
    ("unsatisfiable is kept", {"type": "boolean", "enum": ["True", "False"]}, None),
    (
        "everywhere",
        {"anyOf": [{"type": "dict"}], "not": {"type": "float"}, "additionalProperties": {"type": "int"}},
        {"anyOf": [{"type": "object"}], "not": {"type": "number"}, "additionalProperties": {"type": "integer"}},
    ),
    ("boolean", True, None),
]


@pytest.mark.parametrize(("schema", "expected"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_conversion(schema: Any, expected: Any) -> None:
    """Each dialect reads as it means; None stands for "unchanged"; converting twice is converting once."""
    before = copy.deepcopy(schema)
    converted = to_json_schema(schema)
    assert converted == (schema if expected is None else expected)
    assert schema == before
    assert to_json_schema(converted) == converted
    jsonschema.Draft202012Validator.check_schema(converted)


def test_result_shares_nothing() -> None:
    """Changing the result does not change the input."""
    schema = {"properties": {"a": {"enum": [["x"]]}}}
    converted = to_json_schema(schema)
    assert isinstance(converted, dict)
    converted["properties"]["a"]["enum"][0].append("y")
    assert schema == {"properties": {"a": {"enum": [["x"]]}}}


def test_cycles_become_references() -> None:
    """A dict that contains itself becomes a ``$ref`` to where it was met first."""
    node: dict[str, Any] = {"type": "object", "properties": {"value": {"type": "integer"}}}
    node["properties"]["next"] = node
    outer = {"type": "object", "properties": {"a/b": node}}
    converted = to_json_schema(outer)
    assert isinstance(converted, dict)
    inner = converted["properties"]["a/b"]["properties"]["next"]
    assert inner == {"$ref": "#/properties/a~1b"}
    valid = {"a/b": {"value": 1, "next": {"value": 2}}}
    validator = jsonschema.Draft202012Validator(converted)
    assert validator.is_valid(valid)
    assert not validator.is_valid({"a/b": {"next": {"value": "x"}}})


@pytest.mark.parametrize(
    ("schema", "pointer"),
    [
        ({"properties": {"a": {"type": "strng"}}}, "/properties/a/type"),
        ({"properties": {"a": "string"}}, "/properties/a"),
        ({"properties": []}, "/properties"),
        ({"anyOf": {"type": "string"}}, "/anyOf"),
        ({"type": 5}, "/type"),
    ],
)
def test_malformed(schema: Any, pointer: str) -> None:
    """What no dialect knows is an error at its place."""
    with pytest.raises(InvalidSchemaError) as caught:
        to_json_schema(schema)
    assert caught.value.place.pointer == pointer


def test_depth_limit() -> None:
    """A schema nested thousands of levels deep is a clear error, not a crash."""
    schema: dict[str, Any] = {}
    for _ in range(10_000):
        schema = {"properties": {"a": schema}}
    with pytest.raises(LimitError):
        to_json_schema(schema)
    with pytest.raises(LimitError):
        Tool("deep", "", schema)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=4),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["type", "dict", "optional", "x"]), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(json_values, json_values, json_values)
def test_data_survives(default: Any, const: Any, item: Any) -> None:
    """Whatever stands in data positions comes back as it was."""
    schema = {
        "default": default,
        "properties": {"type": {"const": const, "type": "dict"}},
        "enum": [item],
        "examples": [item],
    }
    converted = to_json_schema(schema)
    assert isinstance(converted, dict)
    assert converted == {**schema, "properties": {"type": {"const": const, "type": "object"}}}
