"""The former home of `toolgrammar.adapters.langchain.ValidatedStrategy`, kept for code that imports it from here."""

from __future__ import annotations

from .langchain.agents import ValidatedStrategy

__all__ = ["ValidatedStrategy"]
