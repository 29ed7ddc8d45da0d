"""Judge of remote answers: validates them against the request, independently of the server's guarantees."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from ...basics.logs import logger_of
from ...conversation.events import ArgumentsDelta, CallEnd, CallStart, Event, TextDelta
from ...conversation.messages import ToolCall, new_call_id
from ...errors import LiveValuesError, ModelError, ParseError, ToolGrammarError
from ...generation.live_shape import LiveShape, plain_shape
from ...generation.mismatch import where_it_stops
from ...generation.params import GenerateParams, JsonMode, OutputParser, ToolInterface
from ...generation.plan import Planner, schema_of_mode
from ...generation.tool_choice import check_tool_choice
from ...grammar import Grammar
from ...json import dump_json, read_json
from ...repair import ends_early, extract_json, may_go_on, respelled_json
from ...validation import Validator
from .answer import Answer, RawCall

_LOG = logger_of("remote")

#: The error of a call that the server truncated.
CUT = "the token budget ended inside its arguments"


@dataclass(frozen=True)
class Verdict:
    """Judgement of one answer.

    Attributes:
        text: text of the answer; JSON in canonical form, if JSON was requested.
        calls: valid tool calls; the last may be truncated (`ToolCall.cut`), and cannot be executed then.
        wrong: errors of the answer, for the model; empty for a valid answer.
        cut: the token budget ended inside an invalid structured answer, so a retry would be useless.
        is_sent: all of it was certain during streaming, and has been emitted.
        places: pointers to the truncated values of a JSON text.
        is_stopped: it ends at a stop string, which was looked for here.
    """

    text: str = ""
    calls: tuple[ToolCall, ...] = ()
    wrong: tuple[str, ...] = ()
    cut: bool = False
    is_sent: bool = False
    places: tuple[str, ...] = ()
    is_stopped: bool = False


@dataclass(frozen=True)
class Task:
    """The requirements of a request for its answer, checked.

    Attributes:
        params: options of the request.
        tools: tools that may be called; None if there are none, or if calls are not allowed.
        forbidden: tools that are in the prompt but must not be called (``tool_choice="none"``), for text answers.
        schema: schema of a text answer; None if it is free.
        grammar: grammar of a text answer; None if it is free.
        repair: repair calls and JSON.
        free: the shape is requested by instructions only (``constrained_decoding=False``).
        plain_integers: the answer is read by Pydantic, for which neither 3.0 nor 1e25 is an integer.
        rules: the schema by which a text answer is judged: ``schema``, with the texts of the conversation.
        live: the shape of an answer with live values; None: it has none.
        empty: an answer may have no text and no call.
        convert: converts the value of a JSON answer, and returns its errors.
    """

    params: GenerateParams
    tools: ToolInterface | None = None
    schema: Any = None
    grammar: Grammar | None = None
    repair: bool = True
    free: bool = False
    convert: Callable[[Any], Sequence[str]] | None = None
    forbidden: ToolInterface | None = None
    plain_integers: bool = False
    rules: Any = None
    live: LiveShape | None = None
    empty: bool = False
    _validator: list[Validator] = field(default_factory=list, repr=False, compare=False)

    @classmethod
    def of(cls, params: GenerateParams, planner: Planner, *, repair: bool, convert: Any = None) -> Task:
        """Return the task of a request.

        Raises:
            ModelError: two options exclude each other.
            SchemaError: a schema is malformed, or unsatisfiable.
            LiveValuesError: a demanded call, or the answer, has no values in the conversation.
        """
        mode, grammar = params.json_mode, params.grammar
        tools = params.tools if isinstance(params.tools, ToolInterface) and params.tools.names else None
        callable_tools = None if params.tool_choice == "none" else tools
        free = mode is not None and not mode.constrained_decoding
        _check_combination(params, callable_tools, planner, free=free)
        shape = None if mode is None else mode.schema
        live = shape if isinstance(shape, LiveShape) else None
        schema = None if grammar is None else grammar.schema
        if mode is not None:
            grammar = mode.grammar or grammar
            schema = schema_of_mode(mode) if mode.grammar is None else mode.grammar.schema
            repair = mode.repair if tools is None else repair
        if callable_tools is not None and schema is not None:
            try:  # the plan is not used: it is made for its errors
                planner.plan(replace(GenerateParams(), json_mode=JsonMode(schema=live or schema, strict=False)), None)
            except LiveValuesError:  # the conversation has no values for the answer, so that only calls are left
                if params.tool_choice != "auto":
                    raise
                params = replace(params, tool_choice="required", json_mode=None)
                schema = live = None
        if not free:
            wire = None if callable_tools is None else callable_tools.wire_format(None, "", ())
            planner.require_possible(params, wire)
        is_text = schema is None and grammar is None and mode is None
        return cls(
            params,
            callable_tools,
            schema=schema if live is None else live.shown,
            grammar=grammar,
            repair=repair,
            free=free,
            convert=convert,
            forbidden=tools if callable_tools is None and is_text else None,
            plain_integers=hasattr(plain_shape(shape), "model_json_schema"),
            rules=schema,
            live=live,
        )

    @property
    def plannable(self) -> GenerateParams:
        """The options for the planner, which leaves unsupported keywords to the validation here."""
        mode = self.params.json_mode
        if self.params.tools is not None and self.tools is None:
            return replace(self.params, tools=None, tool_choice="auto", json_mode=mode and replace(mode, strict=False))
        return replace(self.params, json_mode=mode and replace(mode, strict=False))

    @property
    def is_json(self) -> bool:
        """True if a text answer is JSON."""
        return self.schema is not None or self.params.json_mode is not None

    @property
    def held(self) -> bool:
        """True if no part of the text is certain before the complete answer is judged."""
        return self.is_json or self.grammar is not None or self.demands_call or bool(self.stop)

    @property
    def demands_call(self) -> bool:
        """True if an answer must be calls."""
        return self.tools is not None and self.params.tool_choice != "auto"

    @property
    def stop(self) -> tuple[str, ...]:
        """The stop strings that are looked for here, in the text outside of calls. They are not sent: servers look for
        them in arguments, too."""
        return tuple(filter(None, self.params.stop)) if self.tools is not None and not self.is_json else ()

    @property
    def max_calls(self) -> int | None:
        """Maximum number of calls in an answer; None: no bound."""
        if self.params.tool_choice not in ("auto", "required") or not self.params.parallel_tool_calls:
            return 1
        most: int | None = getattr(self.tools, "max_calls", None)
        return most

    @property
    def is_free(self) -> bool:
        """True if an answer is free text without calls: the server may look for stop strings in it."""
        return self.tools is None and not self.is_json and self.grammar is None

    def text_verdict(self, text: str, used_up: bool | None) -> Verdict:
        """Judge a text answer; JSON is converted to canonical form.

        Args:
            text: the answer.
            used_up: the result of `Answer.used_up`.
        """
        cut = used_up is True
        if not self.is_json:  # free text, or one of a grammar
            if self.grammar is not None and not self.grammar.matches(text):
                return Verdict(text, wrong=("the text does not have the form that was asked for",), cut=cut)
            may_be_empty = self.empty and self.tools is not None and not cut
            return Verdict(text) if text or may_be_empty else Verdict(wrong=("the answer is empty",), cut=cut)
        text = text.strip()
        # Some servers do not separate the reasoning from the text after it.
        answer = text.rpartition("</think>")[2]
        try:
            value = self._value(text, answer, repair=self.repair and not cut)
            verdict = self._verdict_on(value, cut)
        except (ValueError, ParseError, RecursionError) as error:  # it is not JSON
            cut = cut or (used_up is None and ends_early(answer))  # without token counts, by the text
            wrong = getattr(error, "message", None) or f"not JSON: {error}"
            stops = "" if cut or self.schema is None else where_it_stops(answer, self.schema)
            verdict = Verdict(text, wrong=(f"{wrong}; {stops}" if stops else wrong,), cut=cut)
        if verdict.wrong and not verdict.cut and (respelled := self._respelled(answer)):
            (value,) = respelled
            second = self._verdict_on(value, cut)
            return verdict if second.wrong else second
        return verdict

    def _verdict_on(self, value: Any, cut: bool) -> Verdict:
        """Judge the value of a JSON answer. ``cut``: its text may have been truncated; then what is wrong counts as
        truncated too, and so does a number, which may go on."""
        if self.plain_integers:
            value = self._judge().with_plain_integers(value)
        written = self._spelled(value)
        wrong = tuple(self._problems(value, written))
        if not wrong and cut and may_go_on(value):
            wrong = ("the number may go on",)
        return Verdict(written, wrong=wrong, cut=cut and bool(wrong))

    def _respelled(self, answer: str) -> tuple[Any] | None:
        """Return the value of which the answer is another spelling under the schema (``"42"`` of 42), in a tuple, since
        it may be None; None if there is no such value."""
        if not self.repair or self.schema is None:
            return None
        try:
            return (respelled_json(answer, self.schema, plain_integers=self.plain_integers),)
        except ToolGrammarError:
            return None

    def _value(self, text: str, answer: str, *, repair: bool) -> Any:
        """Return the JSON value of ``text``. If it is not JSON: that of ``answer``, the text without reasoning; with
        ``repair``, repaired or taken out of other text. Raise ValueError or `ToolGrammarError` if there is none."""
        with suppress(ValueError):
            return read_json(text)
        if not repair:
            return read_json(answer)
        value = extract_json(answer, repair=True)
        _LOG.info("a JSON answer was repaired, or taken out of other text")
        return value

    def _spelled(self, value: Any) -> str:
        """Return the JSON text of a value: in the first spelling that the grammar allows, if there is a grammar."""
        mode = self.params.json_mode
        written = [dump_json(value), dump_json(value, compact=True)]
        if mode is not None and mode.grammar is None and mode.whitespace == "compact":
            return written[1]
        if self.grammar is not None and self.grammar.schema is None:
            return next(filter(self.grammar.matches, written), written[0])
        return written[0]

    def _judge(self) -> Validator:
        if not self._validator:
            schema = True if self.rules is None else self.rules
            self._validator.append(Validator(schema, formats=True, plain_integers=self.plain_integers))
        return self._validator[0]

    def _problems(self, value: Any, written: str) -> list[str]:
        if self.grammar is not None and self.grammar.schema is None:
            return [] if self.grammar.matches(written) else ["the JSON does not have the form that was asked for"]
        wrong = list(self._judge().violations(value))
        if not wrong and self.live is not None:
            wrong = self.live.problems(value)
        return wrong or list(self.convert(value) if self.convert is not None else ())


def _check_combination(params: GenerateParams, tools: ToolInterface | None, planner: Planner, *, free: bool) -> None:
    """Raise an error for options that exclude each other, as `Task.of` does.

    Args:
        params: the options.
        tools: those that may be called; None if there are none.
        planner: checks requests without calls.
        free: JSON is requested by instructions only.
    """
    mode = params.json_mode
    if tools is None:
        # Not strict: keywords that no grammar can enforce are left to the validation of the answer.
        planner.plan(replace(params, json_mode=None if free or mode is None else replace(mode, strict=False)), None)
        return
    if params.grammar is not None or free or (mode is not None and mode.grammar is not None):
        raise ModelError("tools exclude a grammar and unconstrained JSON", hint="give one of them")
    check_tool_choice(params.tool_choice, tools.names)
    if (require := getattr(tools, "require_offered", None)) is not None:
        require(params.tool_choice)


class _Received(NamedTuple):
    """The calls of an answer, not checked.

    Attributes:
        whole: the complete ones.
        unfinished: the last one, if it is truncated; without a name if the answer ended before it. None: all are whole.
    """

    whole: list[ToolCall]
    unfinished: ToolCall | None = None


class AnswerReader:
    """Reader of a streamed answer: certain parts are emitted immediately, the rest waits for `verdict`.

    Args:
        task: the requirements of the request.
        parser: parses calls in text; None if there are no tools, or if text must be JSON.
        held: nothing is certain before the end.
    """

    def __init__(self, task: Task, parser: OutputParser | None, *, held: bool) -> None:
        self._task = task
        self._parser = parser
        self._held = held
        self._text: list[str] = []
        #: By its index, a call in the text that has not ended, and the pieces of its arguments.
        self._begun: dict[int, tuple[CallStart, list[str]]] = {}
        self._calls: list[ToolCall] = []  # in the text, ended
        self._broken: str | None = None  # the error of a call inside of which the text ended
        self._run = 0  # index in `_text` of the first piece since the last call
        self._end = ""  # the end of this run, in which a stop string may begin
        self._stopped: str | None = None  # the text before a stop string

    def feed(self, text: str) -> list[Event]:
        """Read the next piece of the text; return the certain events."""
        return self._take(self._parser.feed(text)) if self._parser is not None else self._take([TextDelta(text)])

    def close(self) -> list[Event]:
        """End the text; return the remaining certain events."""
        if self._parser is None:
            return []
        return self._take(self._parser.close())

    def _take(self, events: Sequence[Event]) -> list[Event]:
        """Record events of the parser for `verdict`, and return the certain ones: free text, unless all is ``held``.
        Calls are never certain before the end, because their arguments may prove wrong; after a stop string there are
        none, unless one is demanded."""
        certain: list[Event] = []
        for event in events:
            if isinstance(event, TextDelta) and event.text:
                self._text.append(event.text)
                if self._task.stop and self._stopped is None:
                    self._look_for_stop(event.text)
                if not self._held:
                    certain.append(event)
            elif self._stopped is not None and not self._task.demands_call:
                continue
            elif isinstance(event, CallStart):
                self._run, self._end = len(self._text), ""
                self._begun[event.index] = event, []
            elif isinstance(event, ArgumentsDelta):
                _, pieces = self._begun[event.index]
                pieces.append(event.text)
            elif isinstance(event, CallEnd) and event.call.fault == "unfinished":
                self._broken = event.call.error
            elif isinstance(event, CallEnd):
                self._begun.pop(event.index, None)
                self._calls.append(event.call)
        return certain

    def _look_for_stop(self, text: str) -> None:
        """End the text at a stop string that this piece of it completes."""
        stop = self._task.stop
        end = self._end + text
        self._end = end[-max(map(len, stop)) :]
        if any(word in end for word in stop):
            self._stopped = "".join(self._text[: self._run]) + _until("".join(self._text[self._run :]), stop)

    def verdict(self, answer: Answer, used_up: bool | None) -> Verdict:
        """Judge the complete answer.

        Args:
            answer: the answer.
            used_up: the result of `Answer.used_up`.
        """
        task, tools = self._task, self._task.tools
        text = "".join(self._text)
        if answer.malformed:
            return Verdict(text, wrong=(answer.malformed,))
        has_calls = bool(answer.calls or self._calls or self._begun or self._broken is not None)
        if tools is None and has_calls:
            return Verdict(wrong=("no tool may be called now; answer in text",))
        if answer.refusal and not text and not answer.calls:
            if task.held:  # a call, JSON or a text of a grammar is required, and a refusal is none
                return Verdict(wrong=(f"the model refuses: {answer.refusal}",))
            text = answer.refusal
        if tools is not None:
            is_stopped = self._stopped is not None and not answer.calls and not task.demands_call
            if self._stopped is not None and not answer.calls:
                text = self._stopped
            used_up = False if is_stopped else used_up
            calls, wrong = self._judged(tools, answer, used_up)
            if calls or wrong:
                return Verdict(text, calls, wrong, cut=used_up is True and not calls, is_stopped=is_stopped)
            if is_stopped:
                return Verdict(text, is_stopped=True)
            if task.demands_call:
                what = "a tool" if task.params.tool_choice == "required" else f"the tool {task.params.tool_choice!r}"
                return Verdict(text, wrong=(f"no tool was called; call {what}",), cut=used_up is True)
        return task.text_verdict(text, used_up)

    def _judged(
        self, tools: ToolInterface, answer: Answer, used_up: bool | None
    ) -> tuple[tuple[ToolCall, ...], tuple[str, ...]]:
        """Return the calls of the answer, of which the last may be truncated, and no errors; or else no calls, and
        their errors."""
        if self._broken is not None and used_up is False and not answer.calls:
            return (), (self._broken,)
        received, unfinished = self._received(tools, answer, used_up)
        calls = [tools.check_call(call, repair=self._task.repair) for call in received]
        choice = self._task.params.tool_choice
        is_named = choice not in ("auto", "required")
        wrong = [call.error for call in calls if call.error is not None]
        wrong += [f"{call.name!r} was called; call {choice!r}" for call in calls if is_named and call.name != choice]
        if wrong:
            return (), tuple(wrong)
        if unfinished is not None:
            if unfinished.name in ([choice] if is_named else tools.names):
                calls.append(_without_arguments(unfinished))
            elif not calls:
                return (), ("the answer ended before a call had its tool's name",)
        if (most := self._task.max_calls) is not None:
            del calls[most:]  # text of a model that must stop after the calls before
        taken: set[str] = set()
        for index, call in enumerate(calls):
            if not call.id or call.id in taken:
                call = replace(call, id=new_call_id())
            taken.add(call.id)
            # Arguments that were repaired are written in their canonical form.
            calls[index] = call if call.cut else replace(call, raw=dump_json(dict(call.arguments)))
        return tuple(calls), ()

    def _received(self, tools: ToolInterface, answer: Answer, used_up: bool | None) -> _Received:
        """Return the calls that the server has separated from the text, or else those in the text.

        If the answer has used up its tokens, the last call of the server counts as truncated even if it is valid,
        because servers complete truncated arguments (vLLM when streaming, and servers that return arguments as
        objects). Calls in the text are literal, so their end markers show that they are complete.
        """
        if answer.calls:
            calls = [_read(raw) for raw in answer.calls]
            is_cut = used_up or (used_up is None and _is_open(answer.calls[-1], tools))
            return _Received(calls[:-1], calls[-1]) if is_cut else _Received(calls)
        if self._begun:
            start, pieces = next(iter(self._begun.values()))
            return _Received(self._calls, ToolCall(start.id, start.name, {}, raw="".join(pieces)))
        if self._broken is not None:
            return _Received(self._calls, ToolCall("", "", {}, raw=self._broken))
        return _Received(self._calls)


def _read(raw: RawCall) -> ToolCall:
    """Read a call of a server. ``error`` is set if its arguments are not a JSON object; none at all are an empty
    object, and those encoded twice are decoded twice."""
    text = raw.arguments.strip() or "{}"
    try:
        value = read_json(text)
    except ValueError as error:
        return ToolCall.unread(raw.id, raw.name, raw.arguments, str(error))
    if isinstance(value, str):  # some servers encode them twice
        try:
            value = read_json(value)
        except ValueError:
            value = None
    if not isinstance(value, dict):
        return ToolCall.unread(raw.id, raw.name, raw.arguments, "the arguments are not a JSON object")
    return ToolCall(raw.id, raw.name, value, raw=dump_json(value))


def _is_open(call: RawCall, tools: ToolInterface) -> bool:
    """Return True if the arguments of a call are incomplete JSON, so that a part of them may be missing.

    Empty arguments count as incomplete, unless the tool has no parameters.
    """
    if call.arguments.strip():
        return ends_early(call.arguments)
    functions = (tool["function"] for tool in tools.to_openai(closed=True))
    schema: Mapping[str, Any] = next((one["parameters"] for one in functions if one["name"] == call.name), {})
    return bool(schema.get("properties")) or schema.get("additionalProperties") is not False


def _without_arguments(call: ToolCall) -> ToolCall:
    """Return a truncated call without its arguments, so that they cannot be mistaken for complete ones."""
    received = " ".join((call.raw or "").split())[:200]
    problem = f"{CUT}; received: {received}" if received else CUT
    return ToolCall.unread(call.id, call.name, "{}", problem, cut=("",))


def _until(text: str, stop: Sequence[str]) -> str:
    """Return a text up to the first stop string."""
    ends = [text.index(end) for end in stop if end in text]
    return text[: min(ends)] if ends else text
