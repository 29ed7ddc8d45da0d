"""Calls as one JSON object each, in a tag: Hermes, Qwen and formats like theirs.

A call is ``start``, an object with the name and the arguments, ``end``; several calls are joined by ``separator``;
text may come before the first call, joined by ``separator`` too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from toolgrammar.core.conversation import Message, ToolCall
from toolgrammar.core.conversation.reasoning import ReasoningMarkers
from toolgrammar.core.errors import GrammarError
from toolgrammar.core.grammar import Grammar

from ...tool import Tool
from ..base import TurnSpec, WireFormat, dump_json, dump_name
from ..described import described
from ..template.call_reader import Tags
from .tagged_parser import TaggedJsonParser


@dataclass(frozen=True)
class TaggedJson(WireFormat):
    """A format of this shape, as data.

    Attributes:
        name: its name.
        start: the marker that begins a call; free text never contains it.
        end: the marker that ends a call.
        padding: text between the markers and the object in the history form.
        separator: text between calls, and between text and the first call.
        name_key: the key of the tool's name.
        arguments_key: the key of the arguments.
        argument_aliases: other keys under which models write the arguments.
        result_start: marker before a result.
        result_end: marker after a result.
        instructions: the prompt; ``{tools}`` stands for the tools, one a line (see `described`).
        thinking: the model's reasoning markers, if it has any.
    """

    name: str
    start: str
    end: str
    padding: str
    separator: str
    result_start: str
    result_end: str
    instructions: str
    name_key: str = "name"
    arguments_key: str = "arguments"
    argument_aliases: tuple[str, ...] = ("parameters",)
    thinking: ReasoningMarkers | None = None

    def grammar(self, turn: TurnSpec) -> Grammar:
        """Return the grammar of the assistant's turn: text that holds no ``start``, or calls, or text and then calls.

        Nothing follows the last call: it ends the turn. The name is bound to its own arguments, and stands in one
        alternative with its closing quote, so that no name is mistaken for the beginning of another.
        """
        alternatives = []
        calls_allowed = bool(turn.tools) and turn.max_calls != 0
        if turn.min_calls == 0 and turn.text:
            alternatives.append(self._text(turn))
        if calls_allowed:
            body = self._calls(turn)
            free = turn.text and turn.response_schema is None
            before = Grammar.until(self.start, excluding=self._reserved) if free else Grammar.literal(self.start)
            alternatives.append(before + body)
        if not alternatives:
            raise GrammarError("neither text nor calls are allowed in this turn", hint="give at least one tool")
        return alternatives[0] if len(alternatives) == 1 else Grammar.choice(*alternatives)

    def _text(self, turn: TurnSpec) -> Grammar:
        if turn.response_schema is not None:
            return Grammar.from_json_schema(turn.response_schema, whitespace=turn.whitespace, plain_integers=True)
        return Grammar.text(excluding=[self.start, *self._reserved], min_chars=1)

    @property
    def _reserved(self) -> list[str]:
        """Strings that free text may not contain, besides ``start``."""
        return [] if self.thinking is None else [self.thinking.start]

    def _calls(self, turn: TurnSpec) -> Grammar:
        """Return the grammar of all calls of a turn, after the first ``start``."""
        key = f", {dump_json(self.arguments_key)}: "
        calls = {
            tool.name: (
                dump_name(tool.name) + key,
                turn.part(tool, self, partial(self._arguments, tool, turn)),
            )
            for tool in turn.tools
        }
        head = Grammar.literal(f"{self.padding}{{{dump_json(self.name_key)}: ")
        return self.several(turn, calls, head, Grammar.literal(f"{self.separator}{self.start}"))

    def _arguments(self, tool: Tool, turn: TurnSpec) -> Grammar:
        """Return the grammar of a tool's arguments, and the end of the call."""
        return turn.arguments(tool) + Grammar.literal(f"}}{self.padding}{self.end}")

    def parser(
        self,
        tools: Sequence[Tool],
        finish: Callable[[ToolCall], ToolCall],
        new_id: Callable[[], str],
        *,
        whole_text: bool = False,
    ) -> TaggedJsonParser:
        """Return a parser that takes the history form and its common variations (see `TaggedJsonParser`)."""
        tags = Tags(self.start, self.end, self.separator, self.name_key, (self.arguments_key, *self.argument_aliases))
        return TaggedJsonParser(tags, finish, new_id, whole_text=whole_text)

    def render_calls(self, calls: Sequence[ToolCall]) -> str:
        """Return the calls in the history form."""
        return self.separator.join(self._render_call(call) for call in calls)

    def _render_call(self, call: ToolCall) -> str:
        body = dump_json({self.name_key: call.name, self.arguments_key: dict(call.arguments)})
        return f"{self.start}{self.padding}{body}{self.padding}{self.end}"

    def render(self, text: str, calls: Sequence[ToolCall]) -> str:
        """Return text and calls, joined as the chat templates do."""
        return self.separator.join(part for part in (text, self.render_calls(calls)) if part)

    def render_result(self, message: Message) -> str:
        """Return the result between its markers."""
        return f"{self.result_start}{message.text}{self.result_end}"

    def prompt(self, tools: Sequence[Tool]) -> str:
        """Return the instructions with the tools filled in; empty without tools."""
        if not tools:
            return ""
        return self.instructions.replace("{tools}", "\n".join(map(described, tools)))
