"""Log-probabilities of the allowed tokens at one position."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt


class LogProbs:
    """The model's distribution over the allowed tokens, before bias, penalty and temperature.

    Args:
        logits: the model's logits, shape ``[V]``.
        allowed: ids of the allowed tokens, ascending, at least one.
    """

    def __init__(self, logits: npt.NDArray[np.float32], allowed: npt.NDArray[np.intp]) -> None:
        self._allowed = allowed
        self._values = log_softmax(logits.take(allowed))

    @classmethod
    def of_whole(cls, token_id: int, logprob: float) -> LogProbs:
        """Return the distribution for the first token of a word that was chosen as a whole with this
        log-probability."""
        made = cls(np.zeros(token_id + 1, np.float32), np.array([token_id], np.intp))
        made._values = np.array([logprob])
        return made

    def of(self, token_id: int) -> float:
        """Return the log-probability of an allowed token."""
        return float(self._values[np.searchsorted(self._allowed, token_id)])

    def likeliest(self, count: int) -> tuple[tuple[int, float], ...]:
        """Return the likeliest tokens with their log-probabilities, likeliest first, without those of probability 0."""
        if not count:
            return ()
        places = np.argsort(-self._values, kind="stable")[:count]
        return tuple(
            (int(self._allowed[one]), float(self._values[one])) for one in places if self._values[one] > -np.inf
        )


def log_mass(logits: npt.NDArray[np.float32], allowed: npt.NDArray[np.intp]) -> float:
    """Return the log-probability of a set of tokens; a NaN logit counts as probability 0."""
    if len(allowed) == len(logits):
        return 0.0
    return min(0.0, _log_sum(logits.take(allowed)) - _log_sum(logits))


def _log_sum(values: npt.NDArray[np.float32]) -> float:
    """Return the logarithm of a sum of exponentials, to single precision; NaN counts as minus infinity."""
    best = np.fmax.reduce(values)
    if not np.isfinite(best):
        return float(best)
    powers = np.exp(values - best)
    total = powers.sum(dtype=np.float64)
    if np.isnan(total):  # `nansum` is slower, and NaN is rare
        total = np.nansum(powers, dtype=np.float64)
    return float(best) + float(np.log(total))


def log_softmax(values: npt.NDArray[np.floating]) -> npt.NDArray[np.float64]:
    """Return the log-softmax of numbers, in double precision."""
    wide = values.astype(np.float64)
    best = wide.max()
    result: npt.NDArray[np.float64] = wide - best - np.log(np.exp(wide - best).sum())
    return result
