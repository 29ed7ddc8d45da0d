"""langgraph-supervisor over our chat model: a supervisor hands over to an agent with two tools."""

from __future__ import annotations

from typing import Any

from langchain.agents import create_agent
from langgraph_supervisor import create_supervisor

from toolgrammar.adapters.langchain import ChatToolGrammar

from . import shop
from .shop import Clerk, Done


def work(url: str, stream: bool) -> Done:
    """Run the graph in this process, then ask for the object; the server is not asked."""
    model = ChatToolGrammar(model=Clerk())
    clerk = create_agent(model, [shop.count_stock, shop.price_of], name="clerk")
    graph: Any = create_supervisor([clerk], model=model).compile()
    return shop.told(graph, model, stream)
