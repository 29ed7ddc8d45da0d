"""langgraph-swarm over our chat model: an agent hands over to another one, which has two tools."""

from __future__ import annotations

from langchain.agents import create_agent
from langgraph_swarm import create_handoff_tool, create_swarm

from toolgrammar.adapters.langchain import ChatToolGrammar

from . import shop
from .shop import Clerk, Done


def work(url: str, stream: bool) -> Done:
    """Run the graph in this process, then ask for the object; the server is not asked."""
    model = ChatToolGrammar(model=Clerk())
    porter = create_agent(model, [create_handoff_tool(agent_name="clerk")], name="porter")
    clerk = create_agent(model, [shop.count_stock, shop.price_of], name="clerk")
    graph = create_swarm([porter, clerk], default_active_agent="porter").compile()
    return shop.told(graph, model, stream)
