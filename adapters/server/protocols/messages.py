"""Anthropic's messages: ``POST /v1/messages`` and ``POST /v1/messages/count_tokens``.

Source: the types of the ``anthropic`` package, version 2.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timezone
from types import MappingProxyType
from typing import Any

from toolgrammar.core.conversation import (
    CallEnd,
    CallStart,
    Event,
    Finish,
    Generation,
    ImagePart,
    Message,
    Part,
    ReasoningDelta,
    TextDelta,
    TextPart,
    ToolCall,
    Usage,
)
from toolgrammar.core.models import Model

from ... import _shared
from .. import parts, rows
from ..failures import Failure
from ..fields import Fields, RequestError, at_field
from ..images import RequestImages
from ..rows import Choice, Form, Row, Rows
from ..served import Served
from .base import ParsedRequest, Protocol, StreamWriter, frame
from .openai_form import new_id

_KINDS: Mapping[int, str] = {
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    504: "timeout_error",
}
_STOPS: Mapping[str, str] = {"stop": "end_turn", "tool_calls": "tool_use", "length": "max_tokens"}

#: By these details Anthropic's SDK, which asks for a thread in its tool runner, knows to go on without one.
_NO_THREADS: Mapping[str, Any] = {"error_code": "thread_unsupported_request", "unsupported": ["thread"]}


_CACHED: Rows = {"cache_control": rows.LABEL}
_IMAGE = Choice(
    "type",
    {
        "base64": {"data": rows.TEXT(needed=True), "media_type": rows.TEXT},
        "url": {"url": rows.TEXT(needed=True), "media_type": rows.TEXT},
    },
    "url",
)
_PARTS: Mapping[str, Form] = {
    "text": Form({"text": rows.TEXT(needed=True), "citations": rows.not_offered([]), **_CACHED}),
    "image": Form({"source": rows.inner(_IMAGE, needed=True), **_CACHED}),
}
#: A text, or parts of a system prompt or a result. A reference is in the result of a client's own search of its tools.
_CONTENT = rows.TEXT | rows.objects(
    Choice("type", {**_PARTS, "tool_reference": {"tool_name": rows.TEXT(needed=True), **_CACHED}}), default=""
)
_LABELS: Rows = {**dict.fromkeys(("signature", "caller"), rows.LABEL), **_CACHED}
#: Blocks of tools that Anthropic's server runs, from an earlier answer of another server.
_HOSTED_BLOCKS = (
    "server_tool_use",
    "web_search_tool_result",
    "web_fetch_tool_result",
    "code_execution_tool_result",
    "bash_code_execution_tool_result",
    "text_editor_code_execution_tool_result",
    "tool_search_tool_result",
    "mcp_tool_use",
    "mcp_tool_result",
)
_BLOCK = Choice(
    "type",
    {
        **_PARTS,
        "tool_use": {
            "id": rows.TEXT(needed=True),
            "name": rows.TEXT(needed=True),
            "input": rows.OBJECT(default={}),
            **_LABELS,
        },
        "tool_result": {"tool_use_id": rows.TEXT(needed=True), "content": _CONTENT, "is_error": rows.FLAG, **_LABELS},
        "thinking": {"thinking": rows.TEXT(default=""), **_LABELS},
        "redacted_thinking": {"data": rows.LABEL, **_LABELS},
        **dict.fromkeys(_HOSTED_BLOCKS),
    },
)
_MESSAGE = Form(
    {
        "role": rows.word("user", "assistant", "system", needed=True),
        "content": rows.TEXT | rows.objects(_BLOCK, default=""),
    }
)
#: Anthropic's own searches of deferred tools. There is nothing to search for: the prompt has the names of all deferred
#: tools, or a model on a server their schemas.
_SEARCHES = [f"tool_search_tool_{kind}{version}" for kind in ("regex", "bm25") for version in ("", "_20251119")]
#: A tool; one of another type is run by Anthropic's server, or its schema is known to Anthropic's models alone.
_TOOL = Choice(
    "type",
    {
        "custom": {
            **{name: row for name, row in parts.FUNCTION.items() if name != "parameters"},
            "input_schema": parts.SCHEMA(needed=True),
            "defer_loading": rows.FLAG,
            "allowed_callers": rows.LIST,
            **dict.fromkeys(("cache_control", "eager_input_streaming", "input_examples"), rows.LABEL),
        },
        **dict.fromkeys(
            _SEARCHES,
            dict.fromkeys(("name", "cache_control", "strict", "allowed_callers", "defer_loading"), rows.LABEL),
        ),
    },
    "custom",
    others=True,
)
_CHOSEN: Rows = {"disable_parallel_tool_use": rows.FLAG}
_CHOICE = Choice(
    "type",
    {
        **dict.fromkeys(("auto", "any", "none"), Form({"name": rows.LABEL, **_CHOSEN})),
        "tool": {"name": rows.TEXT(needed=True), **_CHOSEN},
    },
)
_DISPLAY: Rows = {"display": rows.not_offered("summarized"), "budget_tokens": rows.WHOLE}
_THINKING = Choice(
    "type",
    {
        "enabled": {**_DISPLAY, "budget_tokens": rows.WHOLE(needed=True)},
        **dict.fromkeys(("disabled", "adaptive"), _DISPLAY),
    },
)
_FORMAT = rows.inner({"type": rows.word("json_schema"), "schema": (parts.SCHEMA | Row((bool,)))(needed=True)})
_ROWS: Rows = {
    "model": rows.TEXT(needed=True),
    "messages": rows.objects(_MESSAGE, needed=True, least=1),
    "system": _CONTENT,
    "tools": rows.objects(_TOOL),
    "tool_choice": rows.inner(_CHOICE),
    "thinking": rows.inner(_THINKING),
    "output_config": rows.inner({"effort": parts.EFFORT, "format": _FORMAT}),
    "output_format": _FORMAT,  # its name in earlier versions
    "stop_sequences": rows.TEXTS,
    "stream": rows.FLAG,
    **parts.SAMPLING,
    "metadata": rows.inner({"user_id": rows.LABEL}),
    **dict.fromkeys(("cache_control", "user_profile_id"), rows.LABEL),
    "service_tier": rows.not_offered("auto", "standard_only"),
    "speed": rows.not_offered("standard"),
    # Nothing is edited here, which is what "all" asks for.
    "context_management": rows.inner(
        {"edits": rows.objects(Choice("keep", {"all": {"type": rows.LABEL}}, others=True))}
    ),
    "thread": rows.refused(hint="send the whole conversation as messages", details=_NO_THREADS),
    "inference_geo": rows.refused(hint="this server does not say where it is"),
}


class Messages(Protocol):
    """Anthropic's messages."""

    path = "/v1/messages"
    summary = "Answer a conversation, as Anthropic's messages"
    form = Form({**_ROWS, "max_tokens": rows.COUNT(needed=True)})
    names = MappingProxyType(
        {"stop": "stop_sequences", "thinking": "thinking.budget_tokens", "schema": "output_config.format"}
    )

    def read(self, fields: Fields, served: Served) -> ParsedRequest:
        """Return a request."""
        name = fields["model"]
        model = served.model(name)
        messages, prefix = _conversation(fields, served.images(name))
        # Without `_SEARCHES`, the only other kind that is accepted.
        tools = parts.distinct([_tool(tool, model) for tool in fields["tools"] if tool.kind == "custom"])
        choice, parallel = _choice(fields["tool_choice"])
        effort, schema = _effort_and_schema(fields, model)
        thinking = _thinking(fields["thinking"], fields["max_tokens"])
        options = {
            **parts.sampling(fields),
            "max_tokens": fields["max_tokens"],
            "stop": fields["stop_sequences"] or None,
            "parallel_tool_calls": parallel,
            "thinking": effort if thinking is None else thinking,
            "prefix": prefix or None,
        }
        params = served.params(name, options, fields["toolgrammar"], tools, choice, schema)
        parsed = ParsedRequest(name, messages, params, fields["stream"])
        # The first event of a stream has the number of input tokens; a whole answer knows it by its usage.
        return replace(parsed, details={"input_tokens": _input_tokens(model, parsed)}) if parsed.stream else parsed

    def whole(self, parsed: ParsedRequest, answers: Sequence[Generation]) -> dict[str, Any]:
        """Return a message. A call that the token budget cut is left out: clients run what they see."""
        (answer,) = answers
        content: list[dict[str, Any]] = []
        if answer.message.reasoning:
            content.append({"type": "thinking", "thinking": answer.message.reasoning, "signature": ""})
        if answer.text:
            content.append({"type": "text", "text": answer.text})
        content += [
            {"type": "tool_use", "id": call.id, "name": call.name, "input": dict(call.arguments)}
            for call in answer.tool_calls
            if _shared.problem(call) is None
        ]
        cut = _shared.cut_places(answer.message, answer.cut)
        return {
            **_head(parsed.model),
            "content": content,
            **_stop(answer),
            "usage": {**_usage(answer.usage), "output_tokens": answer.usage.completion_tokens},
            **_shared.extension_field(answer, cut),
        }

    def stream(self, parsed: ParsedRequest) -> StreamWriter:
        """Return the writer of message events."""
        return _Events(parsed)

    def error(self, failure: Failure) -> dict[str, Any]:
        """Return an error in Anthropic's form."""
        kind = _KINDS.get(failure.status, "api_error" if failure.status >= 500 else "invalid_request_error")
        details = {} if failure.details is None else {"details": dict(failure.details)}
        return {"type": "error", "error": {"type": kind, "message": failure.message, **details}}


