"""The items of a response, and the events of one that is streamed."""

from __future__ import annotations

import base64
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

from toolgrammar.core.conversation import (
    ArgumentsDelta,
    CallEnd,
    CallStart,
    Event,
    Finish,
    Message,
    MessageBuilder,
    ReasoningDelta,
    TextDelta,
    TokenWritten,
    ToolCall,
    Usage,
)

from ... import _shared
from .. import parts
from ..failures import Failure
from . import openai_form
from .base import ParsedRequest, StreamWriter, frame

#: The call of a search of deferred tools that the client runs.
SEARCH_CALL = "tool_search_call"


def _sealed(text: str) -> str:
    """Return reasoning as the text that clients hand back without reading it. It is no secret here."""
    return base64.b64encode(text.encode("utf-8", "replace")).decode()


def held_names(parsed: ParsedRequest) -> Collection[str]:
    """Return the names of the tools whose calls come when they are whole, or not at all."""
    return {*parsed.details["custom"], parsed.details["searches"]}


def head_of(parsed: ParsedRequest) -> dict[str, Any]:
    """Return what a response has before its answer."""
    return {
        "id": openai_form.new_id("resp_"),
        "object": "response",
        "created_at": int(time.time()),
        "model": parsed.model,
        "error": None,
        **parsed.details["echo"],
    }


def end_of(reason: str, usage: Usage, output: list[dict[str, Any]]) -> dict[str, Any]:
    """Return how a response ended."""
    is_cut = reason == "length"
    return {
        "status": "incomplete" if is_cut else "completed",
        "incomplete_details": {"reason": "max_output_tokens"} if is_cut else None,
        "output": output,
        "usage": {
            "input_tokens": usage.prompt_tokens,
            "input_tokens_details": {"cached_tokens": usage.cached_tokens, "cache_write_tokens": 0},
            "output_tokens": usage.completion_tokens,
            "output_tokens_details": {"reasoning_tokens": usage.reasoning_tokens},
            "total_tokens": usage.prompt_tokens + usage.completion_tokens,
        },
    }


def reasoning_item(name: str, text: str, status: str = "completed", *, seals: bool = False) -> dict[str, Any]:
    """Return an item of reasoning."""
    content = [{"type": "reasoning_text", "text": text}] if text else []
    made = {"type": "reasoning", "id": name, "summary": [], "content": content, "status": status}
    return {**made, "encrypted_content": _sealed(text)} if seals and text else made


def _part(text: str, logprobs: Sequence[dict[str, Any]] = ()) -> dict[str, Any]:
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": list(logprobs)}


def text_item(
    name: str, text: str, status: str = "completed", logprobs: Sequence[dict[str, Any]] = ()
) -> dict[str, Any]:
    """Return an item of text."""
    content = [_part(text, logprobs)] if text else []
    return {"type": "message", "id": name, "role": "assistant", "content": content, "status": status}


def call_item(name: str, call: ToolCall, details: Mapping[str, Any]) -> dict[str, Any]:
    """Return the item of a call, with the names by which the client knows the tool.

    Arguments of a cut call of a function do not parse, so that no client runs it. The item of a cut call of
    `held_names` is not to be used.

    Args:
        name: the id of the item.
        call: the call.
        details: those of the request (`Responses.read`): which tools are custom ones (``custom``) or in a namespace
            (``spaces``), and the name of the search that the client runs (``searches``; ``""``: there is none).
    """
    if call.name == details["searches"]:
        return {
            "type": SEARCH_CALL,
            "id": name,
            "call_id": call.id,
            "execution": "client",
            "arguments": dict(call.arguments or {}),
            "status": "completed",
        }
    space, own = details["spaces"].get(call.name, (None, call.name))
    named = {"name": own} if space is None else {"namespace": space, "name": own}
    if call.name in details["custom"]:
        return {"type": "custom_tool_call", "id": name, "call_id": call.id, **named, "input": parts.custom_input(call)}
    return {
        "type": "function_call",
        "id": name,
        "call_id": call.id,
        **named,
        "arguments": _shared.executable_text(call),
        "status": "completed" if _shared.problem(call) is None else "incomplete",
    }


