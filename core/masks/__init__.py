"""Masks: which tokens may come next.

`Constraint` is a grammar bound to a vocabulary; `Matcher` follows one text. The hot part is compiled by Cython where a
compiler was there at install time (`COMPILED` says so).

Use `toolgrammar.core.Grammar.bind` to get here. This layer does not know schemas or tools.
"""

from __future__ import annotations

from ..automaton.lazy_dfa import Program
from .batch import MaskTable, apply_mask, fill_masks
from .masks import COMPILED
from .matcher import Constraint, Matcher
from .warming import Warmed

__all__ = ["COMPILED", "Constraint", "MaskTable", "Matcher", "Program", "Warmed", "apply_mask", "fill_masks"]
