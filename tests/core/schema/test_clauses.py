"""Conditions on members that multiply: dependencies, and options of closed objects that nothing required tells apart."""

from __future__ import annotations

import json
import random
from typing import Any

import jsonschema
import pytest

from toolgrammar.core import Grammar, UnsatisfiableSchemaError
from toolgrammar.core.schema.normal.conjunction import FALSE, TRUE, AnyExists, Exists

from ...vocabularies import BYTES

NAMES = ["a", "b", "c", "d", "e", "f", "g"]
VALUES: list[Any] = [1, "x", "yy", None]
TYPES: list[Any] = [
    {"type": "integer"},
    {"type": "string"},
    {"enum": ["x", 1]},
    {"const": "x"},
    {"type": ["null", "string"]},
]


def condition(draw: random.Random) -> Any:
    """A condition on some members of an object."""
    kind = draw.randrange(6)
    if kind == 0:
        return draw.sample(NAMES, draw.randrange(1, 3))
    if kind == 1:
        return {"properties": {draw.choice(NAMES): draw.choice(TYPES)}}
    if kind == 2:
        return {"anyOf": [{"required": draw.sample(NAMES, draw.randrange(1, 3))} for _ in range(2)]}
    if kind == 3:
        return {"not": {"required": draw.sample(NAMES, draw.randrange(1, 4))}}
    if kind == 4:
        return {"properties": {draw.choice(NAMES): draw.choice(TYPES)}, "required": [draw.choice(NAMES)]}
    return {"oneOf": [{"required": [name]} for name in draw.sample(NAMES, 2)]}


def dependencies(draw: random.Random) -> dict[str, Any]:
    """An object of which most members depend on others."""
    names = draw.sample(NAMES, draw.randrange(4, 8))
    found: dict[str, Any] = {
        "type": draw.choice(["object", ["object", "string"]]),
        "properties": {name: draw.choice([True, *TYPES]) for name in NAMES[: draw.randrange(4, 8)]},
        "dependencies": {name: condition(draw) for name in names},
    }
    beside = draw.randrange(5)
    if beside == 0:
        found["required"] = [draw.choice(NAMES)]
    elif beside == 1:
        found["minProperties"] = draw.randrange(3)
    elif beside == 2:
        found["additionalProperties"] = False
    elif beside == 3:
        found["anyOf"] = [{"required": [name]} for name in draw.sample(NAMES, 3)]
    return found


def options(draw: random.Random) -> dict[str, Any]:
    """Closed objects of optional members, alike but for some."""
    shared = {name: draw.choice(TYPES) for name in draw.sample(NAMES, 3)}
    found = []
    for index in range(draw.randrange(3, 9)):
        own = {name: draw.choice(TYPES) for name in draw.sample(NAMES, draw.randrange(2))}
        properties = {"kind": {"enum": [f"k{index}"]}, **shared, **own}
        option: dict[str, Any] = {"type": "object", "properties": properties, "additionalProperties": False}
        if draw.random() < 0.5:
            option["required"] = [draw.choice(list(shared))]
        if draw.random() < 0.1:
            del option["additionalProperties"]
        found.append(option)
    return {"oneOf": found}


def drawn_value(draw: random.Random) -> Any:
    """A value that such schemas may accept."""
    value = {name: draw.choice(VALUES) for name in draw.sample(NAMES, draw.randrange(6))}
    if draw.random() < 0.5:
        value["kind"] = f"k{draw.randrange(5)}"
    return value if draw.random() < 0.95 else "x"


def judged(document: dict[str, Any], draw: random.Random) -> tuple[int, int]:
    """Compare a schema with jsonschema; return the numbers of values that were taken and refused."""
    judge = jsonschema.Draft7Validator(document)
    counts = [0, 0]
    exact = Grammar.from_json_schema(document, property_order="any")
    values = [drawn_value(draw) for _ in range(60)]
    for value in values:
        expected = judge.is_valid(value)
        assert exact.matches(json.dumps(value)) == expected, (document, value)
        counts[not expected] += 1
    for order in ("any", "schema"):
        grammar = Grammar.from_json_schema(document, property_order=order)  # type: ignore[arg-type]
        assert all(judge.is_valid(value) for value in values if grammar.matches(json.dumps(value)))
        try:
            constraint = grammar.bind(BYTES)
        except UnsatisfiableSchemaError:
            assert not counts[0]
            continue
        matcher = constraint.matcher()
        text = b""
        for _ in range(30):
            allowed = [token for token in matcher.allowed_tokens() if token < 256]
            likely = [token for token in allowed if token in b'"]},:1xabcdefgkind{']
            if not allowed:
                break
            text += bytes((draw.choice(likely or allowed),))
            assert matcher.accept(text[-1])
        text += matcher.shortest_completion()
        assert judge.is_valid(json.loads(text)), (document, text)
    return counts[0], counts[1]


