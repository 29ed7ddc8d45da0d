"""The SDK of OpenAI, 2 and 3: chat completions."""

from __future__ import annotations

import json
from typing import Any

import openai

from .shop import ASK_OFFER, FUNCTIONS, MODEL, SCHEMAS, TASK, Done, Offer

TOOLS: Any = [
    {"type": "function", "function": {"name": name, "description": about, "parameters": schema}}
    for name, (about, schema) in SCHEMAS.items()
]


def work(url: str, stream: bool) -> Done:
    """Loop over the tools, then parse."""
    client = openai.OpenAI(base_url=f"{url}/v1", api_key="none", max_retries=0)
    messages: Any = [{"role": "user", "content": TASK}]
    pieces = 0
    while True:
        if stream:
            with client.chat.completions.stream(model=MODEL, messages=messages, tools=TOOLS) as events:
                pieces += sum(event.type == "content.delta" for event in events)
                message: Any = events.get_final_completion().choices[0].message
        else:
            message = client.chat.completions.create(model=MODEL, messages=messages, tools=TOOLS).choices[0].message
        if not message.tool_calls:
            break
        messages.append(message.to_dict(mode="json"))
        for call in message.tool_calls:
            said = FUNCTIONS[call.function.name](**json.loads(call.function.arguments))
            messages.append({"role": "tool", "tool_call_id": call.id, "content": said})
    asked: Any = [{"role": "user", "content": ASK_OFFER}]
    if stream:
        with client.chat.completions.stream(model=MODEL, messages=asked, response_format=Offer) as events:
            pieces += sum(event.type == "content.delta" for event in events)
            parsed = events.get_final_completion().choices[0].message.parsed
    else:
        answer = client.chat.completions.parse(model=MODEL, messages=asked, response_format=Offer)
        parsed = answer.choices[0].message.parsed
    return Done(message.content, parsed, pieces)
