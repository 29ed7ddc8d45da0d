"""Examples and counterexamples: by the judgement of jsonschema, and with everything shown that a schema says."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from toolgrammar.core import Grammar, GrammarError, ToolGrammarError
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
    with pytest.raises(GrammarError, match="the number of examples is -1"):
        grammar.examples(-1)


def test_a_finite_language_ends() -> None:
    """A language with fewer texts than asked for gives those."""
    assert sorted(each.text for each in Grammar.from_json_schema({"enum": [1, 2]}).examples(50)) == ["1", "2"]


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
