"""Live values: a callable gives the values of a member while the text is written."""

from __future__ import annotations

import asyncio
import itertools
import json
import random
import threading
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import pytest

from toolgrammar.core import (
    ConstraintCache,
    Grammar,
    GrammarError,
    InvalidArgumentsError,
    InvalidSchemaError,
    LiveValues,
    LiveValuesError,
    Matcher,
    UnsatisfiableSchemaError,
    Values,
    Vocabulary,
)
from toolgrammar.core.live import read_open
from toolgrammar.core.live.check import check_values
from toolgrammar.core.masks.budget import Budget

WORDS = [
    b'", "',
    b'": "',
    b'", "id": "',
    b', "',
    b'{"',
    b'"}',
    b"1, ",
    b'1, "',
    b'": ',
    b"A1",
    b'A2"',
    b'a", "id": "A',
    b"}]",
]
VOCABULARY = Vocabulary([bytes((byte,)) for byte in range(256)] + WORDS + [None], eos=[256 + len(WORDS)])
EOS = 256 + len(WORDS)

#: The ids of each project, and of no project.
IDS: dict[Any, list[str]] = {"a": ["A1", "A2", "A12"], "b": ["B"], "c": [], None: ["N"]}


def ids(call: dict[str, Any]) -> list[str]:
    """Return the ids of a project."""
    return IDS[call.get("project")]


def thing(**other: Any) -> dict[str, Any]:
    """Return a schema of a project and one of its ids."""
    project = {"enum": ["a", "b", "c"]}
    identity = {"type": "string", "x-values": {"source": "ids", "after": ["project"], "longest": 3}}
    schema = {"type": "object", "properties": {"project": project, "id": identity}, "additionalProperties": False}
    return {**schema, "required": ["project", "id"], **other}


def documents(schema: dict[str, Any], source: Callable[[dict[str, Any]], Any]) -> Iterator[str]:
    """Yield every text of a schema of flat objects whose other members are listed, in order: the oracle."""
    names, required = list(schema["properties"]), schema["required"]

    def rest(index: int, call: dict[str, Any]) -> Iterator[dict[str, Any]]:
        if index == len(names):
            yield call
            return
        name = names[index]
        member = schema["properties"][name]
        if name not in required:
            yield from rest(index + 1, call)
        if "x-values" in member:
            known = {key: call[key] for key in member["x-values"]["after"] if key in call}
            values = source(known)
        else:
            values = member["enum"]
        for value in values:
            yield from rest(index + 1, {**call, name: value})

    for call in rest(0, {}):
        yield json.dumps(call)


def written(matcher: Matcher, text: bytes = b"") -> Iterator[bytes]:
    """Yield every text that the masks allow, by single bytes."""
    allowed = matcher.allowed_tokens()
    if EOS in allowed:
        yield text
    for token in allowed:
        if token < 256:
            assert matcher.accept(token)
            yield from written(matcher, text + bytes((token,)))
            matcher.rollback(1)


OPTIONAL = thing(required=["project"])
CHAIN = {
    "type": "object",
    "properties": {
        "project": {"enum": ["a", "b"]},
        "n": {"enum": [1, 12]},
        "id": {"type": "string", "x-values": {"source": "ids", "after": ["project"], "longest": 3}},
        "part": {"x-values": {"source": "parts", "after": ["id", "n"], "longest": 4}},
    },
    "required": ["project", "id"],
    "additionalProperties": False,
}


def parts(call: dict[str, Any]) -> list[Any]:
    """Return the parts of a thing: of one with a number only."""
    return [] if "n" not in call else [call["n"], call["id"] + "!", None]


def sources(call: dict[str, Any]) -> list[Any]:
    """Return the values of both sources, for the oracle."""
    return parts(call) if "id" in call else ids(call)


