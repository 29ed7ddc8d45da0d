"""Whole masks against the matcher, over real schemas and vocabularies; the long form is `tests.core.masks.sweep`."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from toolgrammar.core import Constraint, Grammar, Vocabulary
from toolgrammar.core.json import json_bytes

from ... import vocabularies
from ...whole_masks import MaskError, Steps, accepted, check_mask
from ..schema.mutants import REAL
from . import sweep
from .test_class_survey import LETTERS


def test_masks_of_real_schemas() -> None:
    """Along instances, spelled with escapes, and walks under real schemas, every token of the masks is judged."""
    if not REAL.is_file():
        pytest.skip("the schemas of MaskBench are not beside the repository")
    judge = sweep.Judge(vocabularies.BYTES)
    for number, row in enumerate(sweep.rows(REAL)):
        if number % 300 == 7:
            judge.schema(row["schema"], [test["data"] for test in row["tests"]], random.Random(number))
    assert judge.tally["schemas"] > 30 and judge.tally["masks"] > 4_000, judge.tally


@pytest.mark.parametrize("size", [0, 3_000])
def test_masks_of_strings_spelled_in_every_way(size: int) -> None:
    """Strings under patterns with the characters that have an escape of one character: every spelling at every place."""
    rng = random.Random(size)
    words = ["".join(rng.choices([*map(chr, LETTERS), "\\/", "/", "\\n", '"', "\\u002F"], k=4)) for _ in range(size)]
    tokens = [*(bytes((byte,)) for byte in range(256)), *sorted({word.encode() for word in words})]
    judge = sweep.Judge(Vocabulary([*tokens, None], eos=[len(tokens)], cache_dir=False))
    classes = ["[a-z/]", r"[a-z\n]", r"[^/]", r'[a-z"]', r"[\w\\]", r"[a-z\t/\b]"]
    for first in classes:
        for one in classes:
            pattern = rng.choice(
                ("^{0}{1}+$", "^{0}?({1}{0}*)*$", "^{0}{{2}}/{1}*$", "^(?!/){1}+$", "^({0}+(/{1}*)*)?$")
            )
            schema = {"type": "string", "pattern": pattern.format(first, one)}
            texts = ["".join(rng.choices('ab/\n"\\\t\b', k=6)) for _ in range(4)]
            judge.schema(schema, texts, rng)
    assert judge.tally["schemas"] == 36 and judge.tally["masks"] > 300, judge.tally


def test_masks_of_many_words() -> None:
    """Words that begin others, with escapes, each followed by nothing, anything, the impossible or what must not
    repeat: every token that goes through some of them, whole or in part, is judged."""
    rng = random.Random(5)
    words = sorted({"".join(rng.choices('abc"\\\u00e9', k=rng.randrange(5))) for _ in range(150)})
    spelled = [json.dumps(word)[1:-1].encode() for word in words]
    pieces = [word[at:] + end for word in spelled for at in (0, 1) for end in (b"", b'"', b'", "', b'": ', b'": 1, "a')]
    tokens = [*(bytes((byte,)) for byte in range(256)), *sorted(set(pieces) - {b""})]
    judge = sweep.Judge(Vocabulary([*tokens, None], eos=[len(tokens)], cache_dir=False))
    unique = {"type": "array", "items": {"type": "integer"}, "uniqueItems": True, "maxItems": 2}
    values = [{"type": "integer"}, {"not": {}}, unique, {"enum": words[:20]}, True]
    members = {word: values[number % 5] for number, word in enumerate(words)}
    listed = {"enum": words}
    for schema, value in (
        (listed, words[3]),
        ({"type": "array", "items": listed, "uniqueItems": True}, words[5:9]),
        ({"properties": members, "additionalProperties": False}, {words[0]: 1, words[2]: [1, 2], words[3]: words[9]}),
        ({"properties": members, "minProperties": 1}, {words[5]: 2, words[8]: words[8], "zz": 1}),
        (
            {"anyOf": [{"properties": {"a": {"const": w}, "b": {"const": w}}, "required": ["a"]} for w in words]},
            {"a": words[7]},
        ),
    ):
        judge.schema({"type": ["object", "array", "string"], **schema}, [value], rng)
    assert judge.tally["schemas"] == 5 and judge.tally["masks"] > 60, judge.tally


@pytest.mark.parametrize("shared", [1, 4, 256])
def test_masks_of_names_in_shared_lists(shared: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the schema's order, before and after each member, every token is judged, however long the lists are in which
    the states share their names."""
    monkeypatch.setattr("toolgrammar.core.schema.lower.objects.SHARED_NAMES", shared)
    rng = random.Random(shared)
    names = ["".join(rng.choices('ab"\n\\\u00e9\ud800', k=rng.randrange(4))) for _ in range(40)]
    spelled = [json_bytes(name) + b": " for name in names]
    tokens = [*(bytes((byte,)) for byte in range(256)), *sorted({*spelled, *(b"1, " + each for each in spelled)})]
    vocabulary = Vocabulary([*tokens, None], eos=[len(tokens)], cache_dir=False)
    values = [
        {"const": 1},
        {"not": {}},
        False,
        {"const": 1},
        {"minimum": 1, "maximum": 1, "multipleOf": 2, "type": "number"},
    ]
    for required in (0, 1, 3):
        schema = {
            "type": "object",
            "properties": {name: values[number % 5] for number, name in enumerate(names)},
            "required": [name for number, name in enumerate(names) if number % 5 == 0][7 : 7 + required],
            "additionalProperties": False,
        }
        constraint = Grammar.from_json_schema(schema, whitespace="single", property_order="schema").bind(vocabulary)
        members = schema["properties"].items()
        text = json_bytes({name: 1 for name, value in members if value == {"const": 1}})
        matcher, steps = constraint.matcher(), Steps()
        for byte in text:
            assert np.array_equal(check_mask(matcher, steps), accepted(matcher)), (required, matcher)
            assert matcher.accept(byte)
        assert matcher.is_accepting


