"""Calls of Reflection's Beam, on the texts of vLLM's tests of its parser."""

from __future__ import annotations

from typing import Any

import pytest

from toolgrammar.tools import Tool, ToolSet
from toolgrammar.tools.formats import get_format

BEAM = get_format("beam").with_special(())  # type: ignore[attr-defined]
THOUGHT = "<|channel|>analysis<|message|>plan<|end|><|start|>assistant"
FINAL = "<|channel|>final<|message|>"
NEXT = "<|end|><|start|>assistant"


def _tool(name: str, **properties: str) -> Tool:
    return Tool(name, "", {"type": "object", "properties": {key: {"type": kind} for key, kind in properties.items()}})


TOOLS = ToolSet(
    [
        _tool("get_weather", city="string"),
        _tool("set_count", count="integer"),
        _tool("write", path="string", text="string"),
    ]
)


def parameter(name: str, value: str) -> str:
    """An argument."""
    return f'<rfl:parameter name="{name}">\n{value}\n</rfl:parameter>'


def call(name: str, body: str, end: str = "") -> str:
    """A call."""
    return f" to={name}<|channel|>analysis <|constrain|>xml<|message|>{body}{end}"


PARIS = ("get_weather", {"city": "Paris"})
WEATHER = parameter("city", "Paris")


@pytest.mark.parametrize(
    ("text", "reasoning", "said", "calls", "is_admitted"),
    [
        (THOUGHT + FINAL + "Sunny.", "plan", "Sunny.", [], True),
        (THOUGHT + FINAL + "Sunny.<|return|>", "plan", "Sunny.", [], False),  # a stop token: of the vocabulary
        (THOUGHT + call("get_weather", WEATHER), "plan", "", [PARIS], True),
        (
            THOUGHT + call("get_weather", WEATHER, NEXT) + call("set_count", parameter("count", "7"), "<|call|>"),
            "plan",
            "",
            [PARIS, ("set_count", {"count": 7})],
            False,
        ),
        (THOUGHT + call("get_weather", WEATHER, NEXT) + call("get_weather", WEATHER), "plan", "", [PARIS, PARIS], True),
        (call("get_weather", WEATHER, "<|end|>"), None, "", [PARIS], False),  # cut before the next message
        (FINAL + "done<|call|>", None, "done", [], False),
        (
            call("write", parameter("path", "a.py") + "\n" + parameter("text", "x")),
            None,
            "",
            [("write", {"path": "a.py", "text": "x"})],
            False,
        ),
        (call("get_weather", ""), None, "", [("get_weather", {})], True),
    ],
)
def test_turns(text: str, reasoning: str | None, said: str, calls: list[Any], is_admitted: bool) -> None:
    """The parser reads what vLLM's reads, whole and in pieces, and the grammar has what ends without a stop token."""
    message = TOOLS.parse(text, BEAM)
    assert (message.reasoning, message.text) == (reasoning, said)
    assert [(each.name, dict(each.arguments)) for each in message.tool_calls] == calls
    assert not any(each.error for each in message.tool_calls)
    parser = TOOLS.parser(BEAM)
    events = [event for char in text for event in parser.feed(char)] + list(parser.close())
    assert len([event for event in events if hasattr(event, "call")]) == len(calls)
    assert TOOLS.grammar(BEAM, reasoning="optional").matches(text) == is_admitted


@pytest.mark.parametrize("spacing", [" ", ""])
def test_the_word_before_the_message_may_be_missing(spacing: str) -> None:
    """A call is a call without ``<|constrain|>xml``, and with its values on the lines of their tags; both are named."""
    body = '<rfl:parameter name="count">7</rfl:parameter>'
    text = f"{THOUGHT} to=set_count<|channel|>analysis{spacing}<|message|>{body}<|call|>"
    message = TOOLS.parse(text, BEAM)
    assert (message.reasoning, message.text) == ("plan", "")
    assert [(each.name, dict(each.arguments), each.error) for each in message.tool_calls] == [
        ("set_count", {"count": 7}, None)
    ]
    assert [edit.why for edit in message.leniencies] == ["other_markup"]
    assert not TOOLS.grammar(BEAM, reasoning="optional").matches(text.removesuffix("<|call|>"))


def test_values_hold_to_the_schema() -> None:
    """A value of a wrong type, and an argument of another tool, are not in the grammar."""
    grammar = TOOLS.grammar(BEAM, tool_choice="required")
    assert not grammar.matches(call("set_count", parameter("count", "x")))
    assert not grammar.matches(call("get_weather", parameter("town", "Paris")))
    assert not grammar.matches(FINAL + "Paris")
