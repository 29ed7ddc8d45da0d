"""Logits processor for the loops of transformers, llama-cpp-python and mlx-lm."""

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
    """Logits processor for ``model.generate(..., logits_processor=[...])``: masks the tokens of each row by its
    grammar.

    The rows of a batch may have different grammars. In a complete row, only the end-of-text token is allowed. A
    processor is for one call of ``generate``.

    Unlike `Model.generate`, it cannot append forced text without running the model, or complete a text at the end of
    the budget (``generate`` truncates at ``max_new_tokens``: check `complete`), and it has no stop strings or typed
    events. Beam search, assisted decoding and prompt lookup raise an error. Processors of transformers that forbid
    tokens (``min_new_tokens``, ``bad_words_ids``, ``suppress_tokens``) may forbid the only allowed one; then the token
    that ``generate`` chooses instead raises an error.

    llama-cpp-python uses it in the same way, for one text: ``Llama.create_completion(..., logits_processor=
    LogitsProcessorList([ConstrainedLogitsProcessor([matcher])]))``, without a draft model.

    mlx-lm takes one for each text: ``generate(..., logits_processors=[ConstrainedLogitsProcessor([matcher])])``; so do
    its ``stream_generate`` and `BatchGenerator`. The logits stay on the device, and only the mask goes there.

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
        self._seen: Any = None  # the ids of the last call
        self._over = [False] * len(self._matchers)  # True after the end-of-text token

    def __call__(self, input_ids: Any, scores: Any) -> Any:
        """Mask the scores of the next token; called by the engine at each step.

        Args:
            input_ids: all tokens so far, ``[rows, tokens]`` in torch; ``[tokens]`` in NumPy and MLX.
            scores: scores of the next token, ``[rows, V]`` or ``[V]``; not changed.

        Returns:
            New scores, minus infinity for forbidden tokens.

        Raises:
            ModelError: the rows do not continue those of the last call.
            DecodingError: a forbidden token was chosen, or no token is allowed.
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
        if type(scores).__module__.startswith("mlx."):
            return _masked_on_device(scores, self._masks)
        masked = scores.copy() if isinstance(scores, np.ndarray) else scores.clone()
        apply_mask(masked, self._masks if scores.ndim == 2 else self._masks[0])
        return masked

    def complete(self, sequences: torch.Tensor) -> list[bool]:
        """Return for each row if its text is complete; a row that ``max_new_tokens`` truncated must not be used.

        Args:
            sequences: the result of ``generate`` (or its ``.sequences``); with the prompt for decoder-only models. For
                mlx-lm, an array of the prompt's tokens and of those that were written.

        Raises:
            ModelError: these are not the sequences of this processor.
            DecodingError: a forbidden token was chosen.
        """
        self._follow(sequences, may_be_known=True)
        return [matcher.is_accepting for matcher in self._matchers]

    def _follow(self, ids: Any, may_be_known: bool = False) -> None:
        """Advance each matcher by the row's new token, if there is one; it may be known, if an engine runs ahead."""
        ids = ids if ids.ndim == 2 else ids[None]
        if ids.shape[0] != len(self._matchers):
            raise ModelError(f"{ids.shape[0]} rows for {len(self._matchers)} matchers", hint=f"only {_ONE_STEP}")
        if self._seen is None:
            self._seen = copy.deepcopy(ids)
            return
        if may_be_known and ids.shape == self._seen.shape and bool((ids == self._seen).all()):
            return
        if ids.shape[1] != self._seen.shape[1] + 1 or not bool((ids[:, :-1] == self._seen).all()):
            raise ModelError("the rows did not grow by one token each", hint=f"only {_ONE_STEP}")
        self._seen = copy.deepcopy(ids)
        for row, (matcher, token_id) in enumerate(zip(self._matchers, ids[:, -1].tolist(), strict=True)):
            if self._over[row]:
                continue  # transformers pads finished rows
            self._over[row] = matcher.is_accepting and token_id in matcher.constraint.vocabulary.eos
            if not matcher.accept(token_id):
                raise DecodingError(
                    f"row {row} got token {token_id}, which its grammar forbids",
                    hint=f"no other processor may change masked scores; only {_ONE_STEP}",
                )


def _masked_on_device(scores: Any, masks: np.ndarray[Any, np.dtype[np.uint32]]) -> Any:
    """Return scores of MLX with minus infinity for forbidden tokens; the scores themselves are not read here."""
    import mlx.core as mx

    bits = np.unpackbits(masks.astype("<u4").view(np.uint8), axis=1, bitorder="little", count=masks.shape[1] * 32)
    allowed = np.zeros((len(masks), scores.shape[-1]), np.bool_)
    width = min(bits.shape[1], allowed.shape[1])
    allowed[:, :width] = bits[:, :width]
    return mx.where(mx.array(allowed.reshape(scores.shape)), scores, mx.array(-mx.inf, scores.dtype))


def _allow_end(matcher: Matcher, row: np.ndarray[Any, np.dtype[np.uint32]]) -> None:
    """Allow the end-of-text token in a row without another allowed token: the text is over, and padding follows."""
    ends = matcher.constraint.vocabulary.eos
    if not matcher.is_finished or not ends:
        raise DecodingError(
            "no token is allowed, and generate() cannot be stopped from here",
            hint="the vocabulary needs a token for every byte, and an end-of-text token: extra_eos=...",
        )
    for token_id in ends:
        row[token_id >> 5] |= np.uint32(1 << (token_id & 31))
