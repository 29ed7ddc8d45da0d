"""Logits processor for ``model.generate`` of transformers, and for llama-cpp-python."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import DecodingError, ModelError
from ..masks import Matcher
from ..masks.batch import apply_mask, fill_masks

if TYPE_CHECKING:
    import torch

_ONE_STEP = (
    "greedy search or sampling; no beams, no assistant model, no prompt lookup, and a new processor for each generate()"
)


class ConstrainedLogitsProcessor:
    """Lets ``model.generate(..., logits_processor=[...])`` choose only tokens that each row's grammar allows.

    The rows of a batch may have different grammars. A row that is complete is led to the end-of-text token. A processor
    is for one call of ``generate``.

    What `Model.generate` does and this cannot: append what the grammar fixes without running the model; finish validly
    when the budget ends (``generate`` cuts at ``max_new_tokens``: ask `complete`); stop strings, and typed events. Beam
    search, assisted decoding and prompt lookup are refused with an error. Processors of transformers that forbid tokens
    (``min_new_tokens``, ``bad_words_ids``, ``suppress_tokens``) may forbid the last one that is allowed: then what
    ``generate`` picks instead is refused with an error.

    llama-cpp-python asks in the same way, for one text: ``Llama.create_completion(..., logits_processor=
    LogitsProcessorList([ConstrainedLogitsProcessor([matcher])]))``, without a draft model.

    Args:
        matchers: one for each row that is generated, at the beginning of its text: prompts times
            ``num_return_sequences``. They are advanced; keep a `Matcher.fork` to use one again.

    Raises:
        ModelError: two rows share a matcher, or there are none.
    """

    def __init__(self, matchers: Sequence[Matcher]) -> None:
        self._matchers = list(matchers)
        if not self._matchers or len(set(map(id, self._matchers))) < len(self._matchers):
            raise ModelError("each row needs its own matcher", hint="[constraint.matcher() for _ in prompts]")
        words = max(matcher.constraint.words for matcher in self._matchers)
        self._masks = np.zeros((len(self._matchers), words), dtype=np.uint32)
        self._seen: Any = None  # the ids that were given last
        self._over = [False] * len(self._matchers)  # True after the end-of-text token

    def __call__(self, input_ids: Any, scores: Any) -> Any:
        """Mask the scores of the next token; what the engine calls at each step.

        Args:
            input_ids: all tokens so far, ``[rows, tokens]`` in torch; ``[tokens]`` in NumPy.
            scores: of the next token, ``[rows, V]`` or ``[V]`` alike; left as they are.

        Returns:
            New scores, minus infinity for tokens that are not allowed.

        Raises:
            ModelError: the rows are not those of one plain generation.
            DecodingError: a token was chosen that the mask forbids, or no token is allowed.
        """
        self._follow(input_ids)
        size = max(matcher.constraint.vocabulary.size for matcher in self._matchers)
        if scores.shape[-1] < size:
            raise ModelError(
                f"the model gives {scores.shape[-1]} scores for {size} tokens",
                hint="Vocabulary.from_transformers(tokenizer, size=model.config.vocab_size)",
            )
        fill_masks(self._matchers, self._masks)
        for matcher, row in zip(self._matchers, self._masks, strict=True):
            if not row.any():
                _allow_end(matcher, row)
        masked = scores.copy() if isinstance(scores, np.ndarray) else scores.clone()
        apply_mask(masked, self._masks if scores.ndim == 2 else self._masks[0])
        return masked

    def complete(self, sequences: torch.Tensor) -> list[bool]:
        """Return for each row whether its text is complete; one that ``max_new_tokens`` has cut must not be used.

        Args:
            sequences: what ``generate`` returned (``.sequences`` if it returned more), for decoder-only models with the
                prompt in front.

        Raises:
            ModelError: that is not what this processor has seen.
            DecodingError: a token was chosen that the mask forbids.
        """
        self._follow(sequences)
        return [matcher.is_accepting for matcher in self._matchers]

    def _follow(self, ids: Any) -> None:
        """Advance each matcher by the row's new token, if there is one."""
        ids = ids if ids.ndim == 2 else ids[None]
        if ids.shape[0] != len(self._matchers):
            raise ModelError(f"{ids.shape[0]} rows for {len(self._matchers)} matchers", hint=f"only {_ONE_STEP}")
        if self._seen is None:
            self._seen = copy.deepcopy(ids)
            return
        if ids.shape[1] != self._seen.shape[1] + 1 or not bool((ids[:, :-1] == self._seen).all()):
            raise ModelError("the rows did not grow by one token each", hint=f"only {_ONE_STEP}")
        self._seen = copy.deepcopy(ids)
        for row, (matcher, token_id) in enumerate(zip(self._matchers, ids[:, -1].tolist(), strict=True)):
            if self._over[row]:
                continue  # transformers pads the rows that are over
            self._over[row] = matcher.is_accepting and token_id in matcher.constraint.vocabulary.eos
            if not matcher.accept(token_id):
                raise DecodingError(
                    f"row {row} got token {token_id}, which its grammar forbids",
                    hint=f"no other processor may change masked scores; only {_ONE_STEP}",
                )


def _allow_end(matcher: Matcher, row: np.ndarray[Any, np.dtype[np.uint32]]) -> None:
    """Allow the end of text in a row where no other token is allowed: it is over, and all that follows is padding."""
    ends = matcher.constraint.vocabulary.eos
    if not matcher.is_finished or not ends:
        raise DecodingError(
            "no token is allowed, and generate() cannot be stopped from here",
            hint="the vocabulary needs a token for every byte, and an end-of-text token: extra_eos=...",
        )
    for token_id in ends:
        row[token_id >> 5] |= np.uint32(1 << (token_id & 31))
