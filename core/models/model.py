"""`Model`: the interface of all models."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Callable, Generator, Sequence
from contextlib import aclosing, closing
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar, overload
from uuid import uuid4

from ..basics.cached import cached_property
from ..conversation.events import Generation
from ..conversation.messages import ToolCall
from ..generation.driver import Item
from ..generation.params import GenerateParams, ToolsInPrompt
from ..generation.plan import Prompt
from ..generation.scheduler import MAX_ROWS
from .chat_spans import aspanned, begin, record_answer, spanned
from .decisions import Decides
from .requests import (
    Request,
    cancellable,
    finished,
    in_thread,
    json_request_of,
    outcomes_of,
    request_of,
    requests_of,
    value_of,
)
from .run import MAX_TURNS, AsyncRun, OnRepeat, Run, RunState
from .streams import AsyncStream, Stream

if TYPE_CHECKING:
    from typing import Literal

    from typing_extensions import Self, Unpack

    from ..generation.keywords import GenerateOptions, TypedOptions
    from ..vocabulary.vocabulary import Vocabulary

T = TypeVar("T")

#: Minimum size of tool declarations, in bytes, beyond which ``tools_in_prompt="auto"`` is ``"names"``.
LEAST_AUTO_BYTES = 8_192


@dataclass(frozen=True)
class Capabilities:
    """Capabilities of a model.

    Attributes:
        logits: its logits are visible, so that every token is constrained.
        json_schema: it accepts a JSON Schema (a remote server).
        images: it accepts images.
    """

    logits: bool = True
    json_schema: bool = True
    images: bool = False


class Model(Decides, ABC):
    """A model, local or remote, whose answers are valid. Thread-safe.

    `load_model` makes one from an address; ``Model(backend)`` is a `LocalModel`.

    Attributes:
        capabilities: logits, JSON Schema, images.
    """

    capabilities: Capabilities

    def __new__(cls, *arguments: Any, **options: Any) -> Self:
        """Make a `LocalModel` for ``Model(backend)``, as ``pathlib.Path`` makes a path of the platform."""
        made = import_module("toolgrammar.core.models").LocalModel if cls is Model else cls  # which imports this module
        return super().__new__(made)  # type: ignore[no-any-return]

    @property
    @abstractmethod
    def name(self) -> str:
        """The model's name."""

    @property
    def identity(self) -> str:
        """Text that identifies this loaded model, for caches of answers; several models may have the same name."""
        return self._identity

    @cached_property
    def _identity(self) -> str:
        return f"{self.name}#{uuid4().hex}"

    @property
    @abstractmethod
    def vocabulary(self) -> Vocabulary:
        """The exact bytes of every token.

        Raises:
            ModelError: the model is on a server, which does not show them.
        """

    @property
    @abstractmethod
    def context_window(self) -> int:
        """Number of tokens that fit in a sequence."""

    @abstractmethod
    def encode(self, text: str) -> list[int]:
        """Return the token ids of a text, without control tokens.

        Raises:
            ModelError: the model is on a server, which does not show them.
        """

    @abstractmethod
    def count_tokens(self, prompt: Prompt, tools: Any = None, tools_in_prompt: ToolsInPrompt = "schemas") -> int:
        """Return the number of tokens of a prompt, including what it has of the tools (remote: an estimate).

        Args:
            prompt: as for `stream`.
            tools: as in `GenerateParams`.
            tools_in_prompt: as in `GenerateParams`.
        """

    def enforces(self, params: GenerateParams) -> bool:
        """Return True if every token of an answer to such a request is chosen under its grammar."""
        return self.capabilities.logits

    @abstractmethod
    def close(self) -> None:
        """Free the resources of the model; later requests raise an error. Closing twice is allowed."""

    @abstractmethod
    def _items(self, request: Request) -> Generator[Item, None, None]:
        """Yield the events of an answer, then the complete generation."""

    @abstractmethod
    def _aitems(self, request: Request) -> AsyncGenerator[Item, None]:
        """Do `_items`, without blocking the event loop; closing the generator ends the request."""

    @abstractmethod
    def _batch(self, requests: Sequence[Request], max_rows: int) -> list[Generation | Exception]:
        """Answer many requests; return for each the complete generation, or the error that ended it."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r})"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __copy__(self) -> Self:
        return self

    def __reduce__(self) -> NoReturn:
        raise TypeError(f"{self!r} cannot be pickled: send its address, and load it there by load_model(address)")

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        # Agent frameworks copy their configuration, including models; weights are not copied.
        return self

    # -- one answer --------------------------------------------------------------------------------------------

    @overload
    def stream(
        self, prompt: Prompt, params: GenerateParams | None = None, **options: Unpack[TypedOptions[T]]
    ) -> Stream[T]: ...

    @overload
    def stream(
        self, prompt: Prompt, params: GenerateParams | None = None, **options: Unpack[GenerateOptions]
    ) -> Stream: ...

    def stream(self, prompt: Prompt, params: GenerateParams | None = None, **options: Any) -> Stream:
        """Generate, and yield events when they are certain; the last is `Finish`.

        Without ``json_mode.constrained_decoding``, nothing is certain before the answer is validated, so the text is
        one event.

        Args:
            prompt: a text (one message of the user), a message, or a conversation; with ``prefix`` it may be empty, to
                continue that text.
            params: the options.
            **options: fields of `GenerateParams`, which override those of ``params``.

        Raises:
            GenerationTimeoutError: ``timeout`` seconds are over.
            ToolGrammarError: the request cannot be answered; see `GenerateParams` and the error's hint.
        """
        request = request_of(prompt, params, options, live=True)
        return Stream(spanned(self, request, self._items(request)), request)

    @overload
    def astream(
        self, prompt: Prompt, params: GenerateParams | None = None, **options: Unpack[TypedOptions[T]]
    ) -> AsyncStream[T]: ...

    @overload
    def astream(
        self, prompt: Prompt, params: GenerateParams | None = None, **options: Unpack[GenerateOptions]
    ) -> AsyncStream: ...

    def astream(self, prompt: Prompt, params: GenerateParams | None = None, **options: Any) -> AsyncStream:
        """Like `stream`, without blocking the event loop; leaving the loop early stops the model within a step."""
        # Here, not at the first item: callables of live values see what is `given` where this is called.
        request = request_of(prompt, params, options, live=True)
        return AsyncStream(aspanned(self, request, self._aitems(request)), request)

    @overload
    def generate(
        self, prompt: Prompt, params: GenerateParams | None = None, **options: Unpack[TypedOptions[T]]
    ) -> Generation[T]: ...

    @overload
    def generate(
        self, prompt: Prompt, params: GenerateParams | None = None, **options: Unpack[GenerateOptions]
    ) -> Generation: ...

    def generate(self, prompt: Prompt, params: GenerateParams | None = None, **options: Any) -> Generation:
        """Generate, and return the complete result. Arguments and errors as for `stream`.

        Raises:
            CancelledError: ``params.cancel`` returned True.
        """
        return self._whole(request_of(prompt, params, options))

    @overload
    async def agenerate(
        self, prompt: Prompt, params: GenerateParams | None = None, **options: Unpack[TypedOptions[T]]
    ) -> Generation[T]: ...

    @overload
    async def agenerate(
        self, prompt: Prompt, params: GenerateParams | None = None, **options: Unpack[GenerateOptions]
    ) -> Generation: ...

    async def agenerate(self, prompt: Prompt, params: GenerateParams | None = None, **options: Any) -> Generation:
        """Like `generate`, without blocking the event loop; cancelling the task stops the model within a step."""
        return await self._awhole(request_of(prompt, params, options))

    @overload
    def generate_json(
        self,
        prompt: Prompt,
        schema: type[T],
        params: GenerateParams | None = None,
        *,
        allow_cut: bool = False,
        **options: Unpack[GenerateOptions],
    ) -> T: ...

    @overload
    def generate_json(
        self,
        prompt: Prompt,
        schema: Any = None,
        params: GenerateParams | None = None,
        *,
        allow_cut: bool = False,
        **options: Unpack[GenerateOptions],
    ) -> Any: ...

    def generate_json(
        self,
        prompt: Prompt,
        schema: Any = None,
        params: GenerateParams | None = None,
        *,
        allow_cut: bool = False,
        **options: Unpack[GenerateOptions],
    ) -> Any:
        """Generate JSON of a given shape, and return its value; for a Pydantic class or Python type, an instance.

        If the token budget is too short, the value is completed validly, but it is not what the model intended:
        `CutAnswerError` has the value and lists the truncated parts. With ``on_budget="error"``, an error is raised
        earlier, without a value.

        Args:
            prompt: as for `stream`.
            schema: a JSON Schema, a Pydantic class, a Python type, or a `Grammar` of JSON; equivalent to the option
                ``output_type``. None: the schema of ``json_mode``.
            params: the options; ``json_mode`` has those of JSON.
            allow_cut: return a truncated value instead of raising `CutAnswerError`.
            **options: fields of `GenerateParams`, which override those of ``params``.

        Raises:
            CutAnswerError: the token budget, or a repetition, truncated the value.
            InvalidArgumentsError: the answer was invalid, also after retries: that of an unconstrained model, or by a
                validator of the type that its JSON Schema does not express.
        """
        request = json_request_of(prompt, schema, params, options)
        return value_of(self._whole(request), allow_cut)

    @overload
    async def agenerate_json(
        self,
        prompt: Prompt,
        schema: type[T],
        params: GenerateParams | None = None,
        *,
        allow_cut: bool = False,
        **options: Unpack[GenerateOptions],
    ) -> T: ...

    @overload
    async def agenerate_json(
        self,
        prompt: Prompt,
        schema: Any = None,
        params: GenerateParams | None = None,
        *,
        allow_cut: bool = False,
        **options: Unpack[GenerateOptions],
    ) -> Any: ...

    async def agenerate_json(
        self,
        prompt: Prompt,
        schema: Any = None,
        params: GenerateParams | None = None,
        *,
        allow_cut: bool = False,
        **options: Unpack[GenerateOptions],
    ) -> Any:
        """Like `generate_json`, without blocking the event loop."""
        request = json_request_of(prompt, schema, params, options)
        return value_of(await self._awhole(request), allow_cut)

    def _spanned_batch(self, requests: Sequence[Request], max_rows: int) -> list[Generation | Exception]:
        """Do `_batch`, with a span for each request."""
        spans = [begin(self, request) for request in requests]
        outcomes: Sequence[Generation | BaseException] = ()
        try:
            outcomes = answers = self._batch(requests, max_rows)
        except BaseException as error:
            outcomes = [error] * len(requests)
            raise
        finally:
            for span, request, outcome in zip(spans, requests, outcomes, strict=True):
                if span is not None:
                    if isinstance(outcome, Generation):
                        record_answer(span, self, request, outcome)
                    span.end(outcome if isinstance(outcome, BaseException) else None)
        return answers

    # -- many turns --------------------------------------------------------------------------------------------

    @overload
    def run(
        self,
        prompt: Prompt,
        params: GenerateParams | None = None,
        *,
        max_turns: int = MAX_TURNS,
        approve: Callable[[ToolCall], Any] | None = None,
        on_repeat: OnRepeat = "answer",
        programs: bool = False,
        **options: Unpack[TypedOptions[T]],
    ) -> Run[T]: ...

    @overload
    def run(
        self,
        prompt: Prompt,
        params: GenerateParams | None = None,
        *,
        max_turns: int = MAX_TURNS,
        approve: Callable[[ToolCall], Any] | None = None,
        on_repeat: OnRepeat = "answer",
        programs: bool = False,
        **options: Unpack[GenerateOptions],
    ) -> Run: ...

    def run(
        self,
        prompt: Prompt,
        params: GenerateParams | None = None,
        *,
        max_turns: int = MAX_TURNS,
        approve: Callable[[ToolCall], Any] | None = None,
        on_repeat: OnRepeat = "answer",
        programs: bool = False,
        **options: Unpack[GenerateOptions],
    ) -> Run:
        """Let the model call tools, execute the calls, and let it read the results, until it answers.

        The run is an iterator: the events of each turn as those of `stream`, the ``ToolResult`` of each call, and a
        `RepeatedCall` for each call that was not executed again. ``run.result`` waits for the end; its ``text`` and
        ``value`` are the answer. The model reads errors of tools, and of calls that are not valid.

        Args:
            prompt: as for `stream`.
            params: the options. ``tool_choice`` is for the first turn; later ones may answer.
            max_turns: maximum number of turns with calls; then the model must answer without.
            approve: called with each call before it runs; returns True, False, the reason of a refusal as text (which
                the model reads), or a ``ToolResult``, which takes the place of the tool's.
            on_repeat: what is done if all calls of a turn were executed before, and no result has said anything new
                since. ``"answer"``: the model must answer, without calls. ``"stop"``: the run ends with these calls.
                ``"run"``: they are executed again, for tools that poll.
            programs: the model calls the tools in short programs, each in a block of code (`program_tool`), instead of
                one by one.
            **options: fields of `GenerateParams`, which override those of ``params``.

        Raises:
            ModelError: an argument is wrong.
            ToolGrammarError: as for `stream`.
        """
        settings: Any = {"max_turns": max_turns, "approve": approve, "on_repeat": on_repeat, "programs": programs}
        return Run(RunState.of(self, prompt, params, options, **settings))

    @overload
    def arun(
        self,
        prompt: Prompt,
        params: GenerateParams | None = None,
        *,
        max_turns: int = MAX_TURNS,
        approve: Callable[[ToolCall], Any] | None = None,
        on_repeat: OnRepeat = "answer",
        programs: bool = False,
        **options: Unpack[TypedOptions[T]],
    ) -> AsyncRun[T]: ...

    @overload
    def arun(
        self,
        prompt: Prompt,
        params: GenerateParams | None = None,
        *,
        max_turns: int = MAX_TURNS,
        approve: Callable[[ToolCall], Any] | None = None,
        on_repeat: OnRepeat = "answer",
        programs: bool = False,
        **options: Unpack[GenerateOptions],
    ) -> AsyncRun: ...

    def arun(
        self,
        prompt: Prompt,
        params: GenerateParams | None = None,
        *,
        max_turns: int = MAX_TURNS,
        approve: Callable[[ToolCall], Any] | None = None,
        on_repeat: OnRepeat = "answer",
        programs: bool = False,
        **options: Unpack[GenerateOptions],
    ) -> AsyncRun:
        """Like `run`, without blocking the event loop: asynchronous tools are awaited, the calls of one turn run
        concurrently, and ``approve`` may be asynchronous."""
        settings: Any = {"max_turns": max_turns, "approve": approve, "on_repeat": on_repeat, "programs": programs}
        return AsyncRun(RunState.of(self, prompt, params, options, **settings))

    def _whole(self, request: Request) -> Generation:
        whole: Generation | None = None
        with closing(spanned(self, request, self._items(request))) as items:
            for item in items:
                whole = item if isinstance(item, Generation) else whole
        return finished(whole, request)

    async def _awhole(self, request: Request) -> Generation:
        whole: Generation | None = None
        async with aclosing(aspanned(self, request, self._aitems(request))) as items:
            async for item in items:
                whole = item if isinstance(item, Generation) else whole
        return finished(whole, request)

    # -- many answers ------------------------------------------------------------------------------------------

    @overload
    def generate_batch(
        self,
        prompts: Sequence[Prompt],
        params: GenerateParams | Sequence[GenerateParams] | None = None,
        *,
        return_errors: Literal[False] = False,
        max_rows: int = MAX_ROWS,
        **options: Unpack[TypedOptions[T]],
    ) -> list[Generation[T]]: ...

    @overload
    def generate_batch(
        self,
        prompts: Sequence[Prompt],
        params: GenerateParams | Sequence[GenerateParams] | None = None,
        *,
        return_errors: Literal[False] = False,
        max_rows: int = MAX_ROWS,
        **options: Unpack[GenerateOptions],
    ) -> list[Generation]: ...

    @overload
    def generate_batch(
        self,
        prompts: Sequence[Prompt],
        params: GenerateParams | Sequence[GenerateParams] | None = None,
        *,
        return_errors: bool,
        max_rows: int = MAX_ROWS,
        **options: Unpack[GenerateOptions],
    ) -> list[Generation | Exception]: ...

    def generate_batch(
        self,
        prompts: Sequence[Prompt],
        params: GenerateParams | Sequence[GenerateParams] | None = None,
        *,
        return_errors: bool = False,
        max_rows: int = MAX_ROWS,
        **options: Unpack[GenerateOptions],
    ) -> list[Any]:
        """Generate for many prompts, each with its own grammar, and return the complete results in order.

        A `BatchBackend` runs many sequences in one forward pass for each step; other backends run one prompt after
        another. A server receives many concurrent requests.

        Args:
            prompts: as for `stream`.
            params: the options, for all prompts or one for each.
            return_errors: return the error of a prompt in the list; False: raise the first error, at the end.
            max_rows: maximum number of concurrent sequences.
            **options: fields of `GenerateParams`, for all prompts.

        Returns:
            A `Generation` for each prompt, or with ``return_errors`` an exception.

        Raises:
            ToolGrammarError: as for `generate`.

        Law: each result equals that of `generate`, up to rounding of the backend.
        """
        requests = requests_of(prompts, params, options, max_rows)
        return outcomes_of(self._spanned_batch(requests, max_rows), return_errors)

    @overload
    async def agenerate_batch(
        self,
        prompts: Sequence[Prompt],
        params: GenerateParams | Sequence[GenerateParams] | None = None,
        *,
        return_errors: Literal[False] = False,
        max_rows: int = MAX_ROWS,
        **options: Unpack[TypedOptions[T]],
    ) -> list[Generation[T]]: ...

    @overload
    async def agenerate_batch(
        self,
        prompts: Sequence[Prompt],
        params: GenerateParams | Sequence[GenerateParams] | None = None,
        *,
        return_errors: Literal[False] = False,
        max_rows: int = MAX_ROWS,
        **options: Unpack[GenerateOptions],
    ) -> list[Generation]: ...

    @overload
    async def agenerate_batch(
        self,
        prompts: Sequence[Prompt],
        params: GenerateParams | Sequence[GenerateParams] | None = None,
        *,
        return_errors: bool,
        max_rows: int = MAX_ROWS,
        **options: Unpack[GenerateOptions],
    ) -> list[Generation | Exception]: ...

    async def agenerate_batch(
        self,
        prompts: Sequence[Prompt],
        params: GenerateParams | Sequence[GenerateParams] | None = None,
        *,
        return_errors: bool = False,
        max_rows: int = MAX_ROWS,
        **options: Unpack[GenerateOptions],
    ) -> list[Any]:
        """Like `generate_batch`, without blocking the event loop; cancelling the task stops all within a step."""
        requests = requests_of(prompts, params, options, max_rows)
        abandoned = threading.Event()
        requests = [cancellable(request, abandoned) for request in requests]
        outcomes = await in_thread(partial(self._spanned_batch, requests, max_rows), abandoned)
        return outcomes_of(outcomes, return_errors)