class Events(StreamWriter):
    """Writer of response events. One item is open at a time.

    Args:
        parsed: the request.
        keep: keeps the response when it is whole.
    """

    def __init__(self, parsed: ParsedRequest, keep: Callable[[ParsedRequest, dict[str, Any], Message], None]) -> None:
        super().__init__(parsed)
        self._keep = keep
        self._head = head_of(parsed)
        self._built = MessageBuilder()  # the message so far, to be kept
        self._output: list[dict[str, Any]] = []  # the items that have ended
        self._number = -1  # of the last event
        self._logprobs: list[dict[str, Any]] = []  # of the open item
        self._kind = ""  # of the open item
        self._id = ""
        self._text = ""
        self._held = held_names(parsed)
        self._is_held = False  # the open call

    def begin(self) -> Iterable[str]:
        """Return the response before its answer."""
        response = {**self._head, "status": "in_progress", "incomplete_details": None, "output": [], "usage": None}
        yield self._frame("response.created", response=response)
        yield self._frame("response.in_progress", response=response)

    def event(self, index: int, event: Event) -> Iterable[str]:
        """Return what one event becomes."""
        self._built.add(event)
        if isinstance(event, TokenWritten):
            self._tokens.add(event)
        elif isinstance(event, ReasoningDelta):
            yield from self._open("reasoning")
            yield from self._add("response.reasoning_text.delta", event.text)
        elif isinstance(event, TextDelta):
            yield from self._open("message")
            yield from self._add("response.output_text.delta", event.text)
        elif isinstance(event, CallStart):
            yield from self._close()
            self._kind, self._id = "function_call", openai_form.new_id("fc_")
            self._is_held = event.name in self._held
            if self._is_held:
                return  # it comes when it is whole, or not at all
            begun = ToolCall(event.id, event.name, {}, raw="")
            item = {**call_item(self._id, begun, self._parsed.details), "status": "in_progress"}
            yield self._frame("response.output_item.added", output_index=len(self._output), item=item)
        elif isinstance(event, ArgumentsDelta):
            if not self._is_held:
                yield self._inner("response.function_call_arguments.delta", delta=event.text)
        elif isinstance(event, CallEnd):
            item = call_item(self._id, event.call, self._parsed.details)
            if self._is_held:
                yield from self._held_call(item, _shared.problem(event.call) is None)
                return
            if (reason := _shared.problem(event.call)) is not None:  # the arguments must not parse
                yield self._inner("response.function_call_arguments.delta", delta=f" <{reason}>")
            done = {"arguments": item["arguments"], "name": item["name"]}
            yield self._inner("response.function_call_arguments.done", **done)
            yield from self._done(item)
        elif isinstance(event, Finish):
            yield from self._close("incomplete" if event.reason == "length" else "completed")
            message = self._built.message()
            response = {**self._head, **end_of(event.reason, event.usage, self._output)}
            response |= _shared.extension_field(event, _shared.cut_places(message, event.cut))
            self._keep(self._parsed, response, message)
            yield self._frame(f"response.{response['status']}", response=response)

    def failure(self, failure: Failure) -> Iterable[str]:
        """Return the error, which SDKs raise because of its field ``error``; and the failed response, which Codex reads
        instead."""
        error = openai_form.error(failure)["error"]
        short = {"code": error["code"], "message": error["message"]}
        yield self._frame("error", error=error, **short, param=error["param"])
        ended = {"status": "failed", "error": short, "incomplete_details": None, "output": self._output, "usage": None}
        yield self._frame("response.failed", response={**self._head, **ended})

    def _open(self, kind: str) -> Iterable[str]:
        """Begin an item of text, unless one of this kind is open."""
        if self._kind == kind:
            return
        yield from self._close()
        self._kind, self._text, self._logprobs = kind, "", []
        self._id = openai_form.new_id("rs_" if kind == "reasoning" else "msg_")
        item = (reasoning_item if kind == "reasoning" else text_item)(self._id, "", "in_progress")
        yield self._frame("response.output_item.added", output_index=len(self._output), item=item)
        yield self._inner("response.content_part.added", content_index=0, part=self._part())

    def _part(self) -> dict[str, Any]:
        if self._kind == "reasoning":
            return {"type": "reasoning_text", "text": self._text}
        return _part(self._text, self._logprobs)

    def _add(self, kind: str, text: str) -> Iterable[str]:
        """Return the event of a piece of text of the open item."""
        self._text += text
        logprobs: dict[str, Any] = {}
        if self._kind == "message":
            logprobs["logprobs"] = self._tokens.next_tokens(text) or []
            self._logprobs += logprobs["logprobs"]
        yield self._inner(kind, content_index=0, delta=text, **logprobs)

    def _held_call(self, item: dict[str, Any], is_whole: bool) -> Iterable[str]:
        """Return the call of a custom tool or of a search; one that was cut is left out, for no client could tell."""
        self._kind = ""
        if not is_whole:
            return
        if item["type"] == SEARCH_CALL:
            begun = {**item, "arguments": {}, "status": "in_progress"}
            yield self._frame("response.output_item.added", output_index=len(self._output), item=begun)
            yield from self._done(item)
            return
        begun = {**item, "input": ""}
        yield self._frame("response.output_item.added", output_index=len(self._output), item=begun)
        yield self._inner("response.custom_tool_call_input.delta", delta=item["input"])
        yield self._inner("response.custom_tool_call_input.done", input=item["input"])
        yield from self._done(item)

    def _close(self, status: str = "completed") -> Iterable[str]:
        """End the open item of text, if there is one."""
        if self._kind not in ("reasoning", "message"):
            return
        is_text = self._kind == "message"
        word = "response.output_text.done" if is_text else "response.reasoning_text.done"
        logprobs = {"logprobs": self._logprobs} if is_text else {}
        yield self._inner(word, content_index=0, text=self._text, **logprobs)
        yield self._inner("response.content_part.done", content_index=0, part=self._part())
        yield from self._done(
            text_item(self._id, self._text, status, logprobs=self._logprobs)
            if is_text
            else reasoning_item(self._id, self._text, status, seals=self._parsed.details["seals"])
        )

    def _done(self, item: dict[str, Any]) -> Iterable[str]:
        yield self._frame("response.output_item.done", output_index=len(self._output), item=item)
        self._output.append(item)
        self._kind = ""

    def _inner(self, kind: str, **fields: Any) -> str:
        """Return an event inside the open item."""
        return self._frame(kind, item_id=self._id, output_index=len(self._output), **fields)

    def _frame(self, kind: str, **fields: Any) -> str:
        self._number += 1
        return frame({"type": kind, "sequence_number": self._number, **fields}, kind)
