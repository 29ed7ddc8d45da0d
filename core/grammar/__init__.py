"""The public `Grammar` and what is made with it: its data format, the cache of constraints, and random texts.

How a language is stored and stepped is the business of the rooms before this one.
"""

from __future__ import annotations

from .grammar import Grammar

__all__ = ["Grammar"]
