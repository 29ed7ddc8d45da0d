"""The shape "each argument between its own tags": Qwen3-Coder, GLM, MiniMax M2, DSML, Seed-OSS.

Strings stand there raw, everything else as JSON, and the schema says which. So the schema is enforced on the decoded
value, with what the language of grammars can say of raw text: lengths, patterns, listed values. A string that holds the
closing tag cannot be spelled and is left out of the language. What cannot be enforced is refused by name.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ...core.errors import Place, ToolGrammarError, UnsupportedSchemaError
from ...core.grammar import Grammar
from ...core.language.nodes import Nodes
from ...core.language.regex import regex_term
from ...core.messages import ToolCall
from ..closing import close_objects
from ..tool import Tool
from .base import Turn, dump_json
from .json_calls import JsonCalls
from .xml_calls_parser import XmlCallsParser, XmlSyntax

_HOLE = re.compile(r"(\$key|\$raw|\$value)")
_NOTES = frozenset({"title", "description", "default", "examples", "example", "deprecated", "$comment", "readOnly"})
_OBJECT = _NOTES | {"type", "properties", "required", "additionalProperties", "$defs", "definitions", "$schema", "$id"}
_STRING = _NOTES | {"type", "minLength", "maxLength", "pattern", "enum", "const"}
_NAME = re.compile(r"""[^\s<>"'=]+""")


@dataclass(frozen=True)
class XmlCalls(JsonCalls):
    """A format of this shape, as data; ``$args`` of the call's template stands for the parameters.

    Attributes:
        parameter: the template of one argument, with ``$key``, ``$value`` and perhaps ``$raw`` (whether it is a raw
            string).
        parameter_head: regular expression of what a parser reads before a value, with the group ``key``.
        parameter_end: what ends a value; no raw string holds it.
        padding: markup between the tags and the value.
        call_ends: what a parser takes for the end of the arguments.
    """

    parameter: str = ""
    parameter_head: str = ""
    parameter_end: str = ""
    padding: str = ""
    call_ends: tuple[str, ...] = ()

    def _arguments(self, tool: Tool, turn: Turn) -> Grammar:
        schema = tool.parameters
        _only(schema, _OBJECT, tool.name, "")
        if schema.get("additionalProperties") not in (None, False) or turn.additional_properties:
            raise _refused(tool.name, "", "additionalProperties", "members without a name in the schema")
        required = schema.get("required", ())
        properties = schema.get("properties", {})
        missing = [key for key in required if key not in properties]
        if missing:
            raise _refused(tool.name, "", "required", f"{missing[0]!r}, which is no property,")
        parts = []
        for key, inner in properties.items():
            if not _NAME.fullmatch(key):
                raise _refused(tool.name, f"/properties/{key}", "properties", f"the name {key!r}")
            parts.append(Grammar.repeat(self._parameter(key, inner, tool, turn), 1 if key in required else 0, 1))
        return Grammar.sequence(*parts)

    def _parameter(self, key: str, schema: Any, tool: Tool, turn: Turn) -> Grammar:
        raw = is_raw(schema)
        if raw is None:
            raise _refused(tool.name, f"/properties/{key}", "type", "a value that may or may not be a string")
        values = {"$key": key, "$raw": "true" if raw else "false"}
        parts = []
        for piece in _HOLE.split(self.parameter):
            if piece != "$value":
                parts.append(self._spelled(values.get(piece, piece)))
            elif raw:
                parts.append(self._raw(key, schema, tool))
            else:
                whole = {
                    **{name: tool.parameters[name] for name in ("$defs", "definitions") if name in tool.parameters},
                    **schema,
                }
                parts.append(Grammar.from_json_schema(close_objects(whole), whitespace=turn.whitespace))
        return Grammar.sequence(*parts)

    def _raw(self, key: str, schema: Mapping[str, Any], tool: Tool) -> Grammar:
        """A string as it is."""
        pointer = f"/properties/{key}"
        _only(schema, _STRING, tool.name, pointer)
        least, most = schema.get("minLength", 0), schema.get("maxLength")
        if "enum" in schema or "const" in schema:
            listed = schema.get("enum", [schema.get("const")])
            words = [
                word
                for word in listed
                if isinstance(word, str)
                and self.parameter_end not in word
                and least <= len(word)
                and (most is None or len(word) <= most)
                and ("const" not in schema or word == schema["const"])
            ]
            if "pattern" in schema:
                raise _refused(tool.name, pointer, "pattern", "a pattern beside listed values")
            if not words:
                raise _refused(tool.name, pointer, "enum", "a list of values that cannot be spelled")
            return Grammar.choice(*map(Grammar.literal, words))
        return _string(self.parameter_end, least, most, schema.get("pattern"))

    def _render_arguments(self, call: ToolCall) -> str:
        parts = []
        for key, value in call.arguments.items():
            raw = isinstance(value, str)
            if raw and self.parameter_end in value:
                raise ToolGrammarError(
                    f"the format {self.name} cannot spell a text that holds {self.parameter_end!r}",
                    hint="choose another format",
                    place=Place(tool=call.name),
                )
            values = {
                "$key": key,
                "$raw": "true" if raw else "false",
                "$value": value if raw else dump_json(value),
            }
            parts.append("".join(values.get(piece, piece) for piece in _HOLE.split(self.parameter)))
        return "".join(parts)

    def parser(
        self,
        tools: Sequence[Tool],
        finish: Callable[[ToolCall], ToolCall],
        new_id: Callable[[], str],
        *,
        whole_text: bool = False,
    ) -> XmlCallsParser:
        """A parser that takes the history form and what models stray into (see `XmlCallsParser`)."""
        raw = {
            (tool.name, key): is_raw(inner) is not False
            for tool in tools
            for key, inner in tool.parameters.get("properties", {}).items()
        }
        xml = XmlSyntax(self.parameter_head, self.parameter_end, self.padding, self.call_ends, raw)
        return XmlCallsParser(self._syntax(), xml, finish, new_id, whole_text=whole_text)


