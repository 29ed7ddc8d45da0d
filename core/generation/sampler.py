"""Sampling of a token: mask, bias, penalty, temperature, top-k, top-p, min-p, and a seeded draw, in this order.

The order is that of transformers and vLLM, after the grammar's mask: probabilities are renormalised over the allowed
tokens.

The draw inverts the cumulative distribution function, in the order of token ids. The vocabulary is never sorted: top-k
uses a partition, min-p a comparison, and top-p sums over successively narrower ranges of weights around its border.

If nearly all tokens are allowed, it is faster to *draw first* and test the grammar afterwards. For a greedy choice the
result is the same. For a draw from the whole distribution too: let ``A`` be the allowed tokens, and draw again from
``A`` if the first token is not in it; then a token of ``A`` is drawn with probability ``p(t) + (1 - p(A)) p(t) / p(A) =
p(t) / p(A)``. With top-k, top-p or min-p it is not the same, because the kept tokens depend on the allowed ones; then
the mask comes first.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

from ..errors import DecodingError
from .params import OPTIONS, GenerateParams

if TYPE_CHECKING:
    from typing import Any, TypeVar

    import numpy.typing as npt

    _Float = TypeVar("_Float", bound=np.floating[Any])

#: Maximum number of positions that are sorted; larger sets are narrowed by ranges of weights first.
FEW = 256

#: Number of ranges of weights.
RANGES = 2048

#: Maximum effective bias and penalty; greater ones would overflow single precision.
_LARGEST = 1e15

#: Temperatures beyond which all draws are alike: greedy, and uniform. Single precision has both.
_COLDEST, _HOTTEST = 1e-20, 1e38

#: The options of top-k, top-p and the like.
_TRUNCATING = tuple(name for name, row in OPTIONS.items() if row.truncates)


class Sampler:
    """Draws tokens for one generation.

    Args:
        params: the options; uses temperature, top_k, top_p, min_p, seed, repetition_penalty and logit_bias.

    Law: with temperature 0 the likeliest allowed token, the lowest id among equals; else the softmax of the allowed
    logits over the temperature, cut to top_k, then top_p, then min_p, and renormalised. Before that, logits have their
    bias added, and those of tokens that were read or written are lowered by the penalty (positive ones divided by it,
    others multiplied, as in CTRL, Keskar and others 2019). Equal seeds draw equally.
    """

    def __init__(self, params: GenerateParams) -> None:
        self._params = params
        self._truncates = any(getattr(params, name) != getattr(GenerateParams, name) for name in _TRUNCATING)
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

    def forget(self, token_ids: Iterable[int]) -> None:
        """Record tokens that were removed from the sequence."""
        if self._params.repetition_penalty != 1.0:
            self._seen -= Counter(token_ids)

    def choose(self, logits: npt.NDArray[np.float32], allowed: npt.NDArray[np.intp]) -> int:
        """Return one of the allowed tokens.

        Args:
            logits: the model's logits, shape ``[V]``; only the allowed ones are read.
            allowed: ids of the allowed tokens, ascending, at least one.

        Raises:
            DecodingError: an allowed token has no logit, a logit is NaN or +inf, or all are -inf.
        """
        if allowed[-1] >= len(logits):
            raise DecodingError(
                f"the model gave {len(logits)} logits, and token {int(allowed[-1])} has none",
                hint="use the vocabulary of this very model",
            )
        narrow = self.adjusted(logits.take(allowed), allowed)
        best = int(np.argmax(narrow))  # the first NaN, if there is one
        if not np.isfinite(narrow[best]):
            broken = "only -inf" if narrow[best] == -np.inf else f"{narrow[best]}"
            raise DecodingError(
                f"the model gave {broken} for the {len(allowed)} tokens that are allowed here",
                hint="check the model's weights and data type (float16 overflows)",
            )
        if self._params.temperature <= 0:
            return int(allowed[best])
        return int(allowed[self._draw(self._scaled(narrow.astype(np.float64), best))])

    def choose_among(self, logprobs: npt.NDArray[np.float64]) -> int:
        """Return the index of an alternative, given their log-probabilities, of which at least one is finite.

        With temperature 0 the likeliest; else one is drawn, with temperature, top-k, top-p and min-p as for tokens.
        """
        best = int(np.argmax(logprobs))
        if self._params.temperature <= 0:
            return best
        return self._draw(self._scaled(logprobs, best))

    def draw_first(self, logits: npt.NDArray[np.float32]) -> int | None:
        """Return a token drawn from the whole vocabulary; if the grammar does not allow it, the caller draws by
        `choose`.

        None if the result would differ from that of `choose` alone: with an option that truncates, or with NaN logits
        (which may be those of forbidden tokens).
        """
        if self._params.temperature > 0 and self._truncates:
            return None
        scores = self.adjusted(logits)
        best = int(np.argmax(scores))
        if not np.isfinite(scores[best]):
            return None
        if self._params.temperature <= 0:
            return best
        weights = np.exp(self._scaled(scores, best))
        return _at(np.cumsum(weights, dtype=np.float64), self._random.random())

    def adjusted(
        self, logits: npt.NDArray[np.float32], allowed: npt.NDArray[np.intp] | None = None
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

    def _scaled(self, scores: npt.NDArray[_Float], best: int) -> npt.NDArray[_Float]:
        """Return the logarithms of the weights, over the temperature: those far below the best are minus infinity."""
        with np.errstate(over="ignore"):
            scaled: npt.NDArray[_Float] = (scores - scores[best]) / scores.dtype.type(
                min(max(self._params.temperature, _COLDEST), _HOTTEST)
            )
        return scaled

    def _draw(self, scaled: npt.NDArray[np.float64]) -> int:
        """Draw a position, given the logarithms of the weights (the greatest is 0)."""
        weights = np.exp(scaled)
        keep = kept(scaled, weights, self._params)
        if keep is not None:
            weights *= keep
        return _at(np.cumsum(weights), self._random.random())


def kept(
    scaled: npt.NDArray[np.float64], weights: npt.NDArray[np.float64], params: GenerateParams
) -> npt.NDArray[np.bool_] | None:
    """Return the positions that top-k, top-p and min-p keep; None: all.

    Args:
        scaled: logarithms of the weights; the greatest is 0.
        weights: the weights, not normalised.
        params: the options.

    Law: sort by descending weight, then position; keep the first ``top_k``; of these, the shortest prefix with at least
    ``top_p`` of their weight, and at least one; of these, the positions with at least ``min_p`` of the greatest weight.
    """
    keep: npt.NDArray[np.bool_] | None = None
    if 0 < params.top_k < len(scaled):
        keep = _greatest(scaled, params.top_k)
    if params.top_p == 0:
        keep = _greatest(scaled, 1)
    elif params.top_p < 1.0:
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
    """Return the positions of top-p, as flags: the fewest of greatest weight that have at least ``share`` of the total.
    ``scaled`` has the logits over the temperature, and ``weights`` their exponentials (0: left out by top-k).

    In descending order, a position is kept if the sum of the weights before it is less than the share. To find the last
    kept position without sorting, the range of weights that contains it is divided into a histogram, again and again,
    until few positions are left, which are sorted.
    """
    total = float(weights.sum())
    wanted = share * total
    # All smaller weights together are less than the dropped share; with a factor of one half for rounding errors.
    places = np.flatnonzero(weights > 0.5 * (1.0 - share) * total / len(weights))
    values, masses = (scaled, weights) if len(places) == len(scaled) else (scaled[places], weights[places])
    before = 0.0  # the sum of the weights above the range: always less than `wanted`
    while len(places) > FEW:
        high, low = float(values.max()), float(values.min())
        if high - low < 1e-290:  # too narrow to divide: sort
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
    """Return the position for a draw from [0, 1), by the cumulative sums of weights."""
    place = int(np.searchsorted(sums, draw * sums[-1], side="right"))
    if place < len(sums):
        return place
    return int(np.searchsorted(sums, sums[-1], side="left"))  # a rounding error: the last position with a weight


def _places(
    ids: npt.NDArray[np.intp], allowed: npt.NDArray[np.intp] | None, size: int
) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
    """Return the positions in ``allowed`` of the ids that are there, and the positions in ``ids`` of the same: 3, 5, 9
    of 5, 7, 9 -> 0, 2 and 1, 2. All arrays ascend; None: all ids below ``size`` are allowed."""
    if allowed is None:
        found = np.flatnonzero(ids < size)
        return ids[found], found
    places = np.searchsorted(allowed, ids)
    found = np.flatnonzero(places < len(allowed))
    found = found[allowed[places[found]] == ids[found]]
    return places[found], found