@pytest.mark.parametrize("whitespace", ["single", "flexible"])
def test_objects_told_apart_by_a_tag_are_their_union(whitespace: Any) -> None:
    """Objects with a constant first member have the masks of a union that is not read by its tags (because something
    more, always true, is asked of each), and only the object that is written is lowered."""
    rng = random.Random(3)
    kinds = ["", "a", "ab", "abc", 'q"', "\u00e9", "b", "ba"]
    values = [
        {"type": "integer"},
        {"const": "x"},
        {"not": {}},
        {"type": "object", "properties": {"a": {"const": 1}}},
        True,
    ]
    constraints = []
    for _ in range(12):
        schemas: list[dict[str, Any]] = [{"$ref": "#/$defs/0"}, {"$ref": "#/$defs/0"}]
        for _ in range(6):
            tag = rng.choice(({"const": rng.choice(kinds)}, {"enum": rng.sample(kinds, 2), "type": "string"}))
            members = {name: rng.choice(values) for name in rng.sample(["a", "ab", "b"], 2)}
            required = ["kind", *rng.sample(list(members), rng.randrange(2))]
            closed = {"additionalProperties": rng.choice((False, {"type": "null"}))}
            schemas.append({"type": "object", "properties": {"kind": tag, **members}, "required": required, **closed})
        definition = schemas.pop()
        pair = []
        for more in ({}, {"minProperties": 0}):
            schema = {"anyOf": [{**each, **more} for each in schemas], "$defs": {"0": {**definition, **more}}}
            pair.append(Grammar.from_json_schema(schema, whitespace=whitespace).bind(vocabularies.BYTES))
        constraints.append(pair)
    for one, two in constraints:
        for _ in range(4):
            matchers, masks = (one.matcher(), two.matcher()), np.zeros((2, one.words), np.uint32)
            for _ in range(40):
                matchers[0].fill_mask(masks[0])
                matchers[1].fill_mask(masks[1])
                assert np.array_equal(masks[0], masks[1]), matchers
                allowed = np.flatnonzero(np.unpackbits(masks[0].view(np.uint8), bitorder="little"))
                token = int(rng.choice(allowed))
                assert matchers[0].accept(token) and matchers[1].accept(token)
                if matchers[0].is_finished:
                    break
    tagged = [
        {"type": "object", "properties": {"k": {"const": str(at)}, "v": {"minimum": at}}, "required": ["k"]}
        for at in range(500)
    ]
    constraint = Grammar.from_json_schema({"anyOf": tagged}, whitespace="single").bind(vocabularies.BYTES)
    matcher = constraint.matcher()
    assert matcher.accept_bytes(b'{"k": "77", "v": 77}')
    assert constraint.counters()["faults"] <= 20


def test_a_real_vocabulary_is_judged_whole() -> None:
    """Steps through the automaton by bytes find what the matcher accepts, token by token, in 131,072 tokens."""
    pytest.importorskip("mistral_common", reason="mistral-common is not installed")
    schema = {"type": "object", "properties": {"a": {"pattern": "^/[a-z]+(/[a-z]*)*$"}, "b": {"type": "number"}}}
    constraint = Grammar.from_json_schema(schema).bind(vocabularies.tekken())
    steps = Steps()
    for text in (
        "",
        '{"',
        '{"a": "/',
        '{"a": "\\/x',
        '{"a": "/x\\',
        '{"a": "/x", "b": 1',
        '{"x": "\\u00',
        '{"x": "", "',
    ):
        matcher = constraint.matcher()
        assert matcher.accept_bytes(text.encode())
        assert np.array_equal(check_mask(matcher, steps), accepted(matcher))
    assert steps.distinct == 8


@pytest.mark.parametrize("steps", [Steps, lambda: None])
@pytest.mark.parametrize("token", [0, 2])
def test_a_wrong_bit_is_found(steps: Callable[[], Any], token: int) -> None:
    """A mask with one token too many, or one too few, is told with this token."""
    tokens = [*(bytes((byte,)) for byte in range(256)), *(b"x" + json.dumps(each).encode() for each in range(3_000))]
    constraint: Constraint = Grammar.from_regex("[\x01-z]*").bind(Vocabulary([*tokens, None], eos=[len(tokens)]))
    matcher = constraint.matcher()
    check_mask(matcher, steps())

    class Liar:
        constraint = matcher.constraint

        def fill_mask(self, mask: Any) -> None:
            matcher.fill_mask(mask)
            mask[0] ^= 1 << token

        def __getattr__(self, name: str) -> Any:
            return getattr(matcher, name)

    with pytest.raises(MaskError, match=f"mask {token == 0}, accept {token == 2} of .*; 1 tokens differ"):
        check_mask(Liar(), steps())  # type: ignore[arg-type]


def test_every_spelling_of_a_character_is_tried() -> None:
    """A character with an escape is spelled by it, by its code in both cases, and raw if that is JSON."""
    rng = random.Random(1)
    assert set(sweep.spellings("/", rng)) == {b"/", b"\\/", b"\\u002F", b"\\u002f"}
    assert set(sweep.spellings("\n", rng)) == {b"\\n", b"\\u000A", b"\\u000a"}
    assert set(sweep.spellings("😀", rng)) == {"😀".encode(), b"\\uD83D\\uDE00", b"\\ud83d\\ude00"}
