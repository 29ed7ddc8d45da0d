"""langchain-mcp-adapters: the tools of an MCP server, in an agent of LangChain over our chat model."""

from __future__ import annotations

import sys
from typing import Any

from langchain.agents import create_agent
from langchain_mcp_adapters.client import MultiServerMCPClient

from toolgrammar.adapters.langchain import ChatToolGrammar

from . import shop
from .shop import TASK, Clerk, Done, Offer

#: The program of the MCP server: its tools answer as those of the shop do.
SERVER = """
from mcp.server.fastmcp import FastMCP
from tests.adapters.clients import shop
server = FastMCP("shop")
server.tool()(shop.count_stock)
server.tool()(shop.price_of)
server.run("stdio")
"""


async def work(url: str, stream: bool) -> Done:
    """Run the agent in this process; the server is not asked."""
    command = {"command": sys.executable, "args": ["-c", SERVER], "transport": "stdio"}
    tools = await MultiServerMCPClient({"shop": command}).get_tools()
    agent: Any = create_agent(ChatToolGrammar(model=Clerk()), tools, response_format=Offer)
    asked = {"messages": [{"role": "user", "content": TASK}]}
    pieces, state = 0, {}
    if stream:
        async for mode, found in agent.astream(asked, stream_mode=["messages", "values"]):
            if mode == "values":
                state = found
            else:
                pieces += type(found[0]).__name__ == "AIMessageChunk"
    else:
        state = await agent.ainvoke(asked)
    for message in state["messages"]:  # the tools ran in another process
        shop.CALLS.extend(
            (call["name"], call["args"]) for call in getattr(message, "tool_calls", ()) if call["name"] != "Offer"
        )
    return Done(None, state["structured_response"], pieces)
