"""``oneOf`` of plain objects, where objects take only declared members: exact, and quick for many options."""

from __future__ import annotations

import itertools
import json
import random
from collections.abc import Iterator
from typing import Any

import jsonschema
import pytest

from toolgrammar.core import Grammar, LimitError, ToolGrammarError, UnsatisfiableSchemaError
from toolgrammar.core.schema.lower import merged_objects

from ...vocabularies import BYTES

NAMES = ["a", "b", "c", "d"]
TYPES = [{"type": "integer"}, {"type": "string"}, {"type": ["integer", "string"]}, {}]


def option(draw: random.Random) -> dict[str, Any]:
    """An object of some members, some of them required."""
    properties = {name: draw.choice(TYPES) for name in draw.sample(NAMES, draw.randrange(1, 4))}
    required = [draw.choice([*properties, *NAMES]) for _ in range(draw.randrange(3))]
    return {"type": "object", "properties": properties, "required": list(dict.fromkeys(required))}


def schema(draw: random.Random) -> dict[str, Any]:
    """Options of oneOf, with other things around them that hold, or must not."""
    found: dict[str, Any] = {"type": "object", "oneOf": [option(draw) for _ in range(draw.randrange(2, 5))]}
    beside = draw.randrange(6)
    if beside == 0:
        found["properties"] = {draw.choice(NAMES): draw.choice(TYPES)}
    elif beside == 1:
        found["allOf"] = [option(draw)]
    elif beside == 2:
        found["not"] = option(draw)
    elif beside == 3:
        found["not"] = {"not": option(draw)}
    elif beside == 4:
        found["oneOf"][0] = {"oneOf": [option(draw), option(draw)]}
    return found


def values() -> Iterator[dict[str, Any]]:
    """Every object of up to three of the names, each with an integer or a string, in every order."""
    for size in range(4):
        for names in itertools.permutations(NAMES, size):
            for kinds in itertools.product((1, "x"), repeat=size):
                yield dict(zip(names, kinds, strict=True))


def declared(document: dict[str, Any], value: Any) -> set[str]:
    """The names that the options which hold, and what stands beside them, declare."""
    found = set(document.get("properties", ()))
    for part in document.get("allOf", ()):
        found |= declared(part, value)
    for part in document.get("oneOf", ()):
        if jsonschema.Draft202012Validator(part).is_valid(value):
            found |= declared(part, value)
    return found


def test_closed_options_are_exact() -> None:
    """All that is written is valid as JSON Schema says; where nothing is denied, all that is valid and declared is."""
    draw = random.Random(3)
    counts = {"taken": 0, "refused": 0, "unsatisfiable": 0}
    for _ in range(60):
        document = schema(draw)
        validator = jsonschema.Draft202012Validator(document)
        try:
            grammar = Grammar.from_json_schema(document, additional_properties=False, property_order="any")
            grammar.bind(BYTES)
        except UnsatisfiableSchemaError:
            counts["unsatisfiable"] += 1
            continue
        for value in draw.sample(list(values()), 60):
            taken = grammar.matches(json.dumps(value))
            expected = validator.is_valid(value)
            assert expected or not taken, (document, value)
            if "not" not in document and "oneOf" not in document["oneOf"][0]:
                assert taken == (expected and set(value) <= declared(document, value)), (document, value)
            counts["taken" if taken else "refused"] += 1
    assert counts["taken"] > 100 and counts["refused"] > 500 and counts["unsatisfiable"] < 20


@pytest.mark.timeout(60)
@pytest.mark.parametrize("count", [9, 40])
@pytest.mark.parametrize("needed", [1, 2, 3])
def test_many_plain_objects(count: int, needed: int) -> None:
    """Many options, each of which needs members of its own: as quick as if each were closed by hand."""
    options = []
    for index in range(count):
        own = {f"m{index}_{each}": {"type": "string"} for each in range(3)}
        properties = {**own, "id": {"type": "integer"}, "note": {"type": "string", "minLength": index}}
        options.append({"type": "object", "properties": properties, "required": ["id", *list(own)[:needed]]})
    grammar = Grammar.from_json_schema({"oneOf": options}, additional_properties=False, property_order="any")
    value = {"id": 1, **{f"m{count - 1}_{each}": "x" for each in range(needed)}}
    assert grammar.matches(json.dumps(value))
    assert not grammar.matches(json.dumps({**value, "m0_0": "x"}))
    matcher = grammar.bind(BYTES).matcher()
    assert grammar.matches(matcher.shortest_completion())


