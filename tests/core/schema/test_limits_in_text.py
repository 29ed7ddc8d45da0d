"""What a text meets when readings or nodes run short: alternatives are left out, and what was begun can be finished."""

from __future__ import annotations

import importlib
import json
import random
from fractions import Fraction
from itertools import product
from typing import Any

import jsonschema
import pytest

from toolgrammar.core import Grammar, LimitError, Vocabulary
from toolgrammar.core.automaton import lazy_dfa, states
from toolgrammar.core.automaton.completion import texts
from toolgrammar.core.language import nodes, term_kinds
from toolgrammar.core.language.multiples import suggested
from toolgrammar.core.language.terms import Terms
from toolgrammar.core.models.load import load_model
from toolgrammar.core.regex.compile import regex_term
from toolgrammar.core.validation import is_valid

from .writing import VOCABULARY, Tally, WritingError, judge, judge_seed

NAMES = [f"p{number}" for number in range(400)]
INTEGERS = {name: {"type": "integer"} for name in NAMES}
ARRAY, TEXT = {"type": "array"}, {"type": "string"}
MANY: dict[str, Any] = {
    "members in any order": {
        "type": "object",
        "properties": INTEGERS,
        "required": NAMES,
        "additionalProperties": False,
    },
    "a number of members in any order": {
        "type": "object",
        "properties": INTEGERS,
        "minProperties": 390,
        "additionalProperties": False,
    },
    "objects that begin alike": {
        "anyOf": [
            {"type": "object", "properties": {f"k{j}": {"const": i} for j in range(5)}, "maxProperties": 99}
            for i in range(450)
        ]
    },
    "arrays in arrays": {
        "$defs": {
            "n": {"anyOf": [{"type": "array", "items": {"$ref": "#/$defs/n"}, "minItems": k} for k in range(12)]}
        },
        "$ref": "#/$defs/n",
    },
    "ways to count items": {
        "type": "array",
        "allOf": [{"contains": {"minimum": number}, "maxContains": 5, "minContains": 2} for number in range(8)],
    },
}


