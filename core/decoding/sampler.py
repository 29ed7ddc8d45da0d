"""Choosing a token: mask, bias, penalty, temperature, top-k, top-p, min-p, and a seeded draw, in this order.

The order is that of transformers and vLLM, with the grammar's mask before everything: probabilities are renormalised
over the tokens that the grammar allows, so the draw has the model's own distribution given that the output is valid.

The draw inverts the distribution function. Where top-p or min-p cut it, it does so with the likeliest token first; that
needs no sorting of a whole vocabulary: nearly always the draw lies among the first thousand tokens, and only these are
sorted.

Where nearly everything is allowed it is cheaper to *draw first* and ask the grammar afterwards. For a greedy choice
that is plainly the same. For a draw from the whole distribution it is, too: with ``A`` the allowed tokens, and a second
draw from those alone when the first is not among them, a token of ``A`` is drawn with probability
``p(t) + (1 - p(A)) p(t) / p(A) = p(t) / p(A)``. With top-k, top-p or min-p it is not the same, for what these keep
depends on what is allowed; then the mask comes first.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

from ..errors import DecodingError

if TYPE_CHECKING:
    import numpy.typing as npt

    from ..params import GenerateParams

#: How many of the likeliest tokens are sorted before all of them are.
HEAD = 1024


class Sampler:
    """Draws tokens for one generation.

    Args:
        params: temperature, top_k, top_p, min_p, seed, repetition_penalty and logit_bias are read.

    Law: with temperature 0 the likeliest allowed token, the lowest id among equals; else the softmax of the allowed
    logits over the temperature, cut to top_k, then top_p, then min_p, and renormalised. Before that, logits have their
    bias added, and those of tokens that were read or written are made less by the penalty (positive ones divided by it,
    others multiplied, as in CTRL, Keskar and others 2019). Equal seeds draw equally.
    """

    def __init__(self, params: GenerateParams) -> None:
        self._params = params
        self._random = np.random.Generator(np.random.PCG64(params.seed))
        self._seen: Counter[int] = Counter()
        bias = dict(params.logit_bias or {})
        self._bias_ids = np.array(sorted(bias), dtype=np.intp)
        self._bias = np.array([bias[token_id] for token_id in sorted(bias)], dtype=np.float32)

    def saw(self, token_ids: Iterable[int]) -> None:
        """Tokens that are in the sequence from now on."""
        if self._params.repetition_penalty != 1.0:
            self._seen.update(token_ids)

    def forget(self, token_id: int) -> None:
        """A token was taken out of the sequence."""
        if self._params.repetition_penalty != 1.0:
            self._seen -= Counter((token_id,))

    def choose(self, logits: npt.NDArray[np.float32], allowed: npt.NDArray[np.intp]) -> int:
        """One of the allowed tokens.

        Args:
            logits: the model's logits, shape ``[V]``; only the allowed ones are read.
            allowed: ids of the allowed tokens, ascending, at least one.

        Raises:
            DecodingError: an allowed token has no logit, one is NaN or +inf, or all are -inf (which means never).
        """
        if allowed[-1] >= len(logits):
            raise DecodingError(
                f"the model gave {len(logits)} logits, and token {int(allowed[-1])} has none",
                hint="use the vocabulary of this very model",
            )
        narrow = self._adjusted(logits[allowed], allowed).astype(np.float64)
        best = int(np.argmax(narrow))  # the first NaN, if there is one
        if not np.isfinite(narrow[best]):
            broken = "only -inf" if narrow[best] == -np.inf else f"{narrow[best]}"
            raise DecodingError(
                f"the model gave {broken} for the {len(allowed)} tokens that are allowed here",
                hint="check the model's weights and data type (float16 overflows)",
            )
        if self._params.temperature <= 0:
            return int(allowed[best])
        return int(allowed[self._draw((narrow - narrow[best]) / self._params.temperature)])

    def draw_first(self, logits: npt.NDArray[np.float32]) -> int | None:
        """A token drawn from all of them; if the grammar does not allow it, `choose` is to draw another.

        None if that would not be the same as `choose` alone: with top_k, top_p or min_p, or with logits that are not
        numbers (they may be those of tokens that are not allowed).
        """
        params = self._params
        if params.temperature > 0 and (params.top_k > 0 or params.top_p < 1.0 or params.min_p > 0.0):
            return None
        scores = self._adjusted(logits, None)
        best = int(np.argmax(scores))
        if not np.isfinite(scores[best]):
            return None
        if params.temperature <= 0:
            return best
        weights = np.exp((scores - scores[best]) / np.float32(max(params.temperature, 1e-20)))
        return _at(np.cumsum(weights, dtype=np.float64), self._random.random())

    def _adjusted(
        self, logits: npt.NDArray[np.float32], allowed: npt.NDArray[np.intp] | None
    ) -> npt.NDArray[np.float32]:
        """Logits with bias and penalty.

        Args:
            logits: one for each of ``allowed``.
            allowed: ids, ascending; None for all.
        """
        if not self._seen and not len(self._bias_ids):
            return logits
        scores = np.array(logits, dtype=np.float32)
        if len(self._bias_ids):
            here, which = _places(self._bias_ids, allowed, len(scores))
            scores[here] += self._bias[which]
        if self._seen:
            here, _ = _places(np.array(sorted(self._seen), dtype=np.intp), allowed, len(scores))
            penalty = np.float32(self._params.repetition_penalty)
            scores[here] = np.where(scores[here] > 0, scores[here] / penalty, scores[here] * penalty)
        return scores

    def _draw(self, scaled: npt.NDArray[np.float64]) -> int:
        """A position, by its logarithmic weight (the greatest is 0)."""
        params = self._params
        weights = np.exp(scaled)
        if params.top_k > 0:
            order = _likeliest(scaled, params.top_k)[: params.top_k]
            return self._cut(order, weights[order], float(weights[order].sum()), self._random.random(), whole=True)
        if params.top_p >= 1.0 and params.min_p <= 0.0:  # nothing is cut: any order will do
            return _at(np.cumsum(weights), self._random.random())
        draw, total = self._random.random(), float(weights.sum())
        order = _likeliest(scaled, HEAD)
        found = self._cut(order, weights[order], total, draw, whole=len(order) == len(scaled))
        if found < 0:
            order = _likeliest(scaled, len(scaled))
            found = self._cut(order, weights[order], total, draw, whole=True)
        return found

    def _cut(
        self,
        order: npt.NDArray[np.intp],
        weights: npt.NDArray[np.float64],
        total: float,
        draw: float,
        *,
        whole: bool,
    ) -> int:
        """Apply top-p and min-p to positions in order of weight, and draw; -1 if that needs positions that are missing.

        Args:
            order: the likeliest positions, likeliest first.
            weights: their weights.
            total: the weight of all positions.
            draw: uniform in [0, 1).
            whole: no position is missing.
        """
        params = self._params
        before = np.cumsum(weights) - weights
        keep = np.ones(len(order), dtype=bool)
        if params.top_p < 1.0:  # the smallest set whose mass reaches top_p: always at least one
            keep &= before < params.top_p * total
        if params.min_p > 0.0:
            keep &= weights >= params.min_p * weights[0]
        keep[0] = True
        if not keep[-1]:  # both conditions only get harder along the order: what is missing would go, too
            whole = True
            order, weights = order[keep], weights[keep]
        if params.top_p < 1.0 or params.min_p > 0.0:
            if not whole:
                return -1
            total = float(weights.sum())
        place = int(np.searchsorted(np.cumsum(weights), draw * total, side="right"))
        if place < len(order):
            return int(order[place])
        return int(order[int(np.flatnonzero(weights)[-1])]) if whole else -1  # rounding, at the very end


def _at(sums: npt.NDArray[np.float64], draw: float) -> int:
    """The position that a draw from [0, 1) falls on, by the running sums of weights."""
    place = int(np.searchsorted(sums, draw * sums[-1], side="right"))
    if place < len(sums):
        return place
    return int(np.searchsorted(sums, sums[-1], side="left"))  # rounding, at the very end: the last that weighs anything


def _places(
    ids: npt.NDArray[np.intp], allowed: npt.NDArray[np.intp] | None, size: int
) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
    """Where ids stand among the allowed ones, and which of the ids these are; all ascending."""
    if allowed is None:
        known = np.flatnonzero(ids < size)
        return ids[known], known
    at = np.searchsorted(allowed, ids)
    known = np.flatnonzero(at < len(allowed))
    known = known[allowed[at[known]] == ids[known]]
    return at[known], known


def _likeliest(scaled: npt.NDArray[np.float64], count: int) -> npt.NDArray[np.intp]:
    """At least the ``count`` positions of greatest value, greatest first, the lowest position first among equals."""
    if count >= len(scaled):
        return np.argsort(-scaled, kind="stable")
    least = np.partition(scaled, len(scaled) - count)[len(scaled) - count]
    chosen = np.flatnonzero(scaled >= least)
    return chosen[np.argsort(-scaled[chosen], kind="stable")]
