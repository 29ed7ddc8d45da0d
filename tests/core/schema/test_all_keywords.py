"""Every keyword at once: random schemas and random instances, judged by the jsonschema library; random walks."""

from __future__ import annotations

import json
import random
from collections import Counter
from typing import Any

import jsonschema
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from toolgrammar.core import (
    Grammar,
    LimitError,
    UnsatisfiableSchemaError,
    UnsupportedSchemaError,
    Vocabulary,
)

WORDS = [
    b'"',
    b'": ',
    b", ",
    b'", "',
    b'":',
    b"true",
    b"12",
    b"1, 1",
    b'"a"',
    b'{"a": ',
    b'"a": 1, "a"',
    b'a", "a"',
    b"}]",
]
BYTES = Vocabulary([bytes((byte,)) for byte in range(256)] + WORDS + [None], eos=[256 + len(WORDS)])
NAMES = ["a", "b", "c", "ab", "é"]
SCALARS: list[Any] = [None, True, False, 0, 1, 2, -2, 1.5, 6, "", "a", "ab", "é😀", "aaaa", "b"]

LEAVES: list[Any] = [
    True,
    False,
    {"type": "null"},
    {"type": ["integer", "string"]},
    {"type": "object"},
    {"type": "number", "multipleOf": 2},
    {"multipleOf": 1.5},
    {"minimum": 1},
    {"exclusiveMaximum": 1},
    {"maximum": 1, "minimum": -2},
    {"minLength": 1},
    {"maxLength": 2},
    {"pattern": "^a"},
    {"type": "string", "pattern": "^[ab]{1,2}$"},
    {"pattern": "b$", "minLength": 2},
    {"const": 1},
    {"const": {"a": 1}},
    {"const": [1, "a"]},
    {"enum": [1, "a", None, [], {}]},
    {"enum": [True, "ab", {"b": 2}]},
    {"required": ["a"]},
    {"required": ["b", "c"]},
    {"minProperties": 1},
    {"maxProperties": 1},
    {"minItems": 1},
    {"maxItems": 1},
    {"uniqueItems": True},
    {"dependentRequired": {"a": ["b"]}},
    {"propertyNames": {"maxLength": 1}},
    {"propertyNames": {"enum": ["a", "b", "é"]}, "minProperties": 2},
    {"$ref": "#/$defs/tree"},
]


def instances() -> st.SearchStrategy[Any]:
    """JSON values from a small world, so that schemas and instances meet."""
    return st.recursive(
        st.sampled_from(SCALARS),
        lambda inner: st.one_of(
            st.lists(inner, max_size=3), st.dictionaries(st.sampled_from(NAMES), inner, max_size=3)
        ),
        max_leaves=5,
    )


