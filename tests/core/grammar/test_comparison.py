"""Comparison of grammars: what is said of two languages holds for their values, and what cannot be known is not said."""

from __future__ import annotations

import copy
import json
import random
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from toolgrammar.core import Comparison, Grammar, LimitError, UnsupportedSchemaError

from ...schemas import random_schema, random_value

MARKERS = "http://json-schema.org/draft-"


def compare(first: Any, second: Any, **options: Any) -> Comparison:
    """Return the relation of a second schema to a first one."""
    return Grammar.from_json_schema(first, **options).compare(Grammar.from_json_schema(second, **options))


@pytest.mark.parametrize(
    ("first", "second", "relation", "lost", "gained"),
    [
        ({"maxLength": 2, "type": "string"}, {"type": "string", "maxLength": 3}, "wider", None, '"aaa"'),
        ({"type": "string"}, {"type": "string", "pattern": "^a"}, "narrower", '""', None),
        ({"enum": [1, 2]}, {"enum": [2, 3]}, "overlapping", "1", "3"),
        ({"type": "integer"}, {"type": "string"}, "disjoint", "0", '""'),
        ({"oneOf": [{"const": 1}, {"const": 2}]}, {"anyOf": [{"const": 2}, {"const": 1}]}, "equal", None, None),
        ({"required": ["a"]}, {"required": ["a"], "not": {"required": ["b"]}}, "narrower", None, None),
        ({"type": "array", "uniqueItems": True}, {"type": "array"}, "wider", None, "[0, 0]"),
        (False, {"type": "null"}, "wider", None, "null"),
        (False, {"enum": []}, "equal", None, None),
    ],
)
def test_relations(first: Any, second: Any, relation: str, lost: str | None, gained: str | None) -> None:
    """Each relation is told, with the smallest text of each side alone, and the same from the other side."""
    found = compare(first, second)
    assert found.relation == relation
    assert found.covers == (relation in ("equal", "wider"))
    assert lost is None or found.lost.text == lost
    assert gained is None or found.gained.text == gained
    mirrored = {"wider": "narrower", "narrower": "wider"}
    assert compare(second, first).relation == mirrored.get(relation, relation)


def test_relations_of_random_schemas() -> None:
    """Witnesses are what they are said to be, and no drawn value contradicts an inclusion, by `jsonschema`."""
    rng = random.Random(20)
    decided = proved = shown = 0
    for _ in range(400):
        first = random_schema(rng, 2)
        second = {**first, **random_schema(rng, 1)} if rng.random() < 0.7 else random_schema(rng, 2)
        if rng.random() < 0.3:
            definitions = {**first.get("$defs", {}), **second.get("$defs", {})}
            second = {"anyOf": [first, second], "$defs": definitions}
        found = compare(first, second, formats=False)
        one, other = Draft202012Validator(first), Draft202012Validator(second)
        for witness, has, lacks in ((found.lost, one, other), (found.gained, other, one)):
            decided += witness.undecided is None
            if witness.text is not None:
                shown += 1
                value = json.loads(witness.text)
                assert has.is_valid(value), (first, second, witness.text)
                assert not lacks.is_valid(value), (first, second, witness.text)
            elif witness.is_none:
                proved += 1
                values = [random_value(rng) for _ in range(50)]
                assert not any(has.is_valid(value) and not lacks.is_valid(value) for value in values), (first, second)
        if found.common is not None and found.common.text is not None:
            value = json.loads(found.common.text)
            assert one.is_valid(value), (first, second)
            assert other.is_valid(value), (first, second)
    assert decided >= 790
    assert proved >= 100
    assert shown >= 200


TREE = {
    "$id": "https://example.com/tree",
    "type": "object",
    "properties": {"label": {"$ref": "#label"}, "children": {"type": "array", "items": {"$ref": "#"}}},
    "$defs": {"label": {"$anchor": "label", "type": "string", "maxLength": 5}},
}


def test_references_of_both_sides_are_apart() -> None:
    """Addresses, anchors and definitions of the same name in both schemas do not meet; recursive ones are proved."""
    longer = copy.deepcopy(TREE)
    longer["$defs"]["label"]["maxLength"] = 6  # type: ignore[index]
    assert compare(TREE, copy.deepcopy(TREE)).relation == "equal"
    found = compare(TREE, longer)
    assert found.relation == "wider"
    assert found.gained.text == '{"label": "aaaaaa"}'
    unrolled = copy.deepcopy(TREE)
    unrolled["properties"]["children"]["items"] = {**TREE, "$id": "https://example.com/other"}  # type: ignore[index]
    assert compare(TREE, unrolled).relation == "equal"


