"""Agno: its agent over the OpenAI-like model, and an output schema."""

from __future__ import annotations

from typing import Any

from agno.agent import Agent
from agno.models.openai.like import OpenAILike

from . import shop
from .shop import ASK_OFFER, MODEL, TASK, Done, Offer


def work(url: str, stream: bool) -> Done:
    """Run the agent, then one with a schema."""
    model = OpenAILike(id=MODEL, base_url=f"{url}/v1", api_key="none")
    agent = Agent(model=model, tools=[shop.count_stock, shop.price_of], telemetry=False)
    writer = Agent(model=model, output_schema=Offer, telemetry=False)
    if not stream:
        return Done(agent.run(TASK).content, writer.run(ASK_OFFER).content)
    events: list[Any] = [event for event in agent.run(TASK, stream=True) if event.event == "RunContent"]
    text = "".join(event.content or "" for event in events)
    found: Any = [event.content for event in writer.run(ASK_OFFER, stream=True) if isinstance(event.content, Offer)]
    return Done(text, found[-1], len(events))
