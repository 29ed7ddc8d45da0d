"""Alternatives that exclude each other, or that are part of another, are left out as they arise."""

from __future__ import annotations

from typing import Any

import pytest

from toolgrammar.core import Grammar
from toolgrammar.core.schema.conjunction import Conjunction, Literal
from toolgrammar.core.schema.normalise import Normaliser
from toolgrammar.core.schema.resolve import Document

KINDS = [f"kind{number}" for number in range(12)]


def branches(schema: Any) -> list[Conjunction]:
    """The alternatives of a document."""
    document = Document(schema)
    return Normaliser(document).branches((Literal(document.root),))


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
