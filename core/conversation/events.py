"""Events of a streamed answer: typed deltas, each certain when it is sent.

Law: for one generation, concatenating the deltas gives the final `Generation` (text, reasoning, each call's
arguments); text and call deltas never mix in one event; `Finish` comes last, once. `MessageBuilder` makes a
message of them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, Generic, Literal, Union, cast

from ..basics.cached import cached_property
from .messages import Message, ToolCall
from .trace import Trace

if TYPE_CHECKING:
    from typing_extensions import TypeVar

    T_co = TypeVar("T_co", covariant=True, default=Any)
else:
    from typing import TypeVar

    T_co = TypeVar("T_co", covariant=True)

FinishReason = Literal["stop", "tool_calls", "length", "cancelled"]


@dataclass(frozen=True)
class Usage:
    """Token counts of one generation.

    Attributes:
        prompt_tokens: tokens of the prompt.
        completion_tokens: tokens written, forced ones included.
        reasoning_tokens: number of them that are reasoning.
        cached_tokens: prompt tokens whose keys and values were reused.
        forced_tokens: tokens that the grammar fixed (no choice was left to the model).
        forward_passes: number of runs of the model.
    """

    prompt_tokens: int = 0
    completion_tokens: int = 0
    reasoning_tokens: int = 0
    cached_tokens: int = 0
    forced_tokens: int = 0
    forward_passes: int = 0

    def __add__(self, other: Usage) -> Usage:
        """Return the token counts of two answers together."""
        return Usage(*(getattr(self, one.name) + getattr(other, one.name) for one in fields(Usage)))


@dataclass(frozen=True)
class ReasoningDelta:
    """A piece of the model's thinking."""

    text: str


@dataclass(frozen=True)
class TextDelta:
    """A piece of the answer's text."""

    text: str


@dataclass(frozen=True)
class CallStart:
    """A tool call begins; sent once per call, as soon as the name is certain."""

    index: int
    id: str
    name: str


@dataclass(frozen=True)
class ArgumentsDelta:
    """A piece of the JSON text of the arguments of call ``index``."""

    index: int
    text: str


@dataclass(frozen=True)
class CallEnd:
    """Call ``index`` is complete."""

    index: int
    call: ToolCall


@dataclass(frozen=True)
class TokenWritten:
    """One token of the output; only sent with ``GenerateParams(trace=True)`` or ``GenerateParams(logprobs=...)``.

    Attributes:
        token_id: the token.
        data: the bytes that it added (not all of its bytes if it replaced the token before it).
        forced: True when the grammar or the budget left no choice.
        choices: number of tokens that were allowed here, when counted.
        reasoning: it is a part of the reasoning, whose markers are, too.
        logprob: log-probability, with ``logprobs``: the model's, given that the token is one of those that are allowed
            here, before bias, penalty and temperature. 0 where there was no choice.
        likeliest: ids and log-probabilities of the likeliest allowed tokens, as many as ``logprobs`` asks for.
    """

    token_id: int
    data: bytes
    forced: bool
    choices: int | None = None
    reasoning: bool = False
    logprob: float | None = None
    likeliest: tuple[tuple[int, float], ...] = ()


@dataclass(frozen=True)
class ChoiceMade:
    """A choice among finitely many words, by the probability of each whole word; ``GenerateParams.exact_choice``.

    Attributes:
        start: its first character in ``Generation.raw``.
        value: the word that was chosen: a name or value without its quotes.
        probabilities: of all words that the grammar allowed there, given that it is one of them: the model's own,
            after bias and penalty, before temperature and cuts.
        mass: their sum before that: what the model gave to these words together. The rest is what the grammar removed.
        passes: number of forward passes that it took more.
    """

    start: int
    value: str
    probabilities: Mapping[str, float]
    mass: float
    passes: int = 0


@dataclass(frozen=True)
class CallSureness:
    """How sure the model was of a call; with ``GenerateParams.exact_choice``.

    The probabilities are those of `ChoiceMade`: of whole words, among the words that the grammar allowed.

    Attributes:
        id: of the call.
        name: of its tool.
        tool: probability of this tool; None: there was no choice (one tool), or it was not exact.
        values: by JSON pointer into the arguments, the probability of each value that was an exact choice: of an
            ``enum``, a boolean, a small integer. Of a value that was chosen in several words, the lowest.
        other: the lowest probability of the other exact choices in the arguments: which member comes next, or if
            another one does; None: there were none.

    Choices of the markup outside the name and the arguments (an id, a channel, whether another call follows) do not
    count: the call would do the same without them.
    """

    id: str
    name: str
    tool: float | None = None
    values: Mapping[str, float] = field(default_factory=dict)
    other: float | None = None

    @property
    def has_choices(self) -> bool:
        """True if the call had an exact choice."""
        return self.tool is not None or self.other is not None or bool(self.values)

    @property
    def least(self) -> float:
        """The lowest of these probabilities; 1 if there are none."""
        single = (each for each in (self.tool, self.other) if each is not None)
        return min((*self.values.values(), *single), default=1.0)


