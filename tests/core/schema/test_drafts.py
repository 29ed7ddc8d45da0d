"""Each draft has its own keywords, and what a schema is rewritten to depends on none of them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from toolgrammar.core import Grammar, InvalidSchemaError, UnsupportedSchemaError

from ...judges import Judges
from .test_against_jsonschema import compare_all
from .universe import UNIVERSE, accepted, valid

DRAFTS = {
    "4": "http://json-schema.org/draft-04/schema#",
    "6": "http://json-schema.org/draft-06/schema#",
    "7": "http://json-schema.org/draft-07/schema#",
    "2019-09": "https://json-schema.org/draft/2019-09/schema",
    "2020-12": "https://json-schema.org/draft/2020-12/schema",
}
DRAFT_3 = "http://json-schema.org/draft-03/schema#"

#: Schemas whose values are compared, negated, excluded or told apart, so that the engine makes constraints of its own;
#: and keywords that some drafts lack.
SCHEMAS: tuple[dict[str, Any], ...] = (
    {"enum": [{"a": 1}]},
    {"enum": [[1], [1, "a"], {"a": {"a": 1}}, "a"]},
    {"not": {"enum": [[1, 1]]}},
    {"not": {"enum": [{"a": 1}, {"a": "a"}, [], 1]}},
    {"not": {"enum": [{"a": {"a": 1}}]}},
    {"oneOf": [{"enum": [{"a": 1}]}, {"enum": ["a", {"a": 1}]}]},
    {"anyOf": [{"enum": [{"a": 1, "b": 1}]}, {"type": "null"}]},
    {"items": {"enum": [[1], "a"]}, "uniqueItems": True, "minItems": 2},
    {"items": {"enum": [{"a": 1}, 1]}, "uniqueItems": True},
    {"uniqueItems": True, "items": {"type": ["object", "integer"], "properties": {"a": {"type": "integer"}}}},
    {"not": {"uniqueItems": True}},
    {"not": {"uniqueItems": True, "items": {"enum": [1, "a", [1]]}}},
    {"not": {"properties": {"a": {"enum": [1, [1]]}}, "required": ["a"]}},
    {"not": {"items": {"enum": [1, {"a": 1}]}}},
    {"not": {"dependencies": {"a": ["b"], "ab": {"required": ["a"]}}}},
    {"oneOf": [{"dependencies": {"a": ["b"]}}, {"required": ["ab"]}]},
    {"oneOf": [{"properties": {"a": {"enum": [1]}}}, {"properties": {"b": {"enum": ["a"]}}}]},
    {"oneOf": [{"items": {"type": "integer"}}, {"maxItems": 1}]},
    {"additionalProperties": {"enum": [1, [1]]}, "properties": {"a": {"not": {"enum": [{"a": 1}]}}}},
    {"patternProperties": {"^a": {"enum": [1, {"a": 1}]}}, "not": {"required": ["b"]}},
    {"properties": {"a": {"$ref": "#/definitions/a"}}, "definitions": {"a": {"enum": [[1], None]}}},
    {"not": {"$ref": "#/definitions/a"}, "definitions": {"a": {"enum": [[1], None]}}},
    # unknown to some drafts, so that they mean nothing there
    {"const": {"a": 1}},
    {"not": {"const": [1, 1]}},
    {"contains": {"const": 1}},
    {"not": {"contains": {"enum": [1]}}},
    {"propertyNames": {"maxLength": 1}},
    {"not": {"propertyNames": {"enum": ["a", "b"]}}},
    {"if": {"required": ["a"]}, "then": {"required": ["b"]}, "else": {"type": ["object", "null"]}},
    {"not": {"if": {"required": ["a"]}, "then": {"required": ["b"]}}},
    {"contains": {"enum": [1]}, "minContains": 2},
    {"contains": {"enum": [1, "a"]}, "maxContains": 1},
    {"dependentRequired": {"a": ["b"]}, "dependentSchemas": {"b": {"maxProperties": 1}}},
    {"properties": {"a": {}}, "unevaluatedProperties": False},
    {"prefixItems": [{"type": "integer"}], "unevaluatedItems": False},
    {"not": {"prefixItems": [{"enum": [1]}]}},
    {"enum": [1, "a"], "const": 1},
    # of another form than a draft that knows them wants
    {"const": 1, "type": ["integer", "array"]},
)


@pytest.mark.parametrize("draft", DRAFTS)
@pytest.mark.parametrize("schema", SCHEMAS, ids=json.dumps)
def test_every_draft_as_jsonschema_has_it(schema: dict[str, Any], draft: str) -> None:
    """Every value of a small world is accepted iff it is valid in the schema's draft."""
    schema = {"$schema": DRAFTS[draft], **schema}
    wanted = set(valid(schema))
    narrowed = "uniqueItems" in str(schema.get("not"))  # only repeated values that are simple, or listed
    found = set(accepted(schema, on_unsupported="narrow" if narrowed else "error"))
    assert found <= wanted
    assert found == wanted or (narrowed and len(found) > len(UNIVERSE) // 40)


@pytest.mark.parametrize("draft", DRAFTS)
def test_random_schemas_of_every_draft(draft: str) -> None:
    """Schemas that mix all keywords, those included that the draft lacks."""
    compare_all(range(9_000, 9_120), DRAFTS[draft])


def test_a_wrong_form_of_an_unknown_keyword() -> None:
    """What a draft does not know is an annotation, whatever its value; the draft that knows it refuses the value."""
    for keyword in ("contains", "propertyNames", "if", "minContains"):
        assert Grammar.from_json_schema({"$schema": DRAFTS["4"], keyword: "see above"}).matches("[]")
        with pytest.raises(InvalidSchemaError):
            Grammar.from_json_schema({"$schema": DRAFTS["2020-12"], keyword: "see above"})


@pytest.mark.parametrize(
    ("schema", "hint"),
    [
        ({"divisibleBy": 2}, "multipleOf"),
        ({"disallow": "string"}, "not"),
        ({"items": {"extends": {"type": "string"}}}, "allOf"),
    ],
)
def test_keywords_of_draft_3_are_refused(schema: dict[str, Any], hint: str) -> None:
    """A document of Draft 3 is read as Draft 4, and a keyword that later drafts replaced is no annotation in it."""
    with pytest.raises(UnsupportedSchemaError, match=hint):
        Grammar.from_json_schema({"$schema": DRAFT_3, **schema})
    assert Grammar.from_json_schema(schema).matches("[]")


def test_draft_3_is_read_as_draft_4() -> None:
    """What both have is enforced, and a required flag is refused with a hint at the list of names."""
    schema = {"$schema": DRAFT_3, "maximum": 3, "exclusiveMaximum": True, "not": {"enum": [[1]]}}
    grammar = Grammar.from_json_schema(schema)
    assert [grammar.matches(text) for text in ("2", "3", "[1]", "[2]")] == [True, False, False, True]
    with pytest.raises(InvalidSchemaError, match="list the required members"):
        Grammar.from_json_schema({"$schema": DRAFT_3, "properties": {"a": {"required": True}}})


@pytest.mark.parametrize("additional", [True, False])
@pytest.mark.parametrize("age", [4, 6, 7])
def test_keywords_beside_a_reference_distinguish_no_options(age: int, additional: bool) -> None:
    """Up to draft 7, what stands beside a reference does not tell the options of oneOf apart, in closed objects too."""
    options = [{"$ref": "#/definitions/p", "required": ["n", name], "properties": {name: {}}} for name in "qr"]
    schema = {
        "$schema": f"http://json-schema.org/draft-0{age}/schema#",
        "oneOf": [*options, {"type": "array"}],
        "definitions": {"p": {"type": "object", "properties": {"d": {}, "n": {}}, "required": ["n"]}},
    }
    judges = Judges(schema)
    grammar = Grammar.from_json_schema(schema, additional_properties=additional)
    for value in ({"n": 1}, {"n": 1, "d": 2}, {}, []):
        assert grammar.matches(json.dumps(value)) is judges.verdict(value)
