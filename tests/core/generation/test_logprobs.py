"""Log-probabilities of tokens, the stop string that ended a text, and text completion without a chat template."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from toolgrammar.core import Finish, Grammar, Message, Model, ModelError, TokenWritten, load_model
from toolgrammar.core.testing import ScriptedModel

SCHEMA: Any = {
    "type": "object",
    "properties": {"a": {"type": "integer"}, "b": {"enum": ["red", "blue"]}},
    "required": ["a", "b"],
    "additionalProperties": False,
}


@pytest.fixture(scope="module")
def noise() -> Model:
    """The embedded model, whose weights are noise."""
    return load_model("embedded")


@pytest.mark.parametrize("grammar", [Grammar.text(min_chars=1), Grammar.from_json_schema(SCHEMA)], ids=["text", "json"])
def test_log_probabilities_are_the_models_among_what_is_allowed(noise: Model, grammar: Grammar) -> None:
    """Each is the log-softmax of the model's logits over the allowed tokens, whatever the temperature and the bias."""
    answer = noise.generate(
        "Who?", grammar=grammar, temperature=1.5, seed=3, max_tokens=30, logprobs=3, jump_forward=False,
        logit_bias={5: 2.0},
    )  # fmt: skip
    backend: Any = noise.backend  # type: ignore[attr-defined]
    session = backend.start()
    logits = session.extend(backend.encode_prompt([Message("user", "Who?")]))
    matcher = grammar.bind(backend.vocabulary).matcher()
    assert len(answer.tokens) == len(answer.token_ids) > 5
    chosen = 0
    for token, token_id in zip(answer.tokens, answer.token_ids, strict=True):
        allowed = np.array(matcher.allowed_tokens())
        scores = logits[allowed].astype(np.float64)
        expected = scores - np.log(np.exp(scores - scores.max()).sum()) - scores.max()
        assert token.token_id == token_id
        if not token.forced:
            chosen += 1
            assert token.logprob == pytest.approx(expected[allowed == token_id].item(), abs=1e-3)
            best = [int(one) for one in allowed[np.argsort(-expected, kind="stable")[:3]]]
            assert [one for one, _ in token.likeliest] == best
            assert [value for _, value in token.likeliest] == pytest.approx(sorted(expected)[::-1][:3], abs=1e-3)
        elif len(allowed) == 1:
            assert token.logprob == 0.0 and token.likeliest == ((token_id, 0.0),)
        assert matcher.accept(token_id)
        logits = session.extend([token_id])
    session.close()
    assert chosen > 3


def test_tokens_say_the_raw_text(noise: Model) -> None:
    """With forced text jumped over too, the bytes of the tokens are the text; a stream has the same tokens."""
    asked: Any = {"output_type": SCHEMA, "temperature": 1.0, "seed": 1, "max_tokens": 40, "logprobs": 0}
    answer = noise.generate("Who?", **asked)
    assert b"".join(token.data for token in answer.tokens).decode() == answer.raw
    assert all(token.logprob is not None and token.logprob <= 0 and not token.likeliest for token in answer.tokens)
    assert any(token.logprob == 0 for token in answer.tokens) and any(token.logprob for token in answer.tokens)
    streamed = [event for event in noise.stream("Who?", **asked) if isinstance(event, TokenWritten)]
    assert tuple(streamed) == answer.tokens
    assert noise.generate("Who?", max_tokens=3).tokens == ()


def test_reasoning_is_marked() -> None:
    """Tokens of the reasoning say so; the others are the answer."""
    model = ScriptedModel(["<think>2 and 2</think>\n\nFour."])
    answer = model.generate("2 and 2?", logprobs=1, thinking="auto", thinking_markers=("<think>", "</think>"))
    texts = {
        flag: b"".join(token.data for token in answer.tokens if token.reasoning is flag).decode()
        for flag in (True, False)
    }
    assert answer.message.reasoning == "2 and 2" and "2 and 2" in texts[True]
    assert texts[False].strip("\n") == answer.text == "Four."


def test_the_stop_string_is_named() -> None:
    """The one that ended the text, in a stream too; None where none did."""
    model = ScriptedModel(lambda messages: "one two three")
    assert model.generate("Count.", stop=["three", "two"]).stop == "two"
    assert model.generate("Count.", stop=["four"]).stop is None
    events = list(model.stream("Count.", stop="thr"))
    assert isinstance(events[-1], Finish) and events[-1].stop == "thr"


def test_an_empty_conversation_goes_on_with_the_prefix(noise: Model) -> None:
    """The model reads the prefix alone: no chat template, and the same logits as its tokens have by themselves."""
    prefix = "def add(a, b):\n    return "
    answer = noise.generate([], prefix=prefix, max_tokens=1, logprobs=0)
    backend: Any = noise.backend  # type: ignore[attr-defined]
    ids = backend.encode(prefix)
    assert answer.usage.prompt_tokens <= len(ids) + 1 and answer.text
    with pytest.raises(ModelError, match="not empty"):
        noise.generate([])
    scripted = ScriptedModel(lambda messages: "to be or not to be")
    assert scripted.generate([], prefix="to be or ").text == "not to be"
    assert scripted.requests == [()]
