"""Reading by marks: the places of names and values are where they were put, in every format.

``law.py`` has the same for random tools and texts: what is read by marks is what the parser reads.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from toolgrammar.core import ToolCall
from toolgrammar.core.json import dump_json
from toolgrammar.core.reading import Reader
from toolgrammar.core.schema.scalars.value_syntax import PythonSyntax
from toolgrammar.core.testing import ScriptedModel
from toolgrammar.tools import Tool, ToolSet
from toolgrammar.tools.call_grammars import MARKED_GRAMMARS
from toolgrammar.tools.formats import format_names, get_format

from .common import EVERY

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "a": {"type": "string"},
        "format": {"enum": ["frame", "format"]},
        "items": {"type": "array", "items": {"type": "string"}},
        "n": {"type": "number"},
        "no": {"type": "boolean"},
        "o": {
            "type": "object",
            "properties": {"x": {"type": "integer"}, "yes": {"type": "array", "items": {"type": "boolean"}}},
            "required": ["x", "yes"],
            "additionalProperties": False,
        },
        "yes": {"type": ["null", "boolean"]},
    },
    "required": ["a", "format", "items", "n", "no", "o", "yes"],
    "additionalProperties": False,
}

TOOLS = ToolSet([Tool("frame", "", SCHEMA), Tool("frame_all", "", SCHEMA)])

#: Values that are written like names, markup and one another.
ARGUMENTS: dict[str, Any] = {
    "a": "rame",
    "format": "format",
    "items": ["frame", "items", "a b"],
    "n": 12.5,
    "no": False,
    "o": {"x": 12, "yes": [True, False]},
    "yes": True,
}


def scalars(value: Any, pointer: str = "") -> Iterator[tuple[str, Any]]:
    """The values without parts, by their pointers."""
    if isinstance(value, (dict, list)):
        for name, part in value.items() if isinstance(value, dict) else enumerate(value):
            yield from scalars(part, f"{pointer}/{name}")
    else:
        yield pointer, value


def spellings(value: Any, quote: str) -> set[str]:
    """The ways in which formats write a value."""
    if isinstance(value, str):
        return {
            value,
            dump_json(value),
            PythonSyntax.literal(value, "'"),
            PythonSyntax.literal(value, '"'),
            f"{quote}{value}{quote}",
        }
    return {dump_json(value), repr(value)}


def written(name: str) -> tuple[str, list[ToolCall]]:
    """A turn of as many calls as the format allows."""
    wire = EVERY[name]
    calls = [ToolCall(f"call0000{number}", tool, ARGUMENTS) for number, tool in enumerate(TOOLS.names)]
    calls = calls if getattr(wire, "parallel", True) else calls[:1]
    return wire.render("", calls), calls


@pytest.mark.parametrize("name", format_names())
def test_places_are_where_it_was_put(name: str) -> None:
    """The name of each tool and member, and each value, has its place, in all pieces of the text."""
    text, calls = written(name)
    quote = getattr(get_format(name), "quote", "")
    reader = Reader(TOOLS.grammar(EVERY[name], tool_choice="required", marked=True))
    for at in range(0, len(text.encode()), 3):
        reader.feed(text.encode()[at : at + 3])
    reader.end()
    data = bytes(reader.text)
    found = reader.calls(data)
    assert [(call.tool, data[slice(*call.name)].decode(), call.is_whole) for call in found] == [
        (call.name, call.name, True) for call in calls
    ]
    for call in found:
        assert call.values[0].data(data) == ARGUMENTS
        leaves = {value.pointer: data[value.start : value.end].decode() for value in call.values if value.parts is None}
        put = dict(scalars(ARGUMENTS))
        assert leaves.keys() == put.keys()
        for pointer, value in put.items():
            assert leaves[pointer] in spellings(value, quote)
        names = [data[start:end].decode().strip("\"'") for value in call.values for start, end in value.names]
        assert sorted(names) == sorted((*ARGUMENTS, *ARGUMENTS["o"]))


@pytest.mark.parametrize("name", format_names())
def test_a_trace_has_each_value_where_it_is(name: str) -> None:
    """Each value without parts has its own tokens, and only those: booleans, items of lists, and values that are
    written like the markup of their format."""
    text, calls = written(name)
    answer = ScriptedModel([text]).generate(
        "x", tools=TOOLS, tool_choice="required", tool_format=name, trace=True, max_tokens=4_000
    )
    assert answer.raw.strip() == text.strip() and answer.trace is not None
    found: dict[tuple[int | None, str | None], str] = {}
    for token in answer.trace.tokens:
        if token.role in ("string", "number", "literal"):
            found[token.call, token.pointer] = found.get((token.call, token.pointer), "") + token.text
    put = {(number, pointer): value for number in range(len(calls)) for pointer, value in scalars(ARGUMENTS)}
    assert found.keys() == put.keys()
    for place, value in put.items():
        assert found[place].strip(" :,\n") in spellings(value, getattr(get_format(name), "quote", ""))


def test_marks_change_no_language() -> None:
    """A reading grammar has the texts of the grammar from which they are written."""
    for name in ("hermes", "qwen3-coder", "pythonic", "gemma-4", "minimax-m3"):
        text, _ = written(name)
        grammar, marked = (TOOLS.grammar(EVERY[name], tool_choice="required", marked=each) for each in (False, True))
        for size in (len(text), len(text) - 1, 30):
            assert marked.matches(text[:size]) == grammar.matches(text[:size]) == (size == len(text))
            assert marked.begins(text[:size])
        assert not marked.begins("\x00" + text)


def test_a_request_that_does_not_ask_makes_no_reading_grammar() -> None:
    """Without a trace, masses and exact choices, no grammar with marks is made; with them, one for each tool, once."""

    def look(colour: str) -> str:
        """Look."""
        return colour

    tools = ToolSet([look])
    reply = '<tool_call>\n{"name": "look", "arguments": {"colour": "red"}}\n</tool_call>'
    before = len(MARKED_GRAMMARS)
    ScriptedModel([reply]).generate("x", tools=tools)
    assert len(MARKED_GRAMMARS) == before
    for _ in range(2):
        ScriptedModel([reply]).generate("x", tools=tools, trace=True, other_spellings=False)
        assert len(MARKED_GRAMMARS) == before + 1


def test_of_several_readings_the_first_counts() -> None:
    """Where a text has two readings, marks in their order decide, whatever the pieces of the text."""
    tools = ToolSet([Tool("f", "", {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]})])
    wire = get_format("pythonic")
    assert getattr(wire, "either", None) is False
    either = wire.__class__(**{**vars(wire), "either": True})  # Python's values, or JSON's: a number is both
    grammar = tools.grammar(either.with_special(()), tool_choice="required", marked=True)
    for size in (1, 2, 100):
        reader = Reader(grammar)
        text = b"[f(a=12)]"
        for at in range(0, len(text), size):
            reader.feed(text[at : at + size])
        reader.end()
        (call,) = reader.calls(text)
        assert type(call.values[0].syntax).__name__ == "PythonSyntax" and call.values[0].data(text) == {"a": 12}
