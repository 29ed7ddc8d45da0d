"""Random JSON Schemas that mix all keywords, and random values to go with them, from one seeded source.

Names, strings and numbers come from a small world, so that keywords meet and sets of values run out.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

#: The dialect of every schema, for those who ask.
DIALECT = "https://json-schema.org/draft/2020-12/schema"

NAMES = ("a", "b", "c", "ab", "é")
SCALARS: tuple[Any, ...] = (None, True, False, 0, 1, 2, -2, 1.5, 6, "", "a", "ab", "é", "aaaa", "b")
PATTERNS = (
    "^a",
    "b|c",
    "^[ab]$",
    "^..?$",
    "^[a-c]{1,2}$",
    "a$",
    "^$",
    "^(?!a)",
    "^[\\s\\S]+$",  # of its complements some are finite
    "^[\\s\\S]{2}$",
    "^[^a]",
    "^.+$",
    "(ab)+$",
    "^(a|ab)(b|é)*$",
)
TYPES = ("null", "boolean", "integer", "number", "string", "array", "object")

#: Definitions that any schema may refer to: a tree, a list, sets of values that run out, an anchor for `$dynamicRef`.
DEFINITIONS: dict[str, Any] = {
    "tree": {
        "type": "object",
        "properties": {"a": {"$ref": "#/$defs/tree"}, "b": {"type": "integer"}},
        "required": ["b"],
    },
    "list": {"anyOf": [{"type": "null"}, {"type": "array", "prefixItems": [{"$ref": "#/$defs/list"}], "items": False}]},
    "few": {"enum": [1, "a", None, [], {}, {"a": 1}, [1]]},
    "flags": {
        "type": "object",
        "properties": {"a": {"type": "boolean"}, "b": {"const": 1}},
        "additionalProperties": False,
    },
    "node": {
        "$dynamicAnchor": "node",
        "type": "object",
        "properties": {"a": {"$dynamicRef": "#node"}, "b": {"type": "boolean"}},
    },
}


def random_value(rng: random.Random, depth: int = 2) -> Any:
    """Return a JSON value from the small world."""
    kind = rng.random()
    if depth <= 0 or kind < 0.5:
        return rng.choice(SCALARS)
    if kind < 0.75:
        return [random_value(rng, depth - 1) for _ in range(rng.randrange(4))]
    names = rng.sample(NAMES, rng.randrange(4))
    return {name: random_value(rng, depth - 1) for name in names}


def random_schema(rng: random.Random, depth: int = 3) -> dict[str, Any]:
    """Return a schema document over all keywords: a random subschema, with `DEFINITIONS` beside it if it uses them."""
    schema = _subschema(rng, depth)
    if isinstance(schema, bool) or not schema:
        schema = _arrays(rng, depth)
    if "#/$defs/" in repr(schema) or "#node" in repr(schema):
        schema = {"$schema": DIALECT, **schema, "$defs": DEFINITIONS}
    return schema


def _subschema(rng: random.Random, depth: int) -> Any:
    """Return a schema of some kind."""
    if depth <= 0:
        return _leaf(rng)
    kind = rng.random()
    for share, make in _KINDS:
        kind -= share
        if kind < 0:
            return make(rng, depth)
    return _leaf(rng)


def _leaf(rng: random.Random) -> Any:
    """Return a schema without subschemas."""
    return rng.choice(_LEAVES)(rng)


def _numbers(rng: random.Random) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": rng.choice(("integer", "number"))}
    for keyword, values in (
        ("minimum", (0, -2, -0.0, 1.5)),
        ("maximum", (0, 1, 3, -0.0, 12)),
        ("exclusiveMinimum", (-1, 0, -0.0)),
        ("exclusiveMaximum", (1, 2, 10, -0.0)),
        ("multipleOf", (2, 1, 0.5, 3)),
    ):
        if rng.random() < 0.25:
            schema[keyword] = rng.choice(values)
    return schema


def _strings(rng: random.Random) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "string"}
    if rng.random() < 0.4:
        schema["minLength"] = rng.randrange(3)
    if rng.random() < 0.4:
        schema["maxLength"] = rng.randrange(4)
    if rng.random() < 0.4:
        schema["pattern"] = rng.choice(PATTERNS)
    return schema


_LEAVES: tuple[Callable[[random.Random], Any], ...] = (
    lambda rng: rng.random() < 0.8,
    lambda rng: {},
    lambda rng: {"type": rng.choice(TYPES)},
    lambda rng: {"type": rng.sample(TYPES, 2)},
    _numbers,
    _numbers,
    _strings,
    _strings,
    lambda rng: {"const": random_value(rng)},
    lambda rng: {"enum": [random_value(rng) for _ in range(rng.randrange(1, 5))]},
    lambda rng: {"enum": rng.sample(SCALARS, rng.randrange(1, 5))},
    lambda rng: {"$ref": "#/$defs/" + rng.choice(tuple(DEFINITIONS))},
    lambda rng: {"$dynamicRef": "#node"},
    lambda rng: {"required": rng.sample(NAMES, rng.randrange(1, 3))},
    lambda rng: {"minProperties": rng.randrange(3), "maxProperties": rng.randrange(2, 4)},
    lambda rng: {"uniqueItems": True, "minItems": rng.randrange(4)},
)


def _objects(rng: random.Random, depth: int) -> dict[str, Any]:
    """Return a schema that speaks of objects."""
    inner: Callable[[], Any] = lambda: _subschema(rng, depth - 1)  # noqa: E731
    schema: dict[str, Any] = {"type": "object"} if rng.random() < 0.7 else {}
    if rng.random() < 0.6:
        schema["properties"] = {name: inner() for name in rng.sample(NAMES, rng.randrange(1, 4))}
    if rng.random() < 0.25:
        schema["patternProperties"] = {pattern: inner() for pattern in rng.sample(PATTERNS, rng.randrange(1, 3))}
    if rng.random() < 0.35:
        schema["additionalProperties"] = rng.random() < 0.2 or (rng.random() < 0.6 and inner())
    if rng.random() < 0.3:
        schema["required"] = rng.sample(NAMES, rng.randrange(1, 3))
    if rng.random() < 0.2:
        schema["propertyNames"] = rng.choice(
            (
                {"pattern": rng.choice(PATTERNS)},
                {"maxLength": rng.randrange(3)},
                {"enum": ["a", "b", "é"]},
                {"not": {"const": "a"}},
                {"not": {"pattern": "^a"}},
            )
        )
    if rng.random() < 0.2:
        schema["minProperties"] = rng.randrange(4)
    if rng.random() < 0.2:
        schema["maxProperties"] = rng.randrange(4)
    if rng.random() < 0.1:
        schema["dependentRequired"] = {rng.choice(NAMES): rng.sample(NAMES, rng.randrange(1, 3))}
    if rng.random() < 0.1:
        schema["dependentSchemas"] = {rng.choice(NAMES): inner()}
    if rng.random() < 0.1:
        schema["unevaluatedProperties"] = inner()
    return schema


def _arrays(rng: random.Random, depth: int) -> dict[str, Any]:
    """Return a schema that speaks of arrays."""
    inner: Callable[[], Any] = lambda: _subschema(rng, depth - 1)  # noqa: E731
    schema: dict[str, Any] = {"type": "array"} if rng.random() < 0.8 else {}
    if rng.random() < 0.25:
        schema["prefixItems"] = [inner() for _ in range(rng.randrange(1, 4))]
    if rng.random() < 0.6:
        schema["items"] = inner()
    if rng.random() < 0.5:
        schema["uniqueItems"] = rng.random() < 0.9
    if rng.random() < 0.5:
        schema["minItems"] = rng.randrange(5)
    if rng.random() < 0.2:
        schema["maxItems"] = rng.randrange(5)
    if rng.random() < 0.25:
        schema["contains"] = inner()
        if rng.random() < 0.5:
            schema["minContains"] = rng.randrange(4)
        if rng.random() < 0.3:
            schema["maxContains"] = rng.randrange(3)
    if rng.random() < 0.1:
        schema["unevaluatedItems"] = inner()
    return schema


def _applicators(rng: random.Random, depth: int) -> dict[str, Any]:
    """Return schemas joined by logic, perhaps beside a schema of a type."""
    inner: Callable[[], Any] = lambda: _subschema(rng, depth - 1)  # noqa: E731
    schema: dict[str, Any] = {}
    for _ in range(rng.choice((1, 1, 2))):
        keyword = rng.choice(("anyOf", "oneOf", "allOf", "not", "if"))
        if keyword == "not":
            schema[keyword] = inner()
        elif keyword == "if":
            schema.update({"if": inner(), "then": inner()})
            if rng.random() < 0.5:
                schema["else"] = inner()
        else:
            schema[keyword] = [inner() for _ in range(rng.randrange(1, 4))]
    if rng.random() < 0.5:
        schema.update(rng.choice((_objects, _arrays))(rng, depth - 1))
    return schema


def _anything(rng: random.Random, depth: int) -> dict[str, Any]:
    """Return a schema of keywords for several types at once."""
    return {**_objects(rng, depth - 1), **_arrays(rng, depth - 1), "type": rng.sample(TYPES, 3)}


#: How often each kind of schema comes; the rest are leaves.
_KINDS: tuple[tuple[float, Callable[[random.Random, int], Any]], ...] = (
    (0.25, _objects),
    (0.25, _arrays),
    (0.15, _applicators),
    (0.05, _anything),
)
