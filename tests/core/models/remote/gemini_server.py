"""A scripted server with Gemini's API; requests and chunks are checked by the types of the ``google-genai`` package."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

import httpx
from google.genai import types

from toolgrammar.core.models.remote import RemoteModel

from .conftest import Scripted

Piece = Mapping[str, Any]

#: The error with which Google refuses a schema that is too large.
TOO_MANY_STATES = (
    "The specified schema produces a constraint that has too many states for serving. Typical causes of this error are "
    "schemas with lots of text (for example, very long property or enum names), schemas with long array length limits "
    "(especially when nested), or schemas using complex value matchers."
)


def text(said: str, **more: Any) -> Piece:
    """A part of text."""
    return {"text": said, **more}


def call(name: str, given: Any, signature: str | None = None, call_id: str | None = None) -> Piece:
    """A part with a call."""
    made = {"name": name, "args": given, **({"id": call_id} if call_id else {})}
    return {"functionCall": made, **({"thoughtSignature": signature} if signature else {})}


def refusal(message: str, status: int = 400, word: str = "INVALID_ARGUMENT", **options: Any) -> httpx.Response:
    """An error in Google's form."""
    return httpx.Response(status, json={"error": {"code": status, "message": message, "status": word}}, **options)


def chunks(parts: Iterable[Piece], stop: str = "STOP", size: int = 4, **more: Any) -> list[dict[str, Any]]:
    """The chunks in which the API streams an answer, texts in pieces of a few characters."""
    made: list[dict[str, Any]] = []
    for part in parts:
        whole = part.get("text")
        pieces = [part] if not whole else [{**part, "text": whole[at : at + size]} for at in range(0, len(whole), size)]
        for piece in pieces:
            made.append({"candidates": [{"content": {"role": "model", "parts": [piece]}, "index": 0}]})
    usage = {"promptTokenCount": 15, "candidatesTokenCount": 7, "thoughtsTokenCount": 3, "cachedContentTokenCount": 4}
    made.append({"candidates": [{"finishReason": stop, "index": 0, **more}], "usageMetadata": usage})
    return [{**one, "modelVersion": "gemini", "responseId": "r"} for one in made]


def stream(made: Iterable[Mapping[str, Any]], *, is_checked: bool = True) -> httpx.Response:
    """An event stream; its chunks are checked by the package's types."""
    lines = []
    for chunk in made:
        if is_checked:
            types.GenerateContentResponse.model_validate_json(json.dumps(chunk))
        lines.append(f"data: {json.dumps(chunk)}\r\n\r\n")
    return httpx.Response(200, headers={"content-type": "text/event-stream"}, text="".join(lines))


def check(body: Mapping[str, Any]) -> None:
    """Check a request by the package's types, which refuse fields that they do not know."""
    assert body.keys() <= {"contents", "systemInstruction", "tools", "toolConfig", "generationConfig", "safetySettings"}

    def read(kind: Any, value: Any) -> None:
        kind.model_validate_json(json.dumps(value))

    for content in body["contents"]:
        read(types.Content, content)
        assert content["role"] in ("user", "model") and content["parts"]
    if "systemInstruction" in body:
        read(types.Content, body["systemInstruction"])
    for tool in body.get("tools", ()):
        read(types.Tool, tool)
    if "toolConfig" in body:
        read(types.ToolConfig, body["toolConfig"])
        mode = body["toolConfig"]["functionCallingConfig"]["mode"]
        assert mode in [one.value for one in types.FunctionCallingConfigMode]
    read(types.GenerationConfig, body["generationConfig"])


class Google(Scripted):
    """A scripted server, whose replies are parts of an answer; ``facts`` answers the question for the model, None: 404."""

    def __init__(self, *replies: Any, facts: Mapping[str, Any] | None = None) -> None:
        super().__init__(*replies)
        self._facts = facts

    async def __call__(self, request: httpx.Request) -> httpx.Response:
        """Answer a request with the next reply."""
        self.requests.append(request)
        if request.method == "GET":
            assert request.url.path == "/v1beta/models/gemini"
            return (
                refusal("not found", 404, "NOT_FOUND") if self._facts is None else httpx.Response(200, json=self._facts)
            )
        assert request.url.path == "/v1beta/models/gemini:streamGenerateContent" and request.url.query == b"alt=sse"
        body = json.loads(request.content)
        check(body)
        reply = self.reply(body)
        return reply if isinstance(reply, httpx.Response) else stream(chunks(reply))

    def model(self, **options: Any) -> RemoteModel:
        """A model on this server."""
        return RemoteModel(
            "gemini@https://google.test", server="gemini", transport=httpx.MockTransport(self), **options
        )
