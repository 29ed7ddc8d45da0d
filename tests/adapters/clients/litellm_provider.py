"""LiteLLM over the provider in this process."""

from __future__ import annotations

import json
from typing import Any

import litellm

from toolgrammar.adapters.litellm import register

from .openai_sdk import TOOLS
from .shop import ASK_OFFER, CALLS, FUNCTIONS, MODEL, TASK, Clerk, Done, Offer


def work(url: str, stream: bool) -> Done:
    """Loop over the tools, then ask for the schema; the same again over the server."""
    provider = register({MODEL: Clerk()})
    try:
        done = _work(f"toolgrammar/{MODEL}", {}, stream)
    finally:
        provider.close()
    CALLS.clear()
    served = _work(f"openai/{MODEL}", {"api_base": f"{url}/v1", "api_key": "none"}, stream)
    return Done(served.text, served.offer, min(done.pieces, served.pieces)) if done.offer == served.offer else done


def _ask(pieces: list[Any], stream: bool, **asked: Any) -> Any:
    if not stream:
        return litellm.completion(**asked).choices[0].message
    chunks = list(litellm.completion(**asked, stream=True))
    pieces += [chunk for chunk in chunks if chunk.choices and chunk.choices[0].delta.content]
    return litellm.stream_chunk_builder(chunks).choices[0].message


def _work(model: str, options: dict[str, Any], stream: bool) -> Done:
    messages: Any = [{"role": "user", "content": TASK}]
    pieces: list[Any] = []
    while (message := _ask(pieces, stream, model=model, messages=messages, tools=TOOLS, **options)).tool_calls:
        messages.append(message.model_dump())
        for call in message.tool_calls:
            said = FUNCTIONS[call.function.name](**json.loads(call.function.arguments))
            messages.append({"role": "tool", "tool_call_id": call.id, "content": said})
    asked = [{"role": "user", "content": ASK_OFFER}]
    answer = _ask(pieces, stream, model=model, messages=asked, response_format=Offer, **options)
    return Done(message.content, Offer.model_validate_json(answer.content), len(pieces))
