"""Google's Agent Development Kit over its LiteLLM model."""

from __future__ import annotations

import json
from typing import Any

from google.adk.agents import LlmAgent
from google.adk.agents.run_config import RunConfig, StreamingMode
from google.adk.models.lite_llm import LiteLlm
from google.adk.runners import InMemoryRunner
from google.genai import types

from . import shop
from .shop import ASK_OFFER, MODEL, TASK, Done, Offer


async def work(url: str, stream: bool) -> Done:
    """Run an agent with tools, then one with a schema."""
    model = LiteLlm(model=f"openai/{MODEL}", api_base=f"{url}/v1", api_key="none")
    agent = LlmAgent(name="clerk", model=model, instruction="Be brief.", tools=[shop.count_stock, shop.price_of])
    text, pieces = await _ask(agent, TASK, stream)
    writer = LlmAgent(name="writer", model=model, instruction="Be brief.", output_schema=Offer)
    offer, more = await _ask(writer, ASK_OFFER, stream)
    return Done(text, json.loads(offer), pieces + more)


async def _ask(agent: LlmAgent, task: str, stream: bool) -> tuple[str, int]:
    runner = InMemoryRunner(agent=agent, app_name="shop")
    session = await runner.session_service.create_session(app_name="shop", user_id="me")
    content: Any = types.Content(role="user", parts=[types.Part(text=task)])
    mode = RunConfig(streaming_mode=StreamingMode.SSE if stream else StreamingMode.NONE)
    text, pieces = "", 0
    async for event in runner.run_async(user_id="me", session_id=session.id, new_message=content, run_config=mode):
        said = "".join(part.text or "" for part in (event.content.parts if event.content else None) or [])
        pieces += bool(event.partial and said)
        if event.is_final_response() and said:
            text = said
    return text, pieces
