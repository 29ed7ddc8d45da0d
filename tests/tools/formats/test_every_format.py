"""What holds in every format: rendering, grammar and streaming parser agree, on random tools, values and cuts."""

from __future__ import annotations

import itertools
import json
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from toolgrammar.core import ArgumentsDelta, CallEnd, CallStart, TextDelta, ToolCall, ToolGrammarError
from toolgrammar.tools import Tool, ToolSet
from toolgrammar.tools.formats import WireFormat, get_format
from toolgrammar.tools.formats.nested.calls import NestedCalls
from toolgrammar.tools.formats.template.format import TemplateFormat
from toolgrammar.tools.formats.xml.calls import XmlCalls

from ..strategies import TRICKY, cuts, texts
from .common import BREAKING, EVERY, byte_vocabulary, events_of, is_spelled, token_ids, turns

each_format = pytest.mark.parametrize("wire", EVERY.values(), ids=EVERY)
EDIT = Tool("edit", "", {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]})
TOOLS = ToolSet([EDIT, Tool("now", "", {}), Tool("no", "", {})])


def parallel(wire: WireFormat) -> bool:
    """Whether several calls may stand in a turn."""
    return wire.parallel if isinstance(wire, TemplateFormat) else True


def prose(wire: WireFormat) -> bool:
    """Whether text may stand before calls."""
    return wire.prose if isinstance(wire, TemplateFormat) else True


@each_format
@settings(max_examples=12, deadline=None)
@given(data=st.data())
def test_round_trip(wire: WireFormat, data: st.DataObject) -> None:
    """Rendered calls are in the grammar, and the parser returns the same calls, however the text is cut."""
    tools, calls = data.draw(turns(wire))
    assume(is_spelled(wire, calls))
    written = wire.render("", calls)
    assert tools.grammar(wire, tool_choice="required").matches(written)
    assert tools.grammar(wire).matches(written)
    whole = events_of(tools, wire, [written])
    ended = [event.call for event in whole if isinstance(event, CallEnd)]
    assert [(call.name, call.arguments, call.error) for call in ended] == [
        (call.name, call.arguments, None) for call in calls
    ]
    assert not any(isinstance(event, TextDelta) for event in whole)
    assert events_of(tools, wire, data.draw(cuts(written))) == whole
    for before, event in itertools.pairwise(whole):
        if isinstance(event, CallEnd):
            assert isinstance(before, ArgumentsDelta)
            assert before.text == event.call.raw


@each_format
def test_tricky_strings(wire: WireFormat) -> None:
    """Each string that a format can spell survives the finest cut; the others are refused, never written wrong."""
    grammar = TOOLS.grammar(wire, tool_choice="required")
    refused = 0
    for text in (*TRICKY, *BREAKING):
        call = ToolCall("c0", "edit", {"text": text})
        try:
            written = wire.render("", [call])
        except ToolGrammarError as error:
            assert "cannot express" in str(error)
            refused += 1
            continue
        assert grammar.matches(written), text
        whole = events_of(TOOLS, wire, [written])
        assert whole[-1] == CallEnd(0, ToolCall(whole[-1].call.id, "edit", {"text": text}, raw=whole[-1].call.raw))  # type: ignore[union-attr]
        if len(text) < 100:
            assert events_of(TOOLS, wire, list(written)) == whole
    assert refused < len((*TRICKY, *BREAKING)) / 4


@each_format
@settings(max_examples=8, deadline=None)
@given(data=st.data())
def test_text(wire: WireFormat, data: st.DataObject) -> None:
    """A text that the grammar admits comes back as text; before calls too, where the format has that."""
    text = data.draw(st.one_of(texts, st.sampled_from(["Hello.", "a [b] c", "x(y=1)", "all\nfine", ">"])))
    written = wire.render(text, [])
    assume(TOOLS.grammar(wire).matches(written))
    assert TOOLS.parse(written, wire).text == text
    assert not TOOLS.parse(written, wire).tool_calls
    if prose(wire):
        both = wire.render(text, [ToolCall("c0", "now", {})])
        joint = getattr(wire, "joint", "\n")
        assume(TOOLS.grammar(wire).matches(both) and not (joint and text.endswith(joint)))
        message = TOOLS.parse(both, wire)
        assert (message.text, len(message.tool_calls)) == (text, 1)


