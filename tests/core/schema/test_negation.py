"""Negated schemas, keyword by keyword: what ``not`` accepts is what ``jsonschema`` accepts, over a small universe."""

from __future__ import annotations

import json
import random
from itertools import product
from typing import Any

import pytest

from toolgrammar.core import Grammar, LimitError, UnsupportedSchemaError
from toolgrammar.core.schema.read.keywords import KEYWORDS, Role

from ...schemas import random_schema
from .universe import UNIVERSE, accepted, valid

INT, STRING = {"type": "integer"}, {"type": "string"}
CASES: dict[str, list[Any]] = {
    "type": [
        STRING,
        {"type": ["integer", "array"]},
        {"type": "number"},
        INT,
        {"type": "string", "enum": ["a", "b"]},
        {"type": "string", "const": "a"},
        {"type": "integer", "enum": [1, 1.5, 1.0, "a"]},
        {"type": ["string", "null"], "enum": ["a", None, 1]},
        {"type": "array", "enum": [[1, "a"], [], "a", {}]},
        {"type": "string", "enum": [1]},
        {"type": "string", "enum": ["a", ""], "minLength": 1},
        {"enum": ["a", 1], "const": 1},
    ],
    "const": [{"const": 1}, {"const": True}, {"const": {"a": 1}}, {"const": [1, "a"]}],
    "enum": [{"enum": [1, "a", None]}, {"enum": [{}, [], {"a": 1}, [[1]]]}, {"enum": [0, False]}],
    "minimum": [{"minimum": 1}],
    "maximum": [{"maximum": 1}],
    "exclusiveMinimum": [{"exclusiveMinimum": 1}],
    "exclusiveMaximum": [{"exclusiveMaximum": 1}, {"minimum": 0, "maximum": 2}],
    "multipleOf": [{"multipleOf": 2}, {"multipleOf": 0.5}],
    "minLength": [{"minLength": 1}, {"minLength": 2, "maxLength": 3}],
    "maxLength": [{"maxLength": 1}],
    "pattern": [{"pattern": "a"}, {"pattern": "^a?b$"}],
    "format": [{"format": "date"}],
    "x-grammar": [{"x-grammar": {"syntax": "regex", "definition": "a?b"}}],
    "properties": [{"properties": {"a": INT}}, {"properties": {"a": INT, "b": STRING}}, {"properties": {"a": False}}],
    "patternProperties": [{"patternProperties": {"^a": INT}}, {"patternProperties": {"b": STRING, "^a": INT}}],
    "additionalProperties": [{"additionalProperties": False}, {"properties": {"a": {}}, "additionalProperties": INT}],
    "propertyNames": [{"propertyNames": {"minLength": 2}}, {"propertyNames": {"enum": ["a"]}}],
    "required": [{"required": ["a"]}, {"required": ["a", "b"]}],
    "minProperties": [{"minProperties": 2}, {"minProperties": 0}],
    "maxProperties": [{"maxProperties": 1}, {"maxProperties": 0}],
    "dependentRequired": [{"dependentRequired": {"a": ["b"]}}],
    "dependentSchemas": [{"dependentSchemas": {"a": {"maxProperties": 1}}}],
    "items": [{"items": INT}, {"prefixItems": [INT], "items": STRING}, {"items": False}],
    "prefixItems": [{"prefixItems": [INT]}, {"prefixItems": [INT, STRING]}],
    "minItems": [{"minItems": 1}, {"minItems": 3}],
    "maxItems": [{"maxItems": 1}, {"maxItems": 0}],
    "contains": [{"contains": INT}, {"contains": INT, "minContains": 2}, {"contains": STRING, "maxContains": 1}],
    "allOf": [{"allOf": [INT, {"minimum": 1}]}, {"allOf": [{"required": ["a"]}, {"properties": {"a": INT}}]}],
    "anyOf": [{"anyOf": [INT, STRING]}, {"anyOf": [{"required": ["a"]}, {"required": ["b"]}]}],
    "oneOf": [{"oneOf": [INT, {"minimum": 1}]}, {"oneOf": [{"required": ["a"]}, {"required": ["b"]}]}],
    "not": [{"not": STRING}, {"not": {"properties": {"a": INT}, "required": ["a"]}}],
    "if": [
        {"if": INT, "then": {"minimum": 1}},
        {"if": {"required": ["a"]}, "then": False, "else": {"required": ["b"]}},
    ],
    "unevaluatedProperties": [
        {"properties": {"a": {}}, "unevaluatedProperties": False},
        {"anyOf": [{"properties": {"a": INT}}, {"properties": {"b": {}}}], "unevaluatedProperties": STRING},
    ],
    "unevaluatedItems": [{"prefixItems": [INT], "unevaluatedItems": False}],
    "$ref": [{"$ref": "#/$defs/one"}],
}
PAIRS = [(keyword, schema) for keyword, schemas in CASES.items() for schema in schemas]


def document(schema: Any) -> dict[str, Any]:
    """Return a document that a schema may refer into."""
    return {"allOf": [schema], "$defs": {"one": {"type": ["integer", "array"], "minItems": 1}}}


