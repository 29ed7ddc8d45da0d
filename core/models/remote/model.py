"""`RemoteModel`: a model on a server, with the interface of a local one; answers are validated before they are
returned."""

from __future__ import annotations

import json
import weakref
from collections.abc import AsyncGenerator, Callable, Collection, Generator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing, closing
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from ...basics.event_loop import EventLoop
from ...basics.logs import logger_of
from ...basics.options import SERVERS
from ...conversation.builder import MessageBuilder
from ...conversation.equal_calls import UnequalCalls
from ...conversation.events import Event, Finish, FinishReason, Generation, ReasoningDelta, TextDelta, Usage
from ...conversation.messages import ImagePart, Message, TextPart
from ...conversation.reasoning import ReasoningSplitter
from ...errors import (
    BudgetError,
    ContentFilterError,
    InvalidArgumentsError,
    LiveValuesError,
    ModelError,
    ParseError,
    ServerFailureError,
    ToolCallError,
    ToolGrammarError,
)
from ...generation.deadline import Deadline
from ...generation.driver import Item
from ...generation.json_output import MAX_RETRIES, converted, converts
from ...generation.params import GenerateParams, ToolsInPrompt
from ...generation.plan import Planner, Prompt, conversation_of, may_be_empty
from ...generation.ranges import FLAG, Ranges, check_ranges, number, of, one_of, whole
from ...generation.tool_choice import tool_set_of
from ..model import LEAST_AUTO_BYTES, Capabilities, Model
from ..requests import Request, in_conversation
from .address import LOCAL_SERVERS, headers_of, key_in_environment, parse_address
from .answer import Answer
from .answer_judge import AnswerReader, Task, Verdict
from .anthropic_messages import AnthropicMessages
from .by_name import calling, choosing, is_by_name
from .chat_completions import ChatCompletions
from .converse import Converse
from .dialect import Dialect
from .enforced import EnforcedReader, asks_callables, is_enforceable
from .form import Form
from .gemini import Gemini
from .instructions import correction, schema_text, with_system
from .own_grammar import ignores
from .protocol import Protocol
from .stream_state import RemoteFinish, RemoteGeneration, remaining_events, remote_generation
from .transport import MAX_RESENT, RefusedError, Transport

if TYPE_CHECKING:
    import httpx

    from ...vocabulary.vocabulary import Vocabulary

_LOG = logger_of("remote")

#: Default time in seconds without data after which a request fails.
DEFAULT_TIMEOUT = 120.0

#: Default context window in tokens, if the server does not report it.
DEFAULT_WINDOW = 8_192

#: Bytes of text per token in estimates, which are too high for most languages.
BYTES_PER_TOKEN = 3


_FIELDS = of(Mapping, "a dict")
_RANGES: Ranges = {
    "timeout": number(0, wanted="seconds, more than 0", above=True),
    "headers": _FIELDS,
    "server": one_of(*SERVERS, "auto"),
    "context_window": whole(1, wanted="at least 1", none=True),
    "retries": whole(0),
    "max_retries": whole(0),
    "repair": FLAG,
    "body": _FIELDS,
    "trust_env": FLAG,
    "prompt_cache": FLAG,
}


class _CancelledByCallerError(Exception):
    """The request's ``cancel`` returned True."""


