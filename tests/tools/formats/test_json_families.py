"""The families whose calls are JSON: rendering, grammar and streaming parser agree in each."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Sequence

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from toolgrammar.core import (
    ArgumentsDelta,
    CallEnd,
    CallStart,
    Event,
    Message,
    ReasoningDelta,
    TextDelta,
    ToolCall,
    ToolGrammarError,
    Vocabulary,
)
from toolgrammar.tools import Tool, ToolSet, get_format
from toolgrammar.tools.formats.families import FAMILIES
from toolgrammar.tools.formats.harmony import Channels
from toolgrammar.tools.formats.template.format import TemplateFormat

from ..strategies import TRICKY, cuts, objects, texts

JSON_FAMILIES = [wire for wire in FAMILIES if type(wire) in (TemplateFormat, Channels)]
PLAIN = {wire.name: wire.with_special(()) for wire in JSON_FAMILIES}
each_family = pytest.mark.parametrize("family", PLAIN.values(), ids=PLAIN)
WEATHER = Tool("get_weather", "", {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]})
TOOLS = ToolSet([WEATHER, Tool("now", "", {}), Tool("get", "", {})])


def events_of(tools: ToolSet, family: TemplateFormat, pieces: Iterable[str]) -> list[Event]:
    """What the parser says, neighbouring deltas of one kind joined."""
    numbers = itertools.count()
    parser = tools.parser(family, new_id=lambda: f"c{next(numbers)}")
    events = [event for piece in pieces for event in parser.feed(piece)] + list(parser.close())
    joined: list[Event] = []
    for event in events:
        last = joined[-1] if joined else None
        if isinstance(event, (TextDelta, ReasoningDelta)) and type(last) is type(event):
            joined[-1] = type(event)(last.text + event.text)  # type: ignore[union-attr]
        elif isinstance(event, ArgumentsDelta) and isinstance(last, ArgumentsDelta):
            joined[-1] = ArgumentsDelta(event.index, last.text + event.text)
        else:
            joined.append(event)
    return joined


@st.composite
def turns(draw: st.DrawFn, family: TemplateFormat) -> tuple[ToolSet, list[ToolCall]]:
    """Tools whose names the family can spell, and one to five calls of them (one, where it writes one)."""
    pool = ["get", "get_all", "get_al", "a-b", "x", "Tool_9"]
    tools, examples = [], []
    for name in draw(st.lists(st.sampled_from(pool), min_size=1, max_size=3, unique=True)):
        schema, instance = draw(objects())
        tools.append(Tool(name, "", schema))
        examples.append((name, instance))
    pairs = draw(st.lists(st.sampled_from(examples), min_size=1, max_size=5 if family.parallel else 1))
    return ToolSet(tools), [ToolCall(f"c{i}", name, arguments) for i, (name, arguments) in enumerate(pairs)]


@each_family
@settings(max_examples=4, deadline=None)
@given(data=st.data())
def test_round_trip(family: TemplateFormat, data: st.DataObject) -> None:
    """Rendered calls are in the grammar, and the parser returns the same calls, however the text is cut."""
    tools, calls = data.draw(turns(family))
    written = family.render("", calls)
    assert tools.grammar(family, tool_choice="required").matches(written)
    assert tools.grammar(family).matches(written)
    whole = events_of(tools, family, [written])
    ended = [event.call for event in whole if isinstance(event, CallEnd)]
    assert [(call.name, call.arguments, call.error) for call in ended] == [
        (call.name, call.arguments, None) for call in calls
    ]
    assert not any(isinstance(event, TextDelta) for event in whole)
    assert events_of(tools, family, data.draw(cuts(written))) == whole
    for index, event in enumerate(whole):
        if isinstance(event, CallEnd):
            delta = whole[index - 1]
            assert isinstance(delta, ArgumentsDelta)
            assert delta.text == event.call.raw


@each_family
def test_character_by_character(family: TemplateFormat) -> None:
    """Tricky strings survive the finest cut."""
    for city in TRICKY[:-1]:
        written = family.render("", [ToolCall("c0", "get_weather", {"city": city})])
        assert events_of(TOOLS, family, list(written)) == events_of(TOOLS, family, [written])
        assert TOOLS.parse(written, family).tool_calls[0].arguments == {"city": city}


@each_family
@settings(max_examples=6, deadline=None)
@given(data=st.data())
def test_text(family: TemplateFormat, data: st.DataObject) -> None:
    """A text that the grammar admits comes back as text; before calls too, where the family has that."""
    text = data.draw(texts)
    written = family.render(text, [])
    assume(TOOLS.grammar(family).matches(written))
    assert TOOLS.parse(written, family).text == text
    assert not TOOLS.parse(written, family).tool_calls
    if family.prose:
        both = family.render(text, [ToolCall("c0", "now", {})])
        assume(not (family.joint and text.endswith(family.joint)))
        message = TOOLS.parse(both, family)
        assert TOOLS.grammar(family).matches(both)
        assert (message.text, len(message.tool_calls)) == (text, 1)
    else:
        with pytest.raises(ToolGrammarError, match="not both"):
            family.render("x", [ToolCall("c0", "now", {})])


@each_family
@settings(max_examples=8, deadline=None)
@given(data=st.data())
def test_noise(family: TemplateFormat, data: st.DataObject) -> None:
    """Malformed turns: nothing is raised, and the events are the same however the text is cut."""
    marks = [*family.triggers, *family.special, *family.openers, *family.frames, *family.end_tokens]
    body = re.split(r"(\W)", family.render("", [ToolCall("c0", "now", {})]))
    pieces = [each for each in (*marks, *body, "{", "}", '"', "[", "]", ",", "x", " ") if each]
    text = "".join(data.draw(st.lists(st.sampled_from(pieces), max_size=12)))
    whole = events_of(TOOLS, family, [text])
    assert events_of(TOOLS, family, data.draw(cuts(text))) == whole
    assert events_of(TOOLS, family, list(text)) == whole


@each_family
def test_choices(family: TemplateFormat) -> None:
    """Required, named and none allow what they say and nothing else."""
    now = family.render("", [ToolCall("c0", "now", {})])
    get = family.render("", [ToolCall("c0", "get", {})])
    text = family.render("Hello.", [])
    assert not TOOLS.grammar(family, tool_choice="required").matches(text)
    assert TOOLS.grammar(family, tool_choice="none").matches(text)
    named = TOOLS.grammar(family, tool_choice="get")
    assert named.matches(get)
    assert not named.matches(now)
    wrong = family.render("", [ToolCall("c0", "get_weather", {"city": 5})])
    assert not TOOLS.grammar(family).matches(wrong)
    if family.parallel:
        two = family.render("", [ToolCall("c0", "now", {}), ToolCall("c1", "get", {})])
        assert TOOLS.grammar(family).matches(two)
        assert not TOOLS.grammar(family, parallel=False).matches(two)
    else:
        with pytest.raises(ToolGrammarError, match="one call"):
            family.render("", [ToolCall("c0", "now", {}), ToolCall("c1", "get", {})])


def byte_vocabulary(special: Sequence[str]) -> Vocabulary:
    """256 bytes, the control tokens, and an end."""
    tokens = [bytes([byte]) for byte in range(256)] + [None] * (len(special) + 1)
    return Vocabulary(tokens, eos=[len(tokens) - 1], special={name: 256 + i for i, name in enumerate(special)})


SPECIAL = [each for each in JSON_FAMILIES if each.special]


@pytest.mark.parametrize("family", SPECIAL, ids=[each.name for each in SPECIAL])
def test_control_tokens(family: TemplateFormat) -> None:
    """A marker that is a control token is accepted as the token, and never as the text that spells it."""
    vocabulary = byte_vocabulary(family.special)
    written = family.render("", [ToolCall("c0", "get_weather", {"city": "Zürich"})])
    constraint = TOOLS.grammar(family, tool_choice="required").bind(vocabulary)
    matcher = constraint.matcher()
    words = sorted(family.special, key=len, reverse=True)
    for piece in re.split("(" + "|".join(map(re.escape, words)) + ")", written):
        ids = [vocabulary.special[piece]] if piece in family.special else list(piece.encode())
        assert all(matcher.accept(token_id) for token_id in ids), piece
    assert matcher.is_accepting
    plain = constraint.matcher()
    assert not all(plain.accept(byte) for byte in written.encode())


@pytest.mark.parametrize(
    ("name", "text", "city"),
    [
        ("mistral-v13", "[TOOL_CALLS]get_weather [ARGS] {\"city\": \"x\"}", "x"),
        ("mistral-v3", '[TOOL_CALLS] [{"arguments": {"city": "x"}, "name": "get_weather"}]', "x"),
        ("kimi-k2", '<|tool_call_section_begin|><|tool_call_begin|>get_weather:0<|tool_call_argument_begin|>{"city":"x"}',
         "x"),
        ("harmony", '<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant<|channel|>commentary'
         ' to=functions.get_weather json<|message|>{"city":"x"}<|call|>', "x"),
        ("harmony", ' to=functions.get_weather<|channel|>commentary json<|message|>{"city":"x"}', "x"),
        ("llama-json", '```json\n', None),
        ("llama-json", '{"type": "function", "name": "get_weather", "parameters": {"city": "x"}}', "x"),
        ("granite-3", '<|tool_call|> [{"name": "get_weather", "arguments": {"city": "x"}}]', "x"),
        ("phi-4-mini", 'functools[{"name": "get_weather", "arguments": {"city": "x"}}]', "x"),
        ("internlm-2", '<|action_start|> <|plugin|>\n{"name": "get_weather", "arguments": {"city": "x"}}', "x"),
    ],
)  # fmt: skip
def test_observed_variants(name: str, text: str, city: str | None) -> None:
    """What models write without a grammar is read as the same call."""
    message = TOOLS.parse(text, PLAIN[name])
    assert [call.error for call in message.tool_calls] == ([] if city is None else [None])
    assert [call.arguments for call in message.tool_calls] == ([] if city is None else [{"city": city}])


def test_reasoning_stands_apart() -> None:
    """What stands between the markers of reasoning is no text."""
    events = events_of(TOOLS, PLAIN["deepseek-v3.1"], ["<thi", "nk>Hm", "m.</thin", "k>Hello"])
    assert events == [ReasoningDelta("Hmm."), TextDelta("Hello")]


def test_wire_ids() -> None:
    """Ids that stand on the wire are those of the calls, and are written back as they were."""
    text = (
        "<|tool_calls_section_begin|><|tool_call_begin|>functions.now:7<|tool_call_argument_begin|>{}<|tool_call_end|>"
    )
    (call,) = TOOLS.parse(text, "kimi-k2").tool_calls
    assert call.id == "functions.now:7"
    assert "functions.now:7<" in get_format("kimi-k2").render_calls([call])
    assert re.fullmatch(
        r'\[TOOL_CALLS\]\[\{"name": "now", "arguments": \{\}, "id": "[A-Za-z0-9]{9}"\}\]',
        get_format("mistral-v3").render_calls([ToolCall("x_1", "now", {})]),
    )


def test_names_that_cannot_be_spelled() -> None:
    """A tool whose name would break the markup is refused by name, not written wrong."""
    tools = ToolSet([Tool("a b", "", {})])
    for name in ("mistral-v13", "kimi-k2", "functionary-v3.1", "deepseek-v3"):
        with pytest.raises(ToolGrammarError, match="cannot express the tool name 'a b'"):
            tools.grammar(name)


def test_a_json_answer_beside_bare_calls() -> None:
    """Bare JSON cannot be told from a JSON answer, and says so; markers can."""
    with pytest.raises(ToolGrammarError, match="cannot distinguish"):
        TOOLS.grammar("llama-json", response_schema={"type": "object"})
    family = PLAIN["nemotron-2"]
    grammar = TOOLS.grammar(family, response_schema={"type": "array", "items": {"type": "string"}})
    assert grammar.matches('["<TOOLCALL>"]')
    message = TOOLS.parse('["<TOOLCALL>"]', family, response_schema={})
    assert (message.text, message.tool_calls) == ('["<TOOLCALL>"]', ())
    assert grammar.matches(family.render("", [ToolCall("c", "now", {})]))


def test_an_empty_list_is_no_call() -> None:
    """Where a family writes an empty list of calls, it is a turn without a call, and not allowed where one is asked."""
    family = PLAIN["needle"]
    for text in (family.no_calls, f"\n{family.no_calls}"):
        assert TOOLS.grammar(family).matches(text)
        assert events_of(TOOLS, family, text) == []
        assert not TOOLS.grammar(family, tool_choice="required").matches(text)
        assert not TOOLS.grammar(family, tool_choice="none").matches(text)
        assert not TOOLS.grammar(family, response_schema={"type": "object"}).matches(text)


def test_results() -> None:
    """Results are rendered as the families' templates do."""
    message = Message("tool", "12 °C", tool_call_id="AbCdEf123", name="get_weather")
    assert get_format("mistral-v13").render_result(message) == "[TOOL_RESULTS]12 °C[/TOOL_RESULTS]"
    assert get_format("mistral-v7").render_result(message) == (
        "[TOOL_RESULTS]AbCdEf123[TOOL_CONTENT]12 °C[/TOOL_RESULTS]"
    )


