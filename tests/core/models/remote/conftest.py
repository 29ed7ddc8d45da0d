"""Servers for the tests: scripted ones that record what they are asked, over httpx's own mock transport."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from typing import Any

import httpx
import pytest

from toolgrammar.core.models.remote import RemoteModel

URL = "http://model.test/v1"


def completion(
    text: str | None = None, *calls: tuple[str, Any], finish: str | None = None, **extra: Any
) -> dict[str, Any]:
    """A chat completion with a text, and calls by name and arguments (text, or a value)."""
    message: dict[str, Any] = {"role": "assistant", "content": text, **extra}
    if calls:
        message["tool_calls"] = [
            {
                "id": f"id{number}",
                "type": "function",
                "function": {"name": name, "arguments": given if isinstance(given, str) else json.dumps(given)},
            }
            for number, (name, given) in enumerate(calls)
        ]
    return {
        "object": "chat.completion",
        "model": "m",
        "choices": [{"index": 0, "message": message, "finish_reason": finish or ("tool_calls" if calls else "stop")}],
        "usage": {"prompt_tokens": 10, "completion_tokens": 5},
    }


def chunks_of(whole: dict[str, Any], size: int = 3) -> list[dict[str, Any]]:
    """The chunks in which a server streams a completion, its texts in pieces of a few characters."""
    choice = whole["choices"][0]
    message = choice["message"]
    deltas: list[dict[str, Any]] = [{"role": "assistant"}]
    for key in ("reasoning_content", "content"):
        text = message.get(key) or ""
        deltas += [{key: text[at : at + size]} for at in range(0, len(text), size)]
    for index, call in enumerate(message.get("tool_calls") or ()):
        function = call["function"]
        deltas.append(
            {"tool_calls": [{**call, "index": index, "function": {"name": function["name"], "arguments": ""}}]}
        )
        text = function["arguments"]
        deltas += [
            {"tool_calls": [{"index": index, "function": {"arguments": text[at : at + size]}}]}
            for at in range(0, len(text), size)
        ]
    chunks = [{"object": "chat.completion.chunk", "choices": [{"index": 0, "delta": each}]} for each in deltas]
    end = {name: choice[name] for name in ("finish_reason", "stop_reason") if name in choice}
    chunks.append({"choices": [{"index": 0, "delta": {}, **end}]})
    chunks.append({"choices": [], "usage": whole["usage"]})
    return chunks


class Pieces(httpx.AsyncByteStream):
    """A body that comes in pieces of a few bytes, so that characters and lines are cut anywhere."""

    def __init__(self, data: bytes, size: int = 7) -> None:
        self._data, self._size = data, size

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for at in range(0, len(self._data), self._size):
            yield self._data[at : at + self._size]


def streamed(whole: dict[str, Any]) -> httpx.Response:
    """A completion as an event stream."""
    lines = [": a comment\r\n", *(f"data: {json.dumps(chunk, ensure_ascii=False)}\n\n" for chunk in chunks_of(whole))]
    data = "".join([*lines, "data: [DONE]\n\n"]).encode()
    return httpx.Response(200, headers={"content-type": "text/event-stream; charset=utf-8"}, stream=Pieces(data))


class Scripted:
    """A scripted server; the last reply is given to all further requests.

    Args:
        replies: answers as of the server's own kind, responses, exceptions, or functions of the request's body.

    Attributes:
        asked: the bodies of the requests for answers.
        requests: all requests.
    """

    def __init__(self, *replies: Any) -> None:
        self._replies = list(replies)
        self.asked: list[dict[str, Any]] = []
        self.requests: list[httpx.Request] = []

    def reply(self, body: dict[str, Any]) -> Any:
        """The next reply; an exception is raised."""
        self.asked.append(body)
        reply = self._replies.pop(0) if len(self._replies) > 1 else self._replies[0]
        if callable(reply) and not isinstance(reply, httpx.Response):
            reply = reply(body)
        if isinstance(reply, Exception):
            raise reply
        return reply


class Server(Scripted):
    """A scripted server of chat completions (dicts, or texts).

    Attributes:
        plugin: it is vLLM with our plug-in.
        native: answers the endpoints of llama.cpp's server; None: it has none of them.
    """

    def __init__(
        self, *replies: Any, plugin: bool = False, native: Callable[[str, Any], httpx.Response] | None = None
    ) -> None:
        super().__init__(*replies)
        self.plugin = plugin
        self.native = native

    async def __call__(self, request: httpx.Request) -> httpx.Response:
        """Answer a request with the next reply."""
        if b'{\\"toolgrammar\\": 0}' in request.content:  # is the plug-in there?
            refusal = "toolgrammar: an envelope of version 0" if self.plugin else "no such grammar"
            return httpx.Response(400, json={"error": {"message": refusal}})
        if request.url.path in ("/props", "/tokenize", "/completion"):
            given = json.loads(request.content) if request.content else None
            return httpx.Response(404) if self.native is None else self.native(request.url.path, given)
        self.requests.append(request)
        body = json.loads(request.content) if request.content else {}
        reply = self.reply(body)
        if isinstance(reply, str):
            reply = completion(reply)
        if isinstance(reply, httpx.Response):
            return reply
        return streamed(reply) if body.get("stream") else httpx.Response(200, json=reply)

    def model(self, **options: Any) -> RemoteModel:
        """A model on this server."""
        return RemoteModel(f"m@{URL}", transport=httpx.MockTransport(self), **options)


@pytest.fixture
def serve() -> type[Server]:
    """Makes scripted servers."""
    return Server


@pytest.fixture
def complete() -> Callable[..., dict[str, Any]]:
    """Makes chat completions."""
    return completion
