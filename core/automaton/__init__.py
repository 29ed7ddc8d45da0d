"""Lazy byte automaton over the nodes of a language: derived as texts reach it, and never a dead end.

`lazy_dfa` holds grammars as the kernel sees them, `states` steps them, `completion` finds shortest texts. This room
knows no vocabulary: tokens begin in ``toolgrammar.core.masks``.
"""

from __future__ import annotations

__all__: list[str] = []
