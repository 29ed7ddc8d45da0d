"""What all comparisons share: the real vocabulary, and that vocabulary as each peer wants it."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

from toolgrammar.core import Vocabulary

#: Writes a text as tokens.
Encode = Callable[[str], list[int]]


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


def single_bytes(vocabulary: Vocabulary) -> dict[int, int]:
    """The token of each byte that is a token."""
    return {token[0]: index for index, token in enumerate(vocabulary.tokens) if token is not None and len(token) == 1}


def llguidance_tokenizer(vocabulary: Vocabulary, encode: Encode | None = None) -> Any:
    """llguidance's view of a vocabulary; without ``encode`` it writes byte by byte."""
    from llguidance import LLTokenizer, TokenizerWrapper

    single = single_bytes(vocabulary)

    class Inner:
        eos_token_id = min(vocabulary.eos)
        bos_token_id = None
        tokens = [b"\xff<%d>" % index if token is None else token for index, token in enumerate(vocabulary.tokens)]
        special_token_ids = [index for index, token in enumerate(vocabulary.tokens) if token is None]

        def __call__(self, text: Any) -> list[int]:
            if encode is not None:
                return encode(text if isinstance(text, str) else text.decode("utf-8", "replace"))
            return [single[byte] for byte in (text if isinstance(text, bytes) else text.encode())]

    return LLTokenizer(TokenizerWrapper(Inner()))


def xgrammar_info(vocabulary: Vocabulary) -> Any:
    """xgrammar's view of a vocabulary."""
    import xgrammar

    tokens = [b"" if token is None else token for token in vocabulary.tokens]
    return xgrammar.TokenizerInfo(
        tokens, vocab_type=xgrammar.VocabType.RAW, vocab_size=len(tokens), stop_token_ids=sorted(vocabulary.eos)
    )


def glrmask_vocabulary(vocabulary: Vocabulary) -> Any:
    """glrmask's view of a vocabulary: tokens without text are left out, as its authors do."""
    import glrmask

    return glrmask.Vocab.from_id_to_bytes(
        {index: token for index, token in enumerate(vocabulary.tokens) if token is not None}
    )
