"""Calls of Gemma: objects with bare keys, sorted, whose strings stand between two marks.

Sources: the chat templates of FunctionGemma and Gemma 4.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from toolgrammar.core.conversation import ArgumentsDelta, Event, ToolCall
from toolgrammar.core.errors import Place, UnsupportedSchemaError
from toolgrammar.core.grammar import Grammar
from toolgrammar.core.json import dump_json
from toolgrammar.core.schema import KEYWORDS, BareSyntax, cannot_write_name

from ..tool import Tool
from .base import TurnSpec
from .literals import LiteralReader, Literals
from .stream import marker_search
from .template.arguments import arguments_grammar, without_names
from .template.format import TemplateFormat, check_argument_name, unspellable
from .template.parser import Syntax, TemplateParser

_BARE_WORD = r"[A-Za-z0-9_$.\-\u00c0-\u1fff\u3040-\ud7ff]+"
_BARE_NAME = rf"{_BARE_WORD}(?: +{_BARE_WORD})*"
#: The name of a tool.
_TOOL = r"[\w.\-]+"


@dataclass(frozen=True)
class BareCalls(TemplateFormat):
    """Calls of Gemma: ``$args`` is an object with bare keys, sorted, whose strings stand between two marks.

    Attributes:
        quote: the mark around strings; no string holds it.
        null: the text of null.
    """

    quote: str = ""
    null: str = "null"
    names: str = _TOOL
    head: str = rf"\s*(?:call)?:?\s*(?P<name>{_TOOL})\s*(?=\{{)"

    @property
    def literals(self) -> Literals:
        """How strings and keys look."""
        return Literals(((self.quote, False), ('"', True)), bare_keys=True)

    def _arguments(self, tool: Tool, turn: TurnSpec) -> Grammar:
        """Return the grammar of a tool's arguments: compact, with the properties in the order of the chat templates.

        Raises:
            SchemaError: its schema cannot be enforced in objects with bare keys.
        """
        schema, additional = turn.schema(tool)
        left_out: tuple[UnsupportedSchemaError, ...] = ()
        if not additional:
            schema, left_out = without_names(
                schema, lambda name: bool(re.fullmatch(_BARE_NAME, name)), tool.name, f"the format {self.name}"
            )
        for part in KEYWORDS.every_schema(schema):
            _check_writable(part, tool.name, self.name)
        is_control = self.quote in self.special and self.quote not in self.as_text
        syntax = BareSyntax((self.quote, is_control), _BARE_NAME, self.null.encode())
        compact, ordered = replace(turn, whitespace="compact"), KEYWORDS.map_schemas(schema, _sorted)
        return arguments_grammar(tool, compact, schema=ordered, syntax=syntax, narrowed=left_out)

    def _render_arguments(self, call: ToolCall) -> str:
        """Return the arguments as the model writes them.

        Raises:
            ToolGrammarError: a string holds the mark around strings, or a name cannot stand bare.
        """

        def string(text: str) -> str:
            if self.quote in text:
                raise unspellable(self.name, f"a text that holds {self.quote!r}", call)
            return f"{self.quote}{text}{self.quote}"

        def key(name: str) -> str:
            return check_argument_name(name, _BARE_NAME, self.name, call)

        return write_bare(dict(call.arguments), string, key, self.null)

    def _parser_class(self, tools: Sequence[Tool]) -> Callable[..., TemplateParser]:
        return partial(BareCallsParser, self.literals)


def write_bare(value: Any, string: Callable[[str], str], key: Callable[[str], str], null: str) -> str:
    """Return a value with bare keys, in the order in which the chat templates of Gemma sort them.

    Args:
        value: a JSON value.
        string: writes a string.
        key: writes a key.
        null: the text of null.
    """
    if isinstance(value, str):
        return string(value)
    if isinstance(value, dict):
        members = sorted(value.items(), key=lambda member: member[0].lower())
        return "{" + ",".join(f"{key(name)}:{write_bare(item, string, key, null)}" for name, item in members) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ",".join(write_bare(item, string, key, null) for item in value) + "]"
    return null if value is None else dump_json(value)


# -- schemas that Gemma's objects cannot follow, and their order -----------------------------------------------


def _check_writable(part: Mapping[str, Any], tool: str, wire: str) -> None:
    """Raise an `UnsupportedSchemaError` if objects with bare keys cannot follow a schema inside that of a tool."""
    if wrong := [name for name in part.get("properties", ()) if not re.fullmatch(_BARE_NAME, name)]:
        raise cannot_write_name(f"the format {wire}", wrong[0], Place(tool=tool, keyword="properties"))
    if part.get("uniqueItems") is True:
        raise UnsupportedSchemaError(
            f"the format {wire} cannot write items that do not repeat",
            hint="choose a JSON format for this tool, such as hermes",
            place=Place(tool=tool, keyword="uniqueItems"),
        )


def _sorted(part: dict[str, Any]) -> dict[str, Any]:
    """Return a schema with its properties, required names, and the members of the values in it, as the chat templates
    sort them."""
    result = {keyword: _sorted_value(value) if keyword in KEYWORDS.data else value for keyword, value in part.items()}
    if isinstance(part.get("properties"), dict):
        result["properties"] = dict(sorted(part["properties"].items(), key=lambda member: member[0].lower()))
    if isinstance(part.get("required"), list):  # names that are not declared are written in its order
        result["required"] = sorted(part["required"], key=lambda name: str(name).lower())
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
        # The marks around strings are part of a broken call, and do not end it.
        marks = (
            mark for mark in (*syntax.openers, *syntax.skips) if len(mark) > 2 and mark not in dict(literals.quotes)
        )
        self._stop_marks = marker_search(tuple(marks))
        self._literal = LiteralReader(literals, "")

    def _read_arguments(self, events: list[Event]) -> bool:
        """Begin the object of the arguments."""
        buffer = self._buffer
        buffer.take_space()
        if buffer.is_empty:
            return self._unfinished(events)
        if not buffer.startswith("{"):
            return self._give_up("the arguments are not an object", events)
        self._literal = LiteralReader(self._literals, "")
        self._state = self._read_object_literal
        return True

    def _read_object_literal(self, events: list[Event]) -> bool:
        """Read on in the object of the arguments; it is sent when it is whole, as JSON."""
        literal = self._literal
        if not literal.take(self._buffer):
            return self._unfinished(events, literal.pieces)
        if literal.problem is not None:
            return self._give_up(literal.problem, events)
        events.append(ArgumentsDelta(self._index, literal.json))
        return self._end_call(json.loads(literal.json), literal.json, events)