def test_a_member_that_is_declared_elsewhere() -> None:
    """An option is denied only as long as nothing beside it declares what the other one needs."""
    options = [
        {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]},
        {"type": "object", "properties": {"b": {"type": "integer"}}, "required": ["b"]},
    ]
    for beside in ({"properties": {"b": {}}}, {"allOf": [{"properties": {"b": {}}}]}):
        grammar = Grammar.from_json_schema({"oneOf": options, **beside}, additional_properties=False)
        assert grammar.matches('{"a": 1}') and grammar.matches('{"b": "x", "a": 1}') | grammar.matches(
            '{"a": 1, "b": "x"}'
        )
        assert not grammar.matches('{"a": 1, "b": 1}') and not grammar.matches('{"b": 1, "a": 1}')
    with pytest.raises(ToolGrammarError):
        Grammar.from_json_schema({"oneOf": [options[0], options[0]]}, additional_properties=False).bind(BYTES)


def overlapping(count: int, kind: str) -> list[dict[str, Any]]:
    """Objects of which several may hold at once."""
    options = []
    for index in range(count):
        properties = {f"a{index}": {"type": "string"}, "x": {"type": "integer"}, f"b{index}": {"type": "integer"}}
        option: dict[str, Any] = {"type": "object", "properties": properties}
        if kind == "open":
            option["required"] = [f"a{index}", f"b{index}"]
        elif kind == "closed":
            option["additionalProperties"] = False
        elif kind == "lengths":
            option["properties"] = {"a0": {"type": "string", "minLength": index}, "b0": {"maxLength": index}}
        options.append(option)
    return options


@pytest.mark.timeout(60)
@pytest.mark.parametrize("order", ["schema", "any"])
@pytest.mark.parametrize("kind", ["open", "optional", "closed", "lengths"])
@pytest.mark.parametrize("count", [5, 14])
def test_options_that_may_hold_at_once(count: int, kind: str, order: Any) -> None:
    """Exactly one of many plain objects, open or with optional members only: what is written is valid, and the rest is
    told apart, without a combination of all ways in which options can fail."""
    document = {"type": "object", "properties": {"q": {"oneOf": overlapping(count, kind)}}, "required": ["q"]}
    judge = jsonschema.Draft202012Validator(document)
    grammar = Grammar.from_json_schema(document, property_order=order)
    constraint = grammar.bind(BYTES)
    draw = random.Random(count)
    assert judge.is_valid(json.loads(constraint.matcher().shortest_completion()))
    for _ in range(3):
        matcher = constraint.matcher()
        text = b""
        for _ in range(40):
            allowed = [token for token in matcher.allowed_tokens() if token < 256]
            likely = [token for token in allowed if token in b'"]},0:1abx{']
            if not allowed:
                break
            text += bytes((draw.choice(likely or allowed),))
            assert matcher.accept(text[-1])
        text += matcher.shortest_completion()
        assert judge.is_valid(json.loads(text)), text
    names = ["a0", "x", "b0", "a1", "b1", "a4"]
    taken = 0
    for _ in range(300):
        chosen = [name for name in names if draw.random() < 0.5]
        value = {"q": {name: draw.choice([1, "y", "long enough"]) for name in chosen}}
        is_taken = grammar.matches(json.dumps(value))
        assert is_taken == judge.is_valid(value) if order == "any" else is_taken <= judge.is_valid(value), value
        taken += is_taken
    assert taken or kind == "optional"  # where all but one of the options must be broken


