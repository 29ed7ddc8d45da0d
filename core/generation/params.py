"""Options of a generation, and the protocols of tool sets and output parsers.

`core` does not know tools: it uses tool sets by the `ToolInterface` protocol, which ``toolgrammar.tools.ToolSet``
implements.
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
    from ..repair import Edit


class OutputParser(Protocol):
    """Converts a model's raw output, in arbitrary pieces, to typed deltas.

    Law: the deltas do not depend on the pieces (after joining adjacent deltas of one kind).
    """

    def feed(self, text: str) -> list[Event]:
        """Read the next piece; return the events that are certain now (no `Finish`)."""
        ...

    def close(self) -> list[Event]:
        """End the text; return the remaining events. An incomplete call has an error."""
        ...

    @property
    def leniencies(self) -> Sequence[Edit]:
        """What the text so far has that the wire format does not write (`Message.leniencies`)."""
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
        other_spellings: bool = False,
    ) -> Grammar:
        """Return the union grammar of the assistant's turn; with ``other_spellings``, text that begins as a call in the
        spelling of another family is held to that call."""
        ...

    def parser(
        self,
        format: Any = "hermes",
        *,
        response_schema: Any = None,
        bare_json: bool = False,
        other_spellings: bool = False,
        names_only: bool = False,
    ) -> OutputParser:
        """Return a new streaming parser for a wire format; with a response schema, text is JSON; with ``bare_json``,
        JSON that names a tool is a call; with ``other_spellings``, the grammar had them; with ``names_only``, a call
        begins as soon as its name is certain, and is not checked."""
        ...

    def to_openai(
        self, *, closed: bool = False, brief: Collection[str] = (), bound: bool = False
    ) -> list[dict[str, Any]]:
        """Return the tools as OpenAI-style dicts with full schemas; with ``closed``, objects without additional
        properties declare it, as in the check of calls; those in ``brief`` without schema, and with one line; with
        ``bound``, those that may be called now, with the values of the conversation."""
        ...

    def check_call(self, call: ToolCall, *, repair: bool = False) -> ToolCall:
        """Return an unconstrained call, with ``error`` set if it is invalid; with ``repair``, repaired if possible."""
        ...

    def wire_format(self, name: str | None, template: str, special: Collection[str]) -> Any:
        """Return the wire format with a name, or (None) the one detected from chat template and control tokens, for the
        argument ``format`` of the other methods."""
        ...

    def shown_format(self, template: str, special: Collection[str]) -> Any:
        """Return the wire format detected from a chat template; None if there is none."""
        ...

    def render_history(self, messages: Sequence[Message], format: Any = "hermes") -> Sequence[Message]:
        """Return a conversation with its calls and results as text."""
        ...

    def prompt(self, format: Any = "hermes", *, brief: Collection[str] = ()) -> str:
        """Return the description of the tools and the format, for a model without a template of its own; those in
        ``brief`` with their name and one line."""
        ...

    def brief_names(self, mode: ToolsInPrompt, size: int) -> frozenset[str]:
        """Return the names of the tools of which the prompt has only the name and one line.

        Args:
            mode: ``GenerateParams.tools_in_prompt``.
            size: number of bytes of all declarations beyond which ``"auto"`` is ``"names"``.
        """
        ...

    def declarations(self, names: Sequence[str]) -> str:
        """Return the full declarations of some tools, as a text for the prompt."""
        ...


#: What the prompt has of each tool: its schema, or its name and one line.
ToolsInPrompt = Literal["schemas", "names", "auto"]


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
        reasoning_first: explaining properties (``reasoning``, ``explanation``, ...) come before the others.
        additional_properties: an object of a Python type may have members that are not its fields, as in JSON Schema by
            default. False: only a class that allows it (``extra="allow"``).
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
    """Options of a generation.

    Attributes:
        max_tokens: token budget of the output; None: the rest of the context window (at most 2,048).
        temperature: 0 is greedy.
        top_p: keep the smallest set of tokens with this much probability; 0: the most likely one.
        top_k: keep this many tokens; 0 keeps all.
        min_p: drop tokens below this share of the most likely one's probability.
        repetition_penalty: divides the positive logits, and multiplies the others, of tokens in the prompt or the
            output (1 changes nothing; more makes repeating less likely).
        logit_bias: added to the logits of these token ids; -100 practically bans one. No bias allows what the grammar
            forbids.
        seed: makes sampling reproducible.
        thinking: reasoning before the answer: True, or its budget in tokens, including the markers; False: none;
            ``"auto"``: the model chooses. None: as in the prompt, so that a model whose template begins the reasoning
            can finish it.
        thinking_markers: its start and end marker; None: those of the model's vocabulary.
        draft: for models without reasoning markers: the model first writes free text, at most this many tokens, and
            then the answer. The draft is returned as reasoning. Not with ``thinking`` or a prefix; ignored if the
            prompt has begun the reasoning.
        prefix: the beginning of the assistant's turn; the answer continues it, without repeating it. If it ends inside
            a token, that token is written as the tokenizer would write it (token healing). With an empty conversation
            it is a text for the model to continue without a chat template (text completion).
        stop: strings that end a text answer; not searched inside a tool call.
        output_type: the shape of the answer. For JSON: a Pydantic class, a Python type (``list[int]``, a dataclass, a
            ``TypedDict``, ``Literal[...]``), a list of values to choose from, or a JSON Schema. For other text: a
            `Grammar`, or its text in GBNF or Lark. It replaces ``json_mode``, ``grammar`` or (with tools)
            ``response_schema``; only one of these is allowed.
        json_mode: the answer is JSON; True: any JSON.
        grammar: the answer is a text of this grammar: a `Grammar`, or an argument of `Grammar.from_any`.
        tools: a tool set (``toolgrammar.tools.ToolSet``), or its sources: functions, classes, tool dicts, or a list of
            these. A tool set that is reused keeps its grammar between requests.
        tools_in_prompt: ``"schemas"``: the prompt declares each tool with its schema. ``"names"``: it has the name of
            each tool and one line; when the model has written the name in a call, the tool's declaration is inserted
            into the prompt before the model goes on. ``"auto"``: names if the declarations have more than 8,192 bytes,
            and more than half as many as the context window has tokens (they would fill about an eighth of it). A
            server is asked twice: it chooses tools by their names, and then gets the schemas of these. A tool that is
            ``deferred`` always has its name only, on a server its schema.
        tool_choice: ``"auto"``, ``"required"`` (``"any"`` is the same), ``"none"`` or a tool's name.
        parallel_tool_calls: several calls in one turn are allowed.
        equal_calls: calls may repeat earlier ones of the same turn (same tool, same arguments as written). False: such
            a call is dropped, and the answer ends there (that of a remote model continues).
        empty_answer: with ``tool_choice="auto"``, after the result of a tool, an answer may be empty: small models end
            a turn in silence, and one that may not repeats its calls. False: it has text or a call, as it always has
            otherwise.
        other_spellings: with ``tool_choice="auto"``, a text that begins as a call of a tool in the spelling of another
            family (JSON, ``<function=...>``, a call of Python; in a code fence or not) is held to the tool's schema and
            is a call, with a leniency in ``Message.leniencies``. False: it is text.
        response_schema: with tools: a text answer must be JSON of this schema.
        tool_format: wire format of calls; None: detect it from the model's tokenizer.
        on_budget: near the budget, complete the output validly and list the truncated values (``"close"``), or raise
            (``"error"``).
        max_repetition: maximum number of bytes in which a short unit may be repeated, inside a free string, among the
            items of a list and in free text. Then the string or list is closed and listed as truncated; a text ends.
            None: the budget's number of tokens, at least 384 (in lists 1,536); 0: no bound.
        jump_forward: append forced text without asking the model, as far as its tokens do not depend on the text after
            it.
        canonical: choose only tokens that the tokenizer itself would write after the text, as in the model's training
            texts. If the grammar allows none of these, the others are used.
        exact_choice: if finitely many words may follow (a tool's name, a value of an ``enum``, a boolean, a small
            integer), choose by the probabilities of the whole words, not of their first tokens; at most one more
            forward pass for each choice. The probabilities are in ``Generation.choices``.
        logprobs: also yield `TokenWritten` events with log-probabilities, and add them to the `Generation`, with those
            of this many likeliest tokens at each position. None: no log-probabilities.
        masses: report for each value the share of the model's probability that the grammar allows, in
            ``Generation.masses`` and the `Finish`.
        trace: also yield `TokenWritten` events, and add a `Trace` to the `Generation` and its `Finish`.
        cancel: called at each step, and repeatedly in a long one; True ends the generation.
        timeout: maximum time of one answer in seconds, including all retries; then the generation, streamed or not,
            raises `GenerationTimeoutError` (a `TimeoutError`).
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
    tools_in_prompt: ToolsInPrompt = "schemas"
    tool_choice: str = "auto"
    parallel_tool_calls: bool = True
    equal_calls: bool = False
    empty_answer: bool = True
    other_spellings: bool = True
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
    tools_in_prompt: ToolsInPrompt
    tool_choice: str
    parallel_tool_calls: bool
    equal_calls: bool
    empty_answer: bool
    other_spellings: bool
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
