"""``unevaluatedProperties`` and ``unevaluatedItems``: ``jsonschema`` is the judge, over a small universe."""

from __future__ import annotations

import random
from typing import Any

import pytest

from toolgrammar.core import Grammar, LimitError, UnsupportedSchemaError

from .universe import accepted, valid

RESTS: tuple[Any, ...] = (False, True, {"type": "integer"}, {"const": "a"})
PARTS: dict[str, tuple[Any, ...]] = {
    "unevaluatedProperties": (
        {"properties": {"a": {}}},
        {"properties": {"b": {"type": "integer"}}},
        {"properties": {"a": {"const": 1}}, "required": ["a"]},
        {"patternProperties": {"^a": {}}},
        {"additionalProperties": {"type": "integer"}},
        {"properties": {"ab": {}}, "unevaluatedProperties": {"const": 1}},
        {"required": ["b"]},
        {"type": "object"},
        {"$ref": "#/$defs/part"},
        True,
    ),
    "unevaluatedItems": (
        {"prefixItems": [{}]},
        {"prefixItems": [{"type": "integer"}, {"const": "a"}]},
        {"items": {"type": "integer"}},
        {"contains": {"const": "a"}},
        {"contains": {"type": "integer"}, "minContains": 2},
        {"prefixItems": [True], "unevaluatedItems": {"const": 1}},
        {"minItems": 2},
        {"type": "array"},
        {"$ref": "#/$defs/part"},
        True,
    ),
}


def applied(rng: random.Random, keyword: str, depth: int) -> dict[str, Any]:
    """Return a schema that reports to the scopes around it, through applicators."""
    part: Any = rng.choice(PARTS[keyword])
    found: dict[str, Any] = dict(part) if isinstance(part, dict) else {}
    if depth:
        for applicator in rng.sample(
            ("anyOf", "oneOf", "allOf", "if", "not", "dependentSchemas"), rng.choice((1, 1, 2))
        ):
            inner = [applied(rng, keyword, depth - 1) for _ in range(3)]
            if applicator == "if":
                found.update(zip(("if", "then", "else"), inner, strict=False))
            elif applicator == "not":
                found["not"] = inner[0]
            elif applicator == "dependentSchemas":
                found["dependentSchemas"] = {"a": inner[0]}
            else:
                found[applicator] = inner[: rng.randrange(1, 4)]
    return found


@pytest.mark.parametrize("keyword", PARTS)
def test_agrees_with_jsonschema(keyword: str) -> None:
    """What applicators report is evaluated, where they hold; the rest is judged, and few schemas are refused."""
    rng = random.Random(3)
    refused = texts = 0
    for _ in range(150):
        schema = {"$defs": {"part": {"properties": {"b": {}}, "prefixItems": [{}]}}, **applied(rng, keyword, 2)}
        schema[keyword] = rng.choice(RESTS)
        try:
            taken = accepted(schema)
        except (UnsupportedSchemaError, LimitError):
            refused += 1
        else:
            assert taken == valid(schema), schema
            texts += len(taken)
    assert refused <= 25 and texts > 3_000


@pytest.mark.parametrize("keyword", PARTS)
def test_each_part_beside(keyword: str) -> None:
    """Every part with every rest: beside the keyword, in ``allOf``, and under a negation."""
    definitions = {"part": {"properties": {"b": {}}, "prefixItems": [{}]}}
    for part in PARTS[keyword]:
        for rest in RESTS:
            scope = {"allOf": [part], keyword: rest}
            for schema in (scope, {"not": scope}, {"anyOf": [{"minItems": 3, "minProperties": 3}, scope]}):
                whole = {**schema, "$defs": definitions}
                assert accepted(whole) == valid(whole), whole


@pytest.mark.parametrize(("draft", "evaluates"), [("2019-09", False), ("2020-12", True)])
def test_contains_evaluates_items_since_2020(draft: str, evaluates: bool) -> None:
    """Items that match ``contains`` are evaluated in 2020-12 (core, 11.2), and are not in 2019-09 (core, 9.3.1.3)."""
    schema = {
        "$schema": f"https://json-schema.org/draft/{draft}/schema",
        "type": "array",
        "allOf": [{"contains": {"multipleOf": 2}}, {"contains": {"multipleOf": 3}}],
        "unevaluatedItems": {"multipleOf": 5},
    }
    grammar = Grammar.from_json_schema(schema)
    assert grammar.matches("[2, 3, 5]") == evaluates
    assert grammar.matches("[10, 15]")
    assert not grammar.matches("[2, 3, 7]")
