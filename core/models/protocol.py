"""The seam between decoding and a model that shows its logits.

A `Backend` is a loaded model with its tokenizer; a `Session` is one sequence being written, with its key/value
cache. Decoding needs nothing else, so a model is added by writing these two classes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from ..messages import Message
    from ..vocabulary import Vocabulary


class Session(Protocol):
    """One sequence and its cache.

    Law: the logits depend only on the token ids now in the sequence, not on how they came there.
    """

    @property
    def length(self) -> int:
        """How many tokens the sequence has."""
        ...

    def extend(self, token_ids: Sequence[int]) -> npt.NDArray[np.float32]:
        """Append tokens (at least one) in one forward pass; return the logits after the last, shape ``[V]``."""
        ...

    def crop(self, length: int) -> None:
        """Forget all tokens after the first ``length`` (no forward pass)."""
        ...

    def close(self) -> None:
        """Free the cache; the session must not be used afterwards."""
        ...


class Backend(Protocol):
    """A loaded model with its tokenizer."""

    @property
    def name(self) -> str:
        """The model's name, for people and for logs."""
        ...

    @property
    def vocabulary(self) -> Vocabulary:
        """The exact bytes of every token."""
        ...

    @property
    def context_window(self) -> int:
        """How many tokens fit in a sequence."""
        ...

    @property
    def tool_format(self) -> str:
        """The wire format in which this model writes tool calls."""
        ...

    def encode(self, text: str) -> list[int]:
        """Token ids as the tokenizer itself would write ``text`` (no control tokens added)."""
        ...

    def encode_prompt(
        self, messages: Sequence[Message], tools: Sequence[Mapping[str, Any]] = (), tool_prompt: str = ""
    ) -> list[int]:
        """Token ids of a conversation, up to where the assistant's turn begins.

        Args:
            messages: the conversation; may hold tool calls and results while ``tools`` is empty.
            tools: OpenAI-style tool dicts, for the model's own chat template.
            tool_prompt: text that describes the tools, for a model without such a template.
        """
        ...

    def start(self) -> Session:
        """A fresh, empty sequence."""
        ...
