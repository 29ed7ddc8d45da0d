"""A LangChain chat model whose tool calls and structured answers are valid by construction.

::

    from toolgrammar.adapters.langchain import ChatToolGrammar

    model = ChatToolGrammar(model="hf:Qwen/Qwen2.5-1.5B-Instruct")
    model.bind_tools([get_weather], tool_choice="any").invoke("Is it cold in Oslo?").tool_calls

Grammars are compiled from the tools' own schemas, not from LangChain's rendering of them, which loses recursion and
maps. A call that the token budget cut short is never among ``tool_calls``: it is in ``invalid_tool_calls``, with the
reason, and ``response_metadata["cut"]`` says where.

`unsure` lets LangChain's human in the loop look at the calls of which the model was not sure.
`ToolGrammarDecisions` is a decision model, which LangChain has from ``langchain-core`` 1.8.
`ValidatedStrategy`, `InjectedArguments`, `AskInstead` and `UnderPolicy`, for LangChain's `create_agent`, need the
package ``langchain``; all else needs ``langchain-core``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolgrammar.core.faces import lazy

from .chat_model import ChatToolGrammar
from .confirm import unsure

if TYPE_CHECKING:
    from .agents import ValidatedStrategy
    from .asking import AskInstead, UnderPolicy
    from .decisions import ToolGrammarDecisions as ToolGrammarDecisions
    from .injected import InjectedArguments

# ToolGrammarDecisions is not listed: with an older langchain-core, ``import *`` would fail.
__all__ = ["AskInstead", "ChatToolGrammar", "InjectedArguments", "UnderPolicy", "ValidatedStrategy", "unsure"]

if not TYPE_CHECKING:
    __getattr__, __dir__, _lazy = lazy(
        __name__,
        {
            "agents": "ValidatedStrategy",
            "asking": "AskInstead UnderPolicy",
            "decisions": "ToolGrammarDecisions",
            "injected": "InjectedArguments",
        },
    )