@each_format
def test_json_answers_hold_any_marker(wire: WireFormat) -> None:
    """Beside tools, strings of a JSON answer may spell every marker of the format: they are read back as they are."""
    assert isinstance(wire, TemplateFormat)
    schema = {"type": "object", "properties": {"a": {"type": "string"}}}
    for marker in {*wire.markers, *wire.frames, *wire.special, *wire.end_tokens, *wire.triggers}:
        answer = json.dumps({"a": f"x {marker} y"}, ensure_ascii=False)
        written = wire.render(answer, [])
        whole = events_of(TOOLS, wire, [written], response_schema=schema)
        assert whole == [TextDelta(answer)]
        assert events_of(TOOLS, wire, list(written), response_schema=schema) == whole


@each_format
def test_choices(wire: WireFormat) -> None:
    """Required, named and none allow what they say and nothing else; arguments are those of the tool."""
    now, no = (wire.render("", [ToolCall("c0", name, {})]) for name in ("now", "no"))
    text = wire.render("Hello.", [])
    assert not TOOLS.grammar(wire, tool_choice="required").matches(text)
    assert TOOLS.grammar(wire, tool_choice="none").matches(text)
    assert not TOOLS.grammar(wire, tool_choice="none").matches(now)
    named = TOOLS.grammar(wire, tool_choice="no")
    assert named.matches(no)
    assert not named.matches(now)
    wrong: tuple[dict[str, Any], ...] = ({"text": 5}, {}, {"text": "x", "y": 1})
    for arguments in wrong:
        written = wire.render("", [ToolCall("c0", "edit", arguments)])
        if wire.name not in RAW or arguments != {"text": 5}:
            assert not TOOLS.grammar(wire, tool_choice="required").matches(written), arguments
    if parallel(wire):
        two = wire.render("", [ToolCall("c0", "now", {}), ToolCall("c1", "no", {})])
        assert TOOLS.grammar(wire).matches(two)
        assert not TOOLS.grammar(wire, parallel=False).matches(two)


#: In these, ``5`` is a way to write the string.
RAW = tuple(
    name
    for name, wire in EVERY.items()
    if isinstance(wire, NestedCalls) or (isinstance(wire, XmlCalls) and wire.arguments.after_name_raw is None)
)


@each_format
@settings(max_examples=15, deadline=None)
@given(data=st.data())
def test_noise(wire: WireFormat, data: st.DataObject) -> None:
    """Malformed turns: nothing is raised, and the events are the same however the text is cut."""
    turn = wire.render("", [ToolCall("c0", "edit", {"text": "a'b"})])
    at = sorted(data.draw(st.lists(st.integers(0, len(turn)), max_size=4)))
    pieces = [turn[a:b] for a, b in itertools.pairwise([0, *at, len(turn)])]
    marks = [getattr(wire, each, ()) for each in ("triggers", "special", "openers", "frames", "end_tokens")]
    pieces += [mark for group in marks for mark in group if mark]
    pieces += ["{", "}", '"', "'", "[", "]", ",", "(", ")", "=", "x", " ", "\n", "\\", "all"]
    text = "".join(data.draw(st.lists(st.sampled_from(pieces), max_size=8)))
    whole = events_of(TOOLS, wire, [text])
    assert events_of(TOOLS, wire, data.draw(cuts(text))) == whole
    assert events_of(TOOLS, wire, list(text)) == whole


