"""The protocols of local models, between the decoding loop and a model with logits.

A `Backend` is a loaded model with its tokenizer; a `Session` is one sequence with its key/value cache. Decoding needs
nothing else, so these two classes add a model.
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
    """Return the error for the use of a closed object."""
    return ModelError(f"the {thing} is closed", hint="load it again" if thing == "model" else "start a new one")


class Session(Protocol):
    """One sequence and its key/value cache.

    Laws: the logits depend only on the current token ids, not on the calls that made them; an error does not change the
    sequence.
    """

    @property
    def length(self) -> int:
        """Number of tokens in the sequence."""
        ...

    @property
    def cached_tokens(self) -> int:
        """Number of its first tokens that were reused from an earlier sequence."""
        ...

    def extend(self, token_ids: Sequence[int]) -> npt.NDArray[np.float32]:
        """Append tokens (at least one) in one forward pass; return the logits after the last, shape ``[V]``.

        Raises:
            ContextOverflowError: they do not fit in the context window.
            ModelError: no token is given, or the session is closed.
        """
        ...

    def crop(self, length: int) -> None:
        """Remove all tokens after the first ``length``, without a forward pass.

        Raises:
            ModelError: the sequence is shorter.
        """
        ...

    def close(self) -> None:
        """Free the cache; the session cannot be used afterwards. Closing twice is allowed."""
        ...


class TreeSession(Session, Protocol):
    """A `Session` that can evaluate a tree of continuations in one forward pass."""

    def branches(self, token_ids: Sequence[int], parents: Sequence[int]) -> npt.NDArray[np.float32] | None:
        """Return the logits after each token of a tree that continues the sequence, without changing the sequence.

        Args:
            token_ids: the tokens, each after its parent; at least one.
            parents: for each token the index of its parent; -1: it follows the sequence.

        Returns:
            Logits, shape ``[n, V]``: those of `extend` with the tokens of each branch, up to rounding. None if this
            model cannot read a tree.

        Raises:
            ContextOverflowError: the tokens of all branches together do not fit in the context window.
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
        """Wire format of this model's tool calls; None: detect it from the chat template and vocabulary."""
        ...

    @property
    def chat_template(self) -> str | None:
        """Text of the model's chat template; empty if it has none; None: the backend renders history itself.

        If the template does not support calls, `encode_prompt` receives history with calls and results as text.
        """
        ...

    @property
    def takes_thinking(self) -> bool:
        """True if `encode_prompt` takes the keyword ``thinking``, for a template with an option to reason."""
        ...

    def encode(self, text: str) -> list[int]:
        """Return the tokenizer's token ids of ``text``, without control tokens."""
        ...

    def encode_prompt(
        self, messages: Sequence[Message], tools: Sequence[Mapping[str, Any]] = (), tool_prompt: str = ""
    ) -> list[int]:
        """Return the token ids of a conversation, up to the beginning of the assistant's turn.

        With `takes_thinking` there is a fourth argument ``thinking: bool | None``: if the caller asked for reasoning.

        Args:
            messages: the conversation; may have tool calls and results even if ``tools`` is empty. The result for an
                empty one is the token that begins every sequence, if there is one.
            tools: OpenAI-style tool dicts, for the model's own chat template.
            tool_prompt: a description of the tools, for a model without such a template.
        """
        ...

    def start(self) -> Session:
        """Open an empty sequence."""
        ...

    def close(self) -> None:
        """Free the model and its sessions; closing twice is allowed."""
        ...


@runtime_checkable
class BatchBackend(Protocol):
    """A `Backend` that can append tokens to several sequences in one forward pass.

    Its methods, and those of the sessions of `begin`, are called by one thread at a time.
    """

    def can_batch(self) -> bool:
        """Return True if this model supports it (it may test this on a few tokens). If False, no other method is
        called."""
        ...

    def begin(self, prompt: Sequence[int]) -> Session:
        """Open a sequence that may already have a prefix of ``prompt`` (without its last token), from a cache.

        Its `length` is that of the prefix; the rest of the prompt is appended by `extend_many`, perhaps in pieces.
        """
        ...

    def extend_many(self, rows: Sequence[tuple[Session, Sequence[int]]]) -> list[npt.NDArray[np.float32]]:
        """Append tokens to several sequences in one forward pass; an error changes none of them.

        Args:
            rows: pairs of a session of `begin` and its new token ids, at least one; no session twice. The numbers of
                tokens may differ.

        Returns:
            For each sequence, in order, the logits after its last token, shape ``[V]``: those of a `Session` with the
            same tokens, up to rounding.

        Raises:
            ContextOverflowError: the tokens of a sequence do not fit in the context window.
            ModelError: a sequence has no new token, or is closed.
        """
        ...
