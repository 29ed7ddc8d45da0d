"""The text of one request, as an engine drives it: masks, drafts, rollback, ends and budgets. No engine is needed."""

from __future__ import annotations

import json
import random
from typing import Any

import jsonschema
import numpy as np
import pytest

from toolgrammar.adapters.vllm.sequence import Ends, Sequence
from toolgrammar.adapters.vllm.spelling import Spelling
from toolgrammar.core import Grammar, LimitError, Vocabulary
from toolgrammar.core.generation import cut_places
from toolgrammar.core.models import LocalModel, load_model

SCHEMA = {
    "type": "object",
    "properties": {
        "name": {"type": "string"},
        "tags": {"type": "array", "items": {"enum": ["a", "b", "c"]}, "uniqueItems": True},
        "more": {
            "type": "array",
            "items": {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]},
        },
    },
    "required": ["name", "tags"],
    "additionalProperties": False,
}


@pytest.fixture(scope="module")
def spelling() -> Spelling:
    """The tokenizer of the embedded model."""
    model = load_model("embedded")
    assert isinstance(model, LocalModel)
    return Spelling(model.vocabulary, model.encode)


def sequence(spelling: Spelling, grammar: Grammar, stop: Any = None) -> Sequence:
    """A text at its beginning; by default it ends as the vocabulary says."""
    ends = Ends(spelling, spelling.vocabulary.eos if stop is None else stop)
    return Sequence(grammar.bind(spelling.vocabulary), spelling, ends)


