"""Vocabularies: a model's tokens as bytes, read from its tokenizer.

`Vocabulary` is immutable and shared by all grammars bound to it; ``disk_cache`` stores data computed from it.
"""

from __future__ import annotations

from .vocabulary import MAX_TOKEN_BYTES, Vocabulary

__all__ = ["MAX_TOKEN_BYTES", "Vocabulary"]
