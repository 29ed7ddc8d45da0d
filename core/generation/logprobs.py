"""Log-probabilities of the tokens that are allowed at one place."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt


class LogProbs:
    """The model's distribution over the tokens that are allowed: before bias, penalty and temperature.

    Args:
        logits: the model's logits, shape ``[V]``.
        allowed: ids of the allowed tokens, ascending, at least one.
    """

    def __init__(self, logits: npt.NDArray[np.float32], allowed: npt.NDArray[np.intp]) -> None:
        scores = logits.take(allowed).astype(np.float64)
        best = scores.max()
        self._allowed = allowed
        self._values = scores - best - np.log(np.exp(scores - best).sum())

    def of(self, token_id: int) -> float:
        """Return the log-probability of an allowed token."""
        return float(self._values[np.searchsorted(self._allowed, token_id)])

    def likeliest(self, count: int) -> tuple[tuple[int, float], ...]:
        """Return the likeliest tokens with their log-probabilities, likeliest first; those that are never drawn not."""
        if not count:
            return ()
        places = np.argsort(-self._values, kind="stable")[:count]
        return tuple(
            (int(self._allowed[one]), float(self._values[one])) for one in places if self._values[one] > -np.inf
        )
