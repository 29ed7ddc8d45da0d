"""The application: from an HTTP request to a model's answer, for every protocol alike."""

from __future__ import annotations

import asyncio
import hmac
import json
import threading
import time
import traceback
import warnings
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, replace
from importlib.metadata import version
from types import MappingProxyType
from typing import Any, TypeVar

import anyio
from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from toolgrammar.core.basics import continued, ended_by, logger_of, report
from toolgrammar.core.conversation import CallEnd, Event, Finish, Generation, Usage
from toolgrammar.core.errors import CancelledError, ContextOverflowError, LiveValuesError, SchemaWarning
from toolgrammar.core.generation import Deadline, GenerateParams
from toolgrammar.core.models import Decision, Model

from .. import _shared
from . import bodies
from .asked import Asked, Served
from .failures import Failure, failure_of
from .fields import Fields, RequestError
from .limits import Limits, Queue, Turn
from .metrics import Metrics
from .openapi import description
from .protocols import lm_studio, messages, ollama, openai_form, responses
from .protocols.base import Endpoint, Protocol, StreamWriter
from .protocols.chat_completions import CHAT_COMPLETIONS
from .protocols.completions import COMPLETIONS
from .protocols.decisions import DECISIONS, SYSTEM_ONE, DecisionProtocol, prompt_tokens
from .unused import Told, header, pattern_of

T = TypeVar("T")

_logger = logger_of("server")

#: Number of requests that are read at a time, and of more whose reading takes long. They take turns, as one interpreter
#: runs them: more would not read faster.
_READING = Limits(max_running=8, max_waiting=1 << 30, max_long=256)

#: Status that is logged and counted where the client left before the answer; no client sees it.
CLIENT_LEFT = 499


def create_app(
    models: str | Model | Mapping[str, str | Model],
    *,
    limits: Limits | None = None,
    defaults: GenerateParams | None = None,
    api_keys: Collection[str] = (),
    metrics: bool = False,
    values: Mapping[str, Any] | None = None,
) -> Starlette:
    """Return an ASGI application that speaks the protocols of OpenAI, Anthropic and Ollama over models of any kind.

    Args:
        models: a model or its address, which clients then name as they name it here; or several by name.
        limits: bounds of requests; None: those of `Limits`.
        defaults: options of requests that do not say otherwise, for example a temperature.
        api_keys: keys of which every request needs one; empty: none is asked for.
        metrics: serve ``/metrics`` in the text format of Prometheus.
        values: values of parameters and fields, by the names that clients write in the keyword ``x-values`` of their
            schemas: callables, `Values` or lists.

    Returns:
        The application. Its lifespan ends with closing the models that were given by their addresses.

    Raises:
        ModelError: a model cannot be loaded.
        InvalidSchemaError: one of the values is neither.
        MissingDependencyError: prometheus-client is not installed, and metrics are wanted.
    """
    warnings.simplefilter("ignore", SchemaWarning)  # who runs the server does not write the schemas; the log has it
    return _Server(models, limits or Limits(), defaults, tuple(api_keys), metrics, values).app


@dataclass
class _Record:
    """What is logged and counted of one request."""

    path: str
    begin: float
    model: str = ""
    status: int = 200
    stream: bool = False
    prompt_tokens: int = 0
    completion_tokens: int = 0
    error: str = ""


#: Known endpoints of the protocols that this server does not have, and what they do.
_ABSENT: Mapping[str, str] = {
    **dict.fromkeys(("/v1/embeddings", "/api/embed", "/api/embeddings"), "make embeddings"),
    **dict.fromkeys(("/v1/rerank", "/v1/score"), "rank texts"),
    **dict.fromkeys(("/v1/audio/speech", "/v1/audio/transcriptions", "/v1/audio/translations"), "read or make sound"),
    **dict.fromkeys(("/v1/images/generations", "/v1/images/edits"), "make images"),
    **dict.fromkeys(("/api/pull", "/api/push", "/api/create", "/api/copy", "/api/delete"), "change its models"),
}


