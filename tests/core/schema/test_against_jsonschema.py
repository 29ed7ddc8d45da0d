"""Random schemas over all keywords and random instances: the grammar takes what the ``jsonschema`` library takes."""

from __future__ import annotations

import itertools
import json
import random
from collections import Counter
from typing import Any

import jsonschema
import pytest

from toolgrammar.core import Grammar, LimitError, UnsatisfiableSchemaError, UnsupportedSchemaError

from ...schemas import random_schema, random_value

#: Minimum share of schemas that are written, and maximum share that is refused: an engine that refuses is never wrong.
MIN_WRITTEN, MAX_REFUSED = 0.75, 0.07

#: How many values each schema is asked of.
VALUES = 8

#: Maximum number of orders that the members of a value are tried in.
MAX_ORDERS = 200


def orders(value: Any) -> list[Any]:
    """Return a value with the members of its objects in every order, up to `MAX_ORDERS` of them."""
    if isinstance(value, list):
        return [list(items) for items in itertools.islice(itertools.product(*map(orders, value)), MAX_ORDERS)]
    if not isinstance(value, dict):
        return [value]
    ordered = (
        dict(zip(names, items, strict=True))
        for names in itertools.permutations(value)
        for items in itertools.product(*(orders(value[name]) for name in names))
    )
    return list(itertools.islice(ordered, MAX_ORDERS))


def compare(seed: int, outcomes: Counter[str]) -> None:
    """Draw a schema, options and values from a seed; a value is accepted, in some order of members, iff it is valid,
    or left out by a keyword that the grammar names."""
    rng = random.Random(seed)
    schema = random_schema(rng, rng.choice((1, 2, 2, 3)))
    whitespace, order = rng.choice(("flexible", "single", "compact")), rng.choice(("schema", "any"))
    values = [random_value(rng) for _ in range(VALUES)]
    judge = jsonschema.Draft202012Validator(schema)
    try:
        grammar = Grammar.from_json_schema(schema, whitespace=whitespace, property_order=order)
        grammar.program  # noqa: B018
    except UnsatisfiableSchemaError:
        outcomes["unsatisfiable"] += 1
        assert not any(judge.is_valid(value) for value in values), schema
        return
    except (UnsupportedSchemaError, LimitError):
        outcomes["refused"] += 1
        return
    outcomes["written"] += 1
    separators = (",", ":") if whitespace == "compact" else (", ", ": ")
    for value in values:
        texts = (json.dumps(each, ensure_ascii=False, separators=separators) for each in orders(value))
        accepted = any(map(grammar.matches, texts if order == "schema" else [next(texts)]))
        outcomes["accepted"] += accepted
        is_valid = judge.is_valid(value)
        if grammar.narrowed and is_valid and not accepted:
            outcomes["left out"] += 1
        else:
            assert accepted == is_valid, (schema, value, whitespace, order)


def compare_all(seeds: range) -> None:
    """Compare for each seed; most schemas are written, few refused, and many values accepted."""
    outcomes: Counter[str] = Counter()
    for seed in seeds:
        compare(seed, outcomes)
    assert outcomes["written"] >= MIN_WRITTEN * len(seeds), outcomes
    assert outcomes["refused"] <= MAX_REFUSED * len(seeds), outcomes
    assert outcomes["accepted"] >= len(seeds), outcomes
    assert outcomes["left out"] <= 0.02 * outcomes["accepted"], outcomes


def test_agrees_with_jsonschema() -> None:
    """No disagreement about any value, with any white space and order of members."""
    compare_all(range(500))


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_agrees_with_jsonschema_at_length() -> None:
    """20,000 schemas, others than in the ordinary run."""
    compare_all(range(1_000_000, 1_020_000))


def test_declared_names_cannot_be_smuggled_in() -> None:
    """An additional property cannot be a declared one in disguise, however it is escaped."""
    grammar = Grammar.from_json_schema({"properties": {"ab": {"type": "integer"}}}, whitespace="flexible")
    assert grammar.matches('{"ac": "x"}') and grammar.matches('{"\\u00e9": "x"}')
    assert not grammar.matches('{"\\u0061b": "x"}') and not grammar.matches('{"a\\u0062": "x"}')


def test_closed_by_default_for_tool_arguments() -> None:
    """With additional_properties=False, an object that names properties takes no others; a free-form map stays open."""
    schema = {"type": "object", "properties": {"a": {}, "map": {"type": "object"}}}
    closed = Grammar.from_json_schema(schema, additional_properties=False)
    assert closed.matches('{"a": 1, "map": {"x": 1}}') and not closed.matches('{"b": 1}')
    assert Grammar.from_json_schema(schema).matches('{"b": 1}')
    merged = {"allOf": [schema, {"properties": {"c": {}}}]}
    assert Grammar.from_json_schema(merged, additional_properties=False).matches('{"a": 1, "c": 2}')


@pytest.mark.parametrize(("indent", "depth"), [(1, 20), (4, 16), (8, 8)])
def test_indented_lines(indent: int, depth: int) -> None:
    """Flexible white space takes what ``json.dumps`` indents, to 64 spaces; other runs have 20 characters at most."""
    grammar = Grammar.from_json_schema({}, whitespace="flexible")
    value: list[Any] = [1, {"a": True}]
    for _ in range(depth - 2):
        value = [value, 2]
    assert grammar.matches(json.dumps(value, indent=indent))
    assert grammar.matches("[" + " " * 20 + "]")
    for beyond in ("[" + " " * 21 + "]", "[\n" + " " * 65 + "1]", "[\n" + "\t" * 20 + "1]", "[\n" + " " * 30 + "\n1]"):
        assert not grammar.matches(beyond), beyond
