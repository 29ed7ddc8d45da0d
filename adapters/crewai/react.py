"""CrewAI's text form of tool calls (ReAct) as a wire format, for agents that do not call tools natively.

::

    Thought: I need the weather.
    Action: get_weather
    Action Input: {"city": "Oslo"}

or, to end, ``Final Answer:`` and the answer. CrewAI looks for these words wherever they stand, so free text holds none
of them, and where arguments do, their colon is escaped. CrewAI describes the tools to the model itself.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import partial

from toolgrammar.core.conversation import ArgumentsDelta, CallEnd, CallStart, Event, Message, TextDelta, ToolCall
from toolgrammar.core.grammar import Grammar
from toolgrammar.tools.formats import TurnSpec, WireFormat
from toolgrammar.tools.formats.base import decode_object
from toolgrammar.tools.formats.stream import StreamParser, marker_search
from toolgrammar.tools.tool import Tool

ACTION, INPUT, FINAL = "Action: ", "\nAction Input: ", "Final Answer:"
OBSERVATION = "Observation:"
# Beginnings of an action or of the answer, as CrewAI looks for them.
_MARKERS = rf"Action\s*\d*\s*:|{FINAL}"
# Characters with a meaning in patterns of ECMA-262, which are those of `Grammar.from_regex`.
_SYNTAX = re.compile(r"[\^$\\.*+?()[\]{}|/]")
_CALL = re.compile(rf"{ACTION}([^\n]*){INPUT}")
# The beginning of a call, at the end of the text.
_OPEN_CALL = re.compile(rf"{ACTION}[^\n]*(?:{'|'.join(INPUT[:size] for size in range(len(INPUT)))})\Z")
_MARKS = marker_search((ACTION, FINAL))


def shielded(arguments: str) -> str:
    """Return JSON text with the same value, in which CrewAI finds no final answer.

    Law: ``shielded(a)`` begins with ``shielded(b)`` where ``a`` begins with ``b``.
    """
    return arguments.replace(FINAL, FINAL[:-1] + "\\u003a")


def spelled(text: str, name: str | None, arguments: str) -> str:
    """Return a turn, complete or so far, as CrewAI reads it: its text, and its call if it has one.

    Law: a longer turn begins with the spelling of a shorter one.
    """
    words, mark, answer = text.partition(FINAL)
    action = "" if name is None else f"{ACTION}{name}{INPUT}{shielded(arguments)}"
    return words + mark + shielded(answer) + action


@dataclass(frozen=True)
class React(WireFormat):
    """Thought, then an action with its input, or the final answer.

    Attributes:
        stop: strings that end a text early; no thought contains one.
    """

    stop: tuple[str, ...] = ()
    name = "react"

    def grammar(self, turn: TurnSpec) -> Grammar:
        """Return the language: a thought, then exactly one action or the final answer."""
        endings = []
        if turn.max_calls != 0:
            key = turn.grammars.number(self.name)
            for tool in turn.tools:
                arguments = turn.part(tool, key, partial(turn.arguments, tool))
                endings.append(Grammar.literal(f"{ACTION}{tool.name}{INPUT}") + arguments)
        if turn.min_calls == 0:
            endings.append(Grammar.literal(FINAL + " ") + self._answer(turn))
        forbidden = "|".join([_MARKERS, *(_SYNTAX.sub(r"\\\g<0>", word) for word in self.stop)])
        # No marker begins in the thought and ends behind it: a line break is between them.
        thought = Grammar.from_regex(rf"(?![\s\S]*(?:{forbidden}))(?:[\s\S]*\n)?")
        return thought + Grammar.choice(*endings)

    def _answer(self, turn: TurnSpec) -> Grammar:
        """Return the language of the final answer: JSON of the response schema, or text that is not blank."""
        if turn.response_schema is not None:
            return Grammar.from_json_schema(turn.response_schema, whitespace=turn.whitespace, plain_integers=True)
        # CrewAI strips white space and the backticks of fences, and takes an empty rest for no answer.
        return Grammar.from_regex(r"[\s`]*") + Grammar.from_regex(rf"(?![\s\S]*{FINAL})[^\s`][\s\S]*")

    def parser(
        self,
        tools: Sequence[Tool],
        finish: Callable[[ToolCall], ToolCall],
        new_id: Callable[[], str],
        *,
        whole_text: bool = False,
    ) -> _Parser:
        """Return a parser for which everything but the action is text."""
        return _Parser(finish, new_id)

    def render_calls(self, calls: Sequence[ToolCall]) -> str:
        """Return actions, one below the other; CrewAI reads the first."""
        return "\n".join(f"{ACTION}{call.name}{INPUT}{shielded(call.arguments_text or '{}')}" for call in calls)

    def render(self, text: str, calls: Sequence[ToolCall]) -> str:
        """Return the text, and the actions below it."""
        return text + ("\n" if text and calls and not text.endswith("\n") else "") + self.render_calls(calls)

    def render_result(self, message: Message) -> str:
        """Return the observation that holds a tool's result."""
        return f"{OBSERVATION} {message.text}"

    def prompt(self, tools: Sequence[Tool], brief: Collection[str] = ()) -> str:
        """Return nothing: CrewAI's own prompt describes the tools and the form."""
        return ""


class _Parser(StreamParser):
    """Reads a turn in pieces: its text, then at most one call, whose arguments are all that follows."""

    def __init__(self, finish: Callable[[ToolCall], ToolCall], new_id: Callable[[], str]) -> None:
        super().__init__()
        self._finish = finish
        self._new_id = new_id
        self._call = ("", "")  # its id and its name
        self._arguments: list[str] = []
        self._begins_line = True
        self._state = self._read_text

    def _read_text(self, events: list[Event]) -> bool:
        """Read up to a marker: ``Action:`` at the beginning of a line begins a call, ``Final Answer:`` the answer.

        Other markers are text. Return True if there may be more to read (see `StreamParser`).
        """
        text, mark = self._buffer.take_before(_MARKS, final=self._final)
        self._write(text, events)
        if mark == ACTION and self._begins_line:
            call = self._buffer.match(_CALL)
            if call is not None:
                self._buffer.skip(len(call[0]))
                self._call = (self._new_id(), call[1])
                events.append(CallStart(0, *self._call))
                self._state = self._read_arguments
                return True
            if not self._final and self._buffer.match(_OPEN_CALL):
                return False  # more text decides whether it is a call
        elif mark == FINAL:
            self._state = self._read_answer
        self._write(self._buffer.take(self._buffer.position + len(mark)), events)
        return mark != ""

    def _read_answer(self, events: list[Event]) -> bool:
        """Read the answer, which is all that follows."""
        self._write(self._buffer.take_all(), events)
        return False

    def _read_arguments(self, events: list[Event]) -> bool:
        """Read the arguments of the call, which are all that follows."""
        piece = self._buffer.take_all()
        if piece:
            self._arguments.append(piece)
            events.append(ArgumentsDelta(0, piece))
        if self._final:
            events.append(CallEnd(0, self._whole_call()))
        return False

    def _whole_call(self) -> ToolCall:
        """Return the call with the arguments that were read, checked; without them if they are no JSON object."""
        raw = "".join(self._arguments)
        try:
            arguments = decode_object(raw)
        except ValueError as error:
            return ToolCall.unread(*self._call, raw, str(error))
        return self._finish(ToolCall(*self._call, arguments, raw=raw))

    def _write(self, text: str, events: list[Event]) -> None:
        if text:
            self._begins_line = text.endswith("\n")
            events.append(TextDelta(text))
