"""The application: from an HTTP request to a model's answer, for every protocol alike."""

from __future__ import annotations

import asyncio
import time
import traceback
import warnings
from collections.abc import AsyncGenerator, AsyncIterator, Collection, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractAsyncContextManager, aclosing, asynccontextmanager
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route

from toolgrammar.core.basics import Span, logger_of, report
from toolgrammar.core.conversation import CallEnd, Event, Finish, Generation, Usage
from toolgrammar.core.errors import LiveValuesError, SchemaWarning, ToolGrammarError
from toolgrammar.core.generation import Deadline, GenerateParams
from toolgrammar.core.models import Decision, Model
from toolgrammar.tools import Policy

from .._shared.decisions import prompt_tokens
from .._shared.options import policies_of
from .about import About
from .exchange import Incoming, Streamed, as_json, unless_gone
from .failures import Failure, failure_of
from .fields import RequestError
from .limits import Limits, Queue, Turn
from .metrics import Metrics
from .protocols import messages, ollama, responses
from .protocols.base import Endpoint, ParsedRequest, Protocol, StreamWriter
from .protocols.chat_completions import CHAT_COMPLETIONS
from .protocols.completions import COMPLETIONS
from .protocols.decisions import DECISIONS, SYSTEM_ONE, DecisionProtocol
from .served import Served
from .unused import LoggedFields, header, pattern_of

_logger = logger_of("server")

#: Status that is logged and counted where the client left before the answer; no client sees it.
CLIENT_LEFT = 499


def create_app(
    models: str | Model | Mapping[str, str | Model],
    *,
    limits: Limits | None = None,
    defaults: GenerateParams | None = None,
    api_keys: Collection[str] | Mapping[str, str] = (),
    metrics: bool = False,
    values: Mapping[str, Any] | None = None,
    policy: Any = None,
    fetch_images: Collection[str] = (),
) -> Starlette:
    """Return an ASGI application that speaks the protocols of OpenAI, Anthropic and Ollama over models of any kind.

    Args:
        models: a model or its address, which clients then name as they name it here; or several by name.
        limits: bounds of requests; None: those of `Limits`.
        defaults: options of requests that do not say otherwise, for example a temperature.
        api_keys: keys of which every request needs one, or the role in the policy of each key; empty: none is asked
            for.
        metrics: serve ``/metrics`` in the text format of Prometheus.
        values: values of parameters and fields, by the names that clients write in the keyword ``x-values`` of their
            schemas: callables, `Values` or lists.
        policy: a `Policy` of the calls that requests may get, its data, or the path of its file.
        fetch_images: hosts from which images for local models are fetched, for example ``"images.example.com"``,
            ``"*.example.com"``, or ``"*"`` for any public host; empty: an address of an image is an error.

    Returns:
        The application. Its lifespan ends with closing the models that were given by their addresses.

    Raises:
        ModelError: a model cannot be loaded, or a host is none.
        InvalidSchemaError: one of the values is neither.
        PolicyError: the policy is malformed, a key has none of its roles, or it lets a person confirm calls, which
            clients run.
        MissingDependencyError: prometheus-client is not installed, and metrics are wanted.
    """
    warnings.simplefilter("ignore", SchemaWarning)  # who runs the server does not write the schemas; the log has it
    limits = limits or Limits()
    served = Served(
        models,
        defaults,
        max_schema=limits.max_schema,
        values=values,
        fetch_images=fetch_images,
        max_fetched=limits.max_body,
    )
    return _Server(served, limits, tuple(api_keys), policies_of(policy, api_keys), metrics).app


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


