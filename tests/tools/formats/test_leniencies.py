"""What parsers put up with in free output: what is read, its names, and their places."""

from __future__ import annotations

import random
import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toolgrammar.core import CallEnd
from toolgrammar.core.json import JsonScanner
from toolgrammar.tools import Tool, ToolSet
from toolgrammar.tools.formats import LENIENCIES, format_names, get_format

from ..strategies import cuts
from .common import events_of

_PARAMETERS = {
    "type": "object",
    "properties": {
        "city": {"type": "string"},
        "state": {"type": "string"},
        "days": {"type": "integer"},
        "more": {"type": "object", "additionalProperties": True},
        "sure": {"type": "boolean"},
    },
    "required": ["city", "state"],
}
TOOLS = ToolSet([Tool("get_weather", "Weather.", _PARAMETERS), Tool("ping", "", {"type": "object", "properties": {}})])
DALLAS = {"city": "Dallas", "state": "TX"}
_JSON = '{"name": "get_weather", "arguments": {"city": "Dallas", "state": "TX"}'
_BEGIN = "<tool_call>\n<function=get_weather>\n<parameter=city>\nDallas\n"
_STATE = "<parameter=state>\nTX\n</parameter>\n"
_END = "</function>\n</tool_call>"
_GLM = "<arg_key>city</arg_key><arg_value>Dallas</arg_value><arg_key>state</arg_key><arg_value>TX</arg_value>"

_M3 = "]<]minimax[>["