def test_dynamic_references() -> None:
    """A dynamic reference means what it means in its own document."""
    lists = {
        "$id": "https://example.com/strings",
        "$ref": "list",
        "$defs": {
            "of": {"$dynamicAnchor": "of", "type": "string"},
            "list": {
                "$id": "list",
                "type": "array",
                "items": {"$dynamicRef": "#of"},
                "$defs": {"of": {"$dynamicAnchor": "of"}},
            },
        },
    }
    assert compare(lists, {"type": "array", "items": {"type": "string"}}).relation == "equal"
    numbers = copy.deepcopy(lists)
    numbers["$defs"]["of"]["type"] = "number"  # type: ignore[index]
    assert compare(lists, numbers).lost.text == '[""]'


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ({"$schema": MARKERS + "04/schema#", "minimum": 3, "exclusiveMinimum": True}, {"exclusiveMinimum": 3}),
        ({"$schema": MARKERS + "04/schema#", "minimum": 3, "exclusiveMinimum": False}, {"minimum": 3}),
        ({"$schema": MARKERS + "04/schema#", "const": 3}, {}),
        (
            {"$schema": MARKERS + "07/schema#", "items": [{"type": "null"}], "additionalItems": False},
            {"prefixItems": [{"type": "null"}], "items": False},
        ),
        (
            {"$schema": MARKERS + "07/schema#", "$ref": "#/definitions/a", "maximum": 1, "definitions": {"a": True}},
            {},
        ),
        ({"$schema": MARKERS + "07/schema#", "dependencies": {"a": ["b"]}}, {"dependentRequired": {"a": ["b"]}}),
    ],
)
def test_drafts_are_mixed(old: Any, new: Any) -> None:
    """Schemas of two drafts are compared, each as its own draft reads it."""
    assert compare(old, new).relation == "equal"


def test_formats_assert_or_annotate() -> None:
    """A format takes part exactly if it asserts in both grammars; grammars that differ there are not compared."""
    plain, dated = {"type": "string"}, {"type": "string", "format": "date"}
    assert compare(plain, dated).relation == "narrower"
    assert compare(plain, dated, formats=False).relation == "equal"
    mixed = Grammar.from_json_schema(plain).compare(Grammar.from_json_schema(dated, formats=False))
    assert mixed.relation == "undecided"
    assert "formats" in str(mixed.undecided[0])


HOST = {"type": "string", "format": "hostname"}


def test_narrowed_parts_prove_differences_only() -> None:
    """A narrowed keyword may show that a value is lost, and never that none is; what both sides share is the same."""
    assert compare(HOST, {**HOST, "maxLength": 3}).covers is False
    assert compare(HOST, {"type": "string"}).covers is True  # without the format, too
    same = {"type": "object", "properties": {"host": HOST}}
    assert compare({**same, "required": ["host"]}, same).covers is True
    # Punycode is a host name, which the narrowed grammar never writes.
    puny = compare({"const": "xn--bcher-kva.example"}, HOST)
    assert puny.covers is not False
    unknown = compare(HOST, {"type": "string", "not": {"pattern": "^xn--"}})
    assert unknown.covers is None
    assert isinstance(unknown.lost.undecided, UnsupportedSchemaError)
    assert "hostname" in str(unknown.lost.undecided)


def test_what_no_text_can_show_is_undecided() -> None:
    """Numbers with more digits than a text may have, and counts above a limit, are named instead of guessed."""
    far = compare({"type": "integer"}, {"type": "integer", "maximum": 10**140})
    assert far.covers is None
    assert "30 digits" in str(far.undecided[0])
    most = compare({"type": "string"}, {"type": "string", "maxLength": 10**9})
    assert most.covers is None
    assert isinstance(most.lost.undecided, LimitError)


def test_grammars_of_texts() -> None:
    """Other grammars are compared as texts; recursive ones as far as the search goes."""
    some, more = Grammar.from_regex("[0-9]{1,3}"), Grammar.from_regex("[0-9]+")
    assert some.compare(more).relation == "wider"
    assert some.compare(more).gained.text == "0000"
    assert some.compare(Grammar.from_regex("a*")).relation == "disjoint"
    assert Grammar.from_regex("ab|a").compare(Grammar.from_ebnf('root ::= "a" "b"?')).relation == "equal"
    nested = Grammar.from_ebnf('root ::= "(" root ")" | "x"')
    other = Grammar.from_ebnf('root ::= "(" root ")" | "x" | "y"')
    assert nested.compare(other).gained.text == "y"
    assert nested.compare(other).relation == "undecided"


def test_unique_items_on_both_sides() -> None:
    """Where a repetition must be excluded and forbidden at once, nothing is left, whatever the items are."""
    unique = {"type": "array", "uniqueItems": True, "items": {"type": "object"}}
    assert compare(unique, {**unique, "items": True}).relation == "wider"
    assert compare(unique, {"anyOf": [unique, {"type": "null"}]}).covers is True
    assert compare({"properties": {"a": unique}, "required": ["a"]}, {"properties": {"a": unique}}).covers is True
    assert compare({"type": "array", "items": {"type": "object"}}, unique).covers is False
