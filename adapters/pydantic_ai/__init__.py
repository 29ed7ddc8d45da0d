"""A model for pydantic-ai whose tool calls and structured answers are valid by construction.

::

    from pydantic_ai import Agent
    from toolgrammar.adapters.pydantic_ai import ToolGrammarModel

    agent = Agent(ToolGrammarModel("hf:Qwen/Qwen2.5-1.5B-Instruct"), tools=[find_order], output_type=Order)

All output modes (native, tool, prompted) are enforced while the model writes; native is the default. pydantic-ai runs
the validators of an output class itself, and asks again. A call that the token budget cut short has arguments that do
not parse, so that the framework reports it instead of running the tool.

`ToolGrammarDecisionModel` is a decision model: its answers have exact probabilities.
"""

from __future__ import annotations

from .decisions import ToolGrammarDecisionModel
from .model import ToolGrammarModel
from .settings import ToolGrammarModelSettings

__all__ = ["ToolGrammarDecisionModel", "ToolGrammarModel", "ToolGrammarModelSettings"]
