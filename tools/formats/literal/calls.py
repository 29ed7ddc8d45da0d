"""The shape "calls in a syntax of their own": keyword arguments of Python, and Gemma's objects."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from toolgrammar.core.conversation import ToolCall
from toolgrammar.core.errors import Place, ToolGrammarError, UnsupportedSchemaError
from toolgrammar.core.grammar import Grammar
from toolgrammar.core.schema.scalars.value_syntax import Arguments, BareSpelling, PythonSpelling

from ...tool import Tool
from ..base import TurnSpec
from ..json.calls import JsonCalls
from .arguments import spelled_arguments
from .literals import Literals, write_bare, write_python
from .parser import BareCallsParser, PythonicCallsParser

#: The names of arguments: letters, digits and underscores, as in Python.
ARGUMENT_NAME = r"[A-Za-z_\u00c0-\u1fff\u3040-\ud7ff][A-Za-z0-9_\u00c0-\u1fff\u3040-\ud7ff]*"
_BARE_NAME = r"[A-Za-z0-9_$.\-\u00c0-\u1fff\u3040-\ud7ff]+"
_KEYWORDS = Arguments(
    names=ARGUMENT_NAME, separator=((", ", False),), after_name=(("=", False),), after_value=(), raw_end=None
)


@dataclass(frozen=True)
class PythonicCalls(JsonCalls):
    """Calls as Python writes them, ``name(a="x", b=[1, True])``: ``$args`` are keyword arguments, whose values are
    literals of exactly the schema's values."""

    def _arguments(self, tool: Tool, turn: TurnSpec) -> Grammar:
        return spelled_arguments(tool, turn, spelling=PythonSpelling(), arguments=_KEYWORDS)

    def _render_arguments(self, call: ToolCall) -> str:
        return ", ".join(f"{self._key(name, call)}={write_python(value)}" for name, value in call.arguments.items())

    def _key(self, name: str, call: ToolCall) -> str:
        return _checked(name, ARGUMENT_NAME, self.name, call)

    def parser(
        self,
        tools: Sequence[Tool],
        finish: Callable[[ToolCall], ToolCall],
        new_id: Callable[[], str],
        *,
        whole_text: bool = False,
    ) -> PythonicCallsParser:
        """A parser that takes the history form and what models stray into (see `PythonicCallsParser`)."""
        return PythonicCallsParser(self._syntax(tools if whole_text else ()), finish, new_id, whole_text=whole_text)


@dataclass(frozen=True)
class BareCalls(JsonCalls):
    """Calls of Gemma: ``$args`` is an object with bare keys, sorted, whose strings stand between two marks.

    Attributes:
        quote: the mark around strings; no string holds it.
    """

    quote: str = ""

    def _arguments(self, tool: Tool, turn: TurnSpec) -> Grammar:
        for keyword, name in _subschemas(tool.parameters):
            _check(keyword, name, tool.name)
        control = self.quote in self.special and self.quote not in self.as_text
        spelling = BareSpelling((self.quote, control), _BARE_NAME)
        plain = Tool(tool.name, tool.description, _sorted(tool.parameters))
        compact = replace(turn, whitespace="compact")
        return spelled_arguments(plain, compact, spelling=spelling)

    def _render_arguments(self, call: ToolCall) -> str:
        def string(text: str) -> str:
            if self.quote in text:
                raise ToolGrammarError(
                    f"the format {self.name} cannot spell a text that holds {self.quote!r}",
                    hint="choose another format",
                    place=Place(tool=call.name),
                )
            return f"{self.quote}{text}{self.quote}"

        return write_bare(dict(call.arguments), string, lambda name: _checked(name, _BARE_NAME, self.name, call))

    def parser(
        self,
        tools: Sequence[Tool],
        finish: Callable[[ToolCall], ToolCall],
        new_id: Callable[[], str],
        *,
        whole_text: bool = False,
    ) -> BareCallsParser:
        """A parser that takes the history form and what models stray into (see `BareCallsParser`)."""
        literals = Literals(((self.quote, False), ('"', True)), bare_keys=True)
        return BareCallsParser(literals, self._syntax(), finish, new_id, whole_text=whole_text)


def _checked(name: str, pattern: str, wire: str, call: ToolCall) -> str:
    import re

    if not re.fullmatch(pattern, name):
        raise ToolGrammarError(
            f"the format {wire} cannot spell the argument name {name!r}",
            hint="choose another format",
            place=Place(tool=call.name, parameter=name),
        )
    return name


# -- schemas that Gemma's objects cannot follow, and their order -----------------------------------------------

_VALUES = frozenset({"enum", "const", "default", "example", "examples"})
_NAMED = frozenset({"properties", "patternProperties", "$defs", "definitions", "dependentSchemas"})


def _subschemas(schema: Any) -> Iterator[tuple[str, Any]]:
    """Every keyword with its value, of a schema and of all that it holds."""
    if not isinstance(schema, dict):
        return
    for keyword, value in schema.items():
        yield keyword, value
        if keyword in _VALUES:
            continue
        inner = value.values() if keyword in _NAMED and isinstance(value, dict) else [value]
        for each in inner:
            for one in each if isinstance(each, list) else [each]:
                yield from _subschemas(one)


def _check(keyword: str, value: Any, tool: str) -> None:
    if keyword == "uniqueItems" and value is True:
        what = "items that do not repeat"
    elif keyword == "properties" and (wrong := [name for name in value if not re.fullmatch(_BARE_NAME, name)]):
        what = f"the name {wrong[0]!r}"
    else:
        return
    raise UnsupportedSchemaError(
        f"a format with bare names and marked strings cannot write {what}",
        hint="rename it, or choose a JSON format for this tool, such as hermes",
        place=Place(tool=tool, keyword=keyword),
    )


def _sorted(schema: Any) -> Any:
    """The schema with its properties in the order in which the templates write them."""
    if isinstance(schema, list):
        return [_sorted(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    result = {}
    for keyword, value in schema.items():
        if keyword in _VALUES:
            result[keyword] = _sorted_value(value)
        elif keyword in _NAMED and isinstance(value, dict):
            items = value.items()
            ordered = sorted(items, key=lambda item: item[0].lower()) if keyword == "properties" else items
            result[keyword] = {name: _sorted(inner) for name, inner in ordered}
        else:
            result[keyword] = _sorted(value)
    return result


def _sorted_value(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _sorted_value(value[key]) for key in sorted(value, key=str.lower)}
    return [_sorted_value(each) for each in value] if isinstance(value, list) else value
