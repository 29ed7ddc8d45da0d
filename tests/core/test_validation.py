"""Validation gives the verdicts of ``jsonschema``, in bounded time, and of nothing that JSON lacks."""

from __future__ import annotations

import json
import random
from types import SimpleNamespace
from typing import Any

import jsonschema
import pytest

from toolgrammar.core import Grammar, LimitError
from toolgrammar.core import validation as module
from toolgrammar.core.schema.read.keywords import KEYWORDS, Draft
from toolgrammar.core.validation import Validator, is_valid, violations

SCALARS: list[Any] = [0, 1, 1.0, True, False, None, "a", "1", "", 0.5, -0.0, 10**20, 1e20]


def value(draw: random.Random, depth: int = 3) -> Any:
    """A small value, of few parts, so that equal ones are met."""
    kind = draw.randrange(6 if depth else 4)
    if kind < 4:
        return draw.choice(SCALARS)
    if kind == 4:
        return [value(draw, depth - 1) for _ in range(draw.randrange(4))]
    return {name: value(draw, depth - 1) for name in draw.sample("abc", draw.randrange(3))}


def schema(draw: random.Random) -> dict[str, Any]:
    """A schema with the keywords that are compared otherwise here, in each other's way."""
    found: dict[str, Any] = {}
    if draw.random() < 0.5:
        found["enum"] = [value(draw) for _ in range(draw.randrange(1, 12))]
    if draw.random() < 0.4:
        found["uniqueItems"] = draw.random() < 0.9
    if draw.random() < 0.3:
        found["items"] = schema(draw)
    if draw.random() < 0.2:
        found[draw.choice(["anyOf", "oneOf", "allOf"])] = [schema(draw) for _ in range(2)]
    if draw.random() < 0.2:
        found["const"] = value(draw)
    return found


def test_verdicts_are_those_of_jsonschema() -> None:
    """Random values against random schemas, equal values in other spellings among them."""
    draw = random.Random(7)
    verdicts = [0, 0]
    for _ in range(500):
        document = schema(draw)
        ours, theirs = Validator(document), jsonschema.Draft202012Validator(document)
        for _ in range(20):
            one = value(draw)
            expected = theirs.is_valid(one)
            assert (next(ours.problems(one), None) is None) == expected, (document, one)
            verdicts[expected] += 1
    assert min(verdicts) > 2_000


@pytest.mark.parametrize(
    ("document", "one", "sound"),
    [
        ({"uniqueItems": True}, [{"a": index, "b": [index]} for index in range(20_000)], True),
        ({"uniqueItems": True}, [*({"a": index} for index in range(20_000)), {"a": 7.0}], False),
        ({"items": {"enum": [f"v{index}" for index in range(5_000)]}}, [f"v{4_999}"] * 5_000, True),
        ({"items": {"enum": [[index] for index in range(5_000)]}}, ["x"] * 5_000, False),
        ({"pattern": "^(a|a)*(a*)*b$"}, "a" * 50_000, False),
        ({"pattern": "^((?=a)a+)+b$"}, "a" * 3_000, False),
    ],
    ids=["different", "equal", "listed", "not listed", "repetitions", "look-ahead"],
)
@pytest.mark.timeout(60)
def test_what_is_decided_without_searching(document: Any, one: Any, sound: bool) -> None:
    """Large values take time in proportion to their size; a quadratic or backtracking check takes minutes."""
    assert is_valid(one, document) is sound


NULLABLE = {"type": "string", "enum": ["a"], "nullable": True}


@pytest.mark.parametrize(
    ("document", "one"),
    [
        (NULLABLE, None),
        (NULLABLE, "a"),
        (NULLABLE, "b"),
        ({**NULLABLE, "const": "a"}, None),
        ({**NULLABLE, "nullable": False}, None),
        ({"type": "integer", "nullable": True}, None),
        ({"type": "integer", "nullable": True}, "a"),
        ({"properties": {"a": {"type": "any"}}}, {"a": [1]}),
        ({"dependencies": {"a": ["b"], "b": {"maxProperties": 2}}}, {"a": 1}),
        ({"dependencies": {"a": ["b"], "b": {"maxProperties": 2}}}, {"a": 1, "b": 1}),
        ({"dependencies": {"a": ["b"], "b": {"maxProperties": 2}}}, {"a": 1, "b": 1, "c": 1}),
        ({"$schema": "https://json-schema.org/draft/2019-09/schema", "dependencies": {"a": ["b"]}}, {"a": 1}),
        ({"$schema": "http://json-schema.org/draft-03/schema#", "multipleOf": 2}, 3),
    ],
)
def test_what_grammars_enforce_beyond_a_dialect_is_checked(document: Any, one: Any) -> None:
    """The verdict on a value is whether the grammar of the schema admits it, also by keywords of other dialects."""
    text = json.dumps(one)
    assert is_valid(one, document) == Grammar.from_json_schema(document).matches(text)


