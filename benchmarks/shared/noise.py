"""Models without weights: a tokenizer, and logits that do not look at the text."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Union

import numpy as np

from toolgrammar.core import Message, Vocabulary

Logits = np.ndarray[Any, np.dtype[np.float32]]


class Session:
    """A sequence whose logits follow from the number of bytes in it."""

    cached_tokens = 0

    def __init__(self, vocabulary: Vocabulary, logits: Callable[[int], Logits]) -> None:
        self._tokens = vocabulary.tokens
        self._logits = logits
        self._sizes: list[int] = []

    @property
    def length(self) -> int:
        """How many tokens the sequence has."""
        return len(self._sizes)

    def extend(self, token_ids: Sequence[int]) -> Logits:
        """Append tokens."""
        self._sizes += [len(self._tokens[token_id] or b"") for token_id in token_ids]
        return self._logits(sum(self._sizes)).copy()

    def crop(self, length: int) -> None:
        """Forget tokens."""
        del self._sizes[length:]

    def close(self) -> None:
        """Nothing to free."""


class NoiseBackend:
    """A model that reads nothing: a prompt is one token.

    Attributes:
        name: of the model.
        tool_format: the wire format of its calls.
        vocabulary: its tokens.
        logits: what it gives after every sequence, all zeros to begin with (a uniform choice over the mask); a
            function gives them for the number of bytes in the sequence.
    """

    context_window = 1 << 20
    chat_template = None
    takes_thinking = False

    def __init__(
        self, vocabulary: Vocabulary, encode: Callable[[str], Sequence[int]], name: str, tool_format: str = "hermes"
    ) -> None:
        self.vocabulary = vocabulary
        self.name = name
        self.tool_format = tool_format
        self.logits: Union[Logits, Callable[[int], Logits]] = np.zeros(vocabulary.size, dtype=np.float32)
        self._encode = encode

    def encode(self, text: str) -> list[int]:
        """As the tokenizer writes it."""
        return list(self._encode(text))

    def encode_prompt(
        self, messages: Sequence[Message], tools: Sequence[Mapping[str, Any]] = (), tool_prompt: str = ""
    ) -> list[int]:
        """One token: there is nobody to read more."""
        return [0]

    def close(self) -> None:
        """Nothing to free."""

    def start(self) -> Session:
        """A fresh sequence."""
        logits = self.logits
        return Session(self.vocabulary, logits if callable(logits) else lambda _: logits)
