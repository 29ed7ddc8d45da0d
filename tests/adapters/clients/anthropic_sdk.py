"""The SDK of Anthropic: its tool runner, and ``parse``."""

from __future__ import annotations

from typing import Any

import anthropic
from anthropic import beta_tool

from . import shop
from .shop import ASK_OFFER, MODEL, TASK, Done, Offer


def work(url: str, stream: bool) -> Done:
    """Let the runner call the tools, then parse."""
    client = anthropic.Anthropic(base_url=url, api_key="none", max_retries=0)
    tools = [beta_tool(shop.count_stock), beta_tool(shop.price_of)]
    asked: Any = {"model": MODEL, "max_tokens": 1000}
    pieces = 0
    messages: Any = [{"role": "user", "content": TASK}]
    if stream:
        runner: Any = client.beta.messages.tool_runner(messages=messages, tools=tools, stream=True, **asked)
        for events in runner:
            pieces += sum(event.type in ("text", "input_json") for event in events)
            last = events.get_final_message()
    else:
        runner = client.beta.messages.tool_runner(messages=messages, tools=tools, **asked)
        last = runner.until_done()
    text = "".join(block.text for block in last.content if block.type == "text")
    messages = [{"role": "user", "content": ASK_OFFER}]
    if stream:
        with client.messages.stream(messages=messages, output_format=Offer, **asked) as events:
            pieces += sum(event.type == "text" for event in events)
            parsed = events.get_final_message().parsed_output
    else:
        parsed = client.messages.parse(messages=messages, output_format=Offer, **asked).parsed_output
    return Done(text, parsed, pieces)
