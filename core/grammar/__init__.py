"""The public `Grammar` and what is made with it: its data format, the cache of constraints, and random texts.

How a language is stored and stepped is the business of the rooms before this one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..faces import lazy

if TYPE_CHECKING:
    from .comparison import Comparison as Comparison, Witness as Witness
    from .constraint_cache import CacheStatistics as CacheStatistics, ConstraintCache as ConstraintCache
    from .data import is_grammar as is_grammar
    from .examples import Example as Example, edits as edits
    from .grammar import Grammar as Grammar
    from .sampling import random_text as random_text, single_bytes as single_bytes

if not TYPE_CHECKING:
    __getattr__, __dir__, __all__ = lazy(
        __name__,
        {
            "comparison": "Comparison Witness",
            "constraint_cache": "CacheStatistics ConstraintCache",
            "data": "is_grammar",
            "examples": "Example edits",
            "grammar": "Grammar",
            "sampling": "random_text single_bytes",
        },
    )
