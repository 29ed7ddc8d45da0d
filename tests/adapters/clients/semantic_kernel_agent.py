"""Semantic Kernel: its chat completion agent, with plug-ins, and a response format."""

from __future__ import annotations

from typing import Annotated, Any

import openai
from semantic_kernel.agents import ChatCompletionAgent
from semantic_kernel.connectors.ai.open_ai import OpenAIChatCompletion, OpenAIChatPromptExecutionSettings
from semantic_kernel.functions import KernelArguments, kernel_function

from . import shop
from .shop import ASK_OFFER, MODEL, TASK, Done, Offer


class Shop:
    """The tools as a plug-in."""

    @kernel_function(description="Count the pieces of an article.")
    def count_stock(self, article: Annotated[str, "its name"]) -> str:
        """Count."""
        return shop.count_stock(article)

    @kernel_function(description="Look up the price of an article.")
    def price_of(self, article: Annotated[str, "its name"], currency: Annotated[str, "euro or crown"]) -> str:
        """Look up."""
        return shop.price_of(article, currency)  # type: ignore[arg-type]


async def work(url: str, stream: bool) -> Done:
    """Run an agent with the plug-in, then one with the format."""
    client: Any = openai.AsyncOpenAI(base_url=f"{url}/v1", api_key="none", max_retries=0)
    service = OpenAIChatCompletion(ai_model_id=MODEL, async_client=client)
    agent = ChatCompletionAgent(service=service, name="clerk", instructions="Be brief.", plugins=[Shop()])
    settings = OpenAIChatPromptExecutionSettings(response_format=Offer)
    writer = ChatCompletionAgent(service=service, name="writer", arguments=KernelArguments(settings=settings))
    if not stream:
        text = str((await agent.get_response(messages=TASK)).message)
        return Done(text, Offer.model_validate_json(str((await writer.get_response(messages=ASK_OFFER)).message)))
    said = [str(each.message) async for each in agent.invoke_stream(messages=TASK)]
    parts = [str(each.message) async for each in writer.invoke_stream(messages=ASK_OFFER)]
    pieces = sum(map(bool, said)) + sum(map(bool, parts))
    return Done("".join(said), Offer.model_validate_json("".join(parts)), pieces)
