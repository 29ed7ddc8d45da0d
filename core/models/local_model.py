"""`LocalModel`: a model with visible logits, which writes only valid tokens."""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import AsyncGenerator, Callable, Generator, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, TypeVar

from ..basics.forks import shared_lock
from ..conversation.events import Finish, Generation, TextDelta
from ..conversation.messages import ImagePart, Message
from ..errors import ModelError
from ..generation.backend import Backend, BatchBackend
from ..generation.deadline import Deadline
from ..generation.driver import ForwardLock, Item, run_one, watched
from ..generation.insertions import Insertions
from ..generation.json_output import ask_until_valid, with_instructions
from ..generation.params import GenerateParams, ToolInterface, ToolsInPrompt
from ..generation.plan import (
    Plan,
    Planner,
    Prompt,
    conversation_of,
    may_be_empty,
    resolve_params,
    schema_of_mode,
    shown_schema,
    without_calls,
)
from ..generation.reasoning import DEFAULT_BUDGET
from ..generation.scheduler import MAX_ROWS, MAX_TOKENS, Scheduler
from ..generation.write import Writer, silently
from ..grammar.constraint_cache import ConstraintCache
from ..masks.warming import WARM_SECONDS
from .history import with_declarations
from .images import images_after_results, picture_of
from .model import LEAST_AUTO_BYTES, Capabilities, Model
from .reasoning import plan_reasoning
from .requests import Request, cancellable, finished, outcome_of
from .scoring import Choice, Score, Scorer, choice_of
from .template_shape import message_shape

if TYPE_CHECKING:
    from ..generation.driver import Logits, Released, Work
    from ..generation.token_sequence import Forward
    from ..vocabulary.vocabulary import Vocabulary

T = TypeVar("T")