def allowed(text: Sequence, spelling: Spelling) -> list[int]:
    """The tokens that the mask of a text allows."""
    row = np.full((spelling.vocabulary.size + 31) // 32, 0xFFFFFFFF, np.uint32)
    text.fill(row)
    return np.flatnonzero(np.unpackbits(row.view(np.uint8), bitorder="little")).tolist()


def written(text: Sequence, spelling: Spelling) -> str:
    """What a text says."""
    return spelling.vocabulary.decode(text.tokens).decode()


def write(text: Sequence, spelling: Spelling, seed: int, budget: int | None = None) -> int:
    """Write random tokens until the text is over or the budget is; return the number of tokens."""
    rng, size = random.Random(seed), 0
    if budget is not None:
        text.room = lambda: budget - text.steps
    while not text.is_over and (budget is None or size < budget):
        choices = allowed(text, spelling)
        ends = [token for token in choices if token in spelling.vocabulary.eos]
        token = ends[0] if ends and rng.random() < 0.3 else rng.choice(choices)
        assert text.accept([token])
        size += 1
    return size


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("budget", [24, 30, 48, 96, 200])
def test_a_budget_closes_validly(spelling: Spelling, seed: int, budget: int) -> None:
    """Whatever is chosen under the masks, the text is valid within its budget, and every cut is named."""
    text = sequence(spelling, Grammar.from_json_schema(SCHEMA))
    assert write(text, spelling, seed, budget) <= budget
    assert text.matcher.is_accepting
    jsonschema.validate(json.loads(written(text, spelling)), SCHEMA)
    if text.closed_at is not None and text.closed_at <= len(text.tokens):
        assert cut_places(spelling.vocabulary, text.tokens, text.closed_at, None, True)


@pytest.mark.parametrize("budget", [1375, 1888, 2275])
def test_a_long_value_behind_a_name_is_begun_only_if_it_fits(spelling: Spelling, budget: int) -> None:
    """What may come depends on the names so far, and a name needs a value of 700 characters: more than is ever spare."""
    values = {"type": "string", "pattern": "^x{700}$"}
    schema = {"type": "object", "additionalProperties": values, "minProperties": 1}
    constraint = Grammar.from_json_schema(schema, whitespace="single").bind(spelling.vocabulary)
    text = Sequence(constraint, spelling, Ends(spelling, spelling.vocabulary.eos))
    text.room = lambda: budget - text.steps
    rng, row = random.Random(budget), np.zeros(constraint.words, np.uint32)
    while not text.is_over and text.steps < budget:
        text.fill(row)
        found = np.flatnonzero(np.unpackbits(row.view(np.uint8), bitorder="little")).tolist()
        longer = [token for token in found if b"}" not in (spelling.vocabulary.tokens[token] or b"}")]
        letters = [token for token in found if spelling.vocabulary.tokens[token] == b"x"]
        assert text.accept([rng.choice(letters or longer or found)])
    assert text.is_over or text.is_whole


def test_a_refused_text_is_no_stop_token(spelling: Spelling) -> None:
    """Where no answer fits, a client would see the text of a stop token that is one."""
    vocabulary = spelling.vocabulary
    letter = vocabulary.tokens.index(b"x")
    text = sequence(spelling, Grammar.from_json_schema(SCHEMA), {letter, *vocabulary.eos})
    text.room = lambda: 2
    assert set(allowed(text, spelling)) == set(vocabulary.eos)
    alone = sequence(spelling, Grammar.from_json_schema(SCHEMA), {letter})  # nothing else ends this engine
    alone.room = lambda: 2
    assert allowed(alone, spelling) == [letter]


def test_an_ample_budget_changes_no_mask(spelling: Spelling) -> None:
    """Where every completion fits, the masks are those without a budget."""
    free, bound = (sequence(spelling, Grammar.from_json_schema(SCHEMA)) for _ in range(2))
    bound.room = lambda: 100_000
    rng = random.Random(3)
    for _ in range(60):
        choices = allowed(free, spelling)
        assert allowed(bound, spelling) == choices
        token = rng.choice(choices)
        assert free.accept([token]) and bound.accept([token])
        if free.is_over:
            break
    assert bound.closed_at is None


def test_the_budget_leaves_out_no_token_that_fits(spelling: Spelling) -> None:
    """A token is left out if and only if no completion of what it begins fits, the next token of the closing aside."""
    grammar = Grammar.from_json_schema(SCHEMA)
    for seed in range(6):
        text = sequence(spelling, grammar)
        rng = random.Random(seed)
        text.room = lambda text=text: 40 - text.steps  # type: ignore[misc]
        while not text.is_over and text.steps < 40:
            mine = set(allowed(text, spelling))
            room = 40 - text.steps
            for token in rng.sample(text.matcher.allowed_tokens(), min(20, len(text.matcher.allowed_tokens()))):
                if token in spelling.vocabulary.eos:
                    assert token in mine
                    continue
                assert text.matcher.accept(token)
                fits = text.matcher.shortest_length() < room
                text.matcher.rollback(1)
                assert token in mine or not fits
            assert text.accept([rng.choice(sorted(mine))])


def test_drafts_and_rollback_leave_no_trace(spelling: Spelling) -> None:
    """Masks behind drafts that were taken back are those of a text that never had them."""
    grammar = Grammar.from_json_schema(SCHEMA)
    one, other = sequence(spelling, grammar), sequence(spelling, grammar)
    rng = random.Random(1)
    while not one.is_over and one.steps < 80:
        drafts = 0
        for _ in range(rng.randrange(5)):
            choices = allowed(one, spelling)
            if not one.accept([rng.choice(choices)]):
                break
            drafts += 1
        one.rollback(drafts)
        choices = allowed(one, spelling)
        assert choices == allowed(other, spelling)
        token = rng.choice(choices)
        assert one.accept([token]) and other.accept([token])


def test_the_valid_prefix_of_drafts(spelling: Spelling) -> None:
    """Drafts are taken as far as the grammar takes them, and the text stays as it was."""
    text = sequence(spelling, Grammar.from_regex("abc+"))
    ids = [*spelling.encode("ab"), *spelling.encode("x")]
    prefix = text.allowed_prefix(ids)
    assert spelling.vocabulary.decode(prefix) == b"ab"
    assert text.steps == 0 and text.allowed_prefix(prefix) == prefix


def test_a_token_behind_the_end_is_ignored(spelling: Spelling) -> None:
    """The end is a step like others: it can be taken back, and what follows it is ignored."""
    (eos, *_) = sorted(spelling.vocabulary.eos)
    text = sequence(spelling, Grammar.literal("a"))
    assert text.accept([*spelling.encode("a"), eos, 5, 6]) and text.is_over
    text.rollback(3)
    assert not text.is_over and set(allowed(text, spelling)) == spelling.vocabulary.eos
    assert not text.accept(spelling.encode("b"))


def test_stop_tokens_end_whole_texts_only(spelling: Spelling) -> None:
    """A text token that stops the engine is masked inside of the text, and allowed where it is whole."""
    (eos, *_) = sorted(spelling.vocabulary.eos)
    (brace,) = spelling.encode("}")
    text = sequence(spelling, Grammar.from_regex(r"\{a*\}"), {eos, brace})
    assert text.accept(spelling.encode("{"))
    assert brace not in allowed(text, spelling)
    text = sequence(spelling, Grammar.from_regex(r"\{a*\}?"), {eos, brace})
    assert text.accept(spelling.encode("{")) and brace in allowed(text, spelling)
    assert text.accept([brace]) and text.is_over


def test_an_engine_that_ignores_the_end_writes_nothing_behind_it(spelling: Spelling) -> None:
    """Without stop tokens (``ignore_eos``) only the end may follow the end."""
    text = sequence(spelling, Grammar.literal("a"), ())
    assert text.accept(spelling.encode("a")) and text.accept(sorted(spelling.vocabulary.eos)[:1])
    assert not text.is_over and set(allowed(text, spelling)) == spelling.vocabulary.eos


def test_forced_text_is_spelled_as_the_tokenizer_spells_it(spelling: Spelling) -> None:
    """Jumps are certain, canonical, and the only thing that the masks then allow."""
    whole = '{"temperature_in_celsius": true}'
    schema = {
        "type": "object",
        "properties": {"temperature_in_celsius": {"enum": [True]}},
        "required": ["temperature_in_celsius"],
        "additionalProperties": False,
    }
    text = sequence(spelling, Grammar.from_json_schema(schema))
    steps = 0
    while not text.is_over:
        ahead = text.jump(12)
        for token in ahead:
            assert allowed(text, spelling) == [token]
            assert text.accept([token])
        choices = allowed(text, spelling)
        canonical = spelling.encode(whole)
        token = next((one for one in choices if canonical[: text.steps + 1] == [*text.tokens, one]), choices[0])
        assert text.accept([token])
        steps += 1
    assert written(text, spelling) == whole and text.tokens == spelling.encode(whole)
    assert steps < len(text.tokens)


@pytest.mark.parametrize("budget", [None, 40, 60])
@pytest.mark.parametrize("seed", range(6))
def test_offered_text_changes_nothing_that_is_written(spelling: Spelling, seed: int, budget: int | None) -> None:
    """With offers a greedy model writes the tokens that it writes without; forced ones are the tokenizer's own."""

    def chosen(text: Sequence) -> int:
        """What the model prefers, by all tokens before: mostly long tokens, at times any."""
        rng = random.Random(f"{seed} {text.tokens[-6:]}")
        sizes = {token: len(spelling.vocabulary.tokens[token] or b"") for token in allowed(text, spelling)}
        return max(sizes, key=lambda token: (rng.random() < 0.1) * 9 + sizes[token] + rng.random())

    def answer(drafts: int, *, is_offered: bool) -> tuple[list[int], int]:
        text, steps = sequence(spelling, Grammar.from_json_schema(SCHEMA)), 0
        limit = 120 if budget is None else budget
        if budget is not None:
            text.room = lambda: budget - text.steps
        while not text.is_over and text.steps < limit:
            steps += 1
            for draft in [*text.jump(drafts, is_offered=is_offered), None]:
                token = chosen(text)
                assert draft is None or is_offered or token == draft
                assert text.accept([token])
                if token != draft or text.steps == limit:
                    break
        return text.tokens, steps

    plain, steps = answer(0, is_offered=True)
    offered, fewer = answer(8, is_offered=True)
    assert offered == plain and fewer < steps
    forced, fewest = answer(8, is_offered=False)
    assert fewest < len(forced)


def test_the_places_that_were_cut() -> None:
    """Pointers name what the budget closed, in JSON and in calls."""
    vocabulary = Vocabulary([bytes([byte]) for byte in range(256)] + [None], eos=[256])
    text = b'{"name": "ab", "tags": []}'
    assert cut_places(vocabulary, list(text), 11, None, True) == ["/name", "/tags"]
    assert cut_places(vocabulary, list(text), 24, None, True) == ["/tags"]
    assert cut_places(vocabulary, list(b"free text"), 3, None, False) == [""]


class Limited:
    """A matcher that meets a limit."""

    is_accepting = False

    def fill_mask(self, row: Any) -> None:
        """Raise the limit."""
        raise LimitError("too many readings")

    def accept(self, token: int) -> bool:
        """Raise the limit."""
        raise LimitError("too many readings")


def test_a_limit_ends_one_text(spelling: Spelling) -> None:
    """A limit that a grammar meets is no exception in the engine: only the end may follow, and the text takes no more."""
    text = sequence(spelling, Grammar.from_json_schema(SCHEMA))
    text.matcher = Limited()  # type: ignore[assignment]
    assert allowed(text, spelling) == sorted(spelling.vocabulary.eos)
    assert isinstance(text.error, LimitError)
    assert not text.accept([min(spelling.vocabulary.eos)])
    text.reset()
    text.matcher = Limited()  # type: ignore[assignment]
    assert not text.accept([1]) and isinstance(text.error, LimitError)


def test_a_limit_met_along_a_draft_is_undone_with_it(spelling: Spelling, monkeypatch: pytest.MonkeyPatch) -> None:
    """vLLM fills masks along drafts and rolls back, and has drafts checked: a limit met there ends no text."""
    text = sequence(spelling, Grammar.from_regex("a*b"))
    (first,), (last,) = spelling.encode("a"), spelling.encode("b")
    matcher = text.matcher

    class AfterFirst(Limited):
        """The matcher, which meets a limit after the first token."""

        rollback = staticmethod(matcher.rollback)

        def accept(self, token: int) -> bool:
            """Take a first token."""
            return matcher.accept(token) if not text.tokens else super().accept(token)

    monkeypatch.setattr(text, "matcher", AfterFirst())
    assert text.allowed_prefix([first, first]) == [first] and text.error is None
    assert text.accept([first]) and allowed(text, spelling) == sorted(spelling.vocabulary.eos)
    assert isinstance(text.error, LimitError)
    text.rollback(1)
    assert text.error is None
    monkeypatch.setattr(text, "matcher", matcher)
    assert text.accept([last])
