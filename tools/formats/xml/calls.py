"""Calls with a tag for each argument: Qwen3-Coder, GLM, MiniMax M2, DSML, Seed-OSS.

Strings are raw (without quotes and escapes), all other values JSON, and the schema says which. The schema is enforced
on the decoded value (see ``arguments_object.py``). A string that contains the closing tag cannot be written and is left
out of the grammar, unless the family has blocks for it (CDATA); so is one that reads as a value of another type, if the
argument may have that type.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from toolgrammar.core.basics import cached_property
from toolgrammar.core.conversation import ToolCall
from toolgrammar.core.grammar import Grammar
from toolgrammar.core.json import dump_json, type_of
from toolgrammar.core.schema import TYPES, Arguments, mark

from ...tool import Tool
from ..base import TurnSpec
from ..template.arguments import arguments_grammar
from ..template.format import TemplateFormat, unspellable
from ..template.parser import TemplateParser
from .parser import XmlCallsParser

_HOLE = re.compile(r"(\$key|\$raw|\$type|\$value)")
_NAME = r"""[^\s<>"'=]+"""
_ANY_NAME = r"[^\x00-\x1f<>]+"


@dataclass(frozen=True)
class XmlCalls(TemplateFormat):
    """A format of this shape, as data; the parameters replace ``$args`` in the call's template.

    Attributes:
        parameter: the template of one argument, with ``$key``, ``$value`` and perhaps ``$raw`` (whether it is a raw
            string) or ``$type`` (the value's JSON type).
        parameter_head: regular expression of what a parser reads before a value, with the group ``key``, and ``raw`` or
            ``type`` if the template has it.
        gap: text between two arguments.
        inline_ends: a string may contain the tag that ends a value, unless another argument or the end of the call
            follows.
        python_words: booleans and null are written as Python has them; JSON's words are in the grammar too.
        entities: names of arguments may hold any characters but marks of tags; ``&`` and ``"`` in them are entities.
        block: markup around a raw string that holds a character of ``block_for``, or else the markup that ends a value.
        block_for: characters for which the family writes a block; any other string may stand in one too.
    """

    parameter: str = ""
    parameter_head: str = ""
    gap: str = ""
    inline_ends: bool = False
    python_words: bool = False
    entities: bool = False
    block: tuple[str, str] | None = None
    block_for: str = ""

    @property
    def _templates(self) -> tuple[str, ...]:
        """The templates of a call and of its parts."""
        return (*super()._templates, *_HOLE.split(self.parameter)[::2], *(self.block or ()))

    @property
    def parameter_end(self) -> str:
        """Markup that ends a value; no raw string contains it."""
        return self.parameter.partition("$value")[2].strip()

    @property
    def call_ends(self) -> tuple[str, ...]:
        """Tags that a parser takes for the end of the arguments."""
        own = re.findall("<[^<>]+>", self.call.partition("$args")[2] + self.finish)
        return tuple(own or dict.fromkeys((*re.findall("<[^<>]+>", self.separator), *self.end_tokens)))

    @property
    def follows(self) -> tuple[str, ...]:
        """The markup after the tag that ends a value, if a string may contain that tag; else empty."""
        head = re.match(r"\s*(<[\w:]+)", self.parameter) if self.inline_ends else None
        return () if head is None else (head[1], *self.call_ends, *self.triggers, *self.end_tokens)

    def stricter(self, broken: str, repaired: str) -> XmlCalls:
        """Return the format in which a closing tag always ends a string, if fewer of them end one after a repair."""
        if self.follows and self.arguments.count_ends(repaired) < self.arguments.count_ends(broken):
            return replace(self, inline_ends=False)
        return self

    @property
    def is_open_ended(self) -> bool:
        """No marker of its own ends a call: the end of the text does, too."""
        return not (self.call.partition("$args")[2] + self.finish)

    @cached_property
    def arguments(self) -> Arguments:
        """Markup around the arguments, for the lowering of schemas (`toolgrammar.core.schema`)."""
        control = sorted(set(self.special).difference(self.as_text))
        before, rest = self.parameter.split("$key")
        between, after = rest.split("$value")
        types = sorted(frozenset(TYPES) - {"string"}) if "$type" in between else []
        announces_raw = "$raw" in between or "$type" in between
        after_name_raw = mark(between.replace("$raw", "true").replace("$type", "string"), control)
        return Arguments(
            names=_ANY_NAME if self.entities else _NAME,
            escapes=(("&", "&amp;"), ('"', "&quot;")) if self.entities else (),
            separator=mark(self.gap, control) if self.gap else (),
            before_name=mark(before, control),
            # With "$type" this is not written: each type has its own in `after_name_by_type` and `after_name_raw`.
            after_name=mark(between.replace("$raw", "false"), control),
            after_name_by_type=tuple((kind, mark(between.replace("$type", kind), control)) for kind in types),
            after_value=mark(after, control),
            raw_end=self.parameter_end,
            raw_follows=self.follows,
            after_name_raw=after_name_raw if announces_raw else None,
            python_words=self.python_words,
            writer=f"the format {self.name}",
            block=None if self.block is None else (mark(self.block[0], control), mark(self.block[1], control)),
        )

    def _arguments(self, tool: Tool, turn: TurnSpec) -> Grammar:
        return arguments_grammar(tool, turn, arguments=self.arguments)

    def _render_arguments(self, call: ToolCall) -> str:
        """Return the arguments by their template.

        Raises:
            ToolGrammarError: a name, or a string, cannot be written in it.
        """
        parts = []
        for key, value in call.arguments.items():
            is_raw = isinstance(value, str)
            values = {
                "$key": self._key(key, call),
                "$raw": "true" if is_raw else "false",
                "$type": type_of(value),
                "$value": self._raw(value, call) if is_raw else self._written(value),
            }
            parts.append("".join(values.get(piece, piece) for piece in _HOLE.split(self.parameter)))
        return self.gap.join(parts)

    def _key(self, name: str, call: ToolCall) -> str:
        spelled = self.arguments.spelled(name)
        if spelled is None:
            raise unspellable(self.name, f"the argument name {name!r}", call, name)
        return spelled

    def _raw(self, text: str, call: ToolCall) -> str:
        """Return a string as it is, or in a block where it needs one.

        Raises:
            ToolGrammarError: it holds what would end it.
        """
        ends = self.arguments.is_ended(text)
        if self.block is not None and self.block[1] not in text:
            if ends or text.startswith(self.block[0]) or any(char in text for char in self.block_for):
                return text.join(self.block)
        elif ends or (self.block is not None and text.startswith(self.block[0])):
            raise unspellable(self.name, f"a text that holds {self.parameter_end!r}", call)
        return text

    def _written(self, value: Any) -> str:
        is_word = value is None or isinstance(value, bool)
        return repr(value) if self.python_words and is_word else dump_json(value)

    def _parser_class(self, tools: Sequence[Tool]) -> Callable[..., TemplateParser]:
        """Return what makes the parser of this format for some tools."""
        return partial(XmlCallsParser, self, tools)
