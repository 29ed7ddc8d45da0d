"""Choosing a token: grammar mask first, then temperature, top-k, top-p, min-p, and a seeded draw.

The order is that of transformers and vLLM, with the mask before everything: probabilities are renormalised over the
tokens that the grammar allows, so the draw has the model's own distribution given that the output is valid.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..errors import DecodingError

if TYPE_CHECKING:
    import numpy.typing as npt

    from ..params import GenerateParams


class Sampler:
    """Draws tokens for one generation.

    Args:
        params: temperature, top_k, top_p, min_p and seed are read.
    """

    def __init__(self, params: GenerateParams) -> None:
        self._params = params
        self._random = np.random.Generator(np.random.PCG64(params.seed))

    def choose(self, logits: npt.NDArray[np.float32], allowed: npt.NDArray[np.intp]) -> int:
        """One of the allowed tokens.

        Args:
            logits: the model's logits, shape ``[V]``; only the allowed ones are read.
            allowed: ids of the allowed tokens, ascending, at least one.

        Raises:
            DecodingError: an allowed token has no logit, or all their logits are NaN or infinite.
        """
        if allowed[-1] >= len(logits):
            raise DecodingError(
                f"the model gave {len(logits)} logits, and token {int(allowed[-1])} has none",
                hint="use the vocabulary of this very model",
            )
        narrow = logits[allowed].astype(np.float64)
        if not np.isfinite(narrow).all():
            narrow = np.where(np.isnan(narrow) | (narrow == np.inf), -np.inf, narrow)
            if not np.isfinite(narrow).any():
                raise DecodingError(
                    "the model gave no finite logit for any allowed token",
                    hint="check the model's weights and data type (float16 overflows)",
                )
        if self._params.temperature <= 0:
            return int(allowed[int(np.argmax(narrow))])
        kept, probabilities = self._probabilities(narrow)
        draw = int(np.searchsorted(np.cumsum(probabilities), self._random.random(), side="right"))
        return int(allowed[kept[min(draw, len(kept) - 1)]])

    def _probabilities(self, logits: npt.NDArray[np.float64]) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.float64]]:
        """Which positions may be drawn, most likely first, and with which probabilities."""
        params = self._params
        order = np.argsort(-logits, kind="stable")
        if params.top_k > 0:
            order = order[: params.top_k]
        scaled = logits[order] / params.temperature
        probabilities = np.exp(scaled - scaled[0])
        probabilities /= probabilities.sum()
        if params.top_p < 1.0:  # the smallest set whose mass reaches top_p: always at least one
            before = np.cumsum(probabilities) - probabilities
            keep = before < params.top_p
            keep[0] = True
            order, probabilities = order[keep], probabilities[keep]
        if params.min_p > 0.0:
            keep = probabilities >= params.min_p * probabilities[0]
            order, probabilities = order[keep], probabilities[keep]
        return order, probabilities / probabilities.sum()
