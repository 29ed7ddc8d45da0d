"""Streaming parsers under hostile text: the work stays linear, and nothing is raised."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from toolgrammar.core import CallEnd, TextDelta, ToolCall, ToolGrammarError
from toolgrammar.tools import Tool, ToolSet
from toolgrammar.tools.formats import WireFormat
from toolgrammar.tools.formats.stream import MarkerSearch, TextBuffer

from .common import EVERY, events_of

each_format = pytest.mark.parametrize("wire", EVERY.values(), ids=EVERY)
EDIT = Tool(
    "edit",
    "",
    {"type": "object", "properties": {"text": {"type": "string"}, "size": {"type": "number"}, "any": {}}},
)
TOOLS = ToolSet([EDIT])
ARGUMENTS = {"text": "ab", "size": 12, "any": [1]}


def beginnings(wire: WireFormat) -> Iterator[str]:
    """A turn, cut before the markup, inside it, and inside each kind of value."""
    turn = wire.render("", [ToolCall("c0", "edit", ARGUMENTS)])
    yield ""
    for place in ("edit", "ab", "12", "[1" if "[1" in turn else ">1"):  # a bracket, or a tag
        at = turn.index(place)
        yield turn[: at + 1]
        yield turn[: at + len(place)]


def fillers(wire: WireFormat) -> Iterator[str]:
    """What the rest of the text may be made of: white space, digits, quotes, brackets, marks and halves of marks."""
    yield from (" ", "\n", "x", "7", '"', "'", "\\", "[", "{", "(", "<", ',"')
    for name in ("triggers", "openers", "call_ends", "special", "start", "end", "parameter_end"):
        found = getattr(wire, name, ())
        for mark in (found,) if isinstance(found, str) else found[:3]:
            yield from filter(None, (mark, mark[:-1]))


class Work:
    """Counts the characters that parsers copy and search."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.done = 0
        load, unread, search = TextBuffer.load, TextBuffer.unread, MarkerSearch.search

        def counted_load(buffer: TextBuffer) -> None:
            self.done += buffer._size
            load(buffer)

        def counted_unread(buffer: TextBuffer, piece: str) -> None:
            self.done += len(piece)
            unread(buffer, piece)

        def counted_search(marks: MarkerSearch, text: str, position: int, *, final: bool) -> tuple[int, str]:
            end, mark = search(marks, text, position, final=final)
            self.done += end - position
            return end, mark

        monkeypatch.setattr(TextBuffer, "load", counted_load)
        monkeypatch.setattr(TextBuffer, "unread", counted_unread)
        monkeypatch.setattr(MarkerSearch, "search", counted_search)

    def of(self, wire: WireFormat, text: str, size: int) -> int:
        """The work for one text in pieces of a size."""
        self.done = 0
        parser = TOOLS.parser(wire)
        for at in range(0, len(text), size):
            parser.feed(text[at : at + size])
        parser.close()
        return self.done