@dataclass(frozen=True)
class ValueMass:
    """How much of the model's probability the grammar left in one value; ``GenerateParams.masses``.

    At each choice the model gives some probability to the tokens that the grammar allows, and the mask removes the
    rest. The product of what it left, over the choices of a value, is the probability with which the model alone would
    have stayed within the grammar there. Text that the grammar forces is no choice.

    Attributes:
        part: ``"value"`` for a value of JSON; else the name of a ``"tool"``, the ``"format"`` of calls, free
            ``"text"``, or ``"reasoning"``.
        pointer: JSON pointer of the value, in the call's arguments or the JSON answer. Names, commas and brackets of an
            object belong to the object, and what its members are to the members. None for other parts.
        tool: the tool whose call it belongs to.
        call: number of that call in the answer, from 0.
        choices: number of choices: tokens, and words that were chosen as a whole.
        kept: natural logarithm of that product; 0: the mask removed nothing.
        least: the least that was left at one choice, from 0 to 1.

    Law: over all values, ``kept`` and the log-probabilities of the choices (``GenerateParams.logprobs``) add up to the
    logarithm of the probability of the chosen tokens under the model alone.
    """

    part: Literal["value", "tool", "format", "text", "reasoning"]
    pointer: str | None
    tool: str | None
    call: int | None
    choices: int
    kept: float
    least: float

    @property
    def removed(self) -> float:
        """The probability with which the model alone would have left the grammar in this value, from 0 to 1."""
        return -math.expm1(self.kept)


@dataclass(frozen=True)
class Finish:
    """The generation is over.

    Attributes:
        reason: why it stopped.
        usage: token counts.
        cut: JSON pointers of values closed by force (see `ToolCall.cut`), for output that is not a tool call.
        trace: how each token came, with ``GenerateParams(trace=True)``.
        stop: which of ``GenerateParams.stop`` ended the text, if one did.
        choices, masses, repeated, sureness: as of `Generation`.
    """

    reason: FinishReason
    usage: Usage
    cut: tuple[str, ...] = ()
    trace: Trace | None = field(default=None, repr=False, compare=False)
    stop: str | None = None
    choices: tuple[ChoiceMade, ...] = field(default=(), repr=False, compare=False)
    masses: tuple[ValueMass, ...] = field(default=(), repr=False, compare=False)
    repeated: str | None = None
    sureness: tuple[CallSureness, ...] = field(default=(), repr=False, compare=False)

    @property
    def details(self) -> dict[str, Any]:
        """How a server came to the answer (see `RemoteGeneration`); empty for a local model."""
        return {}


Event = Union[ReasoningDelta, TextDelta, CallStart, ArgumentsDelta, CallEnd, TokenWritten, Finish]


def call_events(calls: Iterable[ToolCall]) -> list[Event]:
    """Return the events of calls that are known whole."""
    events: list[Event] = []
    for index, call in enumerate(calls):
        events += [
            CallStart(index, call.id, call.name),
            ArgumentsDelta(index, call.arguments_text),
            CallEnd(index, call),
        ]
    return events


