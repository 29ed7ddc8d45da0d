"""Grammars as text for other engines: GBNF, Lark, xgrammar's EBNF, and regular expressions.

Each comes with a list of the constraints that the notation cannot express.
"""

from __future__ import annotations

__all__: list[str] = []