@pytest.mark.parametrize(
    "schema", [thing(properties={"project": {"enum": ["a", "b"]}, "id": thing()["properties"]["id"]})]
)
def test_the_masks_write_every_value_and_no_other(schema: dict[str, Any]) -> None:
    """A required member: the texts by the masks are those of the oracle."""
    matcher = Grammar.from_json_schema(schema).bind(VOCABULARY).matcher(LiveValues({"ids": ids}))
    assert sorted(written(matcher)) == sorted(text.encode() for text in documents(schema, ids))


@pytest.mark.parametrize("schema", [OPTIONAL, CHAIN], ids=["optional", "chain"])
@pytest.mark.parametrize("whitespace", ["single", "compact"])
def test_an_optional_member_without_values_is_left_out(schema: dict[str, Any], whitespace: Any) -> None:
    """The texts by the masks are those of the oracle: no mask leads to a name without a value."""
    grammar = Grammar.from_json_schema(schema, whitespace=whitespace)
    live = LiveValues({"ids": ids, "parts": parts})
    found = sorted(map(json.dumps, map(json.loads, written(grammar.bind(VOCABULARY).matcher(live)))))
    assert found == sorted(documents(schema, sources))


def walk(matcher: Matcher, rng: random.Random, steps: int = 60) -> None:
    """Write random tokens, with forks and ways back; each mask is what `accept` says of each token."""
    for _ in range(steps):
        allowed = matcher.allowed_tokens()
        assert set(allowed) == {token for token in range(len(VOCABULARY)) if matcher.fork().accept(token)}
        forced = matcher.forced_bytes()
        assert not forced or matcher.fork().accept_bytes(forced)
        if not allowed:
            return
        long = [token for token in allowed if token >= 256]
        token = rng.choice(long if long and rng.random() < 0.5 else allowed)
        if rng.random() < 0.3:
            matcher = matcher.fork()
        assert matcher.accept(token)
        if rng.random() < 0.2:
            matcher.rollback(1)
            assert matcher.accept(token)
    assert matcher.is_finished


@pytest.mark.parametrize("schema", [OPTIONAL, CHAIN], ids=["optional", "chain"])
def test_mask_is_what_accept_says(schema: dict[str, Any]) -> None:
    """Also of tokens that cross the name, or the end of the argument before it."""
    for whitespace in ("single", "flexible"):
        constraint = Grammar.from_json_schema(schema, whitespace=whitespace).bind(VOCABULARY)  # type: ignore[arg-type]
        for seed in range(12):
            walk(constraint.matcher(LiveValues({"ids": ids, "parts": parts})), random.Random(seed), 200)


@pytest.mark.parametrize("schema", [OPTIONAL, CHAIN], ids=["optional", "chain"])
def test_every_budget_ends_with_a_whole_text(schema: dict[str, Any]) -> None:
    """Random walks under narrowed masks, from the least budget on, end whole and within the budget."""
    valid = set(documents(schema, sources))
    constraint = Grammar.from_json_schema(schema).bind(VOCABULARY)
    ended = set()
    least = Budget(constraint.matcher(LiveValues({"ids": ids, "parts": parts}))).needed()[0]
    for budget, seed in itertools.product(range(least, least + 40), range(4)):
        rng = random.Random(seed)
        matcher, tokens = constraint.matcher(LiveValues({"ids": ids, "parts": parts})), list[int]()
        limit = Budget(matcher)
        while not matcher.is_finished:
            row = np.zeros(constraint.words, dtype=np.uint32)
            matcher.fill_mask(row)
            limit.narrow(row, tokens, budget - len(tokens))
            choices = np.flatnonzero(np.unpackbits(row.view(np.uint8), bitorder="little")).tolist()
            token = rng.choice(choices)
            assert matcher.accept(token)
            if token != EOS:
                tokens.append(token)
        assert len(tokens) <= budget
        text = b"".join(VOCABULARY.tokens[token] or b"" for token in tokens).decode()
        assert text in valid
        ended.add(text)
    assert len(ended) > 3


