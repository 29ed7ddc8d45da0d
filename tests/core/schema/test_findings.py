"""All findings about a schema in one run: contradictions with their keywords, parts without values, misspelt keywords."""

from __future__ import annotations

import json
from typing import Any

import pytest

from toolgrammar.core import Grammar, SchemaError, SchemaWarning, UnsatisfiableSchemaError, UnsupportedSchemaError
from toolgrammar.core.schema import Findings
from toolgrammar.core.schema.read import unread as unread_module
from toolgrammar.core.schema.read.keywords import KEYWORDS
from toolgrammar.core.schema.read.unread import misspelt, nearest_format, nearest_keyword
from toolgrammar.core.schema.scalars.formats import ENFORCED
from toolgrammar.core.testing import ScriptedModel

HOST = {"type": "string", "format": "hostname"}


@pytest.mark.parametrize(
    ("schema", "words", "pointer"),
    [
        ({"type": "integer", "minimum": 10, "maximum": 5}, "minimum 10 and maximum 5 contradict each other", ""),
        ({"type": "integer", "minimum": 0.2, "maximum": 0.8}, 'type "integer", minimum 0.2 and maximum 0.8', ""),
        ({"type": "array", "items": True, "minItems": 2, "maxItems": 1}, "minItems 2 and maxItems 1", ""),
        ({"enum": []}, "enum [] allows no value", ""),
        ({"type": "number", "minimum": 10**309}, ": numbers are written with at most 30 digits", ""),
        ({"type": "integer", "minimum": 10**131}, "at most 30 digits", ""),
        ({"type": "string", "const": 1e308}, "contradict each other", ""),
        ({"type": "integer", "multipleOf": 10**31, "minimum": 1, "maximum": 5}, "contradict each other", ""),
        ({"type": "string", "enum": [1, 2]}, 'type "string" and enum [1, 2]', ""),
        ({"type": "string", "pattern": "^(?!)", "title": "t"}, 'pattern "^(?!)" allows no value', ""),
        ({"type": "object", "properties": {"a": {"type": "string", "minLength": 3, "maxLength": 1, "title": "a"}},
          "required": ["a"]}, "minLength 3 and maxLength 1", "/properties/a"),
        ({"allOf": [{"type": "string"}, {"title": "t"}, {"type": "null"}]}, "allOf/0 and allOf/2 contradict", ""),
        ({"$ref": "#/$defs/n", "$defs": {"n": {"type": "object", "properties": {"n": {"$ref": "#/$defs/n"}},
          "required": ["n"]}}}, "endlessly", ""),
        ({"type": "object", "properties": {"h": HOST}, "required": ["x"], "additionalProperties": False},
         "'x' is required, but is not among the properties", ""),
        ({"type": "object", "properties": {"h": HOST, "m": {"minimum": 3, "maximum": 1, "type": "number"}},
          "required": ["h", "m"]}, "minimum 3 and maximum 1", "/properties/m"),
    ],
    ids=lambda value: json.dumps(value)[:60] if isinstance(value, dict) else None,
)  # fmt: skip
def test_contradictions_are_named(schema: dict[str, Any], words: str, pointer: str) -> None:
    """The error names the keywords that contradict at their place, also beside a format that is narrowed."""
    with pytest.raises(UnsatisfiableSchemaError) as caught:
        Grammar.from_json_schema(schema).check()
    assert words in caught.value.message and caught.value.place.pointer == pointer
    assert [error.message for error in Findings.of(schema).refused] == [caught.value.message]


def test_a_narrowed_format_that_leaves_nothing_is_blamed() -> None:
    """Where only values that a format leaves out would be valid, the error says so, at that format."""
    schema = {"properties": {"a": HOST, "b": {**HOST, "pattern": "^xn--"}}, "required": ["b"], "type": "object"}
    with pytest.raises(UnsupportedSchemaError, match="the only values that satisfy the schema are left out") as caught:
        Grammar.from_json_schema(schema).check()
    assert caught.value.place.pointer == "/properties/b"


def test_all_mistakes_in_one_run() -> None:
    """A malformed part hides no contradiction elsewhere, and one contradiction hides no other."""
    schema = {
        "type": "object",
        "properties": {
            "a": {"type": "strng"},
            "b": {"type": "string", "pattern": "(a)?\\1"},
            "c": {"type": "array", "minItems": 3, "maxItems": 1},
            "d": {"$ref": "#/$defs/no"},
            "e": {"type": "integer", "enum": ["a"]},
            "f": {"minimum": 10, "maximum": 5, "type": "number"},
            "g": {"enum": []},
            "h": {"type": "string", "minLenght": 3},
            "i": {"type": "string", "format": "emial"},
        },
        "required": ["c", "zz", "e"],
        "additionalProperties": False,
    }
    found = Findings.of(schema)
    assert {(error.place.pointer, error.code) for error in found.refused} == {
        ("/properties/a", "invalid_schema"),
        ("/properties/b", "unsupported_schema"),
        ("/properties/d", "invalid_schema"),
        ("", "unsatisfiable_schema"),
        ("/properties/c", "unsatisfiable_schema"),
        ("/properties/e", "unsatisfiable_schema"),
    }
    assert {error.place.pointer for error in found.never_written} == {"/properties/f", "/properties/g"}
    assert [each.hint for each in found.unread] == ["did you mean 'minLength'?", "did you mean 'email'?"]


