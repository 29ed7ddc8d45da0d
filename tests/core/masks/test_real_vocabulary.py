"""Masks over a real vocabulary of 131,072 tokens (Tekken, shipped by mistral-common)."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from toolgrammar.core import Grammar, Vocabulary
from toolgrammar.core.automaton.encoding import REFUSED
from toolgrammar.core.dependent.written import Written

from ... import vocabularies
from ...whole_masks import allowed, check_mask
from ..schema.writing import LARGE_SHARE, Tally, judge_seed

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "city": {"type": "string", "maxLength": 12},
        "code": {"type": "string", "pattern": "^[A-Z]{2,3}-[0-9]+$"},
        "size": {"enum": ["small", "medium", "large", 3, None]},
        "note": {"type": "string"},
        "points": {
            "type": "array",
            "items": {"type": "object", "properties": {"x": {"type": "number"}, "y": {"type": "integer"}}},
            "maxItems": 3,
        },
    },
    "required": ["city", "code"],
}
PREFIXES = [
    "",
    '{"city": "',
    '{"city": "Par',
    '{"city": "Paris in Fr',
    '{"city": "\\u00',
    '{"city": "Paris"',
    '{"city": "Paris", "code": "A',
    '{"city": "Paris", "code": "AB-1',
    '{"city": "Paris", "code": "AB-1"',
    '{"city": "Paris", "code": "AB-1", "size": ',
    '{"city": "Paris", "code": "AB-1", "note": "',
    '{"city": "Paris", "code": "AB-1", "points": [{"x": 1',
    '{"city": "Paris", "code": "AB-1", "points": [{"x": -1.5e-',
    '{"city": "Paris", "code": "AB-1", "ci',
    '{"city": "Paris", "code": "AB-1", "zz": ["a", ',
]


@pytest.fixture(scope="module")
def tekken() -> Vocabulary:
    """The vocabulary; skipped without mistral-common."""
    pytest.importorskip("mistral_common", reason="mistral-common is not installed")
    return vocabularies.tekken()


@pytest.mark.parametrize("whitespace", ["single", "flexible"])
def test_mask_is_what_accept_accepts(tekken: Vocabulary, whitespace: Any) -> None:
    """In each state, every one of the 131,072 tokens is in the mask iff it is accepted."""
    grammar = Grammar.from_json_schema(SCHEMA, whitespace=whitespace)
    constraint = grammar.bind(tekken)
    for prefix in PREFIXES:
        matcher = constraint.matcher()
        assert matcher.accept_bytes(prefix.encode()), prefix
        check_mask(matcher)


def test_threads_share_a_constraint(tekken: Vocabulary) -> None:
    """Four threads on one constraint see what one sees."""
    constraint = Grammar.from_json_schema(SCHEMA).bind(tekken)

    def digests(_: int) -> list[int]:
        found = []
        for prefix in PREFIXES:
            matcher = constraint.matcher()
            matcher.accept_bytes(prefix.encode())
            found.append(hash(allowed(matcher).tobytes()))
        return found

    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(digests, range(8)))
    assert all(result == results[0] for result in results)
    assert results[0] == digests(0)


@pytest.mark.parametrize(
    "pattern",
    [
        r"^[\w\s-]{2,40}$",
        r"^[A-Za-z0-9 &'()*,./@£]{1,32}$",
        r"^\S{0,9}$",
        r"^.{1,7}$",
        r'^[^a-m"]{0,12}$',
        r"^[\\\n 0-5n-z]{3,60}$",
        r"^[一-龥 e]{1,5}$",
        r"^[^\u0100-\u2fff]{1,20}$",
    ],
)
def test_masks_of_wide_classes_equal_steps(tekken: Vocabulary, pattern: str) -> None:
    """In a string of one class, every token of the vocabulary is in the mask iff the automaton takes its bytes."""
    constraint = Grammar.from_json_schema({"type": "string", "pattern": pattern}).bind(tekken)
    program, before = constraint.program, Written()
    state = program.advance(program.start, b'"', before)
    matcher = constraint.matcher()
    assert matcher.accept(tekken.tokens.index(b'"'))
    mask = allowed(matcher)
    for token, data in enumerate(tekken.tokens):
        if data is not None and token % 3 == len(pattern) % 3:
            assert bool(mask[token]) == (program.advance(state, data, before) != REFUSED), data


@pytest.mark.usefixtures("tekken")
def test_masks_of_random_schemas() -> None:
    """Along random walks under schemas of all keywords, every token is in the mask iff it is accepted."""
    tally = Tally()
    for seed in range(0, 40 * LARGE_SHARE, LARGE_SHARE):
        judge_seed(seed, tally, large=True)
    assert tally.large > 400