#: Format, text, arguments of the calls, and the names.
CASES: tuple[tuple[str, str, list[dict[str, Any]], list[str]], ...] = (
    ("hermes", f"<tool_call>\n{_JSON}}}\n</tool_call>", [DALLAS], []),
    ("hermes", f"<think>Hm. <tool_call>\n{_JSON}}}\n</tool_call>", [DALLAS], ["unclosed_reasoning"]),
    ("hermes", f"<think>A <tool_call> is due.</think><tool_call>\n{_JSON}}}\n</tool_call>", [DALLAS], []),
    ("hermes", f"<think>I say <tool_call>{_JSON}}}</tool_call>.</think>No.", [], []),
    ("hermes", "<think>A <tool_call> is due, but", [], []),
    ("hermes", f"<tool_call>\n{_JSON}\n</tool_call>", [DALLAS], ["missing_brace"]),
    ("hermes", f"<tool_call>\n{_JSON}}}", [DALLAS], ["other_markup"]),
    ("hermes", f"<tool_call>\n{_JSON}}}\n</tool_call>\nDone.", [DALLAS], ["text_after_calls"]),
    (
        "hermes",
        f"<tool_call>\n{_JSON}}}\n</tool_call>\nNow\n<tool_call>\n{_JSON}}}\n</tool_call>",
        [DALLAS, DALLAS],
        ["text_after_calls"],
    ),
    ("hermes", f"<tool_call>{_JSON}}}</tool_call><tool_call>{_JSON}}}</tool_call>", [DALLAS, DALLAS], []),
    ("hermes", f"<tool_call>\n{_JSON}}}\n<tool_call>\n{_JSON}}}\n</tool_call>", [DALLAS] * 2, ["other_markup"]),
    ("hermes", f"<tool_call>\n{_JSON.replace('arguments', 'parameters')}}}\n</tool_call>", [DALLAS], ["other_key"]),
    ("llama-json", f"{_JSON.replace('arguments', 'parameters')}}}", [DALLAS], []),
    ("llama-json", f"{_JSON}}}", [DALLAS], ["other_key"]),
    ("hermes", '<tool_call>\n{"name": "ping"}\n</tool_call>', [{}], ["missing_arguments"]),
    ("hermes", '<tool_call>\n{"name": "ping", "arguments": null}\n</tool_call>', [{}], ["missing_arguments"]),
    ("hermes", '<tool_call>\n{"name": "ping", "arguments": "{}"}\n</tool_call>', [{}], ["arguments_as_text"]),
    ("qwen3-coder", f"{_BEGIN}</parameter>\n{_STATE}{_END}", [DALLAS], []),
    ("qwen3-coder", f"{_BEGIN}{_STATE}{_END}", [DALLAS], ["missing_end_tag"]),
    ("qwen3-coder", f"{_BEGIN}</parameter>\n{_STATE.replace('</parameter>', '')}{_END}", [DALLAS], ["missing_end_tag"]),
    (  # a text that the grammar admits
        "qwen3-coder",
        f"{_BEGIN}<parameter=days>\n3\n</parameter>\n{_STATE}{_END}",
        [{"city": "Dallas\n<parameter=days>\n3", "state": "TX"}],
        [],
    ),
    (
        "qwen3-coder",
        f"{_BEGIN}</parameter>\n{_STATE}<parameter=sure>\nTrue\n</parameter>\n{_END}",
        [{**DALLAS, "sure": True}],
        ["python_literal"],
    ),
    (
        "qwen3-coder",
        f"{_BEGIN}</parameter>\n{_STATE}<parameter=more>\n{{'a': (1, None)}}\n</parameter>\n{_END}",
        [{**DALLAS, "more": {"a": [1, None]}}],
        ["python_literal"],
    ),
    (
        "qwen3-coder",
        f"{_BEGIN}</parameter>\n{_STATE}<parameter=more>\n{{&quot;a&quot;: 1}}\n</parameter>\n{_END}",
        [{**DALLAS, "more": {"a": 1}}],
        ["xml_entity"],
    ),
    (
        "qwen3-coder",
        f"{_BEGIN.replace('Dallas', 'a &lt; b')}</parameter>\n{_STATE}{_END}",
        [{"city": "a &lt; b", "state": "TX"}],
        [],
    ),
    ("qwen3-coder", f"{_BEGIN[12:]}</parameter>\n{_STATE}</function>", [DALLAS], ["other_markup", "other_markup"]),
    ("glm-4.7", f"<think>Hm.<tool_call>get_weather{_GLM}</tool_call>", [DALLAS], ["unclosed_reasoning"]),
    ("glm-4.7", f"<tool_call>get_weather{_GLM}</tool_call>", [DALLAS], []),
    (
        "lfm2",
        '<|tool_call_start|>[get_weather(city="Dallas", state="TX")]<|tool_call_end|>So it is.',
        [DALLAS],
        ["text_after_calls"],
    ),
    ("lfm2", '<|tool_call_start|>[get_weather(city="Dallas", state="TX")', [DALLAS], ["other_markup"]),
    (  # the object of another family in the format's tags
        "k2-horizon",
        f"<ifm|tool_calls><ifm|tool_call>{_JSON}}}</ifm|tool_call></ifm|tool_calls>",
        [DALLAS],
        ["other_markup"],
    ),
    ("qwen3-coder", f"<tool_call>\n{_JSON}}}\n</tool_call>", [DALLAS], ["other_markup", "other_markup"]),
    (
        "deepseek-v4",
        '<｜DSML｜invoke name="ping">\n</｜DSML｜invoke>\n</｜DSML｜tool_calls>',
        [{}],
        ["other_markup"],
    ),
    (
        "gemma-4",
        '<|tool_call>:get_weather{city:<|"|>Dallas<|"|>,state:<|"|>TX<|"|>}<tool_call|>',
        [DALLAS],
        ["other_markup"],
    ),
    (
        "lfm2",
        "<|tool_call_start|>[get_weather(city='O'Fallon's 'Dallas'', state=\"TX\")]<|tool_call_end|>",
        [{"city": "O'Fallon's 'Dallas'", "state": "TX"}],
        ["unescaped_quote"],
    ),
    (  # behind text only a marker of its own begins calls
        "llama-json",
        f"I look.<|python_tag|>{_JSON.replace('arguments', 'parameters')}}}",
        [DALLAS],
        ["other_markup"],
    ),
    ("llama-json", f"I look. {_JSON.replace('arguments', 'parameters')}}}", [], []),
    (
        "llama-4",
        'I look.<|python_start|>[get_weather(city="Dallas", state="TX")]<|python_end|>',
        [DALLAS],
        ["other_markup"],
    ),
    (
        "deepseek-v3.2",
        '<｜DSML｜function_calls>\n<｜DSML｜invoke name="get_weather">{"city": "Dallas", "state": "TX"}</｜DSML｜invoke>\n'
        '<｜DSML｜invoke name="ping" />\n</｜DSML｜function_calls>',
        [DALLAS, {}],
        ["other_markup"] * 3,
    ),
    (
        "qwen3-coder",
        f'{_BEGIN}</parameter>\n{_STATE}<parameter=more>\n{{\\"a\\": 1}}\n</parameter>\n{_END}',
        [{**DALLAS, "more": {"a": 1}}],
        ["arguments_as_text"],
    ),
    (  # no end in sight: the string is closed by the end of the call
        "lfm2",
        "<|tool_call_start|>[get_weather(state='TX', city='O'Fallon')]<|tool_call_end|>",
        [{"city": "O'Fallon", "state": "TX"}],
        ["unescaped_quote"],
    ),
    (
        "lfm2",
        '<|tool_call_start|>[get_weather(city="Dallas", state="TX")]<|tool_call_end|>'
        '[get_weather(city="Dallas", state="TX")]<|tool_call_end|>',
        [DALLAS],
        ["other_markup", "echo"],
    ),
    (
        "minimax-m3",
        f'{_M3}<tool_call>\n{_M3}<invoke name="get_weather">{_M3}<city>Dallas{_M3}</city>{_M3}<state>TX{_M3}</state>'
        f"{_M3}<more>{_M3}<a>x{_M3}</a>{_M3}<a>y{_M3}</a>{_M3}</more>{_M3}</invoke>\n{_M3}</tool_call>",
        [{**DALLAS, "more": {"a": ["x", "y"]}}],
        ["repeated_element"],
    ),
    (
        "minimax-m3",
        f'{_M3}<tool_call>\n{_M3}<invoke name="get_weather">{_M3}<city>Dallas{_M3}</city>{_M3}<state>TX{_M3}</state>'
        f"{_M3}<days>007{_M3}</days>{_M3}</invoke>\n{_M3}</tool_call>",
        [{**DALLAS, "days": 7}],
        ["python_literal"],
    ),
    (
        "deepseek-v3.1",
        "<think>Hm.<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>get_weather<｜tool▁sep｜>"
        '{"city": "Dallas", "state": "TX"}<｜tool▁call▁end｜><｜tool▁calls▁end｜>',
        [DALLAS],
        ["unclosed_reasoning"],
    ),
    ("hermes", f"```json\n{_JSON}}}\n```", [DALLAS], ["bare_json"]),
    ("hermes", f"Sure:\n```json\n{_JSON}}}\n{_JSON}}}\n```\nSo.", [DALLAS, DALLAS], ["bare_json", "bare_json"]),
    ("hermes", f"{_JSON}}}", [DALLAS], ["bare_json"]),
    ("hermes", f"[{_JSON}}}, {_JSON}}}]", [DALLAS, DALLAS], ["bare_json"]),
    ("hermes", f'```\n{{"type": "function", "function": {_JSON}}}}}\n```', [DALLAS], ["bare_json"]),
    ("glm-4.7", f"I look.\n  {_JSON}}}", [DALLAS], ["bare_json"]),
    ("llama-json", f"```json\n{_JSON}}}\n```", [DALLAS], ["bare_json"]),
    (
        "qwen3-coder",
        f"<think>Hm.</think>```json\n{_JSON.replace('arguments', 'parameters')}}}",
        [DALLAS],
        ["bare_json"],
    ),
    ("hermes", f"Use {_JSON}}} for that.", [], []),  # not at the beginning of a line
    ("hermes", '```json\n{"name": "Ada", "arguments": {"a": 1}}\n```', [], []),  # no tool
    ("hermes", '{"name": "ping", "age": 3}', [], []),
    ("hermes", f"<tool_call>\n{_JSON}}}\n</tool_call>\n{_JSON}}}", [DALLAS], ["text_after_calls"]),
    ("harmony", f"<|channel|>final<|message|>{_JSON}}}", [], []),  # what has markup of text is text
)


