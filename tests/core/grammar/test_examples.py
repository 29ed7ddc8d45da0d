"""Examples and counterexamples: by the judgement of jsonschema, and with everything shown that a schema says."""

from __future__ import annotations

import gzip
import json
import random
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from toolgrammar.core import Grammar, GrammarError, ToolGrammarError
from toolgrammar.core.grammar.comparison import own_program
from toolgrammar.core.grammar.counting import shuffled
from toolgrammar.core.validation import Validator

REAL = Path(__file__).resolve().parents[4] / "shared" / "data" / "maskbench-dev.jsonl.gz"

WEATHER = {
    "type": "object",
    "properties": {
        "city": {"type": "string", "minLength": 2, "maxLength": 5},
        "unit": {"enum": ["C", "F"]},
        "days": {"type": "integer", "minimum": 1, "exclusiveMaximum": 15},
        "tags": {"type": "array", "items": {"anyOf": [{"type": "boolean"}, {"type": "null"}]}, "maxItems": 3},
        "area": {"$ref": "#/$defs/area"},
    },
    "required": ["city"],
    "additionalProperties": False,
    "$defs": {"area": {"type": "object", "properties": {"within": {"$ref": "#/$defs/area"}}}},
}


def values(examples: list[Any]) -> list[Any]:
    """Return the values of examples."""
    return [json.loads(each.text) for each in examples]


def test_what_a_schema_says_is_shown() -> None:
    """Each enum value, option and bound is in some example, and each optional member is there and is not."""
    shown = values(Grammar.from_json_schema(WEATHER).examples(100))
    members = {name: [value[name] for value in shown if name in value] for name in WEATHER["properties"]}  # type: ignore[attr-defined]
    assert {"C", "F"} <= set(members["unit"])
    assert {1, 14} <= set(members["days"])
    assert {2, 5} <= {len(city) for city in members["city"]}
    assert {0, 3} <= {len(tags) for tags in members["tags"]}
    assert {True, False, None} <= {tag for tags in members["tags"] for tag in tags}
    assert any("within" in area for area in members["area"])
    assert any("within" not in area for area in members["area"])
    assert {"city"} in [set(value) for value in shown]
    assert set(members) in [set(value) for value in shown]


def test_places_are_json_pointers() -> None:
    """The name of a member is escaped in the place of an example, as in RFC 6901."""
    schema = {
        "type": "object",
        "properties": {"a/b": {"enum": [1, 2]}},
        "required": ["a/b"],
        "additionalProperties": False,
    }
    grammar = Grammar.from_json_schema(schema)
    assert "/a~1b is 2" in {each.shows for each in grammar.examples(5)}
    assert any(each.shows.startswith("/a~1b is of another type") for each in grammar.counterexamples(50))


def test_what_is_just_outside_is_shown() -> None:
    """Bounds passed by one, a missing and an unknown member, a wrong case and other types are refused."""
    outside = values(Grammar.from_json_schema(WEATHER).counterexamples(500))
    assert {} in outside
    members = {name: [v[name] for v in outside if isinstance(v, dict) and name in v] for name in WEATHER["properties"]}  # type: ignore[attr-defined]
    assert all(any(day == bound and day is not True for day in members["days"]) for bound in (0, 15))
    assert {1, 6} <= {len(city) for city in members["city"] if isinstance(city, str)}
    assert "c" in members["unit"]
    assert 4 in {len(tags) for tags in members["tags"] if isinstance(tags, list)}
    assert any(set(value) - set(members) for value in outside if isinstance(value, dict))
    assert None in members["city"]


def test_the_few_are_not_of_one_kind() -> None:
    """If few counterexamples are asked for, values of another type come last."""
    few = Grammar.from_json_schema(WEATHER).counterexamples(10, 1)
    assert len(few) == 10
    assert not any("another type" in each.shows for each in few)


def test_equal_seeds_draw_equally() -> None:
    """Equal seeds give equal texts, other seeds others; all are different, and no more than asked for."""
    grammar = Grammar.from_json_schema(WEATHER)
    assert grammar.examples(40, 1) == grammar.examples(40, 1) != grammar.examples(40, 2)
    assert grammar.counterexamples(40, 1) == grammar.counterexamples(40, 1) != grammar.counterexamples(40, 2)
    for count in (0, 1, 7, 40):
        texts = [each.text for each in grammar.examples(count)]
        assert len(texts) == len(set(texts)) == count
    assert {each.shows for each in grammar.examples(5, cover=False)} == {"random"}
    for count in (-1, "3", 2.0, True, None):
        for draw in (grammar.examples, partial(grammar.examples, cover=False), grammar.counterexamples):
            with pytest.raises(GrammarError, match=f"the number of examples is {count!r}"):
                draw(count)  # type: ignore[operator]


def test_a_finite_language_ends() -> None:
    """A language with fewer texts than asked for gives those."""
    assert sorted(each.text for each in Grammar.from_json_schema({"enum": [1, 2]}).examples(50)) == ["1", "2"]


