"""Exact choice: if finitely many words may follow, one is chosen by the probabilities of the whole words."""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Union

import numpy as np

from ..conversation.events import ChoiceMade
from .choices import WordsPlace, place_at, spelled_words
from .logprobs import log_softmax
from .token_sequence import Forward

if TYPE_CHECKING:
    import numpy.typing as npt

    from ..masks import Matcher
    from .backend import Backend
    from .pending_text import PendingText
    from .retokenise import Speller
    from .sampler import Sampler
    from .token_sequence import TokenSequence


@dataclass(frozen=True)
class ChosenWord:
    """A chosen word of which no token is written yet.

    Attributes:
        logprob: its log-probability among the possible words.
        count: number of possible words.
        mass: log-probability of all possible words together.
    """

    logprob: float
    count: int
    mass: float


class ExactChoice:
    """Chooses whole words, and adds them to the pending text.

    Args:
        backend: the model; its context window bounds the tokens of the tree.
        speller: its tokenizer.
        sequence: the tokens before the pending text.
        pending: the pending text.
        sampler: draws words by the same parameters as tokens.

    Attributes:
        made: the choices so far, with positions in bytes of the output.
        end: the end of the last chosen word, in bytes of the output.
    """

    def __init__(
        self, backend: Backend, speller: Speller, sequence: TokenSequence, pending: PendingText, sampler: Sampler
    ) -> None:
        self._backend = backend
        self._speller = speller
        self._sequence = sequence
        self._pending = pending
        self._sampler = sampler
        self._word: ChosenWord | None = None
        self.made: list[ChoiceMade] = []
        self.end = 0

    def take_word(self) -> ChosenWord | None:
        """Return the chosen word of which no token is written yet, and forget it."""
        word, self._word = self._word, None
        return word

    def choose(
        self, matcher: Matcher, begin: int, fits: Callable[[], bool]
    ) -> Generator[Forward, Union[npt.NDArray[np.float32], None], int | None]:
        """Choose a word and add it to the pending text.

        Words that do not fit in the budget are denied, and the model chooses among the others.

        Args:
            matcher: after the pending text.
            begin: number of bytes of the output before the pending text.
            fits: returns True if the output can still be completed.

        Returns:
            The number of denied words. None if there are infinitely many words, if their tokens are not certain or too
            many, or if the model gives none of them a probability above 0.
        """
        vocabulary, pending, sequence = self._backend.vocabulary, self._pending, self._sequence
        if pending.removed or self._word is not None or matcher.is_finished:
            return None
        context = pending.context()
        place = place_at(matcher, vocabulary.decode(context) + pending.text)
        if place is None:
            return None
        spelled = spelled_words(place, self._speller, vocabulary, context, pending.text)
        room = self._backend.context_window - len(sequence.prompt) - len(sequence.token_ids)
        if spelled is None or len(spelled.tree.token_ids) > room:
            return None
        rows = [log_softmax(self._sampler.adjusted((yield from sequence.read())))]
        passes = sequence.forward_passes
        if spelled.tree.token_ids:
            ahead = yield from sequence.look_ahead(spelled.tree.token_ids, spelled.tree.parents)
            rows += [log_softmax(self._sampler.adjusted(logits)) for logits in ahead]
        totals, ends = spelled.logprobs(rows, vocabulary)
        possible = totals > -np.inf
        if np.isnan(totals).any():
            return None
        start = begin + len(pending.text) - len(place.before) + len(place.quote)
        denied = 0
        while possible.any():
            index = self._sampler.choose_among(np.where(possible, totals, -np.inf))
            end = None  # of a word that is a prefix of another one, the end is chosen too
            if ends[index]:
                end = list(ends[index])[self._sampler.choose_among(np.array(list(ends[index].values())))]
            if pending.add_word(matcher, place.words[index].text, end, fits):
                self._record(place, totals, index, start, sequence.forward_passes - passes)
                self.end = begin + len(pending.text)
                return denied
            denied += 1
            possible[index] = False
        return None

    def _record(self, place: WordsPlace, totals: npt.NDArray[np.float64], index: int, start: int, passes: int) -> None:
        """Record a choice: of the word at an index of the possible ones, whose log-probabilities are ``totals``."""
        names, mass = place.names(), float(np.logaddexp.reduce(totals))
        probabilities = dict(zip(names, map(float, np.exp(totals - mass)), strict=True))
        self.made.append(ChoiceMade(start, names[index], probabilities, float(np.exp(mass)), passes))
        self._word = ChosenWord(float(totals[index]) - mass, len(names), mass)
