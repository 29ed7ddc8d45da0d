"""Lazy byte automaton over grammar nodes: derived as texts reach it, and without dead ends.

`lazy_dfa` holds the automata of grammars, `states` steps them, `completion` finds shortest texts. This room
knows no vocabulary: tokens begin in ``toolgrammar.core.masks``.
"""

from __future__ import annotations

__all__: list[str] = []
