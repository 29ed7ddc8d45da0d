"""Haystack: its agent, and a generator under a schema."""

from __future__ import annotations

import json
from typing import Any

from haystack.components.agents import Agent
from haystack.components.generators.chat import OpenAIChatGenerator
from haystack.dataclasses import ChatMessage
from haystack.tools import create_tool_from_function
from haystack.utils import Secret

from . import shop
from .shop import ASK_OFFER, MODEL, TASK, Done, Offer


def work(url: str, stream: bool) -> Done:
    """Run the agent, then the generator."""
    chunks: list[Any] = []
    options: dict[str, Any] = {"model": MODEL, "api_base_url": f"{url}/v1", "api_key": Secret.from_token("none")}
    if stream:
        options["streaming_callback"] = chunks.append
    tools = [create_tool_from_function(shop.count_stock), create_tool_from_function(shop.price_of)]
    agent = Agent(chat_generator=OpenAIChatGenerator(**options), tools=tools)
    text = agent.run(messages=[ChatMessage.from_user(TASK)])["messages"][-1].text
    schema = {"type": "json_schema", "json_schema": {"name": "offer", "schema": Offer.model_json_schema()}}
    writer = OpenAIChatGenerator(**options, generation_kwargs={"response_format": schema})
    said = writer.run([ChatMessage.from_user(ASK_OFFER)])["replies"][0].text
    return Done(text, json.loads(said), sum(bool(chunk.content) for chunk in chunks))
