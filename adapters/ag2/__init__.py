"""A model configuration for AG2 whose tool calls and structured answers are valid by construction.

::

    from ag2 import Agent
    from toolgrammar.adapters.ag2 import ToolGrammarConfig

    agent = Agent("clerk", config=ToolGrammarConfig("hf:Qwen/Qwen2.5-1.5B-Instruct"), tools=[find_order])

Tools and ``response_schema`` are enforced while the model writes. AG2 runs the validators of a class itself. A call
that the token budget cut short has arguments that do not parse, so that AG2 reports it instead of running the tool.
"""

from __future__ import annotations

from .config import ToolGrammarClient, ToolGrammarConfig

__all__ = ["ToolGrammarClient", "ToolGrammarConfig"]