def drawn(seed: int) -> tuple[dict[str, Any], dict[str, Callable[[dict[str, Any]], list[Any]]]]:
    """Return a schema of flat objects with live values in random places, and their callables."""
    rng = random.Random(seed)
    names = ["p", "q", "r", "s"][: rng.randrange(2, 5)]
    properties: dict[str, Any] = {}
    table: dict[str, list[Any]] = {}
    for index, name in enumerate(names):
        values = rng.choice([["a"], ["a", "b"], [1, 12], ["x", None], ["ab", "a"]])
        if index and rng.random() < 0.7:
            after = rng.sample(names[:index], rng.randrange(0, index + 1))
            properties[name] = {"x-values": {"source": name, "after": after, "longest": 4}}
            table[name] = [[], values, values[:1], [*values, 3]]
        else:
            properties[name] = {"enum": values}
    schema = {"type": "object", "properties": properties, "additionalProperties": False}
    schema["required"] = [name for name in names if rng.random() < 0.5]
    if rng.random() < 0.3:
        schema["minProperties"] = rng.randrange(len(names) + 1)
    if rng.random() < 0.3:
        schema["maxProperties"] = rng.randrange(len(schema["required"]), len(names) + 1)
    if rng.random() < 0.3:
        schema["dependentRequired"] = {rng.choice(names): [rng.choice(names)]}

    def answer(name: str, call: dict[str, Any]) -> list[Any]:
        options = table[name]
        return options[(len(json.dumps(call)) + names.index(name) + seed) % len(options)]

    return schema, {name: partial(answer, name) for name in table}


def values_in(schema: dict[str, Any], live: dict[str, Any], name: str, call: dict[str, Any]) -> list[Any]:
    """Return the values of a member after the others of a call."""
    member = schema["properties"][name]
    if "enum" in member:
        return list(member["enum"])
    return list(live[name]({key: call[key] for key in member["x-values"]["after"] if key in call}))


@pytest.mark.parametrize("seed", range(60))
def test_random_objects(seed: int) -> None:
    """With bounds on members, dependencies and any order: the masks write the texts of the oracle, and no other."""
    schema, live = drawn(seed)
    names = list(schema["properties"])
    found = set()

    def rest(index: int, call: dict[str, Any]) -> None:
        if index == len(names):
            needs = schema.get("dependentRequired", {})
            is_sized = schema.get("minProperties", 0) <= len(call) <= schema.get("maxProperties", 9)
            if is_sized and all(set(other) <= call.keys() for name, other in needs.items() if name in call):
                found.add(json.dumps(call))
            return
        name = names[index]
        if name not in schema["required"]:
            rest(index + 1, call)
        for value in values_in(schema, live, name, call):
            rest(index + 1, {**call, name: value})

    rest(0, {})
    order: Any = "any" if live and seed % 2 else "schema"
    try:
        constraint = Grammar.from_json_schema(schema, property_order=order).bind(VOCABULARY)
        matcher = constraint.matcher(LiveValues(live))
    except (UnsatisfiableSchemaError, GrammarError):
        assert not found
        return
    texts: set[str] = set()

    def write(text: bytes) -> None:
        try:
            allowed = matcher.allowed_tokens()
        except LiveValuesError:
            return
        assert allowed
        if EOS in allowed:
            texts.add(text.decode())
        for token in allowed:
            if token < 256:
                try:
                    assert matcher.accept(token)
                except LiveValuesError:
                    continue
                write(text + bytes((token,)))
                matcher.rollback(1)

    write(b"")
    assert texts == found