class LocalModel(Model):
    """A model with visible logits: every token is chosen under the grammar of the request.

    No request waits for the end of another one, or for an abandoned stream. Concurrent requests share forward passes if
    the backend is a `BatchBackend`; else their forward passes alternate.

    Args:
        backend: the loaded model.
        default_max_tokens: the default token budget of requests.
        cache: the cache of compiled grammars, which models may share. None: a new one of at most 256 MiB.
        warm_seconds: maximum time of `Constraint.warm` while a prompt is read; 0: no warming.
        max_rows: maximum number of concurrent sequences that share forward passes; other requests wait, first come,
            first served. 1: no shared forward passes.
        max_running_tokens: maximum number of tokens of all these sequences; a single one may have more. None: the
            ``capacity`` of the backend if it has one, else 65,536, or the context window if that is more.

    Attributes:
        backend: the loaded model.
        cache: the cache of compiled grammars.
        capabilities: logits, JSON Schema, images.
    """

    def __init__(
        self,
        backend: Backend,
        *,
        default_max_tokens: int = DEFAULT_BUDGET,
        cache: ConstraintCache | None = None,
        warm_seconds: float = WARM_SECONDS,
        max_rows: int = MAX_ROWS,
        max_running_tokens: int | None = None,
    ) -> None:
        self.backend = backend
        self.capabilities = Capabilities(images=getattr(backend, "sees", False))
        self.cache = ConstraintCache() if cache is None else cache
        self._owns_cache = cache is None
        self._default_max_tokens = default_max_tokens
        self._lock = ForwardLock()
        self._max_rows = max_rows
        capacity = getattr(backend, "capacity", None)
        self._max_running_tokens = max_running_tokens or capacity or max(MAX_TOKENS, backend.context_window)
        self._scheduler: Scheduler | None = None
        self._is_scheduled: bool | None = None  # None: unknown
        # Held while it is decided if there is a scheduler.
        self._scheduler_lock = shared_lock(self, "_scheduler_lock", threading.Lock())
        self._planner = Planner()
        self._writer = Writer(
            backend,
            lambda grammar, values: self.cache.bind(grammar, backend.vocabulary).matcher(values),
            warm_seconds,
        )

    def close(self) -> None:
        """Free the backend, its sequences, and the grammars unless their cache is shared.

        Waits for the running forward pass. Unfinished generations and streams end with an error at their next step, and
        later requests raise an error. Closing twice is allowed; ``with load_model(...) as
        model`` closes at the end.
        """
        self._lock.close()
        self.backend.close()
        if self._owns_cache:
            self.cache.clear()

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
        """Number of tokens that fit in a sequence."""
        return self.backend.context_window

    def require_image(self, image: ImagePart, subject: str) -> None:
        """Check that an image can be read. An address that the model fetches itself is not read.

        Args:
            image: the image.
            subject: the image in words, for errors.

        Raises:
            MissingDependencyError: Pillow is not installed.
            ModelError: the image is an address, cannot be decoded, or is too large.
        """
        if image.data is not None or getattr(self.backend, "fetch_image", None) is None:
            picture_of(image.data, subject)

    def encode(self, text: str) -> list[int]:
        """Return the tokenizer's ids of a text; names of control tokens are read as text."""
        return self.backend.encode(text)

    def count_tokens(self, prompt: Prompt, tools: Any = None, tools_in_prompt: ToolsInPrompt = "schemas") -> int:
        """Return the number of tokens of a prompt, including what it has of the tools."""
        params = resolve_params(None, {"tools": tools, "tools_in_prompt": tools_in_prompt})
        messages = conversation_of(prompt)
        params = without_calls(params, messages)
        return len(self._encode_prompt(messages, params, self._wire(params)))

    # -- probabilities of whole texts --------------------------------------------------------------------------

    def score(self, prompt: Prompt, text: str) -> Score:
        """Return the probability that the model answers with exactly this text.

        Args:
            prompt: as for `stream`.
            text: the answer; control tokens in it are read as text.

        Raises:
            ModelError: it is not a string.
            ContextOverflowError: prompt and text do not fit in the context window.
        """
        if not isinstance(text, str):
            raise ModelError(f"the text to score is {text!r}", hint="give a str")
        return self._scorer(prompt).scores([text])[text]

    def choose(
        self, prompt: Prompt, options: Sequence[str], *, temperature: float = 0.0, seed: int | None = None
    ) -> Choice:
        """Choose one of several texts by the probabilities of the whole texts.

        Under a grammar of the same texts, the model chooses token by token, so a likely first token may lead to an
        unlikely text. Here each text is scored to its end.

        Args:
            prompt: as for `stream`.
            options: the texts, distinct.
            temperature: 0: take the likeliest; else draw one by the probabilities.
            seed: the seed of the draw.

        Raises:
            ModelError: there are no options, they are not distinct strings, or the temperature or seed has a wrong
                value.
            ContextOverflowError: prompt and text do not fit in the context window.

        Law: the probabilities are the products of the probabilities of each text's tokens and its end, normalised.
        """
        is_list = isinstance(options, Iterable) and not isinstance(options, str)
        texts = list(options) if is_list else []
        are_texts = all(isinstance(text, str) for text in texts)
        if not is_list or not are_texts or len(set(texts)) < len(texts):
            raise ModelError("the options must be a list of distinct strings", hint='for example ["yes", "no"]')
        resolve_params(None, {"temperature": temperature, "seed": seed})
        scorer = self._scorer(prompt)
        return choice_of(scorer.scores(texts), scorer.forward_passes, temperature, seed)

    def _scorer(self, prompt: Prompt, params: GenerateParams | None = None) -> Scorer:
        messages = conversation_of(prompt)
        params = without_calls(params or GenerateParams(), messages)
        return Scorer(self.backend, self._lock, self._encode_prompt(messages, params, self._wire(params)))

    # -- running -----------------------------------------------------------------------------------------------

    @property
    def scheduler(self) -> Scheduler | None:
        """The scheduler of shared forward passes; None if there is none, or in its own thread."""
        with self._scheduler_lock:
            if self._is_scheduled is None:
                backend = self.backend
                with self._lock:
                    self._is_scheduled = (
                        self._max_rows > 1 and isinstance(backend, BatchBackend) and backend.can_batch()
                    )
                if self._is_scheduled and isinstance(backend, BatchBackend):
                    self._scheduler = Scheduler(backend, self._lock, self._max_rows, self._max_running_tokens)
        scheduler = self._scheduler
        # A validator or callback of a request may call the model in this thread, which must not wait for itself.
        return None if scheduler is None or scheduler.is_current_thread else scheduler

    def _items(self, request: Request) -> Generator[Item, None, None]:
        """Yield the items of an answer: by the scheduler, which runs the forward passes in its own thread, if there is
        one, else in this thread. A caller that stops early abandons the request."""
        work = self._work(request)
        scheduler = self.scheduler
        if scheduler is None:
            yield from run_one(work, self.backend.start, self._lock)
            return
        queue: SimpleQueue[Item | BaseException | None] = SimpleQueue()  # None: the answer is complete
        abandoned = threading.Event()
        try:
            scheduler.submit([(work, queue.put, abandoned)])
            while (item := queue.get()) is not None:
                if isinstance(item, BaseException):
                    raise item
                yield item
        finally:
            item = None  # an error that was raised here refers to this frame: its memory would wait for the collector
            abandoned.set()

    async def _aitems(self, request: Request) -> AsyncGenerator[Item, None]:
        """Yield the items of an answer without blocking the event loop: a thread of its own begins the work, since even
        planning takes long, and items come back through a queue. A caller that stops early abandons the request."""
        loop = asyncio.get_running_loop()
        queue: asyncio.Queue[Item | BaseException | None] = asyncio.Queue()  # None: the answer is complete
        abandoned = threading.Event()
        request = cancellable(request, abandoned)

        def send(item: Item | BaseException | None) -> None:
            if not abandoned.is_set():
                loop.call_soon_threadsafe(queue.put_nowait, item)

        def work() -> None:
            try:
                scheduler = self.scheduler
                if scheduler is not None:
                    scheduler.submit([(self._work(request), send, abandoned)])
                    return
                for item in self._items(request):
                    send(item)
                send(None)
            except BaseException as error:  # passed to the awaiting side
                try:
                    send(error)
                except RuntimeError:  # the event loop is closed: nobody waits
                    return

        loop.run_in_executor(None, work)
        try:
            while True:
                item = await queue.get()
                if item is None:
                    break
                if isinstance(item, BaseException):
                    raise item
                yield item
        finally:
            # Nothing is awaited: an event loop that ends closes this generator and those around it at the same time,
            # and two may not be inside `aclose` of one.
            item = None  # as in `_items`
            abandoned.set()

    def _batch(self, requests: Sequence[Request], max_rows: int) -> list[Generation | Exception]:
        """Return the generations of requests in order, or the exceptions that ended them: with a scheduler, at most
        ``max_rows`` at once, else one after the other."""
        wholes: dict[int, Generation] = {}

        def keep(number: int, item: Item) -> None:
            if isinstance(item, Generation):
                wholes[number] = item

        works = [self._work(request) for request in requests]
        scheduler = self.scheduler
        if scheduler is None:
            errors = [self._exhaust(work, number, keep) for number, work in enumerate(works)]
        else:
            errors = _run_together(scheduler, works, max_rows, keep)
        return [outcome_of(errors[number], wholes.get(number), request) for number, request in enumerate(requests)]

    def _exhaust(self, work: Work, number: int, keep: Callable[[int, Item], None]) -> Exception | None:
        """Run one generation to its end; return the error that ended it."""
        try:
            for item in run_one(work, self.backend.start, self._lock):
                keep(number, item)
        except Exception as error:
            return error
        return None

    # -- plan, decode, output ----------------------------------------------------------------------------------

    def _work(self, request: Request) -> Work:
        """Plan a request, and write its answer; a long step ends early if the request is over."""
        deadline = Deadline.after(request.params.timeout)
        yield from watched(self._written(request, deadline), request.params.cancel, deadline)

    def _written(self, request: Request, deadline: Deadline) -> Work:
        """Plan a request, and write its answer; JSON that a grammar does not enforce completely is retried until
        valid."""
        params, mode = without_calls(request.params, request.messages), request.params.json_mode
        wire = self._wire(params)
        if mode is None or (mode.constrained_decoding and not request.convert):
            yield from self._writer.write(self._plan(request.messages, params, wire), deadline)
            return
        # Unconstrained JSON may have members that a class ignores.
        rules = schema_of_mode(replace(mode, additional_properties=True))
        first = request.messages
        if not mode.constrained_decoding:
            shown = shown_schema(mode.schema, additional_properties=mode.additional_properties)
            first = with_instructions(first, shown)
        plan = replace(self._plan(first, params, wire), check=None)  # `ask_until_valid` checks

        def write(messages: Sequence[Message]) -> Generator[Forward | Released, Logits | None, Generation]:
            """Write an answer to a conversation: the first one, or one that ends with what was wrong before."""
            prompt = plan.prompt if messages is first else tuple(self._encode_prompt(messages, params, wire))
            whole = yield from silently(self._writer.write(replace(plan, prompt=prompt), deadline))
            return finished(whole)

        whole = yield from ask_until_valid(write, first, mode, rules, name=self.name, convert=request.convert)
        yield TextDelta(whole.text)
        facts = {name: getattr(whole, name) for name in ("trace", "choices", "masses", "repeated")}
        yield Finish(whole.finish_reason, whole.usage, **facts)
        yield whole

    def _plan(self, messages: Sequence[Message], params: GenerateParams, wire: _Wire) -> Plan:
        """Return the plan of an answer, with its prompt and reasoning."""
        if params.max_tokens is None:
            params = replace(params, max_tokens=self._default_max_tokens)
        plan = self._planner.plan(params, wire.format, empty=may_be_empty(params, messages))
        prompt = tuple(self._encode_prompt(messages, params, wire))
        return replace(
            plan,
            params=params,
            prompt=prompt,
            insertions=self._insertions(messages, params, wire, plan),
            prefix=tuple(self.backend.encode(params.prefix)) if params.prefix else (),
            reasoning=plan_reasoning(params, prompt, self.vocabulary, self._reasoning_ends(params, wire)),
        )

    @staticmethod
    def _reasoning_ends(params: GenerateParams, wire: _Wire) -> tuple[str, ...]:
        """Return the markers of calls that end the reasoning."""
        calls = params.tools is not None and params.tools.names and params.tool_choice != "none"
        return getattr(wire.format, "reasoning_ends", ()) if calls else ()

    def _wire(self, params: GenerateParams) -> _Wire:
        """Return the wire format of a request's tool calls: that of the request, else the model's own (of the backend,
        or of the chat template), else the default one."""
        tools = params.tools
        if not isinstance(tools, ToolInterface):
            return _Wire(params.tool_format)  # there are no tools, or the planner raises an error for them
        template, special = self.backend.chat_template or "", self.vocabulary.special
        name = self.backend.tool_format
        own = tools.shown_format(template, special) if name is None else tools.wire_format(name, template, special)
        if params.tool_format is None and own is not None:
            return _Wire(own)
        chosen = tools.wire_format(params.tool_format, template, special)
        return _Wire(chosen, chosen == own or not template)

    def _brief(self, params: GenerateParams) -> frozenset[str]:
        """Return the names of the tools of which the prompt has only the name and one line."""
        if params.tools is None:
            return frozenset()
        size = max(LEAST_AUTO_BYTES, self.context_window // 2)
        names: frozenset[str] = params.tools.brief_names(params.tools_in_prompt, size)
        return names

    def _insertions(
        self, messages: Sequence[Message], params: GenerateParams, wire: _Wire, plan: Plan
    ) -> Insertions | None:
        """Return what is needed to insert the declaration of a tool when the model names it: the tools of which the
        prompt has only names, without those that the conversation has called. None if there is nothing to insert."""
        names = self._brief(params) - {call.name for message in messages for call in message.tool_calls}
        if not names or plan.make_parser is None or params.tool_choice == "none":
            return None
        make_parser = partial(plan.make_parser, names_only=True)
        return Insertions(names, make_parser, lambda called: self._encode_prompt(messages, params, wire, called))

    def _encode_prompt(
        self, messages: Sequence[Message], params: GenerateParams, wire: _Wire, called: Sequence[str] = ()
    ) -> list[int]:
        """Return the token ids of a prompt.

        Args:
            messages: the conversation.
            params: the options.
            wire: the wire format of calls.
            called: names of tools that the answer has called, of which the prompt has the declarations.
        """
        self._lock.check()
        backend, tools = self.backend, params.tools
        if self.capabilities.images:
            messages = images_after_results(messages)
        thinks = isinstance(params.thinking, int) and backend.takes_thinking
        options: Any = {"thinking": params.thinking is not False} if thinks else {}
        if tools is None:
            return backend.encode_prompt(messages, **options)
        brief = self._brief(params)
        if brief:
            messages = with_declarations(messages, tools, brief, called)
        # A chat template describes tools in the model's own format; another format needs our description.
        template = backend.chat_template
        if template is not None and (not wire.is_own or (template and not message_shape(template).writes_calls)):
            messages = tools.render_history(messages, wire.format)
        described = tools.to_openai(brief=brief) if wire.is_own else []
        return backend.encode_prompt(messages, described, tools.prompt(wire.format, brief=brief), **options)


@dataclass(frozen=True)
class _Wire:
    """The wire format of tool calls.

    Attributes:
        format: the format (`ToolInterface.wire_format`); None without tools.
        is_own: it is the format of the model's own chat template.
    """

    format: Any = None
    is_own: bool = True


def _run_together(
    scheduler: Scheduler, works: Sequence[Work], max_rows: int, keep: Callable[[int, Item], None]
) -> list[Exception | None]:
    """Run generations, at most ``max_rows`` concurrently; return for each the error that ended it, or None.

    Raises:
        BaseException: an error that is not an `Exception`.
    """
    queue: SimpleQueue[tuple[int, Item | BaseException | None]] = SimpleQueue()  # after the index of the generation
    abandoned = threading.Event()
    errors: list[Exception | None] = [None] * len(works)
    waiting = deque(enumerate(works))
    running = 0

    def put_of(number: int) -> Callable[[Item | BaseException | None], None]:
        return lambda item: queue.put((number, item))

    try:
        while waiting or running:
            fresh = [waiting.popleft() for _ in range(min(len(waiting), max_rows - running))]
            scheduler.submit([(work, put_of(number), abandoned) for number, work in fresh])
            running += len(fresh)
            number, item = queue.get()
            if isinstance(item, BaseException) and not isinstance(item, Exception):
                raise item
            if item is None or isinstance(item, Exception):
                errors[number] = item
                running -= 1
            else:
                keep(number, item)
    finally:
        abandoned.set()
        for _, work in waiting:
            work.close()
    return errors
