"""A LangChain chat model whose tool calls and structured answers are valid by construction.

::

    from toolgrammar.adapters.langchain import ChatToolGrammar

    model = ChatToolGrammar(model="hf:Qwen/Qwen2.5-1.5B-Instruct")
    model.bind_tools([get_weather], tool_choice="any").invoke("Is it cold in Oslo?").tool_calls

Grammars are compiled from the tools' own schemas, not from LangChain's rendering of them, which loses recursion and
maps. A call that the token budget cut short is never among ``tool_calls``: it is in ``invalid_tool_calls``, with the
reason, and ``response_metadata["cut"]`` says where. What LangChain and we call by different names is translated in
`langchain_messages`.
"""

from __future__ import annotations

from .chat_model import ChatToolGrammar

__all__ = ["ChatToolGrammar"]
