"""Vocabularies: tokens as bytes, read from the tokenizers of models."""

from __future__ import annotations

from .vocabulary import MAX_TOKEN_BYTES, Vocabulary

__all__ = ["MAX_TOKEN_BYTES", "Vocabulary"]