def read(text: str, wire: str, sizes: random.Random | None = None) -> tuple[list[dict[str, Any]], list[Any], str]:
    """Return the arguments of the calls, the leniencies, and the rest as one text."""
    parser = TOOLS.parser(wire, bare_json=True)
    pieces = []
    while text:
        size = len(text) if sizes is None else sizes.randint(1, 7)
        pieces.append(text[:size])
        text = text[size:]
    events = [event for piece in pieces for event in parser.feed(piece)] + parser.close()
    calls = [event.call for event in events if isinstance(event, CallEnd)]
    assert [call.error for call in calls] == [None] * len(calls)
    said = "".join(event.text for event in events if not isinstance(event, CallEnd) and hasattr(event, "text"))
    return [dict(call.arguments) for call in calls], list(parser.leniencies), said


@pytest.mark.parametrize(("wire", "text", "calls", "names"), CASES)
def test_what_is_read_is_named_and_has_a_place(
    wire: str, text: str, calls: list[dict[str, Any]], names: list[str]
) -> None:
    """Calls, names and places are the same however the text is cut."""
    arguments, leniencies, said = read(text, wire)
    assert arguments == calls
    assert [edit.why for edit in leniencies] == names
    for edit in leniencies:
        assert text[edit.start : edit.end] == edit.old
        assert edit.cost == LENIENCIES[edit.why]  # type: ignore[index]
    for seed in range(20):
        assert read(text, wire, random.Random(seed)) == (arguments, leniencies, said)
    message = TOOLS.parse(text, wire)
    assert message.leniencies == tuple(leniencies)
    # Edits with a new text lead to the text of the format; the others only mark a place.
    mended, at = "", 0
    for edit in leniencies:
        mended += text[at : edit.start] + (edit.new or edit.old)
        at = edit.end
    again = read(mended + text[at:], wire)
    assert (again[0], again[2]) == (calls, said)
    assert [edit.why for edit in again[1]] == [edit.why for edit in leniencies if not edit.new]


