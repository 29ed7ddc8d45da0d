"""`Model`: a backend with a planner in front. Says what may be written, runs the decoding, types what comes out."""

from __future__ import annotations

import asyncio
import codecs
import json
import threading
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Union

from ..decoding import Decoding, Step, cut_pointers
from ..errors import CancelledError, InvalidArgumentsError, ModelError, ParseError
from ..events import (
    CallEnd,
    Event,
    Finish,
    FinishReason,
    Generation,
    ReasoningDelta,
    TextDelta,
    TokenWritten,
    Usage,
)
from ..grammar import Grammar
from ..messages import Message, ToolCall
from ..params import GenerateParams, JsonMode, OutputParser, ToolInterface
from ..repair import extract_json
from ..validation import violations
from .protocol import Backend, Session

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from ..automaton import Constraint

Prompt = Union[str, Message, Sequence[Message]]

#: How many bound grammars a model keeps.
CACHED_CONSTRAINTS = 64

#: How often an unconstrained model is asked again when its JSON does not validate.
MAX_RETRIES = 2


@dataclass(frozen=True)
class Capabilities:
    """What a model can be held to.

    Attributes:
        logits: its logits are seen, so that every token is constrained.
        json_schema: it takes a JSON Schema (a remote server).
        images: it takes images.
    """

    logits: bool = True
    json_schema: bool = True
    images: bool = False


