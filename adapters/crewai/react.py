"""CrewAI's text form of tool calls (ReAct) as a wire format, for agents that do not call tools natively.

::

    Thought: I need the weather.
    Action: get_weather
    Action Input: {"city": "Oslo"}

or, to end, ``Final Answer:`` and the answer. CrewAI looks for these words wherever they stand, so free text holds none
of them, and where arguments do, their colon is escaped. CrewAI describes the tools to the model itself.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from toolgrammar.core.conversation import ArgumentsDelta, CallEnd, CallStart, Event, Message, TextDelta, ToolCall
from toolgrammar.core.grammar import Grammar
from toolgrammar.tools.formats import MALFORMED, TurnSpec, WireFormat, dump_json
from toolgrammar.tools.tool import Tool

ACTION, INPUT, FINAL = "Action: ", "\nAction Input: ", "Final Answer:"
OBSERVATION = "Observation:"
# What CrewAI takes for the beginning of an action or of the answer.
_MARKERS = rf"Action\s*\d*\s*:|{FINAL}"
_SYNTAX = re.compile(r"[\^$\\.*+?()[\]{}|/]")
_CALL = re.compile(rf"(?:^|(?<=\n)){ACTION}([^\n]*){INPUT}")


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
        stop: what ends a text before its time; no thought contains it.
    """

    stop: tuple[str, ...] = ()
    name = "react"

    def grammar(self, turn: TurnSpec) -> Grammar:
        """Return the language: a thought, then exactly one action or the final answer."""
        endings = []
        if turn.max_calls != 0:
            form = turn.grammars.number(self.name)
            endings += [
                Grammar.literal(f"{ACTION}{tool.name}{INPUT}") + turn.part(tool, form, partial(turn.arguments, tool))
                for tool in turn.tools
            ]
        if turn.min_calls == 0:
            endings.append(Grammar.literal(FINAL + " ") + self._answer(turn))
        forbidden = "|".join([_MARKERS, *(_SYNTAX.sub(r"\\\g<0>", word) for word in self.stop)])
        # No marker begins in the thought and ends behind it: a line break is between them.
        thought = Grammar.from_regex(rf"(?![\s\S]*(?:{forbidden}))(?:[\s\S]*\n)?")
        return thought + Grammar.choice(*endings)

    def _answer(self, turn: TurnSpec) -> Grammar:
        if turn.response_schema is not None:
            return Grammar.from_json_schema(turn.response_schema, whitespace=turn.whitespace, plain_integers=True)
        # CrewAI strips space and fences, and reads an answer that is empty then as none.
        blank, shown = Grammar.from_regex(r"[\s`]*"), Grammar.from_regex(rf"(?![\s\S]*{FINAL})[^\s`][\s\S]*")
        return blank + shown

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
        return "\n".join(
            f"{ACTION}{call.name}{INPUT}{shielded(call.raw or dump_json(dict(call.arguments)))}" for call in calls
        )

    def render(self, text: str, calls: Sequence[ToolCall]) -> str:
        """Return the text, and the actions below it."""
        return text + ("\n" if text and calls and not text.endswith("\n") else "") + self.render_calls(calls)

    def render_result(self, message: Message) -> str:
        """Return the observation that holds a tool's result."""
        return f"{OBSERVATION} {message.text}"

    def prompt(self, tools: Sequence[Tool]) -> str:
        """Return nothing: CrewAI's own prompt describes the tools and the form."""
        return ""


class _Parser:
    """Reads a turn in pieces; satisfies ``toolgrammar.core.OutputParser``."""

    def __init__(self, finish: Callable[[ToolCall], ToolCall], new_id: Callable[[], str]) -> None:
        self._finish = finish
        self._new_id = new_id
        self._seen = ""
        self._sent = 0  # length of the text that is in events
        self._answering = False
        self._call: tuple[str, str, int] | None = None  # its id, its name, and where its arguments begin

    def feed(self, text: str) -> list[Event]:
        """Take the next piece; return what has become certain."""
        self._seen += text
        events: list[Event] = []
        if self._call is None and not self._answering:
            action = _CALL.search(self._seen)
            answer = self._seen.find(FINAL)
            if answer >= 0 and (action is None or answer < action.start()):
                self._answering = True
            elif action is not None:
                events += self._text_until(action.start())
                self._call = (self._new_id(), action[1], action.end())
                self._sent = action.end()
                events.append(CallStart(0, *self._call[:2]))
        if self._call is None:
            return events + self._text_until(len(self._seen) if self._answering else self._certain())
        if self._sent < len(self._seen):
            events.append(ArgumentsDelta(0, self._seen[self._sent :]))
            self._sent = len(self._seen)
        return events

    def close(self) -> list[Event]:
        """Say that the text is over; return the rest."""
        if self._call is None:
            return self._text_until(len(self._seen))
        call_id, name, start = self._call
        raw = self._seen[start:]
        try:
            arguments = json.loads(raw)
        except ValueError as error:
            return [CallEnd(0, ToolCall(call_id, name, {}, raw=raw, error=f"{MALFORMED}: {error}"))]
        if not isinstance(arguments, dict):
            return [CallEnd(0, ToolCall(call_id, name, {}, raw=raw, error=f"{MALFORMED}: no JSON object"))]
        return [CallEnd(0, self._finish(ToolCall(call_id, name, arguments, raw=raw)))]

    def _certain(self) -> int:
        """Return the end of the text that cannot become an action any more."""
        last = self._seen.rfind("\n") + 1
        if self._seen[last:].startswith(INPUT[1:]) or INPUT[1:].startswith(self._seen[last:]):
            before = self._seen.rfind("\n", 0, max(last - 1, 0)) + 1
            if self._seen.startswith(ACTION, before) and before < last:
                return before
        line = self._seen[last:]
        return last if line.startswith(ACTION) or ACTION.startswith(line) else len(self._seen)

    def _text_until(self, end: int) -> list[Event]:
        text = self._seen[self._sent : end]
        self._sent = max(self._sent, end)
        return [TextDelta(text)] if text else []
