"""The loop of an agent: the model calls, the calls run, it reads their results, until it answers."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncGenerator, Callable, Generator, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, aclosing, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from importlib import import_module
from typing import TYPE_CHECKING, Any, Generic, Literal, NamedTuple, get_args

from ..basics.spans import OURS, Span, ending
from ..conversation.events import Generation, T_co, Usage
from ..conversation.messages import Message, ToolCall
from ..errors import ModelError, PolicyError
from ..generation.params import GenerateParams
from ..generation.plan import Prompt, conversation_of, resolve_params
from ..json import value_key
from .chat_spans import written

if TYPE_CHECKING:
    from typing_extensions import Self

#: What is done with a call whose result the conversation has.
OnRepeat = Literal["answer", "stop", "run"]

#: Default maximum number of turns with calls.
MAX_TURNS = 8

#: Result of a call that nobody allowed.
DECLINED = "The user did not allow this call."


@dataclass(frozen=True)
class RepeatedCall:
    """The model wrote a call whose result the conversation has, so it was not executed."""

    call: ToolCall


@dataclass(frozen=True)
class RunResult(Generic[T_co]):
    """The end of a run.

    Attributes:
        messages: the conversation: the prompt, each turn of the model, and the results of its calls.
        turns: what the model wrote, in order; the last is the answer.
        ended_by: ``"answer"``: the model answered by itself. ``"repeat"``: it wrote a call again whose result it had.
            ``"turns"``: ``max_turns`` turns had calls. After the last two it was asked to answer without calls.
        repeats: number of calls that were not executed because their results were there.
    """

    messages: tuple[Message, ...]
    turns: tuple[Generation[T_co], ...]
    ended_by: Literal["answer", "repeat", "turns"]
    repeats: int = 0

    @property
    def answer(self) -> Generation[T_co]:
        """The last turn."""
        return self.turns[-1]

    @property
    def text(self) -> str:
        """The text of the answer."""
        return self.answer.text

    @property
    def value(self) -> T_co:
        """The value of the answer, with ``output_type``; see `Generation.value`."""
        return self.answer.value

    @property
    def usage(self) -> Usage:
        """Token counts of all turns together."""
        return sum((turn.usage for turn in self.turns), Usage())

    def __str__(self) -> str:
        """The answer, readable."""
        return str(self.answer)


class _Known(NamedTuple):
    """The result of a call, and the number of results until then that said something new."""

    result: Any
    news: int


@dataclass
class RunState:
    """The state of a run, which `Run` and `AsyncRun` share: they differ in how they wait for models and tools.

    Attributes:
        model: the `Model` that writes the next turn.
        params: its options.
        tools: the tool set.
        options: further options, which override ``params``; after the first turn, without its prefix and its tool
            choice.
        messages: the conversation so far.
        max_turns, on_repeat, approve: as of `Model.run`.
        turns: what the model wrote.
        ended_by: why there is no turn with calls any more; None: there is one.
        is_over: there is no turn any more.
        repeats: number of calls that were not executed because their results were there.
        calls: those of the last turn, which wait for their results.
        has_begun: its span was begun.
        span: its span; None: nobody records it.
    """

    model: Any
    params: GenerateParams | None
    tools: Any
    options: dict[str, Any]
    messages: list[Message]
    max_turns: int
    on_repeat: OnRepeat
    approve: Callable[[ToolCall], Any] | None
    turns: list[Generation] = field(default_factory=list)
    ended_by: Literal["answer", "repeat", "turns"] | None = None
    is_over: bool = False
    repeats: int = 0
    calls: tuple[ToolCall, ...] = ()
    has_begun: bool = False
    span: Span | None = None
    _news: int = 0  # number of results so far that said something new
    _results: dict[Any, _Known] = field(default_factory=dict)  # by call (`_key`), its last result

    def take(self, turn: Generation) -> list[Any]:
        """Take a turn of the model; return for each of its calls the result that is known, or None."""
        self.turns.append(turn)
        known = [self._known(call) for call in turn.tool_calls]
        self.repeats += sum(result is not None for result in known)
        self.calls = turn.tool_calls
        if self.ended_by is not None or not self.calls:  # this turn is the answer
            self.ended_by = self.ended_by or "answer"
            self.is_over = True
        elif all(result is not None for result in known):  # none of these calls runs
            self.ended_by = "repeat"
            self.calls = ()
            self.is_over = self.on_repeat == "stop"
        elif len(self.turns) >= self.max_turns:  # these calls run, and the next turn is the answer
            self.ended_by = "turns"
        # A repeated turn is left out of the conversation: a model that reads that it repeated itself does so again.
        if self.calls or self.is_over:
            self.messages.append(turn.message)
        choice = "none" if self.ended_by or self.options.get("tool_choice") == "none" else "auto"
        self.options = {**self.options, "prefix": "", "tool_choice": choice}
        return known

    def add(self, results: Sequence[Any]) -> None:
        """Take the results of a turn's calls, in the order of the calls."""
        for result in results:
            message = result.to_message()
            self.messages.append(message)
            if not result.is_error:
                key = self._key(result.call)
                last = self._results.get(key)
                if last is None or last.result.to_message().content != message.content:
                    self._news += 1
                self._results[key] = _Known(result, self._news)

    def _known(self, call: ToolCall) -> Any:
        """Return the result of an equal call, if no result since said anything new; else None."""
        if self.on_repeat == "run" or call.error is not None:
            return None
        known = self._results.get(self._key(call))
        return None if known is None or known.news != self._news else replace(known.result, call=call)

    def executor(self) -> Any:
        """Return the tools that execute calls; under a policy, in the conversation, whose calls it judges again."""
        is_under = getattr(self.tools, "policy", None) is not None or any(tool.program for tool in self.tools or ())
        return self.tools.in_conversation(self.messages) if is_under else self.tools

    @property
    def approved(self) -> dict[str, Any]:
        """The options of an execution: ``approve`` was asked about each call."""
        return {} if self.approve is None else {"approve": True}

    @staticmethod
    def _key(call: ToolCall) -> Any:
        """Return a key that equal calls share: the tool, and the arguments as values."""
        return call.name, value_key(dict(call.arguments))

    def active(self) -> AbstractContextManager[None]:
        """Begin the run's span, and make it the parent of those that begin in the block."""
        if not self.has_begun:
            self.has_begun = True
            attributes = {"gen_ai.provider.name": "toolgrammar", "gen_ai.request.model": self.model.name}
            if Span.has_contents():
                attributes["gen_ai.input.messages"] = written(self.messages)
            self.span = Span.begin("invoke_agent", "", attributes)
        return nullcontext() if self.span is None else self.span.active()

    @contextmanager
    def spanned(self) -> Iterator[None]:
        """Tell the span what was done in the block, and end it."""
        with ending(self.span):
            try:
                yield
            finally:
                if self.span is not None:
                    usage = sum((turn.usage for turn in self.turns), Usage())
                    last = self.turns[-1] if self.turns and Span.has_contents() else None
                    self.span.set(
                        {
                            "gen_ai.output.messages": last and written([last.message], last.finish_reason),
                            "gen_ai.usage.input_tokens": usage.prompt_tokens,
                            "gen_ai.usage.output_tokens": usage.completion_tokens,
                            f"{OURS}turns": len(self.turns),
                            f"{OURS}ended_by": self.ended_by,
                            f"{OURS}repeats": self.repeats,
                        }
                    )

    def result(self) -> RunResult:
        """Return the end of the run.

        Raises:
            ModelError: it was closed, or an error ended it.
        """
        if not self.is_over or self.ended_by is None:
            raise ModelError("the run has no result: it was closed, or an error ended it", hint="run again")
        return RunResult(tuple(self.messages), tuple(self.turns), self.ended_by, self.repeats)

    @classmethod
    def of(
        cls,
        model: Any,
        prompt: Prompt,
        params: GenerateParams | None,
        options: Mapping[str, Any],
        **settings: Any,
    ) -> Self:
        """Return the state before the first turn. ``settings``: ``max_turns``, ``approve``, ``on_repeat`` and
        ``programs``, as of `Model.run`.

        Raises:
            ModelError: an argument is wrong.
        """
        programs = settings.pop("programs")
        resolved = resolve_params(params, options)
        if settings["max_turns"] < 1:
            raise ModelError(f"max_turns is {settings['max_turns']}", hint="give at least 1")
        if settings["on_repeat"] not in (known := get_args(OnRepeat)):
            raise ModelError(f"on_repeat is {settings['on_repeat']!r}", hint=f"give one of {', '.join(known)}")
        if getattr(resolved.tools, "asks", False) and settings["approve"] is None:
            raise PolicyError(
                "the policy lets a person confirm calls, and nobody is asked",
                hint="give approve=, a function of the call",
            )
        messages = list(conversation_of(prompt, resolved.prefix))
        tools = _in_programs(resolved.tools) if programs else resolved.tools
        if programs:
            # The policy has restricted the tools, which are functions of the program now; their one tool has none.
            options = {**options, "policy": None, "tool_format": resolved.tool_format or "program"}
        options = {**options, "tools": tools, "tool_choice": resolved.tool_choice}
        return cls(model, params, tools, options, messages, **settings)