class Model:
    """A model that writes only what it may. Thread-safe: forward passes take turns.

    Args:
        backend: the loaded model.

    Attributes:
        backend: the loaded model.
        capabilities: what the model can be held to.
    """

    def __init__(self, backend: Backend) -> None:
        self.backend = backend
        self.capabilities = Capabilities()
        self._turn = threading.Lock()
        self._constraints: OrderedDict[Grammar, Constraint] = OrderedDict()
        self._constraints_lock = threading.Lock()

    @property
    def name(self) -> str:
        """The model's name."""
        return self.backend.name

    @property
    def vocabulary(self) -> Any:
        """The exact bytes of every token (`toolgrammar.core.Vocabulary`)."""
        return self.backend.vocabulary

    @property
    def context_window(self) -> int:
        """How many tokens fit in a sequence."""
        return self.backend.context_window

    # -- generating --------------------------------------------------------------------------------------------

    def stream(self, prompt: Prompt, params: GenerateParams | None = None, **overrides: Any) -> Iterator[Event]:
        """Generate, and yield events as they become certain; `Finish` comes last.

        Args:
            prompt: a text (one user message), a message, or a conversation.
            params: how to generate.
            **overrides: fields of `GenerateParams`.

        Raises:
            ToolGrammarError: what was asked for cannot be done; see `GenerateParams` and the error's hint.
        """
        params = _params(params, overrides)
        return self._stream(_conversation(prompt), params, _Record())

    def generate(self, prompt: Prompt, params: GenerateParams | None = None, **overrides: Any) -> Generation:
        """Generate, and return the whole result. Arguments and errors as for `stream`."""
        params = _params(params, overrides)
        record = _Record()
        for _ in self._stream(_conversation(prompt), params, record):
            pass
        return record.generation()

    async def astream(
        self, prompt: Prompt, params: GenerateParams | None = None, **overrides: Any
    ) -> AsyncIterator[Event]:
        """Like `stream`, without blocking the event loop; leaving the loop early stops the model within a step."""
        params = _params(params, overrides)
        async for event in self._in_thread(_conversation(prompt), params, _Record()):
            yield event

    async def agenerate(self, prompt: Prompt, params: GenerateParams | None = None, **overrides: Any) -> Generation:
        """Like `generate`, without blocking the event loop; cancelling the task stops the model within a step."""
        params = _params(params, overrides)
        record = _Record()
        async for _ in self._in_thread(_conversation(prompt), params, record):
            pass
        return record.generation()

    def generate_json(
        self, prompt: Prompt, schema: Any = None, params: GenerateParams | None = None, **overrides: Any
    ) -> Any:
        """Generate JSON that is valid under a schema, and return its value.

        Args:
            prompt: as for `stream`.
            schema: a JSON Schema, a Pydantic model class (an instance is returned), or None for ``json_mode.schema``.
            params: how to generate; ``json_mode`` says how strict to be.
            **overrides: fields of `GenerateParams`.

        Raises:
            InvalidArgumentsError: an unconstrained model did not give valid JSON, also when asked again.
        """
        params = _params(params, overrides)
        mode = params.json_mode or JsonMode()
        if schema is not None:
            mode = replace(mode, schema=schema)
        rules = _schema_of(mode.schema)
        conversation = _conversation(prompt)
        if mode.constrained_decoding:
            generation = self.generate(conversation, params, json_mode=mode)
            return _instance(json.loads(generation.text), mode.schema)
        free = replace(params, json_mode=None)
        for attempt in range(MAX_RETRIES + 1):
            generation = self.generate(conversation, free)
            try:
                value = extract_json(generation.text, repair=mode.repair)
                wrong = list(violations(value, rules))
            except ParseError as error:
                wrong = [error.message]
            if not wrong:
                return _instance(value, mode.schema)
            if not mode.repair or attempt == MAX_RETRIES:
                break
            again = "That is not valid: " + "; ".join(wrong[:5]) + ". Answer with JSON alone that is."
            conversation = (*conversation, generation.message, Message("user", again))
        raise InvalidArgumentsError(
            f"the model's answer is not valid JSON for the schema: {'; '.join(wrong[:3])}",
            hint="use constrained_decoding=True",
        )

    def count_tokens(self, prompt: Prompt, tools: ToolInterface | None = None) -> int:
        """How many tokens a prompt takes, the tools' description included."""
        return len(self._encode_prompt(_conversation(prompt), tools, None))

    # -- planning ----------------------------------------------------------------------------------------------

    def _encode_prompt(self, messages: Sequence[Message], tools: ToolInterface | None, format: str | None) -> list[int]:
        if tools is None or not tools.names:
            return self.backend.encode_prompt(messages)
        return self.backend.encode_prompt(messages, tools.to_openai(), tools.prompt(format or self.backend.tool_format))

    def _plan(self, params: GenerateParams) -> tuple[Grammar, OutputParser | None]:
        """The language of the answer, and what types it."""
        tools = params.tools
        format = params.tool_format or self.backend.tool_format
        if tools is not None and not isinstance(tools, ToolInterface):
            raise ModelError(
                f"tools is a {type(tools).__name__}, not a tool set",
                hint="from toolgrammar.tools import ToolSet; tools=ToolSet.from_any([...])",
            )
        if tools is not None and tools.names and params.tool_choice != "none":
            grammar = tools.grammar(
                format,
                tool_choice=params.tool_choice,
                parallel=params.parallel_tool_calls,
                response_schema=params.response_schema,
            )
            return grammar, tools.parser(format, response_schema=params.response_schema)
        if params.tool_choice not in ("auto", "none"):
            raise ModelError(
                f"tool_choice is {params.tool_choice!r}, and there are no tools",
                hint="give tools, or tool_choice='auto'",
            )
        mode = params.json_mode
        if params.response_schema is not None:
            mode = replace(mode or JsonMode(), schema=params.response_schema)
        if mode is not None and mode.constrained_decoding:
            if mode.grammar is not None:
                return mode.grammar, None
            # A Pydantic class says all its fields: what it does not name is not asked for.
            is_class = hasattr(mode.schema, "model_json_schema")
            grammar = Grammar.from_json_schema(
                _schema_of(mode.schema), whitespace=mode.whitespace, additional_properties=not is_class
            )
            return grammar, None
        if params.grammar is not None:
            return params.grammar, None
        return Grammar.text(min_chars=1), None

    def _bind(self, grammar: Grammar) -> Constraint:
        with self._constraints_lock:
            found = self._constraints.pop(grammar, None)
            if found is None:
                found = grammar.bind(self.backend.vocabulary)
            self._constraints[grammar] = found
            if len(self._constraints) > CACHED_CONSTRAINTS:
                self._constraints.popitem(last=False)
            return found

    def _forward(self, session: Session, ids: Sequence[int]) -> npt.NDArray[np.float32]:
        with self._turn:
            return session.extend(ids)

    # -- running -----------------------------------------------------------------------------------------------

    def _stream(self, messages: Sequence[Message], params: GenerateParams, record: _Record) -> Iterator[Event]:
        grammar, parser = self._plan(params)
        prompt = self._encode_prompt(messages, params.tools, params.tool_format)
        decoding = Decoding(
            self.backend,
            prompt,
            self._bind(grammar).matcher(),
            params,
            lambda session, ids: self._forward(session, ids),
        )
        structured = parser is None and (
            params.json_mode is not None or params.grammar is not None or params.response_schema is not None
        )
        typed = _Typing(parser, () if structured else tuple(params.stop), decoding)
        for step in decoding.steps():
            if params.trace:
                yield TokenWritten(step.token_id, step.data, step.forced, step.choices)
            for event in typed.feed(step):
                record.add(event)
                yield event
        for event in typed.close():
            record.add(event)
            yield event
        is_json = parser is None and (params.json_mode is not None or params.response_schema is not None)
        finish = Finish(
            _reason(decoding, record),
            Usage(
                prompt_tokens=len(prompt),
                completion_tokens=len(decoding.token_ids),
                forced_tokens=decoding.forced_tokens,
                forward_passes=decoding.forward_passes,
            ),
            typed.cut_of_text(record) if is_json or params.response_schema is not None else (),
        )
        record.finish(finish, typed.raw, tuple(decoding.token_ids))
        yield finish

    async def _in_thread(
        self, messages: Sequence[Message], params: GenerateParams, record: _Record
    ) -> AsyncIterator[Event]:
        loop = asyncio.get_running_loop()
        queue: asyncio.Queue[Event | BaseException | None] = asyncio.Queue()
        abandoned = threading.Event()
        asked = params.cancel

        def cancelled() -> bool:
            return abandoned.is_set() or (asked is not None and asked())

        def send(item: Event | BaseException | None) -> None:
            if not abandoned.is_set():
                loop.call_soon_threadsafe(queue.put_nowait, item)

        def work() -> None:
            try:
                for event in self._stream(messages, replace(params, cancel=cancelled), record):
                    send(event)
                send(None)
            except BaseException as error:  # handed to the awaiting side, whatever it is
                try:
                    send(error)
                except RuntimeError:  # the event loop is closed: nobody waits any more
                    return

        worker = loop.run_in_executor(None, work)
        try:
            while True:
                item = await queue.get()
                if item is None:
                    break
                if isinstance(item, BaseException):
                    raise item
                yield item
        finally:
            abandoned.set()
            if not worker.done():
                await asyncio.shield(worker)


