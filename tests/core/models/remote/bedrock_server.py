"""A scripted server with Bedrock's Converse form; requests and events are checked by ``botocore``'s service model."""

from __future__ import annotations

import base64
import json
import struct
from binascii import crc32
from collections.abc import Iterable, Mapping
from typing import Any

import botocore.session
import httpx
from botocore.eventstream import EventStreamBuffer
from botocore.validate import ParamValidator

from toolgrammar.core.models.remote import RemoteModel

from .conftest import Pieces, Scripted

Block = Mapping[str, Any]

_SERVICE = botocore.session.get_session().get_service_model("bedrock-runtime")
MODEL = "anthropic.claude-v1:0"


def check(shape: str, value: Mapping[str, Any]) -> None:
    """Check a value by a shape of the service model, which refuses fields that it does not know."""
    report = ParamValidator().validate(value, _SERVICE.shape_for(shape))
    assert not report.has_errors(), report.generate_report()


def text(said: str) -> Block:
    """A block of text."""
    return {"text": said}


def call(name: str, given: Any, number: int = 1) -> Block:
    """A block with a call."""
    return {"toolUse": {"toolUseId": f"tooluse_{number}", "name": name, "input": given}}


def thinking(thought: str, signature: str = "sig") -> Block:
    """A block of reasoning."""
    return {"reasoningContent": {"reasoningText": {"text": thought, "signature": signature}}}


def refusal(message: str, status: int = 400, kind: str = "ValidationException", **options: Any) -> httpx.Response:
    """An error in Amazon's form."""
    headers = {"x-amzn-errortype": kind, **options.pop("headers", {})}
    return httpx.Response(status, json={"message": message}, headers=headers, **options)


def events(content: Iterable[Block], stop: str | None = None, size: int = 4) -> list[dict[str, Any]]:
    """The events in which the API streams an answer, texts in pieces of a few characters."""
    content = list(content)
    stop = stop or ("tool_use" if any("toolUse" in block for block in content) else "end_turn")
    made: list[dict[str, Any]] = [{"messageStart": {"role": "assistant"}}]
    for index, block in enumerate(content):
        deltas: list[Any] = []
        if "text" in block:
            deltas = [{"text": block["text"][at : at + size]} for at in range(0, len(block["text"]), size)]
        elif "toolUse" in block:
            used = block["toolUse"]
            start = {"toolUse": {key: used[key] for key in ("toolUseId", "name")}}
            made.append({"contentBlockStart": {"start": start, "contentBlockIndex": index}})
            whole = used["input"] if isinstance(used["input"], str) else json.dumps(used["input"])
            deltas = [{"toolUse": {"input": whole[at : at + size]}} for at in range(0, len(whole), size)]
        elif "reasoningText" in block["reasoningContent"]:
            said = block["reasoningContent"]["reasoningText"]
            whole = said["text"]
            deltas = [{"reasoningContent": {"text": whole[at : at + size]}} for at in range(0, len(whole), size)]
            deltas.append({"reasoningContent": {"signature": said["signature"]}})
        else:
            deltas = [{"reasoningContent": block["reasoningContent"]}]
        made += [{"contentBlockDelta": {"delta": delta, "contentBlockIndex": index}} for delta in deltas]
        made.append({"contentBlockStop": {"contentBlockIndex": index}})
    made.append({"messageStop": {"stopReason": stop}})
    usage = {
        "inputTokens": 10,
        "outputTokens": 7,
        "totalTokens": 22,
        "cacheReadInputTokens": 3,
        "cacheWriteInputTokens": 2,
    }
    return [*made, {"metadata": {"usage": usage, "metrics": {"latencyMs": 5}}}]


def frame(event: Mapping[str, Any]) -> bytes:
    """One event in Amazon's binary encoding."""
    ((name, payload),) = event.items()
    is_error = name.endswith("Exception")
    headers = {":exception-type" if is_error else ":event-type": name, ":content-type": "application/json"}
    headers[":message-type"] = "exception" if is_error else "event"
    head = b"".join(
        bytes([len(key)]) + key.encode() + b"\x07" + struct.pack(">H", len(value)) + value.encode()
        for key, value in headers.items()
    )
    head += b"\x04more\x00" + b"\x03num\x04\x00\x00\x00\x01"  # headers that are no texts
    data = json.dumps(payload).encode()
    prelude = struct.pack(">II", 16 + len(head) + len(data), len(head))
    whole = prelude + struct.pack(">I", crc32(prelude)) + head + data
    return whole + struct.pack(">I", crc32(whole))


def stream(made: Iterable[Mapping[str, Any]], *, is_checked: bool = True, cut: int = 0) -> httpx.Response:
    """An event stream; events are checked by the service model, and frames by ``botocore``'s own decoder."""
    made = list(made)
    data = b"".join(map(frame, made))
    if is_checked:
        for event in made:
            known = json.loads(json.dumps(event))
            piece = known.get("contentBlockDelta", {}).get("delta", {}).get("reasoningContent", {})
            if "redactedContent" in piece:
                piece["redactedContent"] = base64.b64decode(piece["redactedContent"])
            check("ConverseStreamOutput", known)
        buffer = EventStreamBuffer()
        buffer.add_data(data)
        assert [json.loads(one.payload) for one in buffer] == [next(iter(event.values())) for event in made]
    head = {"content-type": "application/vnd.amazon.eventstream"}
    return httpx.Response(200, headers=head, stream=Pieces(data[: len(data) - cut], 11))


class Bedrock(Scripted):
    """A scripted server, whose replies are blocks of an answer."""

    async def __call__(self, request: httpx.Request) -> httpx.Response:
        """Answer a request with the next reply."""
        self.requests.append(request)
        assert request.url.raw_path == b"/model/anthropic.claude-v1%3A0/converse-stream"
        body = json.loads(request.content)
        given = json.loads(request.content)
        for turn in given["messages"]:
            for block in turn["content"]:
                if "image" in block:
                    block["image"]["source"]["bytes"] = base64.b64decode(block["image"]["source"]["bytes"])
                if "redactedContent" in block.get("reasoningContent", {}):
                    reasoning = block["reasoningContent"]
                    reasoning["redactedContent"] = base64.b64decode(reasoning["redactedContent"])
        check("ConverseStreamRequest", {"modelId": MODEL, **given})
        reply = self.reply(body)
        return reply if isinstance(reply, httpx.Response) else stream(events(reply))

    def model(self, **options: Any) -> RemoteModel:
        """A model on this server."""
        address = f"{MODEL}@https://bedrock.test"
        return RemoteModel(address, server="bedrock", transport=httpx.MockTransport(self), **options)
