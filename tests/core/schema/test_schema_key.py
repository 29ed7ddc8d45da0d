"""When two schemas are one: annotations and the order of keywords do not count, everything else does."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

from toolgrammar.core import Grammar
from toolgrammar.core.schema.read.schema_key import schema_key

BASE: dict[str, Any] = {
    "type": "object",
    "properties": {
        "title": {"type": "string", "pattern": "^a"},
        "default": {"enum": [{"description": "x"}, 1]},
        "list": {"type": "array", "items": {"$ref": "#/$defs/item"}, "prefixItems": [{"type": "null"}]},
    },
    "required": ["title"],
    "anyOf": [{"minProperties": 1}, {"not": {"maxProperties": 3}}],
    "$defs": {"item": {"type": "integer", "minimum": 3}},
}


def annotated(schema: Any, draw: random.Random) -> Any:
    """The schema with annotations at random places, and its keywords in another order."""
    if not isinstance(schema, dict):
        return schema
    result: dict[str, Any] = {}
    for keyword, value in schema.items():
        if keyword in ("properties", "$defs"):
            value = {name: annotated(each, draw) for name, each in value.items()}
        elif keyword in ("anyOf", "prefixItems"):
            value = [annotated(each, draw) for each in value]
        elif keyword in ("items", "not"):
            value = annotated(value, draw)
        result[keyword] = value
    for keyword, value in (
        ("title", "T"),
        ("description", "D"),
        ("default", {"any": ["thing"]}),
        ("examples", [1]),
        ("$comment", "C"),
        ("deprecated", True),
        ("readOnly", False),
    ):
        if draw.random() < 0.5:
            result[keyword] = value
    pairs = list(result.items())
    draw.shuffle(pairs)
    return dict(pairs)


@pytest.mark.parametrize("seed", range(20))
def test_annotations_and_order_of_keywords_do_not_count(seed: int) -> None:
    """A schema with annotations anywhere and keywords in any order is the same schema, and the same grammar."""
    other = annotated(BASE, random.Random(seed))
    assert schema_key(other) == schema_key(BASE)
    one, two = Grammar.from_json_schema(BASE), Grammar.from_json_schema(other)
    assert one == two and hash(one) == hash(two)
    for value in ({"title": "ab", "list": [None, 3]}, {"title": "b"}, {"title": "a", "default": {"description": "x"}}):
        assert one.matches(json.dumps(value)) == two.matches(json.dumps(value))


def change(path: str, value: Any) -> dict[str, Any]:
    """`BASE` with another value at a place."""
    copy = json.loads(json.dumps(BASE))
    here = copy
    *steps, last = path.split("/")
    for step in steps:
        here = here[int(step) if step.isdigit() else step]
    here[int(last) if last.isdigit() else last] = value
    return dict(copy)


@pytest.mark.parametrize(
    "other",
    [
        change("properties/title/pattern", "^b"),
        change("properties/default/enum", [{"description": "y"}, 1]),
        change("properties/default/enum", [{"description": "x"}, True]),
        change("properties/default/enum", [{"description": "x"}, 1.0]),
        change("properties", dict(reversed(BASE["properties"].items()))),
        change("properties/description", {"type": "null"}),
        change("required", []),
        change("$defs/item/minimum", 4),
        change("anyOf/1", {"not": {"maxProperties": 4}}),
        change("properties/list/prefixItems", [True]),
        change("title", 5),
        change("x-vendor", {"title": "kept, since a reference may lead here"}),
    ],
)
def test_everything_else_counts(other: dict[str, Any]) -> None:
    """Values, the order of properties, properties that are called like annotations, and malformed annotations count."""
    assert schema_key(other) != schema_key(BASE)


def test_annotations_count_where_a_reference_leads_into_them() -> None:
    """A schema under ``default`` or ``examples`` that a reference names is part of what the document says."""

    def schema(least: int) -> dict[str, Any]:
        return {"$ref": "#/default", "default": {"type": "integer", "minimum": least}}

    assert schema_key(schema(1)) != schema_key(schema(2))
    assert Grammar.from_json_schema(schema(1)) != Grammar.from_json_schema(schema(2))
    assert not Grammar.from_json_schema(schema(2)).matches("1")
    pointed = {"properties": {"default": {"type": "string"}, "b": {"$ref": "#/properties/default"}}}
    assert Grammar.from_json_schema(pointed).matches('{"b": "x"}') and not Grammar.from_json_schema(pointed).matches(
        '{"b": 1}'
    )


def test_options_count() -> None:
    """One schema under two options is two grammars."""
    assert Grammar.from_json_schema(BASE) != Grammar.from_json_schema(BASE, whitespace="compact")
    assert Grammar.from_json_schema(BASE) != Grammar.from_json_schema(BASE, additional_properties=False)