class _Record:
    """Collects events into a `Generation`."""

    def __init__(self) -> None:
        self.text: list[str] = []
        self.reasoning: list[str] = []
        self.calls: list[ToolCall] = []
        self._result: Generation | None = None

    def add(self, event: Event) -> None:
        """Take an event."""
        if isinstance(event, TextDelta):
            self.text.append(event.text)
        elif isinstance(event, ReasoningDelta):
            self.reasoning.append(event.text)
        elif isinstance(event, CallEnd):
            self.calls.append(event.call)

    def finish(self, finish: Finish, raw: str, token_ids: tuple[int, ...]) -> None:
        """The generation is over."""
        message = Message(
            "assistant",
            "".join(self.text),
            reasoning="".join(self.reasoning) or None,
            tool_calls=tuple(self.calls),
        )
        self._result = Generation(message, finish.reason, finish.usage, finish.cut, raw, token_ids)

    def generation(self) -> Generation:
        """The whole result."""
        assert self._result is not None, "the stream was not read to its end"
        if self._result.finish_reason == "cancelled":
            raise CancelledError(
                f"the generation was cancelled after {self._result.usage.completion_tokens} tokens",
                hint="what was written so far is in the stream's events",
            )
        return self._result


class _Typing:
    """Turns steps into typed events: UTF-8, stop strings, wire format, and what was cut."""

    def __init__(self, parser: OutputParser | None, stop: tuple[str, ...], decoding: Decoding) -> None:
        self._parser = parser
        self._stop = tuple(word for word in stop if word)
        self._decoding = decoding
        self._characters = codecs.getincrementaldecoder("utf-8")("replace")
        self._held = ""
        self._searched = 0
        self._stopped = False
        self.raw = ""

    def feed(self, step: Step) -> Iterator[Event]:
        """The events of one step."""
        yield from self._read(self._characters.decode(step.data))

    def close(self) -> Iterator[Event]:
        """The events that remain when the text is over."""
        yield from self._read(self._characters.decode(b"", final=True))
        if self._parser is not None and not self._stopped:
            if self._decoding.reason == "cancelled":
                return  # a call that was not finished is not an event
            yield from self._emit(self._parser.close())
        if self._held and not self._stopped:
            yield TextDelta(self._held)
            self._held = ""

    def cut_of_text(self, record: _Record) -> tuple[str, ...]:
        """Pointers of the values of a JSON answer that were closed by force."""
        closed = self._decoding.closed_at
        text = "".join(record.text)
        return () if closed is None or record.calls or not text else cut_pointers(text, self._characters_at(closed))

    def _read(self, text: str) -> Iterator[Event]:
        if not text or self._stopped:
            return
        self.raw += text
        events: list[Event] = [TextDelta(text)] if self._parser is None else list(self._parser.feed(text))
        yield from self._emit(events)

    def _emit(self, events: Sequence[Event]) -> Iterator[Event]:
        for event in events:
            if isinstance(event, TextDelta):
                yield from self._text(event.text)
                if self._stopped:
                    return
                continue
            if self._held:
                yield TextDelta(self._held)
                self._held = ""
            if isinstance(event, CallEnd):
                event = self._name_cut(event)
            yield event

    def _text(self, text: str) -> Iterator[Event]:
        """Free text: hold back what may be the beginning of a stop string."""
        if not self._stop:
            yield TextDelta(text)
            return
        self._held += text
        places = [(self._held.find(word), word) for word in self._stop if word in self._held]
        if places:
            before = self._held[: min(places)[0]]
            self._held = ""
            self._stopped = True
            self._decoding.stop_requested = True
            if before:
                yield TextDelta(before)
            return
        keep = max(
            (size for word in self._stop for size in range(1, len(word)) if self._held.endswith(word[:size])), default=0
        )
        ready = self._held[: len(self._held) - keep]
        self._held = self._held[len(self._held) - keep :]
        if ready:
            yield TextDelta(ready)

    def _name_cut(self, event: CallEnd) -> CallEnd:
        """Say which values of a call were closed by force."""
        call = event.call
        if call.raw is None:
            return event
        start = self.raw.find(call.raw, self._searched)
        if start < 0:
            return event
        self._searched = start + len(call.raw)
        closed = self._decoding.closed_at
        if closed is None:
            return event
        offset = self._characters_at(closed)
        if offset >= start + len(call.raw):
            return event
        return CallEnd(event.index, replace(call, cut=cut_pointers(call.raw, offset - start)))

    def _characters_at(self, count: int) -> int:
        """How many characters of the text the first ``count`` bytes are (an unfinished one does not count)."""
        return len(self.raw.encode("utf-8", "surrogatepass")[:count].decode("utf-8", "ignore"))


