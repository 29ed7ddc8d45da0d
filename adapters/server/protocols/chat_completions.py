"""OpenAI's chat completions: ``POST /v1/chat/completions``.

Source: the types of the ``openai`` package, version 2.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Sequence
from typing import Any

from toolgrammar.core.conversation import (
    ArgumentsDelta,
    CallEnd,
    CallStart,
    Event,
    Finish,
    Generation,
    Message,
    ReasoningDelta,
    TextDelta,
    TokenWritten,
    Usage,
)

from ... import _shared
from ..asked import (
    INPUT,
    Asked,
    Served,
    custom_input,
    require_images,
    sampling,
    schema_of,
    thinking_of,
    tools_of,
)
from ..failures import Failure
from ..fields import Fields, RequestError, at_field
from . import openai_form
from .base import Protocol, StreamWriter, frame
from .logprobs import asked_logprobs

_ROLES = ("system", "developer", "user", "assistant", "tool")


class ChatCompletions(Protocol):
    """OpenAI's chat completions."""

    path = "/v1/chat/completions"

    def read(self, fields: Fields, served: Served) -> Asked:
        """Return a request in the neutral form."""
        fields.required("model")
        name = fields.text("model")
        model = served.model(name)
        messages = messages_of(fields)
        require_images(model, messages, "messages")
        custom: set[str] = set()
        tools = tools_of(fields, model, custom)
        choice = fields.one_of("tool_choice", (str, dict))
        options = {
            **sampling(fields),
            "max_tokens": _budget(fields),
            "stop": fields.one_of("stop", (str, list)),
            "logit_bias": fields.one_of("logit_bias", (dict,)),
            "parallel_tool_calls": fields.one_of("parallel_tool_calls", (bool,)),
            "thinking": thinking_of(fields, "reasoning_effort", model),
            "logprobs": asked_logprobs(fields, model),
        }
        schema = schema_of(fields.inner("response_format"))
        answers = fields.whole("n", 1)
        stream = fields.flag("stream")
        include_usage = openai_form.streaming(fields, stream)
        openai_form.labels(fields)
        openai_form.penalties(fields)
        fields.refuse("store", False, hint="chat completions are not stored")
        fields.refuse("modalities", ["text"])
        fields.not_offered("verbosity", "medium")
        fields.refuse("functions", hint="give tools")
        fields.refuse("function_call", hint="give tool_choice")
        fields.refuse("audio")
        fields.end()
        params = served.params(name, options, tools, choice, schema)
        details = {"custom": custom, "vocabulary": None if params.logprobs is None else model.vocabulary}
        return Asked(name, messages, params, stream, answers, include_usage=include_usage, details=details)

    def whole(self, asked: Asked, answers: Sequence[Generation]) -> dict[str, Any]:
        """Return a chat completion."""
        choices = [
            {
                "index": index,
                "message": _message(answer.message, asked.details["custom"]),
                "logprobs": _logprobs(_shared.text_tokens(asked.details["vocabulary"], answer.tokens, answer.text)),
                "finish_reason": answer.finish_reason,
                **_shared.note(answer, _shared.cut_places(answer.message, answer.cut)),
            }
            for index, answer in enumerate(answers)
        ]
        return {
            "id": openai_form.new_id("chatcmpl-"),
            "object": "chat.completion",
            "created": int(time.time()),
            "model": asked.model,
            "choices": choices,
            "usage": openai_form.usage(openai_form.total([answer.usage for answer in answers])),
        }

    def stream(self, asked: Asked) -> StreamWriter:
        """Return the writer of chat completion chunks."""
        return _Chunks(asked)

    def error(self, failure: Failure) -> dict[str, Any]:
        """Return an error in OpenAI's form."""
        return openai_form.error(failure)


CHAT_COMPLETIONS = ChatCompletions()


def _budget(fields: Fields) -> int | None:
    """Return the token budget, which has an old and a new name."""
    old, new = fields.whole("max_tokens"), fields.whole("max_completion_tokens")
    if new is not None and new < 1:
        raise RequestError(
            f"max_completion_tokens is {new}", field="max_completion_tokens", hint="give at least 1, or leave it out"
        )
    if old is not None and new is not None and old != new:
        raise RequestError(
            "max_tokens and max_completion_tokens differ", field="max_tokens", hint="give max_completion_tokens"
        )
    budget: int | None = old if new is None else new
    return budget


def messages_of(fields: Fields) -> tuple[Message, ...]:
    """Return the conversation."""
    messages = tuple(map(_read_message, fields.objects("messages")))
    if not messages:
        raise RequestError("messages is empty", field="messages", hint="send at least one message")
    return messages


def _read_message(fields: Fields) -> Message:
    role = fields.word("role", _ROLES)
    if not role:
        fields.required("role")
    plain: dict[str, Any] = {"role": role, "content": _content(fields), "name": fields.text("name")}
    if role == "tool":
        fields.required("tool_call_id")
        plain["tool_call_id"] = fields.text("tool_call_id")
    if role == "assistant":
        plain["reasoning_content"] = fields.text("reasoning_content")
        plain["tool_calls"] = [_call(call) for call in fields.objects("tool_calls")]
        if refusal := fields.text("refusal"):
            plain["content"] = plain["content"] or refusal
        fields.ignore("annotations", "toolgrammar")  # what a server's own answer has beside its text
        fields.refuse("function_call", hint="give tool_calls")
        fields.refuse("audio")
    fields.end()
    return _shared.message_of(plain)


