"""Alternatives that exclude each other, or that are part of another, are left out as they arise."""

from __future__ import annotations

from typing import Any

import pytest

from toolgrammar.core import Grammar
from toolgrammar.core.schema.normal.conjunction import Conjunction
from toolgrammar.core.schema.normal.normalise import Normaliser
from toolgrammar.core.schema.read.located import SignedSchema
from toolgrammar.core.schema.read.resolve import Document

KINDS = [f"kind{number}" for number in range(12)]


def branches(schema: Any) -> list[Conjunction]:
    """The alternatives of a document."""
    document = Document(schema)
    return Normaliser(document).branches((SignedSchema(document.root),))


def accepts(schema: Any, text: str) -> bool:
    """Whether a document's grammar accepts a text, written compactly in the order of the schema or any other."""
    grammar = Grammar.from_json_schema(schema, property_order="any", whitespace="compact")
    return grammar.matches(text)


def by_kind(name: str) -> dict[str, Any]:
    """An object with a member that depends on its kind, told by one condition for each kind."""
    conditions = [
        {"if": {"properties": {"kind": {"const": kind}}}, "then": {"properties": {"value": {"const": index}}}}
        for index, kind in enumerate(KINDS)
    ]
    return {"type": "object", "required": [name], "properties": {"kind": {"enum": KINDS}}, "allOf": conditions}


def test_conditions_on_one_constant_do_not_multiply() -> None:
    """There are as many alternatives as constants, where the member must be there, and each value is told apart."""
    schema = by_kind("kind")
    assert len(branches(schema)) <= len(KINDS) + 1
    assert accepts(schema, '{"kind":"kind3","value":3}')
    assert not accepts(schema, '{"kind":"kind3","value":4}')


def test_a_member_that_may_be_missing_keeps_all_conditions() -> None:
    """Without the member all conditions hold at once, which no value satisfies where it is asked for."""
    schema = by_kind("value")
    assert accepts(schema, '{"kind":"kind3","value":3}')
    assert not accepts(schema, '{"value":3}')


@pytest.mark.parametrize(
    "member",
    [{"enum": ["a", "b"]}, {"type": "string", "minLength": 2}, {"$ref": "#/definitions/deep"}],
    ids=["listed", "scalar", "reference"],
)
def test_what_is_asked_and_denied(member: dict[str, Any]) -> None:
    """A required member cannot be what the same words deny, wherever they stand."""
    schema = {
        "type": "object",
        "required": ["a"],
        "properties": {"a": dict(member)},
        "not": {"properties": {"a": dict(member)}},
        "definitions": {"deep": {"type": "array", "items": {"type": "integer"}}},
    }
    assert branches(schema) == []


def test_numbers_and_booleans_are_told_apart() -> None:
    """True is not 1, although Python holds them for equal."""
    schema = {
        "type": "object",
        "required": ["a"],
        "properties": {"a": {"const": 1}},
        "not": {"properties": {"a": {"const": True}}},
    }
    assert accepts(schema, '{"a":1}')


def test_an_option_that_holds_leaves_the_others_out() -> None:
    """What must be missing is asked for twice, and multiplied out once."""
    missing = [{"not": {"required": ["a", other]}} for other in ("b", "c", "d", "e")]
    schema = {"type": "object", "not": {"required": ["a", "b"]}, "allOf": missing}
    assert len(branches(schema)) < 2 ** len(missing)
    assert accepts(schema, '{"b":1,"c":1,"d":1,"e":1}')
    assert accepts(schema, '{"a":1,"f":1}')
    assert not accepts(schema, '{"a":1,"e":1}')


def told_apart(many: int, *, typed: bool) -> dict[str, Any]:
    """One of so many objects, told apart by a constant; the type stands beside them, or nowhere."""
    options = [
        {"required": ["kind"], "properties": {"kind": {"const": f"k{number}"}, "value": {"const": number}}}
        for number in range(many)
    ]
    return {"oneOf": options, **({"type": "object"} if typed else {})}


def test_options_that_differ_in_a_constant_are_not_multiplied_out() -> None:
    """They exclude each other among objects, which is all that the schema takes: as many alternatives as options."""
    assert len(branches(told_apart(20, typed=True))) == 20
    assert accepts(told_apart(20, typed=True), '{"kind":"k7","value":7}')
    assert not accepts(told_apart(20, typed=True), '{"kind":"k7","value":8}')


def test_options_are_told_apart_type_by_type() -> None:
    """Where other types are taken as well, which all options would take, objects still are not multiplied out."""
    assert len(branches(told_apart(20, typed=False))) == 20
    assert not accepts(told_apart(20, typed=False), "1")
    assert accepts(told_apart(1, typed=False), "1")
    assert accepts(told_apart(20, typed=False), '{"kind":"k7","value":7}')


