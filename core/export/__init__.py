"""Grammars as text for other engines: GBNF, Lark, xgrammar's EBNF, and regular expressions.

Each comes with a list of what the notation cannot say.
"""

from __future__ import annotations

__all__: list[str] = []