@pytest.mark.parametrize(
    ("schema", "pointers"),
    [
        ({"properties": {"a": {"minimum": 10, "maximum": 5, "type": "number"}}}, ["/properties/a"]),
        ({"items": {"enum": []}}, ["/items"]),
        ({"anyOf": [{"type": "string", "enum": [1]}, {"type": "null"}]}, ["/anyOf/0"]),
        ({"properties": {"a": {"$ref": "#/$defs/e"}}, "$defs": {"e": {"enum": []}}}, ["/$defs/e"]),
        ({"properties": {"a": {"minimum": 10}}, "allOf": [{"properties": {"a": {"type": "integer", "maximum": 5}}}]},
         ["/properties/a"]),
        ({"properties": {"a": False, "b": {"not": {}}}, "not": {"enum": []}, "if": {"enum": []}, "then": False}, []),
        ({"properties": {"a": {"minimum": 1}}, "maxProperties": 3}, []),
    ],
)  # fmt: skip
def test_parts_that_can_never_be_written(schema: dict[str, Any], pointers: list[str]) -> None:
    """Parts without values are found where they are meant to have some; `false` and conditions are left alone."""
    found = Findings.of(schema)
    assert [error.place.pointer for error in found.never_written] == pointers
    assert not found.refused


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("minLenght", "minLength"), ("propertees", "properties"), ("requried", "required"), ("min_length", "minLength"),
        ("anyof", "anyOf"), ("tpye", "type"), ("ref", "$ref"), ("choices", "enum"), ("additionalproperties", "additionalProperties"),
        ("note", None), ("name", None), ("label", None), ("sort", None), ("unit", None), ("remark", None),
    ],
)  # fmt: skip
def test_nearest_keyword(name: str, meant: str | None) -> None:
    """A misspelt keyword is recognised, and other words are not taken for one."""
    assert nearest_keyword(name) == meant


@pytest.mark.parametrize(
    ("name", "meant"),
    [("emial", "email"), ("url", "uri"), ("datetime", "date-time"), ("uuid4", "uuid"), ("isbn", None)],
)
def test_nearest_format(name: str, meant: str | None) -> None:
    """A misspelt format is recognised."""
    assert nearest_format(name) == meant


def test_what_is_known_is_never_misspelt() -> None:
    """No keyword, no format and no marked extension is taken for a misspelt one."""
    schemas = [{name: True} for name in KEYWORDS if name not in ("if", "then", "else", "minContains", "maxContains")]
    schemas += [{"format": name} for name in sorted(ENFORCED)]
    schemas += [{"x-order": 1}, {"_format": "x"}, {"//pattern": "x"}, {"format": "int64"}, {"$vocabulary": {}}]
    assert [schema for schema in schemas if misspelt(schema)] == []


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        ({"$schema": "http://json-schema.org/draft-07/schema#", "prefixItems": []}, "draft 7 has no 'prefixItems'"),
        ({"$schema": "http://json-schema.org/draft-04/schema#", "const": 1}, "draft 4 has no 'const'"),
        ({"then": {"type": "null"}}, "constrains nothing without 'if'"),
        ({"minContains": 2}, "constrains nothing without 'contains'"),
    ],
)
def test_keywords_of_other_drafts(schema: dict[str, Any], words: str) -> None:
    """A keyword that the draft of the schema lacks, or that needs another one, constrains nothing: that is told."""
    (found,) = misspelt(schema)
    assert words in found.message
    assert Grammar.from_json_schema(schema).matches('"x"')


def test_generate_json_warns_once_for_a_schema() -> None:
    """A misspelt keyword in the schema of an answer is a warning, at the line of the caller, once for each schema."""
    model = ScriptedModel(['"x"', '"x"'])
    schema = {"type": "string", "minLenght": 3}
    with pytest.warns(SchemaWarning, match="did you mean 'minLength'"):
        model.generate_json("x", schema)
    model.generate_json("x", schema)


def test_few_keywords_are_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    """A schema of a request with a great many unknown keywords is not compared word by word to its end."""
    compared: list[str] = []
    monkeypatch.setattr(unread_module, "nearest_keyword", compared.append)
    assert misspelt({f"word{number}": 1 for number in range(100_000)}) == []
    assert len(compared) == unread_module.MAX_EXAMINED


@pytest.mark.parametrize("schema", [3, None, [], "x"])
def test_what_is_no_schema(schema: Any) -> None:
    """Something else than a schema is an error."""
    with pytest.raises(SchemaError):
        Findings.of(schema)