def expanded(schema: Any) -> Normaliser:
    """What found the alternatives of a document."""
    document = Document(schema)
    normaliser = Normaliser(document)
    normaliser.branches((SignedSchema(document.root),))
    return normaliser


@pytest.mark.parametrize("many", [10, 40])
def test_options_with_constants_of_their_own_are_not_compared(many: int) -> None:
    """No pair of options is held against each other where a constant tells all of them apart; one that lists no
    values, or two of the same, are."""
    schema = told_apart(many, typed=True)
    assert expanded(schema).compared == 0
    options = [*schema["oneOf"], {"required": ["kind"], "properties": {"kind": {"const": "k3"}}}]
    assert expanded({**schema, "oneOf": options}).compared == 1
    assert not accepts({**schema, "oneOf": options}, '{"kind":"k3","value":3}')
    assert accepts({**schema, "oneOf": options}, '{"kind":"k3","value":4}')
    number = {"required": ["kind"], "properties": {"kind": {"type": "integer"}}}
    assert expanded({**schema, "oneOf": [*schema["oneOf"], number]}).compared == many


def by_members(many: int) -> dict[str, Any]:
    """Exactly one of so many members."""
    names = [f"n{number}" for number in range(many)]
    options = [{"properties": {name: {"type": "integer"}}, "required": [name]} for name in names]
    return {"type": "object", "properties": {name: {} for name in names}, "oneOf": options}


def test_exactly_one_of_many_members_takes_steps_in_proportion() -> None:
    """What denies all the other options is one fact each, and not as many facts as there are other options."""
    assert expanded(by_members(40)).steps <= 2.2 * expanded(by_members(20)).steps
    assert accepts(by_members(20), '{"n3":1}')
    assert accepts(by_members(20), '{"n3":1,"n4":"no integer"}')
    assert not accepts(by_members(20), '{"n3":1,"n4":1}')
    assert not accepts(by_members(20), "{}")


def test_a_condition_that_is_decided_adds_nothing() -> None:
    """Of many conditions on one constant, those that cannot hold leave no trace in an alternative."""
    assert all(len(branch.objects.parts) <= 3 for branch in branches(by_kind("kind"))[: len(KINDS) // 2])


def test_what_is_listed_implies_what_is_denied() -> None:
    """A member of which only some values are left is none of the others, and says so by itself."""
    listed = {"type": "object", "properties": {"kind": {"enum": ["a", "b"]}}, "required": ["kind"]}
    denied = {"not": {"properties": {"kind": {"enum": ["c", "d"]}}, "required": ["kind"]}}
    both = branches({"allOf": [listed, denied]})
    assert [len(branch.objects.parts) for branch in both] == [len(branch.objects.parts) for branch in branches(listed)]


def test_what_other_words_deny_is_kept() -> None:
    """Values that are only partly denied are not taken for implied."""
    schema = {
        "type": "object",
        "properties": {"kind": {"enum": ["a", "b"]}},
        "not": {"properties": {"kind": {"enum": ["b", "c"]}}, "required": ["kind"]},
    }
    assert accepts(schema, '{"kind":"a"}')
    assert accepts(schema, "{}")
    assert not accepts(schema, '{"kind":"b"}')


def test_equal_lists_of_arrays_are_denied_once() -> None:
    """Two options that list the same arrays fail in the same ways, beside a scalar that they exclude too."""
    arrays = [[{"b": 6, "a": 1}, [6]], [0, [0, ""], None], [False, ["b", "", "ab"], []]]
    listed = [{"enum": ["a", *arrays]}, {"not": {"type": "string"}}, {"enum": [arrays[0], "a", *arrays[1:]]}]
    assert len(branches({"oneOf": listed})) <= 60
    for text, expected in (("[]", True), ('[0,[0,""],null]', False), ('[0,[0,""],1]', True), ('"a"', False)):
        assert accepts({"oneOf": listed}, text) is expected


def test_excluded_scalars_are_known_by_type_and_value() -> None:
    """1 and 1.0 are one value, 1 and true are two; a type that is not allowed excludes its values."""
    document = Document({})
    holds = Normaliser(document).contradictions.holds
    known = Conjunction(types=frozenset({"number", "array"}), not_values=(1, 2))
    for values, expected in (((1.0,), True), (("a", True, 2), True), ((3,), False), ((1, 3), False)):
        assert holds(known, Conjunction(not_values=values)) is expected
    assert not holds(Conjunction(types=frozenset({"boolean"}), not_values=(1,)), Conjunction(not_values=(True,)))
