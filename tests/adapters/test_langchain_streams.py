"""Streams of the LangChain chat model, and many of them at once."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage
from langchain_core.tools import tool

from toolgrammar.adapters.langchain import ChatToolGrammar
from toolgrammar.core import Message
from toolgrammar.core.testing import ScriptedModel

Call = Callable[..., Message]


@tool
def set_heat(degrees: int, boost: bool = False) -> str:
    """Set the heat."""
    return f"{degrees}"


def joined(chunks: Sequence[BaseMessage]) -> AIMessageChunk:
    """A stream as one message."""
    total: Any = chunks[0]
    for chunk in chunks[1:]:
        total = total + chunk
    assert isinstance(total, AIMessageChunk)
    return total


@pytest.mark.asyncio
async def test_conversations_do_not_mix(call: Call) -> None:
    """Eight conversations at once: each gets its own answer, and cancelling two of them disturbs no other."""

    def script(messages: Sequence[Message]) -> Message:
        return call("set_heat", degrees=int(messages[-1].text))

    model = ChatToolGrammar(model=ScriptedModel(script)).bind_tools([set_heat])

    async def streamed(number: int) -> AIMessageChunk:
        return joined([chunk async for chunk in model.astream(str(number))])

    tasks = [asyncio.create_task(model.ainvoke(str(n)) if n % 2 else streamed(n)) for n in range(8)]
    await asyncio.sleep(0.02)
    tasks[2].cancel()
    tasks[5].cancel()
    results = await asyncio.gather(*tasks, return_exceptions=True)
    for number, result in enumerate(results):
        if isinstance(result, AIMessage):
            assert result.tool_calls[0]["args"] == {"degrees": number}
        else:
            assert number in (2, 5)
            assert isinstance(result, asyncio.CancelledError)
    assert sum(isinstance(result, AIMessage) for result in results) >= 6
