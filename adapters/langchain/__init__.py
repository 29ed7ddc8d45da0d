"""A LangChain chat model whose tool calls and structured answers are valid by construction."""

from __future__ import annotations

from .chat_model import ChatToolGrammar

__all__ = ["ChatToolGrammar"]
