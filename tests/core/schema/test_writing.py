"""Whatever binds can be finished: from the start, from every state of a walk, under every budget, validly."""

from __future__ import annotations

import json
import queue
import random
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from toolgrammar.core import BudgetError, Constraint, Grammar, LimitError, SchemaError

from ..regex.patterns import random_pattern
from . import sweep, writing
from .writing import MAX_REFUSED, VOCABULARY, Tally, WritingError, draw_options, judge, judge_masks, judge_seed

REGRESSIONS = Path(__file__).resolve().parents[2] / "regressions"
CASES = sorted(REGRESSIONS.glob("*.json"))


def judge_seeds(seeds: range) -> None:
    """Judge a schema for each seed; all faults are told, and refusals are counted and bounded."""
    tally = Tally()
    faults = []
    for seed in seeds:
        try:
            judge_seed(seed, tally)
        except WritingError as error:
            faults.append(f"seed {seed}: {error}")
    assert not faults, f"{len(faults)} of {len(seeds)}:\n" + "\n\n".join(faults[:10])
    assert tally.refused <= MAX_REFUSED * len(seeds), tally
    assert tally.outcomes["written"] >= 0.75 * len(seeds), tally


@pytest.mark.timeout(600)
def test_whatever_binds_can_be_finished() -> None:
    """Schemas that mix all keywords: with fewer, a fault of one keyword is not always found."""
    judge_seeds(range(1_000))


def test_patterns_can_be_finished() -> None:
    """Patterns with assertions in one another and in repetitions, also negated and beside bounds of the length."""
    rng = random.Random(15)
    tally = Tally()
    while sum(tally.outcomes.values()) < 150:
        pattern = random_pattern(rng, rng.randint(2, 4))
        try:
            re.compile(pattern.replace("$", r"\Z"))
        except re.error:  # look-behinds of several widths, which the judge cannot read
            continue
        if r"\B" in pattern:  # before Python 3.14, it does not match in the empty text
            continue
        wanted = {"pattern": pattern} if rng.random() < 0.7 else {"not": {"pattern": pattern}}
        bound = rng.choice(({}, {"minLength": rng.randint(1, 8)}, {"maxLength": rng.randint(0, 5)}))
        judge({"type": "string", **wanted, **bound}, draw_options(rng), rng, tally)
    assert tally.outcomes.keys() == {"written", "unsatisfiable"} and tally.outcomes["written"] > 80, tally


@pytest.mark.slow
@pytest.mark.timeout(0)
def test_whatever_binds_can_be_finished_at_length() -> None:
    """100,000 schemas, others than in the ordinary run."""
    judge_seeds(range(1_000_000, 1_100_000))


#: Cases of which one seed takes seconds, as many walks as of the others.
COSTLY = {
    "contains_among_unique_endless",
    "unique_contains_objects",
    "unique_contains_condition",
    "unique_contains_enum",
}


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_what_failed_once(path: Path, thorough: bool) -> None:
    """Every schema that could not be finished once: its file holds the schema, the options, and what was wrong."""
    case: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    tally = Tally()
    for seed in range(1 if path.stem in COSTLY and not thorough else 3):
        judge(case["schema"], case["options"], random.Random(seed), tally)
    assert list(tally.outcomes) == [case["outcome"]]


class _Liar:
    """A matcher of which some things are changed once a few steps are taken.

    Args:
        matcher: an honest one.
        lies: for attributes what they say instead; for methods what is made of what they return.
        after: number of steps.
    """

    def __init__(self, matcher: Any, lies: dict[str, Any], after: int) -> None:
        self._matcher = matcher
        self._lies = lies
        self._left = after

    def __getattr__(self, name: str) -> Any:
        honest = getattr(self._matcher, name)
        if self._left > 0 or name not in self._lies:
            return honest
        lie = self._lies[name]
        return (lambda *arguments: lie(honest(*arguments), *arguments)) if callable(honest) else lie

    def accept(self, token: int) -> bool:
        if (self._left <= 0 and "accept" in self._lies) or not self._matcher.accept(token):
            return False
        self._left -= 1
        return True

    def rollback(self, count: int) -> None:
        self._left += count
        self._matcher.rollback(count)


