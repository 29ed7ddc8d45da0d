"""Lazy DFA over bytes for grammar nodes: states are derived on demand, and none is a dead end.

`lazy_dfa` has the automata of grammars, `states` their transitions, `completion` their shortest texts. This package
does not know vocabularies: tokens begin in ``toolgrammar.core.masks``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..faces import lazy

if TYPE_CHECKING:
    from .lazy_dfa import Workspace as Workspace

if not TYPE_CHECKING:
    __getattr__, __dir__, __all__ = lazy(
        __name__,
        {
            "lazy_dfa": "Workspace",
        },
    )
