"""Objects of an array with ``uniqueItems``, compared after the member that can make the difference."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

from toolgrammar.core import Grammar, Vocabulary
from toolgrammar.core.json.values import is_among
from toolgrammar.core.schema.lower.objects import ObjectLowering
from toolgrammar.core.schema.normal.conjunction import Objects

from .test_dependent import WORDS

VOCABULARY = Vocabulary(
    [
        *(bytes((byte,)) for byte in range(256)),
        *WORDS,
        *(b'"}, {"', b'b"}', b'"},', b'""', b': "a"', b'"b": "a"}, ', b'\\u0061"}', b'1, "b": "', b'a", "c": 1}]'),
        None,
    ],
    eos=[256 + len(WORDS) + 9],
)

#: Members by name: each object has a string that can make the difference, as its first, middle or last member.
MEMBERS: dict[str, dict[str, Any]] = {
    "string": {"type": "string"},
    "repeated": {"type": "string", "pattern": "^(ab)*$"},
    "short": {"type": "string", "maxLength": 1},
    "few": {"enum": ["a", "b", 1]},
    "integer": {"type": "integer"},
    "object": {"type": "object", "properties": {"a": {"type": "boolean"}}, "additionalProperties": False},
    "array": {"type": "array", "items": {"type": "boolean"}, "uniqueItems": True},
}
DECIDING = ("string", "repeated")


def is_escape(token: int) -> bool:
    """True if a token has a backslash."""
    return b"\\" in (VOCABULARY.tokens[token] or b"")


def random_item(rng: random.Random) -> dict[str, Any]:
    """A schema of objects with one or more members that can make the difference."""
    kinds = [rng.choice(list(MEMBERS)) for _ in range(rng.randrange(1, 4))]
    kinds[rng.randrange(len(kinds))] = rng.choice(DECIDING)
    names = ["a", "b", "c"][: len(kinds)]
    required = [name for name, kind in zip(names, kinds, strict=True) if kind in DECIDING or rng.random() < 0.5]
    return {
        "type": "object",
        "properties": {name: MEMBERS[kind] for name, kind in zip(names, kinds, strict=True)},
        "required": required,
        "additionalProperties": rng.choice((False, {"type": "boolean"})),
    }


def random_schema(rng: random.Random) -> dict[str, Any]:
    """A schema of arrays of such objects, some of them beside other values."""
    item: dict[str, Any] = random_item(rng)
    kind = rng.randrange(5)
    if kind == 0:
        item = {"anyOf": [item, rng.choice(({"type": "string"}, {"type": "boolean"}, {"enum": [1, 2, "a"]}))]}
    elif kind == 1:
        item = {"anyOf": [item, random_item(rng)]}
    schema = {"type": "array", "items": item, "uniqueItems": True, "minItems": rng.choice((0, 0, 2))}
    if kind == 2:
        schema |= {"prefixItems": [random_item(rng)]}
    elif kind == 3:
        schema = {"type": "object", "properties": {"a": schema}, "required": ["a"], "additionalProperties": False}
    return schema


@pytest.mark.parametrize("seed", range(60))
def test_the_masks_are_those_of_a_state_for_each_list_of_items(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Compared after a member or where it begins, an object may be continued by the same tokens; but for escapes, which
    a value that rivals have is not written with where it is compared at its beginning."""
    rng = random.Random(seed)
    schema, whitespace = random_schema(rng), rng.choice(("single", "compact", "flexible"))
    grammars = [Grammar.from_json_schema(schema, whitespace=whitespace) for _ in range(2)]
    first_matcher = grammars[0].bind(VOCABULARY).matcher()
    nodes = first_matcher.constraint.program.store.nodes
    usual, met = ObjectLowering.distinct, []

    def distinct(self: ObjectLowering, objects: Objects) -> int | None:
        met.append(self.nodes is nodes)
        return usual(self, objects) if self.nodes is nodes else None

    monkeypatch.setattr(ObjectLowering, "distinct", distinct)
    second_matcher = grammars[1].bind(VOCABULARY).matcher()
    for _ in range(4):
        first, second = first_matcher.fork(), second_matcher.fork()
        text = b""
        for _ in range(40):
            allowed = set(first.allowed_tokens())
            tokens = [token for token in sorted(allowed) if VOCABULARY.tokens[token] and not is_escape(token)]
            others = set(second.allowed_tokens())
            assert others <= allowed and all(map(is_escape, allowed - others)), text
            assert allowed == {token for token in range(len(VOCABULARY)) if first.fork().accept(token)}, text
            if not tokens:
                break
            marks = [token for token in tokens if token > 255 or token in b'",]}[{:1ab']
            token = rng.choice(marks or tokens)
            assert first.accept(token) and second.accept(token)
            text += VOCABULARY.tokens[token] or b""
        done = first.shortest_completion()
        value = json.loads(text + done)
        items = value["a"] if isinstance(value, dict) else value
        assert not any(is_among(item, items[:at]) for at, item in enumerate(items))
        assert len(done) == len(second.shortest_completion())
        assert second.accept_bytes(done) and second.is_accepting
    assert False in met


