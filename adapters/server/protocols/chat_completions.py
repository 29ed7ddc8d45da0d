"""OpenAI's chat completions: ``POST /v1/chat/completions``.

Source: the types of the ``openai`` package, version 2.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from toolgrammar.core.conversation import (
    ArgumentsDelta,
    CallEnd,
    CallStart,
    Event,
    Generation,
    Message,
    ReasoningDelta,
    ToolCall,
    Usage,
)

from ... import _shared
from .. import parts, rows
from ..fields import Fields, RequestError, at_field
from ..rows import Choice, Form, Row, Rows
from ..served import Served
from . import openai_form
from .base import ParsedRequest, Protocol, StreamWriter
from .chunks import Chunks

_FUNCTION: Rows = {"name": rows.TEXT(needed=True), "arguments": rows.TEXT(default="")}
_ANY_CALL: Rows = {"id": rows.TEXT, "index": rows.LABEL}
_CALL = Choice(
    "type",
    {
        "function": {"function": rows.inner(_FUNCTION, needed=True), **_ANY_CALL},
        "custom": {
            "custom": rows.inner({"name": rows.TEXT(needed=True), parts.INPUT: rows.TEXT(default="")}, needed=True),
            **_ANY_CALL,
        },
    },
    "function",
)
_IMAGE = Form({"url": rows.TEXT(needed=True), "detail": rows.not_offered("auto")})
_PARTS: Mapping[str, Row] = {"text": rows.TEXT, "refusal": rows.TEXT, "image_url": rows.inner(_IMAGE)}
_PART = Choice(
    "type",
    {name: Form({name: row(needed=True), "prompt_cache_breakpoint": rows.LABEL}) for name, row in _PARTS.items()},
)
_ANY_MESSAGE: Rows = {"content": rows.TEXT | rows.objects(_PART, default=None), "name": rows.TEXT}
_MESSAGE = Choice(
    "role",
    {
        **dict.fromkeys(("system", "developer", "user"), _ANY_MESSAGE),
        "assistant": {
            **_ANY_MESSAGE,
            "reasoning_content": rows.TEXT,
            "tool_calls": rows.objects(_CALL),
            "refusal": rows.TEXT,
            **dict.fromkeys(("annotations", "toolgrammar"), rows.LABEL),  # a server's own answer has them
            "function_call": rows.refused(hint="give tool_calls"),
            "audio": rows.refused(),
        },
        "tool": {**_ANY_MESSAGE, "tool_call_id": rows.TEXT(needed=True)},
    },
)


class ChatCompletions(Protocol):
    """OpenAI's chat completions."""

    path = "/v1/chat/completions"
    summary = "Answer a conversation, as OpenAI's chat completions"
    form = Form(
        {
            "model": rows.TEXT(needed=True),
            "messages": rows.objects(_MESSAGE, needed=True, least=1),
            "tools": rows.objects(parts.TOOL),
            "tool_choice": rows.TEXT | rows.OBJECT,
            "parallel_tool_calls": rows.FLAG(default=None),
            "response_format": rows.inner(parts.FORMAT),
            "max_tokens": rows.COUNT,
            "max_completion_tokens": rows.COUNT,
            "stop": parts.STOP,
            "n": rows.COUNT(default=1),
            "logit_bias": parts.BIAS,
            "reasoning_effort": parts.EFFORT,
            **parts.LOGPROBS,
            **parts.SAMPLING,
            **openai_form.STREAMING,
            **openai_form.LABELS,
            **openai_form.PENALTIES,
            "store": rows.refused(False, hint="chat completions are not stored"),
            "modalities": rows.refused(["text"]),
            "verbosity": rows.not_offered("medium"),
            "functions": rows.refused(hint="give tools"),
            "function_call": rows.refused(hint="give tool_choice"),
            "audio": rows.refused(),
        }
    )

    def read(self, fields: Fields, served: Served) -> ParsedRequest:
        """Return a request."""
        name = fields["model"]
        model = served.model(name)
        images = served.images(name)
        messages = tuple(images.checked(_read_message(one), one.path("content")) for one in fields["messages"])
        tools = parts.tools_of(fields, model)
        custom = {tool["custom"]["name"] for tool in fields["tools"] if tool.kind == "custom"}
        options = {
            **parts.sampling(fields),
            **fields.of("stop", "logit_bias", "parallel_tool_calls"),
            "max_tokens": _budget(fields),
            "thinking": parts.thinking_of(fields, "reasoning_effort", model),
            "logprobs": parts.asked_logprobs(fields, model),
        }
        schema = parts.schema_of(fields["response_format"])
        include_usage = openai_form.includes_usage(fields)
        params = served.params(name, options, fields["toolgrammar"], tools, fields["tool_choice"], schema)
        details = {"custom": custom, "vocabulary": None if params.logprobs is None else model.vocabulary}
        return ParsedRequest(
            name, messages, params, fields["stream"], fields["n"], include_usage=include_usage, details=details
        )

    def whole(self, parsed: ParsedRequest, answers: Sequence[Generation]) -> dict[str, Any]:
        """Return a chat completion."""
        choices = [
            {
                "index": index,
                "message": _message(answer.message, parsed.details["custom"]),
                "logprobs": _logprobs(_shared.text_tokens(parsed.details["vocabulary"], answer.tokens, answer.text)),
                "finish_reason": answer.finish_reason,
                **_shared.extension_field(answer, _shared.cut_places(answer.message, answer.cut)),
            }
            for index, answer in enumerate(answers)
        ]
        usage = openai_form.usage(openai_form.total([answer.usage for answer in answers]))
        return {**_head(parsed, "chat.completion"), "choices": choices, "usage": usage}

    def stream(self, parsed: ParsedRequest) -> StreamWriter:
        """Return the writer of chat completion chunks."""
        return _Chunks(parsed)


