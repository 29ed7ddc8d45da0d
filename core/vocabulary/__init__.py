"""Vocabularies: a model's tokens as bytes, read from its tokenizer.

`Vocabulary` is immutable and shared by all grammars bound to it; ``disk_cache`` stores data computed from it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..faces import lazy

if TYPE_CHECKING:
    from .disk_cache import cache_folder as cache_folder
    from .vocabulary import MAX_TOKEN_BYTES as MAX_TOKEN_BYTES, Vocabulary as Vocabulary

if not TYPE_CHECKING:
    __getattr__, __dir__, __all__ = lazy(
        __name__,
        {
            "disk_cache": "cache_folder",
            "vocabulary": "MAX_TOKEN_BYTES Vocabulary",
        },
    )
