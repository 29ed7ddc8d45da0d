"""`ToolSet.repair`: broken calls in every wire format."""

from __future__ import annotations

import time
from typing import Any

import pytest

from toolgrammar.core import ParseError, ToolCall
from toolgrammar.tools import ToolSet, toolset
from toolgrammar.tools.formats import format_names, get_format

TOOLS = ToolSet.from_any(
    [
        {
            "name": "get_weather",
            "parameters": {
                "type": "object",
                "properties": {
                    "city": {"type": "string"},
                    "days": {"type": "integer"},
                    "unit": {"enum": ["celsius", "fahrenheit"]},
                },
                "required": ["city"],
            },
        },
        {
            "name": "send_mail",
            "parameters": {
                "type": "object",
                "properties": {"to": {"type": "string"}, "body": {"type": "string"}},
                "required": ["to", "body"],
            },
        },
    ]
)
CALL = ToolCall("abcdef123", "get_weather", {"city": "Paris", "days": 3, "unit": "celsius"})


@pytest.mark.parametrize("name", format_names())
def test_every_format(name: str) -> None:
    """A call as its format writes it is left alone; misspelled names and values become those that exist."""
    text = get_format(name).render("", [CALL])
    message, repaired = TOOLS.repair(text, name)
    assert not repaired.edits and repaired.text == text
    broken = text.replace("celsius", "Celcius").replace("get_weather", "getWeather").replace("days", "day")
    message, repaired = TOOLS.repair(broken, name, seconds=5)
    assert [(call.name, dict(call.arguments)) for call in message.tool_calls] == [(CALL.name, dict(CALL.arguments))]
    assert message.tool_calls[0].error is None and repaired.edits


@pytest.mark.parametrize("name", ["qwen3-coder", "mimo-2"])
def test_a_closing_tag_within_a_text(name: str) -> None:
    """It stays in the text, also where something else of the call is repaired."""
    arguments = {"to": "me", "body": "use </parameter> here"}
    text = get_format(name).render("", [ToolCall("1", "send_mail", arguments)])
    message, repaired = TOOLS.repair(text, name)
    assert not repaired.edits
    message, repaired = TOOLS.repair(text.replace("send_mail", "sendMail"), name, seconds=5)
    assert repaired.edits and dict(message.tool_calls[0].arguments) == arguments


def test_the_time_of_both_searches_is_processor_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """A busy machine, on which the first search waits, leaves the second one no less time."""
    given: list[float] = []
    used: list[float] = []
    repair = toolset.repair_text

    def waiting(*args: Any, seconds: float, **options: Any) -> Any:
        given.append(seconds)
        used.append(time.thread_time() - before)
        found = repair(*args, seconds=seconds, **options)
        time.sleep(0.5)
        return found

    monkeypatch.setattr(toolset, "repair_text", waiting)
    text = get_format("qwen3-coder").render("", [CALL])
    before = time.thread_time()
    TOOLS.repair(text.replace("=days>", "=day>"), "qwen3-coder", seconds=100)
    assert len(given) == 2 and given[0] == 100
    assert 100 - used[1] <= given[1] < 100


def test_several_calls_and_text_around_them() -> None:
    """All calls are kept; what is around them is left out."""
    text = "I will do both.\n" + get_format("hermes").render("", [CALL, CALL]).replace('"', "'") + "\nDone!"
    message, _ = TOOLS.repair(text)
    assert [dict(call.arguments) for call in message.tool_calls] == [dict(CALL.arguments)] * 2


def test_many_calls_with_prose_and_unknown_arguments_in_each() -> None:
    """Text between calls and members that no tool has are left out, in each of many calls, with little search."""
    one = get_format("hermes").render("", [CALL]).replace('"city"', '"confidence_zz": {"a": 1}, "city"')
    text = "\n".join(f"Now call number {number}, as you asked:\n{one}" for number in range(12))
    message, repaired = TOOLS.repair(text, seconds=5)
    assert [dict(call.arguments) for call in message.tool_calls] == [dict(CALL.arguments)] * 12
    assert {edit.why for edit in repaired.edits} <= {
        "text before the answer",
        "text between",
        "a member that is not known, or does not fit",
    }


def test_missing_arguments_are_not_invented() -> None:
    """A call without a required argument is an error, unless values may be made up, which is told."""
    text = '<tool_call>\n{"name": "send_mail", "arguments": {"to": "a@b.c"}}\n</tool_call>'
    with pytest.raises(ParseError):
        TOOLS.repair(text)
    _, repaired = TOOLS.repair(text, invent=True)
    assert repaired.is_invented


def test_calls_are_respelled_where_repair_is_asked_for() -> None:
    """`parse` and `check_call` with ``repair=True`` take calls that differ by their spelling, and no others."""
    respelled = TOOLS.check_call(ToolCall("1", "GetWeather", {"city": "Paris", "unit": "Celsius"}), repair=True)
    assert (respelled.id, respelled.name, dict(respelled.arguments)) == (
        "1",
        "get_weather",
        {"city": "Paris", "unit": "celsius"},
    )
    for other in (
        ToolCall("1", "delete_all", {"city": "Paris"}),
        ToolCall("1", "get_weather", {"city": "Paris", "unit": "kelvin"}),
        ToolCall("1", "get_weather", {}, raw='{"city": "Par', error="malformed call: cut"),
    ):
        assert TOOLS.check_call(other, repair=True).error is not None


def test_prose_does_not_become_a_call() -> None:
    """Text that only mentions a tool, or none, is refused, also where a single call is possible."""
    single = ToolSet.from_any([{"name": "now", "parameters": {"type": "object", "properties": {}}}])
    for text in ("You're right, I should have said:\n\n" * 5, "I could use get_weather for Paris: it is easy.", "now"):
        for tools in (TOOLS, single):
            with pytest.raises(ParseError):
                tools.repair(text)
