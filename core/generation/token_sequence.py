"""The sequence of tokens of one generation, and its requests for forward passes."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Union

from ..errors import DecodingError
from .retokenise import common_prefix

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from .sampler import Sampler
    from .tracer import Tracer


@dataclass
class Forward:
    """A request for a forward pass: append these tokens to the sequence, and send the logits after the last one.

    Attributes:
        token_ids: the tokens.
        is_over: called repeatedly by a driver while the request waits. If it returns True or raises, the generation is
            over, and the driver sends None.
        kept: None; or the number of tokens of the sequence that stay, when the others are replaced by these.
        parents: None; or for each token of a tree the index of its parent (-1: root). The model evaluates the tree
            without appending it, and the logits after each token are sent, ``[n, V]`` (see `TreeSession`).
        cached_tokens: set by the driver: number of the tokens that were reused from a cache.
        passes: set by the driver: number of forward passes; more than one if the model cannot evaluate a tree.
        seconds: set by the driver: time of the forward pass, also of one for several sequences.
    """

    token_ids: tuple[int, ...]
    is_over: Callable[[], bool] | None = None
    parents: tuple[int, ...] | None = None
    kept: int | None = None
    cached_tokens: int = 0
    passes: int = 1
    seconds: float = 0.0


if TYPE_CHECKING:
    Logits = Generator[Forward, Union[npt.NDArray[np.float32], None], npt.NDArray[np.float32]]


class Unanswered(Exception):
    """The driver sent None for logits: the generation ended while it waited."""


@dataclass(eq=False)
class TokenSequence:
    """Prompt and output of one generation, and the part that the model has read.

    Args:
        prompt: at least one token; `replace_prompt` replaces it.
        size: number of tokens of the vocabulary.
        sampler: receives each token, for the repetition penalty.
        tracer: receives each forward pass, and each token that is taken back; None: no trace.
        is_over: the `Forward.is_over` of all requests.

    Attributes:
        token_ids: the output, without the end-of-text token.
        logits: after the last token that the model has read; None before the first forward pass.
        forward_passes: number of forward passes.
        cached_tokens: number of tokens of the first prompt that were reused from a cache.
    """

    prompt: Sequence[int]
    size: int
    sampler: Sampler
    tracer: Tracer | None
    is_over: Callable[[], bool]

    def __post_init__(self) -> None:
        self.token_ids: list[int] = []
        self.logits: npt.NDArray[np.float32] | None = None
        self.forward_passes = 0
        self.cached_tokens = 0
        self._unread = list(self.prompt)
        self._read: list[int] = []
        self._kept: int | None = None  # of the tokens that were read, those that the sequence still has; None: all
        self._healed = 0  # number of tokens at the end of the prompt that the output replaces
        self._forced: list[bool] = []  # for each token of the output
        self._replaces_choice = False  # the next token replaces one that the model chose

    @property
    def forced_tokens(self) -> int:
        """Number of output tokens that the model did not choose."""
        return sum(self._forced)

    def append(self, token_id: int, forced: bool) -> None:
        """Append a token to the output.

        Args:
            token_id: the token.
            forced: the model did not choose it. A token that replaces a chosen one counts as chosen.
        """
        self.token_ids.append(token_id)
        self._forced.append(forced and not self._replaces_choice)
        self._replaces_choice = False
        self._add_unread(token_id)

    def take_back(self) -> None:
        """Remove the last token of the output, which the model has not read."""
        self._remove_unread(self.token_ids.pop())
        self._replaces_choice = not self._forced.pop()
        if self.tracer is not None:
            self.tracer.take_back()

    def shorten_prompt(self, token_id: int) -> None:
        """Remove the last token of the prompt, which the model has not read."""
        self._healed += 1
        self._remove_unread(token_id)

    def restore_prompt(self, token_id: int) -> None:
        """Add a token of the prompt again that was removed."""
        self._healed -= 1
        self._add_unread(token_id)

    def _remove_unread(self, token_id: int) -> None:
        self._unread.pop()
        self.sampler.forget((token_id,))

    def _add_unread(self, token_id: int) -> None:
        self._unread.append(token_id)
        self.sampler.saw((token_id,))

    def replace_prompt(self, prompt: Sequence[int]) -> None:
        """Replace the prompt by one with the same end; the output is kept.

        The model reads the tokens again from the first one that differs.
        """
        if list(prompt) == list(self.prompt):
            return
        self.sampler.forget(self.prompt[: len(self.prompt) - self._healed])
        self.prompt = prompt
        begin = prompt[: len(prompt) - self._healed]
        self.sampler.saw(begin)
        ids = [*begin, *self.token_ids]
        kept = min(common_prefix(self._read, ids), len(ids) - 1)
        self._unread = ids[kept:]
        self._kept = kept if self._read else None
        self.logits = None

    def read(self) -> Logits:
        """Return the logits after the last token, by one forward pass if the model has not read all tokens.

        Raises:
            Unanswered: the generation is over.
            DecodingError: the logits have another shape.
        """
        # All tokens may be read: if a token was taken back, and no other appended.
        if self.logits is None or self._unread:
            forward = Forward(tuple(self._unread), self.is_over, kept=self._kept)
            # What the model will have read: the tokens that it keeps, and these.
            self._read[len(self._read) if self._kept is None else self._kept :] = self._unread
            self._unread, self._kept = [], None
            self.forward_passes += 1
            logits = yield forward
            if logits is None:
                raise Unanswered
            if self.forward_passes == 1:
                self.cached_tokens = min(forward.cached_tokens, len(self.prompt))
            if self.tracer is not None:
                self.tracer.forward(forward.seconds, self.forward_passes == 1)
            if logits.shape != (self.size,):
                raise DecodingError(
                    f"the model gave logits of shape {logits.shape} for {self.size} tokens",
                    hint="use the vocabulary of this very model",
                )
            self.logits = logits
        return self.logits

    def look_ahead(self, token_ids: tuple[int, ...], parents: tuple[int, ...]) -> Logits:
        """Return the logits after each token of a tree that continues the sequence, without changing the sequence.

        Raises:
            Unanswered: the generation is over.
            DecodingError: the logits have another shape.
        """
        forward = Forward(token_ids, self.is_over, parents)
        logits = yield forward
        if logits is None:
            raise Unanswered
        self.forward_passes += forward.passes
        if self.tracer is not None:
            self.tracer.forward(forward.seconds, False)
        if logits.shape != (len(token_ids), self.size):
            raise DecodingError(f"the model gave logits of shape {logits.shape} for a tree of {len(token_ids)} tokens")
        return logits
