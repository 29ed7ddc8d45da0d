"""An AutoGen model client whose tool calls and structured answers are valid by construction."""

from __future__ import annotations

from .client import ToolGrammarChatCompletionClient, ToolGrammarClientConfig

__all__ = ["ToolGrammarChatCompletionClient", "ToolGrammarClientConfig"]
