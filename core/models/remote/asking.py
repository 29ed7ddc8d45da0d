"""Asking a server until its answer is valid: attempts, forms that it refuses, and what is passed on meanwhile."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Callable, Collection, Mapping, Sequence
from contextlib import aclosing
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

from ...basics.logs import logger_of
from ...conversation.equal_calls import UnequalCalls
from ...conversation.events import Event, FinishReason, MessageBuilder, ReasoningDelta, TextDelta, Usage
from ...conversation.messages import Message
from ...conversation.reasoning import ReasoningSplitter
from ...errors import (
    BudgetError,
    ContentFilterError,
    InvalidArgumentsError,
    ParseError,
    ServerFailureError,
    ToolCallError,
    ToolGrammarError,
)
from ...generation.driver import Item
from ...generation.json_output import converted, converts
from ...generation.params import GenerateParams
from ...generation.plan import may_be_empty
from ..prompts import with_system
from ..requests import Request
from .answer import Answer
from .answer_judge import AnswerReader, Task, Verdict
from .by_name import calling, choosing, is_by_name
from .dialect import Dialect
from .enforced import EnforcedReader
from .form import Form
from .instructions import correction, schema_text
from .own_grammar import ignores
from .protocol import Protocol
from .stream_state import RemoteFinish, RemoteGeneration, remaining_events, remote_generation
from .transport import RefusedError, RequestCount

_LOG = logger_of("remote")


#: Default context window in tokens, if the server does not report it.
DEFAULT_WINDOW = 8_192


class _Judged(NamedTuple):
    """The form in which a server took a request, and the verdict on its answer."""

    form: Form
    verdict: Verdict


class Asker:
    """Asks the server of one model.

    Args:
        protocol: the API of the server.
        window: the context window in tokens; None: the one that the server reports.
        retries: maximum number of further requests after an invalid answer.
        repair: repair calls and JSON if that makes them valid.
        fields: the user's own fields of every request.
    """

    def __init__(
        self, protocol: Protocol, window: int | None, retries: int, repair: bool, fields: Mapping[str, Any]
    ) -> None:
        self._protocol = protocol
        self._transport = protocol.transport
        self._name = protocol.name
        self._given_window = window
        self._retries = retries
        self._repair = repair
        self._fields = dict(fields)
        self._dialect = Dialect()
        protocol.taken = self._dialect.taken

    @property
    def window(self) -> int:
        """The context window in tokens, as far as it is known."""
        return self._given_window or self._protocol.window or DEFAULT_WINDOW

    def task(self, request: Request) -> Task:
        """Return the requirements of a request, by which its answers are judged. With ``request.convert``, an answer
        must also convert to the Python type of the schema."""
        params = request.params
        shape = None if params.json_mode is None else params.json_mode.schema

        def problems(value: Any) -> Sequence[str]:
            _, errors = converted(value, shape)
            return errors

        task = self.task_of(params, problems if request.convert and converts(shape) else None)
        return replace(task, empty=may_be_empty(params, request.messages))

    def task_of(self, params: GenerateParams, convert: Callable[[Any], Sequence[str]] | None = None) -> Task:
        """Return the requirements of options alone."""
        return Task.of(params, self._protocol.planner, repair=self._repair, convert=convert)

    async def answers(self, task: Task, request: Request) -> AsyncGenerator[Item, None]:
        """Yield the items of an answer: of one request, or of two if the first only chooses tools (`by_name`). Then the
        answer has the text of both, and the sums of their token counts and attempts."""
        params = request.params
        if not is_by_name(params, self.window):
            async with aclosing(self._answer(task, request)) as items:
                async for item in items:
                    yield item
            return
        built = MessageBuilder()
        names, spent, attempts = [params.tool_choice], Usage(), 0
        if params.tool_choice in ("auto", "required"):  # else the one tool is named already
            end, whole = None, None
            first = replace(request, params=choosing(params))
            async with aclosing(self._answer(self.task(first), first)) as items:
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
            spent, attempts = end.usage, end.attempts
        second = replace(request, params=calling(params, names, spent.completion_tokens))
        async with aclosing(self._answer(self.task(second), second)) as items:
            async for item in items:
                if isinstance(item, (RemoteFinish, RemoteGeneration)):
                    item = replace(item, usage=spent + item.usage, attempts=attempts + item.attempts)
                if isinstance(item, RemoteGeneration):
                    message = replace(built.message(), reasoning_blocks=item.message.reasoning_blocks)
                    item = replace(item, message=message)
                built.add(item)
                yield item

    # -- asking ------------------------------------------------------------------------------------------------

    async def _answer(self, task: Task, request: Request) -> AsyncGenerator[Item, None]:
        """Yield the items of `_attempts`; an error gets the number of requests that were sent."""
        sent = RequestCount()
        try:
            async with aclosing(self._attempts(task, request, sent)) as items:
                async for item in items:
                    yield item
        except ToolGrammarError as error:
            error.attempts = sent.number
            raise

    async def _attempts(self, task: Task, request: Request, sent: RequestCount) -> AsyncGenerator[Item, None]:
        """Yield the events of one answer, then its end and the complete generation. After an invalid answer, the model
        is asked again, with its answer and the problems added to the conversation, up to ``retries`` times. If the
        server ignored what it was told to enforce, the next form is asked for in addition. ``sent`` counts requests."""
        enforced = await self._protocol.prepare(task)
        # Always stream from a server with our plug-in, so that a long answer does not cause a timeout.
        messages, live = list(request.messages), request.live or enforced
        built, usage = MessageBuilder(), Usage()
        retries = self._retries if task.params.json_mode is None or task.params.json_mode.repair else 0
        attempt, last = 0, 1 if enforced else retries + 1
        while attempt < last:
            attempt += 1
            # What was sent of an invalid answer cannot be taken back, so the next one waits to be compared with it.
            held = not enforced and (task.held or attempt > 1)
            answer, judged = Answer(requests=sent), None
            unequal = None if task.params.equal_calls else UnequalCalls()
            asked = self._ask(
                task, messages, answer, live=live and not held, held=held, enforced=enforced, is_retry=attempt > 1
            )
            async with aclosing(asked) as events:
                async for event in events:
                    if isinstance(event, _Judged):
                        judged = event
                        continue
                    for certain in (event,) if unequal is None else unequal.feed((event,)):
                        built.add(certain)
                        yield certain
            assert judged is not None  # the last item of `_ask`
            form, verdict = judged
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
                finish = self._finish(task, form, answer, verdict, enforced=enforced, is_ignored=is_ignored)
                finish = replace(finish, usage=usage)  # of all attempts
                yield finish
                message = replace(built.message(), reasoning_blocks=tuple(answer.blocks))
                yield remote_generation(message, finish, answer.text)
                return
            if verdict.cut:
                received = self._transport.shown(answer.text or answer.reasoning)
                _LOG.warning("the server cut an answer of %s at its token budget", self._name)
                raise BudgetError(
                    f"the token budget ended inside the answer; received: {received}", hint="raise max_tokens"
                )
            count, problems = len(verdict.wrong), [self._transport.shown(problem) for problem in verdict.wrong]
            _LOG.info(
                "answer %d of at most %d of %s is not valid; problems: %d", attempt, retries + 1, self._name, count
            )
            _LOG.debug("problems of answer %d: %s", attempt, problems)
            if is_ignored:
                last += 1  # the next form is requested in addition
            else:
                messages += correction(answer, verdict)
        raise self._error_of_invalid(answer, verdict, attempt, task)

    def _finish(
        self, task: Task, form: Form, answer: Answer, verdict: Verdict, *, enforced: bool, is_ignored: bool
    ) -> RemoteFinish:
        """Return the end of a valid answer: its reason, and what of the request the server enforced.

        Raises:
            BudgetError: it is truncated, with ``on_budget="error"``.
        """
        is_cut = bool(verdict.places) or any(call.cut for call in verdict.calls)
        if is_cut and task.params.on_budget == "error":
            raise BudgetError("the token budget ended inside a call", hint="raise max_tokens")
        if is_cut:
            what = "a call" if verdict.calls else "an answer"
            _LOG.warning("the server cut %s of %s at its token budget", what, self._name)
        is_whole_json = task.is_json and not verdict.calls  # its brackets are closed
        ends_itself = is_whole_json or verdict.is_stopped
        if is_cut or (not ends_itself and answer.used_up(self._protocol.window)):
            reason: FinishReason = "length"
        else:
            reason = "tool_calls" if verdict.calls else "stop"
        if not is_ignored:
            # The server does not enforce values of callables, nor, without our grammar, those of the conversation.
            in_grammar = form.plan is not None or enforced
            places = getattr(task.tools, "live_places", None)
            unsaid = () if places is None else places(in_grammar)
            if task.live is not None:
                unsaid += tuple(f"response{place}" for place in task.live.places(in_grammar))
            form = replace(form, left_out=(*form.left_out, *unsaid))
        names = task.tools.names if task.tools is not None else ()
        by = form.enforced(names, has_schema=task.schema is not None or task.grammar is not None)
        return RemoteFinish(
            reason,
            answer.usage,
            verdict.places,
            form=form.name,
            left_out=form.left_out,
            attempts=answer.requests.number,
            enforced=dict.fromkeys(by, "validation") if is_ignored else by,
            is_unfinished=any(call.error is not None for call in verdict.calls),
        )

    async def _ask(
        self,
        task: Task,
        messages: Sequence[Message],
        answer: Answer,
        *,
        live: bool,
        held: bool,
        enforced: bool,
        is_retry: bool,
    ) -> AsyncGenerator[Event | _Judged, None]:
        """Yield the events of one answer that are certain at once, then the verdict on it. Forms that the server
        refuses are weakened until it takes one (`Dialect.descend`).

        Args:
            task: the requirements of the request.
            messages: the conversation, with corrections.
            answer: filled meanwhile.
            live: stream the answer.
            held: no text is certain before the end.
            enforced: the server enforces the request completely, by our plug-in.
            is_retry: the answer before was invalid.
        """
        descent = self._dialect.descend(partial(self._forms, task, messages, enforced=enforced, needs_grammar=is_retry))
        for form in descent:  # until one is taken, or the last one is refused
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
            yield _Judged(form, verdict)
            return
        raise descent.refusals[0].error  # the last form is always tried

    def _forms(
        self, task: Task, messages: Sequence[Message], unknown: Collection[str], *, enforced: bool, needs_grammar: bool
    ) -> list[Form]:
        """Return the forms of a request. ``needs_grammar``: without those before the first form whose grammar of ours
        says everything, because the server's own constraint has let an invalid answer through."""
        possible = self._protocol.forms(task, unknown, messages, enforced=enforced)
        if not needs_grammar:
            return possible
        of_grammar = (number for number, form in enumerate(possible) if form.plan is not None and not form.left_out)
        return possible[next(of_grammar, 0) :]

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
        body = self._protocol.body(params, form, messages, is_free=task.is_free)
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


def _certain(reasoning: str, text: str, reader: AnswerReader | EnforcedReader) -> list[Event]:
    """Return the events of a piece of an answer that are final: its reasoning, and what the reader of its text can
    already pass on."""
    events: list[Event] = [ReasoningDelta(reasoning)] if reasoning else []
    return [*events, *reader.feed(text)] if text else events