def _in_programs(tools: Any) -> Any:
    """Return the tool of programs over some tools, as a tool set; tools that are one tool of programs as they are.

    Raises:
        ModelError: there are no tools, one cannot be called in a program, or one of several is a tool of programs.
        SchemaError: none can be called in a program.
    """
    if tools is None:
        raise ModelError("programs=True without tools", hint="give tools")
    if any(tool.program for tool in tools):
        if len([*tools]) > 1:
            raise ModelError(
                "programs=True, and one of several tools is a tool of programs already",
                hint="leave out programs=True, so that it is called like the others",
            )
        return tools
    made = import_module("toolgrammar.tools")  # by name, because core does not import tools
    tool = made.program_tool(tools)
    for name, why in tool.program.left_out.items():
        hint = "leave it out of tools, or leave out programs=True and give program_tool(tools) beside it"
        raise ModelError(f"{name} cannot be called in a program: {why}", hint=hint)
    return made.ToolSet([tool])


def _decided(call: ToolCall, verdict: Any) -> Any:
    """Return the result that a verdict gives to a call; None: the call runs."""
    made = import_module("toolgrammar.tools").ToolResult  # by name, because core does not import tools
    if verdict is True or isinstance(verdict, made):
        return None if verdict is True else verdict
    if verdict is False or isinstance(verdict, str):
        return made(call, error=verdict or DECLINED)
    raise ModelError(f"approve returned {verdict!r}", hint="return True, False, the reason as text, or a ToolResult")