@pytest.mark.timeout(120)
@pytest.mark.parametrize("kind", [dependencies, options])
def test_they_mean_what_jsonschema_says(kind: Any) -> None:
    """What is accepted and what is written, in both orders."""
    draw = random.Random(kind.__name__)
    taken = refused = 0
    for _ in range(25):
        here = judged(kind(draw), draw)
        taken += here[0]
        refused += here[1]
    assert taken > 50 and refused > 50


@pytest.mark.timeout(60)
@pytest.mark.parametrize("order", ["schema", "any"])
def test_many_dependencies_are_one_alternative(order: Any) -> None:
    """Members that are only for some kinds: as many combinations as there are sets of members, and one alternative."""
    kinds = [f"k{index}" for index in range(18)]
    document = {
        "type": "object",
        "properties": {"kind": {"enum": kinds}, **{f"m{index}": {"type": "integer"} for index in range(18)}},
        "dependencies": {
            f"m{index}": {"properties": {"kind": {"enum": kinds[index : index + 2]}}} for index in range(18)
        },
        "additionalProperties": False,
    }
    grammar = Grammar.from_json_schema(document, property_order=order)
    grammar.bind(BYTES)
    assert grammar.matches('{"kind": "k4", "m3": 1, "m4": 1}')
    assert grammar.matches('{"m3": 1, "m9": 1}')
    assert not grammar.matches('{"kind": "k4", "m3": 1, "m5": 1}')
    assert grammar.matches('{"m4": 1, "kind": "k4"}') == (order == "any")
    assert not grammar.matches('{"m5": 1, "kind": "k4"}')


@pytest.mark.timeout(60)
@pytest.mark.parametrize("order", ["schema", "any"])
def test_objects_alike_but_for_an_optional_constant(order: Any) -> None:
    """Members that mean the same in two options cannot tell them apart: what is left is one demand."""
    same = {"required": {"oneOf": [{"type": "boolean"}, {"type": "string"}]}, "more": {"items": {"$ref": "#"}}}
    made = [
        {
            "type": "object",
            "properties": {
                "kind": {"enum": [f"k{index}"]},
                "label": {"type": "string"},
                **json.loads(json.dumps(same)),
            },
            "required": ["label"],
            "additionalProperties": False,
        }
        for index in range(12)
    ]
    grammar = Grammar.from_json_schema({"oneOf": made}, property_order=order)
    grammar.bind(BYTES)
    assert grammar.matches('{"kind": "k7", "label": "x", "required": true}')
    assert not grammar.matches('{"label": "x", "required": true}')
    assert not grammar.matches('{"kind": "k7", "label": "x", "required": 1}')


def test_conditions_on_members_are_compared_by_value() -> None:
    """What asks for the same is equal, with one hash; each attribute counts."""
    some = [
        Exists(TRUE, "a"),
        Exists(FALSE, "a"),
        Exists(TRUE, "b"),
        Exists(TRUE, pattern="a"),
        Exists(TRUE, beside=()),
        Exists(TRUE, failing=FALSE),
    ]
    again = [Exists(each.formula, each.name, each.pattern, each.beside, each.failing) for each in some]
    assert again == some and list(map(hash, again)) == list(map(hash, some))
    assert len(set(some)) == len(some)
    demands = [
        AnyExists(()),
        AnyExists((some[0],)),
        AnyExists((), frozenset("a")),
        AnyExists((some[0],), frozenset("a")),
    ]
    assert [AnyExists(each.options, each.absent) for each in demands] == demands
    assert len({*demands, *(AnyExists(each.options, each.absent) for each in demands), *some}) == len(demands) + len(
        some
    )
