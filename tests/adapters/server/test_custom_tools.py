"""Custom tools: calls whose input is a text, of a regular expression or a Lark grammar if one is given."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import lark
import openai
import pytest
from openai.types.responses import ResponseStreamEvent
from pydantic import TypeAdapter

from toolgrammar.adapters.openai import client
from toolgrammar.core import GenerateParams, Message, Model, ToolCall
from toolgrammar.core.testing import ScriptedModel

from .conftest import openai_tool

HELLO: Any = [{"role": "user", "content": "Hello"}]
#: A regular expression of Rust's regex crate; Python reads it the same way.
DEFINITION = r"(?i)select [a-z]{1,8}|[0-9]{4}-[0-9][0-9]-[0-9][0-9]"
GRAMMAR = {"syntax": "regex", "definition": DEFINITION}
#: As in OpenAI's guide to function calling, with brackets.
SUMS = """
start: expr
expr: term (SP ADD SP term)*
term: factor (SP MUL SP factor)*
factor: NUMBER | "(" expr ")"
SP: " "
ADD: "+"
MUL: "*"
NUMBER: /[0-9]{1,3}/
"""
SQL: Any = {"name": "sql", "description": "Run a query.", "format": {"type": "grammar"}}
CHAT_TOOLS: Any = [
    {"type": "custom", "custom": {**SQL, "format": {"type": "grammar", "grammar": GRAMMAR}}},
    openai_tool("book"),
]
TOOLS: Any = [{"type": "custom", **SQL, "format": {"type": "grammar", **GRAMMAR}}]


@pytest.fixture(scope="module")
def noisy(noise: Model) -> Iterator[openai.OpenAI]:
    """OpenAI's client over the model of noise, which samples."""
    with client({"noise": noise}, defaults=GenerateParams(temperature=1.5)) as made:
        yield made


@pytest.mark.parametrize("seed", range(3))
def test_inputs_are_of_the_grammar(noisy: openai.OpenAI, seed: int) -> None:
    """In chat completions and responses, whole and streamed, each input matches as a whole."""
    asked: Any = {"model": "noise", "messages": HELLO, "tools": CHAT_TOOLS, "seed": seed, "max_tokens": 100}
    choice: Any = {"type": "custom", "custom": {"name": "sql"}}
    message = noisy.chat.completions.create(**asked, tool_choice=choice, parallel_tool_calls=False).choices[0].message
    assert message.tool_calls and len(message.tool_calls) == 1
    call: Any = message.tool_calls[0]
    assert call.type == "custom" and call.custom.name == "sql" and re.fullmatch(DEFINITION, call.custom.input)
    chunks = noisy.chat.completions.create(**asked, tool_choice=choice, parallel_tool_calls=False, stream=True)
    streamed: Any = [one for chunk in chunks for one in chunk.choices[0].delta.tool_calls or ()]
    assert [one.custom["input"] for one in streamed] == [call.custom.input] and streamed[0].type == "custom"

    again: Any = {"model": "noise", "input": "Hello", "tools": TOOLS, "max_output_tokens": 100}
    one_call: Any = {"tool_choice": {"type": "custom", "name": "sql"}, "parallel_tool_calls": False}
    body = {"extra_body": {"seed": seed}}
    (item,) = noisy.responses.create(**again, **one_call, **body).output
    assert item.type == "custom_tool_call" and re.fullmatch(DEFINITION, item.input) and item.name == "sql"
    events: list[Any] = list(noisy.responses.create(**again, **one_call, **body, stream=True))
    for event in events:
        TypeAdapter(ResponseStreamEvent).validate_python(event)
    deltas = [event.delta for event in events if event.type == "response.custom_tool_call_input.delta"]
    assert "".join(deltas) == item.input == events[-1].response.output[0].input


@pytest.mark.parametrize("seed", range(3))
def test_inputs_are_of_a_lark_grammar(noisy: openai.OpenAI, seed: int) -> None:
    """OpenAI's own example of a grammar, with recursion: ``lark`` reads each input, in both protocols."""
    grammar = {"type": "grammar", "syntax": "lark", "definition": SUMS}
    oracle = lark.Lark(SUMS)
    nested: Any = {"type": "grammar", "grammar": {"syntax": "lark", "definition": SUMS}}
    chat: Any = {"type": "custom", "custom": {"name": "math", "format": nested}}
    flat: Any = {"type": "custom", "name": "math", "format": grammar}
    asked: Any = {"tool_choice": "required", "extra_body": {"seed": seed}}
    answer = noisy.chat.completions.create(model="noise", messages=HELLO, tools=[chat], max_tokens=150, **asked)
    calls: Any = answer.choices[0].message.tool_calls
    response = noisy.responses.create(model="noise", input="Hello", tools=[flat], max_output_tokens=150, **asked)
    items: Any = response.output
    inputs = [call.custom.input for call in calls or ()] + [item.input for item in items]
    assert inputs  # calls that the budget cut are left out
    for text in inputs:
        oracle.parse(text)


