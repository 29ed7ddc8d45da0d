"""Automata and masks: which tokens may come next.

`Program` derives a grammar's automaton lazily; `Constraint` binds it to a vocabulary; `Matcher` follows one text.
The hot part is ``kernel.py``, compiled by Cython where a compiler was there at install time (`COMPILED` says so).

Use `toolgrammar.core.Grammar.bind` to get here. This layer does not know schemas or tools.
"""

from .kernel import COMPILED
from .matcher import Constraint, Matcher
from .program import Program

__all__ = ["COMPILED", "Constraint", "Matcher", "Program"]
