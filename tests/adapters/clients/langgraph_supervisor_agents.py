"""langgraph-supervisor over our chat model: a supervisor hands over to an agent with two tools."""

from __future__ import annotations

from typing import Any

from langchain.agents import create_agent
from langgraph_supervisor import create_supervisor

from toolgrammar.adapters.langchain import ChatToolGrammar

from . import shop
from .shop import ASK_OFFER, TASK, Clerk, Done, Offer


def work(url: str, stream: bool) -> Done:
    """Run the graph in this process, then ask for the object; the server is not asked."""
    model = ChatToolGrammar(model=Clerk())
    clerk = create_agent(model, [shop.count_stock, shop.price_of], name="clerk")
    graph: Any = create_supervisor([clerk], model=model).compile()
    return told(graph, model, stream)


def told(graph: Any, model: Any, stream: bool) -> Done:
    """Run a graph of agents, then ask the model for the object."""
    asked = {"messages": [{"role": "user", "content": TASK}]}
    writer = model.with_structured_output(Offer)
    if not stream:
        return Done(str(graph.invoke(asked)["messages"][-1].content), writer.invoke(ASK_OFFER))
    pieces, state = 0, {}
    for path, mode, found in graph.stream(asked, stream_mode=["messages", "values"], subgraphs=True):
        if mode == "values" and not path:
            state = found
        elif mode == "messages":
            pieces += type(found[0]).__name__ == "AIMessageChunk"
    offers = list(writer.stream(ASK_OFFER))
    return Done(str(state["messages"][-1].content), offers[-1], pieces)
