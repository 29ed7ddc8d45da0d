"""`Model`: a backend with a planner in front. Says what may be written, runs the decoding, types what comes out."""

from __future__ import annotations

import asyncio
import inspect
import json
import threading
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Generator, Iterator, Sequence
from contextlib import aclosing, closing
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from ..constraint_cache import ConstraintCache
from ..conversation.events import Event, Finish, Generation, TextDelta, TokenWritten, Usage
from ..conversation.messages import Message
from ..errors import CancelledError, InvalidArgumentsError, ModelError
from ..generation.backend import Backend, BatchBackend
from ..generation.driver import Released, Turn, alone, together
from ..generation.json_output import check_text, converted, judge, summed, with_instructions
from ..generation.loop import DEFAULT_BUDGET, Decoding, Forward
from ..generation.output import Output
from ..generation.params import GenerateParams, JsonMode, ToolInterface
from ..generation.plan import Plan, Planner, Prompt, conversation_of, json_params, resolve_params, schema_of
from ..generation.retokenise import Speller
from ..grammar import Grammar
from ..logs import logger_of
from .reasoning import has_begun, markers_of

if TYPE_CHECKING:
    from typing_extensions import Self

    from ..generation.driver import Logits, Work
    from ..masks import Constraint
    from ..vocabulary.vocabulary import Vocabulary

#: How often a model is asked again when its JSON is not valid and nothing could hold it to that.
MAX_RETRIES = 2

_LOG = logger_of("models")

_NEWLINES = Grammar.from_regex(r"\n{0,2}")