@pytest.mark.parametrize("seed", range(30))
def test_random_objects_under_budgets(seed: int) -> None:
    """Walks under narrowed masks end whole and within the budget, or with the error of a member without values."""
    schema, live = drawn(seed)
    try:
        constraint = Grammar.from_json_schema(schema).bind(VOCABULARY)
    except UnsatisfiableSchemaError:
        return
    least = Budget(constraint.matcher(LiveValues(live))).needed()[0]
    row = np.zeros(constraint.words, dtype=np.uint32)
    for budget in range(least, least + 24, 3):
        rng, matcher, tokens = random.Random(budget), constraint.matcher(LiveValues(live)), list[int]()
        limit = Budget(matcher)
        try:
            while not matcher.is_finished:
                matcher.fill_mask(row)
                limit.narrow(row, tokens, budget - len(tokens))
                choices = np.flatnonzero(np.unpackbits(row.view(np.uint8), bitorder="little")).tolist()
                token = rng.choice(choices)
                assert matcher.accept(token)
                tokens += [token] if token != EOS else []
        except LiveValuesError:
            continue
        assert len(tokens) <= budget
        call = json.loads(b"".join(VOCABULARY.tokens[token] or b"" for token in tokens))
        assert all(value in values_in(schema, live, name, call) for name, value in call.items())


#: Places where an object with live values may stand.
PLACES: dict[str, tuple[dict[str, Any], Callable[[Any], Any]]] = {
    "additional": ({"additionalProperties": thing()}, lambda made: {"x": made}),
    "pattern": ({"patternProperties": {"^\\p{L}$": thing()}, "additionalProperties": False}, lambda made: {"é": made}),
    "then": ({"if": {"type": "object"}, "then": {"properties": {"x": thing()}}}, lambda made: {"x": made}),
    "else": ({"if": {"type": "array"}, "else": {"properties": {"x": thing()}}}, lambda made: {"x": made}),
    "dependent": ({"dependentSchemas": {"x": {"properties": {"x": thing()}}}}, lambda made: {"x": made}),
    "reference": ({"properties": {"x": {"$ref": "#/properties/y"}, "y": thing()}}, lambda made: {"x": made}),
    "item": ({"properties": {"x": {"items": thing()}}}, lambda made: {"x": [made]}),
    "one option": ({"anyOf": [{"properties": {"x": thing()}}, {"required": ["y"]}]}, lambda made: {"x": made}),
}


@pytest.mark.parametrize("place", PLACES)
def test_finished_values_are_checked_wherever_they_stand(place: str) -> None:
    """The check of a finished value gives the verdict of the mask, in each place of a schema."""
    schema, around = PLACES[place]
    schema = {"type": "object", **schema}
    grammar = Grammar.from_json_schema(schema)
    for made, expected in (({"project": "a", "id": "A2"}, True), ({"project": "b", "id": "A2"}, False)):
        value, live = around(made), LiveValues({"ids": Values(ids)})
        matcher = grammar.bind(VOCABULARY).matcher(live)
        written_whole = matcher.accept_bytes(json.dumps(value, ensure_ascii=False).encode()) and matcher.is_accepting
        assert written_whole == expected
        if expected:
            check_values(schema, value, live)
        else:
            with pytest.raises(InvalidArgumentsError, match="not one of the present values"):
                check_values(schema, value, live)


def test_one_option_with_the_value_is_enough() -> None:
    """Of several options that a value satisfies, it needs the live values of one."""

    def options(*names: str) -> dict[str, Any]:
        each = [{"properties": {"id": {"x-values": {"source": name, "longest": 3}}}} for name in names]
        return {"type": "object", "anyOf": each}

    live = LiveValues({"f": Values(lambda _: ["a"]), "g": Values(lambda _: ["b"])})
    check_values(options("f", "g"), {"id": "b"}, live)
    with pytest.raises(InvalidArgumentsError):
        check_values(options("f"), {"id": "b"}, live)


def test_a_callable_is_asked_once_for_the_arguments_before_it() -> None:
    """Masks, forks, forced text, completions and ways back ask nothing twice, and completions ask nothing."""
    asked: list[dict[str, Any]] = []

    def source(call: dict[str, Any]) -> list[str]:
        asked.append(call)
        return ids(call)

    constraint = Grammar.from_json_schema(thing()).bind(VOCABULARY)
    live = LiveValues({"ids": source})
    matcher = constraint.matcher(live)
    assert matcher.shortest_length() > 20 and not asked
    walk(matcher.fork(), random.Random(1), 200)
    once = len(asked)
    assert once == live.asked == len({json.dumps(call) for call in asked})
    for seed in range(20):
        try:
            walk(matcher.fork(), random.Random(seed), 200)
        except LiveValuesError:  # of the project without ids
            continue
    assert {json.dumps(call) for call in asked} <= {json.dumps({"project": name}) for name in "abc"}
    assert len(asked) == live.asked <= 3
    constraint.warm(0.2)
    assert len(asked) == live.asked


