"""Probabilities of whole texts under a model, and an exact choice among several texts."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np

from ..basics.pauses import pause
from ..errors import ContextOverflowError, ModelError
from ..generation.backend import Backend, Session
from ..generation.driver import ForwardLock
from ..generation.logprobs import log_softmax
from ..generation.token_tree import TokenTree

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy.typing as npt

#: Maximum number of texts that are compared.
MAX_TEXTS = 4_096


@dataclass(frozen=True)
class Score:
    """The probability that a model writes a text.

    Attributes:
        text: the text.
        token_ids: the tokenizer's tokens of it.
        logprobs: natural logarithm of the probability of each token, given the prompt and the tokens before it.
        end_logprob: natural logarithm of the probability of the end of the text after them.
    """

    text: str
    token_ids: tuple[int, ...]
    logprobs: tuple[float, ...]
    end_logprob: float

    @property
    def logprob(self) -> float:
        """Natural logarithm of the probability that the model writes exactly this text, and ends."""
        return float(sum(self.logprobs)) + self.end_logprob


@dataclass(frozen=True)
class Choice:
    """A choice among several texts.

    Attributes:
        value: the chosen text.
        probabilities: the probability of each text, given that the answer is one of them.
        scores: the score of each text.
        forward_passes: number of forward passes.
    """

    value: str
    probabilities: Mapping[str, float]
    scores: Mapping[str, Score]
    forward_passes: int


class Scorer:
    """Scores texts after one prompt; common prefixes are read once.

    Args:
        backend: the model.
        lock: held during each forward pass only.
        prompt: the tokens of the prompt, at least one.
    """

    def __init__(self, backend: Backend, lock: ForwardLock, prompt: Sequence[int]) -> None:
        self._backend = backend
        self._lock = lock
        self._prompt = tuple(prompt)
        self.forward_passes = 0

    @property
    def prompt_tokens(self) -> int:
        """Number of tokens of the prompt."""
        return len(self._prompt)

    def scores(self, texts: Sequence[str]) -> dict[str, Score]:
        """Return the score of each text, by one forward pass for each branch of the tree of their tokens.

        Raises:
            ModelError: there are no texts, or more than `MAX_TEXTS`.
            ContextOverflowError: prompt and text do not fit in the context window.
        """
        if not 0 < len(texts) <= MAX_TEXTS:
            raise ModelError(f"there are {len(texts):,} texts to compare", hint=f"give 1 to {MAX_TEXTS:,}")
        spelled = {text: tuple(self._backend.encode(text)) for text in texts}
        longest = len(self._prompt) + max(map(len, spelled.values()))
        if longest > self._backend.context_window:
            raise ContextOverflowError(
                f"prompt and text have {longest} tokens, and the context window {self._backend.context_window}",
                hint="shorten the prompt or the text",
            )
        eos = sorted(self._backend.vocabulary.eos)
        logprobs: dict[str, list[float]] = {text: [] for text in spelled}
        ends: dict[str, float] = {}
        tree = TokenTree(spelled.values())
        # For the prompt, then for each node, as `_logits` yields them: the texts that go on from there, each with the
        # number of its tokens up to there. The index of the empty text in the tree is -1.
        texts_at: list[list[tuple[str, int]]] = [[] for _ in range(len(tree.token_ids) + 1)]
        for text, ids in spelled.items():
            for depth in range(len(ids) + 1):
                texts_at[tree.index(ids[:depth]) + 1].append((text, depth))
        for here, logits in zip(texts_at, self._logits(tree), strict=True):
            values = log_softmax(logits)
            for text, depth in here:
                ids = spelled[text]
                if depth < len(ids):
                    logprobs[text].append(float(values[ids[depth]]))
                else:
                    ends[text] = float(np.logaddexp.reduce(values[eos])) if eos else 0.0
        return {text: Score(text, ids, tuple(logprobs[text]), ends[text]) for text, ids in spelled.items()}

    def _logits(self, tree: TokenTree) -> Generator[npt.NDArray[np.float32], None, None]:
        """Yield the logits after the prompt, then after each node of a tree that follows it, each by one forward
        pass."""
        with self._lock:
            session = self._backend.start()
        try:
            yield self._read(session, 0, self._prompt)
            for token_id, depth in zip(tree.token_ids, tree.depths, strict=True):
                yield self._read(session, len(self._prompt) + depth - 1, (token_id,))
        finally:
            session.close()

    def _read(self, session: Session, kept: int, ids: Sequence[int]) -> npt.NDArray[np.float32]:
        """Return the logits after the first ``kept`` tokens of a session and ``ids``, which replace the others."""
        pause()
        with self._lock:
            if kept:
                session.crop(kept)
            self.forward_passes += 1
            return session.extend(ids)


def choice_of(scores: Mapping[str, Score], forward_passes: int, temperature: float, seed: int | None) -> Choice:
    """Return the choice among scored texts.

    Args:
        scores: the texts with their scores.
        forward_passes: number of forward passes for the scores.
        temperature: 0: take the likeliest (the first of several); else draw one, with the probabilities raised to
            ``1 / temperature``.
        seed: the seed of the draw.
    """
    names = list(scores)
    weights = np.array([scores[name].logprob for name in names])
    if not np.isfinite(weights.max()):
        raise ModelError("the model gives none of the texts any probability", hint="check the texts and the prompt")
    shares = np.exp(log_softmax(weights))
    if temperature == 0:
        chosen = int(weights.argmax())
    else:
        drawn = np.exp(log_softmax(weights / temperature))
        chosen = int(np.random.default_rng(seed).choice(len(names), p=drawn / drawn.sum()))
    probabilities = dict(zip(names, map(float, shares), strict=True))
    return Choice(names[chosen], MappingProxyType(probabilities), MappingProxyType(dict(scores)), forward_passes)
