"""Grammars written as text, and as structural tags: read to rules, and the rules to nodes."""

from __future__ import annotations

__all__: list[str] = []
