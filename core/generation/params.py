"""Options of a generation, and the protocols of tool sets and output parsers.

`core` knows no tool: a tool set reaches it through the `ToolInterface` protocol, which
``toolgrammar.tools.ToolSet`` implements.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypedDict, runtime_checkable

from ..basics.options import Whitespace

if TYPE_CHECKING:
    from ..conversation.events import Event
    from ..conversation.messages import Message, ToolCall
    from ..grammar import Grammar


class OutputParser(Protocol):
    """Turns a model's raw output, in pieces cut anywhere, into typed deltas.

    Law: the deltas do not depend on how the text was cut (after joining neighbouring deltas of one kind).
    """

    def feed(self, text: str) -> list[Event]:
        """Take the next piece; return the events that are certain now (no `Finish`)."""
        ...

    def close(self) -> list[Event]:
        """End the text; return the rest. A call inside of which it ends has an error."""
        ...


@runtime_checkable
class ToolInterface(Protocol):
    """A tool set, as a generation uses it."""

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the tools, in order."""
        ...

    def grammar(
        self,
        format: Any = "hermes",
        *,
        tool_choice: str = "auto",
        parallel: bool = True,
        whitespace: Whitespace = "single",
        response_schema: Any = None,
    ) -> Grammar:
        """Return the union grammar of the assistant's turn."""
        ...

    def parser(self, format: Any = "hermes", *, response_schema: Any = None, bare_json: bool = False) -> OutputParser:
        """Return a fresh streaming parser for a wire format; with a response schema, text is JSON; with ``bare_json``,
        JSON that names a tool is a call."""
        ...

    def to_openai(self, *, closed: bool = False) -> list[dict[str, Any]]:
        """Return the tools as OpenAI-style dicts with full schemas; with ``closed``, objects that allow no other
        properties say so, as in the check of calls."""
        ...

    def check_call(self, call: ToolCall, *, repair: bool = False) -> ToolCall:
        """Return an unconstrained call, with ``error`` set if it is not valid; ``repair`` repairs it where possible."""
        ...

    def wire_format(self, name: str | None, template: str, special: Collection[str]) -> Any:
        """Return the wire format of a name, or (None) the one that chat template and control tokens show; it is the
        ``format`` of the other methods."""
        ...

    def shown_format(self, template: str, special: Collection[str]) -> Any:
        """Return the wire format that a chat template shows; None if it shows none."""
        ...

    def render_history(self, messages: Sequence[Message], format: Any = "hermes") -> Sequence[Message]:
        """Return a conversation with its calls and results as text."""
        ...

    def prompt(self, format: Any = "hermes") -> str:
        """Return the description of the tools and the format, for a model without a template of its own."""
        ...


@dataclass(frozen=True)
class JsonMode:
    """Ask for JSON that matches a schema.

    Attributes:
        schema: JSON Schema (dict or bool), a Pydantic model class, or None for any JSON.
        strict: an unsupported keyword is an error (True) or is checked after generation (False).
        repair: repair and retry output of models that cannot be constrained.
        grammar: a ready `Grammar` instead of a schema.
        constrained_decoding: False writes freely, then validates (and repairs, if asked).
        whitespace: the white space that the model may write in JSON.
        reasoning_first: properties that explain (``reasoning``, ``explanation``, ...) come before the others.
        additional_properties: an object of a Python type may have members that are no fields of it, as a JSON Schema
            has it unless it says otherwise. By default only a class that says so (``extra="allow"``) has any.
    """

    schema: Any = None
    strict: bool = True
    repair: bool = True
    grammar: Grammar | None = None
    constrained_decoding: bool = True
    whitespace: Whitespace = "single"
    reasoning_first: bool = False
    additional_properties: bool = False