class Run(Generic[T_co]):
    """A run, as it comes: an iterator of the model's events, of the result of each call, and of `RepeatedCall`.

    Leaving it early (`close`, or the end of a ``with`` block) stops the model within a step.
    """

    def __init__(self, state: RunState) -> None:
        self._state = state
        self._events = self._run()

    def _run(self) -> Generator[Any, None, None]:
        with self._state.spanned():
            yield from self._turns()

    def _turns(self) -> Generator[Any, None, None]:
        """Yield the items of turn after turn: what the model writes, which calls are repeated, and the results."""
        state = self._state
        while not state.is_over:
            with state.model.stream(state.messages, state.params, **state.options) as stream:
                yield from stream
                turn = stream.result
            known = state.take(turn)
            yield from (RepeatedCall(call) for call, one in zip(turn.tool_calls, known, strict=True) if one is not None)
            results, tools = [], state.executor()
            for call, result in zip(state.calls, known, strict=False):  # no calls, if all are repeated
                if result is None and state.approve is not None:
                    result = _decided(call, state.approve(call))
                results.append(tools.execute(call, **state.approved) if result is None else result)
                yield results[-1]
            state.add(results)

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Any:
        with self._state.active():
            return next(self._events)

    @property
    def messages(self) -> tuple[Message, ...]:
        """The conversation so far."""
        return tuple(self._state.messages)

    @property
    def result(self) -> RunResult[T_co]:
        """The end of the run; waits for it.

        Raises:
            ModelError: the run was closed, or an error ended it.
        """
        for _ in self:
            pass
        return self._state.result()

    def close(self) -> None:
        """End the run. Closing twice is allowed."""
        self._events.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


class AsyncRun(Generic[T_co]):
    """`Run` without blocking the event loop: an asynchronous iterator; the calls of one turn run concurrently."""

    def __init__(self, state: RunState) -> None:
        self._state = state
        self._events = self._run()

    async def _run(self) -> AsyncGenerator[Any, None]:
        with self._state.spanned():
            async with aclosing(self._turns()) as events:
                async for event in events:
                    yield event

    async def _turns(self) -> AsyncGenerator[Any, None]:
        """Do what `Run._turns` does, with the calls of a turn at the same time."""
        state = self._state
        while not state.is_over:
            async with state.model.astream(state.messages, state.params, **state.options) as stream:
                async for event in stream:
                    yield event
                turn = await stream.result()
            known = state.take(turn)
            for call, one in zip(turn.tool_calls, known, strict=True):
                if one is not None:
                    yield RepeatedCall(call)
            tools = state.executor()
            settled = (self._settled(tools, call, result) for call, result in zip(state.calls, known, strict=False))
            results = await asyncio.gather(*settled)
            for result in results:
                yield result
            state.add(results)

    async def _settled(self, tools: Any, call: ToolCall, result: Any) -> Any:
        """Return the result of a call: the known one, that of the user's verdict, or that of the tool."""
        if result is None and self._state.approve is not None:
            verdict = self._state.approve(call)
            result = _decided(call, await verdict if inspect.isawaitable(verdict) else verdict)
        return await tools.aexecute(call, **self._state.approved) if result is None else result

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Any:
        with self._state.active():
            return await self._events.__anext__()

    @property
    def messages(self) -> tuple[Message, ...]:
        """The conversation so far."""
        return tuple(self._state.messages)

    async def result(self) -> RunResult[T_co]:
        """Return the end of the run, as `Run.result`; waits for it."""
        async for _ in self:
            pass
        return self._state.result()

    async def aclose(self) -> None:
        """End the run. Closing twice is allowed."""
        await self._events.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.aclose()