def schemas() -> st.SearchStrategy[Any]:
    """Schemas over all keywords."""

    def wrap(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
        keywords: dict[str, st.SearchStrategy[Any]] = {
            "properties": st.dictionaries(st.sampled_from(NAMES), inner, max_size=2),
            "patternProperties": st.dictionaries(st.sampled_from(["^a", "b|c", "^[ab]$"]), inner, max_size=2),
            "additionalProperties": inner,
            "unevaluatedProperties": inner,
            "propertyNames": st.sampled_from([{"pattern": "^a"}, {"minLength": 1}, {"not": {"const": "a"}}]),
            "dependentSchemas": st.dictionaries(st.sampled_from(NAMES), inner, min_size=1, max_size=1),
            "dependencies": st.dictionaries(st.sampled_from(NAMES), inner, min_size=1, max_size=1),
            "items": inner,
            "prefixItems": st.lists(inner, min_size=1, max_size=2),
            "unevaluatedItems": inner,
            "contains": inner,
            "minContains": st.integers(0, 2),
            "maxContains": st.integers(0, 2),
            "uniqueItems": st.booleans(),
            "minItems": st.integers(0, 2),
            "minProperties": st.integers(0, 2),
            "maxProperties": st.integers(0, 3),
            "required": st.lists(st.sampled_from(NAMES), max_size=2, unique=True),
            "not": inner,
            "if": inner,
            "then": inner,
            "else": inner,
            "anyOf": st.lists(inner, min_size=1, max_size=3),
            "oneOf": st.lists(inner, min_size=1, max_size=3),
            "allOf": st.lists(inner, min_size=1, max_size=2),
            "type": st.sampled_from(["object", "array", "string", "number", ["object", "array"]]),
        }

        @st.composite
        def draw_schema(draw: st.DrawFn) -> Any:
            chosen = draw(st.lists(st.sampled_from(sorted(keywords)), min_size=1, max_size=3, unique=True))
            return {keyword: draw(keywords[keyword]) for keyword in chosen}

        return draw_schema()

    tree = {
        "type": "object",
        "properties": {"a": {"$ref": "#/$defs/tree"}, "b": {"type": "integer"}},
        "required": ["b"],
    }
    return st.recursive(st.sampled_from(LEAVES), wrap, max_leaves=5).map(
        lambda schema: {"$defs": {"tree": tree}, "allOf": [schema]}
    )


#: Maximum share of schemas that may be refused, so that nothing is judged, and minimum share that is written.
MAX_REFUSED, MIN_WRITTEN = 0.2, 0.5


def check_outcomes(outcomes: Counter[str]) -> None:
    """Most schemas were judged: an engine that refuses them is never wrong, and of no use."""
    assert outcomes["refused"] <= MAX_REFUSED * outcomes.total(), outcomes
    assert outcomes["written"] >= MIN_WRITTEN * outcomes.total(), outcomes


def check_agreement(schema: Any, values: list[Any]) -> str:
    """A grammar in any order takes exactly the instances that the jsonschema library calls valid.

    Returns:
        ``"written"``, ``"unsatisfiable"`` or ``"refused"``.
    """
    # jsonschema does not know "dependencies" in this dialect; here it means what it did.
    kind = jsonschema.validators.extend(
        jsonschema.Draft202012Validator, {"dependencies": jsonschema.Draft7Validator.VALIDATORS["dependencies"]}
    )
    judge = kind(schema)
    try:
        grammar = Grammar.from_json_schema(schema, whitespace="flexible", property_order="any")
        grammar.program  # noqa: B018
    except UnsatisfiableSchemaError:
        assert not any(judge.is_valid(value) for value in values), schema
        return "unsatisfiable"
    except (UnsupportedSchemaError, LimitError):
        return "refused"
    for value in values:
        accepted = grammar.matches(json.dumps(value, ensure_ascii=False))
        assert accepted == judge.is_valid(value), (schema, value)
    return "written"


def check_walk(schema: Any, seed: int, order: Any) -> str:
    """Whatever is chosen under the mask can be completed, and then validates; mask and accept agree on the way.

    Returns:
        ``"written"``, ``"unsatisfiable"`` or ``"refused"``.
    """
    judge = jsonschema.validators.extend(
        jsonschema.Draft202012Validator, {"dependencies": jsonschema.Draft7Validator.VALIDATORS["dependencies"]}
    )(schema)
    try:
        matcher = Grammar.from_json_schema(schema, property_order=order).bind(BYTES).matcher()
    except UnsatisfiableSchemaError:
        return "unsatisfiable"
    except (UnsupportedSchemaError, LimitError):
        return "refused"
    walk = random.Random(seed)
    text = b""
    for step in range(walk.randrange(50)):
        allowed = matcher.allowed_tokens()
        if step % 8 == 0:
            for token in range(len(BYTES)):
                fork = matcher.fork()
                assert fork.accept(token) == (token in allowed), (schema, text, BYTES.tokens[token])
        allowed = [token for token in allowed if BYTES.tokens[token]]
        if not allowed:
            break
        # Letters and digits alone would never end a string: structure is as likely.
        token = (
            walk.choice([token for token in allowed if token >= 256] or allowed)
            if walk.random() < 0.4
            else walk.choice(allowed)
        )
        assert matcher.accept(token)
        text += BYTES.tokens[token] or b""
    text += matcher.shortest_completion()
    assert judge.is_valid(json.loads(text)), (schema, text)
    return "written"


def agree(examples: int, values: st.SearchStrategy[list[Any]]) -> None:
    """No disagreement about any instance of so many schemas."""
    outcomes: Counter[str] = Counter()

    @settings(max_examples=examples, suppress_health_check=list(HealthCheck), deadline=None)
    @given(schema=schemas(), values=values)
    def check(schema: Any, values: list[Any]) -> None:
        outcomes[check_agreement(schema, values)] += 1

    check()
    check_outcomes(outcomes)


def test_agrees_with_jsonschema() -> None:
    """No disagreement about any instance."""
    agree(150, st.lists(instances(), min_size=3, max_size=6))


def test_random_walks_end_in_valid_instances() -> None:
    """Every walk under the mask can be completed, to a valid instance."""
    outcomes: Counter[str] = Counter()

    @settings(max_examples=80, suppress_health_check=list(HealthCheck), deadline=None)
    @given(schema=schemas(), seed=st.integers(0, 10**6), order=st.sampled_from(["schema", "any"]))
    def check(schema: Any, seed: int, order: Any) -> None:
        outcomes[check_walk(schema, seed, order)] += 1

    check()
    check_outcomes(outcomes)


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_agrees_with_jsonschema_at_length() -> None:
    """No disagreement in 20,000 examples."""
    agree(20_000, st.lists(instances(), min_size=1, max_size=4))
