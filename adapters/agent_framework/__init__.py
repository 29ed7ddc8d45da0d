"""A chat client for Microsoft Agent Framework whose tool calls and structured answers are valid by construction."""

from __future__ import annotations

from .client import ToolGrammarChatClient

__all__ = ["ToolGrammarChatClient"]
