"""The check of a document: what is sound, what is refused, and which expansions are tried."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolgrammar.core import Grammar, SchemaError
from toolgrammar.core.schema.check import problems as check
from toolgrammar.core.schema.read.keywords import KEYWORDS
from toolgrammar.core.schema.read.options import SchemaOptions
from toolgrammar.core.schema.read.resolve import DIALECTS, Document

SOUND: list[Any] = [
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
    {"properties": {"a": {"$id": "http://a/b", "$ref": "#/c", "c": {}}}},
    {"$ref": "#a", "$defs": {"a": {"$anchor": "a"}}},
    {"minLength": 2.0},
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
    {"patternProperties": {"(a)?\\1": {}}},
    {"format": "hostname"},
    {"uniqueItems": 1},
    {"dependentRequired": {"a": True}},
    {"dependencies": {"a": 3}},
    {"propertyDependencies": {"kind": {"circle": {"required": ["radius"]}}}},
    {"$ref": "#/nowhere"},
    {"$ref": "http://elsewhere/schema"},
    {"anyOf": [{"$ref": "#"}, {"type": "null"}]},
    {"not": {"uniqueItems": True}},
    {"contains": {"uniqueItems": True}, "maxContains": 3},
    {"oneOf": [{"uniqueItems": True}, {"minItems": 2}]},
    {"allOf": [{"anyOf": [{"minimum": 10 * each + one} for one in range(4)]} for each in range(8)]},
    {"anyOf": [{"properties": {str(each): {}}} for each in range(12)], "unevaluatedProperties": False},
]


def problems(schema: Any, options: SchemaOptions | None = None) -> list[tuple[str, str]]:
    """Return the types and texts of all problems of a document."""
    try:
        found = check.problems(Document(schema), options or SchemaOptions())
    except check.DynamicReferences:
        return [("DynamicReferences", "")]
    return [(type(error).__name__, str(error)) for _, error in found]


@pytest.mark.parametrize("schema", SOUND, ids=json.dumps)
def test_sound(schema: Any) -> None:
    """These have no problem."""
    assert problems(schema) == []


@pytest.mark.parametrize("schema", REFUSED, ids=lambda schema: re.sub(" at 0x.*?>", ">", repr(schema)))
def test_refused(schema: Any) -> None:
    """These have a problem."""
    assert problems(schema) != []


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("strng", "did you mean 'string'?"),
        ("int", "did you mean 'integer'?"),
        ("Float", "did you mean 'number'?"),
        ("dict", "did you mean 'object'?"),
        ("uuid", "use one of null, boolean, number, string, array, object, integer"),
    ],
)
def test_hint_for_an_unknown_type(name: str, hint: str) -> None:
    """An unknown type is refused with the type that was meant, by its spelling or by what other languages call it."""
    ((_, text),) = problems({"type": name})
    assert text.endswith(f"Hint: {hint}")


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        ({"properties": []}, "properties must be an object of schemas, not an array"),
        ({"not": "a"}, "not must be a schema, not a string"),
        ({"anyOf": {}}, "anyOf must be an array of schemas, not an object"),
        ({"required": True}, "required must be an array of names, not a boolean"),
        ({"type": 3}, "type must be the name of a type, or an array of names, not a number"),
        ({"uniqueItems": None}, "uniqueItems must be true or false, not null"),
        ({"pattern": 1.5}, "pattern must be a string, not a number"),
        ({"minimum": "1"}, "minimum must be a number, not a string"),
        ({"minimum": True}, "minimum must be a number, not a boolean"),
        ({"enum": {"a", "b"}}, "enum must be an array, not set"),
    ],
)
def test_misfit_names_both_types(schema: Any, message: str) -> None:
    """A value of the wrong type is refused with the JSON type that the keyword has, and the one that was found."""
    ((kind, text),) = problems(schema)
    assert kind == "InvalidSchemaError" and text.startswith(message)


def test_dynamic_references_are_met() -> None:
    """They raise unless the document was made to follow them; an unknown keyword of that name does not."""
    schema = {"$dynamicRef": "#a", "$dynamicAnchor": "a", "properties": {"a": {}}}
    with pytest.raises(check.DynamicReferences):
        check.problems(Document(schema), SchemaOptions())
    assert check.problems(Document(schema, dynamic=True), SchemaOptions()) == []
    assert problems({"$schema": list(DIALECTS)[2], **schema}) == []


def test_options_count() -> None:
    """Formats that are annotations are no problem, and unknown ones only where they must be known."""
    for name, options, is_sound in (
        ("hostname", SchemaOptions(formats=False), True),
        ("color", SchemaOptions(), True),
        ("color", SchemaOptions(strict_formats=True), False),
    ):
        assert (problems({"format": name}, options) == []) == is_sound


def test_many_expansions_are_refused_together() -> None:
    """Places that are each small enough can take more steps together than a document may."""
    inner = [{"anyOf": [{"minimum": 10 * each + one} for one in range(5)]} for each in range(4)]
    place = {"allOf": inner}
    many = {"properties": {str(each): json.loads(json.dumps(place)) for each in range(80)}}
    assert problems(place) == []
    assert "LimitError" in {name for name, _ in problems(many)}


leaves = st.sampled_from(
    [None, True, False, -1, 2, 1.5, "string", "integer", "#", "#/properties/a", "hostname", "date", "(", ["a"], [], {}]
)
keywords = st.sampled_from([*sorted(KEYWORDS.constraining), "title", "$id"])


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


documents = st.builds(
    lambda schema, dialect: {
        **({} if dialect is None else {"$schema": dialect}),
        **(schema if isinstance(schema, dict) else {"properties": {"a": schema}}),
    },
    malformed_schemas(),
    st.sampled_from([None, *DIALECTS]),
)


@given(document=documents, formats=st.booleans())
def test_whatever_is_given_has_a_list_of_problems(document: Any, formats: bool) -> None:
    """The check raises nothing, however malformed a document is."""
    assert isinstance(problems(document, SchemaOptions(formats=formats)), list)


@given(document=documents)
def test_estimates_are_upper_bounds(document: Any) -> None:
    """A place whose expansion is not tried has no problem: trying all of them finds the same problems."""
    estimated = problems(document)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(check, "MAX_STEPS", -1)
        assert problems(document) == estimated


@pytest.mark.parametrize("pattern", ["[^a-\\U0010FFFF]", "(?<=a*)b", "["])
@pytest.mark.parametrize("union", ["oneOf", "anyOf"])
@pytest.mark.parametrize("on_unsupported", ["error", "narrow", "validate"])
def test_a_pattern_under_options_that_overlap(pattern: str, union: str, on_unsupported: Any) -> None:
    """A pattern that cannot be enforced is a problem of its schema also where the options must be compared by it."""
    text = {"type": "string", "pattern": pattern}
    schema = {union: [{"not": text}, {"type": "string", "format": "date"}, text]}
    try:
        Grammar.from_json_schema(schema, on_unsupported=on_unsupported)
    except SchemaError as error:
        assert error.place.keyword == "pattern" and error.place.pointer
