"""Masks: which tokens may come next.

`Constraint` is a grammar bound to a vocabulary; `Matcher` follows one text. ``docs/masks.md`` defines the notation of
this package (T(q), E(q), C) and explains how a mask is computed. `COMPILED` says if the hot part is compiled by Cython.

Use `toolgrammar.core.Grammar.bind` to make a `Constraint`. This package does not know schemas or tools.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..faces import lazy

if TYPE_CHECKING:
    from .batch import MaskTable, apply_mask, fill_masks
    from .budget import Budget
    from .masks import COMPILED
    from .matcher import Constraint, Matcher, fill_known
    from .warming import Warmed

__all__ = [
    "COMPILED",
    "Budget",
    "Constraint",
    "MaskTable",
    "Matcher",
    "Warmed",
    "apply_mask",
    "fill_known",
    "fill_masks",
]

if not TYPE_CHECKING:
    __getattr__, __dir__ = lazy(
        __name__,
        {
            "batch": "MaskTable apply_mask fill_masks",
            "budget": "Budget",
            "masks": "COMPILED",
            "matcher": "Constraint Matcher fill_known",
            "warming": "Warmed",
        },
    )
