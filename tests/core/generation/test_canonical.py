"""Canonical spelling: the model writes a text only in the tokens in which its tokenizer would."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from toolgrammar.core import Grammar, load_model
from toolgrammar.core.models import LocalModel
from toolgrammar.core.validation import is_valid

PERSON: dict[str, Any] = {
    "type": "object",
    "properties": {"name": {"type": "string", "maxLength": 40}, "age": {"type": "integer"}, "ok": {"type": "boolean"}},
    "required": ["name", "age"],
    "additionalProperties": False,
}


@pytest.fixture(scope="module")
def model() -> LocalModel:
    """The embedded model, whose random weights like any spelling."""
    loaded = load_model("embedded")
    assert isinstance(loaded, LocalModel)
    return loaded


def own(model: LocalModel, ids: list[int]) -> bool:
    """Return True if the tokenizer writes the text of these tokens so."""
    return model.encode(model.vocabulary.decode(ids).decode()) == ids


def test_texts_are_spelled_as_the_tokenizer_spells_them(model: LocalModel) -> None:
    """Words of letters, drawn at a high temperature: always with the option, rarely without; all are valid."""
    grammar = Grammar.from_regex("[a-z]{30,60}")
    counts = {True: 0, False: 0}
    for seed in range(20):
        for canonical in counts:
            answer = model.generate("Go.", grammar=grammar, canonical=canonical, temperature=1.5, seed=seed)
            assert grammar.matches(answer.text)
            counts[canonical] += own(model, list(answer.token_ids))
    assert counts[True] == 20 and counts[False] < 10


def test_answers_stay_valid(model: LocalModel) -> None:
    """With any other option the answer is valid and within its budget."""
    for seed in range(20):
        options: dict[str, Any] = {"temperature": 2.0, "seed": seed, "max_tokens": 20 + seed, "top_p": 0.9}
        if seed % 2:
            options |= {"jump_forward": False}
        answer = model.generate("Go.", output_type=PERSON, canonical=True, exact_choice=seed % 3 == 0, **options)
        assert is_valid(json.loads(answer.text), PERSON)
        assert answer.usage.completion_tokens <= 20 + seed


def test_draws_keep_the_distribution(model: LocalModel) -> None:
    """A first token comes as often as its share among those that the tokenizer would write."""
    words = ["ab", "abc", "th", "the", "ing", "in"]
    grammar = Grammar.choice(*map(Grammar.literal, words))
    allowed = grammar.bind(model.vocabulary).matcher().allowed_tokens()
    tokens = model.vocabulary.tokens
    possible = [one for one in allowed if model.encode((tokens[one] or b"").decode()) == [one]]
    session = model.backend.start()
    from toolgrammar.core import Message

    logits = session.extend(model.backend.encode_prompt([Message("user", "Go.")])).astype(np.float64) / 3
    session.close()
    shares = np.exp(logits[possible] - np.logaddexp.reduce(logits[possible]))
    drawn = dict.fromkeys(possible, 0)
    for seed in range(500):
        options: dict[str, Any] = {"jump_forward": False, "temperature": 3.0, "seed": seed}
        answer = model.generate("Go.", grammar=grammar, canonical=True, **options)
        drawn[answer.token_ids[0]] += 1
    assert sum(abs(drawn[one] / 500 - share) for one, share in zip(possible, shares, strict=True)) / 2 < 0.08


def test_forced_spellings_do_not_end_a_text(model: LocalModel) -> None:
    """Where the grammar leaves only tokens that the tokenizer would not write, these are written."""
    vocabulary = model.vocabulary
    text = "the weather"
    grammar = Grammar.from_regex("the weathe(r|rs)?")
    answer = model.generate("Go.", grammar=grammar, canonical=True, jump_forward=False)
    assert answer.text.startswith(text[:-1]) and vocabulary.decode(answer.token_ids).decode() == answer.text
