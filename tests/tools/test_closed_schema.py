"""The closed reading of schemas: written out by `close_objects`, and followed by the grammar."""

from __future__ import annotations

import copy
import itertools
import json
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolgrammar.core import Grammar, LimitError, UnsatisfiableSchemaError
from toolgrammar.tools import close_objects

from ..bombs import bombs, nest
from ..counted import at_most

INT = {"type": "integer"}
A = {"type": "object", "properties": {"a": INT}}
B = {"type": "object", "properties": {"b": INT}}

CASES: list[tuple[str, Any, list[Any], list[Any]]] = [
    ("names properties", A, [{}, {"a": 1}], [{"z": 1}, {"a": 1, "z": 1}]),
    ("names none, by an empty list", {"type": "object", "properties": {}}, [{}], [{"z": 1}]),
    ("free-form map", {"type": "object"}, [{}, {"z": 1}], []),
    ("says open", {**A, "additionalProperties": True}, [{"z": 1}], [{"a": "x"}]),
    ("says what else", {**A, "additionalProperties": INT}, [{"z": 1}], [{"z": "x"}]),
    ("patterns are names", {"type": "object", "patternProperties": {"^p": INT}}, [{"p1": 1}], [{"z": 1}]),
    ("inside", {"type": "object", "properties": {"o": A}}, [{"o": {"a": 1}}], [{"o": {"z": 1}}]),
    ("in arrays", {"type": "array", "items": A}, [[{"a": 1}]], [[{"z": 1}]]),
    ("in maps", {"type": "object", "additionalProperties": A}, [{"z": {"a": 1}}], [{"z": {"z": 1}}]),
    (
        "what an array contains, beside items that are open",
        {"type": "array", "items": {"type": "object", "additionalProperties": True}, "contains": A},
        [[{"z": 1}], [{"a": 1, "z": 1}]],
        [[{"a": "x"}], []],
    ),
    (
        "items that may have the names of what the array contains",
        {"type": "array", "prefixItems": [{"type": "object", "patternProperties": {"^$": INT}}], "contains": A},
        [[{"a": 1}], [{}, {"a": 1}]],
        [[{"a": "x"}]],
    ),
    (
        "a dynamic reference below a condition",
        {
            "type": "object",
            "additionalProperties": True,
            "if": False,
            "else": {"$dynamicRef": "#node"},
            "$defs": {"node": {"$dynamicAnchor": "node", **A}},
        },
        [{"a": 1}, {"z": 1}],
        [{"a": "x"}],
    ),
    ("a reference", {"$ref": "#/$defs/A", "$defs": {"A": A}}, [{"a": 1}], [{"z": 1}]),
    ("parts together", {"allOf": [A, B]}, [{"a": 1, "b": 1}], [{"z": 1}, {"a": 1, "z": 1}]),
    (
        "parts by reference, used whole as well",
        {
            "type": "object",
            "properties": {
                "both": {"allOf": [{"$ref": "#/$defs/A"}, {"$ref": "#/$defs/B"}]},
                "one": {"$ref": "#/$defs/A"},
            },
            "$defs": {"A": A, "B": B},
        },
        [{"both": {"a": 1, "b": 1}, "one": {"a": 1}}],
        [{"both": {"z": 1}}, {"one": {"b": 1}}, {"one": {"z": 1}}],
    ),
    ("a branch", {"anyOf": [A, B]}, [{"a": 1}, {"b": 1}], [{"z": 1}, {"a": 1, "b": 1}]),
    ("a free-form branch", {"anyOf": [{"type": "object", "maxProperties": 1}, A]}, [{"z": 1}], [{"z": 1, "y": 1}]),
    (
        "a branch and what is beside",
        {**A, "anyOf": [B, {"type": "object", "properties": {"c": INT}}]},
        [{"a": 1, "b": 1}],
        [{"z": 1}],
    ),
    (
        "nullable reference",
        {"anyOf": [{"$ref": "#/$defs/A"}, {"type": "null"}], "$defs": {"A": A}},
        [None, {"a": 1}],
        [{"z": 1}],
    ),
    ("alone in allOf", {"allOf": [{"$ref": "#/$defs/A"}], "title": "t", "$defs": {"A": A}}, [{"a": 1}], [{"z": 1}]),
    (
        "recursion",
        {"$ref": "#/$defs/N", "$defs": {"N": {"type": "object", "properties": {"n": {"$ref": "#/$defs/N"}}}}},
        [{"n": {"n": {}}}],
        [{"n": {"n": {"z": 1}}}],
    ),
]


