"""Content-block events of LangChain's streams (``stream_events(version="v3")``), without the detour of chunks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from toolgrammar.core.conversation import ArgumentsDelta, CallEnd, CallStart, Event, Finish, ReasoningDelta, TextDelta

from .. import _shared
from . import messages as translation

try:
    from langchain_core.outputs import ChatGenerationChunk
    from langchain_core.version import VERSION
except ImportError as error:
    raise _shared.missing("langchain-core", "langchain") from error

#: The installed LangChain reads events in this form; an older one makes its own of chunks.
NATIVE = tuple(int(part) for part in VERSION.split(".")[:3] if part.isdigit()) >= (1, 7, 2)

_FINISH = ("finish_reason", "normalized_finish_reason", "finish_state")


class Blocks:
    """Conversion of our events into LangChain's: each block is finished as soon as it is complete.

    Args:
        answer: the metadata of the message.
        message_id: its id; None leaves the id to LangChain.

    Law: the message that LangChain makes of the events has the text, calls and metadata of `Answer.result`, and
    calls that must not run are among its ``invalid_tool_calls``, with the reason.
    """

    def __init__(self, answer: translation.Answer, message_id: str | None) -> None:
        self._answer = answer
        self._id = message_id
        self._started = False
        self._count = 0  # of blocks that have begun
        self._open_kind: str | None = None  # of the open block: "text" or "reasoning"
        self._open_pieces: list[str] = []  # what it has so far
        self._calls: dict[int, int] = {}  # index of the block of each call
        self._reasoning: list[str] = []
        self._logprobs: list[Any] = []

    def of(self, event: Event, chunks: Sequence[ChatGenerationChunk]) -> list[dict[str, Any]]:
        """Return the events of one of ours, given the chunks of the same event (`translation.Chunks`)."""
        events = self._of(event, chunks)
        if not events or self._started:
            return events
        self._started = True
        start = {"event": "message-start", "role": "ai", "id": self._id or ""}
        metadata = {"provider": translation.PROVIDER, "model": self._answer.model_name}
        return [{**start, "metadata": metadata}, *events]

    def _of(self, event: Event, chunks: Sequence[ChatGenerationChunk]) -> list[dict[str, Any]]:
        """Return an event of an answer as events of LangChain's protocol."""
        if not isinstance(event, Finish):
            for chunk in chunks:
                self._logprobs += chunk.message.response_metadata.get("logprobs", {}).get("content", [])
        if isinstance(event, TextDelta):
            return self._written("text", event.text)
        if isinstance(event, ReasoningDelta):
            self._reasoning.append(event.text)
            return self._written("reasoning", event.text)
        if isinstance(event, CallStart):
            closed = self._closed()
            self._calls[event.index] = self._count
            block = {"type": "tool_call_chunk", "id": event.id, "name": event.name, "args": "", "index": event.index}
            return [*closed, self._begun(block)]
        if isinstance(event, ArgumentsDelta):
            delta = {"type": "tool-call-delta", "args": event.text}
            return [{"event": "content-block-delta", "index": self._calls[event.index], "delta": delta}]
        if isinstance(event, CallEnd):
            return [_finished(self._calls[event.index], _call(event))]
        if isinstance(event, Finish):
            return [*self._closed(), self._message_finish(chunks[-1].message)]
        return []

    def _begun(self, block: dict[str, Any]) -> dict[str, Any]:
        """Count a block, and return the event of its beginning."""
        self._count += 1
        return {"event": "content-block-start", "index": self._count - 1, "content": block}

    def _written(self, kind: str, text: str) -> list[dict[str, Any]]:
        """Return the events of a piece of text or reasoning, which begins a block if none of its kind is open."""
        events = []
        if self._open_kind != kind:
            events = [*self._closed(), self._begun({"type": kind, kind: ""})]
            self._open_kind = kind
        self._open_pieces.append(text)
        delta = {"type": f"{kind}-delta", kind: text}
        return [*events, {"event": "content-block-delta", "index": self._count - 1, "delta": delta}]

    def _closed(self) -> list[dict[str, Any]]:
        """Close the open block of text or reasoning, the last one that began; return its end, or nothing."""
        kind, text = self._open_kind, "".join(self._open_pieces)
        self._open_kind, self._open_pieces = None, []
        return [] if kind is None else [_finished(self._count - 1, {"type": kind, kind: text})]

    def _message_finish(self, last: Any) -> dict[str, Any]:
        """Return the last event of a message, with the metadata of its last chunk and the tokens of all."""
        metadata = dict(last.response_metadata)
        if "logprobs" in metadata:
            metadata["logprobs"] = {**metadata["logprobs"], "content": self._logprobs}
        finish = {name: metadata[name] for name in _FINISH if name in metadata}
        event = {"event": "message-finish", **finish, "usage": dict(last.usage_metadata), "metadata": metadata}
        if self._reasoning:
            event["additional_kwargs"] = {"reasoning_content": "".join(self._reasoning)}
        return event


def _finished(index: int, block: dict[str, Any]) -> dict[str, Any]:
    return {"event": "content-block-finish", "index": index, "content": block}


def _call(event: CallEnd) -> dict[str, Any]:
    """Return a whole call as a block: one that may run, or one that must not, with the reason."""
    call, reason = event.call, _shared.problem(event.call)
    if reason is None:
        return {"type": "tool_call", "id": call.id, "name": call.name, "args": dict(call.arguments)}
    arguments = call.arguments_text
    return {"type": "invalid_tool_call", "id": call.id, "name": call.name, "args": arguments, "error": reason}
