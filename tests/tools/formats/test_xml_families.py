"""The families with one tag per argument: rendering, grammar and streaming parser agree; schemas hold on raw text."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toolgrammar.core import CallEnd, TextDelta, ToolCall, ToolGrammarError, UnsupportedSchemaError
from toolgrammar.tools import Tool, ToolSet
from toolgrammar.tools.formats.xml_calls import XmlCalls
from toolgrammar.tools.formats.xml_families import XML_FAMILIES

from ..strategies import TRICKY, cuts, texts

FAMILIES = {each.name: each.with_special(()) for each in XML_FAMILIES}
each_family = pytest.mark.parametrize("family", FAMILIES.values(), ids=FAMILIES)
LIST = {"type": "array", "items": {"type": "string"}}
TOOL = Tool(
    "edit.file",
    "",
    {
        "type": "object",
        "properties": {
            "text": {"type": "string"},
            "lines": {"type": "integer"},
            "words": LIST,
            "deep": {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]},
            "on": {"type": "boolean"},
        },
        "required": ["text"],
    },
)
TOOLS = ToolSet([TOOL, Tool("now", "", {}), Tool("no", "", {})])


def events_of(family: XmlCalls, pieces: list[str]) -> list[Any]:
    """What the parser says, text joined."""
    parser = TOOLS.parser(family, new_id=lambda: "c")
    events = [event for piece in pieces for event in parser.feed(piece)] + list(parser.close())
    text = "".join(event.text for event in events if isinstance(event, TextDelta))
    return [text, *(event for event in events if not isinstance(event, TextDelta))]


@st.composite
def calls(draw: st.DrawFn, family: XmlCalls) -> list[ToolCall]:
    """One to five calls whose arguments the family can spell."""
    spelled = texts.filter(lambda text: family.parameter_end not in text)
    optional = {
        "lines": st.integers(-(10**15), 10**15),
        "words": st.lists(st.one_of(texts, st.just(family.parameter_end)), max_size=3),
        "deep": st.fixed_dictionaries({"a": texts}),
        "on": st.booleans(),
    }
    arguments = st.builds(
        lambda text, more: {"text": text, **{key: more[key] for key in optional if key in more}},
        spelled,
        st.fixed_dictionaries({}, optional=optional),
    )
    edit = st.builds(lambda given: ToolCall("c", "edit.file", given), arguments)
    return draw(st.lists(st.one_of(edit, st.just(ToolCall("c", "now", {}))), min_size=1, max_size=5))


@each_family
@settings(max_examples=15, deadline=None)
@given(data=st.data())
def test_round_trip(family: XmlCalls, data: st.DataObject) -> None:
    """Rendered calls are in the grammar, and the parser returns them, however the text is cut."""
    wanted = data.draw(calls(family))
    written = family.render("Sure.", wanted)
    assert TOOLS.grammar(family).matches(written)
    assert TOOLS.grammar(family, tool_choice="required").matches(family.render("", wanted))
    whole = events_of(family, [written])
    ended = [event.call for event in whole if isinstance(event, CallEnd)]
    assert [(call.name, call.arguments, call.error) for call in ended] == [
        (call.name, call.arguments, None) for call in wanted
    ]
    assert whole[0] == "Sure."
    assert events_of(family, data.draw(cuts(written))) == whole


@each_family
@pytest.mark.parametrize("text", TRICKY[:-1])
def test_character_by_character(family: XmlCalls, text: str) -> None:
    """Tricky strings survive the finest cut."""
    written = family.render("", [ToolCall("c", "edit.file", {"text": text})])
    assert events_of(family, list(written)) == events_of(family, [written])
    assert TOOLS.parse(written, family).tool_calls[0].arguments == {"text": text}


@each_family
def test_schemas_hold_on_the_decoded_value(family: XmlCalls) -> None:
    """Lengths, patterns and lists of values hold on raw strings; types hold on the others."""
    schema = {
        "type": "object",
        "properties": {
            "short": {"type": "string", "minLength": 1, "maxLength": 3},
            "code": {"type": "string", "pattern": "^[A-Z]+$"},
            "unit": {"enum": ["C", "F"]},
            "n": {"type": "integer", "minimum": 3},
        },
    }
    tools = ToolSet([Tool("f", "", schema)])
    grammar = tools.grammar(family, tool_choice="required")

    def admits(arguments: dict[str, Any]) -> bool:
        return grammar.matches(family.render("", [ToolCall("c", "f", arguments)]))

    assert admits({"short": "äöü", "code": "ABC", "unit": "C", "n": 3})
    assert admits({"short": "<\n"})
    for wrong in ({"short": ""}, {"short": "abcd"}, {"code": "aB"}, {"unit": "K"}, {"n": 2}, {"n": "3x"}):
        assert not admits(wrong), wrong


@each_family
def test_what_cannot_be_spelled(family: XmlCalls) -> None:
    """A string with the closing tag is refused; so is a schema that raw text cannot enforce, by name."""
    with pytest.raises(ToolGrammarError, match="cannot spell"):
        family.render("", [ToolCall("c", "edit.file", {"text": family.parameter_end})])
    either = {"type": "object", "properties": {"x": {"type": ["string", "integer"]}}}
    with pytest.raises(UnsupportedSchemaError, match="may or may not be a string"):
        ToolSet([Tool("f", "", either)]).grammar(family)


def test_observed_variants() -> None:
    """A forgotten first tag and Python's words for truth are read."""
    text = "<function=edit.file>\n<parameter=text>\nx\n</parameter>\n<parameter=on>\nTrue\n</parameter>\n</function>\n"
    (call,) = TOOLS.parse(text + "</tool_call>", "qwen3-coder").tool_calls
    assert (call.name, call.arguments, call.error) == ("edit.file", {"text": "x", "on": True}, None)
