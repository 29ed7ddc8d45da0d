"""The Hermes format: grammar, rendering and streaming parser agree."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from toolgrammar.core import (
    ArgumentsDelta,
    CallEnd,
    CallStart,
    InvalidArgumentsError,
    Message,
    ParseError,
    TextDelta,
    ToolCall,
    ToolGrammarError,
)
from toolgrammar.tools import Tool, ToolSet, get_format

from .formats.common import counter, events_of
from .strategies import TRICKY, cuts, texts, tools_and_calls

HERMES = get_format("hermes")
WEATHER = Tool(
    "get_weather",
    "Weather of a city.",
    {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
)
TOOLS = ToolSet.from_any([WEATHER, Tool("now", "The time.", {}), Tool("get", "", {})])


def block(body: str) -> str:
    """A body between the tags."""
    return f"<tool_call>\n{body}\n</tool_call>"


def only_call(text: str) -> ToolCall:
    """The one call in a text, parsed with TOOLS."""
    (call,) = TOOLS.parse(text).tool_calls
    return call


def calls_of(pairs: Sequence[tuple[str, dict[str, Any]]]) -> list[ToolCall]:
    """Calls with ids c0, c1, ..."""
    return [ToolCall(f"c{i}", name, arguments) for i, (name, arguments) in enumerate(pairs)]


def test_history_form() -> None:
    """Calls are rendered as the chat templates of Qwen and Hermes write them."""
    calls = [ToolCall("x", "get_weather", {"city": "Zürich"}), ToolCall("y", "now", {})]
    assert HERMES.render("Sure.", calls) == (
        'Sure.\n<tool_call>\n{"name": "get_weather", "arguments": {"city": "Zürich"}}\n</tool_call>\n'
        '<tool_call>\n{"name": "now", "arguments": {}}\n</tool_call>'
    )


def test_result_form() -> None:
    """A result stands between its own tags."""
    message = Message("tool", "12 °C", tool_call_id="x")
    assert HERMES.render_result(message) == "<tool_response>\n12 °C\n</tool_response>"


def test_prompt_names_every_tool() -> None:
    """The prompt has one JSON line per tool, and is empty without tools."""
    lines = TOOLS.prompt().splitlines()
    assert sum(line.startswith('{"name":"') for line in lines) == 3
    assert ToolSet().prompt() == ""


@given(tools_and_calls(), texts)
def test_round_trip(drawn: tuple[list[Tool], list[tuple[str, dict[str, Any]]]], text: str) -> None:
    """Rendered calls are in the grammar, and the parser returns the same text, names and arguments."""
    tools, pairs = drawn
    toolset = ToolSet(tools)
    assume("<tool_call>" not in text + "\n")
    written = HERMES.render(text, calls_of(pairs))
    assert toolset.grammar().matches(written)
    message = toolset.parse(written)
    assert message.text == text
    assert [(call.name, call.arguments, call.error) for call in message.tool_calls] == [
        (name, arguments, None) for name, arguments in pairs
    ]


@given(st.data())
def test_any_cut_gives_the_same_events(data: st.DataObject) -> None:
    """For rendered turns, joined events do not depend on how the text was cut, and deltas join to ``raw``."""
    tools, pairs = data.draw(tools_and_calls())
    text = data.draw(texts)
    written = HERMES.render(text, calls_of(pairs))
    toolset = ToolSet(tools)
    whole = events_of(toolset, "hermes", [written])
    assert events_of(toolset, "hermes", data.draw(cuts(written))) == whole
    for index, event in enumerate(whole):
        if isinstance(event, CallEnd) and event.call.error is None:
            delta = whole[index - 1]
            assert isinstance(delta, ArgumentsDelta)
            assert delta.text == event.call.raw


PIECES = (
    "<tool_call>", "</tool_call>", "\n", " ", "{", "}", '"name"', '"arguments"', '"parameters"', ":", ",", '"now"',
    '"get_weather"', '{"city": "x"}', '{"name": "now", "arguments": {}}', '"', "\\", "1", "nul", "text", "<", "<tool_",
    '"{}"', "null", "</tool",
)  # fmt: skip


@given(st.lists(st.sampled_from(PIECES), max_size=14).map("".join), st.data())
def test_any_cut_of_noise_gives_the_same_events(text: str, data: st.DataObject) -> None:
    """Malformed text, too: same events however it is cut."""
    whole = events_of(TOOLS, "hermes", [text])
    assert events_of(TOOLS, "hermes", data.draw(cuts(text))) == whole
    assert events_of(TOOLS, "hermes", list(text)) == whole


@pytest.mark.parametrize(
    "body",
    [
        '{"name": "get_weather", "arguments": {"city": "x"}}',
        '{"name":"get_weather","arguments":{"city":"x"}}',
        '{ "name" : "get_weather" ,\n "arguments" : { "city" : "x" } }',
        '{"name": "get_weather", "parameters": {"city": "x"}}',
        '{"arguments": {"city": "x"}, "name": "get_weather"}',
        '{"name": "get_weather", "arguments": "{\\"city\\": \\"x\\"}"}',
        '{"arguments": "{\\"city\\": \\"x\\"}", "name": "get_weather"}',
        '{"type": "function", "id": 7, "name": "get_weather", "arguments": {"city": "x"}, "more": [1, {"a": "}"}]}',
        '{"name": "get_\\u0077eather", "arguments": {"city": "\\u0078"}}',
    ],
)
@pytest.mark.parametrize("frame", ["<tool_call>\n{}\n</tool_call>", "<tool_call>{}</tool_call>", "<tool_call> {}  "])
def test_observed_variants(body: str, frame: str) -> None:
    """What models write without a grammar is read as the same call."""
    call = only_call(frame.replace("{}", body, 1))
    assert (call.name, call.arguments, call.error) == ("get_weather", {"city": "x"}, None)


@pytest.mark.parametrize(
    "body", ['{"name": "now"}', '{"name": "now", "arguments": null}', '{"name": "now", "arguments": ""}']
)
def test_missing_arguments_are_none(body: str) -> None:
    """A call without arguments has none, and its delta says so."""
    events = events_of(TOOLS, "hermes", [block(body)])
    assert events == [
        CallStart(0, "c0", "now"),
        ArgumentsDelta(0, "{}"),
        CallEnd(0, ToolCall("c0", "now", {}, raw="{}")),
    ]


@pytest.mark.parametrize(
    "body",
    [
        "",
        "now()",
        "{'name': 'now', 'arguments': {}}",
        '{"name": 5, "arguments": {}}',
        '{"name": "", "arguments": {}}',
        '{"arguments": {}}',
        '{"name": "now", "arguments": [1]}',
        '{"name": "now", "arguments": "x"}',
        '{"name": "now", "arguments": "[]"}',
        '{"name": "now", "arguments": {"a": NaN}}',
        '{"name": "now", "arguments": {"a": 01}}',
        '{"name": "now", "arguments": {"a": "b}}',
        '{"name": "now", "arguments": {"a": "\\x"}}',
        '{"name": "now", "arguments": {}, "parameters": {}}',
        '{"name": "now", "name": "get", "arguments": {}}',
        '{"name": "now", "arguments": {}}}',
        '{"name": "now", "arguments": {"a": 1,}}',
        '[{"name": "now", "arguments": {}}]',
        '{"name": "now", "arguments": {"a": ' + "9" * 5_000 + "}}",
    ],
)
def test_malformed_calls_are_kept(body: str) -> None:
    """A malformed call is a call with an error and its text, and the call after it is read."""
    text = "a\n" + block(body) + "\n" + block('{"name": "get", "arguments": {}}')
    message = TOOLS.parse(text)
    first, second = message.tool_calls
    assert message.text == "a"
    assert first.fault == "malformed"
    assert first.error is not None
    assert first.error.startswith("malformed call: ")
    assert first.raw == body
    assert (second.name, second.error) == ("get", None)


def test_malformed_call_with_unclosed_string_at_the_end() -> None:
    """A string that is never closed does not swallow the tag, nor the text after it."""
    message = TOOLS.parse('<tool_call>{"name": "now", "arguments": {"a": "b}}</tool_call> bye')
    (call,) = message.tool_calls
    assert call.error is not None
    assert message.text == " bye"


def test_forgotten_last_brace() -> None:
    """A tag after whole arguments closes the call's object."""
    call = only_call(block('{"name": "get_weather", "arguments": {"city": "x"}'))
    assert (call.name, call.arguments, call.error) == ("get_weather", {"city": "x"}, None)