def test_every_keyword_that_grammars_enforce_is_checked() -> None:
    """In each draft, `jsonschema` or this module has every keyword that constrains values, but for those read inside of
    another."""
    kinds = {
        Draft.DRAFT_4: jsonschema.Draft4Validator,
        Draft.DRAFT_6: jsonschema.Draft6Validator,
        Draft.DRAFT_7: jsonschema.Draft7Validator,
        Draft.DRAFT_2019_09: jsonschema.Draft201909Validator,
        Draft.DRAFT_2020_12: jsonschema.Draft202012Validator,
    }
    inside = {"then", "else", "minContains", "maxContains", "nullable", "additionalItems"}
    inside |= {"x-values", "x-seen", "x-copied"}  # what the program gives is checked by the tool set
    for draft, kind in kinds.items():
        given = {"$schema": kind.META_SCHEMA["$schema"]}
        checked = Validator(given)._validator.VALIDATORS.keys() | inside
        checked |= {"exclusiveMinimum", "exclusiveMaximum"} if draft == Draft.DRAFT_4 else set()
        enforced = {row.name for row in KEYWORDS.values() if row.name in KEYWORDS.constraining and row.is_in(draft)}
        assert enforced - checked == set(), draft


@pytest.mark.parametrize(
    ("pattern", "text", "matches"),
    [
        (r"^\s*<([A-Za-z]+).+?(\/>|\/\1>)\s*$", "\ufeff\u00a0<Aa/>", True),
        (r"^\s*<([A-Za-z]+).+?(\/>|\/\1>)\s*$", "<b>x</i>", False),
        (r"^([a-z]+)-\1$", "ab-ab\n", False),
        (r"^([a-z]+)-\1$", "ab-ab", True),
        (r"^(\d+):\1$", "\u0663:\u0663", False),
        (r"^(?<word>\w+) \k<word>$", "hey hey", True),
        (r"^(?<word>\w+) \k<word>$", "\u00e9 \u00e9", False),
        (r"^(?:(x+)|y)\1z$", "yz", True),
        (r"^(a*).\1$", "aa\u2028aa", False),
        (r"^(a*)[^\S ]\1$", "aa\ufeffaa", True),
        (r"(\p{Lu}+)-\1", "\u00c9-\u00c9", True),
    ],
)
def test_back_references_are_read_as_ecma_262_has_them(pattern: str, text: str, matches: bool) -> None:
    """Verdicts of Node.js (``new RegExp(pattern, "u").test(text)``); Python's ``re`` differs on most of them."""
    assert is_valid(text, {"pattern": pattern}) is matches


@pytest.mark.timeout(60)
def test_a_pattern_that_is_not_regular_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """A back-reference is searched for by Python, and given up by name when that takes too long."""
    assert is_valid("abab", {"pattern": r"^(\w+)\1$"}) and not is_valid("abac", {"pattern": r"^(\w+)\1$"})
    monkeypatch.setattr(module, "PATTERN_SECONDS", 0.5)
    with pytest.raises(LimitError, match="takes more than") as caught:
        is_valid("a" * 60, {"pattern": r"^(a+)+\1b$"})
    assert caught.value.place.keyword == "pattern" and "back-references" in caught.value.hint


@pytest.mark.timeout(60)
def test_alternatives_in_alternatives_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two ways to read each level of a deep value: an error of ours ends the doubling."""
    monkeypatch.setattr(module, "MAX_SECONDS", 0.2)
    one: Any = 1
    for _ in range(60):
        one = [one]
    arrays = {"type": "array", "items": {"$ref": "#"}}
    with pytest.raises(LimitError, match="the validation of a value takes more than"):
        is_valid(one, {"oneOf": [{"type": "integer"}, arrays, {**arrays, "minItems": 5}]})


def test_nothing_but_json_is_valid() -> None:
    """A value that no JSON text spells is refused with its place, whatever the schema says."""
    aliens: list[Any] = [float("nan"), float("inf"), -float("inf"), {1}, object(), b"x", (1,), {1: 2}, 1j, 10**5_000]
    for alien in aliens:
        for document in (True, {}, {"type": "object"}, {"const": {"a": [0, alien]}}):
            ((pointer, _),) = Validator(document).problems({"a": [0, alien]})
            assert pointer == "/a/1", alien
    assert is_valid(json.loads("[1, 1.5, true, null, {}]"), True)


def test_deep_values_are_an_answer() -> None:
    """No recursion error leaves the validator."""
    one: list[Any] = []
    for _ in range(20_000):
        one = [one]
    (problem,) = Validator({"items": {"$ref": "#"}}).problems(one)
    assert "too deeply" in problem[1]


def test_long_lists_are_not_read_out() -> None:
    """A message names some of many values."""
    ((_, message),) = Validator({"enum": list(range(5_000))}).problems("x")
    assert len(message) < 300 and "4,980 more" in message


@pytest.mark.parametrize(
    ("schema", "value", "said"),
    [
        ({"minLength": 2}, "A", "at least 2 characters are needed"),
        ({"maxItems": 1}, [1, 2], "at most 1 items are allowed"),
        ({"minProperties": 3}, {"a": 1}, "at least 3 members are needed"),
        ({"type": "integer"}, None, "null is not of type 'integer'"),
        ({"type": "integer"}, True, "true is not of type 'integer'"),
    ],
)
def test_a_fault_says_what_would_be_right(schema: dict[str, object], value: object, said: str) -> None:
    """Sizes name their limit, and JSON's words are spelled as in JSON."""
    (fault,) = violations(value, schema)
    assert said in fault


