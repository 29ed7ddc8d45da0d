"""Anthropic's messages: ``POST /v1/messages`` and ``POST /v1/messages/count_tokens``.

Source: the types of the ``anthropic`` package, version 2.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable, Mapping, Sequence
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
from ..asked import (
    Asked,
    Served,
    closed_schema,
    direct_callers,
    distinct,
    function_tool,
    is_deferred,
    require_images,
    sampling,
    thinking_of,
)
from ..failures import Failure
from ..fields import Fields, RequestError
from .base import Protocol, StreamWriter, frame
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


class Messages(Protocol):
    """Anthropic's messages."""

    path = "/v1/messages"
    names = MappingProxyType({"stop": "stop_sequences", "schema": "output_config.format"})

    def read(self, fields: Fields, served: Served) -> Asked:
        """Return a request in the neutral form."""
        fields.required("model")
        name = fields.text("model")
        model = served.model(name)
        budget = self._budget(fields)
        messages, prefix = _conversation(fields)
        require_images(model, messages, "messages")
        tools = distinct([tool for each in fields.objects("tools") if (tool := _tool(each, model)) is not None])
        choice, parallel = _choice(fields.inner("tool_choice"))
        effort, schema = _output(fields.inner("output_config"), model)
        if fields.has("output_format"):  # its name in earlier versions
            if schema is not None:
                hint = "leave out output_format"
                raise RequestError("output_format is output_config.format", field="output_format", hint=hint)
            schema = _format(fields.inner("output_format"))
        thinking = _thinking(fields.inner("thinking"), budget)
        options = {
            **sampling(fields),
            "max_tokens": budget,
            "stop": fields.items("stop_sequences") or None,
            "parallel_tool_calls": parallel,
            "thinking": effort if thinking is None else thinking,
            "prefix": prefix or None,
        }
        stream = fields.flag("stream")
        fields.ignore("cache_control", "user_profile_id")
        metadata = fields.inner("metadata") or Fields({})
        metadata.ignore("user_id")
        metadata.end()
        fields.not_offered("service_tier", "auto", "standard_only")
        fields.not_offered("speed", "standard")
        context = fields.inner("context_management") or Fields({})
        for edit in context.objects("edits"):  # nothing is edited here, which is what "all" asks for
            if edit.take("keep") == "all":
                edit.ignore("type")
                edit.end()
            else:
                edit.skip()
        context.end()
        if fields.take("thread") is not None:
            hint = "send the whole conversation as messages"
            raise RequestError("conversations are not stored", field="thread", hint=hint, details=_NO_THREADS)
        fields.refuse("inference_geo", hint="this server does not say where it is")
        fields.end()
        params = served.params(name, options, tools, choice, schema)
        known: Any = params.tools
        details = (
            {"input_tokens": _shared.count_tokens(model, messages, known, params.tools_in_prompt)} if stream else {}
        )
        return Asked(name, messages, params, stream, details=details)

    def _budget(self, fields: Fields) -> int | None:
        fields.required("max_tokens")
        budget: int = fields.whole("max_tokens")
        return budget

    def whole(self, asked: Asked, answers: Sequence[Generation]) -> dict[str, Any]:
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
            **_head(asked.model),
            "content": content,
            **_stop(answer),
            "usage": {**_usage(answer.usage), "output_tokens": answer.usage.completion_tokens},
            **_shared.note(answer, cut),
        }

    def stream(self, asked: Asked) -> StreamWriter:
        """Return the writer of message events."""
        return _Events(asked)

    def error(self, failure: Failure) -> dict[str, Any]:
        """Return an error in Anthropic's form."""
        kind = _KINDS.get(failure.status, "api_error" if failure.status >= 500 else "invalid_request_error")
        details = {} if failure.details is None else {"details": dict(failure.details)}
        return {"type": "error", "error": {"type": kind, "message": failure.message, **details}}


class CountTokens(Messages):
    """Anthropic's count of a prompt's tokens, tools included."""

    path = "/v1/messages/count_tokens"

    def _budget(self, fields: Fields) -> int | None:
        return None

    def immediate(self, asked: Asked, served: Served) -> dict[str, Any]:
        """Return the number of tokens."""
        model = served.model(asked.model)
        tools: Any = asked.params.tools
        return {"input_tokens": _shared.count_tokens(model, asked.messages, tools, asked.params.tools_in_prompt)}


MESSAGES = Messages()
COUNT_TOKENS = CountTokens()


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


