"""Common part of the backends with weights in this process."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ..conversation.messages import Message
from ..generation.backend import Session
from ..vocabulary.vocabulary import Vocabulary
from .images import Fetch
from .prefix_cache import KeptSession, PrefixCache, PrefixSession, extend_together
from .prompts import refuse_images
from .sessions import OpenSessions


class LocalBackend(ABC):
    """A `Backend` without a tokenizer: the description of a model, its open sessions, and its prefix cache.

    A subclass adds `encode`, `prompt_ids` and `new_session`.

    Args:
        name: the model's name.
        vocabulary: the exact bytes of every token.
        context_window: maximum number of tokens of a sequence.
        prefix_cache: maximum size of the prefix cache, in bytes; 0: no cache.
        tool_format: the wire format of tool calls; None: detect it from chat template and vocabulary.
        chat_template: text of the chat template, empty if there is none; None: the backend renders calls itself.
        takes_thinking: ``encode_prompt`` takes ``thinking``.

    Attributes:
        sees: the model reads images.
        blind: why it does not, or how it would: the hint of the error for an image.
        fetch_image: returns the bytes of an image at an address of a message; None: addresses are refused.
        yields: the prefix cache has one budget with grammars (see `PrefixCache`).
        prefixes: the prefix cache.
    """

    sees = False
    blind = "send text, or load a vision model: hf:NAME, or gguf:PATH with its projector (mmproj=PATH)"
    fetch_image: Fetch | None = None
    yields = False

    def __init__(
        self,
        name: str,
        vocabulary: Vocabulary,
        context_window: int,
        *,
        prefix_cache: int,
        tool_format: str | None,
        chat_template: str | None,
        takes_thinking: bool,
    ) -> None:
        self.name = name
        self.vocabulary = vocabulary
        self.context_window = context_window
        self.tool_format = tool_format
        self.chat_template = chat_template
        self.takes_thinking = takes_thinking
        self.prefixes = PrefixCache(prefix_cache, yields=self.yields)
        self._keeps_prefixes = prefix_cache > 0
        self._sessions: OpenSessions[Any] = OpenSessions()

    @abstractmethod
    def new_session(self) -> KeptSession:
        """Return an empty sequence, without the prefix cache."""

    def encode_prompt(
        self,
        messages: Sequence[Message],
        tools: Sequence[Mapping[str, Any]] = (),
        tool_prompt: str = "",
        thinking: bool | None = None,
    ) -> list[int]:
        """Return the token ids of a conversation, by the model's own chat template if it has one.

        The text of a message is never read as a control token.

        Args:
            messages: the conversation; the result for an empty one is the token that begins every sequence, if any.
            tools: passed to the template if it supports tools.
            tool_prompt: added to the system turn if it does not.
            thinking: if not None, passed to the template under the usual names of this variable.

        Raises:
            ModelError: the template refuses the conversation, a message has an image that the model cannot read, or the
                model is closed.
        """
        self._sessions.check()
        if not self.sees:
            refuse_images(messages, self.blind)
        return self.prompt_ids(messages, tools, tool_prompt, thinking)

    @abstractmethod
    def prompt_ids(
        self, messages: Sequence[Message], tools: Sequence[Mapping[str, Any]], tool_prompt: str, thinking: bool | None
    ) -> list[int]:
        """Return the token ids of a conversation, without images unless the model sees them; see `encode_prompt`."""

    def start(self) -> Session:
        """Open an empty sequence.

        Raises:
            ModelError: the model is closed, or there is no memory for another sequence.
        """
        self._sessions.check()
        return self.prefixes.start(self.new_session) if self._keeps_prefixes else self.new_session()

    def close(self) -> None:
        """Free the model and all its sequences; closing twice is allowed."""
        self.prefixes.close()
        self._sessions.close()


class SharedPasses(LocalBackend):
    """A `LocalBackend` whose sequences share forward passes (`BatchBackend`); a subclass adds ``can_batch``."""

    def begin(self, prompt: Sequence[int]) -> PrefixSession:
        """Open a sequence with a prefix of a prompt, from the prefix cache or from a running sequence.

        Raises:
            ModelError: the model is closed.
        """
        self._sessions.check()
        session = self.prefixes.start(self._new_shared)
        session.begin(prompt, shares=True)
        return session

    def _new_shared(self) -> KeptSession:
        """Return an empty sequence that can share forward passes; a subclass may have sequences of another kind."""
        return self.new_session()

    def extend_many(self, rows: Sequence[tuple[Session, Sequence[int]]]) -> list[npt.NDArray[np.float32]]:
        """Append tokens to several sequences of this backend's `begin` in one forward pass. An error changes nothing.

        Args:
            rows: pairs of a sequence and its new token ids, at least one.

        Returns:
            For each sequence the logits after its last token, shape ``[V]``.
        """
        return extend_together(rows, self._extend_rows)

    @abstractmethod
    def _extend_rows(self, rows: Sequence[tuple[KeptSession, Sequence[int]]]) -> list[npt.NDArray[np.float32]]:
        """Append tokens to several of the model's own sessions in one forward pass, as `extend_many` does."""