@dataclass(frozen=True)
class Generation(Generic[T_co]):
    """The whole result of one generation. For type checkers, ``Generation[T]`` is that of ``output_type=T``.

    Attributes:
        message: the assistant's turn: text, reasoning and tool calls.
        finish_reason: why it stopped.
        usage: token counts.
        cut: JSON pointers of values closed by force in the text answer.
        raw: the exact text that the model wrote, control markers included.
        token_ids: the tokens written.
        trace: how each of them came, with ``GenerateParams(trace=True)``.
        stop: which of ``GenerateParams.stop`` ended the text, if one did.
        tokens: the tokens with their log-probabilities, with ``GenerateParams(logprobs=...)``.
        choices: the choices among whole words, with ``GenerateParams(exact_choice=True)``.
        masses: for each value how much of the model's probability the grammar left, with
            ``GenerateParams(masses=True)``.
        sureness: for each call how sure the model was of it, with ``GenerateParams(exact_choice=True)``.
        repeated: what the model repeated in a string or list that was closed for it, or a text that was ended
            (``GenerateParams.max_repetition``).
        reader: makes the value of the text; None: the request has no ``output_type``.
    """

    message: Message
    finish_reason: FinishReason
    usage: Usage
    cut: tuple[str, ...] = ()
    raw: str = ""
    token_ids: tuple[int, ...] = field(default=(), repr=False)
    trace: Trace | None = field(default=None, repr=False, compare=False)
    stop: str | None = None
    tokens: tuple[TokenWritten, ...] = field(default=(), repr=False, compare=False)
    choices: tuple[ChoiceMade, ...] = field(default=(), repr=False, compare=False)
    repeated: str | None = None
    masses: tuple[ValueMass, ...] = field(default=(), repr=False, compare=False)
    sureness: tuple[CallSureness, ...] = field(default=(), repr=False, compare=False)
    reader: Callable[[str], Any] | None = field(default=None, repr=False, compare=False)

    @property
    def text(self) -> str:
        """The text of the answer."""
        return self.message.text

    @cached_property
    def value(self) -> T_co:
        """The value of ``output_type``: an instance of a Python type, else JSON; None without ``output_type``, or if
        the answer has calls and no text. If the budget ended inside it, ``cut`` has the places.

        Raises:
            InvalidArgumentsError: the validators of the type refuse it, or the grammar is not one of JSON.
        """
        value: Any = self.reader(self.text) if self.reader is not None and self.text else None
        return cast("T_co", value)

    @property
    def tool_calls(self) -> tuple[ToolCall, ...]:
        """The tool calls of the answer."""
        return self.message.tool_calls

    @property
    def details(self) -> dict[str, Any]:
        """How a server came to the answer (see `RemoteGeneration`); empty for a local model."""
        return {}

    def events(self) -> list[Event]:
        """Return the events of a stream whose whole result this is, each part in one event."""
        events: list[Event] = list(self.tokens)
        if self.message.reasoning:
            events.append(ReasoningDelta(self.message.reasoning))
        if self.text:
            events.append(TextDelta(self.text))
        return [*events, *call_events(self.tool_calls), self.finish()]

    def finish(self) -> Finish:
        """Return the last event of its stream."""
        same = {each.name: getattr(self, each.name) for each in fields(Finish) if each.name != "reason"}
        return Finish(self.finish_reason, **same)

    def __str__(self) -> str:
        """The text of the answer, then its calls, one a line."""
        return "\n".join([*([self.text] if self.text else []), *map(str, self.tool_calls)])

    def _repr_html_(self) -> str:
        from ..pages import table

        usage = f"{self.usage.completion_tokens} tokens, {self.usage.forced_tokens} of them forced"
        cut = f"; cut at {', '.join(map(repr, self.cut))}" if self.cut else ""
        said = [("reasoning", self.message.reasoning)] if self.message.reasoning else []
        said += [("text", self.text)] if self.text else []
        said += [("call", str(call)) for call in self.tool_calls]
        return table([*said, (self.finish_reason, usage + cut)])


class MessageBuilder:
    """Collects events; their deltas, joined, are the message."""

    def __init__(self) -> None:
        self._text: list[str] = []
        self._reasoning: list[str] = []
        self._calls: list[ToolCall] = []

    def add(self, event: Event | Generation) -> None:
        """Take the next event; one that is not part of a message changes nothing."""
        if isinstance(event, TextDelta):
            self._text.append(event.text)
        elif isinstance(event, ReasoningDelta):
            self._reasoning.append(event.text)
        elif isinstance(event, CallEnd):
            self._calls.append(event.call)

    @property
    def text(self) -> str:
        """The text so far."""
        return "".join(self._text)

    @property
    def has_calls(self) -> bool:
        """True if a tool call has ended."""
        return bool(self._calls)

    def message(self) -> Message:
        """Return the assistant's message so far."""
        reasoning = "".join(self._reasoning) or None
        return Message("assistant", self.text, reasoning=reasoning, tool_calls=tuple(self._calls))

    def cancelled(self) -> Generation:
        """Return the part of an answer that was there when the caller cancelled it."""
        return Generation(self.message(), "cancelled", Usage())
