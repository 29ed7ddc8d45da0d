"""Limits of a part of a value: the schema binds, what exceeds the limit is left out, and `Grammar.narrowed` says so."""

from __future__ import annotations

import json
import random
from typing import Any

import jsonschema
import pytest

from toolgrammar.core import Grammar, LimitError, ToolGrammarError
from toolgrammar.core.schema import compile
from toolgrammar.core.schema.lower import arrays, merged_objects
from toolgrammar.core.schema.normal.inhabited import Inhabited
from toolgrammar.core.schema.normal.normalise import Normaliser
from toolgrammar.core.schema.read.resolve import Document

from .writing import VOCABULARY


@pytest.fixture
def counts(monkeypatch: pytest.MonkeyPatch) -> dict[str, int]:
    """Numbers of normalisers made, and of goals brought to normal form."""
    found = {"made": 0, "goals": 0}

    class Counted(Normaliser):
        def __init__(self, *args: Any, **options: Any) -> None:
            found["made"] += 1
            super().__init__(*args, **options)

        def branches(self, goal: Any) -> Any:
            found["goals"] += 1
            return super().branches(goal)

    monkeypatch.setattr(compile, "Normaliser", Counted)
    return found


def patterns(letters: str) -> Any:
    """Return a schema whose patterns split the names of an object into as many sets as there are sets of letters."""
    return {"patternProperties": {letter: {"type": "string"} for letter in letters}}


#: Schemas that are harmless each, and exceed a limit where they constrain the same value.
TOGETHER: list[Any] = [
    {"allOf": [patterns("abcde"), patterns("fghij")]},
    {"anyOf": [patterns("fghij"), {"type": "null"}], **patterns("abcde")},
    {"anyOf": [{"anyOf": [{"$ref": "#/$defs/more"}]}], **patterns("abcde")},
    {"$ref": "#/$defs/more", **patterns("abcde")},
    {"dependentSchemas": {"x": patterns("fghij")}, **patterns("abcde")},
    {"if": {"required": ["x"]}, "then": patterns("fghij"), **patterns("abcde")},
    {"allOf": [{"properties": {"x": patterns("abcde")}}, {"additionalProperties": patterns("fghij")}]},
    {"allOf": [{"properties": {"x": patterns("abcde")}}, {"properties": {"x": {"$ref": "#/$defs/more"}}}]},
    {"properties": {"x": patterns("abcde")}, "patternProperties": {"x": {"$ref": "#/$defs/more"}}},
    {"properties": {"x": patterns("abcdefghij")}, "patternProperties": {"y": {"type": "object"}}},
    {"allOf": [{"properties": {"x": patterns("abcdefghij")}}, {"properties": {"y": True}}]},
]


def write(grammar: Grammar, begin: bytes, seed: int, length: int = 40) -> bytes:
    """Write a value at random after some text, and finish it by its shortest completion."""
    matcher, rng, written = grammar.bind(VOCABULARY).matcher(), random.Random(seed), begin
    assert matcher.accept_bytes(begin)
    for _ in range(length):
        allowed = [token for token in matcher.allowed_tokens() if VOCABULARY.tokens[token]]
        if not allowed:
            break
        token = rng.choice(allowed)
        assert matcher.accept(token)
        written += VOCABULARY.tokens[token] or b""
    return written + matcher.shortest_completion()


@pytest.mark.parametrize("schema", TOGETHER)
def test_a_part_beyond_a_limit(schema: Any) -> None:
    """A text goes on into the part without an error and can be finished, and the grammar says what was left out."""
    whole = {"properties": {"deep": schema, "a": {}}, "type": "object", "$defs": {"more": patterns("fghij")}}
    grammar = Grammar.from_json_schema(whole, additional_properties=False)
    begins = [begin for begin in (b"{", b'{"deep": ', b'{"deep": {"x": ') if grammar.begins(begin.decode())]
    for begin in begins:
        for seed in range(3):
            value = json.loads(write(grammar, begin, seed, 20 * seed))
            assert jsonschema.Draft202012Validator(whole).is_valid(value)
    assert [problem.left_out for problem in grammar.narrowed] == ["what exceeds this limit"]
    assert "patterns split" in str(grammar.narrowed[0])
    assert grammar.narrowed[0].place.pointer is not None


