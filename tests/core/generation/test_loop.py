"""The loop itself: control tokens on the way, faults inside a model, and what a driver sees."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from toolgrammar.core import (
    BudgetError,
    ContextOverflowError,
    DecodingError,
    GenerateParams,
    Grammar,
    JsonMode,
    Model,
    TokenWritten,
    Vocabulary,
)
from toolgrammar.core.generation.loop import Decoding
from toolgrammar.core.generation.retokenise import spell_somehow
from toolgrammar.core.generation.token_sequence import Forward
from toolgrammar.core.models.numpy_llama.embedded import EmbeddedBackend
from toolgrammar.core.validation import is_valid

from ..backends import Noise

SCHEMA = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "n": {"type": "integer"}},
    "required": ["name", "n"],
    "additionalProperties": False,
}


A, B, C = (Grammar.special(name) for name in ("<a>", "<b>", "<c>"))
LETTER = Grammar.literal("x")

CONTROLLED = {
    "a loop before the end": Grammar.repeat(A) + B + B,
    "text or control": Grammar.repeat(LETTER | A) + B + Grammar.literal("x"),
    "control in front of text that looks like the loop": Grammar.repeat(LETTER) + (C + LETTER),
    "many": Grammar.repeat(A, 5, 9) + Grammar.repeat(B + LETTER, 3) + C,
    "two ways": (A + Grammar.literal("a long way to go")) | (B + A + B + A),
    "around JSON": B + Grammar.from_json_schema({"type": "array", "items": {"enum": ["x"]}, "uniqueItems": True}) + A,
}


@pytest.mark.parametrize("name", CONTROLLED)
@pytest.mark.parametrize("jump", [True, False])
def test_control_tokens_on_the_way_do_not_stop_the_end(name: str, jump: bool) -> None:
    """With control tokens in loops and detours a text always ends, within its budget, from the minimum on."""
    model = Model(Noise(["<a>", "<b>", "<c>"]))
    grammar = CONTROLLED[name]
    with pytest.raises(BudgetError, match=r"needs (\d+) tokens") as caught:
        model.generate("x", grammar=grammar, max_tokens=1)
    least = int(str(caught.value).split("needs ")[1].split()[0])
    for budget in (*range(least, least + 12), 60):
        generation = model.generate(
            "x", grammar=grammar, max_tokens=budget, temperature=1.0, seed=budget, jump_forward=jump
        )
        assert len(generation.token_ids) <= budget
        matcher = grammar.bind(model.vocabulary).matcher()
        assert all(matcher.accept(token_id) for token_id in generation.token_ids)
        assert matcher.is_accepting


def test_the_least_budget_counts_control_tokens() -> None:
    """The shortest completion is the one with the fewest bytes and control tokens together."""
    matcher = CONTROLLED["two ways"].bind(Noise(["<a>", "<b>", "<c>"]).vocabulary).matcher()
    assert matcher.shortest_parts() == ["<b>", "<a>", "<b>", "<a>"]
    matcher = CONTROLLED["many"].bind(Noise(["<a>", "<b>", "<c>"]).vocabulary).matcher()
    assert matcher.shortest_parts() == ["<a>"] * 5 + ["<b>", b"x"] * 3 + ["<c>"]


def test_what_the_tokenizer_cannot_spell_is_spelled_in_the_fewest_tokens() -> None:
    """Where the tokenizer has no exact spelling, or half a character stands first, the fewest tokens are taken."""
    tokens = [b"a", b"ab", b"b", b"bcd", b"abc", b"d", b"\x80", b"\xe2", b"\x80\x80"]
    backend = Noise()
    backend.vocabulary = Vocabulary([*tokens, None], eos=[len(tokens)])
    backend.encode = lambda text: []  # type: ignore[method-assign]
    assert [tokens[each] for each in spell_somehow(backend, b"abbcdab")] == [b"ab", b"bcd", b"ab"]
    assert [tokens[each] for each in spell_somehow(backend, b"\x80\x80ab")] == [b"\x80\x80", b"ab"]
    with pytest.raises(DecodingError, match="no token"):
        spell_somehow(backend, b"abx")


FAULTS: dict[str, tuple[Callable[[Any], Any], str]] = {
    "NaN": (lambda logits: logits * np.nan, "the model gave nan"),
    "infinity": (lambda logits: logits + np.inf, "the model gave inf"),
    "never anything": (lambda logits: logits - np.inf, "the model gave only -inf"),
    "too few": (lambda logits: logits[:100], r"shape \(100,\) for 257 tokens"),
    "too many": (lambda logits: np.concatenate([logits, logits]), r"shape \(514,\) for 257 tokens"),
    "one for each position": (lambda logits: logits[None], r"shape \(1, 257\) for 257 tokens"),
    "nothing": (lambda logits: None, "shape None"),
}


@pytest.mark.parametrize("name", FAULTS)
@pytest.mark.parametrize("temperature", [0.0, 1.0])
@pytest.mark.parametrize("after", [0, 3])
def test_broken_logits_are_named_and_leave_nothing_open(name: str, temperature: float, after: int) -> None:
    """Whatever is wrong with logits is an error of ours that says so; the session is freed, the next request fine."""
    spoil, message = FAULTS[name]
    backend = Noise()
    model = Model(backend)
    passes = iter(range(1000))
    backend.spoil = lambda logits: spoil(logits) if next(passes) >= after else logits
    request = GenerateParams(json_mode=JsonMode(SCHEMA), temperature=temperature, seed=3, max_tokens=60)
    with pytest.raises(DecodingError, match=message):
        model.generate("x", request)
    assert backend.open == 0
    backend.spoil = lambda logits: logits
    assert is_valid(json.loads(model.generate("x", request).text), SCHEMA)
    assert backend.open == 0


def test_logits_of_forbidden_tokens_may_be_anything() -> None:
    """Only what is allowed is read where little is: broken logits elsewhere change nothing."""
    backend = Noise()
    model = Model(backend)
    grammar = Grammar.from_regex("(yes|no|maybe)+!")
    request = GenerateParams(grammar=grammar, temperature=1.0, seed=5, max_tokens=40)
    expected = model.generate("x", request).token_ids

    def spoil(logits: Any) -> Any:
        wanted = [ord(each) for each in "yesnomaybe!"]
        broken = np.full_like(logits, np.nan)
        broken[wanted] = logits[wanted]
        return broken

    backend.spoil = spoil
    assert model.generate("x", request).token_ids == expected


def test_a_long_prompt_is_refused_and_a_tight_window_is_a_budget() -> None:
    """A prompt that leaves no room for the shortest answer is an overflow, with its sizes; one that leaves a little more
    is answered within it."""
    backend = Noise()
    model = Model(backend)
    with pytest.raises(ContextOverflowError, match="prompt is too long: 500 tokens > 500 maximum"):
        model.generate("y" * 500)
    with pytest.raises(
        ContextOverflowError, match=r"too long: 5\d\d tokens > 500 maximum, with the \d+ of the shortest"
    ):
        model.generate("y" * 490, json_mode=JsonMode(SCHEMA))
    with pytest.raises(BudgetError, match="set max_tokens"):
        model.generate("y" * 470, json_mode=JsonMode(SCHEMA), max_tokens=3)
    generation = model.generate("y" * 470, json_mode=JsonMode(SCHEMA), temperature=1.0, seed=1)
    assert is_valid(json.loads(generation.text), SCHEMA) and len(generation.token_ids) <= 30
    assert backend.open == 0


def test_cancelling_in_the_middle_of_a_jump_frees_the_session() -> None:
    """A stream that is closed between two tokens of one forced run, or cancelled there, leaves nothing open."""
    backend = Noise()
    model = Model(backend)
    grammar = Grammar.from_regex("[ab]") + Grammar.literal("a long forced run of text") + Grammar.from_regex("[cd]")
    stream = model.stream("x", grammar=grammar, trace=True)
    for _ in range(9):
        next(stream)
    stream.close()
    assert backend.open == 0
    polled = iter([False, True])
    events = list(model.stream("x", grammar=grammar, cancel=lambda: next(polled, True)))
    assert events[-1].reason == "cancelled" and backend.open == 0
    assert grammar.matches(model.generate("x", grammar=grammar).text)


def test_the_loop_asks_its_driver_for_logits() -> None:
    """`Decoding` runs no model: it yields what must be read, prompt first, and takes the logits."""
    backend = EmbeddedBackend()
    matcher = Grammar.from_json_schema(SCHEMA).bind(backend.vocabulary).matcher()
    decoding = Decoding(
        backend, backend.encode("Hello"), matcher, GenerateParams(temperature=1.0, seed=2, max_tokens=50)
    )
    steps = decoding.steps()
    session = backend.start()
    read: list[int] = []
    written = b""
    reply = None
    while True:
        try:
            item = steps.send(reply)
        except StopIteration:
            break
        reply = None
        if isinstance(item, Forward):
            read += item.token_ids
            reply = session.extend(item.token_ids)
        else:
            assert isinstance(item, TokenWritten)
            written += item.data
    assert read == [*backend.encode("Hello"), *decoding.token_ids][: len(read)]
    assert is_valid(json.loads(written), SCHEMA)
    assert decoding.sequence.forward_passes < len(decoding.token_ids)


def test_penalty_bias_and_stop_work_through_the_model() -> None:
    """A token that is banned by its bias is not written, nor a repeated one under a heavy penalty."""
    model = Model(Noise())
    digits = Grammar.from_regex("[0-9]{10}")
    banned = model.generate("x", grammar=digits, logit_bias={ord(each): -1000.0 for each in "02468"}).text
    assert set(banned) <= set("13579")
    once = model.generate("x", grammar=digits, repetition_penalty=1e6).text
    assert len(set(once)) == 10


def test_bad_penalty_and_bias_are_named() -> None:
    """A penalty that is not positive, and a bias that is no map from ids to numbers, are clear errors."""
    from toolgrammar.core import ModelError

    model = Model(Noise())
    with pytest.raises(ModelError, match="repetition_penalty is 0"):
        model.generate("x", repetition_penalty=0)
    for bias in ([1], {"a": 1.0}, {1: float("nan")}, {-1: 0.0}):
        with pytest.raises(ModelError, match="logit_bias"):
            model.generate("x", logit_bias=bias)