class CountTokens(Messages):
    """Anthropic's count of a prompt's tokens, tools included."""

    path = "/v1/messages/count_tokens"
    summary = "Count the tokens of a prompt"
    form = Form(_ROWS)

    def read(self, fields: Fields, served: Served) -> ParsedRequest:
        """Return a request whose response is the number of its tokens."""
        parsed = super().read(fields, served)
        return replace(parsed, response={"input_tokens": _input_tokens(served.model(parsed.model), parsed)})


MESSAGES = Messages()
COUNT_TOKENS = CountTokens()


def _input_tokens(model: Model, parsed: ParsedRequest) -> int:
    tools: Any = parsed.params.tools
    return _shared.count_tokens(model, parsed.messages, tools, parsed.params.tools_in_prompt)


def models_of(facts: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the list of models in Anthropic's form, from OpenAI's."""
    data = [model_of(one) for one in facts]
    return {"data": data, "first_id": data[0]["id"], "last_id": data[-1]["id"], "has_more": False}


def model_of(facts: Mapping[str, Any]) -> dict[str, Any]:
    """Return a model in Anthropic's form, from OpenAI's."""
    created = datetime.fromtimestamp(facts["created"], timezone.utc).isoformat().replace("+00:00", "Z")
    named = {"id": facts["id"], "display_name": facts["id"]}
    return {"type": "model", **named, "created_at": created, "lifecycle": "active"}


def _head(model: str) -> dict[str, Any]:
    """Return a message without content."""
    return {
        "id": new_id("msg_"),
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
    }


def _stop(end: Generation | Finish) -> dict[str, Any]:
    """Return why an answer ended."""
    reason = end.finish_reason if isinstance(end, Generation) else end.reason
    word = "stop_sequence" if end.stop is not None and reason == "stop" else _STOPS[reason]
    return {"stop_reason": word, "stop_sequence": end.stop if word == "stop_sequence" else None}


def _usage(usage: Usage) -> dict[str, Any]:
    """Return the token counts of a prompt, what was kept of it apart."""
    return {
        "input_tokens": usage.prompt_tokens - usage.cached_tokens,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": usage.cached_tokens,
    }


# -- requests ------------------------------------------------------------------------------------------------------


def _tool(fields: Fields, model: Model) -> dict[str, Any]:
    parts.require_direct_caller(fields)
    return parts.function_tool(fields, schema_field="input_schema", deferred=parts.is_deferred(fields, model))


def _choice(fields: Fields | None) -> tuple[Any, bool | None]:
    """Return the choice of a tool, and whether several calls are allowed."""
    if fields is None:
        return None, None
    choice = {"type": "tool", "name": fields["name"]} if fields.kind == "tool" else fields.kind
    return choice, not fields["disable_parallel_tool_use"]


def _thinking(fields: Fields | None, budget: int | None) -> Any:
    """Return the reasoning that ``thinking`` asks for, as in `GenerateParams`; None: it does not say."""
    if fields is None:
        return None
    tokens = fields["budget_tokens"]
    if tokens is not None and budget is not None and tokens >= budget:
        raise fields.error("budget_tokens", "is not below max_tokens", "raise max_tokens")
    return {"enabled": tokens, "disabled": False, "adaptive": "auto"}[fields.kind]


def _effort_and_schema(fields: Fields, model: Model) -> tuple[Any, Any]:
    """Return what ``output_config`` asks for: reasoning (None: it does not say), and the schema of the answer."""
    config, format_before = fields["output_config"], fields["output_format"]  # the field had another name before
    effort = None if config is None else parts.thinking_of(config, "effort", model, optional=True)
    form = None if config is None else config["format"]
    if form is not None and format_before is not None:
        raise fields.error("output_format", "is output_config.format", "leave out output_format")
    form = form or format_before
    return effort, None if form is None else parts.closed_schema(form)


def _conversation(fields: Fields, images: RequestImages) -> tuple[tuple[Message, ...], str]:
    """Return the conversation, and the beginning of the answer: the text of a last message of the assistant, which
    goes on with it."""
    messages: list[Message] = []
    if fields["system"]:
        messages.append(Message("system", "".join(part.text for part in _parts(fields["system"]))))  # type: ignore[union-attr]
    for given in fields["messages"]:
        messages += [images.checked(message, given.path("content")) for message in _read_message(given)]
    if messages[-1].role != "assistant":
        return tuple(messages), ""
    beginning = messages.pop()
    if beginning.tool_calls or not messages:
        raise RequestError(
            "the last message is the assistant's", field="messages", hint="end with the user's, or with results"
        )
    return tuple(messages), beginning.text


def _parts(content: str | list[Fields]) -> list[Part]:
    """Return texts and images."""
    if isinstance(content, str):
        return [TextPart(content)] if content else []
    return [*map(_part, content)]


def _part(block: Fields) -> Part:
    if block.kind == "image":
        return _image(block["source"])
    return TextPart(block["tool_name" if block.kind == "tool_reference" else "text"])


def _image(source: Fields) -> ImagePart:
    if source.kind == "url":
        with at_field(source.path("url")):
            return ImagePart.at(source["url"])
    return parts.base64_image(source, "data", source["data"], source["media_type"])


def _read_message(fields: Fields) -> list[Message]:
    """Return one message; results of tools become messages of their own, before what else it has."""
    role, content = fields["role"], fields["content"]
    if isinstance(content, str):
        return [Message(role, content)]
    parts: list[Part] = []
    calls: list[ToolCall] = []
    results: list[Message] = []
    reasoning = ""
    for block in content:
        if block.kind in _PARTS:
            parts.append(_part(block))
        elif block.kind == "tool_use":
            calls.append(_shared.past_call(block["id"], block["name"], block["input"]))
        elif block.kind == "tool_result":
            result = _shared.content_of(_parts(block["content"]), "\n")
            results.append(Message("tool", result, tool_call_id=block["tool_use_id"], is_error=block["is_error"]))
        elif block.kind == "thinking":
            reasoning += block["thinking"]
    own = Message(role, _shared.content_of(parts, "\n"), reasoning=reasoning or None, tool_calls=tuple(calls))
    return results + ([own] if parts or calls or not results else [])


# -- streams -------------------------------------------------------------------------------------------------------


class _Events(StreamWriter):
    """Writer of message events.

    A call comes when it is whole: clients read what is there of a call that the token budget cut, and run it.
    """

    def __init__(self, parsed: ParsedRequest) -> None:
        super().__init__(parsed)
        self._open: str | None = None  # the kind of the open block, or the id of its call
        self._index = -1  # of the last block

    def begin(self) -> Iterable[str]:
        """Return the message without content."""
        usage = {**_usage(Usage(prompt_tokens=self._parsed.details["input_tokens"])), "output_tokens": 0}
        yield self._frame("message_start", message={**_head(self._parsed.model), "usage": usage})

    def event(self, index: int, event: Event) -> Iterable[str]:
        """Return what one event becomes."""
        if isinstance(event, ReasoningDelta):
            yield from self._block("thinking", {"type": "thinking", "thinking": "", "signature": ""})
            yield self._delta({"type": "thinking_delta", "thinking": event.text})
        elif isinstance(event, TextDelta):
            yield from self._block("text", {"type": "text", "text": ""})
            yield self._delta({"type": "text_delta", "text": event.text})
        elif isinstance(event, CallStart):
            yield self._frame("ping")  # the client sees that the answer goes on while the call is held back
        elif isinstance(event, CallEnd):
            call = event.call
            if self._problem(call) is None:
                yield from self._block(call.id, {"type": "tool_use", "id": call.id, "name": call.name, "input": {}})
                yield self._delta({"type": "input_json_delta", "partial_json": call.arguments_text})
        elif isinstance(event, Finish):
            yield from self._close()
            yield self._frame(
                "message_delta",
                delta=_stop(event),
                usage={**_usage(event.usage), "output_tokens": event.usage.completion_tokens},
                **_shared.extension_field(event, [*event.cut, *self._cut]),
            )

    def end(self) -> Iterable[str]:
        """Return the end mark."""
        yield self._frame("message_stop")

    def failure(self, failure: Failure) -> Iterable[str]:
        """Return the error."""
        yield frame(MESSAGES.error(failure), "error")

    def _block(self, key: str, start: dict[str, Any]) -> Iterable[str]:
        """Begin a block, unless it is open: that of the same kind of text, or of the same call (by its id)."""
        if self._open == key:
            return
        yield from self._close()
        self._open = key
        self._index += 1
        yield self._frame("content_block_start", index=self._index, content_block=start)

    def _close(self) -> Iterable[str]:
        if self._open is not None:
            self._open = None
            yield self._frame("content_block_stop", index=self._index)

    def _delta(self, delta: dict[str, Any]) -> str:
        return self._frame("content_block_delta", index=self._index, delta=delta)

    def _frame(self, kind: str, **fields: Any) -> str:
        return frame({"type": kind, **fields}, kind)
