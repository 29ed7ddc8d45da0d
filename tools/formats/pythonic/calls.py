"""Calls in the syntax of Python: keyword arguments whose values are literals."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from toolgrammar.core.conversation import ToolCall
from toolgrammar.core.grammar import Grammar
from toolgrammar.core.json import dump_json
from toolgrammar.core.schema import Arguments, PythonSyntax

from ...tool import Tool
from ..base import TurnSpec
from ..template.arguments import arguments_grammar
from ..template.format import TemplateFormat, check_argument_name
from ..template.parser import TemplateParser
from .parser import ARGUMENT_NAME, PythonicCallsParser

_KEYWORDS = Arguments(names=ARGUMENT_NAME, separator=(), after_name=(("=", False),), after_value=(), raw_end=None)


#: Names of functions, which may be dotted.
DOTTED = r"[^\W\d]\w*(?:\.[^\W\d]\w*)*"


@dataclass(frozen=True)
class PythonicCalls(TemplateFormat):
    """Calls as Python writes them, ``name(a="x", b=[1, True])``: ``$args`` are keyword arguments, whose values are
    literals of exactly the schema's values.

    Attributes:
        json_values: the values are JSON.
        either: the values of a call are JSON or Python.
        gap: text between two arguments.
    """

    json_values: bool = False
    either: bool = False
    gap: str = ", "

    def _arguments(self, tool: Tool, turn: TurnSpec) -> Grammar:
        syntaxes = [None] if self.json_values else [PythonSyntax(), None] if self.either else [PythonSyntax()]
        keywords = replace(_KEYWORDS, separator=((self.gap, False),), writer=f"the format {self.name}")
        written = [arguments_grammar(tool, turn, syntax=syntax, arguments=keywords) for syntax in syntaxes]
        return written[0] if len(written) == 1 else Grammar.choice(*written)

    def _render_arguments(self, call: ToolCall) -> str:
        write = dump_json if self.json_values else write_python
        return self.gap.join(f"{self._key(name, call)}={write(value)}" for name, value in call.arguments.items())

    def _key(self, name: str, call: ToolCall) -> str:
        return check_argument_name(name, ARGUMENT_NAME, self.name, call)

    def _parser_class(self, tools: Sequence[Tool]) -> Callable[..., TemplateParser]:
        return PythonicCallsParser


def write_python(value: Any) -> str:
    """Return a value as a Python literal, spelled as the grammar has it."""
    if value is None or isinstance(value, bool):
        return repr(value)
    if isinstance(value, str):
        return PythonSyntax.literal(value)
    if isinstance(value, dict):
        return "{" + ", ".join(f"{write_python(key)}: {write_python(item)}" for key, item in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(map(write_python, value)) + "]"
    return dump_json(value)
