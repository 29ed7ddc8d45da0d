"""`WireFormat`: how one family of models writes tool calls, and `TurnSpec`: what may be written in one turn.

A format is a value without state. It is asked for four things: the grammar of an assistant's turn, a parser for such a
turn (constrained or not), the rendering of calls and results for the history, and a prompt for models without a chat
template of their own.
"""

from __future__ import annotations

import json
import secrets
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, Literal

from toolgrammar.core.conversation import Message, ToolCall
from toolgrammar.core.errors import ToolGrammarError, UnsatisfiableSchemaError
from toolgrammar.core.generation import OutputParser
from toolgrammar.core.grammar import Grammar
from toolgrammar.core.language.json_text import escaped, read_json
from toolgrammar.core.options import Whitespace

from ..call_grammars import CALL_GRAMMARS
from ..tool import Tool, not_enforced
from .reasoning import Thinking

#: How arguments are held to their schema: with no members that it does not name, with such members where it does not
#: forbid them, or only as some JSON object (what is wrong is then said of the finished call).
Strictness = Literal["closed", "open", "object"]

#: Whether reasoning comes before an answer: it does not, it may, or the prompt has opened it.
Reasoning = Literal["none", "optional", "opened"]

#: How the ``error`` of a call begins that could not be read, and so has no arguments that could be valid.
MALFORMED = "malformed call"


@dataclass(frozen=True)
class TurnSpec:
    """What an assistant may write in one turn; formats follow it, `ToolSet` decides it.

    Attributes:
        tools: the tools that may be called; empty when ``max_calls`` is 0.
        min_calls: 0 allows a turn of text alone.
        max_calls: None is no bound.
        text: free text is allowed, alone or before the calls.
        response_schema: text is JSON of this schema (a dict or bool) instead of free, and stands alone; None is free.
        whitespace: how arguments may be spaced.
        additional_properties: what objects take that do not mention ``additionalProperties``.
        strictness: how arguments of some tools are held to their schema; of the others as ``additional_properties``
            says.
        distinct: no tool is called twice.
        least_calls: least calls of a turn that has calls.
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

    def schema(self, tool: Tool) -> tuple[Any, bool]:
        """The schema that a tool's arguments are written under, and what objects in it take that do not say so."""
        strictness = self.strictness.get(tool.name)
        if strictness == "object":
            return {"type": "object"}, True
        return tool.parameters, self.additional_properties if strictness is None else strictness == "open"

    def part(self, tool: Tool, spelling: Hashable, make: Callable[[], Grammar]) -> Grammar:
        """What a format writes of one tool; kept, so that other sets with the same tool share it.

        Args:
            tool: the tool.
            spelling: what else it follows from: the format, if all of its fields count.
            make: makes it, from the tool's name and parameters and from `whitespace` and `schema`.

        Raises:
            SchemaError: the tool's schema cannot be enforced, or no arguments can satisfy it; names the tool.
        """
        part = self._kept(tool, spelling, make)
        try:
            part.check()
        except UnsatisfiableSchemaError as error:
            undeclared = f"; or read the tool open: ToolSet(..., strictness={{{tool.name!r}: 'open'}})"
            raise UnsatisfiableSchemaError(
                f"the tool can never be called: {error.message}",
                hint=(error.hint or "") + (undeclared if error.place.keyword == "required" else ""),
                place=replace(error.place, tool=tool.name),
            ) from None
        return part

    def _kept(self, tool: Tool, spelling: Hashable, make: Callable[[], Grammar]) -> Grammar:
        identity = tool.identity
        if identity is None:
            return make()
        known = self.__dict__.get("_spelling")
        if known is None or known[0] is not spelling:  # hashing a format takes longer than all the rest
            known = self.__dict__["_spelling"] = spelling, CALL_GRAMMARS.number(spelling)
        strictness = self.strictness.get(tool.name)
        return CALL_GRAMMARS.get((identity, self.whitespace, self.additional_properties, strictness, known[1]), make)

    def arguments(self, tool: Tool) -> Grammar:
        """The JSON texts that are arguments of a tool.

        Raises:
            SchemaError: its schema cannot be enforced; names the tool.
        """
        schema, additional = self.schema(tool)
        try:
            return Grammar.from_json_schema(
                schema, whitespace=self.whitespace, additional_properties=additional, plain_integers=True
            )
        except ToolGrammarError as error:
            raise not_enforced(error, tool.name) from error


