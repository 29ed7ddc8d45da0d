"""Ollama's chat and its completions: ``POST /api/chat``, ``POST /api/generate``, and what its clients ask besides.

Sources: the types of the ``ollama`` package, version 0.6; Ollama's own description of its API. ``tool_choice`` is ours:
Ollama has none.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from datetime import datetime, timezone
from types import MappingProxyType
from typing import Any

from toolgrammar.core.conversation import (
    CallEnd,
    Event,
    Finish,
    Generation,
    ImagePart,
    Message,
    Part,
    ReasoningDelta,
    TextDelta,
    TextPart,
    TokenWritten,
    ToolCall,
)
from toolgrammar.core.models import LocalModel, Model

from ... import _shared
from .. import parts, rows
from ..failures import Failure
from ..fields import Fields, RequestError
from ..rows import Form, Rows
from ..served import Served
from .base import Endpoint, ParsedRequest, Protocol, StreamWriter, line

#: Options of Ollama, and ours that each is.
_OPTIONS = {
    "temperature": "temperature",
    "top_p": "top_p",
    "top_k": "top_k",
    "min_p": "min_p",
    "seed": "seed",
    "repeat_penalty": "repetition_penalty",
    "stop": "stop",
    "grammar": "grammar",
}
#: Options of Ollama that change no answer: they say how a model is loaded, or are of mirostat, which is off.
_LOADING = (
    *("num_gpu", "main_gpu", "num_thread", "num_batch", "use_mmap", "use_mlock", "f16_kv", "numa", "low_vram"),
    *("num_keep", "mirostat_tau", "mirostat_eta"),
)
#: Options of Ollama that no model here has, and the value that asks for nothing.
_NOTHING = {"presence_penalty": 0, "frequency_penalty": 0, "mirostat": 0, "typical_p": 1, "tfs_z": 1}

_ROWS: Rows = {
    "model": rows.TEXT(needed=True),
    "format": rows.TEXT | rows.OBJECT(schema={"description": "'json' or a JSON Schema"}),
    "options": rows.inner(
        {
            **{theirs: {**parts.SAMPLING, "stop": parts.STOP}[ours] for theirs, ours in _OPTIONS.items()},
            **dict.fromkeys(("num_predict", "num_ctx", "repeat_last_n"), rows.WHOLE),
            **dict.fromkeys(_LOADING, rows.LABEL),
            **{name: rows.refused(nothing, float(nothing)) for name, nothing in _NOTHING.items()},
        }
    ),
    "think": rows.FLAG(default=None) | parts.EFFORT,
    "stream": rows.FLAG(default=True),
    "keep_alive": rows.LABEL,
    **parts.LOGPROBS,
    **parts.TOOLGRAMMAR,
}
_CALLED = Form({"name": rows.TEXT(needed=True), "arguments": rows.OBJECT(default={}), "index": rows.LABEL})
_CALL = Form({"id": rows.TEXT, "type": rows.refused("function"), "function": rows.inner(_CALLED, needed=True)})
_MESSAGE = Form(
    {
        "role": rows.word("system", "user", "assistant", "tool", needed=True),
        "content": rows.TEXT(default=""),
        "images": rows.TEXTS,
        "tool_calls": rows.objects(_CALL),
        **dict.fromkeys(("thinking", "tool_call_id", "name", "tool_name"), rows.TEXT),
    }
)


class Chat(Protocol):
    """Ollama's chat."""

    path = "/api/chat"
    summary = "Answer a conversation, as Ollama's chat"
    form = Form(
        {
            **_ROWS,
            "messages": rows.objects(_MESSAGE, needed=True, least=1),
            "tools": rows.objects(parts.PLAIN_TOOL),
            "tool_choice": rows.TEXT | rows.OBJECT,
        }
    )
    media_type = "application/x-ndjson"
    names = MappingProxyType(
        {
            **{ours: f"options.{theirs}" for theirs, ours in _OPTIONS.items()},
            "max_tokens": "options.num_predict",
            "schema": "format",
        }
    )

    def read(self, fields: Fields, served: Served) -> ParsedRequest:
        """Return a request."""
        model = served.model(fields["model"])
        images = served.images(fields["model"])
        messages = tuple(images.checked(_read_message(one), one.path("images")) for one in fields["messages"])
        return self._parsed(fields, served, messages, parts.tools_of(fields, model))

    def _parsed(
        self,
        fields: Fields,
        served: Served,
        messages: tuple[Message, ...],
        tools: Sequence[dict[str, Any]] = (),
        prefix: str | None = None,
    ) -> ParsedRequest:
        """Return a request with the fields that both endpoints have."""
        name = fields["model"]
        model = served.model(name)
        thinking = parts.thinking_of(fields, "think", model) if isinstance(fields["think"], str) else fields["think"]
        options = {
            **({} if fields["options"] is None else _sampling(fields["options"], model)),
            "thinking": thinking,
            "logprobs": parts.asked_logprobs(fields, model),
            "prefix": prefix,
        }
        form = fields["format"]
        if isinstance(form, str) and form not in ("", "json"):
            raise fields.error("format", f"is {form!r}", "give 'json' or a JSON Schema")
        schema = None
        if form:
            schema = {"type": "object"} if form == "json" else parts.closed_schema(fields, "format")
        params = served.params(name, options, fields["toolgrammar"], tools, fields["tool_choice"], schema)
        vocabulary = None if params.logprobs is None else model.vocabulary
        details = {"begin": time.monotonic_ns(), "vocabulary": vocabulary}
        return ParsedRequest(name, messages, params, fields["stream"], details=details)

    def whole(self, parsed: ParsedRequest, answers: Sequence[Generation]) -> dict[str, Any]:
        """Return a response. A call that the token budget cut is left out: clients run what they see."""
        (answer,) = answers
        message: dict[str, Any] = {"content": answer.text}
        if answer.message.reasoning:
            message["thinking"] = answer.message.reasoning
        calls = [_call(call) for call in answer.tool_calls if _shared.problem(call) is None]
        if calls:
            message["tool_calls"] = calls
        cut = _shared.cut_places(answer.message, answer.cut)
        end = _end(parsed, answer.finish_reason, answer, cut)
        tokens = _shared.text_tokens(parsed.details["vocabulary"], answer.tokens, answer.text)
        return {**_head(parsed), **self.in_response(message), **({} if tokens is None else {"logprobs": tokens}), **end}

    @staticmethod
    def in_response(message: dict[str, Any]) -> dict[str, Any]:
        """Return a message, or a piece of one, as it is in a response of the endpoint."""
        return {"message": {"role": "assistant", **message}}

    def stream(self, parsed: ParsedRequest) -> StreamWriter:
        """Return the writer of lines."""
        return _Lines(parsed, self.in_response)

    def error(self, failure: Failure) -> dict[str, Any]:
        """Return an error in Ollama's form; of a prompt that is too long in its runner's words, which clients know."""
        is_overflow = failure.code == "context_overflow"
        before = "the request exceeds the available context size: " if is_overflow else ""
        return {"error": f"{before}{failure.message}"}


