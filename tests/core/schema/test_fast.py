"""What is said at first sight to have no problem has none, in both forms of the module."""

from __future__ import annotations

import importlib.machinery
import importlib.util
import json
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from toolgrammar.core.schema.check import exact as scan
from toolgrammar.core.schema.check import fast as sound
from toolgrammar.core.schema.read.keywords import CONSTRAINING
from toolgrammar.core.schema.read.options import SchemaOptions
from toolgrammar.core.schema.read.resolve import DIALECTS, Document

SURE: list[Any] = [
    True,
    {"type": ["string", "null"], "minLength": 2, "pattern": "^a", "format": "date", "title": 3},
    {"properties": {"a": {"items": {"enum": [1, None, [2.5], {"b": "c"}]}}}, "required": ["a"]},
    {"$ref": "#/$defs/a", "$defs": {"a": {"properties": {"next": {"$ref": "#/$defs/a"}}}}},
    {"anyOf": [{"allOf": [{"minimum": 1.5}, {"multipleOf": 3}]}, False]},
    {"oneOf": [{"type": "string"}, {"type": ["integer", "null"]}]},
    {"oneOf": [{"required": ["a"]}, {"required": ["b"]}]},
    {"type": "array", "uniqueItems": True, "items": {"oneOf": [{"type": "string"}, {"type": "null"}]}},
    {"not": {"type": "array", "uniqueItems": False}},
    {"if": {"minItems": 2}, "then": {"contains": {"const": 1}}, "dependentRequired": {"a": ["b"]}},
    {"$schema": "http://json-schema.org/draft-04/schema#", "id": "http://a/b", "exclusiveMinimum": True},
    {"$schema": "http://json-schema.org/draft-04/schema#", "if": {"format": "regex"}, "prefixItems": [{"$ref": "#/x"}]},
    {"$schema": "http://json-schema.org/draft-07/schema#", "$ref": "#/definitions/a", "definitions": {"a": {}}},
]
REFUSED: list[Any] = [
    {"type": "text"},
    {"type": ["string", 3]},
    {"properties": {"a": 3}},
    {"properties": {1: {}}},
    {"items": "string"},
    {"enum": [float("nan")]},
    {"const": object()},
    {"anyOf": []},
    {"required": "a"},
    {"minLength": -1},
    {"minItems": 100_001},
    {"maximum": float("inf")},
    {"multipleOf": 0},
    {"pattern": "("},
    {"patternProperties": {"(a)\\1": {}}},
    {"format": "hostname"},
    {"uniqueItems": 1},
    {"dependentRequired": {"a": True}},
    {"dependencies": {"a": 3}},
    {"$ref": "#/nowhere"},
    {"$ref": "http://elsewhere/schema"},
    {"anyOf": [{"$ref": "#"}, {"type": "null"}]},
    {"not": {"uniqueItems": True}},
    {"contains": {"uniqueItems": True}, "maxContains": 3},
    {"oneOf": [{"uniqueItems": True}, {"minItems": 2}]},
    {"allOf": [{"anyOf": [{"minimum": 10 * each + one} for one in range(4)]} for each in range(8)]},
    {"anyOf": [{"properties": {str(each): {}}} for each in range(12)], "unevaluatedProperties": False},
]
UNSURE: list[Any] = [
    {"$dynamicRef": "#a", "$dynamicAnchor": "a", "properties": {"a": {}}},
    {"properties": {"a": {"$id": "http://a/b", "$ref": "#/c", "c": {}}}},
    {"$ref": "#a", "$defs": {"a": {"$anchor": "a"}}},
    {"minLength": 2.0},
]


