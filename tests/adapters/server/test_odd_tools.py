"""Requests with odd tools (open roots, odd names, maps, 30 tools): the server answers what the model answers."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from toolgrammar.core.testing import ScriptedModel
from toolgrammar.tools import ToolSet

from ...tools.odd_tools import ODD

#: What a request has, and the options of the same request without the server.
REQUESTS: tuple[dict[str, Any], ...] = (
    {},
    {"tool_choice": "required"},
    {"parallel_tool_calls": False},
    {"stream": True},
)


def in_chat_completions(tools: ToolSet) -> tuple[str, dict[str, Any]]:
    """Return the path of chat completions, and the tools as they are written there."""
    return "/v1/chat/completions", {"tools": tools.to_openai()}


def in_responses(tools: ToolSet) -> tuple[str, dict[str, Any]]:
    """Return the path of responses, and the tools as they are written there."""
    flat = [{"type": "function", **tool["function"], "strict": False} for tool in tools.to_openai()]
    return "/v1/responses", {"tools": flat, "input": "Go."}


def in_messages(tools: ToolSet) -> tuple[str, dict[str, Any]]:
    """Return the path of messages, and the tools as they are written there."""
    functions = [tool["function"] for tool in tools.to_openai()]
    given = [
        {"name": each["name"], "description": each["description"], "input_schema": each["parameters"]}
        for each in functions
    ]
    return "/v1/messages", {"tools": given, "max_tokens": 900}


@pytest.mark.parametrize("protocol", [in_chat_completions, in_responses, in_messages])
def test_no_odd_tool_refuses_a_request(
    protocol: Callable[[ToolSet], tuple[str, dict[str, Any]]], http: Callable[..., httpx.Client]
) -> None:
    """Of each set of tools an ordinary request is answered, in every protocol; so is one with further options."""
    rng = random.Random(3)
    client = http(ScriptedModel(["hi", *['{"name": "t", "arguments": {'] * 1_000]))
    for name, tools in sorted(ODD.items()):
        path, asked = protocol(tools)
        body = {"model": "scripted", "messages": [{"role": "user", "content": "Go."}], **asked}
        if path.endswith("responses"):
            del body["messages"]
        more = {} if path.endswith("messages") else rng.choice(REQUESTS)
        answer = client.post(path, json=body | more)
        assert answer.status_code == 200, f"{name}, {more}: {answer.text}"
        assert more.get("stream") or json.loads(answer.text).get("error") is None, f"{name}: {answer.text}"