def _reason(decoding: Decoding, record: _Record) -> FinishReason:
    if decoding.reason == "stop" and record.calls:
        return "tool_calls"
    return decoding.reason


def _params(params: GenerateParams | None, overrides: dict[str, Any]) -> GenerateParams:
    try:
        params = replace(params or GenerateParams(), **overrides)
    except TypeError:
        known = ", ".join(sorted(GenerateParams.__dataclass_fields__))
        unknown = ", ".join(sorted(set(overrides) - set(GenerateParams.__dataclass_fields__)))
        raise ModelError(f"unknown generation option: {unknown}", hint=f"known ones: {known}") from None
    if isinstance(params.stop, str):
        params = replace(params, stop=(params.stop,))
    if params.max_tokens is not None and params.max_tokens < 1:
        raise ModelError(f"max_tokens is {params.max_tokens}", hint="give at least 1")
    if params.temperature < 0 or not 0 < params.top_p <= 1 or params.top_k < 0 or not 0 <= params.min_p <= 1:
        raise ModelError(
            "a sampling option is out of range", hint="temperature >= 0, 0 < top_p <= 1, top_k >= 0, 0 <= min_p <= 1"
        )
    return params


def _conversation(prompt: Prompt) -> tuple[Message, ...]:
    if isinstance(prompt, str):
        return (Message("user", prompt),)
    if isinstance(prompt, Message):
        return (prompt,)
    messages = tuple(prompt)
    if not messages or not all(isinstance(message, Message) for message in messages):
        raise ModelError(
            "a prompt is a text, a Message, or a non-empty sequence of Message", hint="Message('user', text)"
        )
    return messages


def _schema_of(schema: Any) -> Any:
    if schema is None:
        return True
    maker: Callable[[], Any] | None = getattr(schema, "model_json_schema", None)
    return maker() if callable(maker) else schema


def _instance(value: Any, schema: Any) -> Any:
    check: Callable[[Any], Any] | None = getattr(schema, "model_validate", None)
    return check(value) if callable(check) else value
