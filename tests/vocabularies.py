"""The vocabulary of single bytes, a real one, and random texts written under a grammar."""

from __future__ import annotations

import functools
import random
from collections.abc import Sequence
from pathlib import Path

from toolgrammar.core import Grammar, Vocabulary

#: A token for each byte, and an end of text.
BYTES = Vocabulary([*(bytes([byte]) for byte in range(256)), None], eos=[256])


@functools.cache
def tekken() -> Vocabulary:
    """Return the real vocabulary of 131,072 tokens that ``mistral-common`` ships.

    Raises:
        ImportError: it is not installed.
    """
    import mistral_common
    from mistral_common.tokens.tokenizers.tekken import Tekkenizer

    file = Path(mistral_common.__file__).parent / "data" / "tekken_240911.json"
    return Vocabulary.from_mistral(Tekkenizer.from_file(file))


@functools.cache
def smollm2() -> Vocabulary:
    """Return the real vocabulary of 49,152 tokens of the model ``smollm2``.

    Raises:
        ImportError: the model is neither in the cache nor installed.
    """
    from toolgrammar.core import load_model
    from toolgrammar.core.models.published import SMOLLM2

    if SMOLLM2.find() is None:
        raise ImportError("the model smollm2 is not on this machine")
    with load_model("smollm2") as model:
        return model.vocabulary


def random_text(grammar: Grammar, seed: int, steps: Sequence[int], vocabulary: Vocabulary = BYTES) -> bytes:
    """Return a text of a grammar: some random bytes, mostly printable, and then the shortest way to the end.

    Args:
        steps: how many random bytes come first, at most: one of these numbers.
        vocabulary: one that begins with all bytes.
    """
    rng = random.Random(seed)
    matcher = grammar.bind(vocabulary).matcher()
    text = b""
    for _ in range(rng.choice(steps)):
        allowed = [token for token in matcher.allowed_tokens() if token < 256]
        printable = [token for token in allowed if 32 <= token < 127] if rng.random() < 0.9 else allowed
        if not allowed or (matcher.is_accepting and rng.random() < 0.2):
            break
        token = rng.choice(printable or allowed)
        assert matcher.accept(token)
        text += bytes([token])
    return text + matcher.shortest_completion()
