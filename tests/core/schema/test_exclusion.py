"""Options of ``oneOf`` that exclude each other, by whatever keyword: one alternative each, exact and in linear work."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from typing import Any

import pytest

from toolgrammar.core import Grammar, LimitError, UnsatisfiableSchemaError
from toolgrammar.core.automaton.lazy_dfa import LazyAutomaton
from toolgrammar.core.schema.compile import compile_schema
from toolgrammar.core.schema.normal.normalise import Normaliser
from toolgrammar.core.schema.read.located import SignedSchema
from toolgrammar.core.schema.read.resolve import Document

from ...judges import Judges
from ...vocabularies import BYTES

INT, STRING = {"type": "integer"}, {"type": "string"}

#: The keywords by which an object that requires ``k<i>`` forbids the names that others require.
CLOSINGS: dict[str, Callable[[int], dict[str, Any]]] = {
    "additionalProperties": lambda i: {"properties": {f"k{i}": INT, "id": STRING}, "additionalProperties": False},
    "patternProperties": lambda i: {"patternProperties": {f"^(k{i}|id)$": {}}, "additionalProperties": False},
    "unevaluatedProperties": lambda i: {"properties": {f"k{i}": INT, "id": STRING}, "unevaluatedProperties": False},
    "closed over allOf": lambda i: {
        "allOf": [{"properties": {"id": STRING}}],
        "properties": {f"k{i}": INT},
        "unevaluatedProperties": False,
    },
    "closed over patterns": lambda i: {
        "allOf": [{"patternProperties": {f"^k{i}$": INT}}, {"patternProperties": {"^id$": STRING}}],
        "unevaluatedProperties": False,
    },
    "propertyNames": lambda i: {"propertyNames": {"enum": [f"k{i}", "id"]}},
    "propertyNames, a pattern": lambda i: {"propertyNames": {"pattern": f"^(k{i}|id)$"}},
    "propertyNames, negated": lambda i: {"propertyNames": {"not": {"pattern": f"^k(?!{i}$)"}}},
    "maxProperties": lambda i: {"properties": {f"k{i}": INT}, "maxProperties": 1},
    "not required": lambda i: {"properties": {"id": STRING}, "not": {"required": [f"k{(i + 1) % 2}"]}},
    "members that are false": lambda i: {"properties": {f"k{j}": j == i for j in range(4)}},
}

#: Other ways to tell options apart: makers of the option with a number.
WAYS: dict[str, Callable[[int], dict[str, Any]]] = {
    **{
        name: (lambda i, close=close: {"type": "object", "required": [f"k{i}"], **close(i)})  # type: ignore[misc]
        for name, close in CLOSINGS.items()
    },
    "member: const": lambda i: {"properties": {"t": {"const": i}, "v": INT}, "required": ["t"], "type": "object"},
    "member: const, or none": lambda i: {
        "type": "object",
        "properties": {"t": {"const": i}, f"k{i}": INT},
        "required": [f"k{i}"],
    },
    "member: pattern": lambda i: {
        "type": "object",
        "properties": {"t": {**STRING, "pattern": f"^k{i}-"}},
        "required": ["t"],
    },
    "member: range": lambda i: {
        "type": "object",
        "properties": {"n": {"type": "number", "minimum": i, "exclusiveMaximum": i + 1}},
        "required": ["n"],
    },
    "number of members": lambda i: {"type": "object", "minProperties": 2 * i, "maxProperties": 2 * i + 1},
    "first item: const": lambda i: {"type": "array", "prefixItems": [{"const": f"k{i}"}, INT], "minItems": 1},
    "first item, or none": lambda i: {"type": "array", "prefixItems": [{"const": f"k{i}"}, INT]},
    "second item: const": lambda i: {"type": "array", "prefixItems": [STRING, {"const": i}], "minItems": 2},
    "second item, or none": lambda i: {"type": "array", "prefixItems": [STRING, {"const": i}]},
    "first item: pattern": lambda i: {
        "type": "array",
        "prefixItems": [{**STRING, "pattern": f"^k{i}-"}],
        "minItems": 1,
        "unevaluatedItems": False,
    },
    "first item: closed": lambda i: {
        "type": "array",
        "prefixItems": [{"type": "object", "required": [f"k{i}"], **CLOSINGS["unevaluatedProperties"](i)}],
        "minItems": 1,
    },
    "items: const": lambda i: {"type": "array", "items": {"const": f"k{i}"}},
    "items: tagged": lambda i: {
        "type": "array",
        "items": {"type": "object", "properties": {"t": {"const": i}, "v": INT}, "required": ["t"]},
    },
    "number of items": lambda i: {"type": "array", "minItems": 2 * i, "maxItems": 2 * i + 1},
}

#: One option is what no other one is.
OTHERS: dict[str, Callable[[int], dict[str, Any]]] = {
    "not a pattern": lambda count: {
        "not": {"properties": {"t": {**STRING, "pattern": f"^({'|'.join(f'k{i}' for i in range(count))})$"}}}
    },
    "not an enum": lambda count: {"properties": {"t": {**STRING, "not": {"enum": [f"k{i}" for i in range(count)]}}}},
    "not constants": lambda count: {
        "properties": {"t": {**STRING, "not": {"anyOf": [{"const": f"k{i}"} for i in range(count)]}}}
    },
}


def told(way: str, count: int) -> dict[str, Any]:
    """A ``oneOf`` of so many options that one way tells apart."""
    if way in OTHERS:
        options: list[dict[str, Any]] = [
            {"type": "object", "properties": {"t": {"enum": [f"k{i}"]}, "v": INT}, "required": ["t"]}
            for i in range(count)
        ]
        return {"oneOf": [{"type": "object", "required": ["t"], **OTHERS[way](count)}, *options]}
    return {"oneOf": [WAYS[way](i) for i in range(count)]}


def value(draw: random.Random) -> Any:
    """A value near those that the options have."""
    scalars = [0, 1, 2, 0.5, "k0", "k1", "k2", "k1-", "k2-x", "other", None]
    members = {
        name: draw.choice([draw.randrange(3), draw.choice(scalars)])
        for name in draw.sample(["k0", "k1", "k2", "id", "t", "n", "v", "x"], draw.choice([0, 1, 1, 2, 2, 3, 4]))
    }
    if draw.random() < 0.5:
        return members
    items: list[Any] = [draw.choice(scalars) for _ in range(draw.choice([0, 1, 2, 2, 3]))]
    if draw.random() < 0.3:
        items = items[:1] * len(items)
    return [members, *items[1:]] if draw.random() < 0.3 else items


@pytest.mark.parametrize("way", [*WAYS, *OTHERS])
def test_options_are_told_apart_exactly(way: str) -> None:
    """Three options, alone and beside another reading of each: what is accepted is what two validators accept."""
    draw = random.Random(way)
    counts = {True: 0, False: 0}
    alone = told(way, 3)
    beside = {"oneOf": [*alone["oneOf"], told(draw.choice([*WAYS, *OTHERS]), 2)]}
    for document in (alone, {"not": alone}, beside):
        judges = Judges(document)
        grammar = Grammar.from_json_schema(document, property_order="any")
        for each in [value(draw) for _ in range(250)]:
            expected = judges.verdict(each)
            if expected is not None:
                assert grammar.matches(json.dumps(each)) == expected, (document, each)
                counts[expected] += 1
    assert counts[True] > 20 and counts[False] > 100


@pytest.mark.parametrize(
    ("way", "order"),
    [
        pytest.param(way, order, marks=[] if at == number % 2 else pytest.mark.slow)
        for number, way in enumerate(
            each for each in [*WAYS, *OTHERS] if each not in ("not required", "members that are false")
        )
        for at, order in enumerate(("schema", "any"))
    ],
)
def test_each_option_is_one_alternative(way: str, order: Any) -> None:
    """A hundred and twenty options are expanded in linear work, to one alternative each, and nothing is left out."""
    document = Document(told(way, 120))
    normaliser = Normaliser(document)
    branches = normaliser.branches((SignedSchema(document.root),))
    assert len(branches) <= 121 * (1 + way.endswith("or none"))
    assert normaliser.steps < 120 * 60
    assert not any(each.objects.any_exists for each in branches)
    grammar = Grammar.from_json_schema(document.schema, property_order=order)
    text = grammar.bind(BYTES).matcher().shortest_completion()
    assert Judges(document.schema).verdict(json.loads(text)) and not grammar.narrowed


def awaiting(count: int, kind: str) -> dict[str, Any]:
    """An array with so many ``contains``, some of which an item may satisfy at once."""
    wanted: list[Any] = [{"const": f"k{i}"} for i in range(count)]
    if kind == "some at once":
        wanted[1::3] = [{"enum": [f"k{i}", f"k{i + 1}"]} for i in range(1, count, 3)]
    parts = [{"contains": each} for each in wanted]
    if kind == "bounded":
        parts[0] = {"contains": wanted[0], "minContains": 1, "maxContains": 2}  # type: ignore[dict-item]
    return {"type": "array", "allOf": parts}


@pytest.mark.parametrize("kind", ["apart", "some at once", "bounded"])
def test_contains_are_tracked_exactly(kind: str) -> None:
    """Nine ``contains`` of one array, which items satisfy alone or at once: exact, and a shortest text has no more
    items than it needs."""
    document = awaiting(9, kind)
    judges = Judges(document)
    grammar = Grammar.from_json_schema(document)
    draw = random.Random(kind)
    taken = 0
    for _ in range(200):
        items = [f"k{i}" for i in range(9) if draw.random() < 0.97] + draw.choices(["k0", "x"], k=draw.randrange(3))
        draw.shuffle(items)
        assert grammar.matches(json.dumps(items)) == judges.verdict(items), items
        taken += bool(judges.verdict(items))
    assert 20 < taken < 200 and not grammar.narrowed
    shortest = json.loads(grammar.bind(BYTES).matcher().shortest_completion())
    assert judges.verdict(shortest) and len(shortest) == (6 if kind == "some at once" else 9)


@pytest.mark.parametrize("count", [30, 60])
def test_work_on_contains_is_not_exponential(count: int) -> None:
    """The search for a text visits a number of nodes that grows with the square of the number of ``contains``."""
    store = LazyAutomaton()
    root = compile_schema(awaiting(count, "apart")).build(store.nodes)
    text = store.plans.texts.shortest(root)
    assert text is not None and len(json.loads(b"".join(map(bytes, text.pieces())))) == count  # type: ignore[arg-type]
    assert store.plans.texts.visited < 12 * count * count


def test_items_that_satisfy_too_many_contains_are_refused() -> None:
    """More combinations than are followed are an error when the schema is bound, not a search in mid-text."""
    parts = [{"contains": {"required": [f"k{i}"], "type": "object"}} for i in range(20)]
    with pytest.raises(LimitError, match="combinations of conditions"):
        Grammar.from_json_schema({"type": "array", "allOf": parts}).bind(BYTES)


@pytest.mark.parametrize("order", ["schema", "any"])
def test_contains_of_items_that_must_not_repeat(order: Any) -> None:
    """Where the values of items may run out, they are counted for each set of contains, also for one that no item of
    the array can have alone."""
    items = {"enum": [1, 2, 3]}
    unique = {"type": "array", "items": items, "contains": {"enum": [1, 2]}, "minContains": 2, "uniqueItems": True}
    for least, rest in ((3, {"enum": [1, 2]}), (2, {"enum": [1, 2]}), (3, items)):
        document = {"allOf": [{**unique, "minItems": least}, {"unevaluatedItems": rest}]}
        grammar = Grammar.from_json_schema(document, property_order=order)
        if least == 3 and rest is not items:
            with pytest.raises(UnsatisfiableSchemaError):
                grammar.bind(BYTES)
            continue
        matcher = grammar.bind(BYTES).matcher()
        assert Judges(document).verdict(json.loads(matcher.shortest_completion()))
        for text in ("[1, 2, 3]", "[3, 2, 1]", "[1, 2]", "[1, 3]", "[1, 1, 2]"):
            assert grammar.matches(text) == Judges(document).verdict(json.loads(text)), text
