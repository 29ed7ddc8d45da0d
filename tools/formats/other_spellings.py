"""Calls in the spelling of another family: small models write them although their template shows another format.

Where the text of a turn begins as a call of a known tool in one of these spellings (JSON, a tag ``<function=NAME>``, a
call of Python; each in a code fence or not), the grammar of a turn holds the rest to that call, and the parser reads it
as one. The *heads* of a `Spelling`, the texts up to where a call is certain (``{"name": "f", "arguments":``), decide
for both, so they agree on what is a call. Any other text stays text.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import NamedTuple

from toolgrammar.core.basics import cached_property
from toolgrammar.core.conversation import Event, TextDelta, ToolCall
from toolgrammar.core.errors import ToolGrammarError
from toolgrammar.core.grammar import Grammar
from toolgrammar.core.repair import Edit

from ..tool import Tool
from .base import FormatParser, Head, TurnSpec, WireFormat, dump_name, named_tool
from .leniencies import lenient
from .pythonic.calls import PythonicCalls
from .pythonic.parser import ARGUMENT_NAME
from .registry import get_format
from .template.format import TemplateFormat, quoted

_SPACE = r"[ \t\r\n]*"

#: Words after the backticks that open a code fence around a call.
_FENCE_WORDS = ("json", "tool_call", "tool_calls", "tool_code", "tool", "python", "xml")
_FENCE = rf"```(?:{'|'.join(_FENCE_WORDS)})?[ \t]*\r?\n{_SPACE}"
_FENCE_END = rf"{_SPACE}(?:```{_SPACE})?"
_STRING = r'"(?:[^"\\\x00-\x1f]|\\["\\/bfnrtu])*"'
_FENCES = (*(f"```{word}" for word in sorted(_FENCE_WORDS, key=len, reverse=True)), "```")

#: Maximum number of tools for which there are calls of Python and a tag for each argument: these notations compile the
#: schema of each tool anew, and JSON does not.
MAX_COMPILED = 24

#: Undecided characters up to which each piece of text is examined; beyond, only growth by a quarter is.
_ALWAYS = 512


def _keys(tool: Tool) -> tuple[str, ...]:
    """Return the names of a tool's arguments that can be written as Python's keywords."""
    return tuple(name for name in tool.parameters.get("properties", {}) if re.fullmatch(ARGUMENT_NAME, name))


@dataclass(frozen=True)
class Spelling(ABC):
    """One spelling of calls.

    Attributes:
        wire: the format whose parser reads the calls.
        start: how each of them begins, outside of a fence.
        added: text that the parser of ``wire`` gets before the text: the bracket of its list, where there is none.
        is_json: arguments are one JSON object.
    """

    wire: TemplateFormat
    start: str
    added: str = ""
    is_json: bool = False

    def is_native(self, wire: WireFormat) -> bool:
        """Return True if text that begins so, outside of a fence, may be a call in a format."""
        if not self.start:
            return isinstance(wire, PythonicCalls)
        marks = wire.triggers if isinstance(wire, TemplateFormat) else wire.call_markers
        return any(mark.startswith(self.start) or self.start.startswith(mark) for mark in marks)

    def spelled(self, turn: TurnSpec) -> tuple[Tool, ...]:
        """Return the tools of a turn of which this spelling has calls: it leaves out what it cannot write."""
        if self._writes(turn):
            return turn.tools
        return tuple(tool for tool in turn.tools if self._writes(replace(turn, tools=(tool,))))

    def _writes(self, turn: TurnSpec) -> bool:
        """Return True if the grammar of the calls of a turn can be made."""
        try:
            self.calls(turn)
        except ToolGrammarError:
            return False
        return True

    @abstractmethod
    def heads(self, tools: Sequence[Tool]) -> Iterator[Head]:
        """Yield the beginnings of the calls of tools, up to where they are certainly calls."""

    @property
    @abstractmethod
    def any_head(self) -> str:
        """The regular expression of a head for any tool; groups: its ``name``, and the ``key`` of an argument."""

    @abstractmethod
    def is_call(self, head: re.Match[str], tools: Sequence[Tool]) -> bool:
        """Return True if a text that `any_head` matches is the head of a call of one of the tools."""

    @abstractmethod
    def calls(self, turn: TurnSpec) -> Grammar:
        """Return the grammar of the calls of a turn."""


class Objects(Spelling):
    """An object with the name of the tool and the arguments, or a list of such objects."""

    _type = rf'"type"{_SPACE}:{_SPACE}"function"{_SPACE},{_SPACE}'
    _to_name = rf'\{{{_SPACE}(?:{_type})?"name"{_SPACE}:{_SPACE}'
    _to_arguments = rf'{_SPACE},{_SPACE}"(?:arguments|parameters)"{_SPACE}:'

    def heads(self, tools: Sequence[Tool]) -> Iterator[Head]:
        """Yield the heads: the last character is the colon before the arguments."""
        names = tuple(dump_name(tool.name) for tool in tools)
        yield Head(rf"(?:\[{_SPACE})?{self._to_name}", names, self._to_arguments)

    @property
    def any_head(self) -> str:
        """The head with any string as the name."""
        return rf"(?:\[{_SPACE})?{self._to_name}(?P<name>{_STRING}){self._to_arguments}"

    def is_call(self, head: re.Match[str], tools: Sequence[Tool]) -> bool:
        """Return True if the string is written as the grammar writes the name of a tool."""
        return any(head["name"] == dump_name(tool.name) for tool in tools)

    def calls(self, turn: TurnSpec) -> Grammar:
        """Return the grammar of the objects with any white space: in a list, or one after another, each in a fence or
        not."""
        turn = replace(turn, whitespace="flexible")
        number = turn.grammars.number(self)
        calls = {
            tool.name: (dump_name(tool.name), turn.part(tool, number, partial(self._after_name, tool, turn)))
            for tool in turn.tools
        }
        to_name, comma = map(Grammar.from_regex, (self._to_name, rf"{_SPACE},{_SPACE}"))
        opened, closed = map(Grammar.from_regex, (rf"\[{_SPACE}", rf"{_SPACE}\]"))
        apart = self.wire.several(turn, calls, to_name, Grammar.from_regex(rf"{_FENCE_END}(?:{_FENCE})?"))
        return Grammar.choice(apart, Grammar.sequence(opened, self.wire.several(turn, calls, to_name, comma), closed))

    def _after_name(self, tool: Tool, turn: TurnSpec) -> Grammar:
        to_arguments, end = map(Grammar.from_regex, (self._to_arguments + _SPACE, rf"{_SPACE}\}}"))
        marks = turn.marks(named_tool(tool, is_quoted=True))
        return Grammar.sequence(*marks, to_arguments, turn.arguments(tool), end)


@dataclass(frozen=True)
class OfFormat(Spelling):
    """The calls of another format.

    Attributes:
        closing: what follows the name, a regular expression.
        empty: what follows the name in a call without arguments, a regular expression; empty: the same.
        keyed: the name of an argument and ``=`` must follow, or ``)``.
    """

    closing: str = ""
    empty: str = ""
    keyed: bool = False

    def heads(self, tools: Sequence[Tool]) -> Iterator[Head]:
        """Yield the heads: the start, a name, and what follows it.

        Where calls are keyed, these are ``f(city=`` and ``f()``, and `empty` says nothing. ``f()`` is a head also for a
        tool with required arguments: it reads as a whole call of the tool, which would fail. As the grammar has no such
        call, nothing that goes on from it is in the grammar, and the model has to write the arguments. In other
        notations, the call without arguments (`empty`) is a head for the tools that require none; for the others such a
        text is text.
        """
        start = quoted(self.start)
        names = tuple(tool.name for tool in tools)
        if self.keyed:
            yield Head(start, names, rf"{self.closing}\)")
            for tool in tools:
                yield Head(rf"{start}{quoted(tool.name)}{self.closing}", _keys(tool), "=")
            return
        yield Head(start, names, self.closing)
        if self.empty:
            yield Head(start, tuple(tool.name for tool in tools if not tool.parameters.get("required")), self.empty)

    @property
    def any_head(self) -> str:
        """The head with any name that the format can write, and any key."""
        closing = self.closing + (rf"(?:\)|(?P<key>{ARGUMENT_NAME})=)" if self.keyed else "")
        if self.empty:
            closing = f"(?:{closing}|(?P<empty>{self.empty}))"
        return rf"{quoted(self.start)}(?P<name>{self.wire.name_pattern}){closing}"

    def is_call(self, head: re.Match[str], tools: Sequence[Tool]) -> bool:
        """Return True if the name is that of a tool, and the key that of one of its arguments.

        A call without arguments that `empty` matches is one only of a tool that requires none; the keyed ``f()`` is one
        of any tool (see `heads`).
        """
        groups = head.groupdict()
        key, is_empty = groups.get("key"), groups.get("empty") is not None
        named = [tool for tool in tools if tool.name == head["name"]]
        return any(
            (key is None or key in _keys(tool)) and not (is_empty and tool.parameters.get("required")) for tool in named
        )

    def calls(self, turn: TurnSpec) -> Grammar:
        """Return the grammar of the calls of the format."""
        return self.wire.grammar(turn)


def _row(name: str) -> TemplateFormat:
    wire = get_format(name)
    assert isinstance(wire, TemplateFormat)
    return wire


@lru_cache(maxsize=1)
def _spellings() -> tuple[Spelling, ...]:
    """Return all spellings: JSON, a tag with JSON, a tag for each argument, and Python in a list or one call a line."""
    wire = replace(_row("json"), name="objects", begin="", separator="\n", finish="", end_tokens=())
    objects = replace(wire, triggers=("{", "[", *_FENCES), skips=(",", "[", "]", *_FENCES), names="")
    tag = _row("functionary-v3.1")
    json_tag = replace(tag, skips=(*tag.skips, *_FENCES), end_tokens=(), special=(), thinking=None)
    tags = replace(
        _row("qwen3-coder"),
        call="<function=$name>\n$args</function>",
        triggers=("<function=",),
        skips=_FENCES,
        special=(),
        end_tokens=(),
        thinking=None,
    )
    python = _row("pythonic")
    listed = replace(python, triggers=("[", *_FENCES), skips=(*python.skips, *_FENCES), end_tokens=())
    lines = replace(listed, begin="", separator="\n", finish="")
    return (
        Objects(objects, "{", is_json=True),
        OfFormat(json_tag, "<function=", is_json=True, closing=r">\{"),
        OfFormat(tags, "<function=", closing=r">\n<parameter=", empty=r">\n</function>"),
        OfFormat(listed, "[", closing=r"\(", keyed=True),
        OfFormat(lines, "", added="[", closing=r"\(", keyed=True),
    )


class _Row(NamedTuple):
    """A spelling for the tools of a turn."""

    spelling: Spelling
    tools: tuple[Tool, ...]  # those that it can call
    fence: str  # the regular expression of the code fence before a call, which may be optional


class _Candidate(NamedTuple):
    """A spelling in which a text may still be a call."""

    spelling: Spelling
    tools: tuple[Tool, ...]
    head: Grammar  # the head of a call of any tool
    pattern: re.Pattern[str]  # the same; groups: ``before`` the call, and those of `Spelling.any_head`


@dataclass(frozen=True)
class OtherSpellings:
    """The spellings that are not a format's own, for the tools of a turn.

    A tool that a spelling cannot write is not among its tools: a text that begins as a call of it is text.

    Attributes:
        rows: the spellings, each with the tools that it can call.
    """

    rows: tuple[_Row, ...]

    @classmethod
    def beside(cls, wire: WireFormat, turn: TurnSpec) -> OtherSpellings:
        """Return the spellings for calls of a turn's tools; none if the format has markup around text, or code fences.

        Raises:
            CancelledError: the request is over.
        """
        marks = wire.triggers if isinstance(wire, TemplateFormat) else ()
        if wire.text_marker or any(mark.startswith("```") for mark in marks):
            return cls(())
        turn = replace(turn, min_calls=max(turn.min_calls, 1), text=False)
        rows = (
            # A call in the format's own spelling is one of another spelling only in a fence.
            _Row(spelling, spelling.spelled(turn), _FENCE if spelling.is_native(wire) else f"(?:{_FENCE})?")
            for spelling in _spellings()
            if spelling.is_json or len(turn.tools) <= MAX_COMPILED
        )
        return cls(tuple(row for row in rows if row.tools))

    def of_tools(self, tools: Iterable[Tool]) -> OtherSpellings:
        """Return the spellings for tools of the same names, with the values of today or of a conversation, or none."""
        named = {tool.name: tool for tool in tools}
        rows = (
            row._replace(tools=tuple(named[tool.name] for tool in row.tools if tool.name in named)) for row in self.rows
        )
        return OtherSpellings(tuple(row for row in rows if row.tools))

    @cached_property
    def heads(self) -> tuple[Head, ...]:
        """The beginnings of a text that make it a call."""
        return tuple(
            head._replace(before=_SPACE + row.fence + head.before)
            for row in self.rows
            for head in row.spelling.heads(row.tools)
            if head.names
        )

    def grammars(self, turn: TurnSpec) -> list[Grammar]:
        """Return the grammars of the calls of a turn, one for each spelling."""
        turn = replace(turn, min_calls=max(turn.min_calls, 1), text=False)
        end = Grammar.from_regex(_FENCE_END)
        return [
            Grammar.sequence(
                Grammar.from_regex(_SPACE + row.fence), row.spelling.calls(replace(turn, tools=row.tools)), end
            )
            for row in self.rows
        ]


@lru_cache(maxsize=32)
def _any_head(spelling: Spelling, fence: str) -> tuple[Grammar, re.Pattern[str]]:
    """Return the heads of calls of any tool, as a grammar and as a pattern; without the names of tools, they are made
    once for all requests."""
    pattern = rf"(?P<before>{_SPACE}{fence}){spelling.any_head}"
    # Both in Python's dialect: its \w has the letters of all scripts, as names of tools do.
    return Grammar.from_regex(re.compile(re.sub(r"\?P<\w+>", "?:", pattern))), re.compile(pattern)


class OtherSpellingsParser:
    """Reads a turn that begins as a call in another spelling; passes any other to the format's own parser.

    Args:
        inner: the format's parser.
        spellings: the spellings that the grammar of the turn has.
        finish: applied to each call.
        new_id: makes the ids of calls.
    """

    def __init__(
        self,
        inner: FormatParser,
        spellings: OtherSpellings,
        finish: Callable[[ToolCall], ToolCall],
        new_id: Callable[[], str],
    ) -> None:
        self._parser: FormatParser | None = None  # known once the text has decided
        self._inner = inner
        self._finish, self._new_id = finish, new_id
        self._candidates = [
            _Candidate(row.spelling, row.tools, *_any_head(row.spelling, row.fence)) for row in spellings.rows
        ]
        self._held = ""  # the text so far, while it is undecided
        self._examined = 0  # its length when it was last looked at
        self._own: list[Edit] = []  # the leniency of a call in another spelling; none: the text is not one

    @property
    def leniencies(self) -> Sequence[Edit]:
        """What the text has that the format does not write, as edits of the text."""
        return self._own or self._inner.leniencies

    def feed(self, text: str) -> list[Event]:
        """Take the next piece; return the events that are certain."""
        if self._parser is not None:
            return self._without_markup(self._parser.feed(text))
        self._held += text
        if len(self._held) > _ALWAYS and len(self._held) < self._examined + self._examined // 4:
            return []
        return self._examine()

    def _examine(self) -> list[Event]:
        """Decide what the held text is, if that can be known; return the events that are certain."""
        self._examined = len(self._held)
        for spelling, tools, _, pattern in self._candidates:
            if (match := pattern.match(self._held)) is not None and spelling.is_call(match, tools):
                self._own.append(lenient("other_spelling", 0, match.group()))
                self._parser = spelling.wire.parser(tools, self._finish, self._new_id)
                if spelling.added:
                    self._parser.feed(spelling.added)
                self._held = self._held[match.end("before") :]
                return self._give()
        self._candidates = [each for each in self._candidates if each.head.begins(self._held)]
        if self._candidates:
            return []
        self._parser = self._inner
        return self._give()

    def close(self) -> list[Event]:
        """End the text; return the rest."""
        events = []
        if self._parser is None and self._examined < len(self._held):
            events = self._examine()
        if self._parser is None:
            self._parser = self._inner
            events = self._give()
        return [*events, *self._without_markup(self._parser.close())]

    def _give(self) -> list[Event]:
        """Pass on the held text."""
        assert self._parser is not None
        held, self._held = self._held, ""
        return self._without_markup(self._parser.feed(held))

    def _without_markup(self, events: list[Event]) -> list[Event]:
        """Return the events of calls in another spelling without text: it is the end of a fence, or of the turn."""
        return [event for event in events if not isinstance(event, TextDelta)] if self._own else events
