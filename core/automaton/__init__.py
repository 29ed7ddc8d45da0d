"""Lazy DFA over bytes for grammar nodes: states are derived on demand, and none is a dead end.

`lazy_dfa` has the automata of grammars, `states` their transitions, `completion` their shortest texts. This package
does not know vocabularies: tokens begin in ``toolgrammar.core.masks``.
"""

from __future__ import annotations

__all__: list[str] = []
