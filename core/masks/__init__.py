"""Masks: which tokens may come next.

`Constraint` is a grammar bound to a vocabulary; `Matcher` follows one text. ``docs/masks.md`` defines the notation of
this package (T(q), E(q), C) and explains how a mask is computed. `COMPILED` says if the hot part is compiled by Cython.

Use `toolgrammar.core.Grammar.bind` to make a `Constraint`. This package does not know schemas or tools.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..faces import lazy

if TYPE_CHECKING:
    from .batch import MaskTable as MaskTable, apply_mask as apply_mask, fill_masks as fill_masks
    from .budget import Budget as Budget
    from .masks import COMPILED as COMPILED
    from .matcher import Constraint as Constraint, Matcher as Matcher, fill_known as fill_known
    from .warming import Warmed as Warmed

if not TYPE_CHECKING:
    __getattr__, __dir__, __all__ = lazy(
        __name__,
        {
            "batch": "MaskTable apply_mask fill_masks",
            "budget": "Budget",
            "masks": "COMPILED",
            "matcher": "Constraint Matcher fill_known",
            "warming": "Warmed",
        },
    )