def _string(end: str, least: int, most: int | None, pattern: str | None) -> Grammar:
    """Texts without ``end`` of this length, in which the pattern is found."""
    if pattern is not None:
        regex_term(Nodes().terms, pattern, whole=False)  # errors now, not at first use

    def build(nodes: Nodes) -> int:
        terms = nodes.terms
        parts = [terms.not_(terms.sequence([terms.ALL, terms.words((end,)), terms.ALL]))]
        parts.append(terms.repeat(terms.ANY, least, most))
        if pattern is not None:
            parts.append(regex_term(terms, pattern, whole=False))
        return nodes.text(terms.and_(parts))

    return Grammar(build, ("raw string", end, least, most, pattern))


def is_raw(schema: Any) -> bool | None:
    """Whether the values of a schema are strings: all (True), none (False), or that cannot be told (None)."""
    if not isinstance(schema, Mapping):
        return None
    kinds = schema.get("type")
    if isinstance(kinds, str):
        return kinds == "string"
    if isinstance(kinds, (list, tuple)) and kinds:
        return None if "string" in kinds and len(kinds) > 1 else "string" in kinds
    for keyword in ("enum", "const"):
        if keyword in schema:
            values = schema["enum"] if keyword == "enum" else [schema["const"]]
            strings = [isinstance(value, str) for value in values]
            return True if all(strings) else None if any(strings) else False
    for keyword in ("anyOf", "oneOf"):
        if keyword in schema:
            kinds = {is_raw(each) for each in schema[keyword]}
            return False if kinds == {False} else None
    return None


def _only(schema: Mapping[str, Any], known: frozenset[str], tool: str, pointer: str) -> None:
    for keyword in schema:
        if keyword not in known:
            raise _refused(tool, pointer, keyword, f"{keyword!r}")


def _refused(tool: str, pointer: str, keyword: str, what: str) -> UnsupportedSchemaError:
    return UnsupportedSchemaError(
        f"a format with one tag per argument cannot enforce {what} here",
        hint="choose a JSON format for this tool, such as hermes",
        place=Place(tool=tool, pointer=pointer, keyword=keyword),
    )