@each_format
@settings(max_examples=8, deadline=None)
@given(data=st.data())
def test_a_cut_text_keeps_the_whole_calls(wire: WireFormat, data: st.DataObject) -> None:
    """Wherever a turn is cut, each call is one of the turn's, or (the last alone) says that the text ends inside."""
    calls = [ToolCall("c0", "edit", {"text": text}) for text in ("a'b", "x")][: 2 if parallel(wire) else 1]
    turn = wire.render("", calls)
    message = TOOLS.parse(turn[: data.draw(st.integers(0, len(turn)))], wire)
    read = [(call.name, dict(call.arguments)) for call in message.tool_calls if call.error is None]
    assert read == [(call.name, dict(call.arguments)) for call in calls[: len(read)]]
    faults = [call.fault for call in message.tool_calls]
    assert all(fault is None for fault in faults[:-1])
    for call in message.tool_calls[-1:]:
        assert call.fault == (None if call.error is None else "unfinished")


#: Answers that begin as the calls of some format do, and are none.
ANSWERS = (
    '{"capital": "Paris"}',
    "{}",
    '{"a": 1} is a dict',
    '{"name": "Ada", "age": 36}',
    '{"name": 5}',
    '{"a": 1',
    "{not json}",
    "[]",
    "[1, 2]",
    "[ ] do it",
    '[{"capital": "Paris"}, {"capital": "Oslo"}] are',
    '[{"a": 1',
    "[Note] hi",
    "[f(x) for x in y]",
    "```python\nprint(1)\n```",
    '```json\n{"a": 1}\n```',
)


@each_format
def test_an_answer_that_holds_no_call_is_text(wire: WireFormat) -> None:
    """Also where calls have no marker, and however the text is cut; white space before it is kept."""
    for text in (before + answer for answer in ANSWERS for before in ("", "\n ")):
        assert events_of(TOOLS, wire, [text]) == [TextDelta(text)]
        assert events_of(TOOLS, wire, list(text)) == [TextDelta(text)]


CONTROLLED = [name for name in EVERY if getattr(get_format(name), "special", ())]


@pytest.mark.parametrize("name", CONTROLLED)
def test_control_tokens(name: str) -> None:
    """A marker that is a control token is accepted as the token, and never as the text that spells it."""
    wire = get_format(name)
    assert isinstance(wire, TemplateFormat)
    vocabulary = byte_vocabulary(wire.special)
    written = wire.render("", [ToolCall("c0", "edit", {"text": "Zürich"})])
    constraint = TOOLS.grammar(wire, tool_choice="required").bind(vocabulary)
    matcher = constraint.matcher()
    assert all(matcher.accept(token_id) for token_id in token_ids(written, vocabulary))
    assert matcher.is_accepting
    plain = constraint.matcher()
    assert not all(plain.accept(byte) for byte in written.encode())


@each_format
def test_a_call_is_announced_first(wire: WireFormat) -> None:
    """The name of a call is known before its arguments are whole, unless its id comes behind them."""
    written = wire.render("", [ToolCall("c0", "edit", {"text": "x" * 50})])
    parser = TOOLS.parser(wire)
    events = parser.feed(written[: written.index("x" * 50) + 5])
    if wire.name in ("mistral-v3", "mistral-v7"):
        assert events == []
        events = parser.feed(written[written.index("x" * 50) + 5 :])
    assert isinstance(events[0], CallStart)
    assert events[0].name == "edit"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("llama-4", "<|python_start|>[edit(text='x')]<|python_end|>"),
        ("llama-4", '[ edit( text = "x" , ), ]'),
        ("pythonic", "```python\n[edit(text='x')]\n```"),
        ("lfm2", "<|tool_call_start|>edit(text='\\x78')<|tool_call_end|>"),
        ("olmo-3", '<function_calls>edit(text="x")</function_calls>'),
        ("gemma-4", '<|tool_call>call:edit{"text": "x"}<tool_call|>'),
        ("functiongemma", "<start_function_call>call: edit {text:<escape>x<escape>}"),
        ("functionary-v3.2", '>>>edit\n{"text": "x"}'),
    ],
)
def test_what_models_stray_into(name: str, text: str) -> None:
    """Calls that nobody held are read as what they mean, however they are cut."""
    wire = EVERY[name]
    for pieces in ([text], list(text)):
        ended = [event.call for event in events_of(TOOLS, wire, pieces) if isinstance(event, CallEnd)]
        assert [(call.name, call.arguments, call.error) for call in ended] == [("edit", {"text": "x"}, None)]
