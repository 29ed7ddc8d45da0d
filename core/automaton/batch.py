"""Masks of many texts at once, and putting masks on logits."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import DecodingError

if TYPE_CHECKING:
    import numpy.typing as npt

    from .matcher import Matcher


def fill_masks(matchers: Sequence[Matcher], out: npt.NDArray[np.uint32]) -> None:
    """Write the masks of many texts, one row each; rows as in `Matcher.fill_mask`.

    Args:
        matchers: the texts; their grammars may differ, their vocabulary should be one.
        out: uint32, C-contiguous, ``[rows, words]``, at least a row for each text and ``ceil(V / 32)`` words; rows
            beyond are left alone.

    Raises:
        DecodingError: ``out`` has too few rows.

    Law: row ``i`` is what ``matchers[i].fill_mask`` writes.
    """
    if out.ndim != 2 or len(out) < len(matchers):
        raise DecodingError(
            f"{len(matchers)} masks do not fit in an array of shape {out.shape}", hint="give one row for each matcher"
        )
    for matcher, row in zip(matchers, out, strict=False):
        matcher.fill_mask(row)


def apply_mask(logits: Any, masks: Any) -> None:
    """Set the logits of forbidden tokens to minus infinity, in place.

    Args:
        logits: float16, float32, float64 (also bfloat16 in torch), shape ``[..., V]``; a NumPy array or a torch tensor
            on any device.
        masks: uint32 words (int32 in torch), shape ``[..., W]`` with the same leading shape, as `fill_masks` writes
            them; tokens beyond ``32 * W`` are forbidden.

    Raises:
        DecodingError: the shapes do not fit, or the logits are not floating-point numbers.
    """
    shape, words = tuple(logits.shape), tuple(masks.shape)
    if len(shape) < 1 or shape[:-1] != words[:-1]:
        raise DecodingError(f"masks of shape {words} do not fit logits of shape {shape}", hint="one mask for each row")
    if isinstance(logits, np.ndarray):
        if not np.issubdtype(logits.dtype, np.floating):
            raise DecodingError(f"logits are floating-point numbers, not {logits.dtype}")
        np.copyto(logits, -np.inf, where=~_allowed(masks, shape[-1]))
        return
    torch = sys.modules.get("torch")
    if torch is None or not isinstance(logits, torch.Tensor) or not logits.is_floating_point():
        raise DecodingError("logits are a NumPy array or a torch tensor of floating-point numbers")
    if isinstance(masks, np.ndarray):
        masks = torch.from_numpy(np.ascontiguousarray(masks).view(np.int32))
    masks = masks.to(logits.device, non_blocking=True)
    bits = (masks.unsqueeze(-1) >> torch.arange(32, dtype=torch.int32, device=logits.device)) & 1
    forbidden = bits.reshape(*words[:-1], -1)[..., : shape[-1]] == 0
    if forbidden.shape[-1] < shape[-1]:
        logits[..., forbidden.shape[-1] :] = float("-inf")
    logits[..., : forbidden.shape[-1]].masked_fill_(forbidden, float("-inf"))


def _allowed(masks: npt.NDArray[np.uint32], size: int) -> npt.NDArray[np.bool_]:
    """The bits of masks as booleans, exactly ``size`` for each row."""
    bits = np.unpackbits(np.ascontiguousarray(masks).view(np.uint8), axis=-1, bitorder="little")
    missing = max(0, size - bits.shape[-1])
    if missing:
        bits = np.concatenate([bits, np.zeros((*bits.shape[:-1], missing), np.uint8)], axis=-1)
    return bits[..., :size].astype(np.bool_)