def test_a_panic_of_rust_is_a_value_that_is_nested_too_deeply(monkeypatch: pytest.MonkeyPatch) -> None:
    """The panic of a comparison in `rpds` (jsonschema keeps references there) at the recursion limit is caught."""
    rpds = pytest.importorskip("rpds")

    class Key:
        """A key that meets the recursion limit when it is compared."""

        def __hash__(self) -> int:
            return hash("a")

        def __eq__(self, other: object) -> bool:
            raise RecursionError

    def panicking(instance: Any) -> Any:
        return rpds.HashTrieMap({"a": 1})[Key()]

    validator = Validator({"$ref": "#"})
    monkeypatch.setattr(validator, "_validator", SimpleNamespace(iter_errors=panicking))
    assert list(validator.problems(1)) == [("", "it is nested too deeply to be checked")]


@pytest.mark.parametrize(
    "draft", ["https://json-schema.org/draft/2020-12/schema", "http://json-schema.org/draft-07/schema#"]
)
def test_a_subschema_with_a_draft_of_its_own_has_all_checks(draft: str) -> None:
    """Formats, patterns of ECMAScript, decimals and `nullable` count there, too."""
    inner = {"$schema": draft, "type": "string", "nullable": True, "format": "uuid"}
    properties = {
        "a": inner,
        "b": {"$schema": draft, "pattern": "^\\p{L}$"},
        "c": {"$schema": draft, "multipleOf": 0.1},
    }
    validator = Validator({"properties": properties}, formats=True)
    assert [pointer for pointer, _ in validator.problems({"a": "zz", "b": "1", "c": 0.35})] == ["/a", "/b", "/c"]
    assert validator.is_valid({"a": None, "b": "é", "c": 0.3})


@pytest.mark.parametrize("draft", ["2019-09", "2020-12"])
def test_names_that_patterns_evaluate_are_read_as_in_grammars(draft: str) -> None:
    """``unevaluatedProperties`` takes patterns as ECMA-262 does, through references and applied schemas."""
    letters = {"$defs": {"letters": {"patternProperties": {"^\\p{L}$": {}}}}, "unevaluatedProperties": False}
    for part in (
        {"$ref": "#/$defs/letters"},
        {"anyOf": [{"$ref": "#/$defs/letters"}, False]},
        {"if": {"$ref": "#/$defs/letters"}, "else": {"required": ["x"]}},
        {"properties": {"a": {}}, "dependentSchemas": {"a": {"$ref": "#/$defs/letters"}}},
    ):
        validator = Validator({"$schema": f"https://json-schema.org/draft/{draft}/schema", **letters, **part})
        assert validator.is_valid({"a": 1, "é": 2})
        assert not validator.is_valid({"a": 1, "٣": 2})
    digits = Validator({"patternProperties": {"^\\d$": {}}, "unevaluatedProperties": False})
    assert digits.is_valid({"3": 1}) and not digits.is_valid({"٣": 1})
    typed = {"$schema": f"https://json-schema.org/draft/{draft}/schema", "unevaluatedProperties": False}
    assert Validator({**typed, "additionalProperties": {"type": "integer"}}).is_valid({"type": 1, "b": 1})


def test_a_value_that_contains_itself_is_invalid() -> None:
    """And ends the search for what JSON lacks."""
    items: list[Any] = []
    items.append(items)
    members: dict[str, Any] = {"a": 1}
    members["b"] = [members, members]
    for endless in (items, members):
        assert list(Validator({}).problems(endless)) == [("", "it is nested too deeply to be checked")]


@pytest.mark.parametrize(
    ("pattern", "text", "expected"),
    [
        (r"^(?=(a*?))\1b$", "aab", False),  # a look-ahead keeps its first match, so the group is empty
        (r"^(?=(a*?))\1b$", "b", True),
        (r"^(?=(a*))\1b$", "aab", True),
        (r"^(.*)\B\1$", "", True),
        (r"^(a{1,2}?)\1$", "aa", True),
    ],
)
def test_patterns_that_are_not_regular_match_as_in_ecma(pattern: str, text: str, expected: bool) -> None:
    """Lazy repetitions in look-aheads, and ``\\B`` in the empty text; the verdicts are those of Node 20."""
    assert Validator({"pattern": pattern}).is_valid(text) == expected
