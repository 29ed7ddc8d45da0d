"""LangChain's deep agents over our chat model: two tools among the agent's own, and a response format."""

from __future__ import annotations

from typing import Any

from deepagents import create_deep_agent

from toolgrammar.adapters.langchain import ChatToolGrammar

from . import shop
from .shop import TASK, Clerk, Done, Offer


def work(url: str, stream: bool) -> Done:
    """Run the agent in this process; the server is not asked."""
    tools = [shop.count_stock, shop.price_of]
    agent: Any = create_deep_agent(model=ChatToolGrammar(model=Clerk()), tools=tools, response_format=Offer)
    asked = {"messages": [{"role": "user", "content": TASK}]}
    if not stream:
        return Done(None, agent.invoke(asked)["structured_response"])
    pieces, state = 0, {}
    for mode, found in agent.stream(asked, stream_mode=["messages", "values"]):
        if mode == "values":
            state = found
        else:
            pieces += type(found[0]).__name__ == "AIMessageChunk"
    return Done(None, state["structured_response"], pieces)