def _content(fields: Fields) -> Any:
    """Return the content of a message, its parts checked."""
    content = fields.one_of("content", (str, list))
    if not isinstance(content, list):
        return content
    made = []
    for index, part in enumerate(content):
        one = fields.within(part, f"{fields.path('content')}[{index}]")
        kind = one.word("type", ("text", "image_url", "refusal"))
        if not kind:
            one.required("type")
        if kind == "image_url":
            one.required("image_url")
            address = one.inner("image_url")
            assert address is not None
            address.required("url")
            with at_field(address.path("url")):
                made.append({"type": "image_url", "image_url": {"url": address.text("url")}})
            address.not_offered("detail", "auto")
            address.end()
        else:
            name = "text" if kind == "text" else "refusal"
            one.required(name)
            made.append({"type": "text", "text": one.text(name)})
        one.ignore("prompt_cache_breakpoint")
        one.end()
    return made


def _call(fields: Fields) -> dict[str, Any]:
    """Return a call of an earlier turn."""
    kind = fields.word("type", ("function", "custom"), "function")
    fields.ignore("index")
    fields.required(kind)
    function = fields.inner(kind)
    assert function is not None
    function.required("name")
    arguments = function.text("arguments", "") if kind == "function" else {INPUT: function.text(INPUT, "")}
    made = {"name": function.text("name"), "arguments": arguments}
    function.end()
    call = {"id": fields.text("id"), "function": made}
    fields.end()
    return call


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
        made["tool_calls"] = [
            {"id": call.id, "type": "custom", "custom": {"name": call.name, "input": custom_input(call)}}
            if call.name in custom
            else {
                "id": call.id,
                "type": "function",
                "function": {"name": call.name, "arguments": _shared.executable_text(call)},
            }
            for call in calls
        ]
    elif made["content"] is None:
        made["content"] = ""
    return made


def _logprobs(tokens: list[dict[str, Any]] | None) -> dict[str, Any] | None:
    return None if tokens is None else {"content": tokens, "refusal": None}


class _Chunks(StreamWriter):
    """Writer of chat completion chunks."""

    def __init__(self, asked: Asked) -> None:
        self._asked = asked
        self._head = {
            "id": openai_form.new_id("chatcmpl-"),
            "object": "chat.completion.chunk",
            "created": int(time.time()),
            "model": asked.model,
        }
        self._cut: list[str] = []
        self._usages: list[Usage] = []
        self._index = -1
        self._tokens: _shared.TextTokens | None = None
        self._is_custom = False  # the present call

    def begin(self) -> Iterable[str]:
        """Return nothing: each answer begins with a chunk of its own."""
        return ()

    def event(self, index: int, event: Event) -> Iterable[str]:
        """Return the chunks of one event."""
        if index != self._index:
            self._index, self._cut = index, []
            vocabulary = self._asked.details["vocabulary"]
            self._tokens = None if vocabulary is None else _shared.TextTokens(vocabulary)
            yield self._chunk({"role": "assistant", "content": ""})
        if isinstance(event, TokenWritten):
            if self._tokens is not None:
                self._tokens.add(event)
        elif isinstance(event, TextDelta):
            tokens = None if self._tokens is None else self._tokens.told(self._tokens.take(event.text))
            yield self._chunk({"content": event.text}, logprobs=_logprobs(tokens))
        elif isinstance(event, ReasoningDelta):
            yield self._chunk({"reasoning_content": event.text})
        elif isinstance(event, CallStart):
            self._is_custom = event.name in self._asked.details["custom"]
            if not self._is_custom:
                yield self._call(event.index, "", {"id": event.id, "type": "function"}, {"name": event.name})
        elif isinstance(event, ArgumentsDelta):
            if not self._is_custom:
                yield self._call(event.index, event.text)
        elif isinstance(event, CallEnd):
            self._cut += [event.call.name + pointer for pointer in event.call.cut]
            if self._is_custom:
                if _shared.problem(event.call) is None:
                    custom = {"name": event.call.name, "input": custom_input(event.call)}
                    call = {"index": event.index, "id": event.call.id, "type": "custom", "custom": custom}
                    yield self._chunk({"tool_calls": [call]})
            elif (reason := _shared.problem(event.call)) is not None:
                yield self._call(event.index, f" <{reason}>")  # as in `executable_text`: such a call must not parse
        elif isinstance(event, Finish):
            self._usages.append(event.usage)
            cut = [*event.cut, *self._cut]
            yield self._chunk({}, event.reason, _shared.note(event, cut))

    def end(self) -> Iterable[str]:
        """Return the token counts, if they are wanted, and the end mark."""
        if self._asked.include_usage:
            usage = openai_form.usage(openai_form.total(self._usages))
            yield frame({**self._head, "choices": [], "usage": usage})
        yield frame("[DONE]")

    def failure(self, failure: Failure) -> Iterable[str]:
        """Return the error; clients raise it, and there is no end mark after it."""
        yield frame(openai_form.error(failure))

    def _call(self, index: int, arguments: str, head: Any = (), function: Any = ()) -> str:
        call = {"index": index, **dict(head), "function": {**dict(function), "arguments": arguments}}
        return self._chunk({"tool_calls": [call]})

    def _chunk(self, delta: dict[str, Any], reason: str | None = None, note: Any = (), logprobs: Any = None) -> str:
        choice = {"index": self._index, "delta": delta, "logprobs": logprobs, "finish_reason": reason, **dict(note)}
        counts = {"usage": None} if self._asked.include_usage else {}
        return frame({**self._head, "choices": [choice], **counts})