#: How many sequences of a batch are written at the same time.
MAX_ROWS = 32


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
    """A model that writes only what it may. Thread-safe: forward passes take turns, so no request waits for another
    to end, nor for a stream that nobody reads.

    Args:
        backend: the loaded model.
        default_max_tokens: the token budget of requests that give none.
        cache: where compiled grammars are kept; models may share one. None: one of its own, of 256 MiB at most.

    Attributes:
        backend: the loaded model.
        cache: where compiled grammars are kept.
        capabilities: what the model can be held to.
    """

    def __init__(
        self, backend: Backend, *, default_max_tokens: int = DEFAULT_BUDGET, cache: ConstraintCache | None = None
    ) -> None:
        self.backend = backend
        self.capabilities = Capabilities()
        self._default_max_tokens = default_max_tokens
        self._turn = Turn()
        self._planner = Planner()
        self._speller = Speller(backend)
        self.cache = ConstraintCache() if cache is None else cache
        self._owns_cache = cache is None

    def close(self) -> None:
        """Free the backend: weights, sequences and those that are kept, and the grammars unless their cache is shared.

        Waits for the forward pass that is running. What is still being generated, in streams too, ends with an error
        at its next step, and so does whatever is asked afterwards. Closing twice is allowed; ``with load_model(...) as
        model`` closes at the end.
        """
        self._turn.close()
        close: Callable[[], None] | None = getattr(self.backend, "close", None)
        if close is not None:
            close()
        if self._owns_cache:
            self.cache.clear()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __copy__(self) -> Model:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Model:
        # Agent frameworks copy their configuration, models included: weights need not be doubled.
        return self

    @property
    def name(self) -> str:
        """The model's name."""
        return self.backend.name

    @property
    def vocabulary(self) -> Vocabulary:
        """The exact bytes of every token."""
        return self.backend.vocabulary

    @property
    def context_window(self) -> int:
        """How many tokens fit in a sequence."""
        return self.backend.context_window

    # -- generating --------------------------------------------------------------------------------------------

    def stream(self, prompt: Prompt, params: GenerateParams | None = None, **overrides: Any) -> Iterator[Event]:
        """Generate, and yield events as they become certain; `Finish` comes last.

        Without ``json_mode.constrained_decoding`` nothing is certain before the answer was validated: then the text
        comes in one piece.

        Args:
            prompt: a text (one user message), a message, or a conversation.
            params: how to generate.
            **overrides: fields of `GenerateParams`.

        Raises:
            ToolGrammarError: what was asked for cannot be done; see `GenerateParams` and the error's hint.
        """
        params = resolve_params(params, overrides)
        return self._events(conversation_of(prompt), params, [])

    def generate_batch(
        self,
        prompts: Sequence[Prompt],
        params: GenerateParams | Sequence[GenerateParams] | None = None,
        *,
        return_errors: bool = False,
        max_rows: int = MAX_ROWS,
        **overrides: Any,
    ) -> list[Any]:
        """Generate for many prompts, each with its own grammar, and return the whole results in order.

        A backend that can run many sequences at once (`BatchBackend`) does so in one forward pass a step; any other is
        driven one prompt after another.

        Args:
            prompts: as for `stream`.
            params: how to generate; one for all, or one for each prompt.
            return_errors: an error of one prompt takes its place in the list; else the first is raised, at the end.
            max_rows: how many sequences are written at the same time.
            **overrides: fields of `GenerateParams`, for all.

        Returns:
            A `Generation` for each prompt, or with ``return_errors`` a `ToolGrammarError` (or what else went wrong).

        Raises:
            ToolGrammarError: as for `generate`.

        Law: each result is that of `generate` alone, up to how the backend rounds.
        """
        return self._batch(*_requests(prompts, params, overrides, max_rows), return_errors, max_rows)

    async def agenerate_batch(
        self,
        prompts: Sequence[Prompt],
        params: GenerateParams | Sequence[GenerateParams] | None = None,
        *,
        return_errors: bool = False,
        max_rows: int = MAX_ROWS,
        **overrides: Any,
    ) -> list[Any]:
        """Like `generate_batch`, without blocking the event loop; cancelling the task stops all within a step."""
        conversations, each = _requests(prompts, params, overrides, max_rows)
        abandoned = threading.Event()
        each = [replace(one, cancel=_either(abandoned, one.cancel)) for one in each]
        loop = asyncio.get_running_loop()
        worker = loop.run_in_executor(None, self._batch, conversations, each, return_errors, max_rows)
        try:
            return await asyncio.shield(worker)
        except asyncio.CancelledError:
            abandoned.set()
            await asyncio.wait([worker])
            worker.exception()  # that it was cancelled, which nobody waits for
            raise

    def _batch(
        self,
        conversations: Sequence[Sequence[Message]],
        params: Sequence[GenerateParams],
        return_errors: bool,
        max_rows: int,
    ) -> list[Any]:
        """Many generations, together where the backend can."""
        results: list[list[Generation]] = [[] for _ in conversations]
        works = [self._work(*request) for request in zip(conversations, params, results, strict=True)]
        if isinstance(self.backend, BatchBackend):
            with self._turn:
                opened = self.backend.start_batch()
            with closing(opened) as batch:
                errors = together(works, batch, self._turn, max_rows, lambda number, event: None)
        else:
            errors = [self._exhaust(work) for work in works]
        outcomes = [_outcome(error, result) for error, result in zip(errors, results, strict=True)]
        for outcome in outcomes:
            if isinstance(outcome, Exception) and not return_errors:
                raise outcome
        return outcomes

    def generate(self, prompt: Prompt, params: GenerateParams | None = None, **overrides: Any) -> Generation:
        """Generate, and return the whole result. Arguments and errors as for `stream`.

        Raises:
            CancelledError: ``params.cancel`` said so.
        """
        return self._complete(conversation_of(prompt), resolve_params(params, overrides))

    async def astream(
        self, prompt: Prompt, params: GenerateParams | None = None, **overrides: Any
    ) -> AsyncIterator[Event]:
        """Like `stream`, without blocking the event loop; leaving the loop early stops the model within a step."""
        params = resolve_params(params, overrides)
        async with aclosing(self._in_thread(conversation_of(prompt), params, [])) as events:
            async for event in events:
                yield event

    async def agenerate(self, prompt: Prompt, params: GenerateParams | None = None, **overrides: Any) -> Generation:
        """Like `generate`, without blocking the event loop; cancelling the task stops the model within a step."""
        params = resolve_params(params, overrides)
        result: list[Generation] = []
        async with aclosing(self._in_thread(conversation_of(prompt), params, result)) as events:
            async for _ in events:
                pass
        return _finished(result)

    def generate_json(
        self, prompt: Prompt, schema: Any = None, params: GenerateParams | None = None, **overrides: Any
    ) -> Any:
        """Generate JSON that is valid under a schema, and return its value.

        Where the token budget is short the value is closed validly, as everywhere; ``on_budget="error"`` refuses that,
        and ``generate(..., json_mode=...)`` tells which values were cut.

        Args:
            prompt: as for `stream`.
            schema: a JSON Schema, a Pydantic model class (an instance is returned), or None for ``json_mode.schema``.
            params: how to generate; ``json_mode`` says how strict to be.
            **overrides: fields of `GenerateParams`.

        Raises:
            InvalidArgumentsError: the answer was not valid, also when the model was asked again: of a model that was
                not constrained, or by a validator of the Pydantic class that its JSON Schema does not show.
        """
        asked, mode = json_params(resolve_params(params, overrides), schema)
        found: list[Any] = []

        def work() -> Work:
            value, _ = yield from self._ask_json(conversation_of(prompt), asked, mode, convert=True)
            found.append(value)

        for _ in alone(work(), self.backend.start, self._turn):
            pass
        return found[0]

    def count_tokens(self, prompt: Prompt, tools: ToolInterface | None = None) -> int:
        """How many tokens a prompt takes, the tools' description included."""
        return len(self._encode_prompt(conversation_of(prompt), tools))

    # -- running -----------------------------------------------------------------------------------------------

    def _tool_format(self, tools: ToolInterface | None, asked: str | None) -> tuple[Any, bool]:
        """The format of calls, and whether it is the one that the model's own template describes."""
        if not isinstance(tools, ToolInterface):
            return asked, True  # there are none, or the planner says what is wrong with them
        template = getattr(self.backend, "chat_template", None) or ""
        special = self.vocabulary.special
        own = tools.wire_format(self.backend.tool_format, template, special)
        chosen = own if asked is None else tools.wire_format(asked, template, special)
        return chosen, chosen == own

    def _encode_prompt(
        self,
        messages: Sequence[Message],
        tools: ToolInterface | None,
        tool_format: str | None = None,
        thinking: object = None,
    ) -> list[int]:
        self._turn.check()
        options: dict[str, Any] = {}
        if isinstance(thinking, int) and "thinking" in inspect.signature(self.backend.encode_prompt).parameters:
            options["thinking"] = thinking is not False
        if tools is None or not tools.names:
            return self.backend.encode_prompt(messages, **options)
        # A template describes tools in the model's own format; for another one, only our text will do.
        wire, is_own = self._tool_format(tools, tool_format)
        template = getattr(self.backend, "chat_template", None)
        if template is not None and (not is_own or (template and "tool_calls" not in template)):
            messages = tools.render_history(messages, wire)
        return self.backend.encode_prompt(messages, tools.to_openai() if is_own else [], tools.prompt(wire), **options)

    def _bind(self, grammar: Grammar) -> Constraint:
        return self.cache.bind(grammar, self.backend.vocabulary)

    def _exhaust(self, work: Work) -> Exception | None:
        """Run one generation to its end; the error that ended it."""
        try:
            for _ in alone(work, self.backend.start, self._turn):
                pass
        except Exception as error:
            return error
        return None

    def _complete(self, messages: Sequence[Message], params: GenerateParams) -> Generation:
        result: list[Generation] = []
        for _ in self._events(messages, params, result):
            pass
        return _finished(result)

    def _events(self, messages: Sequence[Message], params: GenerateParams, result: list[Generation]) -> Iterator[Event]:
        """The events of an answer; puts the whole of it into ``result``."""
        return alone(self._work(messages, params, result), self.backend.start, self._turn)

    def _work(self, messages: Sequence[Message], params: GenerateParams, result: list[Generation]) -> Work:
        """One answer, for a driver."""
        plan = self._planner.plan(params, self._tool_format(params.tools, params.tool_format)[0])
        mode = params.json_mode
        if mode is not None and not mode.constrained_decoding:
            _, generation = yield from self._ask_json(messages, params, mode, convert=False)
            result.append(generation)
            yield TextDelta(generation.text)
            yield Finish(generation.finish_reason, generation.usage)
            return
        yield from self._write(messages, params, plan, result)

    def _write(
        self,
        messages: Sequence[Message],
        params: GenerateParams,
        plan: Plan,
        result: list[Generation],
    ) -> Work:
        if params.max_tokens is None:
            params = replace(params, max_tokens=self._default_max_tokens)
        prompt = self._encode_prompt(messages, params.tools, params.tool_format, params.thinking)
        decoding, around = self._decoding(prompt, params, plan)
        output = Output(decoding, plan.parser, stop=plan.stop, is_json=plan.is_json, reasoning=around)
        logits = None
        with closing(decoding.steps()) as steps:
            while True:
                try:
                    step = steps.send(logits)
                except StopIteration:
                    break
                logits = None
                if isinstance(step, Forward):
                    logits = yield step
                    continue
                if params.trace:
                    yield TokenWritten(step.token_id, step.data, step.forced, step.choices)
                yield from output.feed(step)
        yield Released()
        yield from output.close()
        finish = output.finish(len(prompt))
        generation = output.generation(finish)
        if plan.check is not None and finish.reason != "cancelled":
            check_text(generation.text, plan.check)
        forced = len(generation.cut) + sum(len(call.cut) for call in generation.tool_calls)
        if forced:
            _LOG.warning(
                "the token budget closed an answer of %s after %d tokens; values cut: %d",
                self.name,
                finish.usage.completion_tokens,
                forced,
            )
        result.append(generation)
        yield finish

    def _decoding(self, prompt: list[int], params: GenerateParams, plan: Plan) -> tuple[Decoding, tuple[str, str]]:
        """The generation after a prompt, and the text before and behind its reasoning."""
        markers = markers_of(params.thinking_markers, self.vocabulary)
        begun = markers is not None and has_begun(prompt, markers, self.vocabulary)
        chooses = params.thinking == "auto" and markers is not None and not begun
        wanted = isinstance(params.thinking, int) and params.thinking is not False
        if wanted and markers is None:
            raise ModelError(
                "the vocabulary has no markers of reasoning",
                hint='leave thinking out, or give thinking_markers=("<think>", "</think>")',
            )
        if params.prefix and (begun or wanted or chooses):
            raise ModelError("prefix and thinking exclude each other", hint="put the reasoning into the prefix")
        if markers is None or not (begun or wanted or chooses):
            ids = self.backend.encode(params.prefix) if params.prefix else []
            matcher = self._bind(plan.grammar).matcher()
            decoding = Decoding(self.backend, [*prompt, *ids], matcher, params, heal=len(ids), speller=self._speller)
            return decoding, ("", "")
        budget = None if params.thinking is True or not isinstance(params.thinking, int) else params.thinking
        special = self.vocabulary.special
        # Between reasoning and answer models write newlines; they are neither's.
        answer = self._bind(_NEWLINES + plan.grammar).matcher()
        reasoning = self._bind(markers.grammar(special, begun=begun)).matcher()
        decoding = Decoding(
            self.backend, prompt, answer, params, reasoning=reasoning, reasoning_budget=budget, speller=self._speller
        )
        if chooses:
            decoding.instead = self._bind(plan.grammar).matcher()
            decoding.marker = markers.size(special)
        return decoding, (markers.text_before(special, begun=begun), markers.text_behind(special))

    def _ask_json(
        self, messages: Sequence[Message], params: GenerateParams, mode: JsonMode, *, convert: bool
    ) -> Generator[Forward | Released, Logits | None, tuple[Any, Generation]]:
        """A valid value and how it was written; asks again, a bounded number of times, while there is none.

        With ``convert``, an instance of the Pydantic class that the schema is.
        """
        rules = schema_of(mode.schema)
        if not mode.constrained_decoding:
            params = replace(params, json_mode=None)
            messages = with_instructions(messages, rules)
        elif not mode.strict:
            # What the grammar does not hold is validated here, so that the model can be asked again.
            plan = self._planner.plan(params, None)
            params = replace(params, json_mode=replace(mode, schema=None, grammar=plan.grammar))
        usage = Usage()
        wrong: list[str] = []
        tries = MAX_RETRIES + 1 if mode.repair else 1
        for number in range(1, tries + 1):
            generation = yield from self._silent(messages, params)
            usage = summed(usage, generation.usage)
            value, wrong = judge(generation, mode, rules)
            if not wrong and convert:
                value, wrong = converted(value, mode.schema)
            if not wrong:
                text = generation.text if mode.constrained_decoding else json.dumps(value, ensure_ascii=False)
                message = replace(generation.message, content=text)
                return value, replace(generation, message=message, finish_reason="stop", usage=usage)
            _LOG.info("answer %d of at most %d of %s is not valid; problems: %d", number, tries, self.name, len(wrong))
            _LOG.debug("problems of answer %d: %s", number, wrong)
            again = "That is not valid: " + "; ".join(wrong[:5]) + ". Answer with JSON alone that is."
            messages = (*messages, generation.message, Message("user", again))
        raise InvalidArgumentsError(
            f"the model's answer is not valid JSON for the schema: {'; '.join(wrong[:3])}",
            hint="use constrained_decoding=True, and a schema that says all that a value must satisfy",
        )

    def _silent(
        self, messages: Sequence[Message], params: GenerateParams
    ) -> Generator[Forward | Released, Logits | None, Generation]:
        """One answer without its events."""
        result: list[Generation] = []
        logits = None
        with closing(self._work(messages, params, result)) as work:
            while True:
                try:
                    item = work.send(logits)
                except StopIteration:
                    return _finished(result)
                logits = (yield item) if isinstance(item, (Forward, Released)) else None

    async def _in_thread(
        self, messages: Sequence[Message], params: GenerateParams, result: list[Generation]
    ) -> AsyncGenerator[Event, None]:
        loop = asyncio.get_running_loop()
        queue: asyncio.Queue[Event | BaseException | None] = asyncio.Queue()
        abandoned = threading.Event()
        cancelled = _either(abandoned, params.cancel)

        def send(item: Event | BaseException | None) -> None:
            if not abandoned.is_set():
                loop.call_soon_threadsafe(queue.put_nowait, item)

        def work() -> None:
            try:
                for event in self._events(messages, replace(params, cancel=cancelled), result):
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


