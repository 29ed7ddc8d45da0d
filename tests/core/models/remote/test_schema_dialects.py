"""What is sent of a schema is never narrower than the schema: ``jsonschema`` is the judge."""

from __future__ import annotations

from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolgrammar.core.models.remote.schema_dialects import anchored_schema, plain_schema, strict_schema, without

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


VALUES = st.recursive(
    st.sampled_from([None, True, 0, 1, 5, "", "a", "bb", "abc"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["a", "b", "xy"]), inner, max_size=3),
    max_leaves=5,
)


def _schemas(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    several = st.lists(inner, min_size=1, max_size=3)
    named = st.dictionaries(st.sampled_from(["a", "b"]), inner, max_size=2)
    keywords = {
        "type": st.sampled_from(["string", "object", "array", "integer"]),
        "pattern": st.sampled_from(["b", "^a+$"]),
        "minLength": st.integers(0, 3),
        "maximum": st.integers(0, 4),
        "$ref": st.just("#/$defs/d"),
        "properties": named,
        "patternProperties": named,
        "additionalProperties": inner,
        "unevaluatedProperties": inner,
        "items": inner,
        "prefixItems": several,
        "contains": inner,
        "maxContains": st.just(1),
        "uniqueItems": st.just(True),
        **dict.fromkeys(("anyOf", "oneOf", "allOf"), several),
        **dict.fromkeys(("not", "if", "then", "else", "propertyNames"), inner),
    }
    chosen = st.lists(st.sampled_from(sorted(keywords)), min_size=1, max_size=4, unique=True)
    return chosen.flatmap(lambda names: st.fixed_dictionaries({name: keywords[name] for name in names}))


SCHEMAS = st.recursive(st.sampled_from([True, False, WORD]), _schemas, max_leaves=6)
LEFT_OUT = st.sets(
    st.sampled_from(
        [
            "pattern",
            "minLength",
            "oneOf",
            "not",
            "if",
            "allOf",
            "patternProperties",
            "prefixItems",
            "contains",
            "maximum",
        ]
    )
)


@given(schema=SCHEMAS, definition=SCHEMAS, refused=LEFT_OUT, values=st.lists(VALUES, min_size=1, max_size=6))
def test_what_is_sent_is_never_narrower(schema: Any, definition: Any, refused: set[str], values: list[Any]) -> None:
    """Whatever keywords a server refuses: a value that is valid is valid under what is sent."""
    # A definition that refers to itself in place is no schema that any validator can judge.
    whole = {"allOf": [schema], "$defs": {"d": _without_references(definition)}}
    sent, _ = without(whole, lambda key, value: key not in refused)
    asked, got = jsonschema.Draft202012Validator(whole), jsonschema.Draft202012Validator(sent)
    for value in values:
        if asked.is_valid(value):
            assert got.is_valid(value)


def _without_references(schema: Any) -> Any:
    if isinstance(schema, list):
        return [_without_references(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    return {key: _without_references(value) for key, value in schema.items() if key != "$ref"}
