"""AG2: its agent over chat completions, and a response schema."""

from __future__ import annotations

from typing import Any

from ag2 import Agent, MemoryStream, tool
from ag2.config import OpenAIConfig
from ag2.events import ModelMessageChunk

from . import shop
from .shop import ASK_OFFER, MODEL, TASK, Done, Offer


async def work(url: str, stream: bool) -> Done:
    """Run the agent, then one with a schema."""
    config = OpenAIConfig(model=MODEL, base_url=f"{url}/v1", api_key="none", max_retries=0, streaming=stream)
    pieces: list[Any] = []
    events = MemoryStream()

    @events.where(ModelMessageChunk).subscribe
    def keep(event: ModelMessageChunk) -> None:
        pieces.append(event)

    agent = Agent("clerk", config=config, tools=[tool(shop.count_stock), tool(shop.price_of)])
    text = await (await agent.ask(TASK, stream=events)).content()
    writer = Agent("writer", config=config, response_schema=Offer)
    offer = await (await writer.ask(ASK_OFFER)).content()
    return Done(text, offer, len(pieces))
