"""`WireFormat`: the notation of tool calls of a family of models. `TurnSpec`: the permitted content of one turn.

A format is a stateless value. It provides four things: the grammar of an assistant's turn, a parser for such a
turn (constrained or not), the rendering of calls and results for the history, and a prompt for models without a chat
template of their own.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple, Protocol

from toolgrammar.core.basics import PropertyOrder, Whitespace, memoised_if_short, require_word
from toolgrammar.core.conversation import Message, ReasoningMarkers, ToolCall, as_shown
from toolgrammar.core.errors import GrammarError, ToolGrammarError, UnsatisfiableSchemaError
from toolgrammar.core.generation import OutputParser
from toolgrammar.core.grammar import Grammar
from toolgrammar.core.json import dump_json, read_json
from toolgrammar.core.reading import ReadingMark, marked_json, marked_place
from toolgrammar.core.repair import Edit

from ..call_grammars import CALL_GRAMMARS, CallGrammars
from ..tool import Tool, not_enforced

#: How arguments are held to their schema: with no members that it does not name, with such members where it does not
#: forbid them, or only as some JSON object (the finished call is then checked).
Strictness = Literal["closed", "open", "object"]


def checked_strictness(given: Any) -> Mapping[str, Strictness]:
    """Return the option ``strictness`` of a tool set: by name of a tool; None: no tool has one.

    Raises:
        GrammarError: it is no mapping, or a tool has another word.
    """
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise GrammarError(f"strictness is {given!r}", hint='give it by tool, for example {"search": "open"}')
    for name, word in given.items():
        require_word(f"strictness of {name!r}", word, Strictness)
    return given


#: Reasoning before an answer: none, optional, or already opened by the prompt.
Reasoning = Literal["none", "optional", "opened"]


class Head(NamedTuple):
    """Beginnings of calls: for example ``{"name": ``, a name, and ``, "arguments":``."""

    before: str  # a regular expression
    names: Sequence[str]  # one of these words follows
    after: str  # a regular expression


class OtherCalls(Protocol):
    """Calls in the spelling of other families."""

    @property
    def heads(self) -> Sequence[Head]:
        """The beginnings of a text that make it such a call."""
        ...

    def grammars(self, turn: TurnSpec) -> Sequence[Grammar]:
        """Return the grammars of such calls of a turn."""
        ...


@dataclass(frozen=True)
class TurnSpec:
    """Specification of one assistant turn: made by `ToolSet`, followed by the formats.

    Attributes:
        tools: the tools that may be called; empty when ``max_calls`` is 0.
        min_calls: 0 allows a turn of text alone.
        max_calls: maximum number of calls; None: no maximum.
        text: free text is allowed, alone or before the calls.
        response_schema: text is JSON of this schema (a dict or bool) instead of free, without calls; None: it is free.
        whitespace: how arguments may be spaced.
        additional_properties: the value of ``additionalProperties`` in schemas that do not mention it.
        strictness: by name of a tool: how strictly its schema is enforced; ``additional_properties`` decides for the
            others.
        distinct: no tool is called twice.
        least_calls: minimum number of calls in a turn with calls.
        grammars: cache of the grammars of single tools.
        property_order: the order of the members of JSON arguments (see `toolgrammar.core.Grammar.from_json_schema`).
        other: calls in the spelling of other families, as which a text may begin; None: such a text is text.
        is_marked: the grammar is for reading (`toolgrammar.core.reading`).
    """

    tools: tuple[Tool, ...]
    min_calls: int = 0
    max_calls: int | None = None
    text: bool = True
    response_schema: Any = None
    whitespace: Whitespace = "single"
    additional_properties: bool = False
    strictness: Mapping[str, Strictness] = field(default_factory=dict)
    distinct: bool = False
    least_calls: int = 1
    grammars: CallGrammars = field(default=CALL_GRAMMARS, repr=False, compare=False)
    property_order: PropertyOrder = "schema"
    other: OtherCalls | None = None
    is_marked: bool = False

    def schema(self, tool: Tool) -> tuple[Any, bool]:
        """Return the schema of a tool's arguments, and the default of its ``additionalProperties``."""
        strictness = self.strictness.get(tool.name)
        if strictness == "object":
            return {"type": "object"}, True
        return tool.parameters, self.additional_properties if strictness is None else strictness == "open"

    def counted(self, least: int | None, most: int | None, distinct: bool = False) -> TurnSpec:
        """Return the turn with a request's bounds on its calls.

        Args:
            least: the minimum, for a turn with calls; None: 1.
            most: the maximum; None: that of this turn.
            distinct: no tool is called twice.

        Raises:
            ToolGrammarError: no number of calls is within the bounds.
        """
        if distinct:
            most = min(len(self.tools), len(self.tools) if most is None else most)
        # A turn that is held to one call stays so.
        upper = self.max_calls if most is None or self.max_calls == 1 else most
        if (least is not None and least < 0) or (most is not None and most < 1):
            raise ToolGrammarError(
                f"between {least} and {most} calls", hint="min_calls is at least 0, max_calls at least 1"
            )
        if least is not None and upper is not None and least > upper:
            raise ToolGrammarError(
                f"at least {least} calls, and at most {upper}", hint="raise max_calls, or lower min_calls"
            )
        return replace(self, least_calls=max(least or 1, 1), max_calls=upper, distinct=distinct)

    def part(self, tool: Tool, format_number: int, make: Callable[[], Grammar]) -> Grammar:
        """Return the part of a format's grammar that belongs to one tool; cached, so that tool sets share it.

        Args:
            tool: the tool.
            format_number: stands for the format in the cache's key; ``grammars.number`` gives it.
            make: makes the grammar from the tool's name and parameters, `whitespace` and `schema`.

        Raises:
            SchemaError: the tool's schema cannot be enforced, or no arguments can satisfy it; names the tool.
        """
        identity = tool.identity
        if identity is None:  # such a tool has no key in the cache
            part = make()
        else:
            strictness = self.strictness.get(tool.name)
            key = (
                identity,
                self.whitespace,
                self.property_order,
                self.additional_properties,
                strictness,
                format_number,
            )
            part = self.grammars.get(key, make)
        try:
            part.check()
        except UnsatisfiableSchemaError as error:
            # A required property that is not declared can be written if undeclared ones are allowed.
            undeclared = f"; or read the tool open: ToolSet(..., strictness={{{tool.name!r}: 'open'}})"
            raise UnsatisfiableSchemaError(
                f"the tool can never be called: {error.message}",
                hint=(error.hint or "") + (undeclared if error.place.keyword == "required" else ""),
                place=replace(error.place, tool=tool.name),
            ) from None
        except ToolGrammarError as error:  # a format cannot write a name, say
            raise not_enforced(error, tool.name) from error
        return part

    def arguments(self, tool: Tool) -> Grammar:
        """Return the grammar of a tool's arguments as JSON.

        Raises:
            SchemaError: its schema cannot be enforced; names the tool.
        """
        schema, additional = self.schema(tool)
        try:
            options: Any = {"additional_properties": additional, "property_order": self.property_order}
            if self.is_marked:
                return marked_json(schema, whitespace=self.whitespace, **options)
            return Grammar.from_json_schema(schema, whitespace=self.whitespace, plain_integers=True, **options)
        except ToolGrammarError as error:
            raise not_enforced(error, tool.name) from error

    def answer(self) -> Grammar:
        """Return the grammar of JSON of the `response_schema`.

        Raises:
            SchemaError: it cannot be enforced, or no value can satisfy it.
        """
        if self.is_marked:
            return marked_json(self.response_schema, whitespace=self.whitespace)
        answer = Grammar.from_json_schema(self.response_schema, whitespace=self.whitespace, plain_integers=True)
        try:
            answer.check()  # the grammar of a turn that may have calls, too, would not show that there is no answer
        except UnsatisfiableSchemaError as error:
            raise UnsatisfiableSchemaError(
                f"the answer (response_schema) can never be written: {error.message}",
                hint=error.hint,
                place=error.place,
            ) from None
        return answer

    def marks(self, *marks: ReadingMark) -> tuple[Grammar, ...]:
        """Return some marks, as parts of a grammar; none, if it is not for reading."""
        return tuple(map(marked_place, marks)) if self.is_marked else ()


class FormatParser(OutputParser, Protocol):
    """Parser of a wire format."""

    @property
    def leniencies(self) -> Sequence[Edit]:
        """What the text so far has that the format does not write, as edits of the text.

        ``why`` of each is one of `toolgrammar.tools.formats.LENIENCIES`. A text of the format's grammar has none.
        """
        ...


class WireFormat(ABC):
    """A notation of tool calls.

    Law: for every call that the grammar of a turn admits, ``parser`` returns it, and for every list of calls valid
    for their tools, ``grammar`` admits ``render(text, calls)``.

    Attributes:
        name: the name by which `get_format` finds it.
        thinking: the model's reasoning markers, if it has any.
        signs: strings that a chat template of the family contains, all of them; empty: no template shows it.
        signs_against: strings that it does not contain.
    """

    name: str
    thinking: ReasoningMarkers | None = None
    signs: tuple[str, ...] = ()
    signs_against: tuple[str, ...] = ()

    def for_vocabulary(self, special: Collection[str]) -> WireFormat:
        """Return the format for a vocabulary with these control tokens."""
        return self

    def markup(self, text: str) -> Grammar:
        """Return the grammar of markup: control tokens as such, the rest as text."""
        return Grammar.literal(text)

    @property
    def call_markers(self) -> tuple[str, ...]:
        """Markers that begin calls wherever they stand."""
        return ()

    @property
    def barred_markers(self) -> tuple[str, ...]:
        """Markers of calls that no text contains."""
        return self.call_markers

    @property
    def reasoning_ends(self) -> tuple[str, ...]:
        """Markers of calls that end open reasoning: the model may leave out the marker that does."""
        return ()

    @property
    def text_marker(self) -> str:
        """Markup before a text; empty if there is none."""
        return ""

    def with_reasoning(self, answer: Grammar, reasoning: Reasoning) -> Grammar:
        """Return the grammar of an answer with reasoning before it.

        Args:
            answer: the grammar of the turn without reasoning.
            reasoning: ``"none"``; ``"optional"``: it may come first; ``"opened"``: the prompt has opened it, and it has
                to be closed.
        """
        if self.thinking is None or reasoning == "none":
            return answer
        thinking = self.thinking
        space = Grammar.from_regex(r"[ \n]{0,4}")
        free = Grammar.text(excluding=[thinking.end]) + self.markup(thinking.end)
        whole = Grammar.sequence(free, space, self.markup(thinking.after), answer)
        if reasoning == "opened":
            return whole
        return Grammar.choice(answer, Grammar.sequence(Grammar.from_regex(r"\n?"), self.markup(thinking.start), whole))

    def without_ids(self) -> WireFormat:
        """Return the format for a reader to whom the name of a call matters, and its id does not: the call begins with
        its name, also where its id comes after the arguments."""
        return self

    @abstractmethod
    def grammar(self, turn: TurnSpec) -> Grammar:
        """Return the grammar of the assistant's turn."""

    def stricter(self, broken: str, repaired: str) -> WireFormat:
        """Return the format in which to look for a repair again, because the first repair made markup a part of a value
        (a misspelled argument, say, the rest of the string before it); this format if it did not.

        Args:
            broken: the text.
            repaired: what it was repaired to.
        """
        return self

    def several(
        self, turn: TurnSpec, calls: Mapping[str, tuple[str, Grammar]], head: Grammar, between: Grammar
    ) -> Grammar:
        """Return the grammar of the calls of a turn.

        Args:
            turn: the specification of the turn.
            calls: for each tool its name as it is written, and what follows it.
            head: the text of a call before the name.
            between: the text between calls.
        """
        least = max(turn.min_calls, turn.least_calls)
        if turn.distinct:
            alternatives = [Grammar.sequence(head, Grammar.literal(name), rest) for name, rest in calls.values()]
            return Grammar.distinct(alternatives, between, least, turn.max_calls)
        call = head + Grammar.cases(dict(calls.values()))
        if turn.max_calls is not None and turn.max_calls <= 1:
            return call
        most = None if turn.max_calls is None else turn.max_calls - 1
        return call + Grammar.repeat(between + call, least - 1, most)

    @abstractmethod
    def parser(
        self,
        tools: Sequence[Tool],
        finish: Callable[[ToolCall], ToolCall],
        new_id: Callable[[], str],
        *,
        whole_text: bool = False,
    ) -> FormatParser:
        """Return a fresh streaming parser.

        Args:
            tools: the tools whose calls may appear (formats that do not write JSON need their schemas).
            finish: applied to each call that was read whole; fills in ``error`` where the call is not valid.
            new_id: makes the id of a call that has none on the wire.
            whole_text: text and calls exclude each other, as with a `TurnSpec.response_schema`: a marker inside of the
                text (in a JSON string, say) begins no call.
        """

    @abstractmethod
    def render_calls(self, calls: Sequence[ToolCall]) -> str:
        """Return calls as the model writes them, in the form that it was trained on."""

    @abstractmethod
    def render(self, text: str, calls: Sequence[ToolCall]) -> str:
        """Return a whole turn: text, then calls."""

    @abstractmethod
    def render_result(self, message: Message) -> str:
        """Return a message of role ``tool`` as the model reads it."""

    @abstractmethod
    def prompt(self, tools: Sequence[Tool], brief: Collection[str] = ()) -> str:
        """Return the prompt that describes the tools and the format; empty without tools.

        Args:
            tools: the tools.
            brief: names of the tools of which it has only the name and one line.
        """


@memoised_if_short(4_096)
def dump_name(name: str) -> str:
    """Return `dump_json` of a tool's name, cached: the same names come with each request."""
    return dump_json(name)


def named_tool(tool: Tool, *, is_quoted: bool) -> ReadingMark:
    """Return the mark after the name of a tool, which stands as it is or as a JSON string."""
    size = len((dump_name(tool.name) if is_quoted else tool.name).encode())
    return ReadingMark.of_tool(tool.name, size - is_quoted, int(is_quoted))


def decode_object(text: str) -> dict[str, Any]:
    """Return the object that a JSON text holds.

    Raises:
        ValueError: it holds none; see `read_json`.
    """
    value = read_json(text)
    if not isinstance(value, dict):
        raise ValueError("the arguments are not an object")
    return value


def turn_as_text(wire: WireFormat, message: Message) -> str:
    """Return a turn as a format writes it; several calls, or text beside calls, also where the format has no room."""
    calls = message.tool_calls
    if len(calls) > 1 and not getattr(wire, "parallel", True):
        return "\n".join(filter(None, [message.text, *(wire.render_calls([call]) for call in calls)]))
    if message.text and not getattr(wire, "prose", True):
        return f"{message.text}\n{wire.render_calls(calls)}"
    return wire.render(message.text, calls)


def history_as_text(wire: WireFormat, messages: Sequence[Message]) -> tuple[Message, ...]:
    """Return a conversation for a model whose chat template knows no calls: calls as text of the assistant,
    neighbouring results as one text of the user, as a format writes them."""
    rendered: list[Message] = []
    results: list[str] = []
    for message in as_shown(messages):
        if results and message.role != "tool":
            rendered.append(Message("user", "\n".join(results)))
            results = []
        if message.role == "tool":
            results.append(wire.render_result(message))
        elif message.tool_calls:
            rendered.append(replace(message, content=turn_as_text(wire, message), tool_calls=()))
        else:
            rendered.append(message)
    return (*rendered, Message("user", "\n".join(results))) if results else tuple(rendered)
