"""What is sent of a schema is never narrower than the schema: ``jsonschema`` is the judge."""

from __future__ import annotations

import random
from typing import Any

import jsonschema
import pytest

from toolgrammar.core.models.remote.schema_dialects import anchored_schema, plain_schema, strict_schema, without

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