@pytest.mark.parametrize("name", MANY)
def test_many_readings_and_nodes(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """No text meets an error; it can be finished validly, and `Grammar.narrowed` says what was left out."""
    monkeypatch.setattr(lazy_dfa, "SCARCE_NODES", 500)
    grammar = Grammar.from_json_schema(MANY[name], property_order="any")
    matcher = grammar.bind(VOCABULARY).matcher()
    rng = random.Random(1)
    written = b""
    for _ in range(60):
        opening = [token for token in matcher.allowed_tokens() if (VOCABULARY.tokens[token] or b"}") not in b"]}"]
        if not opening:
            break
        ends = [token for token in opening if VOCABULARY.tokens[token] in (b", ", b'"', b'": ')]
        token = rng.choice(ends or opening)
        assert matcher.accept(token)
        written += VOCABULARY.tokens[token] or b""
    completion = matcher.shortest_completion()
    assert matcher.accept_bytes(completion)
    assert jsonschema.Draft202012Validator(MANY[name]).is_valid(json.loads(written + completion))
    assert all(problem.left_out and problem.hint for problem in grammar.narrowed)
    assert grammar.narrowed


@pytest.mark.parametrize(
    ("scarce", "threads", "weighed"), [(10, 3, 20), (200, 6, 100), (1_000_000, 2, 10_000), (300, 2_048, 10_000)]
)
def test_the_judge_where_readings_and_nodes_are_few(
    scarce: int, threads: int, weighed: int, thorough: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Everything that the judge asks, except that a completion need not be the shortest."""
    monkeypatch.setattr(lazy_dfa, "SCARCE_NODES", scarce)
    monkeypatch.setattr(states, "MAX_THREADS", threads)
    monkeypatch.setattr(states, "FEW_THREADS", min(threads, states.FEW_THREADS))
    monkeypatch.setattr(texts, "MAX_SEARCHED", weighed)
    tally = Tally()
    count = 60 if thorough else 25
    for seed in range(count):
        try:
            judge_seed(seed, tally)
        except WritingError as error:
            if "is shorter" not in error.what:
                raise
    assert tally.outcomes["written"] > count * 2 / 3


#: Schemas of which a budget forces a text whose readings are dropped on the way.
DROPPED: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "items that must not repeat": (
        {**ARRAY, "uniqueItems": True, "minItems": 4, "contains": {"enum": ["\u00e9", 1]}, "minContains": 2},
        {},
    ),
    "listed items that must not repeat": (
        {**ARRAY, "items": {"enum": [[{"c": "b", "ab": "\u00e9", "\u00e9": 1.5}], 6, 0, {"a": [1.5, ""]}]}, "uniqueItems": True, "minItems": 4},
        {"property_order": "any", "whitespace": "flexible"},
    ),
    "members in any order": (
        {"type": "object", "properties": {"b": ARRAY}, "additionalProperties": {"type": "object", "required": ["a", "\u00e9"]}, "required": ["\u00e9"]},
        {"property_order": "any", "whitespace": "single"},
    ),
    "objects that count": (
        {**ARRAY, "items": {"type": "object", "additionalProperties": {"type": "object", "required": ["\u00e9", "c"]}, "required": ["ab", "c"]}, "contains": {"maxProperties": 3}, "minContains": 3},
        {"property_order": "any", "whitespace": "single"},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", DROPPED)
def test_budgets_where_readings_are_dropped(name: str, thorough: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a budget promised is kept: the text that completes it is among the readings that stay."""
    monkeypatch.setattr(lazy_dfa, "SCARCE_NODES", 300)
    schema, options = DROPPED[name]
    tally = Tally()
    count = 6 if thorough else 2
    for seed in range(count):
        judge(schema, {"whitespace": "compact", "property_order": "schema", "additional_properties": True, **options}, random.Random(seed), tally)  # fmt: skip
    assert tally.outcomes["written"] == count


#: Every limit of a schema that lowering may only meet once a text gets near, each at a value that random schemas reach.
LIMITS: list[tuple[str, str, Any]] = [
    ("core.schema.lower.merged_objects", "MAX_REGIONS", 1),
    ("core.schema.lower.merged_objects", "MAX_DEMANDS", 1),
    ("core.schema.lower.object_witnesses", "MAX_MET", 3),
    ("core.schema.lower.merged_objects", "MAX_WAYS", 1),
    ("core.schema.lower.arrays", "MAX_SPECIAL", 1),
    ("core.schema.lower.arrays", "MAX_AWAITED", 1),
    ("core.schema.lower.arrays", "_FEW", 1),
    ("core.schema.lower.values", "MAX_STEPS", 10),
    ("core.schema.scalars.numbers", "MAX_RESIDUES", 2),
    ("core.schema.normal.normalise", "MAX_BRANCHES", 3),
    ("core.schema.normal.normalise", "MAX_COMPOUNDS", 2),
    ("core.schema.normal.normalise", "MAX_STEPS", 10),
    ("core.schema.normal.normalise", "MAX_TOTAL", 40),
    ("core.schema.normal.unevaluated", "MAX_OPTIONS", 1),
    ("core.schema.keywords.any_value", "MAX_DIFFERENT", 1),
    ("core.regex.equations", "MAX_STATES", 3),
    ("core.regex.assertions", "MAX_PASTS", 2),
]


@pytest.mark.parametrize(("module", "name", "least"), LIMITS)
def test_the_judge_where_a_limit_is_low(module: str, name: str, least: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A limit of lowering is met when a schema is bound, or leaves something out; a text never meets it."""
    monkeypatch.setattr(importlib.import_module(f"toolgrammar.{module}"), name, least)
    tally = Tally()
    for seed in range(20):
        judge_seed(seed, tally)
    assert tally.outcomes["written"] > 10


@pytest.mark.parametrize("pattern", ["^/*$", r"^\u0001*$", r"^[/\\]*$"])
def test_names_with_many_spellings(pattern: str) -> None:
    """A name that has exponentially many spellings is repeated by all of them: the next one is found all the same."""
    schema = {"patternProperties": {pattern: {"type": "null"}}, "additionalProperties": False, "type": "object"}
    grammar = Grammar.from_json_schema({**schema, "minProperties": 60})
    matcher = grammar.bind(VOCABULARY).matcher()
    assert matcher.accept_bytes(b'{"\\u') if "u0001" in pattern else matcher.accept_bytes(b'{"')
    completion = matcher.shortest_completion()
    assert matcher.accept_bytes(completion) and matcher.is_accepting


VAST: dict[str, Any] = {
    "items of items": {"properties": {"a": {**ARRAY, "minItems": 3_000, "items": {**ARRAY, "minItems": 3_000}}}},
    "items of a tuple": {"properties": {"a": {"prefixItems": [{**ARRAY, "minItems": 9_000, "items": {**TEXT, "minLength": 900}}], **ARRAY, "minItems": 1}}},
    "texts among items": {"properties": {"a": {**ARRAY, "contains": {**TEXT, "minLength": 90_000}, "minContains": 90}}},
    "members twice on each level": {
        "$defs": {
            str(level): {"type": "object", "required": ["a", "b"], "additionalProperties": {"$ref": f"#/$defs/{level + 1}"}, "properties": {name: {"$ref": f"#/$defs/{level + 1}"} for name in "ab"}}
            for level in range(40)
        }
        | {"40": {}},
        "properties": {"a": {"anyOf": [{"$ref": "#/$defs/0"}, {"$ref": "#/$defs/1"}]}},
    },
}  # fmt: skip


@pytest.mark.parametrize("name", VAST)
def test_values_that_no_model_finishes(name: str) -> None:
    """Members whose counts and references multiply are left out, and told with their place; a text that was begun
    cannot meet them. Where they are required, the schema is refused."""
    schema = {"type": "object", **VAST[name]}
    grammar = Grammar.from_json_schema(schema)
    assert grammar.matches('{"b": 1}') and not grammar.begins('{"a"')
    assert "no model writes" in str(grammar.narrowed[0]) and grammar.narrowed[0].place.pointer == "/properties/a"
    with pytest.raises(LimitError, match="each value has at least"):
        _ = Grammar.from_json_schema({**schema, "required": ["a"]}).program


def test_values_that_are_long() -> None:
    """What is below the limit can be finished, also several times inside of itself."""
    inner = {**ARRAY, "minItems": 900, "items": {"type": "boolean"}}
    schema = {"properties": {"more": {"$ref": "#"}, "a": {**ARRAY, "minItems": 700, "items": inner}}, "required": ["a"]}
    matcher = Grammar.from_json_schema({"type": "object", **schema}).bind(VOCABULARY).matcher()
    assert matcher.accept_bytes(b'{"more": {"more": ')
    assert len(matcher.shortest_completion()) > 3 * 700 * 900 * 4
    recursive = {"anyOf": [{**ARRAY, "minItems": 9_000, "items": {"$ref": "#"}}, {"type": "null"}]}
    assert Grammar.from_json_schema(recursive).matches("null")


def test_a_format_that_is_longer_than_a_limit() -> None:
    """A long string of a format is deep in a wide space of states; it is found, and nothing is left out."""
    schema = {**ARRAY, "items": {"type": "string", "oneOf": [{"format": "date-time"}, {"maxLength": 127}]}}
    grammar = Grammar.from_json_schema(schema)
    matcher = grammar.bind(VOCABULARY).matcher()
    assert matcher.accept_bytes(b'["x", "2026-11-25T12:00:00.')
    assert matcher.accept_bytes(b"0" * 110 + b'Z"]') and matcher.is_accepting
    assert not grammar.matches('["2026-11-25T12:00:00Z"]') and not grammar.narrowed


#: Patterns of which a search visits millions of states, in any order, before it finds a string or knows that none is.
UNSEARCHABLE = ("^(?=[ab]*a[ab]{20}$)([ab]*b[ab]{20}|a{60})$", "^(?=[ab]*a[ab]{20}$)[ab]*b[ab]{20}$")


@pytest.mark.parametrize("pattern", UNSEARCHABLE)
def test_a_rule_beyond_a_limit_is_left_out(pattern: str) -> None:
    """An alternative that exceeds a limit when a text gets near it is not written; without others, it is an error."""
    with pytest.raises(LimitError):
        Grammar.from_json_schema({"pattern": pattern, "type": "string"}).bind(VOCABULARY)
    grammar = Grammar.from_json_schema({"items": {"anyOf": [{"pattern": pattern, "type": "string"}, {"type": "null"}]}})
    assert grammar.matches("[null, null]") and not grammar.matches('["a"]')
    assert [problem.left_out for problem in grammar.narrowed] == ["what exceeds this limit"]


def _small_stores(monkeypatch: pytest.MonkeyPatch, room: int) -> list[lazy_dfa.LazyAutomaton]:
    """Let each store from now on have room for so many terms, and count as full; return the stores that are made."""
    made: list[lazy_dfa.LazyAutomaton] = []
    begin = lazy_dfa.LazyAutomaton.__init__

    def small(self: lazy_dfa.LazyAutomaton, *arguments: Any, **options: Any) -> None:
        begin(self, *arguments, **options)
        self.nodes.terms.room = len(self.nodes.terms) + room
        made.append(self)

    monkeypatch.setattr(lazy_dfa.LazyAutomaton, "__init__", small)
    monkeypatch.setattr(lazy_dfa, "PROGRAM_MEMORY", 1)
    return made


@pytest.mark.parametrize("room", [40, 80, 160])
def test_the_judge_where_stores_are_small(room: int, thorough: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Everything that the judge asks, while texts move from one full store to the next; what no store can take is an
    error when it is bound."""
    made = _small_stores(monkeypatch, room)
    tally = Tally()
    count = 80 if thorough else 30
    for seed in range(count):
        judge_seed(seed, tally)
    assert tally.outcomes["written"] > count / 4 and len(made) > 5 * tally.outcomes["written"]


def test_a_text_of_more_states_than_a_store_has(monkeypatch: pytest.MonkeyPatch) -> None:
    """An automaton of a million states is written through without an error, within the memory of one store."""
    made = _small_stores(monkeypatch, 3_000)
    words = [bytes(word) for size in range(2, 6) for word in product(b"ab", repeat=size)]
    vocabulary = Vocabulary([*(bytes((byte,)) for byte in range(256)), *words, None], eos=[256 + len(words)])
    matcher = Grammar.from_json_schema({"pattern": "^(a|b)*a(a|b){20}$", "type": "string"}).bind(vocabulary).matcher()
    rng = random.Random(1)
    written = b""
    for _ in range(300):
        allowed = [token for token in matcher.allowed_tokens() if token >= 256 or not written]
        assert len(allowed) == (1 if not written else len(words))
        token = rng.choice(allowed)
        assert matcher.accept(token)
        written += vocabulary.tokens[token] or b""
    assert len(made) > 3 and all(len(store.nodes.terms) <= store.nodes.terms.room for store in made)
    matcher.rollback(250)
    assert matcher.accept_bytes(matcher.shortest_completion()) and matcher.is_accepting


def test_a_mask_of_more_states_than_a_store_has(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the tokens of one mask would fill a store, the mask has short tokens only, and so has what is accepted."""
    _small_stores(monkeypatch, 150)
    monkeypatch.setattr(nodes, "MAX_TERMS", 150)
    words = [bytes(word) for size in range(2, 9) for word in product(b"ab", repeat=size)]
    vocabulary = Vocabulary([*(bytes((byte,)) for byte in range(256)), *words, None], eos=[256 + len(words)])
    matcher = Grammar.from_json_schema({"pattern": "^(a|b)*a(a|b){20}$", "type": "string"}).bind(vocabulary).matcher()
    assert matcher.accept_bytes(b'"')
    sizes, rng = [], random.Random(1)
    for _ in range(30):
        allowed = set(matcher.allowed_tokens())
        assert allowed == {token for token in range(len(vocabulary)) if matcher.fork().accept(token)}
        sizes.append({len(vocabulary.tokens[token] or b"") for token in allowed})
        assert matcher.accept(rng.choice(sorted(allowed - {0x22})))
    assert {1, 2} in sizes
    assert matcher.accept_bytes(matcher.shortest_completion()) and matcher.is_accepting


#: Patterns of which a search for a string that the one has and the other lacks takes millions of states, after some
#: beginnings.
ENTANGLED = (
    "^([^ab-]{3,}){0,6}(b{8}cd|[^-]|[\\w-]+(c+\\S))0{3,}$",
    "^(\\S{1,3}([a-c]{0,6})?(\\d?(\\w{3,}d{0,6}[^ab-]{2}|[^a]*0{0,6}.{0,6}|e+c[^d]){2}|(e{1,3}ab|.*\\S){3,}ab{1,3})*)*$",
)


def test_patterns_that_take_too_long_to_tell_apart(thorough: bool) -> None:
    """Where nobody can tell in time whether a string can be finished, what is known to lead to an end is written."""
    terms = Terms()
    wanted, forbidden = (regex_term(terms, pattern, whole=False) for pattern in ENTANGLED)
    grammar = Grammar.from_json_schema({"type": "string", "pattern": ENTANGLED[0], "not": {"pattern": ENTANGLED[1]}})
    constraint = grammar.bind(VOCABULARY)
    dropped = 0
    for seed in range(2 if thorough else 1):
        rng = random.Random(seed)
        matcher = constraint.matcher()
        written = b""
        for _ in range(12):
            allowed = [token for token in matcher.allowed_tokens() if VOCABULARY.tokens[token]]
            if not allowed:
                break
            token = rng.choice(allowed)
            assert matcher.accept(token)
            written += VOCABULARY.tokens[token] or b""
        while not matcher.is_accepting:
            byte = matcher.shortest_completion()[:1]
            assert byte and matcher.accept_bytes(byte)
            written += byte
        value = json.loads(written)
        assert terms.matches(wanted, value) and not terms.matches(forbidden, value)
        dropped += matcher.has_dropped
    assert dropped


#: Several steps that meet in one number, and texts of the values that both hold of.
STEPS: dict[str, tuple[dict[str, Any], list[str], list[str]]] = {
    "few remainders together": (
        {"allOf": [{"multipleOf": 6.75}, {"multipleOf": 9.5}, {"multipleOf": 2.125}]},
        ["4360.5", "-8721", "0"],
        ["6.75", "111006015949"],
    ),
    "many remainders together": (
        {"patternProperties": {"a": {"multipleOf": 9.5}, "c": {"multipleOf": 86_400}}},
        ['{"ac": -1641600}', '{"a": 19, "c": -86400}', '{"ac": 0}'],
        ['{"ac": -86400}', '{"ac": 9.5}'],
    ),
    "one with many remainders": ({"multipleOf": 999_983}, ["12345469024458683"], ["12345469024458684"]),
    "within bounds": ({"multipleOf": 0.07, "minimum": 100_000, "maximum": 1_000_000}, ["100000.04"], ["100000.05"]),
}


@pytest.mark.parametrize("whitespace", ["single", "flexible"])
@pytest.mark.parametrize("name", STEPS)
def test_multiples_need_no_search(name: str, whitespace: Any) -> None:
    """A number that can be finished is known by its remainder: no text meets the limit of states, and few are made."""
    schema, right, wrong = STEPS[name]
    grammar = Grammar.from_json_schema(schema, whitespace=whitespace)
    matcher = grammar.bind(VOCABULARY).matcher()
    for text in right:
        assert grammar.matches(text) and is_valid(json.loads(text), schema)
        assert all(grammar.begins(text[:end]) for end in range(len(text)))
        assert matcher.fork().accept_bytes(text.encode())
    assert not any(map(grammar.matches, wrong))
    assert len(grammar.program.store.nodes.terms) < 100_000
    assert bool(grammar.narrowed) == (name == "many remainders together")


@pytest.mark.parametrize(("of", "places"), [(7, 0), (86_400, 0), (43_605, 1), (3, 2), (25, 3), (1_000, 1)])
def test_suggested_numbers_are_multiples(of: int, places: int) -> None:
    """What is suggested after some digits makes a multiple, and something is suggested wherever one is left."""
    terms = Terms()
    multiples = terms.multiples(of, places)
    rng = random.Random(of)
    for _ in range(100):
        begin = str(rng.randrange(10_000)) + rng.choice(("", "", ".", ".1", ".25"))
        term = multiples
        for character in begin:
            term = terms.derivative(term, ord(character))
        kind, arguments = terms.shape(term)
        if kind == term_kinds.MULTIPLE:
            texts = suggested(*arguments)
            assert all(Fraction(begin + text) % Fraction(of, 10**places) == 0 for text in texts if begin + text)
            assert texts or terms.is_empty(term)


def test_a_text_is_given_room() -> None:
    """A member that is left out, since it exceeds a limit, leaves room for the rest of the text."""
    schema = {
        "properties": {"a": {"type": "string", "format": "date-time"}},
        "patternProperties": {".*": {"oneOf": [{"maxLength": 4_096, "type": "string"}, {"not": {"type": "object"}}]}},
        "additionalProperties": False,
    }
    grammar = Grammar.from_json_schema(schema)
    assert not grammar.matches('{"a": "ab"}') and grammar.matches('{"b": [1]}') and not grammar.matches('{"b": "x"}')


def test_readings_dropped_between_what_is_held_and_what_follows() -> None:
    """A model writes a value to its end where a token that spans forced text and what follows needs a reading that was
    dropped between them."""
    of = ({"type": "integer", "multipleOf": prime} for prime in (2, 3, 5, 7, 11, 13))
    schema = {"type": "array", "allOf": [{"contains": each, "minContains": 2, "maxContains": 5} for each in of]}
    model = load_model("embedded")
    value = model.generate_json("hi", schema, max_tokens=60, temperature=1.0, seed=3, allow_cut=True)
    assert jsonschema.Draft202012Validator(schema).is_valid(value)