class RemoteModel(Model):
    """A model on a server: behind an OpenAI-compatible API, or the own one of a provider.

    The request uses all constraints that the server supports. Every call and answer is then validated here, repaired if
    that makes it valid, or requested again together with its errors. So each returned answer is valid; the guarantee is
    called ``validated``, because the answer was not constrained during decoding. A vLLM server with our plug-in
    (``toolgrammar.adapters.vllm``) constrains it, so its answers are streamed; llama.cpp's server constrains it by our
    exported grammar, and the answer is validated all the same. Thread-safe; all requests share the
    connections.

    Args:
        address: ``MODEL@http://HOST:PORT/v1``, or the model's name with ``base_url``, at a provider's own address, or
            at the default port of vLLM, SGLang, llama.cpp or Ollama on this machine.
        base_url: the base URL of the server's API.
        api_key: the key; ``"env:NAME"`` reads it from the environment. By default, a provider's own variable is read
            (``ANTHROPIC_API_KEY``, ``GEMINI_API_KEY``), for the provider's own address only. It is never shown.
        timeout: time in seconds without data after which a request fails.
        headers: additional headers of every request; each value may be ``"env:NAME"``.
        server: kind of the server: ``"openai"`` (or anything compatible), ``"vllm"``, ``"sglang"``, ``"llama.cpp"``,
            ``"ollama"``, ``"auto"``, which detects one of these at the first request, ``"anthropic"``, ``"gemini"`` or
            ``"bedrock"``.
        context_window: context window in tokens; by default that reported by the server (``"auto"``), or 8,192.
        retries: maximum number of further requests after an invalid answer.
        max_retries: maximum number of times that a request is sent again to a server that is busy or has failed.
        repair: repair calls and JSON if that makes them valid.
        body: additional fields of every request, which override ours; None removes a field. Fields without which
            answers could not be read (``messages``, ``stop``, ``stream`` and others) raise an error.
        trust_env: use the proxies and certificates of the environment.
        prompt_cache: mark what later requests repeat (tools, system prompt, conversation), where an API needs marks to
            cache it. A single question without tools is not marked.
        transport: an httpx transport that replaces the network.

    Raises:
        ModelError: the address or an option is wrong. No request is sent.
    """

    def __init__(
        self,
        address: str,
        *,
        base_url: str | None = None,
        api_key: Any = None,
        timeout: float = DEFAULT_TIMEOUT,
        headers: Mapping[str, Any] | None = None,
        server: str = "openai",
        context_window: int | None = None,
        retries: int = MAX_RETRIES,
        max_retries: int = MAX_RESENT,
        repair: bool = True,
        body: Mapping[str, Any] | None = None,
        trust_env: bool = False,
        prompt_cache: bool = True,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        given = {"timeout": timeout, "headers": headers, "server": server, "context_window": context_window}
        given |= {
            "retries": retries,
            "max_retries": max_retries,
            "repair": repair,
            "body": body,
            "trust_env": trust_env,
            "prompt_cache": prompt_cache,
        }
        check_ranges(given, _RANGES)
        kind = _protocol_of(server)
        for name, instead in kind.own_fields.items():
            if (body or {}).get(name) is not None and (name, (body or {})[name]) != ("n", 1):
                raise ModelError(f"body may not set {name!r}", hint=instead)
        local = None if "@" in address else LOCAL_SERVERS.get(server)  # an address such as m@host lacks its http://
        place = parse_address(address, base_url, kind.home() or local, kind.version)
        if api_key is None and place.base_url == kind.home():
            api_key = key_in_environment(kind.key_names)
        sent, secrets = headers_of(api_key, headers, kind.key_headers)
        self._name = place.model
        self.capabilities = Capabilities(logits=False, images=True)
        self._transport = Transport(
            place.base_url, sent, secrets, timeout, resent=max_retries, trust_env=trust_env, transport=transport
        )
        self._window = context_window
        self._retries = retries
        self._repair = repair
        self._fields = dict(body or {})
        self._dialect = Dialect()
        self._plans = Planner()
        self._protocol = kind(server, place.model, self._transport, self._plans, prompt_cache=prompt_cache)
        self._protocol.taken = self._dialect.taken
        self._closed = False
        self._loop = EventLoop()
        # At the end of the process the event loop closes the connections.
        weakref.finalize(self, self._loop.close, self._transport.aclose, wait=False).atexit = False

    def __repr__(self) -> str:
        return f"RemoteModel({self._name!r}, {self._transport.base_url!r}, server={self._protocol.kind!r})"

    @property
    def provider(self) -> str:
        """The kind of the server, as in ``SERVERS``."""
        return self._protocol.kind

    @property
    def base_url(self) -> str:
        """Address of the server's API."""
        return self._transport.base_url

    @property
    def name(self) -> str:
        """The model's name on the server."""
        return self._name

    @property
    def vocabulary(self) -> Vocabulary:
        """Raises: ModelError: always."""
        raise ModelError("a server does not show its vocabulary", hint="load the model itself, by hf: or gguf:")

    def encode(self, text: str) -> list[int]:
        """Raises: ModelError: always."""
        raise ModelError("a server does not show its tokens", hint="count_tokens gives an estimate")

    @property
    def context_window(self) -> int:
        """Maximum number of tokens of a sequence: the argument, the number reported by the server, or 8,192.

        Raises:
            ModelError: the server does not answer a request for it (``server="auto"``, and providers).
        """
        if self._window is None and not self._protocol.is_found:
            self._loop.run(self._protocol.find())
        return self._window or self._protocol.window or DEFAULT_WINDOW

    def count_tokens(self, prompt: Prompt, tools: Any = None, tools_in_prompt: ToolsInPrompt = "schemas") -> int:
        """Return an estimate of the number of tokens of a prompt: a third of its bytes."""
        messages = conversation_of(prompt)
        size = 0
        for message in messages:
            parts = (TextPart(message.content),) if isinstance(message.content, str) else message.content
            size += sum(
                3_000 if isinstance(part, ImagePart) else len(part.text.encode(errors="replace")) for part in parts
            )
            size += sum(len(call.name) + len(json.dumps(dict(call.arguments))) for call in message.tool_calls) + 12
        if tools is not None and (tool_set := tool_set_of(tools)).names:
            names = tool_set.brief_names(tools_in_prompt, LEAST_AUTO_BYTES) if tools_in_prompt != "schemas" else ()
            size += len(json.dumps(tool_set.to_openai(brief=names)))
        return -(-size // BYTES_PER_TOKEN)

    def enforces(self, params: GenerateParams) -> bool:
        """Return True if the server is known to have our plug-in, and can enforce the request completely."""
        if not self._protocol.has_plugin:
            return False
        bound = in_conversation(Request((), params)).params
        if asks_callables(bound):
            return False
        try:
            return is_enforceable(Task.of(bound, self._plans, repair=self._repair))
        except LiveValuesError:  # the conversation of a request has values
            return True

    def close(self) -> None:
        """Close the connections; later requests are errors. Closing twice is allowed."""
        self._closed = True
        self._loop.close(self._transport.aclose)

    # -- running -----------------------------------------------------------------------------------------------

    def _items(self, request: Request) -> Generator[Item, None, None]:
        """Return the items of an answer; what is wrong with the request raises here, before the first item is asked
        for. A cancelled request ends with what was received, as a finished generation."""
        task = self._task(request)  # raises at once if options exclude each other

        def items() -> Generator[Item, None, None]:
            collected = MessageBuilder()
            check = _stop_check(request.params)
            try:
                with closing(self._loop.iterate(lambda: self._answers(task, request), check)) as pieces:
                    for item in pieces:
                        collected.add(item)
                        yield item
            except _CancelledByCallerError:
                yield Finish("cancelled", Usage())
                yield collected.cancelled()

        return items()

    async def _aitems(self, request: Request) -> AsyncGenerator[Item, None]:
        """Yield the items of an answer, as `_items` does, without blocking the event loop."""
        task = self._task(request)
        collected = MessageBuilder()
        check = _stop_check(request.params)
        try:
            async with aclosing(self._loop.aiterate(lambda: self._answers(task, request), check)) as pieces:
                async for item in pieces:
                    collected.add(item)
                    yield item
        except _CancelledByCallerError:
            yield Finish("cancelled", Usage())
            yield collected.cancelled()

    def _batch(self, requests: Sequence[Request], max_rows: int) -> list[Generation | Exception]:
        """Send many concurrent requests, which the server may batch."""

        def one(request: Request) -> Generation | Exception:
            try:
                return self._whole(request)
            except Exception as error:
                return error

        with ThreadPoolExecutor(max_workers=min(max_rows, len(requests)) or 1) as pool:
            return list(pool.map(one, requests))

    def _task(self, request: Request) -> Task:
        """Return the requirements of a request, by which its answers are judged. With ``convert``, an answer must also
        convert to the Python type of the schema. Raise ModelError if the model was closed."""
        if self._closed:
            raise ModelError(f"the model {self._name!r} was closed", hint="load it again")
        params = request.params
        mode = params.json_mode

        def problems(value: Any) -> Sequence[str]:
            return converted(value, None if mode is None else mode.schema)[1]

        is_converted = request.convert and mode is not None and converts(mode.schema)
        task = Task.of(params, self._plans, repair=self._repair, convert=problems if is_converted else None)
        return replace(task, empty=may_be_empty(params, request.messages))

    async def _answers(self, task: Task, request: Request) -> AsyncGenerator[Item, None]:
        """Yield the items of an answer: of one request, or of two if the first only chooses tools (`by_name`). The text
        of both is that of the answer, and so are their token counts."""
        params = request.params
        if not is_by_name(params, self._window or self._protocol.window or DEFAULT_WINDOW):
            async with aclosing(self._answer(task, request)) as items:
                async for item in items:
                    yield item
            return
        built, end, whole = MessageBuilder(), None, None
        names = [params.tool_choice]
        if params.tool_choice in ("auto", "required"):
            first = replace(request, params=choosing(params))
            async with aclosing(self._answer(self._task(first), first)) as items:
                async for item in items:
                    if isinstance(item, RemoteGeneration):
                        whole = item
                    elif isinstance(item, RemoteFinish):
                        end = item
                    elif isinstance(item, (TextDelta, ReasoningDelta)):
                        built.add(item)
                        yield item
            assert end is not None and whole is not None
            if not whole.tool_calls:
                yield end
                yield whole
                return
            names = list(dict.fromkeys(call.name for call in whole.tool_calls))
        spent = Usage() if end is None else end.usage
        attempts = 0 if end is None else end.attempts
        second = replace(request, params=calling(params, names, spent.completion_tokens))
        async with aclosing(self._answer(self._task(second), second)) as items:
            async for item in items:
                if isinstance(item, RemoteGeneration):
                    message = replace(built.message(), reasoning_blocks=item.message.reasoning_blocks)
                    usage, count = spent + item.usage, attempts + item.attempts
                    yield replace(item, message=message, usage=usage, attempts=count)
                elif isinstance(item, RemoteFinish):
                    yield replace(item, usage=spent + item.usage, attempts=attempts + item.attempts)
                else:
                    built.add(item)
                    yield item

    # -- asking ------------------------------------------------------------------------------------------------

    async def _answer(self, task: Task, request: Request) -> AsyncGenerator[Item, None]:
        """Yield the items of `_attempts`; an error has the number of requests too."""
        sent = [0]
        try:
            async with aclosing(self._attempts(task, request, sent)) as items:
                async for item in items:
                    yield item
        except ToolGrammarError as error:
            error.attempts = sent[-1]
            raise

    async def _attempts(self, task: Task, request: Request, sent: list[int]) -> AsyncGenerator[Item, None]:
        """Yield the events of one answer, then its end and the complete generation. After an invalid answer, the model
        is asked again, with its answer and the problems added to the conversation, up to ``retries`` times. If the
        server ignored what it was told to enforce, the next form is asked for in addition. ``sent`` counts requests."""
        enforced = await self._protocol.prepare(task)
        # Always stream from a server with our plug-in, so that a long answer does not cause a timeout.
        asked, live = list(request.messages), request.live or enforced
        built, usage = MessageBuilder(), Usage()
        retries = self._retries if task.params.json_mode is None or task.params.json_mode.repair else 0
        attempt, last, by_grammar = 0, 1 if enforced else retries + 1, False
        while attempt < last:
            attempt += 1
            held = not enforced and (task.held or attempt > 1)
            answer = Answer(requests=sent)
            form = Form("text")
            verdict = Verdict()
            unequal = None if task.params.equal_calls else UnequalCalls()
            streamed = live and not held
            async with aclosing(self._ask(task, asked, answer, streamed, held, enforced, by_grammar)) as events:
                async for event in events:
                    if isinstance(event, tuple):
                        form, verdict = event
                        continue
                    for certain in (event,) if unequal is None else unequal.feed((event,)):
                        built.add(certain)
                        yield certain
            usage += answer.usage
            is_ignored = ignores(form, answer, verdict, answer.used_up(self._protocol.window))
            if is_ignored:
                self._protocol.distrust(form)
                form = replace(form, left_out=("what the server was told to enforce, and ignored",))
            if not verdict.wrong:
                rest = remaining_events(built.text, verdict)
                for event in rest if unequal is None else unequal.feed(rest):
                    built.add(event)
                    yield event
                cut = bool(verdict.places) or any(call.cut for call in verdict.calls)
                if cut and task.params.on_budget == "error":
                    raise BudgetError("the token budget ended inside a call", hint="raise max_tokens")
                if task.is_json and not verdict.calls and not cut:
                    reason: FinishReason = "stop"  # it is complete
                elif cut or answer.used_up(self._protocol.window):
                    reason = "length"
                else:
                    reason = "tool_calls" if verdict.calls else "stop"
                if cut:
                    what = "a call" if verdict.calls else "an answer"
                    _LOG.warning("the server cut %s of %s at its token budget", what, self._name)
                names = task.tools.names if task.tools is not None else ()
                if not is_ignored:
                    places = getattr(task.tools, "live_places", None)
                    in_grammar = form.plan is not None or enforced
                    unsaid = () if places is None else places(in_grammar)
                    if task.live is not None:
                        unsaid += tuple(f"response{place}" for place in task.live.places(in_grammar))
                    form = replace(form, left_out=(*form.left_out, *unsaid))
                has_schema = task.schema is not None or task.grammar is not None
                by = form.enforced(names, has_schema=has_schema)
                finish = RemoteFinish(
                    reason,
                    usage,
                    verdict.places,
                    form=form.name,
                    left_out=form.left_out,
                    attempts=sent[-1],
                    enforced=dict.fromkeys(by, "validation") if is_ignored else by,
                    is_unfinished=any(call.error is not None for call in verdict.calls),
                )
                yield finish
                yield remote_generation(
                    replace(built.message(), reasoning_blocks=tuple(answer.blocks)), finish, answer.text
                )
                return
            if verdict.cut:
                received = self._transport.shown(answer.text or answer.reasoning)
                _LOG.warning("the server cut an answer of %s at its token budget", self._name)
                raise BudgetError(
                    f"the token budget ended inside the answer; received: {received}", hint="raise max_tokens"
                )
            _LOG.info(
                "answer %d of at most %d of %s is not valid; problems: %d",
                attempt,
                retries + 1,
                self._name,
                len(verdict.wrong),
            )
            _LOG.debug(
                "problems of answer %d: %s", attempt, [self._transport.shown(problem) for problem in verdict.wrong]
            )
            if is_ignored:
                last += 1  # the next form is requested in addition
            else:
                asked += correction(answer, verdict)
            by_grammar = True
        raise self._error_of_invalid(answer, verdict, attempt, task)

    async def _ask(
        self,
        task: Task,
        messages: Sequence[Message],
        answer: Answer,
        live: bool,
        held: bool,
        enforced: bool,
        by_grammar: bool,
    ) -> AsyncGenerator[Any, None]:
        """Yield the events of one answer that are certain at once, then the pair of its form and the verdict on it.
        Forms that the server refuses are weakened until it takes one (`Dialect.descend`). ``held``: no text is certain
        before the end."""
        descent = self._dialect.descend(partial(self._forms, task, messages, enforced, by_grammar))
        for form in descent:
            _LOG.debug("asking %s in the form %r, %d messages", self._name, form.name, len(messages))
            reader = EnforcedReader(task) if enforced else self._reader(task, form, held)
            reasoning = ReasoningSplitter(*(task.params.thinking_markers or ()))
            try:
                body = self._body(task, form, messages)
                async with aclosing(self._protocol.ask(form, body, answer, live)) as pieces:
                    async for thought, text in pieces:
                        more, text = reasoning.feed(text)
                        for event in _certain(thought + more, text, reader):
                            yield event
                        for event in reader.calls(answer) if isinstance(reader, EnforcedReader) else ():
                            yield event
            except RefusedError as refusal:
                descent.refuse(refusal)
                _LOG.info("the server of %s refused the form %r (%d)", self._name, form.name, refusal.status)
                _LOG.debug("reason of the refusal: %s", self._transport.shown(refusal.reason))
                continue
            for event in (*_certain(*reasoning.close(), reader), *reader.close()):
                yield event
            self._require_end(answer)
            descent.take(form)
            form = replace(form, left_out=form.left_out + answer.dropped)
            self._protocol.remember(answer)
            if descent.refusals:
                _LOG.warning(
                    "the server of %s takes the form %r only, with %d keywords left out; all is checked here",
                    self._name,
                    form.name,
                    len(form.left_out),
                )
            verdict = reader.verdict(answer, answer.used_up(self._protocol.window))
            if isinstance(reader, EnforcedReader) and not verdict.wrong:
                for event in reader.ends(verdict):
                    yield event
            yield form, verdict
            return
        raise descent.refusals[0].error  # the last form is always tried

    def _forms(
        self, task: Task, messages: Sequence[Message], enforced: bool, by_grammar: bool, unknown: Collection[str]
    ) -> list[Form]:
        """Return the forms of a request. ``by_grammar``: leave out those before the first in which our grammar says
        everything, because the server's own constraint has let an invalid answer through."""
        possible = self._protocol.forms(task, unknown, messages, enforced=enforced)
        whole = (number for number, form in enumerate(possible) if form.plan is not None and not form.left_out)
        first = next(whole, 0) if by_grammar else 0
        return possible[first:]

    def _reader(self, task: Task, form: Form, held: bool) -> AnswerReader:
        """Return the reader of an answer in a form. Text is searched for calls by the parser of the form's own grammar;
        else, if tools were given (even ones that may not be called), by that of the prompt's format; else not at all.
        """
        if form.plan is not None:
            parser = None if form.plan.make_parser is None else form.plan.make_parser()
            return AnswerReader(task, parser, held=held)
        tools = task.tools or task.forbidden
        if tools is None:
            return AnswerReader(task, None, held=held)
        wire = tools.wire_format(task.params.tool_format, "", ())
        parser = tools.parser(wire, response_schema=task.schema, bare_json=task.tools is not None)
        return AnswerReader(task, parser, held=held)

    def _body(self, task: Task, form: Form, messages: Sequence[Message]) -> dict[str, Any]:
        """Return the request body of a form. As the form asks, tools, the schema and its instruction go into the system
        prompt; the user's own ``body`` fields are merged last."""
        params, tools = task.params, task.tools
        if tools is not None and form.tools_in_prompt:
            wire = tools.wire_format(params.tool_format, "", ())
            messages = with_system(tools.render_history(messages, wire), tools.prompt(wire))
        if form.schema_in_prompt:
            messages = with_system(messages, schema_text(task.schema, tools is not None))
        messages = with_system(messages, form.instruction)
        is_free = not task.is_json and (tools is None or form.tools_in_prompt)
        body = self._protocol.body(params, form, messages, is_free=is_free)
        return self._protocol.merged(body, self._fields)

    def _require_end(self, answer: Answer) -> None:
        """Raise an error for an answer that is incomplete, or withheld by the server."""
        shown = self._transport.shown
        if answer.finish is None:
            received = shown(answer.text or json.dumps([vars(call) for call in answer.calls]))
            raise ServerFailureError(
                f"the server's answer broke off before its end; received: {received}", hint="look into its log"
            )
        if answer.finish == "content_filter":
            raise ContentFilterError(
                f"the server withheld the answer (content_filter); received: {shown(answer.text)}",
                hint="ask for something else",
            )

    def _error_of_invalid(self, answer: Answer, verdict: Verdict, attempts: int, task: Task) -> ToolCallError:
        """Return the error after the last attempt, if no answer was valid. It names the problems of the last answer: an
        InvalidArgumentsError if there were calls, or JSON was asked for, else a ParseError."""
        received = answer.text or "; ".join(f"{call.name}({call.arguments})" for call in answer.calls)
        times = "once" if attempts == 1 else f"{attempts} times"
        wrong = "; ".join(problem.partition(" Hint: ")[0] for problem in verdict.wrong[:3])
        message = (
            f"the model {self._name!r} was asked {times}, and no answer was valid: {wrong}; "
            f"received: {self._transport.shown(received) or 'nothing'}"
        )
        hint = "try a larger model, or one that can be constrained (hf:, gguf:)"
        kind = InvalidArgumentsError if answer.calls or task.is_json else ParseError
        return kind(message, hint=hint)


def _protocol_of(server: str) -> type[Protocol]:
    """Return the class of the API of a kind of server."""
    return _PROTOCOLS.get(server, ChatCompletions)


#: The APIs of providers; all other servers have OpenAI's.
_PROTOCOLS: Mapping[str, type[Protocol]] = {"anthropic": AnthropicMessages, "gemini": Gemini, "bedrock": Converse}


def _stop_check(params: GenerateParams) -> Callable[[], None] | None:
    """Return a function that raises if the request is cancelled or its timeout is over; None if neither can happen.

    The timeout begins with this call.
    """
    cancel, deadline = params.cancel, Deadline.after(params.timeout)
    if cancel is None and deadline.seconds is None:
        return None

    def check() -> None:
        if cancel is not None and cancel():
            raise _CancelledByCallerError
        deadline.check()

    return check


def _certain(reasoning: str, text: str, reader: AnswerReader | EnforcedReader) -> list[Event]:
    """Return the events of a piece of an answer that are final: its reasoning, and what the reader of its text can
    already pass on."""
    events: list[Event] = [ReasoningDelta(reasoning)] if reasoning else []
    return [*events, *reader.feed(text)] if text else events
