"""Vocabularies: a model's tokens as bytes, read from its tokenizer.

`Vocabulary` is immutable and shared by everything that is bound to it; ``disk_cache`` keeps what is computed from it.
"""

from __future__ import annotations

from .vocabulary import MAX_TOKEN_BYTES, Vocabulary

__all__ = ["MAX_TOKEN_BYTES", "Vocabulary"]
