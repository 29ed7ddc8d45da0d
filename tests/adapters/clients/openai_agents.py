"""The Agents SDK of OpenAI, whose answer is the object; chat completions, and responses."""

from __future__ import annotations

from typing import Any

import openai
from agents import Agent, OpenAIChatCompletionsModel, OpenAIResponsesModel, Runner, function_tool, set_tracing_disabled

from . import shop
from .shop import MODEL, TASK, Done, Offer


async def work(url: str, stream: bool) -> Done:
    """Run the agent over both protocols."""
    set_tracing_disabled(True)
    client = openai.AsyncOpenAI(base_url=f"{url}/v1", api_key="none", max_retries=0)
    pieces = 0
    for kind in (OpenAIChatCompletionsModel, OpenAIResponsesModel):
        shop.CALLS.clear()
        model = kind(model=MODEL, openai_client=client)
        tools: Any = [function_tool(shop.count_stock), function_tool(shop.price_of)]
        agent = Agent(name="clerk", instructions="Be brief.", tools=tools, output_type=Offer, model=model)
        if stream:
            run: Any = Runner.run_streamed(agent, TASK)
            async for event in run.stream_events():
                data = event.data if event.type == "raw_response_event" else None
                pieces += getattr(data, "type", "") == "response.output_text.delta"
        else:
            run = await Runner.run(agent, TASK)
    return Done(None, run.final_output, pieces)