class WireFormat(ABC):
    """One way of writing tool calls.

    Law: for every call that the grammar of a turn admits, ``parser`` returns it, and for every list of calls valid
    for their tools, ``grammar`` admits ``render(text, calls)``.

    Attributes:
        name: the name by which `get_format` finds it.
        thinking: the model's reasoning markers, if it has any.
    """

    name: str
    thinking: Thinking | None = None

    def for_vocabulary(self, special: Collection[str]) -> WireFormat:
        """The format for a vocabulary with these control tokens."""
        return self

    def markup(self, text: str) -> Grammar:
        """Markup of the format: control tokens as such, the rest as text."""
        return Grammar.literal(text)

    def with_reasoning(self, answer: Grammar, reasoning: Reasoning) -> Grammar:
        """An answer that reasoning may, or must, come before.

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
        return Grammar.choice(answer, self.markup(thinking.start) + whole)

    @abstractmethod
    def grammar(self, turn: TurnSpec) -> Grammar:
        """The language of the assistant's turn."""

    def several(
        self, turn: TurnSpec, calls: Mapping[str, tuple[str, Grammar]], head: Grammar, between: Grammar
    ) -> Grammar:
        """As many calls as a turn may have.

        Args:
            turn: what may be written.
            calls: of each tool, its name as it is written, and what follows it.
            head: what stands in a call before the name.
            between: what stands between calls.
        """
        least = max(turn.min_calls, turn.least_calls)
        if turn.distinct:
            each = [Grammar.sequence(head, Grammar.literal(name), rest) for name, rest in calls.values()]
            return Grammar.distinct(each, between, least, turn.max_calls)
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
    ) -> OutputParser:
        """A fresh streaming parser.

        Args:
            tools: the tools whose calls may appear (formats that do not write JSON need their schemas).
            finish: applied to each call that was read whole; fills in ``error`` where the call is not valid.
            new_id: makes the id of a call that has none on the wire.
            whole_text: text and calls exclude each other, as with a `TurnSpec.response_schema`: a marker inside of the
                text (in a JSON string, say) begins no call.
        """

    @abstractmethod
    def render_calls(self, calls: Sequence[ToolCall]) -> str:
        """Calls as the model writes them, in the form that training showed."""

    @abstractmethod
    def render(self, text: str, calls: Sequence[ToolCall]) -> str:
        """A whole turn: text, then calls."""

    @abstractmethod
    def render_result(self, message: Message) -> str:
        """A message of role ``tool`` as the model reads it."""

    @abstractmethod
    def prompt(self, tools: Sequence[Tool]) -> str:
        """What tells a model about the tools and the format; empty without tools."""


def new_call_id() -> str:
    """A fresh id: ``call_`` and 24 random hexadecimal digits."""
    return f"call_{secrets.token_hex(12)}"


@lru_cache(maxsize=4_096)
def dump_name(name: str) -> str:
    """`dump_json` of a tool's name; the names of a server's tools come again with each request."""
    return dump_json(name)


def dump_json(value: Any) -> str:
    """JSON in the spelling that chat templates use: one space after ``,`` and ``:``, no needless escapes.

    A lone surrogate, which UTF-8 cannot carry, is escaped.

    Raises:
        ValueError: not a JSON value (NaN, or an object that JSON lacks).
    """
    return escaped(json.dumps(value, ensure_ascii=False, allow_nan=False))


def decode_object(text: str) -> dict[str, Any]:
    """The object that a JSON text spells.

    Raises:
        ValueError: it spells none; see `read_json`.
    """
    value = read_json(text)
    if not isinstance(value, dict):
        raise ValueError("the arguments are not an object")
    return value
