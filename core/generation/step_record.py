"""The record of a generation: what the tokens that the loop accepts add to the text, as steps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from ..conversation.events import TokenWritten
from .logprobs import LogProbs
from .retokenise import size_of
from .tracer import Observation

if TYPE_CHECKING:
    import numpy.typing as npt

    from ..conversation.trace import How
    from ..masks import Matcher
    from ..vocabulary.vocabulary import Vocabulary
    from .exact_choice import ExactChoice
    from .insertions import NamesRead
    from .params import GenerateParams
    from .pending_text import PendingText
    from .token_sequence import TokenSequence
    from .tracer import Tracer


@dataclass(eq=False)
class StepRecord:
    """Records accepted tokens.

    Args:
        vocabulary: of the tokens.
        params: the options.
        sequence: the tokens.
        pending: the pending text after them.
        words: the words that are chosen as a whole.
        tracer: gets the tokens too; None: nobody asks for it.
        names: reads the names in the answer (`Insertions`); None: the prompt gains nothing.

    Attributes:
        emitted: number of bytes in the steps so far.
        is_reasoning: the present tokens are reasoning.
        logprobs: the distribution at the position of the next token, if requested.
    """

    vocabulary: Vocabulary
    params: GenerateParams
    sequence: TokenSequence
    pending: PendingText
    words: ExactChoice
    tracer: Tracer | None
    names: NamesRead | None
    emitted: int = 0
    is_reasoning: bool = False
    logprobs: LogProbs | None = None

    def observe(self, allowed: npt.NDArray[np.intp] | None, matcher: Matcher) -> Observation | None:
        """Record the log-probabilities at the current position, if requested; return the observation of a trace, or
        None."""
        if allowed is None:
            return None
        logits = self.sequence.logits if len(allowed) > 1 else None
        if self.params.logprobs is not None and logits is not None:
            self.logprobs = LogProbs.of_logits(logits, allowed)
        return None if self.tracer is None else self.tracer.observe(logits, allowed, matcher, self.pending.text)

    @property
    def pending_start(self) -> int:
        """Where the pending text begins in the output, in bytes: before what was emitted of it."""
        return self.emitted - self.pending.emitted

    def append(
        self, token_id: int, how: How, choices: int | None = None, seen: Observation | None = None
    ) -> TokenWritten:
        """Record an accepted token; return its step with the bytes that were not emitted before. The first token of a
        word that was chosen as a whole counts as the choice, with the word's log-probability.

        Args:
            token_id: the token.
            how: its origin.
            choices: number of tokens from which it was chosen; None: not known.
            seen: the observation of its position.
        """
        forced = how != "sampled"
        word = None if how == "closed" else self.words.take_word()
        if word is not None:
            choices, how, forced = word.count, "sampled", False
            self.logprobs = LogProbs(np.array([token_id]), np.array([word.logprob]))
            seen = replace(seen or Observation(choices), kept=word.mass)
        elif seen is not None and self.pending_start < self.words.end:
            seen = replace(seen, kept=None)  # a token inside the word: the probability of the word includes it
        if self.tracer is not None:
            healed = sum(size_of(self.vocabulary, token) for token in self.pending.removed)
            self.tracer.add(token_id, how, seen, reasoning=self.is_reasoning, healed=healed)
        self.sequence.append(token_id, forced)
        data = self.pending.wrote(self.vocabulary.tokens[token_id] or b"")
        self.emitted += len(data)
        if self.names is not None and not self.is_reasoning:
            self.names.wrote(token_id, data)
        return TokenWritten(token_id, data, forced, choices, self.is_reasoning, *self._logprobs_of(token_id, how))

    def appended(self, ids: Sequence[int]) -> list[TokenWritten]:
        """Record tokens of pending text; return their steps."""
        return [self.append(token_id, "jumped") for token_id in ids]

    def _logprobs_of(self, token_id: int, how: How) -> tuple[float | None, tuple[tuple[int, float], ...]]:
        """Return the log-probability of the current token, and the likeliest tokens at its position."""
        wanted = self.params.logprobs
        known, self.logprobs = self.logprobs, None
        if wanted is None:
            return None, ()
        if known is None or how != "sampled":  # no choice of the model: the token has the probability 1
            return 0.0, ((token_id, 0.0),)[:wanted]
        return known.of(token_id), known.likeliest(wanted)

    def write_emitted(self) -> None:
        """At the end of a generation, record tokens for bytes that were emitted and whose tokens were taken back."""
        if self.sequence.token_ids and self.pending.emitted:
            self.appended(self.pending.unwritten())
        self.pending.text = b""