def test_forgotten_end_tag() -> None:
    """The next start tag ends a call whose object is whole."""
    call = '{"name": "now", "arguments": {}}'
    message = TOOLS.parse(f"<tool_call>\n{call}\n<tool_call>\n{call}\n</tool_call>")
    assert [(each.name, each.error) for each in message.tool_calls] == [("now", None), ("now", None)]


def test_invalid_calls_say_why() -> None:
    """Unknown tools and wrong arguments are in ``error``; the call is as it was written."""
    unknown = only_call(block('{"name": "nope", "arguments": {}}'))
    wrong = only_call(block('{"name": "get_weather", "arguments": {"city": 5}}'))
    extra = only_call(block('{"name": "now", "arguments": {"x": 1}}'))
    assert "nope" in (unknown.error or "")
    assert "/city" in (wrong.error or "")
    assert "'x'" in (extra.error or "")
    assert wrong.arguments == {"city": 5}


@pytest.mark.parametrize("end", range(len("<tool_call>"), len('<tool_call>\n{"name": "now", "arguments": {}}') - 1))
def test_truncated_call(end: int) -> None:
    """A call inside of which the text ends is malformed, wherever that is."""
    call = only_call('<tool_call>\n{"name": "now", "arguments": {}}\n</tool_call>'[:end])
    assert call.fault == "unfinished"
    with pytest.raises(InvalidArgumentsError):
        dict(call.arguments)


