"""The work of masks on a fixed sample, as counts: trie nodes visited, and token sets by route."""

from __future__ import annotations

import functools
import importlib.util
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from toolgrammar.core import Grammar, Vocabulary

ROUTES = ("shared", "lacking", "compared", "surveyed", "walked")

NAMES = {"type": "object", "patternProperties": {"^[a-z_]{1,20}$": {"type": "integer"}}, "additionalProperties": False}
RECORD = {
    "type": "object",
    "properties": {"id": {"type": "string", "maxLength": 20}, "tags": {"type": "array", "items": {"type": "string"}}},
    "required": ["id"],
}

#: A schema, a value, and the counts of writing it: trie nodes visited, and sets by route.
SAMPLE: list[tuple[dict[str, Any], Any, int, tuple[int, ...]]] = [
    ({"type": "string"}, "Hello, free world: 123", 0, (2, 0, 0, 0, 0)),
    ({"type": "string", "maxLength": 40}, "Twelve words, or so", 479, (0, 0, 0, 7, 1)),
    ({"type": "string", "minLength": 3, "maxLength": 9}, "naïve", 479, (0, 0, 0, 4, 1)),
    ({"type": "string", "pattern": "^\\S{1,50}$"}, "no-space_here", 470, (2, 0, 0, 5, 1)),
    ({"type": "string", "not": {"enum": ["yes", "no", "yesterday"]}}, "yet another", 3, (2, 2, 0, 0, 0)),
    ({"type": "string", "pattern": "^/.*$", "maxLength": 512}, "/usr/lib/python", 308, (5, 0, 0, 1, 1)),
    ({"type": "string", "pattern": "foo"}, "a food store", 570, (2, 0, 0, 1, 1)),
    ({"type": "string", "pattern": "[0-9a-f]{8}"}, "id deadbeef01", 921, (2, 0, 0, 3, 1)),
    ({"type": "string", "pattern": "^[a-z0-9-]+$"}, "my-package-2", 324, (2, 0, 0, 2, 1)),
    ({"type": "string", "pattern": "^[a-z]{2}-\\d{4}$"}, "de-2026", 1933, (2, 0, 0, 1, 7)),
    (
        {"type": "string", "pattern": "^(?:\\S+\\s+){0,9}\\S+$", "maxLength": 500},
        "a few short words",
        4847,
        (7, 0, 0, 5, 1),
    ),
    ({"type": "string", "pattern": "^[^@\\s]+@[^@\\s]+\\.[a-z]{2,}$"}, "jane.doe@example.com", 1003, (2, 0, 0, 4, 1)),
    ({"type": "string", "format": "date-time"}, "2026-02-28T12:00:00Z", 6258, (2, 0, 0, 0, 22)),
    ({"type": "string", "format": "uri"}, "https://example.com/a?b=c", 2413, (2, 0, 0, 6, 1)),
    ({"type": "string", "format": "hostname"}, "api.example.com", 1694, (2, 0, 0, 4, 1)),
    (
        {"type": "string", "oneOf": [{"pattern": "red"}, {"pattern": "green"}, {"pattern": "blue"}]},
        "a green hat",
        167943,
        (2, 0, 0, 0, 3),
    ),
    ({"type": "string", "pattern": "^\\p{L}+$"}, "Žluťoučký", 370, (2, 0, 0, 2, 1)),
    (NAMES, {"first": 1, "second_one": 22}, 1277, (1, 0, 0, 5, 3)),
    (RECORD, {"id": "a-1", "tags": ["x", "yz"], "extra": {"k": [1.5, None]}}, 3434, (2, 2, 0, 4, 4)),
    (
        {"type": "array", "items": {"type": "number", "minimum": 0, "maximum": 99.5}},
        [0, 1.25, 99],
        3000,
        (0, 0, 0, 0, 8),
    ),
]


@functools.cache
def _tokenizer(kind: Any, path: Path) -> Any:
    return kind.from_file(path)


def tekken() -> tuple[Vocabulary, Callable[[str], list[int]]]:
    """The Tekken vocabulary of 131,072 tokens, with an index that nobody used yet, and its tokenizer."""
    if importlib.util.find_spec("mistral_common") is None:
        pytest.skip("mistral-common, which ships the vocabulary, is not installed")
    import mistral_common
    from mistral_common.tokens.tokenizers.tekken import Tekkenizer

    tokenizer = _tokenizer(Tekkenizer, Path(mistral_common.__file__).parent / "data" / "tekken_240911.json")
    return Vocabulary.from_mistral(tokenizer), lambda text: tokenizer.encode(text, bos=False, eos=False)


def work(schema: dict[str, Any], value: Any) -> tuple[int, tuple[int, ...]]:
    """Return the counts of writing a value: nodes visited, and sets by route."""
    vocabulary, encode = tekken()
    constraint = Grammar.from_json_schema(schema, whitespace="single").bind(vocabulary)
    matcher = constraint.matcher()
    row = np.zeros(constraint.words, np.uint32)
    for token in encode(json.dumps(value, ensure_ascii=False)):
        matcher.fill_mask(row)
        assert matcher.accept(token)
    counters = constraint.counters()
    return counters["mask_visited"], tuple(counters[f"mask_{route}"] for route in ROUTES)


@pytest.mark.parametrize(("schema", "value", "visited", "sets"), SAMPLE)
def test_the_work_does_not_grow(schema: dict[str, Any], value: Any, visited: int, sets: tuple[int, ...]) -> None:
    """Neither the trie nodes visited nor the token sets made are more than they were, in all and by a walk."""
    now, routes = work(schema, value)
    assert now <= visited
    assert sum(routes[1:]) <= sum(sets[1:]) and routes[-1] <= sets[-1]
    # A number that fell is to be written down, so that it stays.
    assert (now, routes) == (visited, sets)


def test_a_mask_derives_no_word_that_is_not_written() -> None:
    """Among many words the trie is walked beside them: nodes are made along the text, not along each token."""
    vocabulary, encode = tekken()
    words = [f"{first}{second}{third}" for first in "abcdefghkm" for second in "aeiouy" for third in "lnrstx"]
    constraint = Grammar.from_json_schema({"enum": words}).bind(vocabulary)
    matcher = constraint.matcher()
    row = np.zeros(constraint.words, np.uint32)
    for token in encode(json.dumps(words[200])):
        matcher.fill_mask(row)
        assert matcher.accept(token)
    assert constraint.counters()["faults"] <= 10
