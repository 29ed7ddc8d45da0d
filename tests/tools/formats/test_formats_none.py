"""``tool_choice="none"``: text in the model's own format, in which no call can begin."""

from __future__ import annotations

from typing import Any

import pytest

from toolgrammar.core import BudgetError, CallEnd, Message, TextDelta, ToolCall
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
    """A model that would write a call writes a text without one; the stream and the whole result agree. One that has
    nothing else to say is told, and no beginning of a call is its answer."""
    reply = Message("assistant", "Let me look.", tool_calls=(CALL,))
    script = "<think>\nHm.\n</think>\n\n" if "thinking" in options else ""
    for text in ("Let me look.", ""):
        wants = script + get_format("hermes").render(text, [CALL])
        model = ScriptedModel([wants, wants])
        if not text:
            with pytest.raises(BudgetError, match="nothing but the beginning of a call"):
                model.generate("Look!", tools=TOOLS, tool_choice="none", **options)
            continue
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
        ("<tool>", "<tool>"),
    ],
)
def test_a_text_ends_before_an_unfinished_marker(text: str, wanted: str) -> None:
    """A call that may not come leaves nothing of its marker behind the text."""
    answer = ScriptedModel([text]).generate("Look!", tools=TOOLS, tool_choice="none", tool_format="hermes")
    assert answer.text.strip() == wanted
    events = list(ScriptedModel([text]).stream("Look!", tools=TOOLS, tool_choice="none", tool_format="hermes"))
    assert "".join(event.text for event in events if isinstance(event, TextDelta)) == answer.text


CALLED = Message("assistant", "", tool_calls=(CALL,))
RESULT = Message("tool", "It is red.", tool_call_id=CALL.id, name="look")
AFTER = [Message("user", "Look!"), CALLED, RESULT]
LATER = [*AFTER, Message("user", "And now?")]


def shows_no_call(name: str, text: str) -> bool:
    """Whether a text ends with nothing of a call's marker, and is no part of one."""
    marks = [mark for mark in get_format(name).barred_markers if not mark[0].isalnum()]
    ends = any(
        text.endswith(mark[:size]) for mark in marks for size in range(max(3, len(mark) // 2 + 1), len(mark) + 1)
    )
    whole = len(text.strip()) > 2 and any(mark.startswith(text.strip()) for mark in marks)
    return not ends and not whole and not any(mark in text for mark in marks)


#: Options under which no call can be written, or none that fits, and which bar it in each format.
BARRED: list[dict[str, Any]] = [{"tools": TOOLS, "tool_choice": "none"}, {}, {"tools": TOOLS, "max_tokens": 17}]
MORE: list[dict[str, Any]] = [
    {"tools": [], "tool_choice": "none"},
    {"tool_choice": "none"},
    *({"tools": TOOLS, "max_tokens": budget} for budget in (3, 4, 7, 10, 11, 12, 26, 38)),
]


@pytest.mark.parametrize(
    ("name", "options"),
    [
        pytest.param(name, options, marks=[] if at == number % 3 or name == "hermes" else pytest.mark.slow)
        for number, name in enumerate(format_names())
        for at, options in enumerate(BARRED)
    ]
    + [("hermes", options) for options in MORE],
)
def test_no_answer_is_the_beginning_of_a_call(name: str, options: dict[str, Any]) -> None:
    """A model that wants a call, and may not or cannot write it whole, shows nothing of it: after a result its answer
    is empty if it has nothing else to say, elsewhere that is an error; streamed or not. A conversation with calls
    and no tools bars them too."""
    options = {"max_tokens": 90, **options}
    for said in ("", "Let me see. "):
        wants = said + get_format(name).render_calls([CALL])
        model = ScriptedModel([wants] * 4)
        for prompt in (AFTER, LATER):
            try:
                answer = model.generate(prompt, tool_format=name, **options)
            except BudgetError as error:
                if "shortest valid output" in error.message:  # the markup around a text does not fit
                    continue
                assert prompt is LATER and not said
                with pytest.raises(BudgetError):
                    list(model.stream(prompt, tool_format=name, **options))
                continue
            assert shows_no_call(name, answer.text), answer.text
            assert "tools" in options or not TOOLS.parse(answer.raw, name).tool_calls
            says_none = getattr(get_format(name), "no_calls", "") in answer.raw
            assert answer.text or answer.tool_calls or prompt is AFTER or says_none
            events = list(model.stream(prompt, tool_format=name, **options))
            assert "".join(event.text for event in events if isinstance(event, TextDelta)) == answer.text


@pytest.mark.parametrize(
    ("name", "choice"),
    [
        pytest.param(name, choice, marks=[] if at == number % 2 else pytest.mark.slow)
        for number, name in enumerate(format_names())
        for at, choice in enumerate(("auto", "required"))
    ],
)
def test_a_call_that_just_fits_is_written(name: str, choice: str) -> None:
    """With as many tokens as the call has, it is written as with any number; with more that the model wants in it, a
    call comes too where one is demanded."""
    script = [get_format(name).render_calls([CALL])]
    options: dict[str, Any] = {"tools": TOOLS, "tool_format": name, "tool_choice": choice}
    whole = ScriptedModel(script).generate("Look!", max_tokens=700, **options)
    assert [call.arguments for call in whole.tool_calls] == [CALL.arguments]
    size = len(whole.token_ids)
    fitted = ScriptedModel(script).generate("Look!", max_tokens=size, **options)
    assert fitted.token_ids == whole.token_ids and fitted.tool_calls[0].arguments == CALL.arguments
    longer = [get_format(name).render_calls([ToolCall("aaaaaaaaa", "look", {"at": "it " * 30})])]
    for budget in range(size - 2, size + 3) if choice == "required" else ():
        (call,) = ScriptedModel(longer).generate("Look!", max_tokens=budget, **options).tool_calls
        assert TOOLS.validate(call)


def test_without_tools_and_calls_text_is_unrestricted() -> None:
    """Where neither the options nor the conversation tell of calls, a text may have any words."""
    text = get_format("hermes").render_calls([CALL])
    assert ScriptedModel([text]).generate("Show me a call!").text == text


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
