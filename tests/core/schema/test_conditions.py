"""Conditions on different members: tracked one by one, as demands, instead of multiplied, as alternatives."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from itertools import combinations
from typing import Any

import pytest

from toolgrammar.core import Grammar, LimitError, UnsatisfiableSchemaError
from toolgrammar.core.schema.lower import object_witnesses
from toolgrammar.core.schema.normal.normalise import Normaliser
from toolgrammar.core.schema.read.located import SignedSchema
from toolgrammar.core.schema.read.resolve import Document

from ...judges import Judges
from ...vocabularies import BYTES

BOOLEAN, STRING = {"type": "boolean"}, {"type": "string"}

#: Conditions on members with a number.
CONDITIONS: dict[str, Callable[[int], dict[str, Any]]] = {
    "if a constant, then required": lambda i: {
        "if": {"properties": {f"m{i}": {"const": True}}, "required": [f"m{i}"]},
        "then": {"required": [f"f{i}"]},
    },
    "if a constant, perhaps missing": lambda i: {
        "if": {"properties": {f"m{i}": {"const": True}}},
        "then": {"required": [f"f{i}"]},
    },
    "if, then and else": lambda i: {
        "if": {"properties": {f"m{i}": {"const": True}}, "required": [f"m{i}"]},
        "then": {"properties": {f"f{i}": {"type": "integer"}}, "required": [f"f{i}"]},
        "else": {"properties": {f"f{i}": False}},
    },
    "one of two members": lambda i: {"anyOf": [{"required": [f"m{i}"]}, {"required": [f"f{i}"]}]},
    "exactly one of two members": lambda i: {"oneOf": [{"required": [f"m{i}"]}, {"required": [f"f{i}"]}]},
    "both or none": lambda i: {
        "anyOf": [{"required": [f"m{i}", f"f{i}"]}, {"not": {"anyOf": [{"required": [f"m{i}"]}, {"required": [f"f{i}"]}]}}]
    },
    "not both": lambda i: {"not": {"required": [f"m{i}", f"f{i}"]}},
    "one of two values": lambda i: {
        "anyOf": [{"properties": {f"m{i}": {"const": True}}}, {"properties": {f"f{i}": {"type": "integer"}}}]
    },
    "a member or another type": lambda i: {"anyOf": [{"required": [f"m{i}"]}, {"not": {"type": "object"}}]},
    "shared with a neighbour": lambda i: {
        "if": {"required": [f"m{i}"]},
        "then": {"anyOf": [{"required": [f"f{i}"]}, {"required": [f"f{i // 2}"]}]},
    },
}  # fmt: skip


def conditions(kinds: list[str]) -> dict[str, Any]:
    """An object with one condition of each kind, on members of its own."""
    names = [f"{letter}{i}" for letter in "mf" for i in range(len(kinds))]
    return {
        "type": "object",
        "properties": {name: {"type": ["boolean", "integer"]} for name in names},
        "allOf": [CONDITIONS[kind](i) for i, kind in enumerate(kinds)],
    }


def near(draw: random.Random, kinds: list[str]) -> dict[str, Any]:
    """An object that meets most of the conditions."""
    found: dict[str, Any] = {}
    for i, kind in enumerate(kinds):
        only = kind.startswith(("exactly", "not both"))
        for name in [f"m{i}", f"f{i}"]:
            if draw.random() < (0.5 if only and f"m{i}" not in found else 0.02 if only else 0.9):
                found[name] = draw.choice([1, 2, True]) if name[0] == "f" else draw.choice([True, True, False, 3])
    return found


@pytest.mark.parametrize("order", ["schema", "any"])
@pytest.mark.parametrize("count", [4, 12])
def test_conditions_are_exact(count: int, order: Any) -> None:
    """A few conditions, which are alternatives, and many, which are demands: what is accepted is what two validators
    accept, and what is written is valid."""
    draw = random.Random(f"{count}{order}")
    counts = {True: 0, False: 0}
    for _ in range(12):
        kinds = draw.choices(list(CONDITIONS), k=count)
        document = conditions(kinds)
        judges = Judges(document)
        grammar = Grammar.from_json_schema(document, property_order=order)
        names = list(document["properties"])
        for _ in range(40):
            value = near(draw, kinds)
            if order == "schema":
                value = dict(sorted(value.items(), key=lambda pair: names.index(pair[0])))
            else:
                value = dict(draw.sample(list(value.items()), len(value)))
            expected = judges.verdict(value)
            assert grammar.matches(json.dumps(value)) == expected, (document, value)
            counts[bool(expected)] += 1
        constraint = grammar.bind(BYTES)
        for _ in range(2):
            matcher = constraint.matcher()
            text = b""
            for _ in range(60):
                allowed = [token for token in matcher.allowed_tokens() if token < 256]
                likely = [token for token in allowed if token in b'"]},:0123mft{']
                if not allowed:
                    break
                text += bytes((draw.choice(likely or allowed),))
                assert matcher.accept(text[-1])
            text += matcher.shortest_completion()
            assert judges.verdict(json.loads(text)), (document, text)
    assert counts[True] > 20 and counts[False] > 100


@pytest.mark.parametrize("order", ["schema", "any"])
@pytest.mark.parametrize("kind", CONDITIONS)
def test_conditions_do_not_multiply(kind: str, order: Any) -> None:
    """A hundred conditions on different members are one alternative, in linear work."""
    document = Document(conditions([kind] * 100))
    normaliser = Normaliser(document)
    (branch,) = normaliser.branches((SignedSchema(document.root),))
    assert normaliser.steps < 100 * 60 and len(branch.objects.any_exists) <= 500
    grammar = Grammar.from_json_schema(document.schema, property_order=order)
    text = grammar.bind(BYTES).matcher().shortest_completion()
    assert Judges(document.schema).verdict(json.loads(text)) and not grammar.narrowed


@pytest.mark.parametrize("order", ["schema", "any"])
def test_components_are_searched_alone(order: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether conditions on different members can be met is asked of each alone: sixty that contradict nothing take a
    few states each, and one that is impossible is found."""
    monkeypatch.setattr(object_witnesses, "MAX_MET", 1_000)
    document = conditions(["exactly one of two members"] * 60)
    Grammar.from_json_schema(document, property_order=order).bind(BYTES)
    for name in ("m59", "f59"):
        document["properties"][name] = False
    with pytest.raises(UnsatisfiableSchemaError):
        Grammar.from_json_schema(document, property_order=order).bind(BYTES)