class _Server:
    """State of an application.

    Attributes:
        app: the application.
    """

    def __init__(
        self,
        models: str | Model | Mapping[str, str | Model],
        limits: Limits,
        defaults: GenerateParams | None,
        api_keys: Sequence[str],
        metrics: bool,
        values: Mapping[str, Any] | None,
    ) -> None:
        self._served = Served(models, defaults, max_schema=limits.max_schema, values=values)
        self._limits = limits
        self._keys = [key.encode() for key in api_keys]
        self._queues = {name: Queue(limits) for name in self._served}
        self._reading = Queue(_READING)
        self._metrics = Metrics(self._queues, self._reading) if metrics else None
        self._created = int(time.time())
        readers = _READING.max_running + _READING.max_long
        self._readers = ThreadPoolExecutor(readers, thread_name_prefix="toolgrammar-reader")
        self._responses = responses.Responses()
        self._told = Told()
        protocols: tuple[Protocol, ...] = (
            CHAT_COMPLETIONS,
            COMPLETIONS,
            self._responses,
            messages.MESSAGES,
            messages.COUNT_TOKENS,
            ollama.CHAT,
            ollama.GENERATE,
        )
        endpoints: tuple[Protocol | DecisionProtocol, ...] = (*protocols, DECISIONS, SYSTEM_ONE)
        self._endpoints = (*endpoints, ollama.SHOW)
        routes = [Route(protocol.path, self._endpoint(protocol), methods=["POST"]) for protocol in endpoints]
        routes += [
            Route("/v1/responses/{name}", self._response, methods=["GET", "DELETE"]),
            Route("/v1/models", self._models, methods=["GET"]),
            Route("/v1/models/{name:path}", self._model, methods=["GET"]),
            Route("/api/v0/models", self._models_v0, methods=["GET"]),
            Route("/api/v1/models", self._models_v1, methods=["GET"]),
            Route("/api/tags", self._tags, methods=["GET"]),
            Route("/api/ps", self._tags, methods=["GET"]),
            Route("/api/show", self._show, methods=["POST"]),
            Route("/api/version", self._version, methods=["GET"]),
            Route("/health", self._health, methods=["GET"]),
            Route("/ready", self._ready, methods=["GET"]),
            Route("/openapi.json", self._description, methods=["GET"]),
        ]
        if self._metrics is not None:
            routes.append(Route("/metrics", self._scrape, methods=["GET"]))
        self._paths = {route.path: sorted(route.methods or ()) for route in routes}
        handlers = {404: self._unrouted, 405: self._unrouted}
        self.app = Starlette(routes=routes, exception_handlers=handlers, lifespan=self._lifespan)
        self.app.state.served = self._served

    @asynccontextmanager
    async def _lifespan(self, app: Starlette) -> AsyncIterator[None]:
        workers = (self._limits.max_running + self._limits.max_long) * len(self._queues) + 2
        with ThreadPoolExecutor(workers, thread_name_prefix="toolgrammar") as pool:
            asyncio.get_running_loop().set_default_executor(pool)  # one thread for each request that runs
            yield
            self._readers.shutdown(cancel_futures=True)
            self._served.close()

    # -- requests ------------------------------------------------------------------------------------------------

    def _endpoint(self, protocol: Protocol | DecisionProtocol) -> Any:
        async def endpoint(request: Request) -> Response:
            record = _Record(protocol.path, time.perf_counter())
            try:
                with continued(request.headers):
                    if isinstance(protocol, DecisionProtocol):
                        return await self._decide(protocol, request, record)
                    return await self._respond(protocol, request, record)
            except ClientDisconnect:
                record.status = CLIENT_LEFT
                self._close(record)
                return Response(status_code=CLIENT_LEFT)
            except asyncio.CancelledError:
                record.status = CLIENT_LEFT
                self._close(record)
                raise
            except Exception as error:
                failure = self._failure(error, record, protocol.names)
                self._close(record)
                return _json(protocol.error(failure), failure.status, failure.headers)

        return endpoint

    async def _respond(self, protocol: Protocol, request: Request, record: _Record) -> Response:
        deadline = Deadline.after(self._limits.answer_seconds)
        asked, headers = await self._asked(protocol, request, record, deadline)
        if not 1 <= asked.answers <= self._limits.max_answers:
            hint = f"from 1 to {self._limits.max_answers}"
            raise RequestError(f"the number of answers is {asked.answers}", field="n", hint=hint)
        at_once = await self._read(request, deadline, lambda: protocol.immediate(asked, self._served))
        if at_once is not None:
            self._close(record)
            return _json(at_once, headers=headers)
        left = round(max(deadline.end - time.monotonic(), 0.0), 3)
        if asked.params.timeout is None or asked.params.timeout > left:
            asked = replace(asked, params=replace(asked.params, timeout=left))
        if asked.stream:
            events = self._events(asked)
            # Before the status is sent: most of what can go wrong does so before the first event.
            try:
                first = await _unless_gone(request, anext(events))
            except ContextOverflowError as error:
                if not protocol.streams_overflow:
                    raise
                return self._overflow(protocol, asked, error, record, headers)
            if self._metrics is not None:
                self._metrics.first_event(asked.model, time.perf_counter() - record.begin)
            pieces = self._pieces(protocol.stream(asked), first, events, record)
            return _Streamed(pieces, media_type=protocol.media_type, headers=headers)
        answers = await _unless_gone(request, self._answers(asked))
        for answer in answers:
            self._count(record, answer, bool(answer.cut or any(call.cut for call in answer.tool_calls)))
        response = protocol.whole(asked, answers)
        self._close(record)
        return _json(response, headers=headers)

    def _overflow(
        self,
        protocol: Protocol,
        asked: Asked,
        error: ContextOverflowError,
        record: _Record,
        headers: Mapping[str, str],
    ) -> Response:
        """Return the stream of a protocol whose clients know a prompt that is too long by an event alone."""
        writer = protocol.stream(asked)
        pieces = "".join([*writer.begin(), *writer.failure(self._failure(error, record, protocol.names))])
        self._close(record)
        return Response(pieces, headers={**headers, "Cache-Control": "no-cache"}, media_type=protocol.media_type)

    async def _asked(
        self, protocol: Endpoint, request: Request, record: _Record, deadline: Deadline
    ) -> tuple[Any, dict[str, str]]:
        """Return a request as its protocol reads it, and the header that names its unused fields."""
        self._authorize(request)
        body = await self._body(request)

        def taken() -> tuple[Any, dict[str, str], set[str]]:
            fields = self._served.fields(body, protocol.form)
            asked = protocol.read(fields, self._served)
            return asked, header(fields.unused), {pattern_of(path) for path in fields.unused}

        asked, headers, unused = await self._read(request, deadline, taken)
        record.model, record.stream = asked.model, asked.stream
        for words in self._told.new(unused):
            _logger.info("unused field", extra={"facts": {"path": protocol.path, "unused": words}})
        return asked, headers

    async def _decide(self, protocol: DecisionProtocol, request: Request, record: _Record) -> Response:
        deadline = Deadline.after(self._limits.answer_seconds)
        asked, headers = await self._asked(protocol, request, record, deadline)
        left = round(max(deadline.end - time.monotonic(), 0.0), 3)
        model = self._served.model(asked.model)

        async def decisions() -> dict[str, Decision]:
            async with self._queues[self._served.own_name(asked.model)].turn():
                return await model.adecide(asked.state, asked.questions, timeout=left, **asked.options)

        decided = await _unless_gone(request, decisions())
        usage = Usage(prompt_tokens=prompt_tokens(decided))
        record.prompt_tokens = usage.prompt_tokens
        if self._metrics is not None:
            self._metrics.answer(asked.model, usage, False)
        self._close(record)
        return _json(protocol.whole(asked, decided), headers=headers)

    async def _read(self, request: Request, deadline: Deadline, work: Callable[[], T]) -> T:
        """Return what some work on a request's fields returns. It may take long: a thread of the readers does it, and
        leaves it where the time is over or the client has left.

        Raises:
            ClientDisconnect: the client left.
            GenerationTimeoutError: the time is over.
        """
        left = threading.Event()

        async def read() -> T:
            async with self._reading.turn() as turn:

                def check() -> None:
                    if left.is_set():
                        raise CancelledError("the client has disconnected")
                    deadline.check()
                    turn.check()

                def run() -> T:
                    with ended_by(check):
                        check()
                        return work()

                return await asyncio.get_running_loop().run_in_executor(self._readers, run)

        try:
            return await asyncio.wait_for(_unless_gone(request, read()), deadline.end - time.monotonic())
        except asyncio.TimeoutError:
            deadline.check()
            raise
        finally:
            left.set()

    def _authorize(self, request: Request) -> None:
        """Check the key of a request, in constant time.

        Raises:
            RequestError: it has none, or a wrong one.
        """
        if not self._keys:
            return
        scheme, _, bearer = request.headers.get("authorization", "").partition(" ")
        given = bearer.strip() if scheme.lower() == "bearer" else request.headers.get("x-api-key", "")
        same = [hmac.compare_digest(given.encode("utf-8", "replace"), key) for key in self._keys]
        if not any(same):  # all were compared, so the time tells nothing
            raise RequestError("the API key is missing or wrong", hint="send 'Authorization: Bearer KEY'", status=401)

    async def _body(self, request: Request) -> Any:
        """Return the JSON of a request's body.

        Raises:
            RequestError: it is no JSON, too large, has too many values, or does not arrive in time.
        """
        kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        # A browser sends other types for a web page without asking us first, and says so. `curl -d` sends them, too.
        if kind != "application/json" and any(name in request.headers for name in ("origin", "sec-fetch-site")):
            raise RequestError(
                f"the content type is {kind!r}", hint="send 'Content-Type: application/json'", status=415
            )
        try:
            data = await asyncio.wait_for(self._bytes(request), self._limits.body_seconds)
        except asyncio.TimeoutError:
            raise RequestError("the body did not arrive in time", status=408) from None
        if bodies.is_small(data):
            return bodies.parse(data)
        deadline = Deadline.after(self._limits.answer_seconds)
        return await self._read(request, deadline, lambda: bodies.parse(data))

    async def _bytes(self, request: Request) -> bytes:
        most = self._limits.max_body
        stated = request.headers.get("content-length", "")
        size = int(stated) if stated.isdecimal() else 0
        data = bytearray()
        if size <= most:
            async for piece in request.stream():
                data += piece
                size = max(size, len(data))
                if size > most:
                    break
        if size > most:
            raise RequestError("the body is too large", hint=f"at most {most:,} bytes are accepted", status=413)
        return bytes(data)

    # -- answers -------------------------------------------------------------------------------------------------

    async def _answers(self, asked: Asked) -> list[Generation]:
        """Return all answers to a request."""
        model = self._served.model(asked.model)
        async with self._queues[self._served.own_name(asked.model)].turn() as turn:
            params = [_watched(asked.params_of(index), turn) for index in range(asked.answers)]
            if asked.answers == 1:
                return [await model.agenerate(asked.messages, params[0])]
            return await model.agenerate_batch([asked.messages] * asked.answers, params)

    async def _events(self, asked: Asked) -> AsyncGenerator[tuple[int, Event], None]:
        """Yield the events of all answers, one answer after the other."""
        model = self._served.model(asked.model)
        async with self._queues[self._served.own_name(asked.model)].turn() as turn:
            for index in range(asked.answers):
                events: Any = model.astream(asked.messages, _watched(asked.params_of(index), turn))
                async with aclosing(events):
                    async for event in events:
                        yield index, event

    async def _pieces(
        self,
        writer: StreamWriter,
        first: tuple[int, Event],
        events: AsyncGenerator[tuple[int, Event], None],
        record: _Record,
    ) -> AsyncGenerator[str, None]:
        """Yield the pieces of a streamed response's body."""
        is_cut = False
        status = CLIENT_LEFT
        try:
            async with aclosing(events):
                for piece in writer.begin():
                    yield piece
                index, event = first
                while True:
                    is_cut = is_cut or (isinstance(event, CallEnd) and bool(event.call.cut))
                    if isinstance(event, Finish):
                        self._count(record, event, is_cut or bool(event.cut))
                        is_cut = False
                    for piece in writer.event(index, event):
                        yield piece
                    try:
                        index, event = await anext(events)
                    except StopAsyncIteration:
                        break
                for piece in writer.end():
                    yield piece
            status = 200
        except Exception as error:
            failure = self._failure(error, record)
            status = failure.status
            for piece in writer.failure(failure):
                yield piece
        finally:
            record.status = status
            self._close(record)

    # -- records -------------------------------------------------------------------------------------------------

    def _failure(self, error: Exception, record: _Record, names: Mapping[str, str] = MappingProxyType({})) -> Failure:
        """Return an error as a failure, and take note of it; of an unknown one its kind alone is logged."""
        failure = failure_of(error, names)
        record.status, record.error = failure.status, failure.code
        if isinstance(error, LiveValuesError) and error.__cause__ is not None:
            cause = error.__cause__
            report(_logger, "values failed (%s): %s: %s", error.place, type(cause).__name__, cause)
        if failure.code == "internal":
            hint = "the logger toolgrammar.server has the traceback at the level DEBUG"
            report(_logger, "internal error: %s in a request of %s; %s", type(error).__name__, record.path, hint)
            _logger.debug("what went wrong", exc_info=error)
        _clear_frames(error)
        return failure

    def _count(self, record: _Record, end: Generation | Finish, is_cut: bool) -> None:
        record.prompt_tokens += end.usage.prompt_tokens
        record.completion_tokens += end.usage.completion_tokens
        if self._metrics is not None:
            self._metrics.answer(record.model, end.usage, is_cut)

    def _close(self, record: _Record) -> None:
        """Log and count a request that is over."""
        seconds = time.perf_counter() - record.begin
        if self._metrics is not None:
            self._metrics.request(record.path, record.model, record.status, seconds)
        facts = {name: value for name, value in vars(record).items() if name != "begin" and value != ""}
        _logger.info("request", extra={"facts": {**facts, "seconds": round(seconds, 4)}})

    # -- other endpoints -----------------------------------------------------------------------------------------

    def _facts(self, name: str) -> dict[str, Any]:
        return {"id": name, "object": "model", "created": self._created, "owned_by": "toolgrammar"}

    async def _models(self, request: Request) -> Response:
        facts = [self._facts(name) for name in self._served]
        if "anthropic-version" in request.headers:
            return self._guarded(request, lambda: messages.models_of(facts))
        if "client_version" in request.query_params:  # so Codex asks, which has a form of its own
            return self._guarded(request, lambda: {"models": [self._codex_model(name) for name in self._served]})
        return self._guarded(request, lambda: {"object": "list", "data": facts})

    async def _models_v0(self, request: Request) -> Response:
        return self._guarded(request, lambda: {"object": "list", "data": self._in_lm_studio(lm_studio.model_of_v0)})

    async def _models_v1(self, request: Request) -> Response:
        return self._guarded(request, lambda: {"models": self._in_lm_studio(lm_studio.model_of_v1)})

    def _in_lm_studio(self, form: Callable[..., dict[str, Any]]) -> list[dict[str, Any]]:
        served = {name: self._served.model(name) for name in self._served}
        return [form(name, one.context_window, images=one.capabilities.images) for name, one in served.items()]

    def _codex_model(self, name: str) -> dict[str, Any]:
        model = self._served.model(name)
        images, thinks = model.capabilities.images, _shared.thinks(model)
        return openai_form.codex_model(name, model.context_window, images=images, thinks=thinks)

    async def _model(self, request: Request) -> Response:
        def facts() -> dict[str, Any]:
            self._served.model(request.path_params["name"])
            made = self._facts(request.path_params["name"])
            return messages.model_of(made) if "anthropic-version" in request.headers else made

        return self._guarded(request, facts)

    async def _response(self, request: Request) -> Response:
        act = self._responses.forget if request.method == "DELETE" else self._responses.find

        def answer() -> Any:
            Fields(dict(request.query_params), responses.STORED)
            return act(request.path_params["name"])

        return self._guarded(request, answer)

    async def _tags(self, request: Request) -> Response:
        served = self._served
        return self._guarded(
            request, lambda: {"models": [ollama.facts_of(name, served.model(name)) for name in served]}, ollama.CHAT
        )

    async def _show(self, request: Request) -> Response:
        try:
            self._authorize(request)
            model = ollama.SHOW.read(Fields(await self._body(request), ollama.SHOW.form), self._served)
        except RequestError as error:
            return _refused(ollama.CHAT, error)
        return _json(ollama.shown(model))

    async def _version(self, request: Request) -> Response:
        return self._guarded(request, lambda: {"version": version("toolgrammar")}, ollama.CHAT)

    def _guarded(self, request: Request, make: Callable[[], Any], protocol: Protocol | None = None) -> Response:
        """Return what ``make`` returns as JSON, to a client with a key; errors are in the form of a protocol."""
        if protocol is None:
            protocol = messages.MESSAGES if "anthropic-version" in request.headers else CHAT_COMPLETIONS
        try:
            self._authorize(request)
            return _json(make())
        except RequestError as error:
            return _refused(protocol, error)

    async def _unrouted(self, request: Request, error: Exception) -> Response:
        """Return the error for an endpoint or a method that does not exist, in the form of its protocol."""
        path, status = request.url.path, getattr(error, "status_code", 404)
        forms = {"/api/": ollama.CHAT, "/v1/messages": messages.MESSAGES}
        protocol = next((form for begin, form in forms.items() if path.startswith(begin)), CHAT_COMPLETIONS)
        if status == 405:
            hint = f"it takes {' and '.join(self._paths.get(path, ()))}"
            refused = _refused(
                protocol, RequestError(f"{path} does not take {request.method}", hint=hint, status=status)
            )
            refused.headers.update(getattr(error, "headers", None) or {})  # which methods it takes
            return refused
        if path in _ABSENT:
            hint = "its models write text; ask another server for this"
            return _refused(protocol, RequestError(f"this server does not {_ABSENT[path]}", hint=hint, status=501))
        hint = f"the endpoints are {', '.join(self._paths)}"
        return _refused(protocol, RequestError(f"unknown endpoint {path}", hint=hint, status=404))

    async def _health(self, request: Request) -> Response:
        return _json({"status": "ok"})

    async def _description(self, request: Request) -> Response:
        return self._guarded(
            request, lambda: description(self._endpoints, self._served, metrics=self._metrics is not None)
        )

    async def _ready(self, request: Request) -> Response:
        full = any(queue.is_full for queue in self._queues.values())
        return _json({"status": "busy" if full else "ready"}, 503 if full else 200)

    async def _scrape(self, request: Request) -> Response:
        assert self._metrics is not None
        try:
            self._authorize(request)
        except RequestError as error:
            return _refused(CHAT_COMPLETIONS, error)
        return Response(self._metrics.text(), headers={"Content-Type": self._metrics.media_type})


