"""Random schemas over all keywords and random instances: the grammar takes what two validators take."""

from __future__ import annotations

import itertools
import json
import random
from collections import Counter
from typing import Any

import pytest

from toolgrammar.core import Grammar, LimitError, UnsatisfiableSchemaError, UnsupportedSchemaError
from toolgrammar.core.schema.read.keywords import KEYWORDS

from ...judges import Judges
from ...schemas import random_schema, random_value

#: Minimum share of schemas that are written, and maximum share that is refused: an engine that refuses is never wrong.
MIN_WRITTEN, MAX_REFUSED = 0.75, 0.07

#: What Draft 4 has instead of schemas that are booleans.
_BOOLEANS: dict[bool, Any] = {True: {}, False: {"not": {}}}

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


def compare(seed: int, outcomes: Counter[str], dialect: str | None = None) -> None:
    """Draw a schema, options and values from a seed; a value is accepted, in some order of members, iff it is valid,
    or left out by a keyword that the grammar names.

    Args:
        seed: of everything that is drawn.
        outcomes: what is counted.
        dialect: the address of the metaschema; None: the newest.
    """
    rng = random.Random(seed)
    schema = random_schema(rng, rng.choice((1, 2, 2, 3)))
    whitespace, order = rng.choice(("flexible", "single", "compact")), rng.choice(("schema", "any"))
    values = [random_value(rng) for _ in range(VALUES)]
    if dialect is not None:
        schema = {**(_of_draft_4(schema) if "draft-04" in dialect else schema), "$schema": dialect}
    judges = Judges(schema)
    verdicts = [judges.verdict(value) for value in values]
    outcomes["unknown"] += verdicts.count(None)
    try:
        grammar = Grammar.from_json_schema(schema, whitespace=whitespace, property_order=order)
        grammar.program  # noqa: B018
    except UnsatisfiableSchemaError:
        outcomes["unsatisfiable"] += 1
        assert True not in verdicts, schema
        return
    except (UnsupportedSchemaError, LimitError):
        outcomes["refused"] += 1
        return
    outcomes["written"] += 1
    separators = (",", ":") if whitespace == "compact" else (", ", ": ")
    for value, is_valid in zip(values, verdicts, strict=True):
        texts = (json.dumps(each, ensure_ascii=False, separators=separators) for each in orders(value))
        accepted = any(map(grammar.matches, texts if order == "schema" else [next(texts)]))
        outcomes["accepted"] += accepted
        if grammar.narrowed and is_valid and not accepted:
            outcomes["left out"] += 1
        elif is_valid is not None:
            assert accepted == is_valid, (schema, value, whitespace, order)


def _of_draft_4(schema: Any) -> Any:
    """Return a schema with the booleans and the exclusive bounds that Draft 4 writes in another way."""

    def changed(inner: dict[str, Any]) -> dict[str, Any]:
        found = {
            word: KEYWORDS.map_subschemas(
                word, value, lambda each, *_: _BOOLEANS[each] if isinstance(each, bool) else each
            )
            for word, value in inner.items()
        }
        for word, plain in (("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum")):
            if word in found:
                found[plain], found[word] = found[word], True
        return found

    return KEYWORDS.map_schemas(schema, changed)


def compare_all(seeds: range, dialect: str | None = None) -> None:
    """Compare for each seed; most schemas are written, few refused, and many values accepted."""
    outcomes: Counter[str] = Counter()
    for seed in seeds:
        compare(seed, outcomes, dialect)
    assert outcomes["written"] >= MIN_WRITTEN * len(seeds), outcomes
    assert outcomes["refused"] <= MAX_REFUSED * len(seeds), outcomes
    assert outcomes["accepted"] >= len(seeds), outcomes
    assert outcomes["left out"] <= 0.02 * outcomes["accepted"], outcomes
    assert outcomes["unknown"] <= 0.02 * VALUES * len(seeds), outcomes


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


@pytest.mark.parametrize("order", ["schema", "any"])
@pytest.mark.parametrize(
    ("value", "text"),
    [([], "[ ]"), ({}, "{\n}"), ({"a": []}, '{ "a" : [\t] }'), ([{}, [[]]], "[{ }, [[ ]  ] ]"), ([[]], "[[\n  ]]")],
)
def test_white_space_inside_of_what_is_empty(value: Any, text: str, order: Any) -> None:
    """Flexible white space is taken in a listed value that is empty, or holds one that is."""
    for schema in ({"const": value}, {"enum": [1, value]}, {"anyOf": [{"enum": [value]}, {"type": "null"}]}):
        grammar = Grammar.from_json_schema(schema, whitespace="flexible", property_order=order)
        assert grammar.matches(text) and grammar.matches(json.dumps(value, separators=(",", ":")))
        assert not grammar.matches(text.replace("]", ", 1]").replace("}", ', "b": 1}'))


@pytest.mark.parametrize(
    "schema",
    [
        {"prefixItems": [True, True], "items": {"enum": [0, [1], []]}, "minItems": 2},
        {"prefixItems": [{"enum": [0, 5]}], "items": {"enum": [0, [1], [], 5]}, "minItems": 1, "maxItems": 4},
        {"items": {"enum": [0, 5, [], [1]]}, "contains": {"enum": [[], [1]]}, "minContains": 2},
        {"items": {"enum": [0, 5, []]}, "contains": {"const": []}, "maxContains": 1, "minItems": 1},
    ],
)
def test_items_beyond_those_that_are_needed(schema: dict[str, Any]) -> None:
    """Different items of few values may be more than the array needs, until all of them are written."""
    schema = {"type": "array", "uniqueItems": True, **schema}
    grammar, judges = Grammar.from_json_schema(schema), Judges(schema)
    for size in range(6):
        for value in itertools.product([0, 5, [], [1], "a"], repeat=size):
            if len(set(map(repr, value))) >= size - 1:
                assert grammar.matches(json.dumps(value)) == judges.verdict(list(value)), value