def _tool(fields: Fields, model: Model) -> dict[str, Any] | None:
    """Return a tool; None for one that Anthropic's server runs, or whose schema its models alone know."""
    kind = fields.text("type", "custom")
    if kind.startswith(_SEARCH):
        # Nothing to search for: the prompt has the names of all deferred tools, or a model on a server their schemas.
        fields.ignore("name", "cache_control", "strict", "allowed_callers", "defer_loading")
        fields.end()
        return None
    if kind != "custom":
        fields.skip()
        return None
    fields.required("input_schema")
    deferred = is_deferred(fields, model)
    direct_callers(fields)
    fields.ignore("cache_control", "eager_input_streaming", "input_examples")
    return function_tool(fields, "input_schema", deferred=deferred)


#: Beginning of the types of Anthropic's own searches of deferred tools.
_SEARCH = "tool_search_tool_"


def _choice(fields: Fields | None) -> tuple[Any, bool | None]:
    """Return the choice of a tool, and whether several calls are allowed."""
    if fields is None:
        return None, None
    kind = fields.word("type", ("auto", "any", "tool", "none"))
    if not kind:
        fields.required("type")
    parallel = not fields.flag("disable_parallel_tool_use")
    name = fields.text("name")
    if kind == "tool" and name is None:
        fields.required("name")
    fields.end()
    return ({"type": "tool", "name": name} if kind == "tool" else kind), parallel


def _thinking(fields: Fields | None, budget: int | None) -> Any:
    if fields is None:
        return None
    kind = fields.word("type", ("enabled", "disabled", "adaptive"))
    if not kind:
        fields.required("type")
    fields.not_offered("display", "summarized")
    tokens = fields.whole("budget_tokens")
    if kind == "enabled" and tokens is None:
        fields.required("budget_tokens")
    if tokens is not None and budget is not None and tokens >= budget:
        path = fields.path("budget_tokens")
        raise RequestError(f"{path} is not below max_tokens", field=path, hint="raise max_tokens")
    fields.end()
    return {"enabled": tokens, "disabled": False, "adaptive": "auto"}[kind]


def _output(fields: Fields | None, model: Model) -> tuple[Any, Any]:
    """Return the reasoning that an effort asks for, and the schema of the answer."""
    if fields is None:
        return None, None
    effort = thinking_of(fields, "effort", model, optional=True)
    schema = _format(fields.inner("format"))
    fields.end()
    return effort, schema


def _format(form: Fields | None) -> Any:
    """Return the schema of a format; None: there is none."""
    if form is None:
        return None
    form.word("type", ("json_schema",))
    form.required("schema")
    schema = closed_schema(form)
    form.end()
    return schema


def _conversation(fields: Fields) -> tuple[tuple[Message, ...], str]:
    """Return the conversation, and the beginning of the answer if the last message is one."""
    messages: list[Message] = []
    if fields.has("system"):
        messages.append(Message("system", "".join(part.text for part in _parts(fields, "system"))))  # type: ignore[union-attr]
    given = fields.objects("messages")
    if not given:
        raise RequestError("messages is empty", field="messages", hint="send at least one message")
    for one in given:
        messages += _read_message(one)
    if messages[-1].role != "assistant":
        return tuple(messages), ""
    last = messages.pop()
    if last.tool_calls or not messages:
        raise RequestError(
            "the last message is the assistant's", field="messages", hint="end with the user's, or with results"
        )
    return tuple(messages), last.text


def _parts(fields: Fields, name: str) -> list[Part]:
    """Return texts and images: a text, or a list of blocks."""
    value = fields.one_of(name, (str, list), "")
    if isinstance(value, str):
        return [TextPart(value)] if value else []
    return [_part(fields.within(block, f"{fields.path(name)}[{index}]")) for index, block in enumerate(value)]


def _part(block: Fields, kind: str | None = None) -> Part:
    kind = kind or block.word("type", ("text", "image", "tool_reference"))
    block.ignore("cache_control")
    if kind == "tool_reference":  # in the result of a client's own search of its tools
        block.required("tool_name")
        made: Part = TextPart(block.text("tool_name"))
    elif kind == "text":
        block.required("text")
        made = TextPart(block.text("text"))
        block.not_offered("citations", [])
    else:
        block.required("source")
        source = block.inner("source")
        assert source is not None
        made = _image(source)
    block.end()
    return made


def _image(source: Fields) -> ImagePart:
    kind = source.word("type", ("base64", "url"))
    needed = "data" if kind == "base64" else "url"
    source.required(needed)
    try:
        data = base64.b64decode(source.text(needed), validate=True) if kind == "base64" else None
    except binascii.Error:
        raise RequestError(f"{source.path('data')} is not base64", field=source.path("data")) from None
    made = ImagePart(data, None if data is not None else source.text("url"), source.text("media_type"))
    source.end()
    return made


