"""Abuses: an answer or a clear error, within seconds and bounded memory."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

import pytest

from toolgrammar.core import (
    Grammar,
    InvalidSchemaError,
    LimitError,
    ToolGrammarError,
    UnsatisfiableSchemaError,
    UnsupportedSchemaError,
)
from toolgrammar.core.schema import every_problem
from toolgrammar.core.schema.lower.object_rules import AfterNameRule
from toolgrammar.core.schema.lower.objects import ObjectLowering
from toolgrammar.core.schema.lower.values import GoalValues
from toolgrammar.core.validation import is_valid

from ...bombs import count_bombs, reference_bombs
from ...counted import at_most
from ...vocabularies import BYTES

pytestmark = pytest.mark.timeout(30)


def chain(depth: int, wrap: Callable[[Any], dict[str, Any]]) -> dict[str, Any]:
    """A schema nested so many levels deep."""
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(depth):
        schema = wrap(schema)
    return schema


@pytest.mark.parametrize(
    ("schema", "text"),
    [
        pytest.param(
            chain(10_000, lambda inner: {"type": "object", "properties": {"a": inner}, "required": ["a"]}),
            '{"a": ' * 10_000 + '"x"' + "}" * 10_000,
            id="properties",
        ),
        pytest.param(
            chain(10_000, lambda inner: {"type": "array", "items": inner}), "[" * 9_000 + "]" * 9_000, id="items"
        ),
        pytest.param(chain(10_000, lambda inner: {"anyOf": [inner]}), '"x"', id="anyOf"),
        pytest.param(chain(10_000, lambda inner: {"allOf": [inner]}), '"x"', id="allOf"),
        pytest.param(chain(2_000, lambda inner: {"oneOf": [inner]}), '"x"', id="oneOf"),
    ],
)
@pytest.mark.timeout(100)  # four times derived, at some 3 s each
def test_ten_thousand_levels(schema: dict[str, Any], text: str) -> None:
    """A schema 10,000 levels deep is enforced: texts, masks and shortest completions."""
    grammar = Grammar.from_json_schema(schema)
    assert grammar.matches(text) and not grammar.matches(text + "x")
    matcher = grammar.bind(BYTES).matcher()
    assert matcher.allowed_tokens()
    assert grammar.matches(matcher.shortest_completion())


def test_hundred_thousand_strings() -> None:
    """An enumeration of 100,000 strings is a trie, not 100,000 alternatives."""
    grammar = Grammar.from_json_schema({"enum": [f"value {number}" for number in range(100_000)]})
    assert grammar.matches('"value 77777"') and not grammar.matches('"value 100000"')
    matcher = grammar.bind(BYTES).matcher()
    assert matcher.forced_bytes() == b'"value '
    assert matcher.constraint.counters()["states"] < 1_000


@pytest.mark.parametrize(
    ("pattern", "text", "expected"),
    [
        ("^(a|a)*b$", "a" * 5_000 + "b", True),
        ("^(a*)*b$", "a" * 5_000, False),
        ("^(a|b)*a(a|b){12}$", "ab" * 200 + "a" * 13, True),
        ("^(?=.*[A-Z])(?=.*[0-9]).{8,}$", "abcA1234", True),
    ],
)
def test_patterns_that_hang_backtrackers(pattern: str, text: str, expected: bool) -> None:
    """Patterns are automata: no backtracking."""
    assert Grammar.from_json_schema({"type": "string", "pattern": pattern}).matches(json.dumps(text)) is expected


def test_long_patterns_are_denied() -> None:
    """What thousands of parts, one behind the other, must not be is anything else, as a value and as a name."""
    pattern = "^" + "(ab|c)" * 2_000 + "$"
    value = Grammar.from_json_schema({"type": "string", "not": {"pattern": pattern}})
    name = Grammar.from_json_schema({"type": "object", "patternProperties": {pattern: False}, "minProperties": 1})
    for text, expected in (("c" * 2_000, False), ("c" * 1_999, True), ("c" * 1_999 + "ab", False)):
        assert value.matches(f'"{text}"') is expected
        assert name.matches(f'{{"{text}": 1}}') is expected


def test_an_exponential_pattern_answers_or_hits_the_limit() -> None:
    """Where the automaton itself is exponential, masks still come at once, and the shortest text too."""
    grammar = Grammar.from_json_schema({"type": "string", "pattern": "^(a|b)*a(a|b){30}$"})
    matcher = grammar.bind(BYTES).matcher()
    assert matcher.allowed_tokens() == [0x22]
    assert len(matcher.shortest_completion()) == 33


LOOPS: list[dict[str, Any]] = [
    {"$ref": "#"},
    {"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}},
    {"anyOf": [{"type": "null"}, {"$ref": "#"}]},
    {"allOf": [{"$ref": "#/allOf/0"}]},
    {"allOf": [{"$ref": "#"}, {"$ref": "#"}]},
    {"type": "string", "not": {"$ref": "#"}},
    {"type": "string", "if": {"$ref": "#"}, "then": {"minLength": 2}},
    {"type": "string", "allOf": [{"anyOf": [{"$ref": "#"}, {"minLength": 2}]}]},
    {"type": "string", "oneOf": [{"$ref": "#"}, {"minLength": 2}]},
    {"allOf": [{"$ref": "#"}], "properties": {"a": {}}, "unevaluatedProperties": False},
]


@pytest.mark.parametrize("schema", LOOPS, ids=str)
def test_reference_loops_are_named(schema: dict[str, Any]) -> None:
    """A reference that leads to itself without describing anything is an error that names the place."""
    with pytest.raises(InvalidSchemaError, match="refers to itself") as caught:
        Grammar.from_json_schema(schema).program  # noqa: B018 - lowering is what finds it
    assert caught.value.place.keyword == "$ref" and caught.value.hint


#: A schema that is a conjunction of itself and others, and one of two that are conjunctions of each other.
JOINED: list[dict[str, Any]] = [
    {"a": {"type": "string", "allOf": [{"$ref": "#/$defs/a"}, {"minLength": 2}]}},
    {"a": {"type": "string", "minLength": 2, "$ref": "#/$defs/a"}},
    {
        "a": {"allOf": [{"minLength": 2}, {"$ref": "#/$defs/b"}]},
        "b": {"type": "string", "allOf": [{"$ref": "#/$defs/a"}]},
    },
]


@pytest.mark.parametrize("definitions", JOINED, ids=str)
def test_a_conjunction_with_itself_is_that_of_the_others(definitions: dict[str, Any]) -> None:
    """A loop of references through ``allOf`` alone adds nothing, and is followed once, negated too."""
    accepts = {name: {"$ref": f"#/$defs/{name}", "$defs": definitions} for name in definitions}
    for schema in accepts.values():
        grammar = Grammar.from_json_schema(schema)
        assert [grammar.matches(text) for text in ('"ab"', '"a"', "1")] == [True, False, False]
        assert not grammar.narrowed
    denied = Grammar.from_json_schema({"not": {"$ref": "#/$defs/a"}, "$defs": definitions})
    assert [denied.matches(text) for text in ('"ab"', '"a"', "1")] == [False, True, True]
    one = {"oneOf": [{"$ref": "#/$defs/a"}, {"const": "a"}, {"const": "ab"}], "$defs": definitions}
    assert [Grammar.from_json_schema(one).matches(text) for text in ('"ab"', '"a"', '"abc"')] == [False, True, True]


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "#name", "$defs": {"a": 3}},
        {"$ref": "other", "$defs": {"a": "text"}},
        {"properties": {"a": {"$id": "http://[", "$ref": "other"}}},
        {"$id": 3, "$ref": "#name"},
        {"$id": 3, "properties": {"a": {"$id": "http://a/b"}}},
        {"oneOf": [{"maxItems": float("inf")}, {"minItems": 2}]},
    ],
    ids=str,
)
def test_what_is_malformed_beside_the_way_is_named(schema: dict[str, Any]) -> None:
    """Addresses are looked for in all of a document: what is no schema there is an error of ours."""
    with pytest.raises(InvalidSchemaError):
        Grammar.from_json_schema(schema)


def test_numbers_of_derived_classes() -> None:
    """A float whose class prints it in a way of its own is that number."""

    class Printed(float):
        def __repr__(self) -> str:
            return f"Printed({float(self)})"

    grammar = Grammar.from_json_schema({"type": "number", "minimum": Printed(2.5)})
    assert grammar.matches("2.5") and not grammar.matches("2.4")


@pytest.mark.parametrize("order", ["schema", "any"])
@pytest.mark.parametrize("whitespace", ["single", "flexible"])
def test_lone_surrogates_are_escapes(order: Any, whitespace: Any) -> None:
    """What UTF-8 cannot carry is written as an escape, in values and in names, and no such name is repeated."""
    schema = {"properties": {"\ud800": {"enum": ["\udc00x", "b"]}, "c": {}}, "required": ["\ud800"], "type": "object"}
    grammar = Grammar.from_json_schema(schema, property_order=order, whitespace=whitespace)
    assert grammar.matches(rb'{"\ud800": "\udc00x"}') and grammar.matches(rb'{"\ud800": "b"}')
    assert not grammar.matches('{"\ud800": "b"}'.encode("utf-8", "surrogatepass"))
    assert not grammar.matches(rb'{"\ud800": "b", "\ud800": "b"}')
    matcher = grammar.bind(BYTES).matcher()
    assert json.loads(matcher.shortest_completion().decode()) == {"\ud800": "b"}


def test_infinite_recursion_is_unsatisfiable() -> None:
    """An object that must hold itself can never be written."""
    with pytest.raises(UnsatisfiableSchemaError):
        Grammar.from_json_schema({"type": "object", "properties": {"a": {"$ref": "#"}}, "required": ["a"]}).program  # noqa: B018


def test_cyclic_python_objects() -> None:
    """A Python dict that holds itself is a recursive schema."""
    schema: dict[str, Any] = {"type": "object", "properties": {}}
    schema["properties"]["self"] = schema
    grammar = Grammar.from_json_schema(schema)
    assert grammar.matches('{"self": {"self": {}}}') and not grammar.matches('{"self": 1}')
    assert grammar == Grammar.from_json_schema(schema)


def test_four_megabytes_are_lowered_where_the_text_goes() -> None:
    """A 4 MB schema is checked once, and lowered only where a text reaches it."""
    inner = {f"p{number}": {"type": "string", "description": "x" * 40} for number in range(20)}
    schema = {
        "type": "object",
        "properties": {
            f"property_{number}": {"type": "object", "properties": dict(inner), "required": ["p3"]}
            for number in range(2_500)
        },
    }
    assert len(json.dumps(schema)) > 3_000_000
    grammar = Grammar.from_json_schema(schema)
    assert grammar.matches('{"property_2": {"p3": "x"}}') and not grammar.matches('{"property_2": {"p4": "x"}}')
    assert grammar.bind(BYTES).matcher().shortest_completion() == b"{}"


@pytest.mark.parametrize("keyword", ["minLength", "minItems"])
def test_minima_that_no_model_writes(keyword: str) -> None:
    """A billion characters or items are refused by name."""
    with pytest.raises(LimitError, match="1,000,000,000") as caught:
        Grammar.from_json_schema({keyword: 10**9})
    assert caught.value.place.keyword == keyword


@pytest.mark.parametrize("most", [10**6, 10**9, 10**30])
def test_huge_maxima_cost_nothing(most: int) -> None:
    """Upper bounds are counted, not unrolled."""
    grammar = Grammar.from_json_schema(
        {
            "anyOf": [
                {"type": "string", "maxLength": most},
                {"type": "array", "items": {"type": "null"}, "maxItems": most},
            ]
        }
    )
    assert grammar.matches('"abc"') and grammar.matches("[null, null]")
    assert grammar.program.automaton.counters()["rows"] < 100


def test_alternatives_are_bounded() -> None:
    """Two to the power of twenty alternatives hit a stated limit that names the place."""
    parts = [{"anyOf": [{"contains": {"const": f"{letter}{index}"}} for letter in "ab"]} for index in range(20)]
    with pytest.raises(LimitError, match="alternatives"):
        Grammar.from_json_schema({"type": "array", "allOf": parts}).program  # noqa: B018


def test_a_thousand_alternatives() -> None:
    """A thousand object alternatives work."""
    options = [
        {"type": "object", "properties": {f"a{index}": {"type": "string"}}, "required": [f"a{index}"]}
        for index in range(1_000)
    ]
    grammar = Grammar.from_json_schema({"anyOf": [{**option, "additionalProperties": False} for option in options]})
    assert grammar.matches('{"a500": "x"}') and not grammar.matches('{"a500": "x", "a1": "x"}')


KEYWORDS = [
    "type",
    "properties",
    "required",
    "additionalProperties",
    "items",
    "prefixItems",
    "minItems",
    "maxItems",
    "enum",
    "const",
    "anyOf",
    "allOf",
    "oneOf",
    "$ref",
    "$defs",
    "minLength",
    "maxLength",
    "pattern",
    "format",
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "nullable",
    "uniqueItems",
    "minProperties",
    "maxProperties",
    "additionalItems",
    "$id",
    "$schema",
    "not",
    "if",
    "then",
    "patternProperties",
    "propertyNames",
    "multipleOf",
    "contains",
    "minContains",
    "dependencies",
    "dependentRequired",
    "dependentSchemas",
    "unevaluatedProperties",
    "$anchor",
    "$dynamicRef",
]
VALUES: list[Any] = [
    None, True, False, 0, -1, 1.5, float("nan"), float("inf"), "x", "(", [], [1], ["a", "a"], [None], {}, {"a": 1},
    {"a": {}}, [{}], {1: 2}, 10**30, b"x", set(), [[]], (1,), object(), {"a": ["b"]}, {"(": True},
]  # fmt: skip


@pytest.mark.parametrize("keyword", KEYWORDS)
def test_malformed_keywords(keyword: str) -> None:
    """Any keyword with any value either compiles or is an error of ours, never a raw one; `check` agrees."""
    for value in VALUES:
        for extra in ({}, {"type": "string"}, {"type": "object"}, {"type": "array"}, {"type": "number"}):
            schema = {**extra, keyword: value}
            try:
                grammar = Grammar.from_json_schema(schema)
                for text in ('"a"', '{"a": 1}', "[1]", "1"):
                    grammar.matches(text)
            except ToolGrammarError as error:
                assert error.message and error.code
            else:
                assert every_problem(schema) == []


def nested(levels: int, wrap: Callable[[Any], Any], inner: Any) -> Any:
    """A schema inside of so many others."""
    for _ in range(levels):
        inner = wrap(inner)
    return inner


@pytest.mark.parametrize(
    ("schema", "least"),
    [
        (nested(10, lambda items: {"type": "array", "uniqueItems": True, "items": items}, {"type": "integer"}), 2),
        (nested(50, lambda each: {"minProperties": 1, "maxProperties": 3, "additionalProperties": each}, {}), 1),
        (nested(3_000, lambda each: {"type": "object", "additionalProperties": each}, {"type": "integer"}), 2),
        ({"enum": [{"a": each, "b": [each]} for each in range(20_000)]}, 18),
        ({"not": {"enum": [f"v{each}" for each in range(100_000)]}}, 1),
    ],
    ids=["uniqueItems", "minProperties", "additionalProperties", "enum", "not enum"],
)
@pytest.mark.timeout(60)
def test_deep_and_wide_schemas_are_finished(schema: Any, least: int) -> None:
    """What nests or lists a lot is bound, masked and finished."""
    matcher = Grammar.from_json_schema(schema).bind(BYTES).matcher()
    assert matcher.allowed_tokens() and matcher.shortest_length() == len(matcher.shortest_completion()) == least


@pytest.mark.parametrize(
    ("schema", "options", "keyword"),
    [
        ({"enum": [{"a": each} for each in range(20_000)]}, {"property_order": "any"}, "enum"),
        ({"enum": [[each] for each in range(20_000)]}, {"whitespace": "flexible"}, "enum"),
        ({"not": {"enum": [{"a": each} for each in range(20_000)]}}, {}, "enum"),
    ],
    ids=["any order", "any spacing", "denied"],
)
@pytest.mark.timeout(60)
def test_lists_that_are_too_long_are_refused_by_name(schema: Any, options: Any, keyword: str) -> None:
    """Thousands of objects that can be written in many ways are an error with a place and a way out."""
    with pytest.raises(LimitError, match=r"20,000 (listed )?arrays and objects") as caught:
        Grammar.from_json_schema(schema, **options).bind(BYTES)
    assert caught.value.place.keyword == keyword and caught.value.hint


@pytest.mark.timeout(60)
def test_members_that_need_members() -> None:
    """Ten levels of 25 required members each: the length of the shortest text is known, and no text is begun."""
    levels: dict[str, Any] = {"d10": {"type": "integer"}}
    for level in range(10):
        members = {f"p{index}": {"$ref": f"#/$defs/d{level + 1}"} for index in range(25)}
        levels[f"d{level}"] = {"type": "object", "properties": members, "required": list(members)}
    with pytest.raises(LimitError, match="each value has at least") as raised:
        _ = Grammar.from_json_schema({"$ref": "#/$defs/d0", "$defs": levels}).program
    size = re.search(r"at least ([\d,]+) bytes", str(raised.value))
    assert size is not None and int(size[1].replace(",", "")) > 25**10
    # Three levels are within the limit, and their text is written out.
    matcher = Grammar.from_json_schema({"$ref": "#/$defs/d7", "$defs": levels}).bind(BYTES).matcher()
    assert 25**3 < matcher.shortest_length() == len(matcher.shortest_completion())


@pytest.mark.parametrize(
    "way",
    [
        lambda link: link,
        lambda link: {"allOf": [link, {"type": "object"}]},
        lambda link: {"anyOf": [link, link]},
        lambda link: {"oneOf": [link]},
        lambda link: {"type": "array", "items": link, "minItems": 1},
        lambda link: {"type": "array", "items": [link], "additionalItems": link, "minItems": 2},
        lambda link: {"type": "array", "contains": link},
    ],
    ids=["$ref", "allOf", "anyOf", "oneOf", "items", "first items", "contains"],
)
def test_members_that_need_three_members(way: Any) -> None:
    """Whatever leads from level to level, 16 levels of three members each are refused when the grammar is made, and
    left out where they are optional."""
    levels: dict[str, Any] = {"d16": {"type": "integer"}}
    for level in range(16):
        members = {name: way({"$ref": f"#/definitions/d{level + 1}"}) for name in ("a", "b", "c")}
        levels[f"d{level}"] = {"type": "object", "properties": members, "required": list(members)}
    draft = "http://json-schema.org/draft-07/schema#"
    with pytest.raises(LimitError, match="each value has at least"):
        _ = Grammar.from_json_schema({"$schema": draft, "definitions": levels, "allOf": [levels["d0"]]}).program
    optional = {"$schema": draft, "type": "object", "properties": {"x": levels["d0"]}, "definitions": levels}
    grammar = Grammar.from_json_schema(optional)
    assert grammar.matches("{}") and not grammar.begins('{"x"') and grammar.narrowed


@pytest.mark.parametrize("pattern", ["^(?:(?<!a.{20})b|a|c)*$"])
@pytest.mark.parametrize("keyword", ["pattern", "patternProperties", "not"])
def test_valid_patterns_that_cannot_be_enforced(pattern: str, keyword: str) -> None:
    """They are not supported, which is not invalid: what is left out is named, and checked afterwards."""
    schemas: dict[str, dict[str, Any]] = {
        "pattern": {"pattern": pattern},
        "patternProperties": {"patternProperties": {pattern: {"type": "integer"}}},
        "not": {"not": {"pattern": pattern}},
    }
    schema = {"items": schemas[keyword]}
    with pytest.raises(UnsupportedSchemaError) as caught:
        Grammar.from_json_schema(schema)
    assert caught.value.hint and caught.value.place.offset is not None
    assert caught.value.place.pointer == ("/items/not" if keyword == "not" else "/items")
    grammar = Grammar.from_json_schema(schema, on_unsupported="validate")
    assert [each.place for each in grammar.unenforced] == [caught.value.place]
    assert grammar.matches('["x"]')


#: Schemas whose options refer to the whole, so that "no value" of one depends on that of others.
RECURSIVE: list[dict[str, Any]] = [
    {"oneOf": [{"items": {"$ref": "#"}}, {"contains": {"$ref": "#"}}, {"contains": {"type": "number"}}]},
    {
        "oneOf": [
            {"anyOf": [{"items": {"$ref": "#"}}, {"contains": {"type": "number"}}]},
            {"contains": {"$ref": "#"}},
        ]
    },
]


@pytest.mark.parametrize("schema", RECURSIVE)
def test_a_search_for_a_value_is_not_repeated(schema: dict[str, Any]) -> None:
    """What depends on a search in progress is searched once, until that search finds a value."""
    grammar = Grammar.from_json_schema({"type": "array", **schema})
    grammar.bind(BYTES)
    texts = ("[]", "[1]", "[[1], [[]]]", "[[]]", "[[], [1]]", "[1, [1]]", "[[[]]]", "[[[1]]]")
    assert [text for text in texts if grammar.matches(text)] == ["[]", "[1]", "[[1], [[]]]"]
    assert grammar.program.store.nodes.met < 5_000


@pytest.mark.parametrize(
    "schema",
    [
        pytest.param(schema, id=name, marks=pytest.mark.slow if (number + number // 6) % 2 else [])
        for number, (name, schema) in enumerate(reference_bombs())  # six of each way to refer
        if name.startswith(("oneOf", "anyOf", "unevaluated"))
    ],
)
def test_references_that_multiply_are_counted(schema: dict[str, Any]) -> None:
    """Whatever a level of references adds, each step of the expansion and each comparison of alternatives counts."""
    with at_most(12_000_000):
        try:
            Grammar.from_json_schema(schema).check()
        except ToolGrammarError as error:
            assert error.hint or isinstance(error, UnsatisfiableSchemaError)


@pytest.mark.parametrize(
    "schema",
    [
        pytest.param(schema, id=name)
        for name, schema in count_bombs()
        if "members" in name and name.startswith(("100 ", "1000 ")) and "2 deep" not in name
    ],
)
def test_members_that_multiply_are_refused(schema: dict[str, Any]) -> None:
    """Counts of members multiply through the values of undeclared members, and the lengths of their names."""
    with pytest.raises(LimitError, match="no model writes more than 4,000,000"):
        _ = Grammar.from_json_schema(schema).program


def test_members_in_members_are_completed_in_linear_time() -> None:
    """Objects in an object have the same names, which are found once: each member takes as many steps."""
    lengths = []
    for count in (40, 80):
        inner = {"type": "object", "minProperties": count}
        matcher = Grammar.from_json_schema({**inner, "additionalProperties": inner}).bind(BYTES).matcher()
        text = matcher.shortest_completion()
        members = json.loads(text)
        assert len(members) == count and all(len(each) == count for each in members.values())
        assert matcher.least_length() <= matcher.shortest_length() == len(text)
        lengths.append(matcher.constraint.counters()["states"])
    assert lengths[1] < 6 * lengths[0]


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "object", "propertyNames": {"$ref": "#"}, "enum": [{}, {"a": 1}]},
        {"propertyNames": {"$ref": "#"}, "enum": [{}, {"a": 1}, 2]},
        {"anyOf": [{"enum": ["b"]}, {"type": "object", "propertyNames": {"$ref": "#"}, "const": {}}]},
        {"not": {"propertyNames": {"$ref": "#"}, "enum": [{"a": True}]}, "enum": [{}, {"b": 1}]},
    ],
)
def test_names_that_are_values_of_their_object(schema: dict[str, Any]) -> None:
    """The names of an object are asked of the schema that lists the object: strings alone are, without end else."""
    grammar = Grammar.from_json_schema(schema, property_order="any")
    for value in ({}, {"a": 1}, {"b": 1}, {"a": True}, "b", 2, "a"):
        assert grammar.matches(json.dumps(value)) == is_valid(value, schema)


@pytest.mark.parametrize("order", ["schema", "any"])
def test_the_end_of_an_object_needs_none_of_its_names(order: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The shortest completion within one of 500 names expands no rest of the object with all names that may follow."""
    names = {f"p{number}": {"type": "string", "pattern": f"^[a-z]+x{number}$"} for number in range(500)}
    expanded: list[Any] = []
    expand = ObjectLowering.expand

    def counted(self: ObjectLowering, plan: Any, state: Any) -> int:
        expanded.append(state)
        return expand(self, plan, state)

    monkeypatch.setattr(ObjectLowering, "expand", counted)
    grammar = Grammar.from_json_schema({"type": "object", "properties": names}, property_order=order)
    matcher = grammar.bind(BYTES).matcher()
    assert matcher.accept_bytes(b'{"p')
    assert matcher.shortest_completion() == b'": 0}'
    assert matcher.accept_bytes(b"4")
    assert matcher.shortest_completion() == b'a": 0}'
    assert len(expanded) < 3


