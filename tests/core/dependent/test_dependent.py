"""Places where the text so far decides what follows: names and items that must not repeat."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolgrammar.core import Grammar, LimitError, SchemaError, Vocabulary
from toolgrammar.core.automaton.completion.texts import ShortestTexts
from toolgrammar.core.dependent.written import Written
from toolgrammar.core.schema.lower import objects

from ...schemas import random_schema
from .test_written import name_asks

WORDS = [b'"a"', b'"a":', b'a":', b'a": 1, "a":', b'": 1, "', b"1, 1", b"12", b'{"a": ', b'\\u0061"', b'", "', b'b"']
WORDS += [b'"\\u0061"', b'u0061"', b'0061"', b'u000ab"', b'nb"', b'", "a":', b'}, "a":', b'], "a":', b', "":', b'"":']
VOCABULARY = Vocabulary([bytes((byte,)) for byte in range(256)] + WORDS + [None], eos=[256 + len(WORDS)])

SCHEMAS: list[Any] = [
    {"type": "object", "additionalProperties": {"type": "integer"}},
    {"type": "object", "properties": {"a": {"type": "integer"}}},
    {"type": "object", "patternProperties": {"^[a-c]{1,2}$": {"type": "integer"}}, "additionalProperties": False},
    {"type": "object", "propertyNames": {"pattern": "^x?a*$"}, "minProperties": 3},
    {"type": "array", "items": {"type": "string", "maxLength": 1}, "uniqueItems": True, "minItems": 3},
    {"type": "array", "items": {"type": "integer"}, "uniqueItems": True, "minItems": 2},
    {"type": "array", "items": {"enum": ["a", "b", "ab"]}, "uniqueItems": True, "minItems": 3},
    {"type": "array", "items": {"type": "array", "items": {"type": "boolean"}}, "uniqueItems": True, "minItems": 2},
    {"type": "array", "items": {"type": ["string", "object"]}, "uniqueItems": True, "minItems": 2},
    {"type": "array", "items": {"type": "string"}, "uniqueItems": True, "minItems": 3},
    {"type": "array", "items": {"type": "string", "pattern": "^(ab)*$"}, "uniqueItems": True, "minItems": 4},
    {"type": "array", "items": {"anyOf": [{"enum": ["a", 1]}, {"type": "string"}]}, "uniqueItems": True, "minItems": 2},
    {"type": "array", "prefixItems": [{"enum": ["a", "b"]}], "items": {"type": "string"}, "uniqueItems": True},
    {"type": "array", "items": {"properties": {"a": {"type": "string"}}}, "uniqueItems": True, "minItems": 2},
]


BEGINNINGS = [
    "",
    '{"a": 1, ',
    '{"a": 1, "',
    '{"a": 1, "a',
    '{"b": 1, "a": 1, "b',
    '["a", "',
    '["a", ',
    '["ab", ',
    '["ab", "ab',
    '["ab", "", "\\u0061b", "abab", "',
    '["ab", "", "abab", "\\u0061b',
    "[1, 1",
    "[1, ",
    "[[true], [t",
    '[{}, {"a": {}}, {"a": {',
    '{"a": 1, "\\u0061',
    '{"a": 1, "\\u00',
    '{"ab": 1, "\\u0061',
    '{"a\\nb": 1, "a\\',
    '{"a\\nb": 1, "\\u0061\\u000a',
    '{"": 1, "b": 2',
    '{"a": 1, "b": {"c": 1',
    '{"a": {}, "b": {"c": [1',
    '{"x": 1,\n": c,',
]


@pytest.mark.parametrize("schema", SCHEMAS, ids=json.dumps)
def test_mask_is_what_accept_says(schema: Any) -> None:
    """Every token of the mask is accepted, and no other, after each beginning that the schema admits."""
    admitted = 0
    for beginning in BEGINNINGS:
        matcher = Grammar.from_json_schema(schema).bind(VOCABULARY).matcher()
        if matcher.accept_bytes(beginning.encode()):
            admitted += 1
            allowed = set(matcher.allowed_tokens())
            assert allowed == {token for token in range(len(VOCABULARY)) if matcher.fork().accept(token)}, beginning
            assert allowed
    assert admitted >= 2


@pytest.mark.parametrize("schema", SCHEMAS, ids=json.dumps)
def test_shortest_completion_does_not_repeat(schema: Any) -> None:
    """What must come is completed without repeating what was written."""
    matcher = Grammar.from_json_schema(schema).bind(VOCABULARY).matcher()
    value = json.loads(matcher.shortest_completion())
    items = list(value)
    assert len(items) >= schema.get("minItems", schema.get("minProperties", 0))
    assert [item for index, item in enumerate(items) if item in items[:index]] == []


def test_unique_strings_need_no_states_of_their_own() -> None:
    """Where any string can be finished, a mask derives nothing for the strings that were written before."""
    matcher = (
        Grammar.from_json_schema({"type": "array", "items": {"type": "string"}, "uniqueItems": True})
        .bind(VOCABULARY)
        .matcher()
    )
    states = []
    for item in range(40):
        assert matcher.accept_bytes(f'{", " if item else "["}"item {item}"'.encode())
        matcher.allowed_tokens()
        states.append(matcher.constraint.counters()["states"])
    assert states[-1] == states[2]
    assert not matcher.fork().accept_bytes(b', "item 7"')
    assert matcher.accept_bytes(b', "item 70"')


@pytest.mark.parametrize("item", [{"type": "object", "additionalProperties": {"type": "string"}}, {"type": "number"}])
def test_unique_items_are_told_apart_where_they_begin(item: Any) -> None:
    """Where another item may always begin, the masks of an item derive nothing for what it may turn out to be."""
    tokens = [bytes((byte,)) for byte in range(256)] + [b'"}', b'"},', b'"}, ', b"1,", b"1, ", b"1]", None]
    vocabulary = Vocabulary(tokens, eos=[len(tokens) - 1], cache_dir=False)
    schema = {"type": "array", "items": item, "uniqueItems": True}
    matcher = Grammar.from_json_schema(schema).bind(vocabulary).matcher()
    is_object = item["type"] == "object"
    assert matcher.accept_bytes(b'[{"a": "b"}, {"c": "' if is_object else b"[10, 3")
    counts = set()
    for _ in range(6):
        assert matcher.accept(ord("7"))
        matcher.allowed_tokens()
        counts.add(len(matcher.constraint.program.store.nodes))
    assert len(counts) == 1
    assert matcher.accept_bytes(b'"}, ' if is_object else b", ")
    assert not matcher.fork().accept_bytes(b'{"a": "b"}' if is_object else b"10,")
    assert matcher.accept_bytes(b'{"a": "c"}' if is_object else b"11,")


def test_a_shortest_text_goes_past_repeated_strings() -> None:
    """Strings of a narrow pattern are enumerated without the whitespace before them."""
    schema = {"type": "array", "items": {"type": "string", "pattern": "^(ab)*$"}, "uniqueItems": True, "minItems": 8}
    grammar = Grammar.from_json_schema(schema, whitespace="flexible")
    value = json.loads(grammar.bind(VOCABULARY).matcher().shortest_completion())
    assert value == ["ab" * count for count in range(8)]


def test_names_are_compared_as_they_read() -> None:
    """A name is repeated however it is escaped; in another object it is not."""
    grammar = Grammar.json(whitespace="flexible")
    assert not grammar.matches('{"a": 1, "b": {"c": []}, "a": 2}')
    assert not grammar.matches('{"a": 1, "\\u0061": 2}')
    assert not grammar.matches('{"é": {"x": "}{"}, "\\u00e9": 2}')
    assert grammar.matches('{"a": {"a": [{"a": 1}, {"a": 1}]}, "b": {"a": 1}}')
    assert grammar.matches('{"a\\\\": 1, "a\\"": "\\"a\\\\", "a": 1}')


def test_rollback_and_fork_remember_the_text() -> None:
    """After a rollback a name may be used again; forks do not know of each other."""
    matcher = Grammar.json(whitespace="compact").bind(VOCABULARY).matcher()
    assert matcher.accept_bytes(b'{"a":1')
    fork = matcher.fork()
    assert matcher.accept_bytes(b',"b":2')
    assert fork.accept_bytes(b',"b":') and not fork.fork().accept_bytes(b'1,"a"')
    assert not matcher.fork().accept_bytes(b',"b"')
    matcher.rollback(1)
    assert matcher.accept_bytes(b',"b"')


def test_forced_bytes_pass_the_places() -> None:
    """What is fixed behind the end of a name is forced together with it."""
    schema = {"type": "array", "items": {"const": "only"}, "uniqueItems": True, "minItems": 1}
    assert Grammar.from_json_schema(schema).bind(VOCABULARY).matcher().forced_bytes() == b'["only"]'
    pattern = {
        "type": "object",
        "patternProperties": {"^ab{70,}$": {"const": 1}},
        "additionalProperties": False,
        "minProperties": 1,
    }
    matcher = Grammar.from_json_schema(pattern).bind(VOCABULARY).matcher()
    assert matcher.forced_bytes() == b'{"a' + b"b" * 70
    assert matcher.accept_bytes(b'{"a' + b"b" * 70 + b'"') and matcher.forced_bytes() == b": 1"


names = st.text(alphabet='ab"\\é{}[]:, ', max_size=4)
values = st.recursive(
    st.one_of(st.integers(-3, 3), names),
    lambda inner: st.one_of(st.lists(inner), st.dictionaries(names, inner)),
    max_leaves=6,
)


@given(
    before=st.text(alphabet='"{[\\ a', max_size=6),
    value=st.dictionaries(names, values, min_size=1),
    escape=st.booleans(),
)
def test_names_are_found_in_any_text(before: str, value: dict[str, Any], escape: bool) -> None:
    """Behind a member of an object its names are those written, whatever the text before the object is."""
    text = (before + json.dumps(value, ensure_ascii=escape)[:-1]).encode()
    assert Written(text).names() == list(value)
    assert Written(text + b', "new"').is_repeated() == ("new" in value)
    again = json.dumps(list(value)[-1], ensure_ascii=not escape).encode()
    assert Written(text + b", " + again).is_repeated()


@given(before=st.text(alphabet='"{[\\ a', max_size=6), value=st.lists(values, min_size=1))
def test_items_are_found_in_any_text(before: str, value: list[Any]) -> None:
    """Behind an item of an array its items are those written."""
    text = (before + json.dumps(value)[:-1]).encode()
    assert [json.loads(item) for item in Written(text).items()] == value
    strings = [item for item in value if isinstance(item, str)]
    assert Written(text).names() == strings
    assert Written(text + b', "new"').is_repeated() == ("new" in strings)


@given(value=st.dictionaries(names, values, min_size=1), data=st.data())
def test_repeats_are_foreseen(value: dict[str, Any], data: st.DataObject) -> None:
    """However far a name was written again, some foreseen beginning leads to the rest of it, if that has no escape of
    another kind; in the midst of such an escape, that is said."""
    text = json.dumps(value, ensure_ascii=False)[:-1].encode() + b", "
    again = json.dumps(data.draw(st.sampled_from(sorted(value))), ensure_ascii=data.draw(st.booleans())).encode()
    written = data.draw(st.integers(0, len(again) - 1))
    rest = again[written:]
    beginnings, is_odd = Written(text + again[:written]).endings()
    foreseen = is_odd or any(
        rest.startswith(name[size:]) for names, low, high, size in beginnings for name in names[low:high]
    )
    assert foreseen or (b"\\" in rest and rest not in json.dumps(json.loads(again), ensure_ascii=False).encode())


PARTS = [
    b'{"a": ',
    b'{"b": {',
    b'"a": 1, ',
    b'"b',
    b'", ',
    b'"',
    b"}",
    b"]",
    b"[",
    b"[1, ",
    b'"a\\u0062": ',
    b", ",
    b" x",
    b"\\",
    b"\xff",
]


@given(
    steps=st.lists(
        st.one_of(
            st.tuples(st.just("write"), st.sampled_from(PARTS)),
            st.tuples(st.just("suppose"), st.sampled_from(PARTS)),
            st.tuples(st.just("cut"), st.integers(0, 3)),
        ),
        max_size=30,
    )
)
def test_what_was_read_before_changes_nothing(steps: list[tuple[str, Any]]) -> None:
    """However a text came about, by writing, cutting and supposing, and whatever was asked of it on the way, its names
    and items are those of the text read afresh."""
    written, pieces = Written(), list[bytes]()
    for verb, operand in steps:
        supposed = b""
        if verb == "write":
            written.write(operand)
            pieces.append(operand)
        elif verb == "cut":
            del pieces[max(0, len(pieces) - operand) :]
            written.cut(len(b"".join(pieces)))
        else:
            supposed = operand
            written.suppose(supposed)
        text = b"".join(pieces) + supposed
        assert written.text() == text and len(written) == len(text)
        for ask in ("names", "items"):
            assert getattr(Written(text), ask)() == getattr(written, ask)()
        assert name_asks(Written(text)) == name_asks(written)
        written.suppose(b"")


def test_continuations_are_forgotten_with_the_text() -> None:
    """What is kept of the continuations of a text does not outlast it."""
    written = Written(b"[1")
    written.closed[7, b","] = 8
    written.suppose(b", ")
    assert written.closed == {(7, b","): 8}
    written.write(b", 2")
    assert written.closed == {}
    written.closed[7, b","] = 8
    written.cut(2)
    assert written.closed == {}


@pytest.mark.parametrize("count", [1, 2, 37, 300, 1_000])
def test_as_many_members_as_are_asked_for(count: int) -> None:
    """The shortest object of so many members gives each its own short name."""
    matcher = Grammar.from_json_schema({"type": "object", "minProperties": count}).bind(VOCABULARY).matcher()
    text = matcher.shortest_completion()
    assert matcher.shortest_length() == len(text) <= 10 * count
    assert len(json.loads(text)) == count


def test_names_in_objects_in_objects() -> None:
    """Names are short in each object anew, whatever names those around it have."""
    inner = {"type": "object", "minProperties": 3, "additionalProperties": {"type": "integer"}}
    schema = {"type": "object", "minProperties": 3, "additionalProperties": inner}
    value = json.loads(Grammar.from_json_schema(schema).bind(VOCABULARY).matcher().shortest_completion())
    assert [sorted(map(len, each)) for each in (value, *value.values())] == [[0, 1, 1]] * 4


@pytest.mark.timeout(60)
def test_shortest_texts_of_open_brackets_are_not_searched_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """What closes so many brackets is known from what closes one less: each further one takes a few steps."""
    steps = 0
    parts = ShortestTexts._parts

    def counted(self: ShortestTexts, node: int) -> Any:
        nonlocal steps
        steps += 1
        return parts(self, node)

    monkeypatch.setattr(ShortestTexts, "_parts", counted)
    for opening, closing in ((b"[", b"]"), (b'{"a": ', b"0}"), (b'[{"a": ', b"0}]")):
        matcher = Grammar.json().bind(VOCABULARY).matcher()
        assert all(matcher.accept_bytes(opening) for _ in range(6_000))
        steps = 0
        length = matcher.shortest_length()
        assert 6_000 <= length == len(matcher.shortest_completion()) and steps <= 20_000
        assert matcher.accept_bytes(opening)
        steps = 0
        assert matcher.shortest_length() - length == len(closing) - (b"0" in closing) and steps < 20


def test_a_name_repeated_at_the_end_of_a_token() -> None:
    """A token that ends with a whole name is in doubt, also before any place that looks back was met."""
    repeats = b'a", "a"'
    vocabulary = Vocabulary([*(bytes((byte,)) for byte in range(256)), repeats, None], eos=[257])
    schema = {"type": "object", "required": ["c"], "additionalProperties": {"enum": ["a"]}}
    matcher = Grammar.from_json_schema(schema, whitespace="flexible").bind(vocabulary).matcher()
    for byte in b'{"c":"a","a":"':
        assert 257 not in matcher.allowed_tokens()
        assert matcher.accept(byte)
    assert 256 not in matcher.allowed_tokens()
    assert not matcher.accept(256)


def test_the_contract_of_places_that_look_back() -> None:
    """What `toolgrammar.core.dependent` promises, on random schemas: a text's state is closed, can be finished, and does not depend
    on the pieces in which the text was written."""
    met = 0
    for seed in range(150):
        rng = random.Random(seed)
        unique = {"type": "array", "uniqueItems": True, "minItems": rng.randrange(3), "items": random_schema(rng, 1)}
        schema = rng.choice((unique, {**random_schema(rng, 2), "type": ["array", "object"], "uniqueItems": True}))
        try:
            constraint = Grammar.from_json_schema(schema, property_order=rng.choice(("any", "schema"))).bind(VOCABULARY)
        except (SchemaError, LimitError):
            continue
        store = constraint.program.store
        matcher, text = constraint.matcher(), b""
        for _ in range(25):
            allowed = [token for token in matcher.allowed_tokens() if VOCABULARY.tokens[token]]
            if not allowed:
                break
            marks = [token for token in allowed if token > 255 or token in b'",]}[{:01a']
            token = rng.choice(marks or allowed)
            assert matcher.accept(token)
            text += VOCABULARY.tokens[token] or b""
            state = matcher._place[1]
            assert not store.automaton.open_threads(state)
            completion = matcher.shortest_completion()
            again = constraint.matcher()
            middle = rng.randrange(len(text) + 1)
            assert again.accept_bytes(text[:middle]) and again.accept_bytes(text[middle:])
            assert again.allowed_tokens() == matcher.allowed_tokens()
            assert again.shortest_completion() == completion
            assert again.accept_bytes(completion) and again.is_accepting
        met += store.is_dependent
    assert met > 60


def test_the_members_of_earlier_objects_are_read_once() -> None:
    """With ``uniqueItems``, each item that is an object is compared with those before it by keys that are made once."""
    objects._short_member_keys.cache_clear()
    members = {"properties": {"a": {"type": "integer"}, "b": {"type": "string"}}, "required": ["a", "b"]}
    items = {"type": "object", **members, "additionalProperties": False}
    grammar = Grammar.from_json_schema({"type": "array", "uniqueItems": True, "items": items}, whitespace="single")
    matcher = grammar.bind(VOCABULARY).matcher()
    assert matcher.accept_bytes(json.dumps([{"a": at // 2, "b": "xy"[at % 2]} for at in range(40)]).encode())
    assert objects._short_member_keys.cache_info().misses <= 40