CHAT_COMPLETIONS = ChatCompletions()


def _budget(fields: Fields) -> int | None:
    """Return the token budget, which has an old and a new name."""
    old, new = fields["max_tokens"], fields["max_completion_tokens"]
    if new is not None and new < 1:
        raise fields.error("max_completion_tokens", f"is {new}", "give at least 1, or leave it out")
    if old is not None and new is not None and old != new:
        raise RequestError(
            "max_tokens and max_completion_tokens differ", field="max_tokens", hint="give max_completion_tokens"
        )
    return old if new is None else new  # type: ignore[no-any-return]


def _head(parsed: ParsedRequest, kind: str) -> dict[str, Any]:
    return {
        "id": openai_form.new_id("chatcmpl-"),
        "object": kind,
        "created": int(time.time()),
        "model": parsed.model,
    }


def _read_message(fields: Fields) -> Message:
    """Return a message of the request; the refusal of an earlier answer is its text."""
    content = fields["content"]
    if isinstance(content, list):
        content = [
            {"type": "image_url", "image_url": part["image_url"].of("url")}
            if part.kind == "image_url"
            else {"type": "text", "text": part[part.kind]}
            for part in content
        ]
    message = {"role": fields.kind, "content": content, **fields.of("name", "tool_call_id")}
    if fields.kind == "assistant":
        message["reasoning_content"] = fields["reasoning_content"]
        message["tool_calls"] = [_past_call(call) for call in fields["tool_calls"]]
        message["content"] = content or fields["refusal"]
    with at_field(fields.path("content")):
        return _shared.message_of(message)


def _past_call(fields: Fields) -> dict[str, Any]:
    """Return a call of an earlier turn; one of a custom tool as that of a function with one argument."""
    inner = fields[fields.kind]
    arguments = inner["arguments"] if fields.kind == "function" else inner.of(parts.INPUT)
    return {"id": fields["id"], "function": {"name": inner["name"], "arguments": arguments}}


def _message(message: Message, custom: Collection[str]) -> dict[str, Any]:
    """Return the assistant's message.

    No client runs a call that was cut: its arguments do not parse, and one of a custom tool, which has none, is left
    out.
    """
    made: dict[str, Any] = {"role": "assistant", "content": message.text or None, "refusal": None}
    if message.reasoning:
        made["reasoning_content"] = message.reasoning
    calls = [call for call in message.tool_calls if call.name not in custom or _shared.problem(call) is None]
    if calls:
        made["tool_calls"] = [_call(call, is_custom=call.name in custom) for call in calls]
    elif made["content"] is None:
        made["content"] = ""
    return made


def _call(call: ToolCall, *, is_custom: bool) -> dict[str, Any]:
    """Return a call of the answer."""
    if is_custom:
        return {"id": call.id, "type": "custom", "custom": {"name": call.name, "input": parts.custom_input(call)}}
    function = {"name": call.name, "arguments": _shared.executable_text(call)}
    return {"id": call.id, "type": "function", "function": function}


def _logprobs(tokens: list[dict[str, Any]] | None) -> dict[str, Any] | None:
    return None if tokens is None else {"content": tokens, "refusal": None}


class _Chunks(Chunks):
    """Writer of chat completion chunks."""

    def __init__(self, parsed: ParsedRequest) -> None:
        super().__init__(parsed, _head(parsed, "chat.completion.chunk"))
        self._is_custom = False  # the present call

    def _first(self) -> Iterable[str]:
        yield self._delta(role="assistant", content="")

    def _text(self, text: str, tokens: list[dict[str, Any]] | None) -> str:
        return self._chunk(delta={"content": text}, logprobs=_logprobs(tokens))

    def _last(self, reason: str, note: Mapping[str, Any]) -> str:
        return self._chunk(reason, delta={}, **note)

    def _usage(self, counts: Sequence[Usage]) -> dict[str, Any]:
        return openai_form.usage(openai_form.total(counts))

    def _reasoning_or_call(self, event: Event) -> Iterable[str]:
        """Return the chunks of reasoning and calls. A call of a custom tool comes when it is whole, or not at all."""
        if isinstance(event, ReasoningDelta):
            yield self._delta(reasoning_content=event.text)
        elif isinstance(event, CallStart):
            self._is_custom = event.name in self._parsed.details["custom"]
            if not self._is_custom:
                yield self._call(event.index, "", {"id": event.id, "type": "function"}, {"name": event.name})
        elif isinstance(event, ArgumentsDelta):
            if not self._is_custom:
                yield self._call(event.index, event.text)
        elif isinstance(event, CallEnd):
            reason = self._problem(event.call)
            if self._is_custom and reason is None:
                yield self._delta(tool_calls=[{"index": event.index, **_call(event.call, is_custom=True)}])
            elif not self._is_custom and reason is not None:
                yield self._call(event.index, f" <{reason}>")  # so that its arguments do not parse: `executable_text`

    def _call(self, index: int, arguments: str, head: Any = (), function: Any = ()) -> str:
        call = {"index": index, **dict(head), "function": {**dict(function), "arguments": arguments}}
        return self._delta(tool_calls=[call])

    def _delta(self, **delta: Any) -> str:
        return self._chunk(delta=delta)
