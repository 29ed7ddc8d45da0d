"""Streams that are left in mid-answer: by `break`, by a cancelled task, by a timeout, in each adapter."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import AsyncIterator, Callable
from importlib.util import find_spec
from typing import Any

import pytest

from toolgrammar.adapters import _shared
from toolgrammar.core import GenerateParams, Message, Model

STORY = "Tell a long story."
LONG = 3000


def core(model: Model) -> AsyncIterator[Any]:
    """The stream of the model."""
    return model.astream(STORY, max_tokens=LONG)


def request(model: Model) -> AsyncIterator[Any]:
    """What the adapters share."""
    return _shared.Request(model, [Message("user", STORY)], GenerateParams(max_tokens=LONG)).astream()


def langchain(model: Model) -> AsyncIterator[Any]:
    """LangChain's chunks."""
    from toolgrammar.adapters.langchain import ChatToolGrammar

    return ChatToolGrammar(model=model, max_tokens=LONG).astream(STORY)


def autogen(model: Model) -> AsyncIterator[Any]:
    """AutoGen's texts."""
    from autogen_core.models import UserMessage

    from toolgrammar.adapters.autogen import ToolGrammarChatCompletionClient

    client = ToolGrammarChatCompletionClient(model=model, max_tokens=LONG)
    return client.create_stream([UserMessage(content=STORY, source="user")])


def agent_framework(model: Model) -> AsyncIterator[Any]:
    """Agent Framework's updates."""
    import agent_framework as theirs

    from toolgrammar.adapters.agent_framework import ToolGrammarChatClient

    client = ToolGrammarChatClient(model=model)
    messages = [theirs.Message("user", [STORY])]
    return aiter(client.get_response(messages, stream=True, options={"max_tokens": LONG}))


async def pydantic_ai(model: Model) -> AsyncIterator[Any]:
    """The pieces of pydantic-ai's own iteration of a response."""
    from pydantic_ai.messages import ModelRequest
    from pydantic_ai.models import ModelRequestParameters

    from toolgrammar.adapters.pydantic_ai import ToolGrammarModel

    asked = [ModelRequest.user_text_prompt(STORY)]
    ours = ToolGrammarModel(model)
    async with ours.request_stream(asked, {"max_tokens": LONG}, ModelRequestParameters()) as stream:
        async for event in stream:
            yield event


STREAMS: list[tuple[Callable[[Model], AsyncIterator[Any]], str | None]] = [
    (core, None),
    (request, None),
    (langchain, "langchain_core"),
    (autogen, "autogen_core"),
    (agent_framework, "agent_framework"),
    (pydantic_ai, "pydantic_ai"),
]


async def left_by_break(stream: AsyncIterator[Any]) -> None:
    """The event loop ends soon after."""
    seen = 0
    async for _ in stream:
        seen += 1
        if seen == 2:
            break
    assert seen == 2


async def left_by_cancel(stream: AsyncIterator[Any]) -> None:
    """A task that waits for the next piece is cancelled."""
    await anext(stream)
    task = asyncio.ensure_future(read(stream))
    await asyncio.sleep(0.02)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def left_by_timeout(stream: AsyncIterator[Any]) -> None:
    """The time of the reader is over."""
    with pytest.raises(asyncio.TimeoutError):
        await asyncio.wait_for(read(stream), 0.05)


async def left_unread(stream: AsyncIterator[Any]) -> None:
    """The event loop ends while a task reads."""
    await anext(stream)
    task = asyncio.ensure_future(read(stream))
    await asyncio.sleep(0.02)
    assert not task.done()


async def read(stream: AsyncIterator[Any]) -> None:
    """Read to the end."""
    async for _ in stream:
        pass


@pytest.mark.parametrize("leave", [left_by_break, left_by_cancel, left_by_timeout, left_unread])
@pytest.mark.parametrize(("make", "package"), STREAMS)
def test_nothing_is_reported(
    make: Callable[[Model], AsyncIterator[Any]], package: str | None, leave: Any, noise: Model
) -> None:
    """Neither the event loop nor Python (pytest raises what it cannot) reports an error, and the model answers on."""
    if package is not None and find_spec(package) is None:
        pytest.skip(f"{package} is not installed")
    reports: list[Any] = []

    async def main() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda loop, context: reports.append(context))
        await leave(make(noise))

    asyncio.run(main())
    gc.collect()
    assert reports == []
    assert noise.generate(STORY, max_tokens=2).usage.completion_tokens


def test_closing_awaits_nothing(noise: Model) -> None:
    """An event loop that ends closes all generators at once, nested ones too: each has to be closed in one step."""

    async def main() -> None:
        for stream in (core(noise), request(noise)):
            closing: Any = stream
            await anext(closing)
            with pytest.raises(StopIteration):
                closing.aclose().send(None)

    asyncio.run(main())
