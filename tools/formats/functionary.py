"""Functionary v3.2: each part of a turn begins with its recipient, ``all`` or a tool; ``>>>`` separates them.

The prompt ends with the first ``>>>``, so a turn begins with a name.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from toolgrammar.core.conversation import Event, ToolCall
from toolgrammar.core.grammar import Grammar

from ..tool import Tool
from .base import TurnSpec
from .template.format import TemplateFormat
from .template.parser import Syntax, TemplateParser

ALL = "all\n"


@dataclass(frozen=True)
class Recipients(TemplateFormat):
    """A format in which text is a part for ``all``."""

    @property
    def markers(self) -> tuple[str, ...]:
        """Strings that free text may not contain; ``all`` is one at the beginning of a turn only."""
        return tuple(mark for mark in super().markers if mark != ALL)

    def _prose(self, turn: TurnSpec) -> Grammar:
        # The end must not be a prefix of a mark that the next character completes: the mark would be found too early.
        marks = "|".join(map(re.escape, self.markers))
        begun = "|".join(re.escape(mark[:-1]) for mark in self.markers if mark.endswith(">"))
        return Grammar.literal(ALL) + Grammar.from_regex(rf"(?![\s\S]*(?:{marks}|(?:{begun})$))[\s\S]*[^>]")

    def _syntax(self, tools: Sequence[Tool], whole_text: bool) -> Syntax:
        return replace(super()._syntax(tools, whole_text), frames=(*self.frames, *self.ends))

    def render(self, text: str, calls: Sequence[ToolCall]) -> str:
        """Return a whole turn: a part for ``all``, if there is text, then the calls."""
        written = [ALL + text] if text else []
        return self.separator.join([*written, *([self.render_calls(calls)] if calls else [])])

    def _parser_class(self, tools: Sequence[Tool]) -> Callable[..., TemplateParser]:
        return RecipientsParser


class RecipientsParser(TemplateParser):
    """Parts for ``all`` as text, others as calls; a turn that begins with neither is text."""

    def __init__(self, syntax: Syntax, finish: Callable[[ToolCall], ToolCall], new_id: Callable[[], str]) -> None:
        super().__init__(syntax, finish, new_id)
        self._begun_name = re.compile(r"\s*[\w.\-]*\s*")  # more of the name of a recipient may follow
        self._state = self._recipient

    def _recipient(self, events: list[Event]) -> bool:
        """Read the recipient at the beginning of a turn: after ``>>>``, if the prompt did not end with it."""
        buffer = self._buffer
        if not self._final and buffer.may_begin((">>>",)):
            return False
        begun = ">>>" if buffer.startswith(">>>") else ""
        buffer.skip(len(begun))
        may_go_on = self._begun_name.fullmatch(buffer.text, buffer.position) and not buffer.startswith(ALL)
        if not self._final and may_go_on:
            buffer.unread(begun)
            return False
        if buffer.startswith(ALL):
            buffer.skip(len(ALL))
            self._state = self._prose()
        elif buffer.match(self._head):
            self._call_text = []
            self._state = self._read_head
        else:
            buffer.unread(begun)
            self._state = self._prose()
        return True
