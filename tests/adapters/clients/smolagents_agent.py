"""smolagents: a tool-calling agent, and a generation under a schema."""

from __future__ import annotations

import json
from typing import Any

from smolagents import OpenAIModel, ToolCallingAgent, tool

from . import shop
from .shop import ASK_OFFER, MODEL, TASK, Done, Offer


def work(url: str, stream: bool) -> Done:
    """Run the agent, then generate."""
    model = OpenAIModel(MODEL, api_base=f"{url}/v1", api_key="none")
    tools = [tool(shop.count_stock), tool(shop.price_of)]
    agent = ToolCallingAgent(tools=tools, model=model, verbosity_level=0, max_steps=4, stream_outputs=stream)
    pieces = 0
    if stream:
        text: Any = None
        for step in agent.run(TASK, stream=True):
            pieces += type(step).__name__ == "ChatMessageStreamDelta"
            text = getattr(step, "output", text)
    else:
        text = agent.run(TASK)
    schema = {"type": "json_schema", "json_schema": {"name": "offer", "schema": Offer.model_json_schema()}}
    messages: Any = [{"role": "user", "content": [{"type": "text", "text": ASK_OFFER}]}]
    if stream:
        said = "".join(each.content or "" for each in model.generate_stream(messages, response_format=schema))
    else:
        said = model.generate(messages, response_format=schema).content
    return Done(str(text), json.loads(said), pieces)