def check_linear(wire: WireFormat, work: Work, beginning: str, filler: str) -> None:
    """Four times the text is at most some four times the work, in small pieces and in one."""
    short, long = (beginning + filler * (count // len(filler)) for count in (1_024, 4_096))
    for size in (4, len(long)):
        less, more = work.of(wire, short, size), work.of(wire, long, size)
        assert more <= 6 * less + 2_000, (beginning, filler, size)


@pytest.mark.parametrize(("number", "name"), [*enumerate(EVERY)])
def test_work_is_linear(number: int, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Reading is linear in the text, whatever stands in it: in every format, each at another place."""
    work = Work(monkeypatch)
    for beginning in [*beginnings(EVERY[name])][number % 8 :: 8]:
        for filler in dict.fromkeys(fillers(EVERY[name])):
            check_linear(EVERY[name], work, beginning, filler)


@pytest.mark.slow
@each_format
def test_work_is_linear_everywhere(wire: WireFormat, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same in every format, at every place."""
    work = Work(monkeypatch)
    for beginning in beginnings(wire):
        for filler in dict.fromkeys(fillers(wire)):
            check_linear(wire, work, beginning, filler)


DEEP = 3_000
HOSTILE = (
    "[" * DEEP + "]" * DEEP,
    '{"a":' * DEEP + "1" + "}" * DEEP,
    "{a:" * DEEP,
    "[" * 190 + "]" * 190,
    "7" * 6_000,
    "-" * 5_000,
    "1e999",
    "NaN",
    "-Infinity",
    '"\\ud800"',
    '"\ud800"',
    '{"a":1,"a":2}',
    "0x10",
    "b'a'",
    "{1: 2}",
    "\x00",
    "'\\N{DASH}'",
    '"\\',
)


@pytest.mark.parametrize(("number", "name"), [*enumerate(EVERY)])
def test_only_our_errors(number: int, name: str, thorough: bool) -> None:
    """Whatever stands where a value should, parsing raises nothing, however the text is cut: in each format at one of
    three places, and with ``--slow`` at each."""
    wire, places = EVERY[name], ("ab", "12", "[1]")
    turn = wire.render("", [ToolCall("c0", "edit", ARGUMENTS)])
    met = [
        (hostile, place)
        for at, hostile in enumerate(HOSTILE)
        for place in places
        if thorough or place == places[(number + at) % 3]
    ]
    for hostile, place in met:
        text = turn.replace(place, hostile, 1)
        whole = events_of(TOOLS, wire, [text])
        assert whole == events_of(TOOLS, wire, [text[at : at + 7] for at in range(0, len(text), 7)]), (place, hostile)


@pytest.mark.parametrize("name", ["hermes", "gemma-4", "glm-4.5", "harmony"])
@pytest.mark.parametrize("hostile", HOSTILE, ids=lambda text: repr(text[:8]))
def test_repair_raises_nothing(name: str, hostile: str) -> None:
    """What cannot be repaired either stays a call with an error."""
    turn = EVERY[name].render("", [ToolCall("c0", "edit", ARGUMENTS)])
    for place in ("ab", "[1]"):
        message = TOOLS.parse(turn.replace(place, hostile, 1), EVERY[name], repair=True)
        assert all(call.error is not None or TOOLS.validate(call) for call in message.tool_calls)


@each_format
def test_long_names(wire: WireFormat) -> None:
    """Names and keys of any length come back, in small pieces too."""
    name, key = "n" * 256, "k" * 3_000
    tools = ToolSet([Tool(name, "", {"type": "object", "properties": {key: {"type": "integer"}}})])
    call = ToolCall("c0", name, {key: 5})
    if wire.name.startswith("mistral-"):  # its templates take names of 64 characters
        with pytest.raises(ToolGrammarError, match="cannot express the tool name"):
            wire.render("", [call])
        return
    text = wire.render("", [call])
    ended = [
        event.call
        for event in events_of(tools, wire, [text[at : at + 4] for at in range(0, len(text), 4)])
        if isinstance(event, CallEnd)
    ]
    assert [(call.name, call.arguments, call.error) for call in ended] == [(name, {key: 5}, None)]


@pytest.mark.parametrize(
    "call",
    [
        *(None, "x", 5, [], {"name": None}, {"type": "function", "function": None}),
        {"name": "edit", "arguments": "[" * 100_000},
        {"name": "edit", "arguments": '{"size": NaN}'},
        {"function": {"name": "edit", "arguments": 5}},
        ToolCall("c0", "edit", None),  # type: ignore[arg-type]
        ToolCall("c0", "edit", [1]),  # type: ignore[arg-type]
        ToolCall("c0", None, {}),  # type: ignore[arg-type]
    ],
    ids=lambda call: repr(call)[:40],
)
def test_calls_that_are_none(call: Any) -> None:
    """What is no call ends in an error of ours, in `call`, `validate` and `execute`."""
    with pytest.raises(ToolGrammarError):
        TOOLS.call(call)
    with pytest.raises(ToolGrammarError):
        TOOLS.validate(call)
    assert TOOLS.execute(call).is_error


def test_text_between_calls_does_not_depend_on_cuts() -> None:
    """The line break before a call belongs to the markup, also after an earlier call."""
    text = '<tool_call>{"name": "edit"}</tool_call>\n so\n<tool_call>{"name": "edit"}</tool_call>'
    for pieces in ([text], list(text)):
        events = events_of(TOOLS, EVERY["hermes"], pieces)
        assert [event.text for event in events if isinstance(event, TextDelta)] == ["\n so"]


def test_marks() -> None:
    """The leftmost mark wins, of two at one place the longer, and what may begin one is held back."""
    marks = MarkerSearch(("<a>", "<a><b>", "ab"))
    assert marks.search("x<a>y", 0, final=False) == (1, "<a>")
    assert marks.search("x<a><", 0, final=False) == (1, "")
    assert marks.search("x<a><", 0, final=True) == (1, "<a>")
    assert marks.search("x<a><b>", 0, final=False) == (1, "<a><b>")
    assert marks.search("xa", 0, final=False) == (1, "")
    assert marks.search("xa", 0, final=True) == (2, "")
    assert MarkerSearch(()).search("anything", 0, final=False) == (8, "")


@pytest.mark.parametrize("wire", ["minimax-m3", "qwen3-coder"])
def test_arguments_with_too_many_alternatives_are_read(wire: str) -> None:
    """Their types are unknown then: reading raises nothing, and looks at few of them."""
    either = {
        letter: {
            "anyOf": [
                {"type": "object", "properties": {f"{letter}{n}": {}}, "required": [f"{letter}{n}"]} for n in range(6)
            ]
        }
        for letter in "abcdefg"
    }
    tools = ToolSet([Tool("f", "", {"type": "object", "patternProperties": either, "additionalProperties": True})])
    mark = "]<]minimax[>["
    for names in (["abcdefg"], ["z", "abcdefg", "y"], [f"abcdefg{number}" for number in range(40)]):
        if wire == "minimax-m3":
            inside = "".join(f"{mark}<{name}>{mark}<item>1{mark}</item>{mark}</{name}>" for name in names)
            text = f'{mark}<tool_call>\n{mark}<invoke name="f">{inside}{mark}</invoke>\n{mark}</tool_call>'
        else:
            inside = "".join(f"<parameter={name}>\n1\n</parameter>\n" for name in names)
            text = f"<tool_call>\n<function=f>\n{inside}</function>\n</tool_call>"
        (call,) = tools.parse(text, wire).tool_calls
        assert call.name == "f"
        assert call.error is None or "do not match the schema" in call.error


@pytest.mark.parametrize(
    ("wire", "text"),
    [
        ("functionary-v3.2", ' f\n{"a": 1}>>>all\n\n'),
        ("functionary-v3.2", '\nf\n{"a" 1}'),
        ("apertus", '<|tools_prefix|>[{"f<|tools_prefix|>": {"a": 1}}]<|tools_suffix|>'),
    ],
)
def test_the_head_of_a_call_is_read_alike_however_it_is_cut(wire: str, text: str) -> None:
    """White space before it, and a mark inside of its name."""
    tools = ToolSet([Tool("f", "", {"type": "object", "properties": {"a": {"type": "integer"}}})])
    options: dict[str, Any] = {"new_id": lambda: "id"}
    assert events_of(tools, wire, list(text), **options) == events_of(tools, wire, [text], **options)
