"""Random schemas and random instances: the grammar says what the jsonschema library says."""

from __future__ import annotations

import json
import random
from typing import Any

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toolgrammar.core import Grammar, UnsatisfiableSchemaError, Vocabulary

BYTES = Vocabulary([bytes((byte,)) for byte in range(256)] + [b'"', b'": ', b", ", b"true", b"12", None], eos=[261])
NAMES = ["a", "b", "c", 'q"', "é"]
SCALARS: list[Any] = [None, True, False, 0, 1, -2, 1.5, "", "a", "ab", "é😀", 'x"\\', "aaaa"]


def is_valid(value: Any, schema: Any) -> bool:
    """What the jsonschema library says, with nothing of ours in it."""
    return bool(jsonschema.Draft202012Validator(schema).is_valid(value))


def instances() -> st.SearchStrategy[Any]:
    """JSON values from a small world, so that schemas and instances meet."""
    return st.recursive(
        st.sampled_from(SCALARS),
        lambda inner: st.one_of(
            st.lists(inner, max_size=3), st.dictionaries(st.sampled_from(NAMES), inner, max_size=3)
        ),
        max_leaves=6,
    )


@st.composite
def leaf_schemas(draw: st.DrawFn) -> Any:
    """Schemas without subschemas."""
    kind = draw(st.sampled_from(["any", "type", "types", "enum", "const", "string", "number", "ref"]))
    if kind == "any":
        return draw(st.sampled_from([True, {}, {"title": "x"}]))
    if kind == "type":
        return {"type": draw(st.sampled_from(["null", "boolean", "integer", "number", "string", "array", "object"]))}
    if kind == "types":
        return {
            "type": draw(st.lists(st.sampled_from(["null", "integer", "string", "array"]), min_size=1, unique=True))
        }
    if kind == "enum":
        return {"enum": draw(st.lists(instances(), min_size=1, max_size=4))}
    if kind == "const":
        return {"const": draw(instances())}
    if kind == "ref":
        return {"$ref": "#/$defs/tree"}
    if kind == "string":
        schema: dict[str, Any] = {"type": "string"}
        schema.update(draw(st.sampled_from([{}, {"minLength": 1}, {"maxLength": 2}, {"minLength": 2, "maxLength": 3}])))
        schema.update(draw(st.sampled_from([{}, {"pattern": "a"}, {"pattern": "^a*$"}, {"pattern": "[^a]$"}])))
        return schema
    schema = {"type": draw(st.sampled_from(["integer", "number"]))}
    schema.update(draw(st.sampled_from([{}, {"minimum": 0}, {"exclusiveMaximum": 1}, {"minimum": -2, "maximum": 1}])))
    return schema


def schemas() -> st.SearchStrategy[Any]:
    """Schemas over the keywords that are enforced."""

    def wrap(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
        objects = st.fixed_dictionaries(
            {"properties": st.dictionaries(st.sampled_from(NAMES), inner, max_size=3)},
            optional={
                "type": st.just("object"),
                "required": st.lists(st.sampled_from(NAMES), max_size=2, unique=True),
                "patternProperties": st.dictionaries(st.sampled_from(["^a", "b|c", "é$"]), inner, max_size=2),
                "additionalProperties": st.one_of(st.booleans(), inner),
            },
        )
        arrays = st.fixed_dictionaries(
            {"items": inner},
            optional={
                "type": st.just("array"),
                "prefixItems": st.lists(inner, min_size=1, max_size=2),
                "minItems": st.integers(0, 2),
                "maxItems": st.integers(0, 3),
            },
        )
        unions = st.fixed_dictionaries({"anyOf": st.lists(inner, min_size=1, max_size=3)})
        both = st.fixed_dictionaries({"allOf": st.lists(inner, min_size=1, max_size=2)})
        return st.one_of(objects, arrays, unions, both)

    tree = {
        "type": "object",
        "properties": {"a": {"$ref": "#/$defs/tree"}, "b": {"type": "integer"}},
        "required": ["b"],
    }
    return st.recursive(leaf_schemas(), wrap, max_leaves=6).map(
        lambda schema: (
            {"$defs": {"tree": tree}, "allOf": [schema]}
            if isinstance(schema, bool) or "$ref" in str(schema)
            else schema
        )
    )


def orders(schema: Any, value: Any) -> list[Any]:
    """The value with the keys of its objects in every order (objects here are small)."""
    import itertools

    if isinstance(value, list):
        return [list(items) for items in itertools.product(*(orders(schema, item) for item in value))][:200]
    if not isinstance(value, dict):
        return [value]
    found = []
    for names in itertools.permutations(value):
        for items in itertools.product(*(orders(schema, value[name]) for name in names)):
            found.append(dict(zip(names, items, strict=True)))
            if len(found) > 200:
                return found
    return found


@pytest.mark.parametrize("whitespace", ["flexible", "single", "compact"])
@given(data=st.data())
def test_agrees_with_jsonschema(whitespace: Any, data: st.DataObject) -> None:
    """A valid instance is accepted in some order of its keys, an invalid one in none."""
    schema = data.draw(schemas())
    separators = (",", ":") if whitespace == "compact" else (", ", ": ")
    try:
        grammar = Grammar.from_json_schema(schema, whitespace=whitespace)
        grammar.program  # noqa: B018
    except UnsatisfiableSchemaError:
        grammar = None  # type: ignore[assignment]
    for _ in range(4):
        value = data.draw(instances())
        if any(isinstance(item, float) and item.is_integer() for item in [value]):
            continue
        expected = is_valid(value, schema)
        accepted = grammar is not None and any(
            grammar.matches(json.dumps(each, ensure_ascii=False, separators=separators))
            for each in orders(schema, value)
        )
        assert accepted == expected, (schema, value)


@given(schema=schemas(), seed=st.integers(0, 10**6))
@settings(max_examples=60)
def test_random_walks_end_in_valid_instances(schema: Any, seed: int) -> None:
    """Whatever is chosen under the mask, the text can be completed, and then it validates."""
    try:
        matcher = Grammar.from_json_schema(schema).bind(BYTES).matcher()
    except UnsatisfiableSchemaError:
        return
    walk = random.Random(seed)
    text = b""
    for _ in range(walk.randrange(40)):
        allowed = [token for token in matcher.allowed_tokens() if token != 261]
        if not allowed:
            break
        token = walk.choice(allowed)
        assert matcher.accept(token)
        text += BYTES.tokens[token] or b""
    text += matcher.shortest_completion()
    assert is_valid(json.loads(text), schema), text


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
