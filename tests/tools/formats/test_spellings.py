"""Names and characters that a format can spell, though not as they are."""

from __future__ import annotations

import ast

import pytest

from toolgrammar.core import ToolCall, UnsupportedSchemaError
from toolgrammar.tools import Tool, ToolSet

from .common import EVERY


def tools_of(*names: str) -> ToolSet:
    """A tool with arguments of these names, all of them texts."""
    properties = {name: {"type": "string"} for name in names}
    return ToolSet([Tool("save", "", {"type": "object", "properties": properties, "required": list(names)})])


@pytest.mark.parametrize("name", ["Basic LLM Chain", "key with space", "größe von b"])
@pytest.mark.parametrize("wire", ["gemma-4", "functiongemma"])
def test_bare_names_may_hold_spaces(wire: str, name: str) -> None:
    """As the templates write them; members that the schema does not declare, too."""
    tools = tools_of(name)
    written = EVERY[wire].render("", [ToolCall("1", "save", {name: "x"})])
    assert f"{{{name}:" in written
    assert tools.grammar(EVERY[wire], tool_choice="required").matches(written)
    assert [dict(call.arguments) for call in tools.parse(written, wire).tool_calls] == [{name: "x"}]
    open_tools = ToolSet(
        [Tool("save", "", {"type": "object", "properties": {"o": {"type": "object", "additionalProperties": True}}})]
    )
    inner = EVERY[wire].render("", [ToolCall("1", "save", {"o": {"a b": 1, "c": 2}})])
    assert open_tools.grammar(EVERY[wire], tool_choice="required").matches(inner)
    assert not open_tools.grammar(EVERY[wire], tool_choice="required").matches(inner.replace("c:", "a b:"))
    assert [dict(call.arguments) for call in open_tools.parse(inner, wire).tool_calls] == [{"o": {"a b": 1, "c": 2}}]


@pytest.mark.parametrize("wire", ["gemma-4", "functiongemma"])
def test_required_names_that_are_not_declared_are_sorted(wire: str) -> None:
    """As the templates of Gemma sort all members."""
    parameters = {"type": "object", "properties": {"o": {"type": "object", "required": ["é", "a"]}}}
    tools = ToolSet([Tool("save", "", parameters)], strictness={"save": "open"})
    written = EVERY[wire].render("", [ToolCall("1", "save", {"o": {"é": 1, "a": 2}})])
    assert written.index("a:2") < written.index("é:1")
    assert tools.grammar(EVERY[wire], tool_choice="required").matches(written)


@pytest.mark.parametrize(
    ("name", "spelled"),
    [('say "hi"', "say &quot;hi&quot;"), ("q&a", "q&amp;a"), ("a&lt", "a&amp;lt"), ("it's = 5", "it's = 5")],
)
def test_names_in_attributes_are_written_with_entities(name: str, spelled: str) -> None:
    """As Kimi K3's encoder has it: in the grammar, the parser and the history."""
    wire, tools = EVERY["kimi-k3"], tools_of(name)
    written = wire.render("", [ToolCall("1", "save", {name: "fish & chips"})])
    assert f'key="{spelled}"' in written
    grammar = tools.grammar(wire, tool_choice="required")
    assert grammar.matches(written)
    if spelled != name:
        assert not grammar.matches(written.replace(spelled, name))
    parser = tools.parser(wire)
    events = [event for char in written for event in parser.feed(char)] + parser.close()
    assert [dict(event.call.arguments) for event in events if hasattr(event, "call")] == [{name: "fish & chips"}]
    assert parser.leniencies == []


@pytest.mark.parametrize("char", [chr(code) for code in (*range(1, 0x20), 0x7F)])
def test_a_string_of_python_holds_what_python_allows(char: str) -> None:
    """A raw tab, for one: the grammar admits what Python reads, and the escape as well."""
    tools = tools_of("text")
    try:
        is_allowed = ast.literal_eval(f'"a{char}b"') == f"a{char}b"
    except SyntaxError:
        is_allowed = False
    grammar = tools.grammar("pythonic", tool_choice="required")
    for written, admitted in ((char, is_allowed), (f"\\x{ord(char):02x}", char not in "\t\n\r\a\b\f\v\x7f")):
        text = f'[save(text="a{written}b")]'
        assert grammar.matches(text) is admitted
        if admitted:
            assert tools.parse(text, "pythonic").tool_calls[0].arguments == {"text": f"a{char}b"}
    assert grammar.matches('[save(text="a\\tb")]')


@pytest.mark.parametrize("wire", ["qwen3-coder", "mimo-2"])
@pytest.mark.parametrize(
    ("text", "spelled"),
    [
        ("use </parameter> here", True),
        ("</parameter>", True),
        ("a </parameter>\n\n</parameter>", True),
        ("<parameter=text>\nx", True),
        ("a</parameter>\n<par", True),
        ("a</parameter></funct", True),
        ("a</parameter>\n<parameter=b>", False),
        ("a</parameter> </function>", False),
        ("a</parameter><tool_call>", False),
    ],
)
def test_a_closing_tag_within_a_text(wire: str, text: str, spelled: bool) -> None:
    """It ends the value only where another argument or the end of the call follows, in the grammar as in the parser."""
    union = {"type": ["string", "integer"]}
    tools = ToolSet(
        [
            Tool(
                "save",
                "",
                {"type": "object", "properties": {"text": {"type": "string"}, "more": union}, "required": ["text"]},
            )
        ]
    )
    call = EVERY[wire].render("", [ToolCall("1", "save", {"text": "TEXT", "more": "MORE"})])
    for place in ("TEXT", "MORE"):
        written = call.replace(place, text)
        assert tools.grammar(EVERY[wire], tool_choice="required").matches(written) is spelled
        if spelled:
            wanted = {"text": "TEXT", "more": "MORE", {"TEXT": "text", "MORE": "more"}[place]: text}
            for pieces in ([written], list(written)):
                parser = tools.parser(wire)
                events = [event for piece in pieces for event in parser.feed(piece)] + parser.close()
                assert [dict(event.call.arguments) for event in events if hasattr(event, "call")] == [wanted]
                assert parser.leniencies == []


@pytest.mark.parametrize(
    ("wire", "name"),
    [
        ("glm-4.7", "a b"),
        ("qwen3-coder", "a=b"),
        ("kimi-k3", "<a>"),
        ("gemma-4", "a,b"),
        ("llama-4", "a-b"),
        ("minimax-m3", "a b"),
    ],
)
def test_an_optional_argument_that_cannot_be_spelled_is_left_out(wire: str, name: str) -> None:
    """And named in ``narrowed``; the other tools of the set, and this one, can be called. A required one is an error."""
    properties = {"n": {"type": "integer"}, name: {"type": "string"}}
    tools = ToolSet([Tool("f", "", {"type": "object", "properties": properties}), Tool("g", "", {})])
    grammar = tools.grammar(EVERY[wire], tool_choice="required")
    for call in (ToolCall("1", "f", {"n": 5}), ToolCall("1", "f", {}), ToolCall("1", "g", {})):
        assert grammar.matches(EVERY[wire].render("", [call]))
    (report,) = grammar.narrowed
    assert (report.place.tool, report.place.parameter) == ("f", name)
    assert name in (report.left_out or "")
    demanded = ToolSet([Tool("f", "", {"type": "object", "properties": properties, "required": [name]})])
    with pytest.raises(UnsupportedSchemaError):
        demanded.grammar(EVERY[wire], tool_choice="required")
