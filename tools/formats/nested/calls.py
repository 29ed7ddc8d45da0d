"""Calls whose arguments are nested elements: MiniMax M3.

``<city>Paris</city>``, with a mark before each tag, which no string contains. The members of an object are elements of
their names, the items of an array elements of one name; the schema says which is which (see ``nested_arguments.py``).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from toolgrammar.core.basics import cached_property
from toolgrammar.core.conversation import ToolCall
from toolgrammar.core.grammar import Grammar
from toolgrammar.core.json import SPACE, dump_json
from toolgrammar.core.schema import NestedTags, mark

from ...tool import Tool
from ..base import TurnSpec
from ..template.arguments import arguments_grammar, readings_of_arguments
from ..template.format import TemplateFormat, check_argument_name, unspellable
from ..template.parser import TemplateParser
from .parser import NestedCallsParser


@dataclass(frozen=True)
class NestedCalls(TemplateFormat):
    """A format of this shape, as data; ``$args`` of the call's template is the place of the elements.

    Attributes:
        mark: the markup before each tag; no string contains it.
        item: the name of the elements of items.
    """

    mark: str = ""
    item: str = "item"

    @property
    def _templates(self) -> tuple[str, ...]:
        """The templates of a call and of its parts."""
        return (*super()._templates, self.mark)

    def with_shown_markers(self) -> NestedCalls:
        """Return the format itself: the mark before each tag hides what its markup shows."""
        return self

    @cached_property
    def arguments(self) -> NestedTags:
        """Markup of the elements, for the lowering of schemas."""
        return NestedTags(
            mark(self.mark, sorted(set(self.special).difference(self.as_text))),
            self.item,
            writer=f"the format {self.name}",
        )

    def _arguments(self, tool: Tool, turn: TurnSpec) -> Grammar:
        return arguments_grammar(tool, turn, arguments=self.arguments)

    def _render_arguments(self, call: ToolCall) -> str:
        return self._members(call.arguments, call)

    def _members(self, members: Any, call: ToolCall) -> str:
        return "".join(self._element(name, value, call) for name, value in members.items())

    def _element(self, name: str, value: Any, call: ToolCall) -> str:
        """Return an argument, member or item as an element: ``<city>Paris</city>``, with the mark before each tag."""
        check_argument_name(name, self.arguments.names, self.name, call)
        if isinstance(value, dict):
            body = self._members(value, call)
        elif isinstance(value, (list, tuple)):
            body = "".join(self._element(self.item, item, call) for item in value)
        elif not isinstance(value, str):
            body = dump_json(value)
        elif self.mark in value:
            raise unspellable(self.name, f"a text that holds {self.mark!r}", call)
        else:
            body = value
        return f"{self.mark}<{name}>{body}{self.mark}</{name}>"

    @property
    def call_ends(self) -> tuple[str, ...]:
        """Markup that a parser takes for the end of the arguments."""
        return (self.call.partition("$args")[2].strip(SPACE),)

    def _parser_class(self, tools: Sequence[Tool]) -> Callable[..., TemplateParser]:
        tag = re.compile(rf"{re.escape(self.mark)}<(?P<end>/?)(?P<name>{self.arguments.names})>")
        reading = readings_of_arguments(tools, self.arguments)
        return partial(NestedCallsParser, self.mark, tag, self.item, self.call_ends[0], reading)
