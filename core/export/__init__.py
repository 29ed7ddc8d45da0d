"""Grammars as text for other engines: GBNF, Lark, xgrammar's EBNF, and regular expressions."""

from __future__ import annotations

__all__: list[str] = []