@pytest.mark.parametrize(
    ("count", "order", "kind"), [(26, "schema", "open"), (26, "any", "open"), (130, "any", "lengths")]
)
def test_too_many_open_options_are_left_out(count: int, order: Any, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """More options that may hold at once, in a member that need not be there: the member is left out, and the grammar
    says so; where the member must be there, the schema is refused when it is bound."""
    monkeypatch.setattr(merged_objects, "MAX_DEMANDS", 20)
    document = {"type": "object", "properties": {"q": {"oneOf": overlapping(count, kind)}}}
    grammar = Grammar.from_json_schema(document, property_order=order)
    assert grammar.matches("{}") and not grammar.begins('{"q": ') and grammar.begins('{"r": ')
    (told,) = grammar.narrowed
    assert str(told.place.pointer).startswith("/properties/q") and "const" in str(told.hint)
    with pytest.raises(LimitError):
        Grammar.from_json_schema({**document, "required": ["q"]}, property_order=order).bind(BYTES)


def items(count: int) -> dict[str, Any]:
    """The items of a conversation as a real API describes them: a union in a union, by a type that need not be there.

    One is told by its type alone, which may be null or missing, and one has the type of others.
    """
    kinds = [
        {
            "type": "object",
            "properties": {"type": {"type": "string", "enum": [f"k{index}"]}, "id": STRING, f"v{index}": STRING},
            "required": ["type", f"v{index}"][: 1 + index % 2],
        }
        for index in range(count)
    ]
    message = {"type": {"type": "string", "enum": ["message"]}, "role": {"type": "string", "enum": ["user", "system"]}}
    messages = [
        {"type": "object", "properties": {**message, "content": STRING}, "required": ["role", "content"]},
        {
            "type": "object",
            "properties": {**message, "content": {"type": "array", "items": STRING}},
            "required": ["role"],
        },
    ]
    nullable = {"anyOf": [{"type": "string", "enum": ["reference"], "default": "reference"}, {"type": "null"}]}
    reference = {"type": "object", "properties": {"type": nullable, "id": STRING}, "required": ["id"]}
    one = {"oneOf": [messages[0], {"$ref": "#/$defs/kinds"}, reference]}
    return {
        "type": "object",
        "properties": {"input": {"anyOf": [{"oneOf": [STRING, {"type": "array", "items": one}]}, {"type": "null"}]}},
        "required": ["input"],
        "$defs": {"kinds": {"oneOf": [messages[1], *kinds]}},
    }


STRING = {"type": "string"}


@pytest.mark.timeout(120)
@pytest.mark.parametrize("count", [3, 40])
def test_a_union_in_a_union(count: int) -> None:
    """Forty kinds of items, and one that any type but theirs may have: exact by its own words, and never an error in
    mid-text."""
    document = items(count)
    one = {**document["properties"]["input"]["anyOf"][0]["oneOf"][1]["items"], "$defs": document["$defs"]}
    judge = jsonschema.Draft202012Validator(one)
    grammar = Grammar.from_json_schema(document, additional_properties=False)
    names = ["type", "role", "content", "id", "v1", f"v{count - 1}"]  # in the order of the schemas
    draw = random.Random(5)
    counts = {True: 0, False: 0}
    for _ in range(400):
        last = count - 1
        value: dict[str, Any] = {}
        for name in sorted(draw.sample(names, draw.randrange(1, 5)), key=names.index):
            value[name] = draw.choice(["x", "k1", f"k{last}", "message", "reference", "user", None, ["x"]])
        is_taken = grammar.matches(json.dumps({"input": [value]}))
        expected = judge.is_valid(value) and set(value) <= _declared_in(one, document["$defs"], value)
        assert is_taken == expected, value
        counts[is_taken] += 1
    assert counts[True] > 8 and counts[False] > 100
    constraint = grammar.bind(BYTES)
    for _ in range(6):
        matcher = constraint.matcher()
        text = b'{"input": [{"'
        assert matcher.accept_bytes(text)
        for _ in range(150):
            allowed = [token for token in matcher.allowed_tokens() if token < 256]
            likely = [token for token in allowed if token in b'",:[{xkmr0123']
            if not allowed:
                break
            text += bytes((draw.choice(likely or allowed),))
            assert matcher.accept(text[-1])
        text += matcher.shortest_completion()
        assert jsonschema.Draft202012Validator(document).is_valid(json.loads(text)), text


def _declared_in(part: dict[str, Any], defs: dict[str, Any], value: Any) -> set[str]:
    """The names that the options which hold declare."""
    if "$ref" in part:
        part = defs[part["$ref"].rpartition("/")[2]]
    found = set(part.get("properties", ()))
    for option in part.get("oneOf", ()):
        if jsonschema.Draft202012Validator({**option, "$defs": defs}).is_valid(value):
            found |= _declared_in(option, defs, value)
    return found
