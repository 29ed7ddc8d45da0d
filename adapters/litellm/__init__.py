"""A LiteLLM provider over models in this process: ``toolgrammar/...`` model names, and every call valid.

::

    import litellm
    from toolgrammar.adapters.litellm import register

    register({"small": "hf:Qwen/Qwen2.5-1.5B-Instruct"})
    litellm.completion(model="toolgrammar/small", messages=[...], tools=[...])

What speaks through LiteLLM (DSPy, smolagents, CrewAI, agent development kits) speaks to these models as well. A request
is a chat completion of `toolgrammar.adapters.server`: its fields are met, or refused by name. LiteLLM itself drops or
refuses some before, as its ``drop_params`` says.
"""

from __future__ import annotations

from .provider import ToolGrammarProvider, register

__all__ = ["ToolGrammarProvider", "register"]
