"""Requests to a model, checked; the values and outcomes of their answers."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeVar

from ..conversation.events import Generation
from ..conversation.messages import Message
from ..errors import CancelledError, CutAnswerError, ModelError, Place, ToolGrammarError
from ..generation.json_output import value_in
from ..generation.live_shape import live_shape, plain_shape
from ..generation.params import GenerateParams
from ..generation.partial import PartialReader
from ..generation.plan import Prompt, conversation_of, json_params, resolve_params, schema_of, shown_schema
from ..grammar import Grammar

T = TypeVar("T")


@dataclass(frozen=True)
class Request:
    """One request to a model, checked.

    Attributes:
        messages: the conversation.
        params: the options.
        live: stream events when they are certain; False: only the complete answer is needed.
        convert: JSON must also pass the validators of the requested Python type; else the request is retried.
        shape: the shape of the answer, as the caller gave it; None: text.
    """

    messages: tuple[Message, ...]
    params: GenerateParams
    live: bool = True
    convert: bool = False
    shape: Any = None

    def partial_reader(self) -> PartialReader:
        """Return a reader of the answer's text as it comes.

        Raises:
            ModelError: the answer is text.
        """
        if self.shape is None:
            raise ModelError("the answer has no shape, so no partial values", hint="give output_type")
        if isinstance(self.shape, Grammar):
            return PartialReader(self.shape)
        return PartialReader.of_schema(shown_schema(plain_shape(self.shape)), shape=self.shape)


def request_of(prompt: Prompt, params: GenerateParams | None, options: Any, *, live: bool = False) -> Request:
    """Return a request of text or calls.

    Raises:
        ModelError: the prompt is not one, or an option is wrong or unknown.
    """
    resolved = resolve_params(params, options)
    messages = conversation_of(prompt, resolved.prefix)
    return in_conversation(Request(messages, resolved, live=live, shape=_shape(resolved)))


def _shape(params: GenerateParams) -> Any:
    """Return what the text of an answer is read by: a JSON Schema or a Python type, a `Grammar`, or True for any JSON;
    None if it is free text. ``params`` are those of `resolve_params`, which has replaced ``output_type``."""
    if params.json_mode is not None:
        mode: Any = params.json_mode
        return mode.grammar or (True if mode.schema is None else mode.schema)
    return params.grammar


def json_request_of(prompt: Prompt, schema: Any, params: GenerateParams | None, options: Any) -> Request:
    """Return a request of a JSON value.

    Raises:
        ModelError: as `request_of`, or its shape is given twice.
    """
    if schema is not None and (options.get("output_type") is not None or (params and params.output_type is not None)):
        raise ModelError("schema and output_type exclude each other", hint="give one of them")
    resolved = json_params(resolve_params(params, options), schema)
    messages = conversation_of(prompt, resolved.prefix)
    return in_conversation(Request(messages, resolved, live=False, convert=True, shape=_shape(resolved)))


def value_of(whole: Generation, allow_cut: bool) -> Any:
    """Return the value of a JSON answer.

    Raises:
        CutAnswerError: it is truncated, without ``allow_cut``.
    """
    value = whole.value
    if whole.cut and not allow_cut:
        why = "the token budget ended" if whole.repeated is None else f"the model repeated {whole.repeated!r}"
        more = "" if len(whole.cut) == 1 else f"; {len(whole.cut)} values were cut"
        raise CutAnswerError(
            f"{why} inside the answer{more}",
            hint="raise max_tokens, or bound the lengths in the schema; allow_cut=True takes the value as it is",
            place=Place(pointer=whole.cut[0]),
            value=value,
            cut=whole.cut,
        )
    return value


def requests_of(
    prompts: Sequence[Prompt],
    params: GenerateParams | Sequence[GenerateParams] | None,
    options: Any,
    max_rows: int,
) -> list[Request]:
    """Return the requests of a batch.

    Raises:
        ModelError: the prompts are not a batch, or an option is wrong.
    """
    if isinstance(prompts, (str, Message)):
        raise ModelError("a batch is a sequence of prompts", hint="generate_batch([prompt])")
    if max_rows < 1:
        raise ModelError(f"max_rows is {max_rows}", hint="give at least 1")
    many = [params] * len(prompts) if params is None or isinstance(params, GenerateParams) else list(params)
    if len(many) != len(prompts):
        raise ModelError(f"got {len(prompts)} prompts but {len(many)} params", hint="one for all, or one for each")
    checked: dict[int, Request] = {}  # without messages, by the identity of the params, which are resolved once
    requests = []
    for prompt, one in zip(prompts, many, strict=True):
        if id(one) not in checked:
            resolved = resolve_params(one, options)
            checked[id(one)] = Request((), resolved, live=False, shape=_shape(resolved))
        request = checked[id(one)]
        messages = conversation_of(prompt, request.params.prefix)
        requests.append(in_conversation(replace(request, messages=messages)))
    return requests


def in_conversation(request: Request) -> Request:
    """Return a request with its tools and the shape of its answer for its conversation, which may give values of
    parameters and fields."""
    params, messages = request.params, request.messages
    bind = getattr(params.tools, "in_conversation", None)
    if bind is not None and (bound := bind(messages)) is not params.tools:
        params = replace(params, tools=bound)
    mode: Any = params.json_mode
    schema = None if mode is None else mode.schema
    if schema is not None:
        try:
            shape = live_shape(schema, schema_of(schema), messages)
        except ToolGrammarError:
            shape = schema  # the plan of the request has the error
        if shape is not schema:
            params = replace(params, json_mode=replace(mode, schema=shape))
    return request if params is request.params else replace(request, params=params)


def finished(whole: Generation | None, request: Request | None = None) -> Generation:
    """Return an answer that is complete, with the reader of its value.

    Raises:
        CancelledError: the request was cancelled.
    """
    assert whole is not None
    if whole.finish_reason == "cancelled":
        raise CancelledError(
            f"the generation was cancelled after {whole.usage.completion_tokens} tokens",
            hint="the partial text is in the stream's events",
        )
    if request is None or request.shape is None:
        return whole
    return replace(whole, reader=partial(value_in, shape=request.shape))


def outcome_of(error: Exception | None, whole: Generation | None, request: Request) -> Generation | Exception:
    """Return the answer to one request of a batch, or its error."""
    if error is not None:
        return error
    try:
        return finished(whole, request)
    except CancelledError as cancelled:
        return cancelled


def outcomes_of(outcomes: list[Generation | Exception], return_errors: bool) -> list[Any]:
    """Return the outcomes of a batch; raise the first error unless ``return_errors``."""
    for outcome in outcomes:
        if isinstance(outcome, Exception) and not return_errors:
            raise outcome
    return outcomes


def cancellable(request: Request, abandoned: threading.Event) -> Request:
    """Return the request with a ``cancel`` that also tests if it was abandoned."""
    own = request.params.cancel
    cancel = lambda: abandoned.is_set() or (own is not None and own())  # noqa: E731
    return replace(request, params=replace(request.params, cancel=cancel))


async def in_thread(work: Callable[[], T], abandoned: threading.Event) -> T:
    """Return the result of work in a thread; if the task that waits for it is cancelled, ``abandoned`` is set, and the
    work ends before the task."""
    worker = asyncio.get_running_loop().run_in_executor(None, work)
    try:
        return await asyncio.shield(worker)
    except asyncio.CancelledError:
        abandoned.set()
        await asyncio.wait([worker])
        if not worker.cancelled():
            worker.exception()  # retrieved, so that it is not reported as unhandled
        raise
