"""What is sent of a schema is never narrower than the schema: ``jsonschema`` is the judge."""

from __future__ import annotations

import random
from typing import Any

import jsonschema
import pytest

from toolgrammar.core.models.remote.schema_dialects import (
    anchored_schema,
    consistent,
    plain_schema,
    strict_schema,
    without,
)

from ....schemas import random_schema, random_value

WORD = {"type": "string", "pattern": "b", "minLength": 2}
CLOSED = {"type": "object", "properties": {"a": WORD}, "required": ["a"], "additionalProperties": False}


def test_strict_mode_takes_closed_objects() -> None:
    """A closed object without optional members is taken; what its dialect lacks is named."""
    sent, left_out = strict_schema(CLOSED) or (None, None)
    assert sent == {**CLOSED, "properties": {"a": {"type": "string", "pattern": "b"}}}
    assert left_out == ("/properties/a/minLength",)
    tree = {
        "type": "object",
        "properties": {"of": {"type": "array", "items": {"$ref": "#/$defs/tree"}}},
        "required": ["of"],
        "additionalProperties": False,
    }
    assert strict_schema({**CLOSED, "properties": {"a": {"$ref": "#/$defs/tree"}}, "$defs": {"tree": tree}})


@pytest.mark.parametrize(
    "schema",
    [
        True,
        {},
        {"type": "string"},
        {"anyOf": [CLOSED]},
        {**CLOSED, "required": []},
        {**CLOSED, "additionalProperties": True},
        {**CLOSED, "properties": {"a": {}}},
        {**CLOSED, "properties": {"a": {"type": "array"}}},
        {**CLOSED, "properties": {"a": {"$ref": "#/properties/b"}}},
        {**CLOSED, "patternProperties": {"x": True}},
    ],
)
def test_strict_mode_is_not_asked_for_what_it_cannot_hold(schema: Any) -> None:
    """Open objects, optional members, unions at the root and references elsewhere go without strict mode."""
    assert strict_schema(schema) is None


@pytest.mark.parametrize(
    ("pattern", "kept"),
    [("^a+$", True), ("a", False), ("^a|b$", False), ("^(a|b)$", True), ("^(?!a)b$", False), (r"^\bb$", False)],
)
def test_llama_cpp_is_sent_anchored_patterns(pattern: str, kept: bool) -> None:
    """A pattern that llama.cpp's converter refuses is left out, and named."""
    sent, left_out = anchored_schema({"type": "string", "pattern": pattern})
    assert ("pattern" in sent) is kept
    assert left_out == (() if kept else ("/pattern",))


def test_keywords_that_say_nothing_are_not_sent() -> None:
    """``additionalProperties`` beside a type that is no object goes; elsewhere it stays."""
    assert plain_schema({"type": "string", "additionalProperties": False}) == {"type": "string"}
    for schema in ({"additionalProperties": False}, {"type": ["object", "null"], "additionalProperties": False}):
        assert plain_schema(schema) == schema


def test_enums_have_the_type_beside_them() -> None:
    """As in BFCL's tools: members without a value go from closed objects, and so do values of another type."""
    members = {
        "city": {"type": "string"},
        "free": {"type": "boolean", "enum": ["True", "False"], "default": "True"},
        "days": {"type": "integer", "enum": [1, 2.0, "3", True, 1.5, 10**400]},
    }
    schema = {"type": "object", "properties": members, "required": ["city"], "additionalProperties": False}
    days = {"type": "integer", "enum": [1, 2.0, 10**400]}
    assert consistent({"items": schema})["items"]["properties"] == {"city": members["city"], "days": days}
    for open_or_needed in ({**schema, "additionalProperties": True}, {**schema, "required": ["free"]}):
        assert consistent(open_or_needed)["properties"]["free"] == members["free"]
    assert schema["properties"] is members  # a copy was changed


def test_consistent_schemas_are_equal() -> None:
    """A value is valid under both or under neither."""
    changed = 0
    for seed in range(4_000):
        rng = random.Random(seed)
        schema = random_schema(rng, rng.choice((2, 3)))
        if "enum" in schema:
            schema["type"] = rng.choice(("integer", "number", "string", "boolean", ["null", "array"]))
        member = {"type": rng.choice(("integer", "string")), "enum": [random_value(rng), random_value(rng)]}
        more = {"$defs": schema.pop("$defs", {}), "additionalProperties": rng.random() < 0.5}
        schema = {"properties": {"a": schema, "b": member}, **more}
        sent = consistent(schema)
        changed += sent != schema
        for _ in range(8):
            value = {name: random_value(rng) for name in rng.sample(("a", "b"), rng.randrange(3))}
            if rng.random() < 0.5:
                value["b"] = rng.choice(member["enum"])
            both = [jsonschema.Draft202012Validator(one).is_valid(value) for one in (schema, sent)]
            assert both[0] == both[1], (schema, sent, value)
    assert changed > 800


#: Keywords that a server may refuse: a schema without them is wider, unless another keyword leans on them.
REFUSED = "pattern minLength maximum enum required contains prefixItems patternProperties oneOf allOf not if".split()


def test_what_is_sent_is_never_narrower() -> None:
    """Whatever keywords a server refuses, a value that is valid is valid under what is sent."""
    judged = 0
    for seed in range(4_000):
        rng = random.Random(seed)
        schema = random_schema(rng, rng.choice((2, 3)))
        refused = set(rng.sample(REFUSED, rng.randrange(1, 7)))
        sent, _ = without(schema, lambda key, value, refused=refused: key not in refused)
        if sent != schema:
            asked = jsonschema.Draft202012Validator(schema)
            valid = [value for value in (random_value(rng) for _ in range(8)) if asked.is_valid(value)]
            judged += bool(valid)
            assert all(map(jsonschema.Draft202012Validator(sent).is_valid, valid)), (schema, refused, valid)
    assert judged > 800
