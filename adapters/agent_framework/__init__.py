"""A chat client for Microsoft Agent Framework whose tool calls and structured answers are valid by construction.

::

    from toolgrammar.adapters.agent_framework import ToolGrammarChatClient

    client = ToolGrammarChatClient(model="hf:Qwen/Qwen2.5-1.5B-Instruct")
    agent = client.as_agent(name="clerk", instructions="Answer.", tools=[find_order])

The framework passes tools on whole, and offers tools and an answer's class together. It runs a call whose arguments do
not parse with the tool's defaults, so a call that the token budget cut short is marked as being there for the record
only, with the reason, as the framework itself marks calls that are in error.
"""

from __future__ import annotations

from .client import ToolGrammarChatClient
from .confirm import ConfirmUnsure, UnderPolicy

__all__ = ["ConfirmUnsure", "ToolGrammarChatClient", "UnderPolicy"]
