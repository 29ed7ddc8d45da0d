"""Calls of Gemma: objects with bare keys, sorted, whose strings stand between two marks.

Sources: the chat templates of FunctionGemma and Gemma 4.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from toolgrammar.core.conversation import ArgumentsDelta, Event, ToolCall
from toolgrammar.core.errors import Place, UnsupportedSchemaError
from toolgrammar.core.grammar import Grammar
from toolgrammar.core.language.json_text import dump_json
from toolgrammar.core.schema.read.keywords import DATA, SCHEMA_MAPS
from toolgrammar.core.schema.scalars.value_syntax import BareSyntax

from ..tool import Tool
from .base import TurnSpec
from .literals import LiteralReader, Literals
from .template.arguments import arguments_grammar
from .template.format import TemplateFormat, check_argument_name, unspellable
from .template.parser import Syntax, TemplateParser

_BARE_NAME = r"[A-Za-z0-9_$.\-\u00c0-\u1fff\u3040-\ud7ff]+"


@dataclass(frozen=True)
class BareCalls(TemplateFormat):
    """Calls of Gemma: ``$args`` is an object with bare keys, sorted, whose strings stand between two marks.

    Attributes:
        quote: the mark around strings; no string holds it.
    """

    quote: str = ""

    def _arguments(self, tool: Tool, turn: TurnSpec) -> Grammar:
        for keyword, name in _subschemas(tool.parameters):
            _check(keyword, name, tool.name)
        control = self.quote in self.special and self.quote not in self.as_text
        syntax = BareSyntax((self.quote, control), _BARE_NAME)
        plain = Tool(tool.name, tool.description, _sorted(tool.parameters))
        compact = replace(turn, whitespace="compact")
        return arguments_grammar(plain, compact, syntax=syntax)

    def _render_arguments(self, call: ToolCall) -> str:
        def string(text: str) -> str:
            if self.quote in text:
                raise unspellable(self.name, f"a text that holds {self.quote!r}", call)
            return f"{self.quote}{text}{self.quote}"

        return write_bare(
            dict(call.arguments), string, lambda name: check_argument_name(name, _BARE_NAME, self.name, call)
        )

    def _parser_class(self, tools: Sequence[Tool]) -> Callable[..., TemplateParser]:
        return partial(BareCallsParser, Literals(((self.quote, False), ('"', True)), bare_keys=True))


def write_bare(value: Any, string: Callable[[str], str], key: Callable[[str], str]) -> str:
    """Return a value with bare keys, in the order in which the chat templates of Gemma sort them."""
    if isinstance(value, str):
        return string(value)
    if isinstance(value, dict):
        members = sorted(value.items(), key=lambda member: member[0].lower())
        return "{" + ",".join(f"{key(name)}:{write_bare(item, string, key)}" for name, item in members) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ",".join(write_bare(item, string, key) for item in value) + "]"
    return dump_json(value)


# -- schemas that Gemma's objects cannot follow, and their order -----------------------------------------------


def _subschemas(schema: Any) -> Iterator[tuple[str, Any]]:
    """Yield every keyword and value of a schema and its subschemas."""
    if not isinstance(schema, dict):
        return
    for keyword, value in schema.items():
        yield keyword, value
        if keyword in DATA:
            continue
        inner = value.values() if keyword in SCHEMA_MAPS and isinstance(value, dict) else [value]
        for part in inner:
            for subschema in part if isinstance(part, list) else [part]:
                yield from _subschemas(subschema)


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
    """Return the schema with its properties sorted as the chat templates sort them."""
    if isinstance(schema, list):
        return [_sorted(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    result = {}
    for keyword, value in schema.items():
        if keyword in DATA:
            result[keyword] = _sorted_value(value)
        elif keyword in SCHEMA_MAPS and isinstance(value, dict):
            items = value.items()
            ordered = sorted(items, key=lambda item: item[0].lower()) if keyword == "properties" else items
            result[keyword] = {name: _sorted(inner) for name, inner in ordered}
        else:
            result[keyword] = _sorted(value)
    return result


def _sorted_value(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _sorted_value(value[key]) for key in sorted(value, key=str.lower)}
    return [_sorted_value(item) for item in value] if isinstance(value, list) else value


class BareCallsParser(TemplateParser):
    """Text and calls ``name{key:value}`` from a stream; the arguments arrive in one piece, as JSON.

    Besides the history form it takes other white space and JSON's strings and keys.
    """

    def __init__(
        self, literals: Literals, syntax: Syntax, finish: Callable[[ToolCall], ToolCall], new_id: Callable[[], str]
    ) -> None:
        super().__init__(syntax, finish, new_id)
        self._literals = literals
        self._literal = LiteralReader(literals, "")

    def _read_arguments(self, events: list[Event]) -> bool:
        buffer = self._buffer
        buffer.take_space()
        if buffer.is_empty:
            return self._unfinished()
        if not buffer.startswith("{"):
            return self._give_up("the arguments are not an object", events)
        self._literal = LiteralReader(self._literals, "")
        self._state = self._read_object_literal
        return True

    def _read_object_literal(self, events: list[Event]) -> bool:
        literal = self._literal
        if not literal.take(self._buffer):
            return self._unfinished()
        if literal.problem is not None:
            return self._give_up(literal.problem, events)
        events.append(ArgumentsDelta(self._index, literal.json))
        return self._end_call(json.loads(literal.json), literal.json, events)
