"""The public `Grammar` and what is made with it: its data format, the cache of constraints, and random texts.

How a language is stored and stepped is the business of the rooms before this one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..faces import lazy

if TYPE_CHECKING:
    from .comparison import Comparison, Witness
    from .constraint_cache import CacheStatistics, ConstraintCache
    from .data import is_grammar
    from .examples import Example, edits
    from .grammar import Grammar
    from .sampling import random_text

__all__ = [
    "CacheStatistics",
    "Comparison",
    "ConstraintCache",
    "Example",
    "Grammar",
    "Witness",
    "edits",
    "is_grammar",
    "random_text",
]

if not TYPE_CHECKING:
    __getattr__, __dir__ = lazy(
        __name__,
        {
            "comparison": "Comparison Witness",
            "constraint_cache": "CacheStatistics ConstraintCache",
            "data": "is_grammar",
            "examples": "Example edits",
            "grammar": "Grammar",
            "sampling": "random_text",
        },
    )