def test_an_input_without_a_grammar_is_any_text() -> None:
    """Quotes, newlines and braces included; other calls of the turn are functions."""
    text = 'SELECT "a"\nFROM t -- {é}'
    calls = (ToolCall("", "sql", {"input": text}), ToolCall("", "book", {"code": "AB123", "seats": 1}))
    with client(ScriptedModel([Message("assistant", tool_calls=calls)])) as made:
        tools: Any = [{"type": "custom", "custom": {"name": "sql"}}, openai_tool("book")]
        answer = made.chat.completions.create(model="scripted", messages=HELLO, tools=tools)
    said: Any = answer.choices[0].message.tool_calls
    assert [one.type for one in said] == ["custom", "function"] and said[0].custom.input == text


def test_a_conversation_goes_on_after_a_call() -> None:
    """The call and its result come back, as messages or as items, and the model reads both."""
    script = [Message("assistant", tool_calls=(ToolCall("", "sql", {"input": "select a"}),)), "Done."]
    allowed: Any = {
        "type": "allowed_tools",
        "allowed_tools": {"mode": "auto", "tools": [{"type": "custom", "custom": {"name": "sql"}}]},
    }
    model = ScriptedModel(script)
    with client(model) as made:
        first = made.chat.completions.create(model="scripted", messages=HELLO, tools=CHAT_TOOLS, tool_choice=allowed)
        message = first.choices[0].message
        assert message.tool_calls
        result = {"role": "tool", "tool_call_id": message.tool_calls[0].id, "content": "one row"}
        more: Any = [*HELLO, message.model_dump(exclude_none=True), result]
        second = made.chat.completions.create(model="scripted", messages=more, tools=CHAT_TOOLS)
        assert second.choices[0].message.content == "Done."
    assert model.requests[1][1].tool_calls[0].arguments == {"input": "select a"}
    model = ScriptedModel(script)
    with client(model) as made:
        response = made.responses.create(model="scripted", input="Hello", tools=TOOLS)
        item: Any = response.output[0]
        output: Any = {"type": "custom_tool_call_output", "call_id": item.call_id, "output": "one row"}
        items: Any = [{"role": "user", "content": "Hello"}, item.model_dump(exclude_none=True), output]
        end = made.responses.create(model="scripted", input=items, tools=TOOLS)
        assert end.output_text == "Done."
    assert model.requests[1][1].tool_calls[0].arguments == {"input": "select a"}
    assert model.requests[1][2].text == "one row"


def test_a_cut_input_is_not_sent() -> None:
    """No client could tell it from a whole one: it is left out, and its place is named."""
    reply = Message("assistant", tool_calls=(ToolCall("", "sql", {"input": "long " * 60}),))
    tools: Any = [{"type": "custom", "custom": {"name": "sql"}}]
    with client(ScriptedModel(lambda messages: reply)) as made:
        asked: Any = {"model": "scripted", "messages": HELLO, "tools": tools, "max_tokens": 100}
        choice: Any = made.chat.completions.create(**asked).choices[0]
        assert choice.finish_reason == "length" and not choice.message.tool_calls
        assert choice.toolgrammar == {"cut": ["sql/input"]}
        chunks: list[Any] = list(made.chat.completions.create(**asked, stream=True))
        assert not any(chunk.choices[0].delta.tool_calls for chunk in chunks)
        assert chunks[-1].choices[0].toolgrammar == {"cut": ["sql/input"]}
        more: Any = {"model": "scripted", "input": "x", "tools": [{"type": "custom", "name": "sql"}]}
        response = made.responses.create(**more, max_output_tokens=100)
        assert response.status == "incomplete" and response.output == []
        last: Any = list(made.responses.create(**more, max_output_tokens=100, stream=True))[-1]
        assert last.type == "response.incomplete" and last.response.output == []