_BLOCKS = ("text", "image", "tool_use", "tool_result", "thinking", "redacted_thinking")

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


def _read_message(fields: Fields) -> list[Message]:
    """Return one message; results of tools become messages of their own."""
    role = fields.word("role", ("user", "assistant", "system"))
    if not role:
        fields.required("role")
    content = fields.one_of("content", (str, list))
    fields.end()
    if not isinstance(content, list):
        return [Message(role, content or "")]  # type: ignore[arg-type]
    parts: list[Part] = []
    calls: list[ToolCall] = []
    results: list[Message] = []
    reasoning = ""
    for index, item in enumerate(content):
        block = fields.within(item, f"{fields.path('content')}[{index}]")
        kind = block.word("type", (*_BLOCKS, *_HOSTED_BLOCKS))
        if not kind:
            block.required("type")
        if kind in _HOSTED_BLOCKS:
            block.skip()
            continue
        if kind in ("text", "image"):
            parts.append(_part(block, kind))
            continue
        block.ignore("cache_control", "signature", "caller")
        if kind == "tool_use":
            block.required("id")
            block.required("name")
            call = _shared.past_call(block.text("id"), block.text("name"), block.one_of("input", (dict,), {}))
            calls.append(call)
        elif kind == "tool_result":
            block.required("tool_use_id")
            named = block.text("tool_use_id")
            inner = _joined(_parts(block, "content"))
            results.append(Message("tool", inner, tool_call_id=named, is_error=block.flag("is_error")))
        elif kind == "thinking":
            reasoning += block.text("thinking", "")
        else:
            block.ignore("data")
        block.end()
    own = Message(role, _joined(parts), reasoning=reasoning or None, tool_calls=tuple(calls))  # type: ignore[arg-type]
    return results + ([own] if parts or calls or not results else [])


def _joined(parts: list[Part]) -> str | tuple[Part, ...]:
    if all(isinstance(part, TextPart) for part in parts):
        return "\n".join(part.text for part in parts if isinstance(part, TextPart))
    return tuple(parts)


# -- streams -------------------------------------------------------------------------------------------------------


class _Events(StreamWriter):
    """Writer of message events.

    A call comes when it is whole: clients read what is there of a call that the token budget cut, and run it.
    """

    def __init__(self, asked: Asked) -> None:
        self._asked = asked
        self._open: str | None = None
        self._index = -1
        self._cut: list[str] = []

    def begin(self) -> Iterable[str]:
        """Return the message without content."""
        usage = {**_usage(Usage(prompt_tokens=self._asked.details["input_tokens"])), "output_tokens": 0}
        yield self._frame("message_start", message={**_head(self._asked.model), "usage": usage})

    def event(self, index: int, event: Event) -> Iterable[str]:
        """Return what one event becomes."""
        if isinstance(event, ReasoningDelta):
            yield from self._block("thinking", {"type": "thinking", "thinking": "", "signature": ""})
            yield self._delta({"type": "thinking_delta", "thinking": event.text})
        elif isinstance(event, TextDelta):
            yield from self._block("text", {"type": "text", "text": ""})
            yield self._delta({"type": "text_delta", "text": event.text})
        elif isinstance(event, CallStart):
            yield self._frame("ping")
        elif isinstance(event, CallEnd):
            call = event.call
            self._cut += [call.name + pointer for pointer in call.cut]
            if _shared.problem(call) is None:
                yield from self._close()
                yield from self._block(call.id, {"type": "tool_use", "id": call.id, "name": call.name, "input": {}})
                yield self._delta({"type": "input_json_delta", "partial_json": _shared.arguments_text(call)})
        elif isinstance(event, Finish):
            yield from self._close()
            cut = [*event.cut, *self._cut]
            yield self._frame(
                "message_delta",
                delta=_stop(event),
                usage={**_usage(event.usage), "output_tokens": event.usage.completion_tokens},
                **_shared.note(event, cut),
            )

    def end(self) -> Iterable[str]:
        """Return the end mark."""
        yield self._frame("message_stop")

    def failure(self, failure: Failure) -> Iterable[str]:
        """Return the error."""
        yield frame(MESSAGES.error(failure), "error")

    def _block(self, kind: str, start: dict[str, Any]) -> Iterable[str]:
        """Begin a block, unless one of this kind is open."""
        if self._open == kind:
            return
        yield from self._close()
        self._open = kind
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
