"""Grammars written as text, and as structural tags: read to rules, and the rules to nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..faces import lazy

if TYPE_CHECKING:
    from .strings import string_grammar as string_grammar

if not TYPE_CHECKING:
    __getattr__, __dir__, __all__ = lazy(
        __name__,
        {
            "strings": "string_grammar",
        },
    )