@dataclass(frozen=True)
class GenerateParams:
    """How to generate.

    Attributes:
        max_tokens: token budget of the output; None means what the context window leaves (at most 2,048).
        temperature: 0 is greedy.
        top_p: keep the smallest set of tokens with this much probability.
        top_k: keep this many tokens; 0 keeps all.
        min_p: drop tokens below this share of the most likely one's probability.
        repetition_penalty: divides the positive logits, and multiplies the others, of tokens in the prompt or the
            output (1 changes nothing; more makes repeating less likely).
        logit_bias: added to the logits of these token ids; -100 all but bans one. No bias brings back what the
            grammar forbids.
        seed: makes sampling reproducible.
        thinking: reasoning before the answer: True, or its budget in tokens, the markers included; False: none;
            ``"auto"``: if the model begins to. None: as the prompt has it, so that a model whose template begins to
            reason may finish.
        thinking_markers: its start and end marker; None lets the model's vocabulary decide.
        draft: the model first writes freely, at most this many tokens, and then the answer after it: for models without
            reasoning markers. The draft comes as reasoning. Not beside ``thinking`` or a prefix; where the prompt has
            begun to reason already, there is none.
        prefix: the beginning of the assistant's turn; the answer goes on from there, and leaves it out. A token that
            the prefix ends inside of is written as the tokenizer would (token healing). With an empty conversation it
            is a text that the model goes on with, no chat template around it (text completion).
        stop: strings that end a text answer; never looked for inside a tool call.
        output_type: the shape of the answer. JSON: a Pydantic class, a Python type (``list[int]``, a dataclass, a
            ``TypedDict``, ``Literal[...]``), a list of values of which one is taken, or a JSON Schema. Any other text:
            a `Grammar`, or its text in GBNF or Lark. It replaces ``json_mode``, ``grammar`` or (beside tools)
            ``response_schema``; only one of these may be given.
        json_mode: the answer is JSON; True is any JSON.
        grammar: the answer is a text of this grammar: a `Grammar`, or anything that `Grammar.from_any` takes.
        tools: a tool set (``toolgrammar.tools.ToolSet``), or what one can be made of: functions, classes, tool
            dicts, or a list of these. A set that is made once keeps its grammar from request to request.
        tool_choice: ``"auto"``, ``"required"`` (``"any"`` is the same), ``"none"`` or a tool's name.
        parallel_tool_calls: several calls in one turn are allowed.
        equal_calls: calls may be equal to earlier ones of the same turn: same tool, same arguments as they are written.
            False: such a call is left out, and the answer ends there (a remote model's goes on).
        response_schema: beside tools: a text answer must be JSON of this schema.
        tool_format: wire format of calls; None lets the model's tokenizer decide.
        on_budget: near the budget, ``"close"`` the output validly (and name the cut values) or raise (``"error"``).
        max_repetition: inside a string that the grammar leaves open, among the items of a list and in free text, this
            many bytes of a short text again and again are a loop: the string or list is closed and named among the cut
            values, and a text ends. None: as many as the budget has tokens, at least 384 (in lists 1,536); 0: no
            bound.
        jump_forward: append text that the grammar fixes without asking the model, as far as the tokenizer spells it
            the same way whatever follows.
        canonical: choose only tokens with which the tokenizer itself would go on writing the text, as in all that the
            model has read. Where none is allowed, the others are.
        exact_choice: where finitely many words may follow (a tool's name, a value of an ``enum``, a boolean, a small
            integer), choose by the probability of each whole word, and not by its first token; one more forward pass
            at most for each, and its probabilities are in ``Generation.choices``.
        logprobs: also yield `TokenWritten` events with log-probabilities, and put them into the `Generation`; this many
            of the likeliest tokens at each place come with theirs. None: no log-probabilities.
        masses: tell for each value how much of the model's probability the grammar left, in ``Generation.masses`` and
            the `Finish`.
        trace: also yield `TokenWritten` events, and put a `Trace` into the `Generation` and its `Finish`.
        cancel: polled at each step, and now and then in a long one; returning True ends the generation.
        timeout: seconds that one answer may take, from its beginning, all attempts included; then generating, streamed
            or not, raises `GenerationTimeoutError` (a `TimeoutError`).
    """

    max_tokens: int | None = None
    temperature: float = 0.0
    top_p: float = 1.0
    top_k: int = 0
    min_p: float = 0.0
    repetition_penalty: float = 1.0
    logit_bias: Mapping[int, float] | None = None
    seed: int | None = None
    thinking: bool | int | Literal["auto"] | None = None
    thinking_markers: tuple[str, str] | None = None
    draft: int | None = None
    prefix: str = ""
    stop: Sequence[str] = ()
    output_type: Any = None
    json_mode: JsonMode | None = None
    grammar: Grammar | None = None
    tools: Any = None
    tool_choice: str = "auto"
    parallel_tool_calls: bool = True
    equal_calls: bool = False
    response_schema: Mapping[str, Any] | bool | None = None
    tool_format: str | None = None
    on_budget: Literal["close", "error"] = "close"
    max_repetition: int | None = None
    jump_forward: bool = True
    canonical: bool = False
    exact_choice: bool = False
    logprobs: int | None = None
    masses: bool = False
    trace: bool = False
    cancel: Callable[[], bool] | None = None
    timeout: float | None = None


class GenerateOptions(TypedDict, total=False):
    """The fields of `GenerateParams`, as keyword options of `Model.generate` and its siblings."""

    max_tokens: int | None
    temperature: float
    top_p: float
    top_k: int
    min_p: float
    repetition_penalty: float
    logit_bias: Mapping[int, float] | None
    seed: int | None
    thinking: bool | int | Literal["auto"] | None
    thinking_markers: tuple[str, str] | None
    draft: int | None
    prefix: str
    stop: str | Sequence[str]
    output_type: Any
    json_mode: JsonMode | Literal[True] | None
    grammar: Grammar | str | Mapping[str, Any] | None
    tools: Any
    tool_choice: str
    parallel_tool_calls: bool
    equal_calls: bool
    response_schema: Mapping[str, Any] | bool | type[Any] | None
    tool_format: str | None
    on_budget: Literal["close", "error"]
    max_repetition: int | None
    jump_forward: bool
    canonical: bool
    exact_choice: bool
    logprobs: int | None
    masses: bool
    trace: bool
    cancel: Callable[[], bool] | None
    timeout: float | None