class Generate(Chat):
    """Ollama's completions: one message, or with ``raw`` a text that the model goes on with."""

    path = "/api/generate"
    summary = "Answer one message, or go on with a text, as Ollama does"
    form = Form(
        {
            **_ROWS,
            "prompt": rows.TEXT(default=""),
            "system": rows.TEXT,
            "images": rows.TEXTS,
            "raw": rows.FLAG,
            "template": rows.refused("", hint="give the whole prompt, with raw"),
            "context": rows.refused([], hint="send the conversation to /api/chat"),
            "suffix": rows.refused("", hint="only the continuation of a text is supported"),
        }
    )

    def read(self, fields: Fields, served: Served) -> ParsedRequest:
        """Return a request."""
        model = served.model(fields["model"])
        prompt, system, images = fields["prompt"], fields["system"], _images(fields)
        messages: tuple[Message, ...] = ()
        is_raw = fields["raw"]
        if is_raw and (system or images):
            raise RequestError("a raw prompt has nothing beside it", field="raw", hint="leave raw out")
        if is_raw and not isinstance(model, LocalModel):
            raise RequestError("this model is on a server", field="raw", hint="leave raw out")
        if not is_raw and (prompt or images):
            message = served.images(fields["model"]).checked(Message("user", _content(prompt, images)), "images")
            messages = (*([Message("system", system)] if system else []), message)
        parsed = self._parsed(fields, served, messages, prefix=prompt or None if is_raw else None)
        if parsed.messages or parsed.params.prefix:
            return parsed
        # A request without a prompt asks for the model to be loaded, which it is.
        loaded = {**_head(parsed), "response": "", "done": True, "done_reason": "load"}
        return replace(parsed, response=loaded)

    @staticmethod
    def in_response(message: dict[str, Any]) -> dict[str, Any]:
        """Return an answer, or a piece of one."""
        return {"response": message["content"], **({"thinking": message["thinking"]} if "thinking" in message else {})}


class Show(Endpoint):
    """Ollama's description of a model."""

    path = "/api/show"
    summary = "Describe a model, as Ollama does"
    form = Form({"model": rows.TEXT(needed=True), "verbose": rows.LABEL})

    def read(self, fields: Fields, served: Served) -> Model:
        """Return the model."""
        return served.model(fields["model"])

    def error(self, failure: Failure) -> dict[str, Any]:
        """Return an error in Ollama's form."""
        return CHAT.error(failure)


CHAT = Chat()
GENERATE = Generate()
SHOW = Show()