@pytest.mark.parametrize("before", ["", "<think>I say\n", f"{_JSON}}}\nand "])
def test_json_that_was_text_before_is_not_the_place_of_the_call(before: str) -> None:
    """Equal text that stands earlier, in the middle of a line or in the reasoning, is another one."""
    inside = before.startswith("<think>")
    text = f"{before}So {_JSON}}} it is:{'</think>' if inside else ''}\n{_JSON}}}\nand {_JSON}}}\n{_JSON}}}"
    parser = TOOLS.parser("hermes", bare_json=True)
    for char in text:
        parser.feed(char)
    parser.close()
    places = [match.start() for match in re.finditer(f"^{re.escape(_JSON)}", text, re.MULTILINE)]
    assert [edit.start for edit in parser.leniencies] == places
    assert all(text[edit.start : edit.end] == edit.old for edit in parser.leniencies)
    assert read(text, "hermes")[1] == list(parser.leniencies)


def test_every_name_has_a_case() -> None:
    """No name is there that nothing tests."""
    named = {name for *_, names in CASES for name in names}
    assert named | {"repaired", "other_spelling"} == set(LENIENCIES)


def test_what_repair_changed_is_named() -> None:
    """A repaired call says where it was."""
    text = '<tool_call>\n{"name": "get_weather", "arguments": {"city": "D", "state": "TX", "days": "3"}}\n</tool_call>'
    message = TOOLS.parse(text, "hermes", repair=True)
    assert dict(message.tool_calls[0].arguments) == {"city": "D", "state": "TX", "days": 3}
    (edit,) = message.leniencies
    assert (edit.why, edit.old) == ("repaired", '{"city": "D", "state": "TX", "days": "3"}')
    assert text[edit.start : edit.end] == edit.old


@pytest.mark.parametrize("name", ["arguments", "input", "parameters", "properties"])
def test_arguments_that_are_wrapped_once_more_are_repaired(name: str) -> None:
    """As an object, and as its JSON."""
    for inner in ('{"city": "Dallas", "state": "TX"}', '"{\\"city\\": \\"Dallas\\", \\"state\\": \\"TX\\"}"'):
        text = f'<tool_call>\n{{"name": "get_weather", "arguments": {{"{name}": {inner}}}}}\n</tool_call>'
        message = TOOLS.parse(text, "hermes", repair=True)
        assert [dict(call.arguments) for call in message.tool_calls] == [DALLAS]
        assert [edit.why for edit in message.leniencies] == ["repaired"]


def test_a_set_of_python_is_a_list() -> None:
    """JSON has none."""
    tools = ToolSet(
        [Tool("f", "", {"properties": {"tags": {"type": "array"}}, "required": ["tags"], "type": "object"})]
    )
    (call,) = tools.parse("<|tool_call_start|>[f(tags={'a', 'b'})]<|tool_call_end|>", "lfm2").tool_calls
    assert (dict(call.arguments), call.error) == ({"tags": ["a", "b"]}, None)


@pytest.mark.parametrize("name", format_names())
def test_calls_in_reasoning_that_never_ends_count_where_calls_have_a_marker(name: str) -> None:
    """In every format whose calls have a marker."""
    wire = get_format(name)
    if wire.thinking is None or not wire.call_markers:
        return
    call = TOOLS.validate({"name": "get_weather", "arguments": DALLAS})
    text = wire.thinking.start + "They ask. " + wire.render("", [call])
    arguments, leniencies, _ = read(text, name)
    assert arguments == [DALLAS]
    assert leniencies[0].why == "unclosed_reasoning"


@pytest.mark.parametrize("name", format_names())
def test_a_rendered_turn_is_read_without_leniency(name: str) -> None:
    """In every format."""
    wire = get_format(name)
    calls = [
        TOOLS.validate({"name": "get_weather", "arguments": DALLAS}),
        TOOLS.validate({"name": "ping", "arguments": {}}),
    ]
    for some in (calls[:1], calls[1:], *([calls] if getattr(wire, "parallel", True) else [])):
        assert read(wire.render("", some), name)[1] == []


@pytest.mark.parametrize("text", ["to=x is the syntax.", "to=", " to=x"])
def test_what_only_begins_as_a_call_does(text: str) -> None:
    """A text that begins as the calls of a format do, and is none, is text."""
    for wire in ("muse", "beam"):
        assert TOOLS.parse(text, wire).text.strip() == text.strip()