ARRAY: dict[str, Any] = {"type": "array", "items": {"type": "integer", "minimum": 30}, "minItems": 3}
STRING: dict[str, Any] = {"type": "string", "minLength": 50}


def _flip(mask: Any, is_more: bool) -> None:
    """Allow the byte 0 in a mask, or forbid the first token that it allows."""
    word = 0 if is_more else next(place for place in range(len(mask)) if mask[place])
    mask[word] = mask[word] | 1 if is_more else mask[word] & (mask[word] - 1)


#: Faults that are planted in a matcher after so many steps, and what the judge has to say of them.
PLANTED: dict[str, tuple[dict[str, Any], int, dict[str, Any], str]] = {
    "mask lacks a token": (ARRAY, 0, {"fill_mask": lambda _, mask: _flip(mask, False)}, "mask False, accept True"),
    "mask has another": (ARRAY, 0, {"fill_mask": lambda _, mask: _flip(mask, True)}, "mask True, accept False"),
    "dead end": (ARRAY, 0, {"fill_mask": lambda _, mask: mask.fill(0), "accept": None}, "a dead end"),
    "invalid": (STRING, 3, {"shortest_completion": lambda text: b'"'}, "invalid: "),
    "no JSON": (ARRAY, 2, {"shortest_completion": lambda text: text[:-1]}, "not JSON: "),
    "repeated": ({}, 0, {"shortest_completion": lambda text: b'{"a":1,"a":1}'}, "not JSON: .* a name is repeated"),
    "refused": (ARRAY, 2, {"shortest_completion": lambda text: text.replace(b",", b", ")}, "completion .* is refused"),
    "no end": (ARRAY, 2, {"is_accepting": False}, "an empty completion where the text may not end"),
    "not shortest": ({}, 0, {"shortest_completion": lambda text: b"12345678"}, "is shorter"),
    "error": (ARRAY, 2, {"shortest_completion": lambda text: 1 // 0}, "ZeroDivisionError"),
}
COMPACT = {"whitespace": "compact"}


@pytest.mark.parametrize("fault", PLANTED)
def test_a_planted_fault_is_found(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A matcher that lies is caught, by what it lies about."""
    schema, after, lies, complaint = PLANTED[fault]
    judge(schema, COMPACT, random.Random(3), Tally())
    honest = Constraint.matcher
    monkeypatch.setattr(Constraint, "matcher", lambda self: _Liar(honest(self), lies, after))
    with pytest.raises(WritingError, match=complaint):
        judge(schema, COMPACT, random.Random(3), Tally())


@pytest.mark.parametrize(
    ("lie", "complaint"),
    [
        (lambda mask: mask.__iand__(0x55555555), "mask False, accept True"),
        (lambda mask: mask.__ior__(1), "mask True, accept False"),
    ],
)
def test_a_fault_in_a_large_mask_is_found(lie: Any, complaint: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A mask that lacks tokens, or has one more, is not what is accepted."""
    judge_masks(ARRAY, COMPACT, random.Random(3), Tally(), VOCABULARY)
    honest = Constraint.matcher
    monkeypatch.setattr(
        Constraint, "matcher", lambda self: _Liar(honest(self), {"fill_mask": lambda _, mask: lie(mask)}, 2)
    )
    with pytest.raises(WritingError, match=complaint):
        judge_masks(ARRAY, COMPACT, random.Random(3), Tally(), VOCABULARY)


def test_a_grammar_that_says_too_much_or_too_little_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """A grammar of another schema writes what is invalid, or is empty though something is valid."""
    honest = Grammar.from_json_schema
    monkeypatch.setattr(Grammar, "from_json_schema", lambda schema, **options: honest({}, **options))
    with pytest.raises(WritingError, match="invalid: "):
        judge(ARRAY, COMPACT, random.Random(3), Tally())
    monkeypatch.setattr(Grammar, "from_json_schema", lambda schema, **options: honest(False, **options))
    with pytest.raises(WritingError, match="unsatisfiable, but"):
        judge({}, {**COMPACT, "additional_properties": True}, random.Random(3), Tally())


@pytest.mark.parametrize(
    ("lie", "complaint"),
    [
        (lambda ids, budget: [*ids, 0] * 9, "tokens under a budget of"),
        (lambda ids, budget: ids[1:], "not JSON: |invalid: "),
        (lambda ids, budget: _no_budget(), "is not enough for"),
        (lambda ids, budget: ids if budget % 2 else _no_budget(), "is enough, .* is not"),
    ],
)
def test_a_fault_under_a_budget_is_found(lie: Any, complaint: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A generation that is too long, or invalid, or refused a budget that is enough."""
    honest = writing._generate
    monkeypatch.setattr(
        writing, "_generate", lambda constraint, budget, rng: lie(honest(constraint, budget, rng), budget)
    )
    with pytest.raises(WritingError, match=complaint):
        judge({"const": 1}, COMPACT, random.Random(3), Tally())


def _no_budget() -> list[int]:
    raise BudgetError("planted")


def test_a_sweep_judges_each_seed_once(capsys: pytest.CaptureFixture[str]) -> None:
    """Two processes judge what one does; the last line says what."""
    tally = Tally()
    for seed in range(41, 59):
        judge_seed(seed, tally)
    assert sweep.main(["--first", "41", "--schemas", "18", "--workers", "2"]) == 0
    told = capsys.readouterr().out
    assert f"18 schemas, 0 faults, {tally.refused} refused" in told and f"tokens={tally.tokens}, " in told
    assert sweep.main(["--first", "40", "--seconds", "0"]) == 0
    assert "0 schemas, 0 faults" in capsys.readouterr().out


def test_a_sweep_tells_faults(monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker tells faults by their seeds, and goes on."""

    def judged(seed: int, tally: Tally, *, large: bool) -> None:
        if seed % 5 == 0:
            raise WritingError("planted", {}, {})
        tally.count("written")

    monkeypatch.setattr(sweep, "judge_seed", judged)
    reports: queue.Queue[Any] = queue.Queue()
    sweep._work(range(30), float("inf"), False, SimpleNamespace(), reports)
    told = list(reports.queue)
    assert [report.split(":")[0] for report in told if isinstance(report, str)] == [
        f"seed {seed}" for seed in range(0, 30, 5)
    ]
    assert sum(report.schemas for report in told if isinstance(report, Tally)) == 24 and told[-1] is None


def _nested(depth: int, leaf: object) -> object:
    for _ in range(depth):
        leaf = [leaf]
    return leaf


LONG = 10**10_000
LATE: dict[str, tuple[dict[str, Any], str]] = {
    "const": ({"const": LONG}, "const"),
    "enum": ({"enum": [1, {"a": [-LONG]}]}, "enum"),
    "deep": ({"enum": [_nested(900, 1), _nested(900, 2)]}, "enum"),
    **{
        word: ({word: LONG, "contains": {}}, word) for word in ("minItems", "minLength", "minProperties", "minContains")
    },
    **{word: ({word: -LONG}, word) for word in ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum")},
    "step": ({"multipleOf": LONG}, "multipleOf"),
    "pattern": ({"items": {"$dynamicRef": "#p"}, "$defs": {"p": {"$dynamicAnchor": "p", "pattern": "("}}}, "pattern"),
}


@pytest.mark.parametrize("name", LATE)
def test_what_cannot_be_written_is_refused_at_once(name: str) -> None:
    """No text is begun that would fail later: the error comes when a schema is bound, and names the place."""
    schema, keyword = LATE[name]
    with pytest.raises((LimitError, SchemaError)) as caught:
        Grammar.from_json_schema(schema).bind(VOCABULARY)
    assert caught.value.place.pointer is not None and caught.value.place.keyword == keyword


def test_a_dynamic_reference_to_itself_is_left_out_and_reported() -> None:
    """A part that only refers to itself, found while a text is written, has no values; that is reported."""
    grammar = Grammar.from_json_schema({"items": {"$dynamicAnchor": "x", "$dynamicRef": "#x"}})
    assert grammar.matches("[]") and not grammar.matches("[1]")
    assert [(error.place.pointer, error.place.keyword) for error in grammar.narrowed] == [("#x", "$ref")]
