"""``propertyDependencies``: a schema for the whole object, chosen by the value of one member."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

from toolgrammar.core import Grammar, InvalidSchemaError
from toolgrammar.core.validation import is_valid

from ...shares import share
from ...vocabularies import BYTES
from .universe import UNIVERSE, accepted, valid

#: Schemas to choose from, of the universe's values.
CHOSEN: tuple[Any, ...] = (
    True,
    False,
    {"required": ["b"]},
    {"required": ["b"], "properties": {"b": {"type": "integer"}}},
    {"maxProperties": 1},
    {"properties": {"b": {"const": "a"}}},
    {"not": {"required": ["ab"]}},
    {"propertyDependencies": {"b": {"a": {"required": ["ab"]}}}},
)
SHAPE: dict[str, Any] = {
    "type": "object",
    "properties": {"kind": {"enum": ["circle", "square", "other"]}},
    "required": ["kind"],
    "propertyDependencies": {
        "kind": {
            "circle": {"properties": {"radius": {"type": "integer"}}, "required": ["radius"]},
            "square": {"properties": {"side": {"type": "integer"}}, "required": ["side"]},
        }
    },
    "unevaluatedProperties": False,
}


def drawn(seed: int) -> dict[str, Any]:
    """Return a schema with the keyword, beside others or under them."""
    draw = random.Random(seed)
    listed = {
        name: {text: draw.choice(CHOSEN) for text in draw.sample(("a", "x", ""), draw.randint(0, 2))}
        for name in draw.sample(("a", "b"), draw.randint(1, 2))
    }
    schema: dict[str, Any] = {"propertyDependencies": listed}
    beside = draw.choice(({}, {"type": "object"}, {"required": ["a"]}, {"minProperties": 1}, {"properties": {"a": {}}}))
    schema.update(beside)
    return draw.choice((schema, {"not": schema}, {"anyOf": [schema, {"type": "integer"}]}, {"oneOf": [schema, {}]}))


@pytest.mark.parametrize("seed", share(range(60), 0, 3))
def test_grammar_agrees_with_the_definition(seed: int) -> None:
    """Of every value of the universe, the grammar and the validator of the library say what the definition says."""
    schema = drawn(seed)
    expected = valid(schema)
    assert accepted(schema) == expected
    assert [json.dumps(value) for value in UNIVERSE if is_valid(value, schema)] == expected


def test_chosen_schema_evaluates_its_members() -> None:
    """The schema that the value chooses, and no other, evaluates members for ``unevaluatedProperties``."""
    grammar = Grammar.from_json_schema(SHAPE)
    assert grammar.matches('{"kind": "circle", "radius": 1}') and grammar.matches('{"kind": "other"}')
    assert not grammar.matches('{"kind": "circle"}') and not grammar.matches('{"kind": "square", "radius": 1}')
    assert not grammar.matches('{"kind": "other", "radius": 1}')


def test_masks_follow_the_value() -> None:
    """After the value, the mask has the members that it asks for, and the object cannot end without them."""
    matcher = Grammar.from_json_schema(SHAPE).bind(BYTES).matcher()
    for byte in b'{"kind": "circle"':
        assert matcher.accept(byte)
    assert bytes(matcher.allowed_tokens()) == b","
    for byte in b', "':
        assert matcher.accept(byte)
    assert bytes(matcher.allowed_tokens()) == b"r"


@pytest.mark.parametrize("value", [[], {"a": []}, {"a": {"b": 1}}, {"a": True}])
def test_malformed_value_is_an_error(value: Any) -> None:
    """A value of another form is an error that names the keyword."""
    with pytest.raises(InvalidSchemaError):
        Grammar.from_json_schema({"propertyDependencies": value})


def test_annotation_before_2020_12() -> None:
    """Older drafts do not know the keyword, so that it constrains nothing there."""
    schema = {"$schema": "http://json-schema.org/draft-07/schema#", "propertyDependencies": {"a": {"a": False}}}
    assert Grammar.from_json_schema(schema).matches('{"a": "a"}')