@pytest.mark.parametrize("tail", ["", "\n", "\n</tool", "</tool_call>", "\n</tool_call>\n"])
def test_end_of_text_closes_a_whole_call(tail: str) -> None:
    """When the object is whole, the end of the text is as good as the tag."""
    call = only_call('<tool_call>\n{"name": "now", "arguments": {}}' + tail)
    assert (call.name, call.error) == ("now", None)


def test_events_come_early() -> None:
    """The name is sent at its closing quote, arguments as they come, text but for a possible marker."""
    parser = TOOLS.parser(new_id=counter())
    assert parser.feed("Hi\n<tool") == [TextDelta("Hi")]
    assert parser.feed('_call>\n{"name": "get_weather') == []
    assert parser.feed('", "arguments": {"ci') == [CallStart(0, "c0", "get_weather"), ArgumentsDelta(0, '{"ci')]
    assert parser.feed('ty": "x') == [ArgumentsDelta(0, 'ty": "x')]
    assert parser.feed('"}}') == [ArgumentsDelta(0, '"}')]
    assert [type(event) for event in parser.feed("\n</tool_call>")] == [CallEnd]
    assert parser.close() == []


def test_text_keeps_what_only_looked_like_a_marker() -> None:
    """Text that begins like a marker and is none is text."""
    assert TOOLS.parse("a\n<tool_calls b <").text == "a\n<tool_calls b <"


def test_text_after_calls_is_kept() -> None:
    """White space between calls is dropped, text after them is not."""
    call = block('{"name": "now", "arguments": {}}')
    message = TOOLS.parse(f"{call}\n\n{call} done\n")
    assert len(message.tool_calls) == 2
    assert message.text == " done\n"


def test_closed_parser_takes_no_more() -> None:
    """After close, close is empty and feed raises."""
    parser = TOOLS.parser()
    parser.close()
    assert parser.close() == []
    with pytest.raises(ParseError):
        parser.feed("x")


def test_ids_are_unique() -> None:
    """Ids are ``call_`` and hexadecimal digits, all different."""
    call = block('{"name": "now", "arguments": {}}')
    ids = [each.id for each in TOOLS.parse(call * 20).tool_calls]
    assert len(set(ids)) == 20
    assert all(each.startswith("call_") and int(each[5:], 16) >= 0 for each in ids)


def test_json_answer_may_hold_a_marker() -> None:
    """Beside a response schema, a marker inside the JSON answer begins no call; one at the start does."""
    answer = '{"a": "<tool_call>{}</tool_call>"}'
    schema = {"type": "object", "properties": {"a": {"type": "string"}}}
    assert TOOLS.parse(answer, response_schema=schema) == Message("assistant", answer)
    assert len(TOOLS.parse(block('{"name": "now"}'), response_schema=schema).tool_calls) == 1
    for text in (answer, block('{"name": "now"}')):
        assert events_of(TOOLS, "hermes", text, response_schema=schema) == events_of(
            TOOLS, "hermes", [text], response_schema=schema
        )


@pytest.mark.parametrize("text", TRICKY)
def test_tricky_strings_are_in_the_grammar(text: str) -> None:
    """The grammar admits every string as an argument, and the parser returns it."""
    written = HERMES.render_calls([ToolCall("x", "get_weather", {"city": text})])
    assert TOOLS.grammar(tool_choice="required").matches(written)
    assert only_call(written).arguments == {"city": text}


def test_unknown_format() -> None:
    """An unknown format is an error that lists the known ones."""
    with pytest.raises(ToolGrammarError, match="hermes"):
        TOOLS.parse("", "nope")
