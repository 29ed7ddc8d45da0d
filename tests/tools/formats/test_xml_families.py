"""The families with one tag per argument: rendering, grammar and streaming parser agree; schemas hold on raw text."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from toolgrammar.core import CallEnd, TextDelta, ToolCall, ToolGrammarError, UnsupportedSchemaError
from toolgrammar.tools import Tool, ToolSet
from toolgrammar.tools.formats import get_format
from toolgrammar.tools.formats.families import FAMILIES
from toolgrammar.tools.formats.xml.calls import XmlCalls

from ..strategies import TRICKY, cuts, texts

PLAIN = {wire.name: wire.with_special(()) for wire in FAMILIES if isinstance(wire, XmlCalls)}
each_family = pytest.mark.parametrize("family", PLAIN.values(), ids=PLAIN)
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
    text = "Sure." if family.prose else ""
    written = family.render(text, wanted)
    assert TOOLS.grammar(family).matches(written)
    assert TOOLS.grammar(family, tool_choice="required").matches(family.render("", wanted))
    whole = events_of(family, [written])
    ended = [event.call for event in whole if isinstance(event, CallEnd)]
    assert [(call.name, call.arguments, call.error) for call in ended] == [
        (call.name, call.arguments, None) for call in wanted
    ]
    assert not text or whole[0] == text
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
    """A string with the closing tag (and a block's end) is refused; so are names and unnamed members, by tool and name."""
    text = family.parameter_end + (family.block[1] if family.block else "") + (*family.follows, "")[0]
    with pytest.raises(ToolGrammarError, match="cannot express"):
        family.render("", [ToolCall("c", "edit.file", {"text": text})])
    for schema, what in (
        ({"type": "object", "properties": {"a <b": {"type": "string"}}, "required": ["a <b"]}, "the name 'a <b'"),
        ({"type": "object", "additionalProperties": {"type": "string"}}, "properties that the schema does not declare"),
    ):
        with pytest.raises(UnsupportedSchemaError, match=what) as caught:
            ToolSet([Tool("f", "", schema)]).grammar(family)
        assert caught.value.place.tool == "f"


WIDE = {
    "type": "object",
    "$defs": {"name": {"type": "string", "pattern": "^[a-z]+$", "maxLength": 4}, "node": {"$ref": "#/$defs/tree"},
              "tree": {"type": "object", "properties": {"next": {"$ref": "#/$defs/node"}, "n": {"type": "integer"}}}},
    "properties": {
        "maybe": {"anyOf": [{"$ref": "#/$defs/name"}, {"type": "null"}]},
        "name": {"$ref": "#/$defs/name"},
        "number": {"type": ["string", "integer"]},
        "list": {"oneOf": [{"type": "string", "format": "date"}, {"type": "array", "items": {"type": "integer"}}]},
        "tree": {"$ref": "#/$defs/tree"},
        "mixed": {"enum": ["a", 1, None, True, [2]]},
    },
    "required": ["name"],
    "dependentRequired": {"maybe": ["number"]},
}  # fmt: skip


@each_family
def test_schemas_of_every_shape(family: XmlCalls) -> None:
    """References, unions with strings, formats and keywords on the arguments as a whole hold on decoded values."""
    tools = ToolSet([Tool("f", "", WIDE)])
    grammar = tools.grammar(family, tool_choice="required")
    good: list[dict[str, Any]] = [
        {"name": "ab"},
        {"maybe": None, "name": "ab", "number": 5},
        {"maybe": "abc", "name": "ab", "number": "x5"},
        {"name": "null", "list": [1, 2]},
        {"name": "ab", "list": "2024-02-29"},
        {"name": "ab", "tree": {"next": {"next": {}, "n": 1}}},
        *({"name": "ab", "mixed": each} for each in ("a", 1, None, True, [2])),
    ]
    bad: list[dict[str, Any]] = [
        {},
        {"name": "abcde"},
        {"maybe": None, "name": "ab"},
        {"maybe": 5, "name": "ab", "number": 5},
        {"name": "ab", "list": "2023-02-29"},
        {"name": "ab", "tree": {"next": {"n": "1"}}},
        {"name": "ab", "mixed": "b"},
        {"name": "ab", "number": 1.5},
    ]
    for arguments in good:
        written = family.render("", [ToolCall("c", "f", arguments)])
        assert grammar.matches(written), arguments
        assert [call.arguments for call in tools.parse(written, family).tool_calls] == [arguments]
    for arguments in bad:
        assert not grammar.matches(family.render("", [ToolCall("c", "f", arguments)])), arguments


@each_family
@settings(max_examples=10, deadline=None)
@given(text=st.one_of(texts, st.sampled_from([" null", "None", "5 ", "{", "[1", "-0.5e3", "truer", "x5", '"a"'])))
def test_what_a_text_is_read_as(family: XmlCalls, text: str) -> None:
    """Where several kinds are possible, a string that the grammar admits comes back as that string."""
    assume(family.parameter_end not in text)
    kinds = ["string", "integer", "null", "boolean", "array", "object"]
    for few in (kinds, kinds[:2], kinds[:3], ["string", "array"]):
        tools = ToolSet([Tool("f", "", {"type": "object", "properties": {"x": {"type": few}}, "required": ["x"]})])
        written = family.render("", [ToolCall("c", "f", {"x": text})])
        (call,) = tools.parse(written, family).tool_calls
        if tools.grammar(family, tool_choice="required").matches(written):
            # As an integer, say, the text may be in the grammar too: then it is read so, and never as the string.
            assert call.error is None
            assert call.arguments == {"x": text} or not isinstance(call.arguments["x"], str)
            assert family.render("", [call]) == written


def test_observed_variants() -> None:
    """A forgotten first tag and Python's words for truth are read."""
    text = "<function=edit.file>\n<parameter=text>\nx\n</parameter>\n<parameter=on>\nTrue\n</parameter>\n</function>\n"
    (call,) = TOOLS.parse(text + "</tool_call>", "qwen3-coder").tool_calls
    assert (call.name, call.arguments, call.error) == ("edit.file", {"text": "x", "on": True}, None)


def test_blocks() -> None:
    """MiniCPM5 writes strings with markup in CDATA, and may write any string so; the schema holds inside."""
    schema = {"type": "object", "properties": {"x": {"type": "string", "maxLength": 9}}, "required": ["x"]}
    tools = ToolSet([Tool("f", "", schema)])
    grammar = tools.grammar("minicpm-5", tool_choice="required")

    def written(value: str) -> str:
        return f'<function name="f"><param name="x">{value}</param></function>'

    for value, text in (
        ("<![CDATA[a<b]]>", "a<b"),
        ("<![CDATA[</param>]]>", "</param>"),
        ("<![CDATA[a]]]]>", "a]]"),
        ("<![CDATA[]]>", ""),
        ("a<b", "a<b"),
        ("a]]>", "a]]>"),
        (" <![CD", " <![CD"),
    ):
        assert grammar.matches(written(value)), value
        for pieces in ([written(value)], list(written(value))):
            parser = tools.parser("minicpm-5")
            events = [event for piece in pieces for event in parser.feed(piece)] + list(parser.close())
            (call,) = [event.call for event in events if isinstance(event, CallEnd)]
            assert (call.arguments, call.error) == ({"x": text}, None)
        assert grammar.matches(get_format("minicpm-5").render("", [call]))
    for value in ("<![CDATA[0123456789]]>", "<![CDATA[a]]>b]]>", "<![CDATA[a", "<![CDATA[a]]> "):
        assert not grammar.matches(written(value)), value
    assert tools.parse(written("<![CDATA[a]]]]><![CDATA[>b]]>"), "minicpm-5").tool_calls[0].arguments == {"x": "a]]>b"}
    deep = '<function name="edit.file"><param name="text"></param><param name="deep">{}</param></function>'
    call = TOOLS.parse(deep.format('<![CDATA[{"a": "</param>"}]]>'), "minicpm-5").tool_calls[0]
    assert call.arguments["deep"] == {"a": "</param>"}


def test_names_of_arguments_that_a_text_makes_up_compile_no_schema_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """A schema is compiled once for a parser, whatever names the text has, and also where that fails."""
    from toolgrammar.tools.formats.template import arguments

    compiled = []
    make = arguments.compile_arguments

    def counted(*given: Any) -> Any:
        compiled.append(given)
        return make(*given)

    monkeypatch.setattr(arguments, "compile_arguments", counted)
    for schema in ({"type": "object", "additionalProperties": {"type": "integer"}}, {"type": "object", "$ref": "#/no"}):
        compiled.clear()
        kinds = arguments.kinds_of_arguments([Tool("f", "", schema)])
        assert len({kinds("f", f"x{number}") for number in range(50)}) == 1
        assert len(compiled) == 1
