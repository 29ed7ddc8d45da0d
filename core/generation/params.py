"""Options of a generation, and the protocols of tool sets and output parsers.

`core` does not know tools: it uses tool sets by the `ToolInterface` protocol, which ``toolgrammar.tools.ToolSet``
implements.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, Literal, Protocol, get_args, runtime_checkable

from ..basics.options import Whitespace
from .ranges import ANY, FLAG, Range, Ranges, are_texts, is_number, is_whole, number, of, one_of, whole

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
        marked: bool = False,
    ) -> Grammar:
        """Return the union grammar of the assistant's turn; with ``other_spellings``, text that begins as a call in the
        spelling of another family is held to that call; with ``marked``, for `toolgrammar.core.reading`."""
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
class Option:
    """What is known of an option besides its name, type, default and meaning.

    Attributes:
        allowed: its values.
        group: heading in the documentation: ``"sampling"``, ``"answer"``, ``"calls"`` or ``"report"``.
        setting: the adapters take it by name, in constructors and calls. Others they make of the framework's own
            arguments, or have no place for.
        server: requests to the server have it in their field ``toolgrammar``.
        local: it needs the logits of the model: models on servers refuse it.
        truncates: it keeps tokens by their rank among the allowed ones, so that no token is drawn before the mask.
        given: type of the keyword option, if that is wider than the type of the field.
    """

    allowed: Range
    group: str
    setting: bool = True
    server: bool = False
    local: bool = False
    truncates: bool = False
    given: str = ""


def option(default: Any, allowed: Range, group: str, **more: Any) -> Any:
    """Return a field of `GenerateParams` with its row."""
    return field(default=default, metadata={Option: Option(allowed, group, **more)})


def _is_bias(value: Any) -> bool:
    known = isinstance(value, Mapping) and all(is_whole(token) and token >= 0 for token in value)
    return known and all(map(is_number, value.values()))


def _is_thinking(value: Any) -> bool:
    return value is None or value == "auto" or isinstance(value, bool) or (is_whole(value) and value >= 0)


def _are_markers(value: Any) -> bool:
    return value is None or (are_texts(value) and not isinstance(value, str) and len(value) == 2)


def _is_grammar(value: Any) -> bool:
    from ..grammar import Grammar

    return value is None or isinstance(value, Grammar)


_BIAS = Range(
    lambda value: value is None or _is_bias(value),
    "a map from token ids to finite numbers, for example {1234: -100.0}",
    {"type": "object", "additionalProperties": {"type": "number"}},
)
_STOP = Range(are_texts, "texts, none of them empty", {"type": "array", "items": {"type": "string", "minLength": 1}})
_THINKING = Range(_is_thinking, "True, False, 'auto', or a budget in tokens")
_MARKERS = Range(
    _are_markers, "the text before the reasoning and the one after it, for example ('<think>', '</think>')"
)
_GRAMMAR = Range(
    _is_grammar,
    "a toolgrammar.core.Grammar, for example Grammar.from_regex(...), or what Grammar.from_any takes",
)


@dataclass(frozen=True)
class GenerateParams:
    """Options of a generation: a field is the one declaration of an option, from which all other places are derived.

    These are the ranges that are checked (`RANGES`), the keyword options of `Model.generate` (``keywords.py``), the
    settings of adapters (``adapters/_shared/settings.py``), the server's field ``toolgrammar`` and its OpenAPI, and the
    table of the documentation. ``python -m tests.core.generation.generate`` writes those that are files.
    """

    max_tokens: int | None = option(None, whole(1, none=True), "answer")
    """Token budget of the output; None: the rest of the context window (at most 2,048)."""

    temperature: float = option(0.0, number(0, wanted="a number from 0 (greedy)"), "sampling")
    """0 is greedy."""

    top_p: float = option(1.0, number(0, 1), "sampling", truncates=True)
    """Keep the smallest set of tokens with this much probability; 0: the most likely one."""

    top_k: int = option(0, whole(0, wanted="a whole number from 0 (keeps all)"), "sampling", truncates=True)
    """Keep this many tokens; 0 keeps all."""

    min_p: float = option(0.0, number(0, 1), "sampling", truncates=True)
    """Drop tokens below this share of the most likely one's probability."""

    repetition_penalty: float = option(1.0, number(0, wanted="more than 0; 1 changes nothing", above=True), "sampling")
    """Divides the positive logits, and multiplies the others, of tokens in the prompt or the output (1 changes nothing;
    more makes repeating less likely)."""

    logit_bias: Mapping[int, float] | None = option(None, _BIAS, "sampling")
    """Added to the logits of these token ids; -100 practically bans one. No bias allows what the grammar forbids."""

    seed: int | None = option(None, whole(0, none=True), "sampling")
    """Makes sampling reproducible."""

    thinking: bool | int | Literal["auto"] | None = option(None, _THINKING, "answer")
    """Reasoning before the answer: True, or its budget in tokens, including the markers; False: none; ``"auto"``: the
    model chooses. None: as in the prompt, so that a model whose template begins the reasoning can finish it."""

    thinking_markers: tuple[str, str] | None = option(None, _MARKERS, "answer")
    """Its start and end marker; None: those of the model's vocabulary."""

    draft: int | None = option(None, whole(1, wanted="at least 1 token", none=True), "answer", server=True, local=True)
    """For models without reasoning markers: the model first writes free text, at most this many tokens, and then the
    answer. The draft is returned as reasoning. Not with ``thinking`` or a prefix; ignored if the prompt has begun the
    reasoning."""

    prefix: str = option("", of(str, "a text", none=False), "answer", local=True)
    """The beginning of the assistant's turn; the answer continues it, without repeating it. If it ends inside a token,
    that token is written as the tokenizer would write it (token healing). With an empty conversation it is a text for
    the model to continue without a chat template (text completion)."""

    stop: Sequence[str] = option((), _STOP, "answer", given="str | Sequence[str]")
    """Strings that end a text answer; not searched inside a tool call."""

    output_type: Any = option(None, ANY, "answer", setting=False)
    """The shape of the answer. For JSON: a Pydantic class, a Python type (``list[int]``, a dataclass, a ``TypedDict``,
    ``Literal[...]``), a list of values to choose from, or a JSON Schema. For other text: a `Grammar`, or its text in
    GBNF or Lark. With tools: of an answer without calls. It replaces ``json_mode`` or ``grammar``; only one of these is
    allowed."""

    json_mode: JsonMode | None = option(
        None,
        of(JsonMode, "JsonMode(schema=...), or True for any JSON"),
        "answer",
        setting=False,
        given="JsonMode | Literal[True] | None",
    )
    """The answer is JSON; True: any JSON. With tools: an answer without calls is."""

    grammar: Grammar | None = option(None, _GRAMMAR, "answer", given="Grammar | str | Mapping[str, Any] | None")
    """The answer is a text of this grammar: a `Grammar`, or an argument of `Grammar.from_any`."""

    tools: Any = option(None, ANY, "calls", setting=False)
    """A tool set (``toolgrammar.tools.ToolSet``), or its sources: functions, classes, tool dicts, or a list of these. A
    tool set that is reused keeps its grammar between requests."""

    tools_in_prompt: ToolsInPrompt = option("schemas", one_of(*get_args(ToolsInPrompt)), "calls", server=True)
    """``"schemas"``: the prompt declares each tool with its schema. ``"names"``: it has the name of each tool and one
    line; when the model has written the name in a call, the tool's declaration is inserted into the prompt before the
    model goes on. ``"auto"``: names if the declarations have more than 8,192 bytes, and more than half as many as the
    context window has tokens (they would fill about an eighth of it). A server is asked twice: it chooses tools by
    their names, and then gets the schemas of these. A tool that is ``deferred`` always has its name only, on a server
    its schema."""

    tool_choice: str = option(
        "auto", of(str, "'auto', 'required' (or 'any'), 'none' or a tool's name", none=False), "calls", setting=False
    )
    """``"auto"``, ``"required"`` (``"any"`` is the same), ``"none"`` or a tool's name."""

    parallel_tool_calls: bool = option(True, FLAG, "calls")
    """Several calls in one turn are allowed."""

    equal_calls: bool = option(False, FLAG, "calls", server=True)
    """Calls may repeat earlier ones of the same turn (same tool, same arguments as written). False: such a call is
    dropped, and the answer ends there (that of a remote model continues)."""

    empty_answer: bool = option(True, FLAG, "calls", server=True)
    """With ``tool_choice="auto"``, after the result of a tool, an answer may be empty: small models end a turn in
    silence, and one that may not repeats its calls. False: it has text or a call, as it always has otherwise."""

    other_spellings: bool = option(True, FLAG, "calls", server=True)
    """With ``tool_choice="auto"``, a text that begins as a call of a tool in the spelling of another family (JSON,
    ``<function=...>``, a call of Python; in a code fence or not) is held to the tool's schema and is a call, with a
    leniency in ``Message.leniencies``. False: it is text."""

    policy: Any = option(None, ANY, "calls")
    """What may flow into which argument: a ``toolgrammar.tools.Policy`` of one role, its data, or the path of its file.
    Tools that it does not allow are not offered, and arguments have only values from the sources that it names."""

    tool_format: str | None = option(None, ANY, "calls")
    """Wire format of calls; None: detect it from the model's tokenizer."""

    on_budget: Literal["close", "error"] = option("close", one_of("close", "error"), "answer")
    """Near the budget, complete the output validly and list the truncated values (``"close"``), or raise
    (``"error"``)."""

    max_repetition: int | None = option(
        None, whole(0, wanted="a number of bytes", none=True), "answer", server=True, local=True
    )
    """Maximum number of bytes in which a short unit may be repeated, inside a free string, among the items of a list
    and in free text. Then the string or list is closed and listed as truncated; a text ends. None: the budget's number
    of tokens, at least 384 (in lists 1,536); 0: no bound."""

    jump_forward: bool = option(True, FLAG, "answer")
    """Append forced text without asking the model, as far as its tokens do not depend on the text after it."""

    exact_choice: bool = option(False, FLAG, "sampling", server=True, local=True)
    """If finitely many words may follow (a tool's name, a value of an ``enum``, a boolean, a small integer), choose by
    the probabilities of the whole words, not of their first tokens; at most one more forward pass for each choice. The
    probabilities are in ``Generation.choices``."""

    logprobs: int | None = option(None, whole(0, none=True), "report", setting=False, local=True)
    """Also yield `TokenWritten` events with log-probabilities, and add them to the `Generation`, with those of this
    many likeliest tokens at each position. None: no log-probabilities."""

    masses: bool = option(False, FLAG, "report", setting=False, server=True, local=True)
    """Report for each value the share of the model's probability that the grammar allows, in ``Generation.masses`` and
    the `Finish`."""

    trace: bool = option(False, FLAG, "report", setting=False, local=True)
    """Also yield `TokenWritten` events, and add a `Trace` to the `Generation` and its `Finish`."""

    cancel: Callable[[], bool] | None = option(
        None,
        Range(lambda value: value is None or callable(value), "a function that says whether to stop"),
        "answer",
        setting=False,
    )
    """Called at each step, and repeatedly in a long one; True ends the generation."""

    timeout: float | None = option(None, number(0, wanted="seconds", none=True), "answer")
    """Maximum time of one answer in seconds, including all retries; then the generation, streamed or not, raises
    `GenerationTimeoutError` (a `TimeoutError`)."""


#: The rows of the options, by name; in the order of the fields.
OPTIONS: Mapping[str, Option] = {each.name: each.metadata[Option] for each in fields(GenerateParams)}

#: The ranges of the options; `Planner.plan` checks their combinations.
RANGES: Ranges = {name: row.allowed for name, row in OPTIONS.items()}