@pytest.mark.parametrize("seed", range(30))
def test_an_array_is_allowed_iff_its_items_differ(seed: int) -> None:
    """Items are drawn from few, in all spellings of their strings, and members of a different order do not occur."""
    rng = random.Random(seed)
    members = {"a": {"type": "integer"}, "b": {"type": "string"}, "c": {"enum": [1, "1", None]}}
    schema = {
        "type": "array",
        "uniqueItems": True,
        "items": {"type": "object", "properties": members, "required": ["b"], "additionalProperties": False},
    }
    grammar = Grammar.from_json_schema(schema, whitespace="flexible")
    drawn = []
    for _ in range(6):
        value: dict[str, Any] = {"b": rng.choice(("x", 'é"', "\\"))}
        value = {"a": rng.randrange(2), **value} if rng.random() < 0.5 else value
        drawn.append({**value, "c": rng.choice((1, "1", None))} if rng.random() < 0.5 else value)
    for size in range(1, len(drawn) + 1):
        items = drawn[:size]
        text = "[" + ", ".join(json.dumps(item, ensure_ascii=rng.random() < 0.5) for item in items) + "]"
        assert grammar.matches(text) == (not any(is_among(item, items[:at]) for at, item in enumerate(items)))


def test_objects_need_no_states_of_their_own() -> None:
    """Neither the states nor the nodes of an array grow with its objects, and a token's doubts are few exact steps."""
    members = {"id": {"type": "integer"}, "name": {"type": "string"}, "on": {"type": "boolean"}}
    item = {"type": "object", "properties": members, "required": list(members), "additionalProperties": False}
    schema = {"type": "array", "uniqueItems": True, "items": item}
    matcher = Grammar.from_json_schema(schema).bind(VOCABULARY).matcher()
    sizes = []
    for number in range(60):
        text = json.dumps({"id": number, "name": f"n{number % 7}", "on": number % 2 == 0})
        for byte in f"{', ' if number else '['}{text}".encode():
            matcher.allowed_tokens()
            assert matcher.accept(byte)
        sizes.append((matcher.constraint.counters()["states"], len(matcher.constraint.program.store.nodes)))
    assert sizes[-1] == sizes[20]
    assert not matcher.fork().accept_bytes(b', {"id": 7, "name": "n0", "on": false}')
    assert matcher.fork().accept_bytes(b', {"id": 7, "name": "n0", "on": true}')


def test_an_object_is_compared_as_it_was_before_a_rollback() -> None:
    """Items that are taken back, or written by a fork, are no items of the text."""
    item = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"], "additionalProperties": False}
    matcher = Grammar.from_json_schema({"type": "array", "uniqueItems": True, "items": item}).bind(VOCABULARY).matcher()
    assert matcher.accept_bytes(b'[{"a": "x"}, ')
    fork = matcher.fork()
    assert matcher.accept_bytes(b'{"a": "y"}, ') and not matcher.fork().accept_bytes(b'{"a": "y"}')
    matcher.rollback(1)
    assert matcher.accept_bytes(b'{"a": "y"}') and not matcher.fork().accept_bytes(b', {"a": "x"}')
    assert fork.accept_bytes(b'{"a": "y"}') and fork.shortest_completion() == b"]"
