"""Token healing: a prompt that ends inside a token does not distort what comes next."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from toolgrammar.core import Grammar, JsonMode, Model, Vocabulary, load_model
from toolgrammar.core.validation import is_valid

from ..backends import FakeBackend

TOKENS = [
    b" ",
    b"a",
    b"b",
    b" a",
    b" b",
    b" ab",
    b" c",
    b'"',
    b'{"',
    b' {"',
    b"k",
    b'": ',
    b'":',
    b"1",
    b"}",
    b" {",
    b"{",
]
AT = {data: token_id for token_id, data in enumerate(TOKENS)}
#: What the model says when the text does not end with a lone space, which it has never seen.
WANTED = {b" a": 0.5, b" b": 0.2, b" ab": 0.1, b" c": 0.2}


class Trained(FakeBackend):
    """A model that has only seen words with their space in front."""

    def __init__(self) -> None:
        super().__init__(Vocabulary([*TOKENS, None], eos=[len(TOKENS)]), context_window=200)

    def encode(self, text: str) -> list[int]:
        """Greedy, the longest token first."""
        data, ids = text.encode(), []
        while data:
            token = max((each for each in TOKENS if data.startswith(each)), key=len)
            ids.append(AT[token])
            data = data[len(token) :]
        return ids

    def logits(self, ids: Sequence[int]) -> Any:
        """The words behind a word, and nonsense behind a lone space, on which it was never trained."""
        logits = np.full(self.vocabulary.size, -9.0, dtype=np.float32)
        if ids[-1] == AT[b" "]:
            logits[AT[b"b"]] = 5.0
        else:
            for data, share in WANTED.items():
                logits[AT[data]] = np.log(share)
        return logits


def test_a_trailing_space_is_healed() -> None:
    """The word behind the space is the one that the model wants, not what it makes of a space that it never saw."""
    model = Model(Trained())
    grammar = Grammar.from_regex("(a|b)")
    assert model.generate("a", grammar=grammar, prefix="b ").text == "a"
    # The same text as a prompt, unhealed, shows what would happen.
    assert model.generate("ab ", grammar=grammar).text == "b"


def test_healed_draws_are_those_of_the_text() -> None:
    """The first word is drawn from the model's own distribution before the space, given what the grammar allows."""
    model = Model(Trained())
    grammar = Grammar.from_regex("(a|b|ab)")
    count = 1500
    drawn = Counter(
        model.generate("a", grammar=grammar, prefix="b ", temperature=1.0, seed=seed).text for seed in range(count)
    )
    # " a" may go on with "b", so only what begins with it and what does not can be told apart by the text.
    share = WANTED[b" b"] / (WANTED[b" a"] + WANTED[b" b"] + WANTED[b" ab"])
    assert set(drawn) <= {"a", "b", "ab"}
    statistic = (drawn["b"] - count * share) ** 2 / (count * share * (1 - share))
    assert statistic < 10.83


def test_forced_text_behind_a_prefix_is_spelled_as_one() -> None:
    """Where the grammar fixes what follows, the prefix's last token and it are written as the tokenizer would."""
    backend = Trained()
    grammar = Grammar.literal('{"k": ') + Grammar.from_regex("[1]{1,2}") + Grammar.literal("}")
    generation = Model(backend).generate("a", grammar=grammar, prefix="b ")
    assert generation.raw.startswith('{"k": 1')
    assert backend.passes[0] == [AT[b"a"], AT[b"b"], AT[b' {"'], AT[b"k"], AT[b'": '], AT[b"1"]]
    assert generation.token_ids[0] == AT[b' {"']


def test_a_prefix_that_ends_with_a_token_is_left_alone() -> None:
    """Where no token could go on from the prefix's last one, nothing changes: one pass reads it all."""
    backend = Trained()
    Model(backend).generate("a", grammar=Grammar.from_regex("[ab] c"), prefix="1")
    assert backend.passes[0] == [AT[b"a"], AT[b"1"]]


@pytest.mark.parametrize("prefix", [" ", "The answer: ", 'x = {"a": "', "né", "http:/", "\n"])
@pytest.mark.parametrize("seed", range(3))
def test_what_follows_any_prefix_is_valid(prefix: str, seed: int) -> None:
    """Healed or not, the text is in the grammar, and its tokens say the prefix's end and the text."""
    model = load_model("embedded")
    schema = {"type": "object", "properties": {"s": {"type": "string"}}, "required": ["s"]}
    generation = model.generate(
        "x", json_mode=JsonMode(schema), prefix=prefix, temperature=1.0, seed=seed, max_tokens=30
    )
    assert is_valid(json.loads(generation.text), schema)
    written = model.vocabulary.decode(generation.token_ids).decode()
    assert written.endswith(generation.raw) and prefix.endswith(written[: len(written) - len(generation.raw)])
    free = model.generate("x", prefix=prefix, temperature=1.0, seed=seed, max_tokens=5)
    assert free.text == free.raw != "" and len(free.token_ids) <= 5
