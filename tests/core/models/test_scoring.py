"""`Model.score` and `Model.choose`: probabilities of whole texts, checked by enumeration."""

from __future__ import annotations

import numpy as np
import pytest

from toolgrammar.core import ContextOverflowError, Grammar, ModelError
from toolgrammar.core.models import LocalModel, load_model

OPTIONS = ["yes", "no", "yesterday", "ye", "maybe not", "no, never", ""]


@pytest.fixture(scope="module")
def model() -> LocalModel:
    """The embedded model."""
    loaded = load_model("embedded")
    assert isinstance(loaded, LocalModel)
    return loaded


def enumerated(model: LocalModel, prompt: str, text: str) -> float:
    """Return the log-probability of a text, each token read in a sequence of its own."""
    from toolgrammar.core import Message

    ids = model.backend.encode_prompt([Message("user", prompt)])
    total = 0.0
    spelled = model.encode(text)
    for number in range(len(spelled) + 1):
        session = model.backend.start()
        logits = session.extend([*ids, *spelled[:number]]).astype(np.float64)
        session.close()
        values = logits - np.logaddexp.reduce(logits)
        wanted = [spelled[number]] if number < len(spelled) else sorted(model.vocabulary.eos)
        total += float(np.logaddexp.reduce(values[wanted]))
    return total


def test_probabilities_are_those_of_enumeration(model: LocalModel) -> None:
    """Each score is the product over all tokens and the end; probabilities are normalised; the likeliest is chosen."""
    choice = model.choose("Is it so?", OPTIONS)
    wanted = np.array([enumerated(model, "Is it so?", text) for text in OPTIONS])
    assert np.allclose([choice.scores[text].logprob for text in OPTIONS], wanted, atol=1e-3)
    shares = np.exp(wanted - np.logaddexp.reduce(wanted))
    assert np.abs(np.array([choice.probabilities[text] for text in OPTIONS]) - shares).sum() < 1e-3
    assert sum(choice.probabilities.values()) == pytest.approx(1)
    assert choice.value == OPTIONS[int(wanted.argmax())]
    single = model.score("Is it so?", "yesterday")
    assert single.logprob == pytest.approx(choice.scores["yesterday"].logprob, abs=1e-3)
    assert model.vocabulary.decode(single.token_ids) == b"yesterday" and len(single.logprobs) == len(single.token_ids)


def test_what_texts_share_is_read_once(model: LocalModel) -> None:
    """There is one forward pass for each different beginning of tokens, the prompt included."""
    beginnings = {tuple(model.encode(text)[:size]) for text in OPTIONS for size in range(len(model.encode(text)) + 1)}
    assert model.choose("Is it so?", OPTIONS).forward_passes == len(beginnings)


def test_draws_follow_the_probabilities(model: LocalModel) -> None:
    """With a temperature texts are drawn; equal seeds draw equally; a high temperature makes them even."""
    few = OPTIONS[:3]
    assert (
        model.choose("x", few, temperature=1.0, seed=3).value == model.choose("x", few, temperature=1.0, seed=3).value
    )
    assert {model.choose("x", few, temperature=1e6, seed=seed).value for seed in range(30)} == set(few)


def test_a_choice_by_first_tokens_may_differ(model: LocalModel) -> None:
    """What a grammar of the texts writes is one of them; the choice never has a lower probability."""
    grammar = Grammar.choice(*map(Grammar.literal, OPTIONS[:-1]))
    for prompt in ("Is it so?", "What now?", "Tell me"):
        choice = model.choose(prompt, OPTIONS[:-1])
        greedy = model.generate(prompt, grammar=grammar, max_tokens=20).text
        assert choice.probabilities[choice.value] >= choice.probabilities[greedy]


def test_wrong_requests(model: LocalModel) -> None:
    """No options, one twice, a string, a negative temperature and a text that does not fit are errors."""
    for options in ([], ["a", "a"], "ab"):
        with pytest.raises(ModelError):
            model.choose("x", options)
    with pytest.raises(ModelError, match="temperature"):
        model.choose("x", ["a"], temperature=-1.0)
    with pytest.raises(ContextOverflowError):
        model.score("x", "many words " * model.context_window)


@pytest.mark.parametrize("options", [None, 5, [1, 2], ["a", b"b"], "yes", ["a", "a"]])
def test_options_that_are_no_texts(model: LocalModel, options: object) -> None:
    """What is no list of different texts is an error of ours, before the model is asked."""
    with pytest.raises(ModelError, match="must be a list of distinct strings"):
        model.choose("x", options)  # type: ignore[arg-type]
    with pytest.raises(ModelError):
        model.choose("x", ["a", "b"], temperature="hot")  # type: ignore[arg-type]
    with pytest.raises(ModelError, match="text to score"):
        model.score("x", 5)  # type: ignore[arg-type]


def test_a_text_that_does_not_fit_is_not_read(model: LocalModel) -> None:
    """A text that is longer than the window is refused before the first forward pass; a generator of options is read."""
    with pytest.raises(ContextOverflowError, match="prompt and text have"):
        model.choose("x", ["a", "a b " * 100_000])
    assert set(model.choose("x", (one for one in "ab")).probabilities) == {"a", "b"}
