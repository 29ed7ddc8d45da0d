"""Strands: its agent over the OpenAI model, and its structured output."""

from __future__ import annotations

from strands import Agent, tool
from strands.models.openai import OpenAIModel

from . import shop
from .shop import ASK_OFFER, MODEL, TASK, Done, Offer


async def work(url: str, stream: bool) -> Done:
    """Run the agent, then ask for the object; its model streams always."""
    model = OpenAIModel(client_args={"base_url": f"{url}/v1", "api_key": "none", "max_retries": 0}, model_id=MODEL)
    agent = Agent(model=model, tools=[tool(shop.count_stock), tool(shop.price_of)], callback_handler=None)
    pieces = 0
    if stream:
        async for event in agent.stream_async(TASK):
            pieces += "data" in event
            text = str(event["result"]) if "result" in event else ""
    else:
        text = str(await agent.invoke_async(TASK))
    writer = Agent(model=model, callback_handler=None)
    found = await writer.invoke_async(ASK_OFFER, structured_output_model=Offer)
    return Done(text, found.structured_output, pieces)