TENTHS = [number / 10 if number % 10 else number // 10 for number in range(-20, 31)]

#: Finite schemas, each with values among which are all of it.
FINITE: list[tuple[Any, list[Any]]] = [
    (
        {"enum": ["a", 1, 1.5, {"b": [1, 2]}, "\u00e9", "/", "\x7f"]},
        ["a", 1, 1.5, {"b": [1, 2]}, "\u00e9", "/", "\x7f"],
    ),
    ({"type": "integer", "minimum": -3, "exclusiveMaximum": 12}, list(range(-20, 20))),
    ({"type": "number", "minimum": -1, "maximum": 2, "multipleOf": 0.5}, TENTHS),
    ({"type": "string", "pattern": '^["/\\\\\\n\\u{1F600}a\u00e9]?$'}, ["", *'"/\\\na\u00e9\U0001f600bc']),
    (
        {"type": "array", "items": {"enum": [1, 2, 3]}, "maxItems": 3, "uniqueItems": True},
        [list(each) for size in range(4) for each in product([1, 2, 3], repeat=size)],
    ),
    (
        {"properties": {name: {"type": ["boolean", "null"]} for name in "abc"}, "type": "object", "required": ["a"]},
        [
            {name: value for name, value in zip("abc", each, strict=True) if value != 0.5}
            for each in product([True, False, None, 0.5], repeat=3)
        ],
    ),
]


@pytest.mark.parametrize(("schema", "values_of"), FINITE)
@pytest.mark.parametrize(
    "options", [{}, {"property_order": "any", "whitespace": "flexible"}, {"whitespace": "compact"}]
)
def test_a_finite_language_is_drawn_by_counting(schema: Any, values_of: list[Any], options: Any) -> None:
    """All values are drawn, each once, however they may be spelled; and a few are different ones of them."""
    judge = Validator(schema)
    expected = sorted(map(json.dumps, filter(judge.is_valid, values_of)))
    grammar = Grammar.from_json_schema(schema, additional_properties=False, **options)
    for cover in (True, False):
        every = grammar.examples(len(expected) + 5, cover=cover)
        assert sorted(json.dumps(value) for value in values(every)) == expected
        assert all(grammar.matches(each.text) for each in every)
        some = grammar.examples(len(expected) // 2, 7, cover=cover)
        assert len({json.dumps(value) for value in values(some)}) == len(expected) // 2


class Chosen(random.Random):
    """A source whose first number is chosen."""

    def __init__(self, first: int) -> None:
        super().__init__(0)
        self.first: int | None = first

    def randrange(self, *bounds: Any) -> int:
        """Return the chosen number, once."""
        first, self.first = self.first, None
        return super().randrange(*bounds) if first is None else first


def test_each_text_of_a_finite_language_is_equally_likely() -> None:
    """Each number below the count is another text: a uniform number is a uniform text."""
    program = own_program(Grammar.from_regex("(ab?|[x-z]{0,2}){1,2}"))
    assert program is not None
    texts = list(shuffled(program, random.Random(1), is_json=False) or ())
    first = {next(shuffled(program, Chosen(number), is_json=False) or iter(())) for number in range(len(texts))}
    assert first == set(texts)
    assert len(first) == len(texts) > 100


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "string"},
        {"type": "integer"},
        {"type": "number", "minimum": 0, "maximum": 1},
        {"items": {"$ref": "#"}, "type": "array"},
        WEATHER,
    ],
)
def test_what_is_not_counted_is_drawn_as_before(schema: Any) -> None:
    """Texts without an end in length, and numbers that only their digits bound, are drawn by what the schema says."""
    grammar = Grammar.from_json_schema(schema)
    program = own_program(grammar)
    assert program is not None
    assert shuffled(program, random.Random(0), is_json=True) is None
    assert grammar.examples(3)


def test_grammars_of_texts() -> None:
    """A grammar that is no schema has examples and counterexamples too, by its own match."""
    grammar = Grammar.from_regex("[a-c]{2,3}")
    assert all(grammar.matches(each.text) for each in grammar.examples(20))
    outside = {each.text for each in grammar.counterexamples(20)}
    assert "a" in outside
    assert not any(map(grammar.matches, outside))


@pytest.mark.parametrize("name", ["hostname", "regex"])
def test_a_narrowed_schema_has_no_valid_counterexample(name: str) -> None:
    """A valid value that a narrowed grammar lacks is no counterexample."""
    grammar = Grammar.from_json_schema({"type": "object", "properties": {"a": {"type": "string", "format": name}}})
    judge = Validator(grammar.schema, formats=True)
    assert not any(map(judge.is_valid, values(grammar.counterexamples(100))))


@pytest.mark.skipif(not REAL.exists(), reason="needs the data of MaskBench")
def test_real_schemas_by_jsonschema() -> None:
    """Over real schemas jsonschema takes each example and refuses each counterexample."""
    judged = skipped = 0
    with gzip.open(REAL, "rt", encoding="utf-8") as lines:
        rows = [json.loads(line) for line in list(lines)[::60]]
    for row in rows:
        schema = row["schema"]
        try:
            grammar = Grammar.from_json_schema(schema)
            inside, outside = grammar.examples(8), grammar.counterexamples(8)
        except ToolGrammarError:
            skipped += 1
            continue
        judge = Validator(schema, formats=True)
        for example in inside:
            assert judge.is_valid(json.loads(example.text)), (schema, example)
        for example in outside:
            assert not judge.is_valid(json.loads(example.text)), (schema, example)
        judged += bool(inside) and bool(outside)
    assert judged > 0.9 * len(rows), (judged, skipped)