@pytest.mark.parametrize(
    ("part", "text", "keyword"),
    [
        ({"allOf": [{"contains": {"required": [name]}} for name in "abcdefgh"]}, "[2", "contains"),
        ({"allOf": [{"multipleOf": 9.5}, {"multipleOf": 86_400}, {"multipleOf": 7_919}]}, "1", "multipleOf"),
        ({"allOf": [patterns("abcde"), patterns("fghij")], "type": "object"}, "{", None),
    ],
    ids=["contains", "multipleOf", "patterns"],
)
def test_what_is_left_out_has_a_place(part: Any, text: str, keyword: str | None) -> None:
    """Rules of conjunctions name the first schema of the conjunction that they are of."""
    whole = {"properties": {"a": {"anyOf": [part, {"type": "null"}]}, "b": {}}, "type": "object"}
    for order in ("schema", "any"):
        grammar = Grammar.from_json_schema(whole, property_order=order)
        grammar.begins('{"a": ' + text)
        (narrowed,) = grammar.narrowed
        assert narrowed.place.pointer.startswith("/properties/a") and narrowed.place.keyword == keyword


@pytest.mark.parametrize("schema", TOGETHER[:6])
@pytest.mark.parametrize("on_unsupported", ["narrow", "error"])
def test_a_whole_beyond_a_limit(schema: Any, on_unsupported: Any) -> None:
    """Where the value itself exceeds a limit, nothing is left to write, so the schema is refused when it is bound."""
    whole = {**schema, "$defs": {"more": patterns("fghij")}}
    with pytest.raises(LimitError, match="patterns split"):
        _ = Grammar.from_json_schema(whole, on_unsupported=on_unsupported).program


def test_a_needed_part_beyond_a_limit() -> None:
    """A part that must be there, and is not known to have another value, makes the schema be refused."""
    needed = {**patterns("abcdefghij"), "type": "object", "minProperties": 1}
    with pytest.raises(LimitError, match="patterns split"):
        _ = Grammar.from_json_schema({"properties": {"a": needed}, "required": ["a"], "type": "object"}).program
    optional = Grammar.from_json_schema({"properties": {"a": needed}, "type": "object"}, additional_properties=False)
    assert optional.matches("{}") and not optional.begins('{"a": ') and optional.narrowed


def test_a_tool_beyond_a_limit() -> None:
    """A schema that is one case of a grammar keeps its empty value."""
    tangled = {**patterns("abcdefghij"), "type": "object"}
    cases = Grammar.cases({"one ": Grammar.from_json_schema(tangled), "two ": "x"})
    assert cases.matches("one {}") and cases.matches("two x") and cases.narrowed


def test_nothing_is_normalised_before_a_text_needs_it(counts: dict[str, int]) -> None:
    """Only the root is brought to normal form when a grammar is made, however much its parts may exceed."""
    parts = {f"p{index}": schema for index, schema in enumerate(TOGETHER)}
    _ = Grammar.from_json_schema({"properties": parts, "$defs": {"more": patterns("fghij")}}).program
    before = counts["goals"]
    parts |= {f"{name}{index}": {**schema} for name, schema in parts.items() for index in range(20)}
    _ = Grammar.from_json_schema({"properties": parts, "$defs": {"more": patterns("fghij")}}).program
    assert before < 3 * len(TOGETHER)
    assert counts["goals"] - before < 25 * before


def test_the_check_and_the_lowering_have_one_normal_form(counts: dict[str, int]) -> None:
    """What the check found out about alternatives, the lowering does not find out again."""
    option = {"properties": {"kind": {"type": "string"}, "value": {"type": "number"}}, "required": ["kind"]}
    union = {"oneOf": [{**option, "required": ["kind", name]} for name in "abc"]}
    grammar = Grammar.from_json_schema({"properties": {"a": union, "b": {"not": {"required": ["c"]}}}})
    assert grammar.matches('{"a": {"kind": "x", "a": 1}}')
    assert counts["made"] == 1


WITNESSED: list[Any] = [
    True,
    {"maxLength": 3},
    {"type": ["object", "string"], "required": ["a"], "minLength": 2, "properties": {"a": {"enum": ["x", 1]}}},
    {"type": "object", "required": ["a", "b"], "properties": {"a": {"$ref": "#/$defs/n"}, "b": {"minItems": 1, "type": "array"}}},
    {"type": "array", "minItems": 2, "items": {"anyOf": [False, {"const": [1]}]}},
    {"type": ["number", "array"], "minimum": 5, "maximum": 9, "minItems": 3},
    {"type": "integer", "maximum": -5},
    {"type": "array", "minItems": 0, "items": {"$ref": "#/$defs/never"}},
    {"type": "array", "minItems": 1, "uniqueItems": True},
]  # fmt: skip


@pytest.mark.parametrize("schema", WITNESSED)
def test_witnesses_are_valid(schema: Any) -> None:
    """The value that is named for a schema satisfies it."""
    document = schema if schema is True else {**schema, "$defs": {"n": {"type": "null"}}}
    known = Inhabited(Document(document))
    assert known.is_inhabited(document)
    (value,) = known.witness(document) or ()
    assert jsonschema.Draft202012Validator(document).is_valid(value)


