"""Choosing a token: mask, bias, penalty, temperature, top-k, top-p, min-p, and a seeded draw, in this order.

The order is that of transformers and vLLM, with the grammar's mask before everything: probabilities are renormalised
over the tokens that the grammar allows, so the draw has the model's own distribution given that the output is valid.

The draw inverts the distribution function, in the order of token ids. Top-k, top-p and min-p need no sorting of a
vocabulary: top-k by partition, min-p by comparison, and top-p by sums over ever narrower ranges of weight
around the one in which its mass is reached.

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

    from .params import GenerateParams

#: Maximum number of positions that are sorted; more are split by ranges of weight first.
FEW = 256

#: Number of ranges of weight.
RANGES = 2048

#: Maximum of biases and penalties that differ in their effect; greater ones would leave the range of single precision.
_LARGEST = 1e15


class Sampler:
    """Draws tokens for one generation.

    Args:
        params: temperature, top_k, top_p, min_p, seed, repetition_penalty and logit_bias are read.

    Law: with temperature 0 the likeliest allowed token, the lowest id among equals; else the softmax of the allowed
    logits over the temperature, cut to top_k, then top_p, then min_p, and renormalised. Before that, logits have their
    bias added, and those of tokens that were read or written are lowered by the penalty (positive ones divided by it,
    others multiplied, as in CTRL, Keskar and others 2019). Equal seeds draw equally.
    """

    def __init__(self, params: GenerateParams) -> None:
        self._params = params
        self._random = np.random.Generator(np.random.PCG64(params.seed))
        self._seen: Counter[int] = Counter()
        bias = dict(params.logit_bias or {})
        self._bias_ids = np.array(sorted(bias), dtype=np.intp)
        added = np.array([bias[token_id] for token_id in sorted(bias)], dtype=np.float64)
        self._bias = np.clip(added, -_LARGEST, _LARGEST).astype(np.float32)

    def saw(self, token_ids: Iterable[int]) -> None:
        """Record tokens that were appended to the sequence."""
        if self._params.repetition_penalty != 1.0:
            self._seen.update(token_ids)

    def forget(self, token_id: int) -> None:
        """Record a token that was taken out of the sequence."""
        if self._params.repetition_penalty != 1.0:
            self._seen -= Counter((token_id,))

    def choose(self, logits: npt.NDArray[np.float32], allowed: npt.NDArray[np.intp]) -> int:
        """Return one of the allowed tokens.

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
        narrow = self._adjusted(logits.take(allowed), allowed)
        best = int(np.argmax(narrow))  # the first NaN, if there is one
        if not np.isfinite(narrow[best]):
            broken = "only -inf" if narrow[best] == -np.inf else f"{narrow[best]}"
            raise DecodingError(
                f"the model gave {broken} for the {len(allowed)} tokens that are allowed here",
                hint="check the model's weights and data type (float16 overflows)",
            )
        if self._params.temperature <= 0:
            return int(allowed[best])
        return int(allowed[self._draw((narrow.astype(np.float64) - narrow[best]) / self._params.temperature)])

    def choose_among(self, logprobs: npt.NDArray[np.float64]) -> int:
        """Return one of some whole alternatives by the logarithms of their probabilities; one at least is finite.

        The likeliest with temperature 0; else one is drawn, and temperature and cuts apply as to tokens.
        """
        best = int(np.argmax(logprobs))
        if self._params.temperature <= 0:
            return best
        return self._draw((logprobs - logprobs[best]) / self._params.temperature)

    def adjusted(self, logits: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
        """Return the logits of all tokens with bias and penalty."""
        return self._adjusted(logits, None)

    def draw_first(self, logits: npt.NDArray[np.float32]) -> int | None:
        """Return a token drawn from all; if the grammar does not allow it, draw another with `choose`.

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
        """Return logits with bias and penalty.

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
            penalty = np.float32(np.clip(self._params.repetition_penalty, 1 / _LARGEST, _LARGEST))
            scores[here] = np.where(scores[here] > 0, scores[here] / penalty, scores[here] * penalty)
        return scores

    def _draw(self, scaled: npt.NDArray[np.float64]) -> int:
        """Draw a position by its logarithmic weight (the greatest is 0)."""
        weights = np.exp(scaled)
        keep = kept(scaled, weights, self._params)
        if keep is not None:
            weights *= keep
        return _at(np.cumsum(weights), self._random.random())


def kept(
    scaled: npt.NDArray[np.float64], weights: npt.NDArray[np.float64], params: GenerateParams
) -> npt.NDArray[np.bool_] | None:
    """Return the positions that top-k, top-p and min-p keep; None is all.

    Args:
        scaled: logarithms of the weights; the greatest is 0.
        weights: the weights, not normalised.
        params: how to cut.

    Law: with positions in order of weight, the lowest first among equals, the first ``top_k``; of these the shortest
    beginning with at least ``top_p`` of their weight; of these the ones with at least ``min_p`` of the greatest weight.
    """
    keep: npt.NDArray[np.bool_] | None = None
    if 0 < params.top_k < len(scaled):
        keep = _greatest(scaled, params.top_k)
    if params.top_p < 1.0:
        keep = _nucleus(scaled, weights if keep is None else weights * keep, params.top_p)
    if params.min_p > 0.0:
        likely: npt.NDArray[np.bool_] = weights >= params.min_p
        keep = likely if keep is None else keep & likely
    return keep


def _greatest(scaled: npt.NDArray[np.float64], count: int) -> npt.NDArray[np.bool_]:
    """Return the positions of the ``count`` greatest values, the lowest first among equals."""
    least = np.partition(scaled, len(scaled) - count)[len(scaled) - count]
    keep: npt.NDArray[np.bool_] = scaled > least
    keep[np.flatnonzero(scaled == least)[: count - int(np.count_nonzero(keep))]] = True
    return keep


def _nucleus(scaled: npt.NDArray[np.float64], weights: npt.NDArray[np.float64], share: float) -> npt.NDArray[np.bool_]:
    """Return the likeliest positions whose weight together reaches a share of the whole.

    A position is kept if those before it have not reached the share. The last of these is looked for in the range of
    weights in which it must be, which is divided until few are left.
    """
    total = float(weights.sum())
    wanted = share * total
    # All that weigh less than this, together, weigh less than what may go; half of it, for what rounding does.
    places = np.flatnonzero(weights > 0.5 * (1.0 - share) * total / len(weights))
    values, masses = (scaled, weights) if len(places) == len(scaled) else (scaled[places], weights[places])
    before = 0.0  # the weight of what is above the range: always less than what is wanted
    while len(places) > FEW:
        high, low = float(values.max()), float(values.min())
        if high - low < 1e-290:  # nothing finer to tell apart than by sorting
            break
        ranges = ((high - values) * ((RANGES - 1) / (high - low))).astype(np.int32)
        sums = before + np.cumsum(np.bincount(ranges, masses, RANGES))
        reached = min(int(np.searchsorted(sums, wanted)), RANGES - 1)
        before = float(sums[reached - 1]) if reached else before
        within = np.flatnonzero(ranges == reached)
        places, values, masses = places[within], values[within], masses[within]
    order = np.argsort(-values, kind="stable")
    masses = masses[order]
    last = order[int(np.count_nonzero(before + (np.cumsum(masses) - masses) < wanted)) - 1]
    keep: npt.NDArray[np.bool_] = scaled > values[last]
    equal = np.flatnonzero(scaled == values[last])
    keep[equal[equal <= places[last]]] = True
    return keep


def _at(sums: npt.NDArray[np.float64], draw: float) -> int:
    """Return the position that a draw from [0, 1) falls on, by the running sums of weights."""
    place = int(np.searchsorted(sums, draw * sums[-1], side="right"))
    if place < len(sums):
        return place
    return int(np.searchsorted(sums, sums[-1], side="left"))  # rounding, at the very end: the last that weighs anything


def _places(
    ids: npt.NDArray[np.intp], allowed: npt.NDArray[np.intp] | None, size: int
) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
    """Return the positions of ids among the allowed ones, and these ids; all ascending."""
    if allowed is None:
        chosen = np.flatnonzero(ids < size)
        return ids[chosen], chosen
    places = np.searchsorted(allowed, ids)
    chosen = np.flatnonzero(places < len(allowed))
    chosen = chosen[allowed[places[chosen]] == ids[chosen]]
    return places[chosen], chosen