def _requests(
    prompts: Sequence[Prompt],
    params: GenerateParams | Sequence[GenerateParams] | None,
    overrides: dict[str, Any],
    max_rows: int,
) -> tuple[list[tuple[Message, ...]], list[GenerateParams]]:
    """The conversations of a batch and how each is answered.

    Raises:
        ModelError: they are no batch, or an option is wrong.
    """
    if isinstance(prompts, (str, Message)):
        raise ModelError("a batch is a sequence of prompts", hint="generate_batch([prompt])")
    if max_rows < 1:
        raise ModelError(f"max_rows is {max_rows}", hint="give at least 1")
    each = [params] * len(prompts) if params is None or isinstance(params, GenerateParams) else list(params)
    if len(each) != len(prompts):
        raise ModelError(f"{len(prompts)} prompts, and {len(each)} params", hint="one for all, or one for each")
    return [conversation_of(prompt) for prompt in prompts], [resolve_params(one, overrides) for one in each]


def _either(abandoned: threading.Event, asked: Callable[[], bool] | None) -> Callable[[], bool]:
    """Whether nobody waits any more, or the caller says that it is enough."""
    return lambda: abandoned.is_set() or (asked is not None and asked())


def _finished(result: list[Generation]) -> Generation:
    """The generation that a stream which was read to its end has left."""
    (generation,) = result
    if generation.finish_reason == "cancelled":
        raise CancelledError(
            f"the generation was cancelled after {generation.usage.completion_tokens} tokens",
            hint="what was written so far is in the stream's events",
        )
    return generation


def _outcome(error: Exception | None, result: list[Generation]) -> Generation | Exception:
    """What a prompt of a batch came to."""
    if error is not None:
        return error
    try:
        return _finished(result)
    except CancelledError as cancelled:
        return cancelled
