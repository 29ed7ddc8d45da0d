"""Unions of many objects, lowered together: the same language as one by one, in less work."""

from __future__ import annotations

import json
import random
from typing import Any

import numpy as np
import pytest

from toolgrammar.core import Grammar
from toolgrammar.core.schema.lower import lowering

from ...counted import at_most
from ...vocabularies import BYTES
from ...whole_masks import allowed

#: Schemas of members.
VALUES: list[Any] = [
    {"type": "string"},
    {"type": "integer"},
    {"const": "k0"},
    {"const": "k1", "description": "one of two"},
    {"enum": ["k0", "k2"]},
    {"enum": ["k1", 1]},
    {"type": "string", "maxLength": 2},
    {"type": "object", "properties": {"a": {"const": "k0"}}, "required": ["a"]},
    {"type": ["null", "boolean"]},
    {"minimum": 3},
    True,
    False,
]


def drawn_object(draw: random.Random, tag: str) -> dict[str, Any]:
    """A schema of objects with a tag or without one, closed or open, plain or not."""
    names = draw.sample(["a", "b", "ab", "c\n", "t"], draw.choice([0, 1, 2, 3, 4]))
    found: dict[str, Any] = {"type": "object", "properties": {name: draw.choice(VALUES) for name in names}}
    if draw.random() < 0.6:
        found["properties"]["t"] = {"const": tag}
    found["required"] = draw.sample(["a", "b", "t", "q"], draw.choice([0, 1, 1, 2]))
    if draw.random() < 0.5:
        found["additionalProperties"] = draw.choice([False, False, True, {"type": "integer"}])
    if draw.random() < 0.1:
        found[draw.choice(["minProperties", "maxProperties"])] = draw.choice([0, 1, 2])
    if draw.random() < 0.1:
        found["patternProperties"] = {"^a": {"type": "integer"}}
    if draw.random() < 0.1:
        found["type"] = ["object", "string"]
    return found


def drawn_union(draw: random.Random) -> dict[str, Any]:
    """A union of objects, as ``anyOf``, by references, or under keywords that must hold, too."""
    options = [drawn_object(draw, f"k{number % 5}") for number in range(draw.randrange(8, 14))]
    if draw.random() < 0.2:
        options.append({"type": "array", "items": {"anyOf": options}})
    if draw.random() < 0.3:
        names = [f"o{number}" for number in range(len(options))]
        return {
            "$defs": dict(zip(names, options, strict=True)),
            "anyOf": [{"$ref": f"#/$defs/{name}"} for name in names],
        }
    return {"anyOf": options, **({"properties": {"b": {"type": "string"}}} if draw.random() < 0.3 else {})}


def written(constraint: Any, draw: random.Random) -> list[tuple[int, bytes, int]]:
    """Write a random text; return each token, with the mask before it and the length of the shortest completion."""
    matcher, found = constraint.matcher(), []
    while len(found) < 50 and not matcher.is_finished:
        mask = allowed(matcher)
        tokens = [int(token) for token in np.flatnonzero(mask)]
        likely = [token for token in tokens if token in b'"abtkq01:,{}'] or tokens
        token = draw.choice(likely if draw.random() < 0.9 else tokens)
        found.append((token, mask.tobytes(), matcher.shortest_length()))
        assert matcher.accept(token)
    return found


@pytest.mark.parametrize("order", ["schema", "any"])
@pytest.mark.parametrize("whitespace", ["single", "flexible"])
def test_objects_together_are_those_of_each(order: Any, whitespace: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Random texts have the same masks, and completions of the same length, as when each object is lowered alone."""
    draw = random.Random(f"{order} {whitespace}")
    for _ in range(40):
        schema = drawn_union(draw)
        grammar = Grammar.from_json_schema(schema, whitespace=whitespace, property_order=order)
        constraint = grammar.bind(BYTES)
        texts = [written(constraint, draw) for _ in range(6)]
        with monkeypatch.context() as patch:
            patch.setattr(lowering, "MIN_OBJECTS", 1_000)
            constraint = Grammar.from_json_schema(schema, whitespace=whitespace, property_order=order).bind(BYTES)
            for text in texts:
                matcher = constraint.matcher()
                for token, mask, length in text:
                    assert allowed(matcher).tobytes() == mask, (schema, matcher.text)
                    assert matcher.shortest_length() == length, (schema, matcher.text)
                    assert matcher.accept(token)


def tagged(number: int, *, are_shared: bool, is_open: bool) -> dict[str, Any]:
    """A schema of objects that a constant tells apart, the last of their members; the names of the others may be
    shared by all."""
    own = "" if are_shared else str(number)
    members = {f"a{own}": {"type": "string"}, f"b{own}": {"type": "integer"}, "type": {"const": f"kind {number}"}}
    closed = {} if is_open else {"additionalProperties": False}
    return {"type": "object", "properties": members, "required": ["type"], **closed}


@pytest.mark.parametrize("order", ["schema", "any"])
@pytest.mark.parametrize("are_shared", [True, False])
@pytest.mark.parametrize("is_open", [True, False])
def test_a_mask_looks_at_each_of_many_objects_once(order: Any, are_shared: bool, is_open: bool) -> None:
    """The work of a mask is a few calls for each object that is left, and one rule for all of them."""
    count = 500
    options = [tagged(number, are_shared=are_shared, is_open=is_open) for number in range(count)]
    constraint = Grammar.from_json_schema({"anyOf": options}, property_order=order).bind(BYTES)
    own = "" if are_shared else "77"
    text = json.dumps({f"a{own}": "x", f"b{own}": 1, "type": "kind 77"}).encode()
    matcher = constraint.matcher()
    for byte in text:
        with at_most(20 * count):
            mask = allowed(matcher)
        assert mask[byte] and matcher.accept(byte)
    assert matcher.is_accepting and constraint.counters()["faults"] <= 55


def test_an_exported_union_has_the_rules_of_each_object() -> None:
    """An export, which has all states, is linear in the number of objects: there each object is written by itself."""
    lengths = []
    for count in (20, 40):
        members = {f"m{number}": {"type": ["string", "null"][number % 2]} for number in range(8)}
        options = [
            {"properties": {**members, f"m{number % 8}": {"type": "integer"}, "type": {"const": f"kind {number}"}}}
            for number in range(count)
        ]
        schema = {"anyOf": [{"type": "object", "required": ["type"], **option} for option in options]}
        lengths.append(len(Grammar.from_json_schema(schema).to_gbnf().text))
    assert lengths[1] < 2.2 * lengths[0]
