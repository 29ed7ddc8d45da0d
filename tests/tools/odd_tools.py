"""Tools that some wire format, spelling or server cannot write, as users and MCP servers give them; and the conveniences
of a request, none of which may refuse them."""

from __future__ import annotations

from typing import Any

from toolgrammar.tools import Tool, ToolSet

_S: dict[str, Any] = {"type": "string"}
_I: dict[str, Any] = {"type": "integer"}


def _tool(properties: dict[str, Any], *required: str, name: str = "t", **more: Any) -> Tool:
    return Tool(name, "A tool.", {"type": "object", "properties": properties, "required": list(required), **more})


def _named(name: str) -> list[Tool]:
    return [_tool({"k": _S}, "k", name=name)]


def with_more(k: str, **extra: int) -> str:
    """Take further arguments."""
    return k


_NODE = {"type": "object", "properties": {"v": _I, "next": {"$ref": "#/$defs/node"}}, "required": ["v"]}

#: Sets of tools, by what is odd about them.
ODD: dict[str, ToolSet] = {
    name: ToolSet(tools)
    for name, tools in {
        "kwargs": [with_more],
        "open": [_tool({"k": _S}, "k", additionalProperties=True)],
        "map": [Tool("t", "", {"type": "object", "additionalProperties": _I})],
        "patterns": [_tool({"k": _S}, "k", patternProperties={"^x": _I})],
        "only patterns": [_tool({}, patternProperties={"^x": _I}, additionalProperties=False)],
        "names": [_tool({}, propertyNames={"pattern": "^[a-z]+$"}, additionalProperties=_S)],
        "space": [_tool({"a b": _S}, "a b")],
        "quote": [_tool({'a"b': _S}, 'a"b')],
        "unicode": [_tool({"größe 日": _S}, "größe 日")],
        "dot": [_tool({"a.b": _S}, "a.b")],
        "tag": [_tool({"</k>": _S}, "</k>")],
        "no name": [_tool({"": _S}, "")],
        "line break": [_tool({"a\nb": _S}, "a\nb")],
        "optional space": [_tool({"a b": _S, "c": _I})],
        "nothing": [Tool("t", "", {})],
        "an object": [Tool("t", "", {"type": "object"})],
        "empty": [_tool({})],
        "closed and empty": [_tool({}, additionalProperties=False)],
        "recursive": [_tool({"n": {"$ref": "#/$defs/node"}}, "n", **{"$defs": {"node": _NODE}})],
        "recursive root": [_tool({"v": _I, "c": {"type": "array", "items": {"$ref": "#"}}}, "v")],
        "huge enum": [_tool({"k": {"enum": [f"value {number}" for number in range(1_500)]}}, "k")],
        "mixed enum": [_tool({"k": {"enum": [None, True, "true", "null", 1, "1", [1], {"a": 1}, ""]}}, "k")],
        "30 tools": [_tool({f"a{number}": _S}, f"a{number}", name=f"t{number}") for number in range(30)],
        "30 open tools": [_tool({"a": _S}, name=f"t{number}", additionalProperties=True) for number in range(30)],
        "tool with space": _named("x y"),
        "tool with quote": _named('quo"te'),
        "tool with unicode": _named("größe日"),
        "tool with dots": _named("a.b.c"),
        "tool with tag": _named("<f>"),
        "long tool": _named("f" * 256),
        "tools like words": [*_named("auto"), *_named("none")],
        "tool like a number": _named("1-a"),
        "words": [_tool({"name": _S, "arguments": _tool({"parameters": _I}).parameters, "class": _I}, "name", "class")],
        "only markers": [_tool({"k": {"enum": ["</parameter>", "</arg_value>", '<|"|>', "</tool_call>"]}}, "k")],
        "only an end": [_tool({"k": {"const": "</parameter>\n</function>"}}, "k")],
        "unevaluated": [_tool({"k": _S}, "k", unevaluatedProperties=False)],
        "any of": [_tool({}, anyOf=[_tool({"a": _S}, "a").parameters, _tool({"b": _I}, "b").parameters])],
        "reference": [Tool("t", "", {"$ref": "#/$defs/x", "$defs": {"x": _tool({"a": _S}, "a").parameters}})],
        "condition": [
            _tool({"a": {"type": "boolean"}, "b": _S}, "a", **{"if": {"required": ["b"]}, "then": {"minProperties": 2}})
        ],
        "free object": [_tool({"k": {"type": "object"}}, "k")],
        "any value": [_tool({"k": {}}, "k")],
        "unique": [_tool({"k": {"type": "array", "items": _S, "uniqueItems": True}}, "k")],
        "least": [_tool({"a": _S, "b": _S}, minProperties=1)],
        "not": [_tool({"a": {"not": _S}}, "a")],
        "dependent": [_tool({"a": _S, "b": _S}, dependentRequired={"a": ["b"]})],
        "pattern": [_tool({"a": {"type": "string", "pattern": "^(?=.*x)[a-z ]{3,40}$"}}, "a")],
        "nullable": [_tool({"a": {"type": ["string", "null", "integer"]}}, "a")],
        "deep": [_tool({"a": _tool({"b c": _tool({"d": _S}, additionalProperties=True).parameters}).parameters}, "a")],
        "many": [_tool({f"p{number}": _S for number in range(200)}, "p0", "p150")],
        "all kinds": [
            *_named("ok"),
            _tool({"k": _S}, additionalProperties=True),
            _tool({"a b": _S}, "a b", name="u v"),
        ],
        "never": [_tool({"a": False, "b": _S}, "b")],
    }.items()
}

#: All conveniences off.
OFF: dict[str, Any] = {
    "other_spellings": False,
    "empty_answer": False,
    "jump_forward": False,
    "max_repetition": 0,
    "equal_calls": True,
}

#: Conveniences on, one at a time; an empty row: the defaults.
ON: tuple[dict[str, Any], ...] = (
    {},
    {**OFF, "other_spellings": True},
    {**OFF, "empty_answer": True},
    {**OFF, "jump_forward": True},
    {**OFF, "max_repetition": None},
    {**OFF, "equal_calls": False},
    {"tools_in_prompt": "names"},
    {"tools_in_prompt": "auto"},
    {"exact_choice": True},
    {"exact_choice": True, "logprobs": 2},
    {"draft": 5},
    {"draft": 5, "tool_choice": "required"},
    {"masses": True},
    {"trace": True},
    {"thinking": "auto"},
    {"thinking": 8},
    {"stop": ["zz"]},
    {"repetition_penalty": 1.1},
    {"parallel_tool_calls": False},
)

#: What a turn may be.
SAID = ("hi", '{"name": "t", "arguments": {', "<function=t>\n<parameter=k>", 't(k="', "<tool_call>\n", "```json\n{")

#: Enough for the longest call of `ODD` in any format.
BUDGET = 1_500