@pytest.mark.parametrize(
    ("module", "name", "least", "schema"),
    [
        (arrays, "MAX_SPECIAL", 1, {"uniqueItems": True, "contains": {"enum": [1, 2]}, "items": {"enum": [1, 2, 3]}}),
        (
            merged_objects,
            "MAX_WAYS",
            1,
            {"not": {"oneOf": [{"additionalProperties": {"minimum": least}} for least in range(3)]}},
        ),
    ],
)
def test_every_limit_of_a_part(
    module: Any, name: str, least: int, schema: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Limits of arrays and of demands are met by a part without an error, too."""
    monkeypatch.setattr(module, name, least)
    grammar = Grammar.from_json_schema({"type": "array", "items": schema, "maxItems": 2})
    for seed in range(6):
        value = json.loads(write(grammar, b"[", seed))
        assert jsonschema.Draft202012Validator({"items": schema}).is_valid(value)
    assert grammar.narrowed
    with pytest.raises(ToolGrammarError):
        _ = Grammar.from_json_schema({**schema, "type": ["array", "object"]}).bind(VOCABULARY)


#: Values of which no model finishes one, each in a form that has no lower count: the failure of an upper bound, alone or
#: level by level, and parts that are needed in ways that the check of the document does not multiply.
VAST: dict[str, Any] = {
    "characters": {"type": "string", "not": {"maxLength": 1e300}},
    "items": {"type": "array", "not": {"maxItems": 10**9}},
    "members": {"type": "object", "not": {"maxProperties": 10**7}},
    "contained items": {"type": "array", "not": {"contains": {"const": 1}, "maxContains": 1e300, "minContains": 0}},
    "else": {"type": "string", "if": {"maxLength": 10**8}, "then": False, "else": {"minLength": 2}},
    "lists in lists": {
        "type": "array",
        "not": {"maxItems": 9_000},
        "items": {"type": "array", "not": {"maxItems": 9_000}},
    },
    "lists on forty levels": {
        "$ref": "#/$defs/l0",
        "$defs": {
            **{
                f"l{n}": {"type": "array", "not": {"maxItems": 1}, "items": {"$ref": f"#/$defs/l{n + 1}"}}
                for n in range(40)
            },
            "l40": {"type": "null"},
        },
    },
    "members on forty levels": {
        "$ref": "#/$defs/m0",
        "$defs": {
            **{
                f"m{n}": {
                    "type": "object",
                    "properties": {name: {"$ref": f"#/$defs/m{n + 1}"} for name in "ab"},
                    "not": {"anyOf": [{"not": {"required": ["a"]}}, {"properties": {"b": False}}]},
                }
                for n in range(40)
            },
            "m40": {"type": "null"},
        },
    },
}


@pytest.mark.parametrize("order", ["schema", "any"])
@pytest.mark.parametrize("kind", VAST)
def test_values_that_no_model_finishes(kind: str, order: Any) -> None:
    """Values that are too long only because an upper bound must fail are left out and told, alone they are refused when
    the schema is bound, and every text that is accepted can be finished."""
    vast = {key: value for key, value in VAST[kind].items() if key != "$defs"}
    shared = {"$defs": VAST[kind].get("$defs", {})}
    for whole in (vast, {"type": "object", "properties": {"a": vast}, "required": ["a"]}):
        with pytest.raises(LimitError, match="no model writes"):
            _ = Grammar.from_json_schema({**whole, **shared}, property_order=order).program
    beside = {"type": ["integer", "object"], "maxProperties": 1}
    for whole in ({"anyOf": [beside, vast]}, {"type": "object", "properties": {"a": {"anyOf": [vast, beside]}}}):
        grammar = Grammar.from_json_schema({**whole, **shared}, property_order=order, whitespace="flexible")
        assert grammar.matches("1") == ("anyOf" in whole)
        for begin in (b"", b"[", b'"', b"{", b'{"a": ', b'{"a": [[', b'{"a": {"a": {"a', b'{"ab": 1'):
            if grammar.begins(begin.decode()):
                assert len(write(grammar, begin, seed=len(begin), length=12)) < 200
        (told,) = {problem.left_out for problem in grammar.narrowed}
        assert told == "what exceeds this limit" and "no model writes" in str(grammar.narrowed[0])


def test_an_option_that_only_vast_strings_satisfy() -> None:
    """Strings that a oneOf allows beyond a huge maximum are left out, and its other values are written."""
    schema = {"oneOf": [{"type": "string", "maxLength": 1e300}, {"type": ["string", "object"]}]}
    for order in ("schema", "any"):
        grammar = Grammar.from_json_schema(schema, property_order=order, whitespace="flexible")
        assert grammar.matches("{}") and not grammar.begins('"') and grammar.narrowed