def test_values_are_those_at_the_time_of_asking() -> None:
    """Another answer sees other values; the grammar is the same."""
    now = ["x"]
    cache = ConstraintCache()
    for values in (["x"], ["y", "yy"], []):
        now[:] = values
        constraint = cache.from_json_schema(OPTIONAL, VOCABULARY)
        matcher = constraint.matcher(LiveValues({"ids": lambda call: now}))
        texts = {text.decode() for text in written(matcher)}
        assert texts == set(documents(OPTIONAL, lambda call, values=values: values))
    assert cache.statistics.misses == 1


def test_a_required_member_without_values_is_an_error_of_its_own() -> None:
    """It is raised when the text gets there, and not before."""
    matcher = Grammar.from_json_schema(thing()).bind(VOCABULARY).matcher(LiveValues({"ids": ids}))
    assert matcher.accept_bytes(b'{"project": "c"')
    with pytest.raises(LiveValuesError, match="no value for a required parameter") as caught:
        matcher.accept_bytes(b', "id": ')
    assert caught.value.place.parameter == "id"
    with pytest.raises(LiveValuesError):
        matcher.forced_bytes()
    matcher.rollback(1)
    assert matcher.accept_bytes(b'{"project": "b", "id": "B"}')


def late(call: dict[str, Any]) -> list[str]:
    """Answer too late."""
    threading.Event().wait(5)
    return ["x"]


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (lambda call: call["other"], r"failed, after \{\"project\": \"a\"\}: KeyError: 'other'"),
        (lambda call: 1 / 0, "ZeroDivisionError"),
        (lambda call: "A1", "it returned str"),
        (lambda call: [object()], "not JSON serializable"),
        (lambda call: {"type": "strin"}, "strin"),
        (Values(late, timeout=0.05), "not there within 0.05 s"),
        (lambda: asyncio.sleep(5), "within"),
    ],
)
def test_a_failure_names_the_parameter_and_the_cause(source: Any, message: str) -> None:
    """A callable that raises, returns no values or takes too long."""
    if not isinstance(source, Values):
        source = Values(source, timeout=0.2)
    live = LiveValues({"ids": source})
    matcher = Grammar.from_json_schema(thing()).bind(VOCABULARY).matcher(live)
    assert matcher.accept_bytes(b'{"project": "a"')
    assert b"," in {VOCABULARY.tokens[token] for token in matcher.allowed_tokens()}
    for _ in range(2):
        with pytest.raises(LiveValuesError, match=message) as caught:
            matcher.accept_bytes(b', "id": ')
        assert caught.value.place.parameter == "id"
    assert live.asked == 1


def test_async_callables_are_awaited() -> None:
    """Also while the caller runs an event loop of its own."""

    async def source(call: dict[str, Any]) -> list[str]:
        await asyncio.sleep(0.001)
        return ids(call)

    async def write() -> list[bytes]:
        matcher = Grammar.from_json_schema(OPTIONAL).bind(VOCABULARY).matcher(LiveValues({"ids": source}))
        return sorted(written(matcher))

    assert asyncio.run(write()) == sorted(text.encode() for text in documents(OPTIONAL, ids))


def test_a_callable_may_write_with_the_same_grammar() -> None:
    """It is asked without the lock of the store, in another thread."""
    constraint = Grammar.from_json_schema(thing()).bind(VOCABULARY)

    def source(call: dict[str, Any]) -> list[str]:
        inner = constraint.matcher(LiveValues({"ids": lambda call: ["deep"]}))
        assert inner.accept_bytes(b'{"project": "b", "id": "deep"}')
        return ids(call)

    matcher = constraint.matcher(LiveValues({"ids": source}))
    assert matcher.accept_bytes(b'{"project": "a", "id": "A12"}')