def test_a_state_between_members_makes_one_rule_for_all_names(monkeypatch: pytest.MonkeyPatch) -> None:
    """Members in any order make a rule for each state that a text reaches, not one for each name in each state."""
    rules: list[AfterNameRule] = []
    make = AfterNameRule.__init__

    def counted(self: AfterNameRule, *args: Any) -> None:
        rules.append(self)
        make(self, *args)

    monkeypatch.setattr(AfterNameRule, "__init__", counted)
    names = [f"p{number}" for number in range(100)]
    schema = {"type": "object", "properties": {name: {"type": "null"} for name in names}, "additionalProperties": False}
    matcher = Grammar.from_json_schema(schema, property_order="any").bind(BYTES).matcher()
    assert matcher.accept_bytes(json.dumps(dict.fromkeys(reversed(names))).encode()) and matcher.is_accepting
    assert len(names) <= len(rules) <= len(names) + 1


def test_items_that_never_run_out_are_not_counted_member_by_member(monkeypatch: pytest.MonkeyPatch) -> None:
    """Objects with one free member are too many to be told apart by a list, whatever else they may have."""
    looked_up: list[Any] = []
    look_up = GoalValues._look_up

    def counted(self: GoalValues, goal: Any, most: int) -> Any:
        looked_up.append(goal)
        return look_up(self, goal, most)

    monkeypatch.setattr(GoalValues, "_look_up", counted)
    names = {f"p{number}": {"type": "string"} for number in range(100)}
    items = {"type": "object", "properties": names, "required": ["p4"], "additionalProperties": False}
    matcher = Grammar.from_json_schema({"type": "array", "uniqueItems": True, "items": items}).bind(BYTES).matcher()
    assert matcher.accept_bytes(b'[{"p4": "a"}, {"p4": "b"}]') and matcher.is_accepting
    assert len(looked_up) <= 10


@pytest.mark.parametrize("count", [1_900, 2_000, 20_000])
def test_thousands_of_references(count: int) -> None:
    """A schema may refer as often as it likes: the product over its references is no number that overflows."""
    names = {f"p{number}": {"$ref": "#/$defs/a"} for number in range(count)}
    schema = {"properties": names, "minProperties": 1, "$defs": {"a": {"type": "integer", "minimum": 3}}}
    grammar = Grammar.from_json_schema(schema)
    assert grammar.matches(f'{{"p{count - 1}": 3}}')
    assert not grammar.matches(f'{{"p{count - 1}": 2}}')
