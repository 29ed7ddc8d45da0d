"""Conditions on the names of members: at most one, exactly one, one without another; exact, and one alternative each."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from itertools import chain, combinations
from typing import Any

import jsonschema
import pytest

from toolgrammar.core import Grammar, UnsatisfiableSchemaError
from toolgrammar.core.schema.normal.normalise import Normaliser
from toolgrammar.core.schema.read.located import SignedSchema
from toolgrammar.core.schema.read.resolve import Document

from ...vocabularies import BYTES, random_text

NAMES = ["a", "b", "c", "d", "e"]


def subsets(names: list[str]) -> list[tuple[str, ...]]:
    """Return all subsets of some names."""
    return list(chain.from_iterable(combinations(names, size) for size in range(len(names) + 1)))


def pairs(names: list[str]) -> list[dict[str, Any]]:
    """Return a condition for each pair of names: the object has both."""
    return [{"required": list(pair)} for pair in combinations(names, 2)]


def condition(draw: random.Random, names: list[str], depth: int = 2) -> dict[str, Any]:
    """Return a condition on which of some names an object has."""
    some = draw.sample(names, draw.randint(1, len(names)))
    kind = draw.randrange(11 if depth else 5)
    if kind == 0:
        return {"required": draw.sample(names, draw.randint(1, 3))}
    if kind == 1:
        return {"not": {"required": draw.sample(names, 2)}}
    if kind == 2:
        return {"not": {"anyOf": pairs(some) or [False]}}
    if kind == 3:
        return {"oneOf": [{"required": [name]} for name in some]}
    if kind == 4:
        return {
            "dependentSchemas": {some[0]: {"not": {"anyOf": [{"required": [each]} for each in some[1:]] or [False]}}}
        }
    if kind == 5:
        return {"properties": {some[0]: draw.choice([False, {"minimum": 2}, {"maximum": 1}])}}
    if kind == 6:
        return {draw.choice(["minProperties", "maxProperties"]): draw.randint(1, 3)}
    inner = [condition(draw, names, depth - 1) for _ in range(draw.randint(1, 3))]
    if kind == 7:
        return {"not": inner[0]}
    if kind == 8:
        return {"if": inner[0], "then": inner[-1]}
    return {draw.choice(["allOf", "anyOf", "oneOf"]): inner}


@pytest.mark.parametrize("order", ["schema", "any"])
def test_conditions_on_names_are_exact(order: Any) -> None:
    """Of all sets of members, in the order of the schema or in any, those are taken that jsonschema accepts, also where
    members are not declared; and what is written is valid."""
    draw = random.Random(57)
    refused = 0
    for _ in range(150):
        names = NAMES[: draw.randint(3, 5)]
        schema: dict[str, Any] = {
            "type": "object",
            "properties": {name: {"enum": [1, 2]} for name in names},
            "allOf": [condition(draw, names) for _ in range(draw.randint(1, 4))],
        }
        if draw.random() < 0.3:
            schema["required"] = draw.sample(names, 1)
        if draw.random() < 0.5:
            schema["additionalProperties"] = False
        judge = jsonschema.Draft202012Validator(schema)
        values = [{name: draw.choice([1, 2]) for name in some} for some in subsets([*names, "z"])]
        grammar = Grammar.from_json_schema(schema, property_order=order)
        try:
            _ = grammar.program
        except UnsatisfiableSchemaError:
            assert not any(map(judge.is_valid, values)), schema
            refused += 1
            continue
        for value in values:
            text = list(value.items())
            if order == "any":
                draw.shuffle(text)
            assert grammar.matches(json.dumps(dict(text))) == judge.is_valid(value), (schema, text)
        for seed in range(3):
            written = random_text(grammar, seed, [0, 5, 20, 60])
            assert judge.is_valid(json.loads(written)), (schema, written)
    assert refused < 50


#: Conditions on n names (of each of two kinds).
SIZES: dict[str, Callable[[int], dict[str, Any]]] = {
    "no two of them": lambda n: {"not": {"anyOf": pairs([f"a{i}" for i in range(n)])}},
    "no two of them, one by one": lambda n: {"allOf": [{"not": each} for each in pairs([f"a{i}" for i in range(n)])]},
    "exactly one": lambda n: {"oneOf": [{"required": [f"a{i}"]} for i in range(n)]},
    "exactly one of two kinds": lambda n: {
        "allOf": [{"oneOf": [{"required": [f"{kind}{i}"]} for i in range(n)]} for kind in "ab"]
    },
    "exactly one, and no other": lambda n: {  # for each name, all others: half as many names
        "dependentSchemas": {
            f"a{i}": {"not": {"anyOf": [{"required": [f"a{j}"]} for j in range(n // 2) if j != i]}}
            for i in range(n // 2)
        },
        "anyOf": [{"required": [f"a{i}"]} for i in range(n // 2)],
    },
}


@pytest.mark.parametrize("order", ["schema", "any"])
@pytest.mark.parametrize("kind", SIZES)
def test_they_do_not_multiply(kind: str, order: Any) -> None:
    """A condition on 120 names is one alternative (on 60 listed for each, at most one a name), found in a few steps for
    each of its subschemas, and every name may come first; after it, no other does."""
    schema = {"type": "object", **SIZES[kind](120)}
    if order == "schema":
        schema["properties"] = {f"{kind}{i}": {"type": "integer"} for kind in "ab" for i in range(120)}
    document = Document(schema)
    normaliser = Normaliser(document)
    assert len(normaliser.branches((SignedSchema(document.root),))) <= (60 if kind.endswith("no other") else 1)
    assert normaliser.steps < 120 * 120 * 5
    grammar = Grammar.from_json_schema(schema, property_order=order)
    matcher = grammar.bind(BYTES).matcher()
    assert matcher.accept_bytes(b'{"a7": 1, "') and not matcher.fork().accept_bytes(b'a9"')
    rest = matcher.shortest_completion()
    assert jsonschema.Draft202012Validator(schema).is_valid(json.loads(b'{"a7": 1, "' + rest))