def test_a_callable_may_return_a_schema() -> None:
    """A value that depends on another: an end that is not before the start."""
    end = {"type": "integer", "x-values": {"source": "end", "after": ["start"]}}
    schema = {
        "type": "object",
        "properties": {"start": {"type": "integer"}, "end": end},
        "required": ["start", "end"],
        "additionalProperties": False,
    }
    constraint = Grammar.from_json_schema(schema).bind(VOCABULARY)

    def matches(text: str) -> bool:
        matcher = constraint.matcher(LiveValues({"end": lambda call: {"minimum": call["start"], "maximum": 40}}))
        return matcher.accept_bytes(text.encode()) and matcher.is_accepting

    for start, finish in itertools.product((-3, 0, 7, 39), (-4, -3, 0, 6, 7, 10, 39, 40, 41)):
        assert matches(f'{{"start": {start}, "end": {finish}}}') == (start <= finish <= 40), (start, finish)


NESTED = {
    "type": "object",
    "properties": {
        "country": {"enum": ["de", "fr"]},
        "stops": {
            "type": "array",
            "maxItems": 2,
            "items": {
                "type": "object",
                "properties": {
                    "kind": {"enum": ["n", "s"]},
                    "city": {"x-values": {"source": "cities", "after": ["country", "kind"]}},
                    "tags": {
                        "type": "array",
                        "maxItems": 1,
                        "items": {"x-values": {"source": "tags", "after": ["city"]}},
                    },
                },
                "required": ["kind", "city"],
                "additionalProperties": False,
            },
        },
        "nick": {"anyOf": [{"x-values": {"source": "tags", "after": ["country"]}}, {"type": "null"}]},
    },
    "required": ["country", "stops"],
    "additionalProperties": False,
}
CITIES = {"den": ["Kiel"], "des": ["Ulm", "Isny"], "frn": ["Lille"], "frs": ["Pau"]}


def test_objects_in_arrays_read_their_own_members_and_those_around_them() -> None:
    """A city of the chosen country and part, tags of the city, and a nickname or null."""
    live = {
        "cities": lambda call: CITIES[call["country"] + call["kind"]],
        "tags": lambda call: [f"{value}{number}" for value in call.values() for number in (1, 2)],
    }
    tags = [[], *([value] for value in ("1", "2"))]
    expected = []
    for country in ("de", "fr"):
        cities = [(kind, city) for kind in "ns" for city in CITIES[country + kind]]
        stops = []
        for kind, city in cities:
            stop = {"kind": kind, "city": city}
            stops.append(stop)
            stops += [{**stop, "tags": [city + one for one in some]} for some in tags]
        for chosen in [[], *([one] for one in stops), *(list(pair) for pair in itertools.product(stops, repeat=2))]:
            call = {"country": country, "stops": chosen}
            expected.append(call)
            expected += [{**call, "nick": nick} for nick in (country + "1", country + "2", None)]
    matcher = Grammar.from_json_schema(NESTED).bind(VOCABULARY).matcher(LiveValues(live))
    assert sorted(written(matcher)) == sorted(json.dumps(call).encode() for call in expected)


def test_declared_dependencies_are_written_first() -> None:
    """Whatever the order of the schema, and with members in any order."""
    schema = thing(properties=dict(reversed(list(thing()["properties"].items()))))
    assert list(schema["properties"]) == ["id", "project"]
    for order in ("schema", "any"):
        grammar = Grammar.from_json_schema(schema, property_order=order)  # type: ignore[arg-type]
        matcher = grammar.bind(VOCABULARY).matcher(LiveValues({"ids": ids}))
        assert matcher.forced_bytes() == b'{"project": "'