def facts_of(name: str, model: Model) -> dict[str, Any]:
    """Return what Ollama's list says of a model. There is no file whose size or digest it could have."""
    return {
        "name": name,
        "model": name,
        "modified_at": _now(),
        "size": 0,
        "digest": "",
        "details": {"format": "toolgrammar", "family": model.name},
    }


def shown(model: Model) -> dict[str, Any]:
    """Return what Ollama shows of a model: its capabilities and its context window."""
    capabilities = ["completion", "tools", *(["vision"] if model.capabilities.images else [])]
    return {
        "modified_at": _now(),
        "details": {"format": "toolgrammar", "family": model.name},
        "model_info": {"general.architecture": "toolgrammar", "toolgrammar.context_length": model.context_window},
        "capabilities": [*capabilities, *(["thinking"] if _shared.thinks(model) else [])],
    }


def _now() -> str:
    return datetime.now(timezone.utc).isoformat().replace("+00:00", "Z")


def _head(parsed: ParsedRequest) -> dict[str, Any]:
    return {"model": parsed.model, "created_at": _now()}


def _end(parsed: ParsedRequest, reason: str, end: Finish | Generation, cut: Sequence[str]) -> dict[str, Any]:
    """Return how an answer ended; durations are in nanoseconds."""
    return {
        "done": True,
        "done_reason": "length" if reason == "length" else "stop",
        "total_duration": time.monotonic_ns() - parsed.details["begin"],
        "prompt_eval_count": end.usage.prompt_tokens,
        "eval_count": end.usage.completion_tokens,
        **_shared.extension_field(end, cut),
    }


def _call(call: ToolCall) -> dict[str, Any]:
    return {"id": call.id, "function": {"name": call.name, "arguments": dict(call.arguments)}}


def _sampling(fields: Fields, model: Model) -> dict[str, Any]:
    """Return Ollama's ``options`` as fields of `GenerateParams`; None means not given.

    Raises:
        RequestError: one of them cannot be met.
    """
    options: dict[str, Any] = {ours: fields[theirs] for theirs, ours in _OPTIONS.items()}
    options["seed"] = parts.seed_of(options["seed"])
    budget, window, span = fields["num_predict"], fields["num_ctx"], fields["repeat_last_n"]
    options["max_tokens"] = None if budget in (-1, -2) else budget
    if window is not None and window > model.context_window:
        raise fields.error("num_ctx", f"is beyond the model's {model.context_window:,} tokens")
    if span == 0:  # the penalty is off
        options["repetition_penalty"] = None
    elif span not in (None, -1) and options["repetition_penalty"] not in (None, 1):
        raise fields.error("repeat_last_n", "is not supported", "-1: the penalty counts the whole text")
    return options


def _images(fields: Fields) -> list[ImagePart]:
    return [parts.base64_image(fields, f"images[{index}]", data) for index, data in enumerate(fields["images"])]


def _content(text: str, images: Sequence[ImagePart]) -> str | tuple[Part, ...]:
    """Return the content of a message: images are before its text, as Ollama's own server writes prompts."""
    return (*images, *([TextPart(text)] if text else [])) if images else text


def _read_message(fields: Fields) -> Message:
    """Return a message of the request."""
    text, images = fields["content"], _images(fields)
    calls = [(call["id"], call["function"]) for call in fields["tool_calls"]]
    return Message(
        fields["role"],
        _content(text, images),
        reasoning=fields["thinking"],
        tool_calls=tuple(_shared.past_call(name, call["name"], call["arguments"]) for name, call in calls),
        tool_call_id=fields["tool_call_id"],
        name=fields["tool_name"] or fields["name"],
    )


class _Lines(StreamWriter):
    """Writer of lines of JSON; a call comes when it is whole, as Ollama's own do."""

    def __init__(self, parsed: ParsedRequest, in_response: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
        super().__init__(parsed)
        self._in_response = in_response

    def event(self, index: int, event: Event) -> Iterable[str]:
        """Return the line of one event."""
        if isinstance(event, TokenWritten):
            self._tokens.add(event)
        elif isinstance(event, TextDelta):
            tokens = self._tokens.next_tokens(event.text)
            yield self._line({"content": event.text}, {} if tokens is None else {"done": False, "logprobs": tokens})
        elif isinstance(event, ReasoningDelta):
            yield self._line({"content": "", "thinking": event.text})
        elif isinstance(event, CallEnd):
            if self._problem(event.call) is None:
                yield self._line({"content": "", "tool_calls": [_call(event.call)]})
        elif isinstance(event, Finish):
            yield self._line({"content": ""}, _end(self._parsed, event.reason, event, [*event.cut, *self._cut]))

    def failure(self, failure: Failure) -> Iterable[str]:
        """Return the error."""
        yield line(CHAT.error(failure))

    def _line(self, message: dict[str, Any], end: Any = ()) -> str:
        return line({**_head(self._parsed), **self._in_response(message), **(dict(end) or {"done": False})})
