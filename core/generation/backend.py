"""The seam between decoding and a model that shows its logits.

A `Backend` is a loaded model with its tokenizer; a `Session` is one sequence being written, with its key/value
cache. Decoding needs nothing else, so a model is added by writing these two classes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, Protocol, runtime_checkable

from ..errors import ModelError

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from ..conversation.messages import Message
    from ..vocabulary.vocabulary import Vocabulary


def closed_error(thing: Literal["model", "session"]) -> ModelError:
    """Return the error for the use of something that was closed."""
    return ModelError(f"the {thing} is closed", hint="load it again" if thing == "model" else "start a new one")


class Session(Protocol):
    """One sequence and its key/value cache.

    Laws: the logits depend only on the token ids now in the sequence, not on how they came there; an error leaves the
    sequence as it was.
    """

    @property
    def length(self) -> int:
        """Number of tokens in the sequence."""
        ...

    @property
    def cached_tokens(self) -> int:
        """Number of its first tokens that were reused from an earlier sequence, and not computed again."""
        ...

    def extend(self, token_ids: Sequence[int]) -> npt.NDArray[np.float32]:
        """Append tokens (at least one) in one forward pass; return the logits after the last, shape ``[V]``.

        Raises:
            ContextOverflowError: they do not fit in the context window.
            ModelError: there are none, or the session is closed.
        """
        ...

    def crop(self, length: int) -> None:
        """Forget all tokens after the first ``length``, without a forward pass.

        Raises:
            ModelError: the sequence is not that long.
        """
        ...

    def close(self) -> None:
        """Free the cache; the session cannot be used afterwards. Closing twice is allowed."""
        ...


class TreeSession(Session, Protocol):
    """A `Session` that can look ahead along several branches in one forward pass."""

    def branches(self, token_ids: Sequence[int], parents: Sequence[int]) -> npt.NDArray[np.float32] | None:
        """Return the logits after each token of a tree that follows the sequence, which stays as it is.

        Args:
            token_ids: the tokens, each after its parent; at least one.
            parents: for each the index of the token before it on its branch; -1 where that is the end of the sequence.

        Returns:
            Logits, shape ``[n, V]``: those of `extend` with the tokens of each branch, up to rounding. None if this
            model cannot read a tree.

        Raises:
            ContextOverflowError: the tokens do not fit in the context window beside each other.
        """
        ...


class Backend(Protocol):
    """A loaded model with its tokenizer.

    A backend that can run several sequences in one forward pass also satisfies `BatchBackend`.
    ``toolgrammar.core.testing.check_backend`` checks these laws.
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
        """Number of tokens that fit in a sequence."""
        ...

    @property
    def tool_format(self) -> str | None:
        """Wire format in which this model writes tool calls; None: its chat template and vocabulary show it."""
        ...

    @property
    def chat_template(self) -> str | None:
        """Text of the model's chat template, empty if the model came without one.

        Where the template knows no calls, `encode_prompt` gets history with calls and results rendered as text. None:
        the backend renders history itself.
        """
        ...

    @property
    def takes_thinking(self) -> bool:
        """True if `encode_prompt` takes the keyword ``thinking``, for a template that asks whether to reason."""
        ...

    def encode(self, text: str) -> list[int]:
        """Return the token ids that the tokenizer writes for ``text``, without control tokens."""
        ...

    def encode_prompt(
        self, messages: Sequence[Message], tools: Sequence[Mapping[str, Any]] = (), tool_prompt: str = ""
    ) -> list[int]:
        """Return the token ids of a conversation, up to where the assistant's turn begins.

        With `takes_thinking` there is a fourth argument ``thinking: bool | None``: whether the caller asked to reason.

        Args:
            messages: the conversation; may hold tool calls and results while ``tools`` is empty. An empty one has only
                the token that every sequence begins with, if there is one.
            tools: OpenAI-style tool dicts, for the model's own chat template.
            tool_prompt: text that describes the tools, for a model without such a template.
        """
        ...

    def start(self) -> Session:
        """Open a fresh, empty sequence."""
        ...

    def close(self) -> None:
        """Free the model and its sessions; closing twice is allowed."""
        ...


@runtime_checkable
class BatchBackend(Protocol):
    """A `Backend` that can append tokens to several sequences in one forward pass.

    Its methods, and those of the sessions that `begin` opens, are called by one thread at a time.
    """

    def can_batch(self) -> bool:
        """Return True if this model can do so; may try it on a few tokens. If not, nothing else is called."""
        ...

    def begin(self, prompt: Sequence[int]) -> Session:
        """Open a sequence that may hold a beginning of ``prompt`` already, all but its last token at most.

        Its `length` tells how much; the rest of the prompt is appended by `extend_many`, perhaps in pieces.
        """
        ...

    def extend_many(self, rows: Sequence[tuple[Session, Sequence[int]]]) -> list[npt.NDArray[np.float32]]:
        """Append tokens to several sequences in one forward pass; an error leaves all of them as they were.

        Args:
            rows: pairs of a session of `begin` and its new token ids, at least one; no session twice. The numbers of
                tokens may differ.

        Returns:
            For each sequence, in order, the logits after its last token, shape ``[V]``: those of a `Session` with the
            same tokens, up to rounding.

        Raises:
            ContextOverflowError: the tokens of a sequence do not fit in the context window.
            ModelError: a sequence gets no token, or is closed.
        """
        ...