def test_without_after_a_callable_sees_the_members_before_it() -> None:
    """And not those after it."""
    seen = []
    schema = thing()
    schema["properties"]["id"]["x-values"] = "ids"
    schema["properties"]["later"] = {"type": "boolean"}
    matcher = (
        Grammar.from_json_schema(schema)
        .bind(VOCABULARY)
        .matcher(LiveValues({"ids": lambda call: seen.append(call) or ["x"]}))
    )
    assert matcher.accept_bytes(b'{"project": "a", "id": "x", "later": true}')
    assert seen == [{"project": "a"}]


def test_thousands_of_values_share_their_prefixes() -> None:
    """5,000 values: equal answers share one language, whose states and masks are derived once."""
    values = [f"order-{number:05d}" for number in range(0, 50_000, 10)]
    constraint = Grammar.from_json_schema(thing()).bind(VOCABULARY)

    def states() -> int:
        matcher = constraint.matcher(LiveValues({"ids": lambda call: list(values)}))
        assert matcher.accept_bytes(b'{"project": "a", "id": "order-')
        text = b""
        while matcher.allowed_tokens() != [EOS]:
            token = max(token for token in matcher.allowed_tokens() if token < 256)
            text += bytes((token,))
            assert matcher.accept(token)
        assert text == b'49990"}'
        return constraint.counters()["states"]

    first = states()
    assert states() == first
    refused = constraint.matcher(LiveValues({"ids": lambda call: values}))
    assert not refused.accept_bytes(b'{"project": "a", "id": "order-49991')


@pytest.mark.parametrize(
    "member",
    [
        {"x-values": 3},
        {"x-values": {"after": ["a"]}},
        {"x-values": {"source": "ids", "after": "project"}},
        {"x-values": {"source": "ids", "after": 3}},
        {"x-values": {"source": "ids", "after": [["project"]]}},
        {"x-values": {"source": "ids", "other": 1}},
        {"not": {"x-values": "ids"}},
        {"additionalProperties": {"x-values": "ids"}},
    ],
)
def test_a_mark_that_cannot_be_enforced_is_refused(member: dict[str, Any]) -> None:
    """Malformed, or at a place where no member has it."""
    with pytest.raises(InvalidSchemaError) as caught:
        Grammar.from_json_schema(thing(properties={"project": {}, "id": member}))
    assert caught.value.place.keyword == "x-values"


def test_listed_objects_have_no_live_values() -> None:
    """Whether a listed object has a live value is not known when the grammar is made, so it is left out."""
    listed = [{"project": "a", "id": "A1"}, {"project": "a", "id": "Z"}, {"project": "b"}]
    constraint = Grammar.from_json_schema(thing(required=["project"], enum=listed)).bind(VOCABULARY)
    assert list(written(constraint.matcher(LiveValues({"ids": ids})))) == [b'{"project": "b"}']


def test_a_text_without_callables_says_so() -> None:
    """A matcher without `LiveValues`, and a source without a callable."""
    constraint = Grammar.from_json_schema(thing()).bind(VOCABULARY)
    for matcher in (constraint.matcher(), constraint.matcher(LiveValues())):
        assert matcher.accept_bytes(b'{"project": "a"')
        with pytest.raises(LiveValuesError, match="nothing gives the values of 'ids'"):
            matcher.accept_bytes(b', "id": ')


@pytest.mark.parametrize(
    ("text", "objects"),
    [
        ("", []),
        ("{", [{}]),
        ('{"a": 1', [{}]),  # or 12
        ('{"a": 1 ,', [{"a": 1}]),
        ('{"a": 1, "b": [{"c": "x", ', [{"c": "x"}, {"a": 1}]),
        ('call: {"a": {"b": []}, "c', [{"a": {"b": []}}]),
        ('{"a": {"b": 1}} then {"c": 2, ', [{"c": 2}]),
        ('[{"a": "}{"}, {"b": "\\"', [{}]),
        ('{"a": "x', [{}]),
        ('{"a":', [{}]),
    ],
)
def test_the_open_objects_of_a_text(text: str, objects: list[dict[str, Any]]) -> None:
    """Innermost first, with the members that are whole."""
    assert read_open(text.encode()) == objects