def test_a_broken_call_keeps_its_rest() -> None:
    """The rest of a malformed call is part of it, and no text; the call after it is read."""
    text = "<tool_call>get_weather<arg_key>city</arg_key></tool_call><tool_call>ping</tool_call>"
    message = TOOLS.parse(text, "glm-4.7")
    assert message.text == ""
    assert [(call.name, bool(call.error)) for call in message.tool_calls] == [("get_weather", True), ("ping", False)]


BARE = (
    "```json\n",
    "```",
    "\n",
    " ",
    f"{_JSON}}}",
    '{"name": "ping"}',
    '{"name": "nobody", "arguments": {}}',
    "[",
    "]",
    ", ",
    "{",
    "<tool_call>",
    "</tool_call>",
    "So.",
    '"name"',
)


@settings(max_examples=200, deadline=None)
@given(st.lists(st.sampled_from(BARE), max_size=10).map("".join), st.data())
def test_json_in_the_text_is_read_alike_however_it_is_cut(text: str, data: st.DataObject) -> None:
    """And what is no call stays text, character by character."""
    options: dict[str, Any] = {"bare_json": True, "new_id": lambda: "id"}
    whole = events_of(TOOLS, "hermes", [text], **options)
    assert events_of(TOOLS, "hermes", data.draw(cuts(text)), **options) == whole
    assert events_of(TOOLS, "hermes", list(text), **options) == whole
    if not any(isinstance(event, CallEnd) for event in whole):
        assert whole == events_of(TOOLS, "hermes", [text])


@pytest.mark.parametrize("piece", ["\n", " ", "```", "```json\n{", '{"name": ', f"{_JSON}}}\n", "{", "[{", "\n`"])
def test_json_in_the_text_is_looked_for_in_linear_work(piece: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Four times the text is some four times the characters that are looked at."""
    from toolgrammar.tools.formats import bare_json

    done = 0
    opening, push = bare_json._opening, JsonScanner.push

    def counted_opening(held: str, *, fenced: bool) -> int | None:
        nonlocal done
        done += len(held)
        return opening(held, fenced=fenced)

    def counted_push(self: JsonScanner, text: str, position: int) -> int:
        nonlocal done
        end = push(self, text, position)
        done += end - position
        return end

    monkeypatch.setattr(bare_json, "_opening", counted_opening)
    monkeypatch.setattr(JsonScanner, "push", counted_push)

    def work(count: int) -> int:
        nonlocal done
        done = 0
        events_of(TOOLS, "hermes", [piece * (count // len(piece))], bare_json=True)
        return done

    assert work(8_192) <= 6 * work(2_048) + 2_000


def test_json_right_behind_a_call_is_a_call() -> None:
    """In its line, too; behind other text it is text."""
    assert read(f"{_JSON}}}{_JSON}}} {_JSON}}}", "hermes")[0] == [DALLAS] * 3
    assert read(f"{_JSON}}} or {_JSON}}}", "hermes")[0] == [DALLAS]


def test_strings_side_by_side_are_an_error_of_the_call() -> None:
    """They are no string that holds its own quotes."""
    for text, city in (("'a' 'b'", None), ("'a'\n'b'", None), ("'a's 'b''", "a's 'b'"), ("'O''Neil'", "O''Neil")):
        (call,) = TOOLS.parse(
            f"<|tool_call_start|>[get_weather(city={text}, state='TX')]<|tool_call_end|>", "lfm2"
        ).tool_calls
        assert bool(call.error) == (city is None)
        assert call.error or call.arguments["city"] == city


def test_json_with_two_sets_of_arguments_is_text() -> None:
    """Which are meant is not known."""
    text = f'{_JSON}, "parameters": {{"city": "Austin", "state": "TX"}}}}'
    assert read(text, "hermes") == ([], [], text)


@pytest.mark.parametrize("wire", ["gemma-4", "functiongemma"])
def test_the_strings_of_a_broken_call_are_part_of_it(wire: str) -> None:
    """None of it is text."""
    whole = get_format(wire).render("", [TOOLS.validate({"name": "get_weather", "arguments": DALLAS})])
    head, end = whole.split("{")[0], whole.rpartition("}")[2]
    quote = whole.partition("city:")[2].partition("Dallas")[0]
    message = TOOLS.parse(f"{head}{{city:{quote}a{quote} {quote}b{quote}}}{end}", wire)
    assert message.text == ""
    assert [bool(call.error) for call in message.tool_calls] == [True]