@pytest.fixture(params=["compiled", "interpreted"], scope="module")
def form(request: pytest.FixtureRequest) -> ModuleType:
    """The module, compiled and as plain Python."""
    if request.param == "compiled":
        if not sound.COMPILED:
            pytest.skip("the module is not compiled here")
        return sound
    source = Path(scan.__file__).with_name("fast.py")
    loader = importlib.machinery.SourceFileLoader("toolgrammar.core.schema.check.fast_interpreted", str(source))
    spec = importlib.util.spec_from_loader(loader.name, loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    assert module.COMPILED is False
    return module


def problems(schema: Any, options: SchemaOptions) -> list[Any]:
    """What the scan finds, whatever it is."""
    try:
        return list(scan.problems(Document(schema), options))
    except scan.DynamicReferences as found:
        return [found]


@pytest.mark.parametrize("schema", SURE, ids=json.dumps)
def test_sure(form: ModuleType, schema: Any) -> None:
    """These are known to have no problem, and have none."""
    assert form.is_surely_sound(Document(schema), SchemaOptions())
    assert problems(schema, SchemaOptions()) == []


@pytest.mark.parametrize("schema", REFUSED, ids=repr)
def test_refused(form: ModuleType, schema: Any) -> None:
    """These have a problem."""
    assert not form.is_surely_sound(Document(schema), SchemaOptions())
    assert problems(schema, SchemaOptions()) != []


@pytest.mark.parametrize("schema", UNSURE, ids=json.dumps)
def test_unsure(form: ModuleType, schema: Any) -> None:
    """These take a closer look."""
    assert not form.is_surely_sound(Document(schema), SchemaOptions())


def test_options_count(form: ModuleType) -> None:
    """Formats that are annotations are no problem, and unknown ones only where they must be known."""
    for name, options, expected in (
        ("hostname", SchemaOptions(formats=False), True),
        ("color", SchemaOptions(), True),
        ("color", SchemaOptions(strict_formats=True), False),
    ):
        assert form.is_surely_sound(Document({"format": name}), options) == expected
        assert (problems({"format": name}, options) == []) == expected


def test_many_expansions_are_refused_together(form: ModuleType) -> None:
    """Places that are each small enough can take more steps together than a document may."""
    inner = [{"anyOf": [{"minimum": 10 * each + one} for one in range(5)]} for each in range(4)]
    place = {"allOf": inner}
    many = {"properties": {str(each): json.loads(json.dumps(place)) for each in range(80)}}
    assert form.is_surely_sound(Document(place), SchemaOptions())
    assert not form.is_surely_sound(Document(many), SchemaOptions())
    assert problems(many, SchemaOptions()) != []


leaves = st.sampled_from(
    [None, True, False, -1, 2, 1.5, "string", "integer", "#", "#/properties/a", "hostname", "date", "(", ["a"], [], {}]
)
keywords = st.sampled_from([*sorted(CONSTRAINING), "title", "$id"])


def malformed_schemas() -> st.SearchStrategy[Any]:
    """Schemas, and things that nearly are."""
    names = st.sampled_from("ab")
    return st.recursive(
        leaves,
        lambda inner: st.one_of(
            st.dictionaries(keywords, inner, max_size=3),
            st.dictionaries(st.one_of(names, keywords), inner, max_size=2),
            st.lists(inner, max_size=2),
            st.fixed_dictionaries({"properties": st.dictionaries(names, inner, max_size=2)}),
            st.fixed_dictionaries({"oneOf": st.lists(inner, min_size=1, max_size=3)}),
        ),
        max_leaves=8,
    )


@given(schema=malformed_schemas(), dialect=st.sampled_from([None, *DIALECTS]), formats=st.booleans())
def test_what_is_sure_has_no_problem(schema: Any, dialect: str | None, formats: bool) -> None:
    """The full check finds no problem where the quick one is sure that there is none, in every dialect."""
    document = schema if isinstance(schema, dict) else {"properties": {"a": schema}}
    if dialect is not None:
        document = {"$schema": dialect, **document}
    options = SchemaOptions(formats=formats)
    assume(sound.is_surely_sound(Document(document), options))
    assert problems(document, options) == []
