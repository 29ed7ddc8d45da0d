"""LlamaIndex: a function agent, and a structured prediction."""

from __future__ import annotations

from typing import Any

from llama_index.core.agent.workflow import AgentStream, FunctionAgent
from llama_index.core.prompts import PromptTemplate
from llama_index.core.tools import FunctionTool
from llama_index.llms.openai_like import OpenAILike

from . import shop
from .shop import ASK_OFFER, MODEL, TASK, Done, Offer


async def work(url: str, stream: bool) -> Done:
    """Run the agent, then predict."""
    model = OpenAILike(
        model=MODEL, api_base=f"{url}/v1", api_key="none", is_chat_model=True, is_function_calling_model=True,
        context_window=100_000, max_retries=0, should_use_structured_outputs=True,
    )  # fmt: skip
    tools: Any = [FunctionTool.from_defaults(shop.count_stock), FunctionTool.from_defaults(shop.price_of)]
    agent = FunctionAgent(tools=tools, llm=model, streaming=stream)
    handler = agent.run(TASK)
    pieces = 0
    async for event in handler.stream_events():
        pieces += isinstance(event, AgentStream) and bool(event.delta)
    text = str(await handler)
    prompt = PromptTemplate(ASK_OFFER)
    if stream:
        async for found in await model.astream_structured_predict(Offer, prompt):
            offer: Any = found
            pieces += 1
    else:
        offer = await model.astructured_predict(Offer, prompt)
    return Done(text, offer, pieces if stream else 0)