@pytest.mark.parametrize("order", ["schema", "any"])
def test_conditions_that_need_a_long_search_are_refused(order: Any) -> None:
    """Conditions that are as hard as satisfiability are an error when the schema is bound, not a search in mid-text."""
    draw = random.Random(1)
    names = [f"m{i}" for i in range(60)]

    def literal(name: str) -> dict[str, Any]:
        return draw.choice([{"required": [name]}, {"not": {"required": [name]}}])

    clauses = [{"anyOf": [literal(name) for name in draw.sample(names, 3)]} for _ in range(258)]
    document = {"type": "object", "properties": {name: {} for name in names}, "allOf": clauses}
    with pytest.raises((LimitError, UnsatisfiableSchemaError)):
        Grammar.from_json_schema(document, property_order=order).bind(BYTES)


def clauses(draw: random.Random, names: list[str], count: int) -> list[dict[str, bool]]:
    """Random clauses: by name, whether its presence or its absence meets the clause."""
    return [{name: draw.random() < 0.5 for name in draw.sample(names, draw.choice([2, 2, 3]))} for _ in range(count)]


def of_clauses(names: list[str], found: list[dict[str, bool]]) -> dict[str, Any]:
    """The schema of objects of some members that meet clauses."""
    return {
        "type": "object",
        "properties": {name: {"const": 1} for name in names},
        "additionalProperties": False,
        "allOf": [
            {
                "anyOf": [
                    {"required": [name]} if meets else {"not": {"required": [name]}} for name, meets in each.items()
                ]
            }
            for each in found
        ],
    }


@pytest.mark.parametrize("order", ["schema", "any"])
def test_a_text_is_begun_iff_it_can_be_finished(order: Any) -> None:
    """After each sequence of members, the members that may follow are those after which some object meets all
    conditions, as a search through all objects has it."""
    draw = random.Random(7)
    count = {True: 0, False: 0}
    for _ in range(25):
        names = [f"m{number}" for number in draw.sample(range(6), 6)]
        asked = clauses(draw, names, 8)
        valid = [
            frozenset(those)
            for size in range(7)
            for those in combinations(names, size)
            if all(any((name in those) is meets for name, meets in each.items()) for each in asked)
        ]
        # Conditions on other members make alternatives multiply, so that all conditions are demands.
        others = [{f"z{number}": True, f"z{number + 1}": True} for number in range(0, 12, 2)]
        schema = of_clauses(names + [f"z{number}" for number in range(12)], asked + others)
        try:
            constraint = Grammar.from_json_schema(schema, property_order=order, whitespace="compact").bind(BYTES)
        except UnsatisfiableSchemaError:
            assert not valid
            continue
        for _ in range(40):
            written = draw.sample(names, draw.randrange(1, 7))
            if order == "schema":
                written.sort(key=names.index)
            matcher = constraint.matcher()
            assert matcher.accept_bytes(b"{") and valid
            whole = b"{"
            for number, name in enumerate(written):
                before = {*written[: number + 1]}
                free = {*names[names.index(name) + 1 :]} if order == "schema" else {*names}
                can_be = any(before <= those and those - before <= free for those in valid)
                text = (b"," if number else b"") + b'"' + name.encode() + b'":1'
                count[can_be] += 1
                assert matcher.accept_bytes(text) is can_be, (schema, written[: number + 1])
                if not can_be:
                    break
                whole += text
                ended = json.loads(whole + matcher.shortest_completion())
                assert {name for name in ended if name in names} in valid
    assert min(count.values()) > 100


@pytest.mark.parametrize("most", [60, 200])
def test_a_search_that_is_given_up_strands_no_text(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the search for a text of a state is given up, members are left out and told, and each text that was begun
    can be finished by what an earlier search found."""
    monkeypatch.setattr(object_witnesses, "MAX_MET", most)
    monkeypatch.setattr(object_witnesses, "MORE_MET", 0)
    draw = random.Random(3)
    given_up = 0
    for _ in range(5):
        names = [f"m{number}" for number in range(20)]
        schema = of_clauses(names, clauses(draw, names, 30))
        try:
            grammar = Grammar.from_json_schema(schema, property_order="any", whitespace="compact")
            constraint = grammar.bind(BYTES)
        except (LimitError, UnsatisfiableSchemaError):
            continue
        judges = Judges(schema)
        for _ in range(5):
            matcher, text = constraint.matcher(), b""
            while len(text) < 70:
                allowed = [token for token in matcher.allowed_tokens() if token < 256]
                if not allowed:
                    break
                token = draw.choice(allowed)
                assert matcher.accept(token)
                text += bytes((token,))
                assert judges.verdict(json.loads(text + matcher.shortest_completion()))
        given_up += any("sets of demands" in str(each) for each in grammar.narrowed)
    assert given_up >= 2