class _Streamed(StreamingResponse):
    """A streamed response whose pieces are closed with it, so that a model stops when its client leaves."""

    def __init__(
        self, pieces: AsyncGenerator[str, None], *, media_type: str, headers: Mapping[str, str] = MappingProxyType({})
    ) -> None:
        super().__init__(pieces, media_type=media_type, headers={"Cache-Control": "no-cache", **headers})
        self._pieces = pieces

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            with anyio.CancelScope(shield=True):
                await self._pieces.aclose()


def _watched(params: GenerateParams, turn: Turn) -> GenerateParams:
    """Return options with which a request gives its place to another one while its grammar takes long."""

    def cancel() -> bool:
        turn.check()
        return False

    return replace(params, cancel=cancel)


async def _unless_gone(request: Request, work: Awaitable[T]) -> T:
    """Do some work, unless the client leaves before it is done.

    Raises:
        ClientDisconnect: it did; the work is cancelled.
    """
    task = asyncio.ensure_future(work)
    gone = asyncio.ensure_future(_disconnected(request))
    try:
        await asyncio.wait({task, gone}, return_when=asyncio.FIRST_COMPLETED)
        if not task.done():
            raise ClientDisconnect
        return task.result()
    finally:
        task.cancel()
        gone.cancel()
        await asyncio.gather(task, gone, return_exceptions=True)


async def _disconnected(request: Request) -> None:
    """Return when the client has left."""
    while (await request.receive())["type"] != "http.disconnect":
        pass


def _clear_frames(error: BaseException | None) -> None:
    """Free the local variables of the functions that an error ended.

    The error and its frames refer to each other. Without this, what a refused request read, up to millions of objects,
    waits for a full collection of garbage, which stops all threads.
    """
    if error is not None:
        traceback.clear_frames(error.__traceback__)
        _clear_frames(error.__cause__ or error.__context__)


def _json(data: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    text = json.dumps(data, separators=(",", ":"))
    return Response(text, status, dict(headers or {}), "application/json")


def _refused(protocol: Protocol, error: RequestError) -> Response:
    failure = failure_of(error)
    return _json(protocol.error(failure), failure.status, failure.headers)