class _Server:
    """State of an application.

    Args:
        served: its models.
        limits: bounds of requests.
        api_keys: keys of which every request needs one.
        policies: the policy of each key, by its number (`policies_of`); None: there is none.
        metrics: serve ``/metrics``.

    Attributes:
        app: the application.
    """

    def __init__(
        self,
        served: Served,
        limits: Limits,
        api_keys: tuple[str, ...],
        policies: Mapping[int | None, Policy] | None,
        metrics: bool,
    ) -> None:
        self._served = served
        self._limits = limits
        self._queues = {name: Queue(limits, self._served.relieve) for name in self._served}
        self._incoming = Incoming(limits, api_keys)
        self._policies = policies
        self._metrics = Metrics(self._queues, self._incoming.queue) if metrics else None
        stored = responses.Responses()
        self._logged = LoggedFields()
        protocols: tuple[Protocol, ...] = (
            CHAT_COMPLETIONS,
            COMPLETIONS,
            stored,
            messages.MESSAGES,
            messages.COUNT_TOKENS,
            ollama.CHAT,
            ollama.GENERATE,
        )
        endpoints: tuple[Protocol | DecisionProtocol, ...] = (*protocols, DECISIONS, SYSTEM_ONE)
        about = About(self._served, self._incoming, stored, (*endpoints, ollama.SHOW), self._queues, self._metrics)
        routes = [Route(protocol.path, self._endpoint(protocol), methods=["POST"]) for protocol in endpoints]
        routes += about.routes()
        about.paths = {route.path: sorted(route.methods or ()) for route in routes}
        handlers = {404: about.unrouted, 405: about.unrouted}
        self.app = Starlette(routes=routes, exception_handlers=handlers, lifespan=self._lifespan)
        self.app.state.served = self._served

    @asynccontextmanager
    async def _lifespan(self, app: Starlette) -> AsyncIterator[None]:
        workers = (self._limits.max_running + self._limits.max_long) * len(self._queues) + 2
        with ThreadPoolExecutor(workers, thread_name_prefix="toolgrammar") as pool:
            asyncio.get_running_loop().set_default_executor(pool)  # one thread for each request that runs
            yield
            self._incoming.close()
            self._served.close()

    # -- requests ------------------------------------------------------------------------------------------------

    def _endpoint(self, protocol: Protocol | DecisionProtocol) -> Any:
        """Return the endpoint of a protocol: errors become its failures, and every request is recorded once."""

        async def endpoint(request: Request) -> Response:
            """Answer a request, or tell what is wrong with it."""
            record = _Record(protocol.path, time.perf_counter())
            try:
                with Span.continued(request.headers):
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
                return as_json(protocol.error(failure), failure.status, failure.headers)

        return endpoint

    async def _respond(self, protocol: Protocol, request: Request, record: _Record) -> Response:
        """Answer a request, whole or as a stream."""
        deadline = Deadline.after(self._limits.answer_seconds)
        parsed, headers = await self._parsed(protocol, request, record, deadline)
        if self._policies is not None:
            policy = self._policies[self._incoming.authorize(request)]
            parsed = replace(parsed, params=replace(parsed.params, policy=policy))
        if not 1 <= parsed.answers <= self._limits.max_answers:
            hint = f"from 1 to {self._limits.max_answers}"
            raise RequestError(f"the number of answers is {parsed.answers}", field="n", hint=hint)
        if parsed.response is not None:
            self._close(record)
            return as_json(parsed.response, headers=headers)
        seconds = round(max(deadline.end - time.monotonic(), 0.0), 3)  # that are left
        if parsed.params.timeout is None or parsed.params.timeout > seconds:
            parsed = replace(parsed, params=replace(parsed.params, timeout=seconds))
        if parsed.stream:
            return await self._stream(protocol, parsed, request, record, headers)
        answers = await unless_gone(request, self._answers(parsed))
        for answer in answers:
            self._count(record, answer, bool(answer.cut or any(call.cut for call in answer.tool_calls)))
        response = protocol.whole(parsed, answers)
        self._close(record)
        return as_json(response, headers=headers)

    async def _stream(
        self,
        protocol: Protocol,
        parsed: ParsedRequest,
        request: Request,
        record: _Record,
        headers: Mapping[str, str],
    ) -> Response:
        """Return a streamed response, once its first event has come: most of what can go wrong does so before, when
        the status can still tell it."""
        events = self._events(parsed)
        try:
            first = await unless_gone(request, anext(events))
        except ToolGrammarError as error:
            if error.code != "context_overflow" or not protocol.streams_overflow:
                raise
            return self._overflow(protocol, parsed, error, record, headers)
        if self._metrics is not None:
            self._metrics.first_event(parsed.model, time.perf_counter() - record.begin)
        pieces = self._pieces(protocol.stream(parsed), first, events, record)
        return Streamed(pieces, media_type=protocol.media_type, headers=headers)

    def _overflow(
        self,
        protocol: Protocol,
        parsed: ParsedRequest,
        error: ToolGrammarError,
        record: _Record,
        headers: Mapping[str, str],
    ) -> Response:
        """Return the stream of a protocol whose clients know a prompt that is too long by an event alone."""
        writer = protocol.stream(parsed)
        pieces = "".join([*writer.begin(), *writer.failure(self._failure(error, record, protocol.names))])
        self._close(record)
        return Response(pieces, headers={**headers, "Cache-Control": "no-cache"}, media_type=protocol.media_type)

    async def _parsed(
        self, protocol: Endpoint, request: Request, record: _Record, deadline: Deadline
    ) -> tuple[Any, dict[str, str]]:
        """Return a request as its protocol reads it, and the header that names its unused fields."""
        self._incoming.authorize(request)
        body = await self._incoming.body(request)

        def parse() -> tuple[Any, dict[str, str], set[str]]:
            """Return the request, the header, and the unused fields as the log names them (``tools[].strict``)."""
            fields = self._served.fields(body, protocol.form)
            parsed = protocol.read(fields, self._served)
            unused = {pattern_of(path) for path in fields.unused}
            return parsed, header(fields.unused) if unused else {}, unused

        parsed, headers, unused = await self._incoming.read(request, deadline, parse)
        record.model, record.stream = parsed.model, parsed.stream
        for line in self._logged.new_lines(unused) if unused else ():  # each field once
            _logger.info("unused field", extra={"facts": {"path": protocol.path, "unused": line}})
        return parsed, headers

    async def _decide(self, protocol: DecisionProtocol, request: Request, record: _Record) -> Response:
        """Answer a request for decisions."""
        deadline = Deadline.after(self._limits.answer_seconds)
        parsed, headers = await self._parsed(protocol, request, record, deadline)
        seconds = round(max(deadline.end - time.monotonic(), 0.0), 3)  # that are left
        model = self._served.model(parsed.model)

        async def decisions() -> dict[str, Decision]:
            async with self._turn(parsed.model):
                return await model.adecide(parsed.state, parsed.questions, timeout=seconds, **parsed.options)

        decided = await unless_gone(request, decisions())
        usage = Usage(prompt_tokens=prompt_tokens(decided))
        record.prompt_tokens = usage.prompt_tokens
        if self._metrics is not None:
            self._metrics.answer(parsed.model, usage, False)
        self._close(record)
        return as_json(protocol.whole(parsed, decided), headers=headers)

    # -- answers -------------------------------------------------------------------------------------------------

    def _turn(self, model: str) -> AbstractAsyncContextManager[Turn]:
        """Return the context in which a request has its turn at a model."""
        return self._queues[self._served.own_name(model)].turn()

    async def _answers(self, parsed: ParsedRequest) -> list[Generation]:
        """Return all answers to a request."""
        model = self._served.model(parsed.model)
        async with self._turn(parsed.model) as turn:
            params = [_watched(parsed.params_of(index), turn) for index in range(parsed.answers)]
            if parsed.answers == 1:
                return [await model.agenerate(parsed.messages, params[0])]
            return await model.agenerate_batch([parsed.messages] * parsed.answers, params)

    async def _events(self, parsed: ParsedRequest) -> AsyncGenerator[tuple[int, Event], None]:
        """Yield the events of all answers, one answer after the other."""
        model = self._served.model(parsed.model)
        async with self._turn(parsed.model) as turn:
            for index in range(parsed.answers):
                events: Any = model.astream(parsed.messages, _watched(parsed.params_of(index), turn))
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
        """Yield the pieces of a streamed response's body; ``first`` is the event that has come before the others."""
        is_cut = False  # a call of the present answer is
        status = CLIENT_LEFT  # if this ends before the body is whole
        try:
            async with aclosing(events):
                for piece in writer.begin():
                    yield piece
                index, event = first
                while True:
                    is_cut = is_cut or (isinstance(event, CallEnd) and bool(event.call.cut))
                    if isinstance(event, Finish):  # the end of one of the answers
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
        """Return an error as a failure, and log it; of an error that is not ours, the class alone."""
        failure = failure_of(error, names)
        record.status, record.error = failure.status, failure.code
        if isinstance(error, LiveValuesError) and error.__cause__ is not None:
            cause = error.__cause__
            report(_logger, "values failed (%s): %s: %s", error.place, type(cause).__name__, cause)
        if failure.code == "internal":
            hint = "the logger toolgrammar.server has the traceback at the level DEBUG"
            report(_logger, "internal error: %s in a request of %s; %s", type(error).__name__, record.path, hint)
            _logger.debug("what went wrong", exc_info=error)
        _clear_frames(error)  # which hold what the request read
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


def _watched(params: GenerateParams, turn: Turn) -> GenerateParams:
    """Return options with which a request gives its place to another one while its grammar takes long."""

    def cancel() -> bool:
        turn.check()
        return False

    return replace(params, cancel=cancel)


def _clear_frames(error: BaseException | None) -> None:
    """Free the local variables of the functions that an error ended.

    The error and its frames refer to each other. Without this, what a refused request read, up to millions of objects,
    waits for a full collection of garbage, which stops all threads.
    """
    if error is not None:
        traceback.clear_frames(error.__traceback__)
        _clear_frames(error.__cause__ or error.__context__)
