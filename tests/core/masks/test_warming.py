"""Warming derives ahead what texts would, and changes no mask."""

from __future__ import annotations

import json
import threading
from typing import Any

import numpy as np
import pytest

from toolgrammar.core import Constraint, Grammar, GrammarError, Vocabulary
from toolgrammar.core.masks import warming

WORDS = [b'{"', b'":', b'": "', b'", "', b'"}', b"true", b"null", b"12", b"ab", b"abc", b"the ", "é".encode(), b"\n  "]
VOCABULARY = Vocabulary([*(bytes([each]) for each in range(256)), *WORDS, None], eos=[256 + len(WORDS)])

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "minLength": 2, "maxLength": 9},
        "mail": {"type": "string", "pattern": "^[a-z]+@[a-z]{2,5}$"},
        "age": {"type": "integer", "minimum": 3, "maximum": 140},
        "tags": {"type": "array", "items": {"enum": ["red", "green", "blue"]}, "uniqueItems": True},
        "more": {"$ref": "#"},
    },
    "required": ["name"],
    "additionalProperties": False,
}
VALUES: list[Any] = [
    {"name": "abc", "mail": "ab@abc", "age": 12},
    {"name": "the b", "tags": ["red", "blue"], "more": {"name": "éé", "tags": []}},
    {"name": "ab", "more": {"name": "ab", "more": {"name": "ab", "age": 140}}},
]


def bound(schema: Any = SCHEMA, **options: Any) -> Constraint:
    """A schema bound anew."""
    return Grammar.from_json_schema(schema, **options).bind(VOCABULARY)


def masks(constraint: Constraint, value: Any) -> list[bytes]:
    """The masks along a text, byte by byte."""
    matcher = constraint.matcher()
    out = np.zeros(constraint.words, dtype=np.uint32)
    found = []
    for byte in json.dumps(value, ensure_ascii=False).encode():
        matcher.fill_mask(out)
        found.append(out.tobytes())
        assert matcher.accept(byte)
    assert matcher.is_accepting
    return found


@pytest.mark.parametrize("whitespace", ["single", "flexible"])
def test_masks_are_the_same(whitespace: str) -> None:
    """Text by text, with the constraint warmed and not."""
    cold, warm = bound(whitespace=whitespace), bound(whitespace=whitespace)
    report = warm.warm(60, max_bytes=2**20)
    assert report.states > 100
    for value in VALUES:
        assert masks(warm, value) == masks(cold, value)


def test_what_was_warmed_is_not_derived_again() -> None:
    """A text of a small grammar that was warmed to the end derives nothing."""
    schema = {"type": "object", "properties": {"name": {"enum": ["red", "green"]}, "ok": {"type": "boolean"}}}
    constraint = bound({**schema, "required": ["name", "ok"], "additionalProperties": False})
    assert constraint.warm(60).is_complete
    before = constraint.counters()
    masks(constraint, {"name": "red", "ok": True})
    after = constraint.counters()
    cold = bound({**schema, "required": ["name", "ok"], "additionalProperties": False})
    masks(cold, {"name": "red", "ok": True})
    assert after["faults"] == before["faults"]
    assert after["mask_token_sets"] == before["mask_token_sets"]
    assert cold.counters()["faults"] > 0


def test_budget_in_bytes_is_kept() -> None:
    """A recursive schema has states without end; one state more than the budget may be derived."""
    one = bound()
    largest = 0
    while one.warm(60, max_bytes=1).bytes == 0:
        pass
    for _ in range(60):
        largest = max(largest, one.warm(60, max_bytes=1).bytes)
    for budget in (0, 20_000, 100_000):
        report = bound().warm(60, max_bytes=budget)
        assert report.bytes <= budget + max(largest, 70_000)
        assert not report.is_complete
    assert bound().warm(60, max_bytes=0).states == 0


def test_no_time_and_stop() -> None:
    """A budget of no time does nothing, and `stop` ends a call before the next state."""
    constraint = bound()
    assert constraint.warm(0).states == 0
    asked: list[int] = []

    def stop() -> bool:
        asked.append(1)
        return len(asked) > 5

    assert constraint.warm(60, stop=stop).states == 5
    first = constraint.counters()["states"]
    assert constraint.warm(60, max_bytes=50_000).states > 5
    assert constraint.counters()["states"] > first


def test_it_goes_on_where_it_ended_and_has_an_end() -> None:
    """Calls share one visit of the states."""
    constraint = bound({"type": "array", "items": {"enum": [1, "ab", None]}, "maxItems": 3})
    asked = iter([False, False, True])
    assert constraint.warm(60, stop=lambda: next(asked)).states == 2
    whole = constraint.warm(60)
    assert whole.is_complete
    again = constraint.warm(60)
    assert again.states == 0 and again.is_complete
    fresh = bound({"type": "array", "items": {"enum": [1, "ab", None]}, "maxItems": 3}).warm(60)
    assert fresh.states == 2 + whole.states


def test_from_a_matcher() -> None:
    """The state of a text that is under way, with what it must not repeat."""
    constraint = bound()
    matcher = constraint.matcher()
    assert matcher.accept_bytes(b'{"name": "abc", "tags": ["red", ')
    report = constraint.warm(60, max_bytes=200_000, after=matcher)
    assert report.states > 10
    other = bound().matcher()
    assert other.accept_bytes(b'{"name": "abc", "tags": ["red", ')
    assert matcher.allowed_tokens() == other.allowed_tokens()
    with pytest.raises(GrammarError, match="another constraint"):
        constraint.warm(after=other)
    with pytest.raises(GrammarError, match="negative"):
        constraint.warm(-1)


def test_the_share_of_texts_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """Warming ends when it has filled its share."""
    monkeypatch.setattr(warming, "MAX_STATES", 50)
    report = bound().warm(60)
    assert report.is_complete and report.states <= 50 + warming.ROUND


def test_control_tokens_are_followed() -> None:
    """To what they begin; one of them also ends the text."""
    vocabulary = Vocabulary([b"a", b"b", None, None], eos=[3], special={"<go>": 2, "<end>": 3})
    grammar = Grammar.from_regex("a") + Grammar.special("<go>") + Grammar.from_regex("b{2}")
    grammar += Grammar.special("<end>") | Grammar.from_regex("")
    constraint = grammar.bind(vocabulary)
    assert constraint.warm(60).is_complete
    before = constraint.counters()["states"]
    matcher = constraint.matcher()
    assert all(map(matcher.accept, [0, 2, 1, 1, 3]))
    assert constraint.counters()["states"] == before


def test_several_threads() -> None:
    """Texts are written and a constraint is warmed at once."""
    constraint, cold = bound(), bound()
    expected = [masks(cold, value) for value in VALUES]
    failed: list[object] = []

    def write() -> None:
        for _ in range(5):
            if [masks(constraint, value) for value in VALUES] != expected:
                failed.append("masks")

    threads = [threading.Thread(target=write) for _ in range(3)]
    threads += [threading.Thread(target=constraint.warm, args=(60,), kwargs={"max_bytes": 2**19}) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed
