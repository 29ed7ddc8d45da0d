"""Ollama's chat and its completions: ``POST /api/chat``, ``POST /api/generate``, and what its clients ask besides.

Sources: the types of the ``ollama`` package, version 0.6; Ollama's own description of its API. ``tool_choice`` is ours:
Ollama has none.
"""

from __future__ import annotations

import base64
import binascii
import time
from collections.abc import Callable, Iterable, Sequence
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
    ReasoningDelta,
    TextDelta,
    TextPart,
    TokenWritten,
    ToolCall,
)
from toolgrammar.core.errors import ContextOverflowError
from toolgrammar.core.models import LocalModel, Model

from ... import _shared
from ..asked import Asked, Served, closed_schema, own_options, require_images, seed_of, thinking_of, tools_of
from ..failures import Failure
from ..fields import Fields, RequestError
from .base import Protocol, StreamWriter, line
from .logprobs import asked_logprobs

#: Options of Ollama, and ours.
_OPTIONS = {
    "temperature": "temperature",
    "top_p": "top_p",
    "top_k": "top_k",
    "min_p": "min_p",
    "seed": "seed",
    "repeat_penalty": "repetition_penalty",
}
#: Options of Ollama that say how a model is loaded, and change no answer.
_LOADING = (
    "num_gpu",
    "main_gpu",
    "num_thread",
    "num_batch",
    "use_mmap",
    "use_mlock",
    "f16_kv",
    "numa",
    "low_vram",
    "num_keep",
)

#: Options of Ollama that no model here has, and the value that asks for nothing.
_NOTHING = {"presence_penalty": 0, "frequency_penalty": 0, "mirostat": 0, "typical_p": 1, "tfs_z": 1}


class Chat(Protocol):
    """Ollama's chat."""

    path = "/api/chat"
    media_type = "application/x-ndjson"
    names = MappingProxyType(
        {
            **{
                name: f"options.{name}"
                for name in ("temperature", "top_p", "top_k", "min_p", "seed", "stop", "grammar")
            },
            "max_tokens": "options.num_predict",
            "repetition_penalty": "options.repeat_penalty",
            "schema": "format",
        }
    )

    def read(self, fields: Fields, served: Served) -> Asked:
        """Return a request in the neutral form."""
        fields.required("model")
        name = fields.text("model")
        model = served.model(name)
        messages = tuple(map(_read_message, fields.objects("messages")))
        if not messages:
            raise RequestError("messages is empty", field="messages", hint="send at least one message")
        require_images(model, messages, "messages")
        tools = tools_of(fields, model)
        choice = fields.one_of("tool_choice", (str, dict))
        return self._asked(fields, served, name, messages, tools, choice)

    def _asked(
        self,
        fields: Fields,
        served: Served,
        name: str,
        messages: tuple[Message, ...],
        tools: Sequence[dict[str, Any]] = (),
        choice: Any = None,
        prefix: str | None = None,
    ) -> Asked:
        """Return a request with the fields that both endpoints have."""
        model = served.model(name)
        options = {**_sampling(fields.inner("options") or Fields({}), model), "thinking": _thinking(fields, model)}
        schema = None
        if fields.has("format"):
            form = fields.one_of("format", (str, dict))
            if isinstance(form, str) and form not in ("", "json"):
                raise RequestError(f"format is {form!r}", field="format", hint="give 'json' or a JSON Schema")
            if form:
                schema = {"type": "object"} if form == "json" else closed_schema(Fields({"format": form}), "format")
        stream = fields.flag("stream", True)
        fields.ignore("keep_alive")
        options |= {**own_options(fields), "logprobs": asked_logprobs(fields, model), "prefix": prefix}
        fields.end()
        params = served.params(name, options, tools, choice, schema)
        vocabulary = None if params.logprobs is None else model.vocabulary
        return Asked(name, messages, params, stream, details={"begin": time.monotonic_ns(), "vocabulary": vocabulary})

    def whole(self, asked: Asked, answers: Sequence[Generation]) -> dict[str, Any]:
        """Return a response. A call that the token budget cut is left out: clients run what they see."""
        (answer,) = answers
        message: dict[str, Any] = {"content": answer.text}
        if answer.message.reasoning:
            message["thinking"] = answer.message.reasoning
        calls = [_call(call) for call in answer.tool_calls if _shared.problem(call) is None]
        if calls:
            message["tool_calls"] = calls
        cut = _shared.cut_places(answer.message, answer.cut)
        end = _end(asked, answer.finish_reason, answer, cut)
        told = _shared.text_tokens(asked.details["vocabulary"], answer.tokens, answer.text)
        return {**_head(asked), **self.said(message), **({} if told is None else {"logprobs": told}), **end}

    @staticmethod
    def said(message: dict[str, Any]) -> dict[str, Any]:
        """Return a piece of a message, or the whole of it, as the endpoint has it."""
        return {"message": {"role": "assistant", **message}}

    def stream(self, asked: Asked) -> StreamWriter:
        """Return the writer of lines."""
        return _Lines(asked, self.said)

    def error(self, failure: Failure) -> dict[str, Any]:
        """Return an error in Ollama's form; of a prompt that is too long in its runner's words, which clients know."""
        is_overflow = failure.code == ContextOverflowError.code
        before = "the request exceeds the available context size: " if is_overflow else ""
        return {"error": f"{before}{failure.message}"}


class Generate(Chat):
    """Ollama's completions: one message, or with ``raw`` a text that the model goes on with."""

    path = "/api/generate"

    def read(self, fields: Fields, served: Served) -> Asked:
        """Return a request in the neutral form."""
        fields.required("model")
        name = fields.text("model")
        model = served.model(name)
        prompt, system = fields.text("prompt", ""), fields.text("system")
        images = _images(fields)
        is_raw = fields.flag("raw")
        hint = "give the whole prompt, with raw"
        fields.refuse("template", "", hint=hint)
        fields.refuse("context", [], hint="send the conversation to /api/chat")
        fields.refuse("suffix", "", hint="only the continuation of a text is supported")
        if is_raw:
            if system or images or not isinstance(model, LocalModel):
                what = "this model is on a server" if not (system or images) else "a raw prompt has nothing beside it"
                raise RequestError(what, field="raw", hint="leave raw out")
            return self._asked(fields, served, name, (), prefix=prompt or None)
        content: Any = (TextPart(prompt), *images) if images else prompt
        messages = (*([Message("system", system)] if system else []), Message("user", content))
        require_images(model, messages, "images")
        return self._asked(fields, served, name, messages if prompt or images else ())

    def immediate(self, asked: Asked, served: Served) -> dict[str, Any] | None:
        """Return what a request without a prompt gets: it asks for the model to be loaded, which it is."""
        if asked.messages or asked.params.prefix:
            return None
        return {**_head(asked), "response": "", "done": True, "done_reason": "load"}

    @staticmethod
    def said(message: dict[str, Any]) -> dict[str, Any]:
        """Return a piece of an answer, or the whole of it."""
        return {"response": message["content"], **({"thinking": message["thinking"]} if "thinking" in message else {})}


CHAT = Chat()
GENERATE = Generate()


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


def _head(asked: Asked) -> dict[str, Any]:
    return {"model": asked.model, "created_at": _now()}


def _end(asked: Asked, reason: str, end: Finish | Generation, cut: Sequence[str]) -> dict[str, Any]:
    """Return how an answer ended; durations are in nanoseconds."""
    return {
        "done": True,
        "done_reason": "length" if reason == "length" else "stop",
        "total_duration": time.monotonic_ns() - asked.details["begin"],
        "prompt_eval_count": end.usage.prompt_tokens,
        "eval_count": end.usage.completion_tokens,
        **_shared.note(end, cut),
    }


def _call(call: ToolCall) -> dict[str, Any]:
    return {"id": call.id, "function": {"name": call.name, "arguments": dict(call.arguments)}}


def _sampling(fields: Fields, model: Model) -> dict[str, Any]:
    options: dict[str, Any] = {ours: fields.number(theirs) for theirs, ours in _OPTIONS.items()}
    options["seed"] = seed_of(options["seed"])
    budget = fields.whole("num_predict")
    options["max_tokens"] = None if budget in (-1, -2) else budget
    options["stop"] = fields.one_of("stop", (str, list))
    options["grammar"] = fields.one_of("grammar", (str, dict))
    window = fields.whole("num_ctx")
    if window is not None and window > model.context_window:
        path = fields.path("num_ctx")
        raise RequestError(f"{path} is beyond the model's {model.context_window:,} tokens", field=path)
    fields.ignore(*_LOADING)
    span = fields.whole("repeat_last_n")
    if span == 0:  # the penalty is off
        options["repetition_penalty"] = None
    elif span not in (None, -1) and options["repetition_penalty"] not in (None, 1):
        path = fields.path("repeat_last_n")
        raise RequestError(f"{path} is not supported", field=path, hint="-1: the penalty counts the whole text")
    for name, nothing in _NOTHING.items():
        fields.refuse(name, nothing, float(nothing))
    fields.ignore("mirostat_tau", "mirostat_eta")  # of mirostat, which is off
    fields.end()
    return options


def _thinking(fields: Fields, model: Model) -> Any:
    if not isinstance(value := fields.take("think"), str):
        return Fields({"think": value}).one_of("think", (bool,))
    return thinking_of(Fields({"think": value}), "think", model)


def _images(fields: Fields) -> list[ImagePart]:
    images = []
    for index, data in enumerate(fields.items("images")):
        try:
            images.append(ImagePart(base64.b64decode(data, validate=True)))
        except (binascii.Error, TypeError, ValueError):
            path = f"{fields.path('images')}[{index}]"
            raise RequestError(f"{path} is not base64", field=path) from None
    return images


def _read_message(fields: Fields) -> Message:
    role = fields.word("role", ("system", "user", "assistant", "tool"))
    if not role:
        fields.required("role")
    text = fields.text("content", "")
    images = _images(fields)
    calls = []
    for call in fields.objects("tool_calls"):
        call_id = call.text("id")
        call.refuse("type", "function")
        call.required("function")
        function = call.inner("function")
        assert function is not None
        function.required("name")
        function.ignore("index")
        calls.append(_shared.past_call(call_id, function.text("name"), function.one_of("arguments", (dict,), {})))
        function.end()
        call.end()
    old, name = fields.text("name"), fields.text("tool_name")
    message = Message(
        role,  # type: ignore[arg-type]
        (TextPart(text), *images) if images else text,
        reasoning=fields.text("thinking"),
        tool_calls=tuple(calls),
        tool_call_id=fields.text("tool_call_id"),
        name=name or old,
    )
    fields.end()
    return message


class _Lines(StreamWriter):
    """Writer of lines of JSON; a call comes when it is whole, as Ollama's own do."""

    def __init__(self, asked: Asked, said: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
        self._asked = asked
        self._said = said
        self._cut: list[str] = []
        vocabulary = asked.details["vocabulary"]
        self._tokens = None if vocabulary is None else _shared.TextTokens(vocabulary)

    def begin(self) -> Iterable[str]:
        """Return nothing."""
        return ()

    def event(self, index: int, event: Event) -> Iterable[str]:
        """Return the line of one event."""
        if isinstance(event, TokenWritten):
            if self._tokens is not None:
                self._tokens.add(event)
        elif isinstance(event, TextDelta):
            tokens = self._tokens
            told = {} if tokens is None else {"done": False, "logprobs": tokens.told(tokens.take(event.text))}
            yield self._line({"content": event.text}, told)
        elif isinstance(event, ReasoningDelta):
            yield self._line({"content": "", "thinking": event.text})
        elif isinstance(event, CallEnd):
            self._cut += [event.call.name + pointer for pointer in event.call.cut]
            if _shared.problem(event.call) is None:
                yield self._line({"content": "", "tool_calls": [_call(event.call)]})
        elif isinstance(event, Finish):
            yield self._line({"content": ""}, _end(self._asked, event.reason, event, [*event.cut, *self._cut]))

    def end(self) -> Iterable[str]:
        """Return nothing: the last line says that it is the last."""
        return ()

    def failure(self, failure: Failure) -> Iterable[str]:
        """Return the error."""
        yield line(CHAT.error(failure))

    def _line(self, message: dict[str, Any], end: Any = ()) -> str:
        return line({**_head(self._asked), **self._said(message), **(dict(end) or {"done": False})})
