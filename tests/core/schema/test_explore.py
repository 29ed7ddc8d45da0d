"""What compiling a schema brings to normal form before any text is written."""

from __future__ import annotations

from typing import Any

import pytest

from toolgrammar.core import Grammar, LimitError
from toolgrammar.core.schema import compile
from toolgrammar.core.schema.normal.normalise import Normaliser


@pytest.fixture
def counts(monkeypatch: pytest.MonkeyPatch) -> dict[str, int]:
    """Numbers of normalisers made, and of goals brought to normal form."""
    found = {"made": 0, "goals": 0}

    class Counted(Normaliser):
        def __init__(self, *args: Any, **options: Any) -> None:
            found["made"] += 1
            super().__init__(*args, **options)

        def branches(self, goal: Any) -> Any:
            found["goals"] += 1
            return super().branches(goal)

    monkeypatch.setattr(compile, "Normaliser", Counted)
    return found


def nested(schema: Any, levels: int) -> Any:
    """Return a schema under some levels of objects that constrain nothing else."""
    for level in range(levels):
        schema = {
            "type": "object",
            "properties": {"a": schema, **{f"b{each}": {"minLength": level} for each in range(9)}},
        }
    return schema


def test_places_that_cannot_fail_are_passed(counts: dict[str, int]) -> None:
    """Plain objects, unions and references on the way to a risky place need no normal form."""
    risky = {"type": "array", "items": {"enum": [1, 2]}, "uniqueItems": True}
    union = {"anyOf": [nested(risky, 5), {"type": "null"}, {"$ref": "#/$defs/a"}]}
    _ = Grammar.from_json_schema({**nested(union, 20), "$defs": {"a": nested(risky, 20)}}).program
    assert counts["goals"] <= 4  # the array twice, its items, and the root


def test_members_of_several_schemas_are_passed_if_one_of_them_makes_alternatives(counts: dict[str, int]) -> None:
    """Plain schemas beside one with alternatives do not multiply them; two of those may."""
    plain = {"properties": {f"a{each}": {"type": "string"} for each in range(50)}}
    union = {"properties": {f"a{each}": {"anyOf": [{"minLength": 1}, {"pattern": "a"}]} for each in range(50)}}
    _ = Grammar.from_json_schema({"allOf": [plain, union]}).program
    passed = counts["goals"]
    _ = Grammar.from_json_schema({"allOf": [union, {**union}]}).program
    assert passed <= 2
    assert counts["goals"] - passed > 50


def test_the_check_and_the_lowering_have_one_normal_form(counts: dict[str, int]) -> None:
    """What the check found out about alternatives, the lowering does not find out again."""
    option = {"properties": {"kind": {"type": "string"}, "value": {"type": "number"}}, "required": ["kind"]}
    union = {"oneOf": [{**option, "required": ["kind", name]} for name in "abc"]}
    grammar = Grammar.from_json_schema({"properties": {"a": union, "b": {"not": {"required": ["c"]}}}})
    assert grammar.matches('{"a": {"kind": "x", "a": 1}}')
    assert counts["made"] == 1


def test_a_limit_behind_many_places_is_found_at_once() -> None:
    """Places that cannot fail do not use up the bound of the exploration."""
    plain = {f"m{each}": {"type": "object", "properties": {"x": {"$ref": "#/$defs/unique"}}} for each in range(1_500)}
    tangled = {"patternProperties": {letter: {"type": "string"} for letter in "abcdefghi"}}
    schema = {"properties": {"first": tangled, **plain}, "$defs": {"unique": {"uniqueItems": True}}}
    with pytest.raises(LimitError, match="patterns split"):
        _ = Grammar.from_json_schema(schema).program


def patterns(letters: str) -> Any:
    """Return a schema whose patterns split the names of an object into as many sets as there are sets of letters."""
    return {"patternProperties": {letter: {"type": "string"} for letter in letters}}


def test_keywords_that_cannot_fail_by_themselves_are_passed(counts: dict[str, int]) -> None:
    """A few patterns of names, items that differ in an array that may be empty, and parts that share no member need no
    normal form ahead."""
    members = {f"m{each}": {"type": "string", "minLength": each} for each in range(20)}
    others = {f"n{each}": {"type": "array", "items": {"enum": [1, each]}, "uniqueItems": True} for each in range(20)}
    tame = {"allOf": [{"properties": members}, {"$ref": "#/$defs/others"}], "type": "object"}
    schema = {
        "properties": {f"p{each}": {**tame, "title": str(each)} for each in range(50)},
        "items": {**patterns("abc"), "properties": members, "propertyNames": {"maxLength": 5}},
        "$defs": {"others": {"properties": others}},
    }
    _ = Grammar.from_json_schema(schema).program
    assert counts["goals"] <= 2


@pytest.mark.parametrize(
    "schema",
    [
        {"allOf": [patterns("abcde"), patterns("fghij")]},
        {"anyOf": [patterns("fghij"), {"type": "null"}], **patterns("abcde")},
        {"anyOf": [{"anyOf": [{"$ref": "#/$defs/more"}]}], **patterns("abcde")},
        {"$ref": "#/$defs/more", **patterns("abcde")},
        {"dependentSchemas": {"x": patterns("fghij")}, **patterns("abcde")},
        {"if": {"required": ["x"]}, "then": patterns("fghij"), **patterns("abcde")},
        {"allOf": [{"properties": {"x": patterns("abcde")}}, {"additionalProperties": patterns("fghij")}]},
        {"allOf": [{"properties": {"x": patterns("abcde")}}, {"properties": {"x": {"$ref": "#/$defs/more"}}}]},
        {"properties": {"x": patterns("abcde")}, "patternProperties": {"x": {"$ref": "#/$defs/more"}}},
        {"properties": {"x": patterns("abcdefghij")}, "patternProperties": {"y": {"type": "object"}}},
        {"allOf": [{"properties": {"x": patterns("abcdefghij")}}, {"properties": {"y": True}}]},
    ],
)
def test_keywords_that_fail_together_are_found(schema: Any) -> None:
    """Schemas that are harmless each, and exceed a limit where they constrain the same value, are refused at once."""
    nested_once = {"properties": {"deep": schema}, "$defs": {"more": patterns("fghij")}}
    with pytest.raises(LimitError, match="patterns split"):
        _ = Grammar.from_json_schema(nested_once).program
