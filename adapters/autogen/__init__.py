"""An AutoGen model client whose tool calls and structured answers are valid by construction.

::

    from toolgrammar.adapters.autogen import ToolGrammarChatCompletionClient

    client = ToolGrammarChatCompletionClient(model="hf:Qwen/Qwen2.5-1.5B-Instruct")
    agent = AssistantAgent("clerk", model_client=client, tools=[find_order])

Grammars are compiled from a tool's own argument type where the tool itself is given; the schemas that agents pass
instead have their references expanded, and those that contain themselves are read as the recursion they mean. AutoGen
runs every call whose arguments parse, so a call that the token budget cut short is handed over in a form that does not
parse: the agent then reports it to the model as a failed call.
"""

from __future__ import annotations

from .client import ToolGrammarChatCompletionClient, ToolGrammarClientConfig, ToolGrammarCreateResult

__all__ = ["ToolGrammarChatCompletionClient", "ToolGrammarClientConfig", "ToolGrammarCreateResult"]
