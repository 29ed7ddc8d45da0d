"""A scripted server with Anthropic's messages; requests and events are checked by the types of the ``anthropic`` package."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

import httpx
import pydantic
from anthropic import types

from toolgrammar.core.models.remote import RemoteModel

from .conftest import Scripted

Block = Mapping[str, Any]

_REQUEST: pydantic.TypeAdapter[Any] = pydantic.TypeAdapter(types.message_create_params.MessageCreateParamsStreaming)
_EVENT: pydantic.TypeAdapter[Any] = pydantic.TypeAdapter(types.RawMessageStreamEvent)

#: Fields of older models, which the types have no more.
_OLDER = ("temperature", "top_p", "top_k")

#: The error with which Anthropic refuses too many strict tools.
TOO_LARGE = (
    "The compiled grammar is too large, which would cause performance issues. Simplify your tool schemas or reduce "
    "the number of strict tools."
)


def text(said: str) -> Block:
    """A block of text."""
    return {"type": "text", "text": said}


def call(name: str, given: Any, number: int = 1) -> Block:
    """A block with a call."""
    return {"type": "tool_use", "id": f"toolu_{number}", "name": name, "input": given}


def thinking(thought: str, signature: str = "sig") -> Block:
    """A block of thinking."""
    return {"type": "thinking", "thinking": thought, "signature": signature}


def refusal(message: str, status: int = 400, kind: str = "invalid_request_error", **options: Any) -> httpx.Response:
    """An error in Anthropic's form."""
    body = {"type": "error", "error": {"type": kind, "message": message}, "request_id": "req_1"}
    return httpx.Response(status, json=body, **options)


def events(
    content: Iterable[Block], stop: str | None = None, usage: Mapping[str, int] | None = None, size: int = 4
) -> list[dict[str, Any]]:
    """The events in which the API streams a message, texts in pieces of a few characters."""
    content = list(content)
    stop = stop or ("tool_use" if any(block["type"] == "tool_use" for block in content) else "end_turn")
    prompt = {"input_tokens": 10, "cache_creation_input_tokens": 2, "cache_read_input_tokens": 3, "output_tokens": 1}
    head = {"id": "msg_1", "type": "message", "role": "assistant", "model": "claude", "content": []}
    ends = {"stop_reason": None, "stop_sequence": None}
    made: list[dict[str, Any]] = [
        {"type": "message_start", "message": {**head, **ends, "usage": prompt}},
        {"type": "ping"},
    ]
    for index, block in enumerate(content):
        pieces: list[dict[str, Any]] = []
        start = dict(block)
        if block["type"] == "text":
            start["text"] = ""
            whole = block["text"]
            pieces = [{"type": "text_delta", "text": whole[at : at + size]} for at in range(0, len(whole), size)]
        elif block["type"] == "tool_use":
            start["input"] = {}
            given = block["input"]
            whole = given if isinstance(given, str) else json.dumps(given)
            pieces = [
                {"type": "input_json_delta", "partial_json": whole[at : at + size]}
                for at in range(0, len(whole) if given else 0, size)
            ]
        elif block["type"] == "thinking":
            start |= {"thinking": "", "signature": ""}
            whole = block["thinking"]
            pieces = [
                {"type": "thinking_delta", "thinking": whole[at : at + size]} for at in range(0, len(whole), size)
            ]
            pieces.append({"type": "signature_delta", "signature": block["signature"]})
        made.append({"type": "content_block_start", "index": index, "content_block": start})
        made += [{"type": "content_block_delta", "index": index, "delta": piece} for piece in pieces]
        made.append({"type": "content_block_stop", "index": index})
    delta = {"stop_reason": stop, "stop_sequence": None}
    made.append({"type": "message_delta", "delta": delta, "usage": usage or {"output_tokens": 7}})
    return [*made, {"type": "message_stop"}]


def stream(made: Iterable[Mapping[str, Any]], *, is_checked: bool = True) -> httpx.Response:
    """An event stream; its events are checked by the package's types."""
    lines = []
    for event in made:
        if is_checked and event["type"] != "ping":
            _EVENT.validate_python(event)
        lines.append(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n")
    return httpx.Response(200, headers={"content-type": "text/event-stream; charset=utf-8"}, text="".join(lines))


def plain(value: Any) -> Any:
    """A value with its iterators as lists, so that Pydantic validates all of it."""
    if isinstance(value, Mapping):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, (str, bytes)) or not isinstance(value, Iterable):
        return value
    return [plain(item) for item in value]


class Anthropic(Scripted):
    """A scripted server, whose replies are blocks of a message; ``facts`` answers the question for the model, None: 404."""

    def __init__(self, *replies: Any, facts: Mapping[str, Any] | None = None) -> None:
        super().__init__(*replies)
        self._facts = facts

    async def __call__(self, request: httpx.Request) -> httpx.Response:
        """Answer a request with the next reply."""
        self.requests.append(request)
        if request.method == "GET":
            return (
                refusal("not found", 404, "not_found_error")
                if self._facts is None
                else httpx.Response(200, json=self._facts)
            )
        assert request.url.path.endswith("/v1/messages")
        body = json.loads(request.content)
        typed = {key: value for key, value in body.items() if key not in _OLDER}
        # A field that the API does not know is missing in what the types read.
        assert plain(_REQUEST.validate_python(typed)) == typed
        reply = self.reply(body)
        return reply if isinstance(reply, httpx.Response) else stream(events(reply))

    def model(self, **options: Any) -> RemoteModel:
        """A model on this server."""
        address = "claude@https://claude.test/v1"
        return RemoteModel(address, server="anthropic", transport=httpx.MockTransport(self), **options)
