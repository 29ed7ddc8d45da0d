"""The law of sampling: the tokens of a text that is sampled at temperature 1 are as likely as their distributions say."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

#: Maximum distance of a sum of log-probabilities from its mean, in standard deviations.
MOST = 6.0


def deviation(logits: Sequence[npt.NDArray[np.float32]], tokens: Sequence[int]) -> tuple[float, float]:
    """Return how far the log-probabilities of sampled tokens are from what they must be, and their mean.

    The log-probability of a token that is drawn from a distribution has minus its entropy as mean, and a variance that
    is known too; so the sum over a text has a mean and a variance, whatever was drawn before.

    Args:
        logits: those before each token, of a model that is right.
        tokens: what was sampled.

    Returns:
        The distance of the sum from its mean in standard deviations, and the mean log-probability of a token.
    """
    found, expected, variance = 0.0, 0.0, 0.0
    for row, token in zip(logits, tokens, strict=True):
        scores = np.asarray(row, dtype=np.float64)
        scores = scores - scores.max()
        scores = scores - np.log(np.exp(scores).sum())
        chances = np.exp(scores)
        mean = float((chances * scores).sum())
        found += float(scores[token])
        expected += mean
        variance += float((chances * (scores - mean) ** 2).sum())
    return (found - expected) / max(variance, 1e-9) ** 0.5, found / max(1, len(tokens))
