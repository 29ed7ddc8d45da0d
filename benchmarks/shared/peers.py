"""The vocabulary of all comparisons, Tekken's, and its tokenizer."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import TYPE_CHECKING

from toolgrammar.core import Vocabulary

if TYPE_CHECKING:
    from benchmarks.shared.engines import Encode


def tekken_file() -> Path:
    """The tokenizer with 131,072 tokens that `mistral-common` ships."""
    import mistral_common

    return Path(mistral_common.__file__).parent / "data" / "tekken_240911.json"


@functools.cache
def tekken() -> tuple[Vocabulary, Encode]:
    """The vocabulary, and its tokenizer."""
    from mistral_common.tokens.tokenizers.tekken import Tekkenizer

    tokenizer = Tekkenizer.from_file(tekken_file())
    return Vocabulary.from_mistral(tokenizer), lambda text: tokenizer.encode(text, bos=False, eos=False)


def single_bytes() -> tuple[Vocabulary, Encode]:
    """A vocabulary of the 256 bytes: an engine's verdict does not depend on the vocabulary, its time does."""
    eos = 256
    return Vocabulary([*(bytes((byte,)) for byte in range(eos)), None], eos=[eos]), lambda text: list(text.encode())