@pytest.mark.parametrize(("schema", "good", "bad"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_reading(schema: Any, good: list[Any], bad: list[Any]) -> None:
    """The written-out schema takes what the reading allows; the input is not changed; twice is once."""
    before = copy.deepcopy(schema)
    closed = close_objects(schema)
    assert schema == before
    validator = jsonschema.Draft202012Validator(closed)
    for value in good:
        assert validator.is_valid(value), value
    for value in bad:
        assert not validator.is_valid(value), value


@pytest.mark.parametrize(("schema", "good", "bad"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_grammar_reads_the_same(schema: Any, good: list[Any], bad: list[Any]) -> None:
    """The grammar with ``additional_properties=False`` accepts the same values."""
    grammar = Grammar.from_json_schema(schema, additional_properties=False)
    for value in good:
        assert grammar.matches(json.dumps(value)), value
    for value in bad:
        assert not grammar.matches(json.dumps(value)), value


@st.composite
def compositions(draw: st.DrawFn, depth: int = 2) -> dict[str, Any]:
    """Object schemas, composed in the ways that the reading speaks of."""
    kind = draw(st.sampled_from(["object"] if not depth else ["object", "anyOf", "allOf", "ref"]))
    if kind in ("anyOf", "allOf"):
        return {kind: draw(st.lists(compositions(depth - 1), min_size=1, max_size=3))}
    if kind == "ref":
        return {"$ref": draw(st.sampled_from(["#/$defs/A", "#/$defs/B", "#/$defs/U"]))}
    properties = {
        name: draw(st.just(INT) if not depth else compositions(0)) for name in draw(st.sets(st.sampled_from("abc")))
    }
    schema: dict[str, Any] = {"type": "object"}
    if draw(st.booleans()):
        schema["properties"] = properties
    if draw(st.booleans()):
        schema["additionalProperties"] = draw(st.sampled_from([True, False, INT]))
    return schema


DEFINITIONS = {"A": A, "B": B, "U": {"anyOf": [{"$ref": "#/$defs/A"}, {"$ref": "#/$defs/B"}]}}
VALUES = [
    dict(zip(keys, [1, {}, {"a": 1}, {"z": 1}], strict=False))
    for size in range(3)
    for keys in itertools.combinations("abz", size)
]


def joins_alternatives(schema: Any) -> bool:
    """Whether there is an ``anyOf``, or a reference to one, below an ``allOf``."""
    inner = json.dumps(schema.get("allOf", [])) if isinstance(schema, dict) else ""
    return "anyOf" in inner or "/U" in inner or any(joins_alternatives(sub) for sub in schema.get("anyOf", []))


@given(compositions())
def test_grammar_and_validation_agree(schema: dict[str, Any]) -> None:
    """On random compositions: what the grammar accepts validates against the written-out schema, and the other way
    round unless ``allOf`` joins alternatives.
    """
    document = {**schema, "$defs": DEFINITIONS}
    validator = jsonschema.Draft202012Validator(close_objects(document))
    grammar = Grammar.from_json_schema(document, additional_properties=False)
    for value in VALUES:
        orders = [json.dumps(dict(order)) for order in itertools.permutations(value.items())]
        try:
            accepted = any(grammar.matches(text) for text in orders)  # the grammar fixes the order of properties
        except UnsatisfiableSchemaError:
            accepted = False
        if accepted or not joins_alternatives(document):
            assert accepted == validator.is_valid(value), value


@given(compositions())
def test_closing_only_narrows(schema: dict[str, Any]) -> None:
    """Whatever the closed schema takes, the schema takes."""
    document = {**schema, "$defs": DEFINITIONS}
    opened = jsonschema.Draft202012Validator(document)
    closed = jsonschema.Draft202012Validator(close_objects(document))
    for value in VALUES:
        assert opened.is_valid(value) or not closed.is_valid(value)


@pytest.mark.parametrize("schema", [pytest.param(schema, id=name) for name, schema in bombs() if name != "very deep"])
def test_work_grows_with_the_document(schema: dict[str, Any]) -> None:
    """Each schema of a document is looked at once, however many ways of references lead to it."""
    with at_most(300_000):
        close_objects(schema)


def test_nesting_beyond_the_stack_is_a_limit() -> None:
    """A schema that is nested too deeply for the walk is refused by an error of ours."""
    with pytest.raises(LimitError, match="nested too deeply"):
        close_objects(nest(lambda inner: {"type": "array", "items": inner}, True, 5_000))
