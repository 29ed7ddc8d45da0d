"""``tool_choice="none"``: text in the model's own format, in which no call can begin."""

from __future__ import annotations

from typing import Any

import pytest

from toolgrammar.core import CallEnd, Message, TextDelta, ToolCall
from toolgrammar.core.testing import ScriptedModel
from toolgrammar.tools import ToolSet
from toolgrammar.tools.formats import format_names, get_format

CALL = ToolCall("aaaaaaaaa", "look", {"at": "it"})
TOOLS = ToolSet.from_any(
    [{"name": "look", "parameters": {"type": "object", "properties": {"at": {"type": "string"}}, "required": ["at"]}}]
)


@pytest.mark.parametrize("name", format_names())
def test_no_call_is_a_text(name: str) -> None:
    """What a parser would read as a call is no text of the format, alone or after words."""
    grammar, wire = TOOLS.grammar(name, tool_choice="none"), get_format(name)
    for text in (wire.render("", [CALL]), f"Sure. {wire.render_calls([CALL])}"):
        if TOOLS.parse(text, name).tool_calls:
            assert not grammar.matches(text)


@pytest.mark.parametrize("options", [{}, {"max_tokens": 30}, {"thinking": True}, {"tool_format": "hermes"}])
def test_a_model_that_wants_to_call_writes_text(options: dict[str, Any]) -> None:
    """A model that would write a call writes a text without one; the stream and the whole result agree."""
    reply = Message("assistant", "Let me look.", tool_calls=(CALL,))
    script = "<think>\nHm.\n</think>\n\n" if "thinking" in options else ""
    for text in ("Let me look.", ""):
        wants = script + get_format("hermes").render(text, [CALL])
        model = ScriptedModel([wants, wants])
        answer = model.generate("Look!", tools=TOOLS, tool_choice="none", **options)
        assert answer.tool_calls == () and answer.text and "<tool_call>" not in answer.text
        events = list(model.stream("Look!", tools=TOOLS, tool_choice="none", **options))
        assert "".join(event.text for event in events if isinstance(event, TextDelta)) == answer.text
    assert ScriptedModel([reply]).generate("Look!", tools=TOOLS).tool_calls


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("Let me look.\n<tool_call>\n{", "Let me look."),
        ("Let me look. <tool_call", "Let me look."),
        ("Is 1 <", "Is 1 <"),
        ("Is 1 <tool", "Is 1 <tool"),
        ("It is <tool_cal, no", "It is <tool_cal, no"),
        ("<tool_call>", "<tool_call"),
    ],
)
def test_a_text_ends_before_an_unfinished_marker(text: str, wanted: str) -> None:
    """A call that may not come leaves nothing of its marker behind the text; alone it stays, as no text is empty."""
    answer = ScriptedModel([text]).generate("Look!", tools=TOOLS, tool_choice="none", tool_format="hermes")
    assert answer.text.strip() == wanted
    events = list(ScriptedModel([text]).stream("Look!", tools=TOOLS, tool_choice="none", tool_format="hermes"))
    assert "".join(event.text for event in events if isinstance(event, TextDelta)) == answer.text


@pytest.mark.parametrize("name", format_names())
def test_a_marker_without_a_call_is_text(name: str) -> None:
    """Free output that names the marker of calls, and calls nothing, keeps it; a control token is no text."""
    wire = get_format(name)
    control = getattr(wire, "special", ())
    for mark in wire.call_markers:
        text = f"Tags are `{mark}` here."
        for pieces in ([text], list(text)):
            parser = TOOLS.parser(wire)
            events = [event for piece in pieces for event in parser.feed(piece)] + parser.close()
            said = "".join(event.text for event in events if isinstance(event, TextDelta))
            calls = [event.call for event in events if isinstance(event, CallEnd)]
            if calls:
                assert calls[0].error and said.startswith("Tags are `")
            elif any(token in mark for token in control):
                assert said == text.replace(mark, "")
            else:
                assert said == text


def test_markup_of_no_calls_is_not_text() -> None:
    """An empty list of calls leaves nothing in the text around it."""
    assert TOOLS.parse("Nothing. <TOOLCALL>[]</TOOLCALL>\nBye.", "nemotron-2").text == "Nothing. \nBye."
    assert TOOLS.parse("<TOOLCALL>[ ]</TOOLCALL>", "nemotron-2").text == ""