def test_start_comes_first() -> None:
    """A call is announced before its arguments are whole."""
    parser = TOOLS.parser("mistral-v13")
    events = parser.feed('[TOOL_CALLS]get_weather[ARGS]{"city": "Z')
    assert isinstance(events[0], CallStart)
    assert events[1:] == [ArgumentsDelta(0, '{"city": "Z')]


def test_a_broken_call_is_not_lost() -> None:
    """What is no JSON is a call with an error and the text as written, and later calls are read."""
    text = '[TOOL_CALLS]now[ARGS]{"a": nope}[TOOL_CALLS]now[ARGS]{}'
    first, second = TOOLS.parse(text, PLAIN["mistral-v13"]).tool_calls
    assert first.error is not None
    assert "nope" in (first.raw or "")
    assert second.error is None


@pytest.mark.parametrize("name", ["mistral-v3", "mistral-v7"])
def test_the_id_that_the_model_wrote_is_the_calls(name: str) -> None:
    """It stands behind the arguments, so the stream says nothing of a call before it is read."""
    tools = ToolSet([Tool("f", "", {"type": "object", "properties": {"n": {"type": "integer"}}})])
    text = '[TOOL_CALLS][{"name": "f", "arguments": {"n": 1}, "id": "8wJQpPY1l"}, {"name": "f", "arguments": {}}]'
    parser = tools.parser(name, new_id=lambda: "made")
    events = [event for char in text for event in parser.feed(char)] + parser.close()
    starts = [event.id for event in events if isinstance(event, CallStart)]
    ends = [event.call for event in events if isinstance(event, CallEnd)]
    assert starts == [call.id for call in ends] == ["8wJQpPY1l", "made"]
    assert [dict(call.arguments) for call in ends] == [{"n": 1}, {}]
    assert '"id": "8wJQpPY1l"' in get_format(name).render_calls(ends[:1])