@pytest.mark.parametrize("schema", [schema for _, schema in PAIRS], ids=[json.dumps(schema) for _, schema in PAIRS])
def test_not(schema: Any) -> None:
    """A negation takes what the schema does not, twice is none, and negated parts of one value or of a member agree."""
    negated = accepted(document({"not": schema}))
    assert negated == valid(document({"not": schema}))
    assert len(negated) + len(valid(document(schema))) == len(UNIVERSE)
    assert accepted(document({"not": {"not": schema}})) == valid(document(schema))
    for whole in (
        {"properties": {"a": {"not": schema}}, "items": {"not": schema}},
        {"not": {"properties": {"a": schema}, "prefixItems": [schema]}},
        {"not": {"anyOf": [schema, {"type": ["integer", "object"]}]}},
    ):
        assert accepted(document(whole)) == valid(document(whole)), whole


def test_every_keyword_has_a_case() -> None:
    """The table above has every keyword that constrains and has a negation of its own in the current dialect."""
    roles = {Role.ASSERTION, Role.PARTS, Role.SAME_VALUE, Role.REMAINDER, Role.FORMAT}
    beside = {"minContains", "maxContains", "then", "else", "additionalItems", "nullable"}  # negated with another
    negated = {name for name, row in KEYWORDS.items() if row.role in roles} - beside
    assert {name for name, row in KEYWORDS.items() if row.negation is not None} == negated.union(KEYWORDS.references)
    assert set(CASES) == negated - {"dependencies", "uniqueItems"} | {"$ref"}


def test_negated_unique_items_are_narrowed() -> None:
    """What is written repeats an item; what is left out is said, with its place."""
    schema = {"type": "array", "items": {"enum": ["x", 3, None, {"k": 1}]}, "not": {"uniqueItems": True}}
    grammar = Grammar.from_json_schema(schema, property_order="any")
    assert [(each.place.pointer, each.place.keyword) for each in grammar.narrowed] == [("/not", "uniqueItems")]
    for count in range(4):
        for items in product(["x", 3, None, {"k": 1}], repeat=count):
            # The enum stands beside the negation, not in it: of its values, null is one that any array may repeat.
            assert grammar.matches(json.dumps(items)) == (items.count(None) > 1)
    listed = Grammar.from_json_schema({"not": {"items": schema["items"], "uniqueItems": True}, "type": "array"})
    for items in (["x", "x"], [3, None, 3], [{"k": 1}, {"k": 1}], ["y"]):
        assert listed.matches(json.dumps(items))
    for items in ([], ["x"], ["x", 3]):
        assert not listed.matches(json.dumps(items))
    with pytest.raises(UnsupportedSchemaError, match="under a negation") as caught:
        Grammar.from_json_schema({"not": {"uniqueItems": True}}, on_unsupported="error")
    assert (caught.value.place.pointer, caught.value.place.keyword) == ("/not", "uniqueItems")


def test_random_negations() -> None:
    """The same of schemas that mix keywords; nothing else is accepted where ``uniqueItems`` narrows; few are refused."""
    written = refused = 0
    for seed in range(150):
        schema = random_schema(random.Random(seed), 2)
        whole = {"$defs": schema.pop("$defs", {}), "not": schema}
        try:
            texts = accepted(whole)
        except (UnsupportedSchemaError, LimitError):
            refused += 1
        else:
            written += 1
            assert set(texts) <= set(valid(whole)), whole
            assert texts == valid(whole) or "uniqueItems" in json.dumps(schema), whole
    assert written > 60 and refused < 0.1 * written, (written, refused)


@pytest.mark.parametrize("size", [2, 5, 20, 80])
def test_many_listed_values(size: int) -> None:
    """Arrays and objects that are excluded, alone and beside other keywords: what is left is what is not listed."""
    draw = random.Random(size)
    for _ in range(4):
        listed = draw.sample(UNIVERSE, min(size, len(UNIVERSE)))
        for whole in (
            {"not": {"enum": listed}},
            {"type": "object", "properties": {"a": {"type": ["integer", "null"]}}, "not": {"enum": listed}},
            {"properties": {"a": {"not": {"enum": listed}}}, "items": {"not": {"enum": listed}}},
        ):
            assert accepted(whole) == valid(whole), whole


def test_listed_values_do_not_multiply() -> None:
    """200 objects of four members, and 200 arrays, are excluded; the product of their differences is astronomical."""
    objects = [{"a": number, "b": {"c": [number, "x"]}, "d": number % 7, "e": "same"} for number in range(200)]
    arrays = [[number, [number % 5], "same"] for number in range(200)]
    grammar = Grammar.from_json_schema({"not": {"enum": [*objects, *arrays]}}, property_order="any")
    for value in (*objects[::20], *arrays[::20]):
        assert not grammar.matches(json.dumps(value))
    near = {**objects[60], "d": 0.5}
    for value in (near, {**objects[60], "f": None}, {**objects[60], "b": {"c": [61, "x"]}}, [7, [2], "same", 1], []):
        assert grammar.matches(json.dumps(value))
    assert not grammar.matches(json.dumps(objects[60]).replace("60", "6e1", 1))
