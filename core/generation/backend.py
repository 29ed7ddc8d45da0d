"""The seam between decoding and a model that shows its logits.

A `Backend` is a loaded model with its tokenizer; a `Session` is one sequence being written, with its key/value
cache. Decoding needs nothing else, so a model is added by writing these two classes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from ..conversation.messages import Message
    from ..vocabulary.vocabulary import Vocabulary


class Session(Protocol):
    """One sequence and its cache.

    A session that can go on from one that was computed before may have an attribute ``cached_tokens``: how many of its
    first tokens it took from there.

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


class BatchSession(Protocol):
    """Many sequences, each with its cache, that advance together.

    Laws: the logits of a row depend only on the token ids now in that row, not on the other rows nor on how its tokens
    came there; they are those of a `Session` with the same tokens, up to rounding.
    """

    def extend(self, rows: Sequence[tuple[int, Sequence[int]]]) -> list[npt.NDArray[np.float32]]:
        """Append tokens to some of the rows, in one forward pass.

        Args:
            rows: the key of a row and its new token ids, at least one; no key twice. Rows may differ in how many. A key
                that was not seen before (or was dropped) begins a new row.

        Returns:
            For each of them, in order, the logits after its last token, shape ``[V]``.
        """
        ...

    def crop(self, row: int, length: int) -> None:
        """Forget all tokens of a row after the first ``length`` (no forward pass)."""
        ...

    def drop(self, row: int) -> None:
        """Free the cache of a row; nothing happens if there is no such row."""
        ...

    def close(self) -> None:
        """Free all of it; the batch must not be used afterwards."""
        ...


class Backend(Protocol):
    """A loaded model with its tokenizer.

    A backend that can run several sequences in one forward pass also satisfies `BatchBackend`. One that holds what is
    better freed at once than by the collector has ``close()``, which closes its sessions too and may be called twice.
    """

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
    def tool_format(self) -> str | None:
        """The wire format in which this model writes tool calls; None: its chat template and vocabulary show it.

        A backend with a chat template has its text as ``chat_template`` besides (empty if the model came without one):
        where the template knows no calls, history comes with calls and results spelled out. A backend without that
        attribute writes history in its own way.
        """
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

        A backend whose template knows of reasoning may take ``thinking`` besides: a bool, by name, where the caller
        said whether the model is to reason.
        """
        ...

    def start(self) -> Session:
        """A fresh, empty sequence."""
        ...


@runtime_checkable
class BatchBackend(Protocol):
    """What a `Backend` offers besides, if it can run several sequences in one forward pass."""

    def start_batch(self) -> BatchSession:
        """An empty batch."""
        ...
