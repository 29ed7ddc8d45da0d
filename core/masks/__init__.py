"""Masks: which tokens may come next.

`Constraint` is a grammar bound to a vocabulary; `Matcher` follows one text. ``docs/masks.md`` defines the notation of
this package (T(q), E(q), C) and explains how a mask is computed. `COMPILED` says if the hot part is compiled by Cython.

Use `toolgrammar.core.Grammar.bind` to make a `Constraint`. This package does not know schemas or tools.
"""

from __future__ import annotations

from ..automaton.lazy_dfa import Program
from .batch import MaskTable, apply_mask, fill_masks
from .masks import COMPILED
from .matcher import Constraint, Matcher
from .warming import Warmed

__all__ = ["COMPILED", "Constraint", "MaskTable", "Matcher", "Program", "Warmed", "apply_mask", "fill_masks"]
