"""Log-probabilities of the allowed tokens at one position."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt


@dataclass(frozen=True, eq=False)
class LogProbs:
    """The model's distribution over the allowed tokens, before bias, penalty and temperature.

    Attributes:
        allowed: ids of the allowed tokens, ascending, at least one; of a word that was chosen as a whole, the id of its
            first token.
        values: the log-probability of each; of such a word, that of the word.
    """

    allowed: npt.NDArray[np.intp]
    values: npt.NDArray[np.float64]

    @classmethod
    def of_logits(cls, logits: npt.NDArray[np.float32], allowed: npt.NDArray[np.intp]) -> LogProbs:
        """Return the distribution over the allowed tokens, given the model's logits, shape ``[V]``."""
        return cls(allowed, log_softmax(logits.take(allowed)))

    def of(self, token_id: int) -> float:
        """Return the log-probability of an allowed token."""
        return float(self.values[np.searchsorted(self.allowed, token_id)])

    def likeliest(self, count: int) -> tuple[tuple[int, float], ...]:
        """Return the likeliest tokens with their log-probabilities, likeliest first, without those of probability 0."""
        if not count:
            return ()
        places = np.argsort(-self.values, kind="stable")[:count]
        return tuple((int(self.allowed[one]), float(self.values[one])) for one in places if self.values[one] > -np.inf)


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
