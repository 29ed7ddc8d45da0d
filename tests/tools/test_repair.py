"""Calls from free output: validated, and mended where that was asked for and makes them valid."""

from __future__ import annotations

from typing import Any

import pytest

from toolgrammar.tools import Tool, ToolSet

SCHEMA = {
    "type": "object",
    "$defs": {"count": {"type": "integer", "minimum": 1}},
    "properties": {
        "city": {"type": "string"},
        "days": {"$ref": "#/$defs/count"},
        "dry": {"type": "boolean"},
        "tags": {"type": "array", "items": {"type": "string"}},
        "either": {"type": ["string", "integer"]},
    },
    "required": ["city"],
}
TOOLS = ToolSet([Tool("weather", "", SCHEMA), Tool("now", "", {})])


@pytest.mark.parametrize(
    ("format", "text", "expected"),
    [
        ("llama-json", '{"name": "weather", "parameters": {"city": "x", "days": "3", "dry": "True"}}',
         {"city": "x", "days": 3, "dry": True}),
        ("hermes", '<tool_call>\n{"name": "weather", "arguments": {"city": "5", "tags": "[\\"a\\"]"}}\n</tool_call>',
         {"city": "5", "tags": ["a"]}),
        ("pythonic", '[weather(city="x", days="2")]', {"city": "x", "days": 2}),
        ("mistral-v13", '[TOOL_CALLS]weather[ARGS]{"city": "x", "dry": "false"}', {"city": "x", "dry": False}),
    ],
)  # fmt: skip
def test_values_that_were_written_as_strings(format: str, text: str, expected: dict[str, Any]) -> None:
    """Strings become the values that they spell where no string may stand; without repair they are errors."""
    (call,) = TOOLS.parse(text, format).tool_calls
    assert call.error is not None
    (call,) = TOOLS.parse(text, format, repair=True).tool_calls
    assert call.error is None
    assert call.arguments == expected


def test_broken_json() -> None:
    """JSON that does not parse is mended with json-repair."""
    pytest.importorskip("json_repair", reason="json-repair is not installed")
    text = "<tool_call>\n{'name': 'weather', 'arguments': {'city': 'x', 'days': 3,}}\n</tool_call>"
    (call,) = TOOLS.parse(text).tool_calls
    assert call.error is not None
    (call,) = TOOLS.parse(text, repair=True).tool_calls
    assert (call.name, call.arguments, call.error) == ("weather", {"city": "x", "days": 3}, None)


def test_what_cannot_be_mended_stays_an_error() -> None:
    """A call that would still be invalid comes as it was, with its error; a valid one is left alone."""
    for arguments in ('{"city": "x", "days": "0"}', '{"city": "x", "days": "many"}', '{"days": 3}'):
        text = f'<tool_call>\n{{"name": "weather", "arguments": {arguments}}}\n</tool_call>'
        (plain,), (tried,) = (TOOLS.parse(text, repair=each, new_id=lambda: "c").tool_calls for each in (False, True))
        assert plain == tried
        assert plain.error is not None
    text = '<tool_call>\n{"name": "weather", "arguments": {"city": "5", "either": "5"}}\n</tool_call>'
    assert TOOLS.parse(text, repair=True).tool_calls[0].arguments == {"city": "5", "either": "5"}
