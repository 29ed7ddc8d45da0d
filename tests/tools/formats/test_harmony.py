"""Harmony: the headers in which a call may stand, text before calls, and tools of the model's own."""

from __future__ import annotations

from itertools import product

import pytest

from toolgrammar.core import ReasoningDelta, ToolCall
from toolgrammar.tools import Tool, ToolSet
from toolgrammar.tools.formats import get_format

from .common import byte_vocabulary, events_of, spelled_out, token_ids

PARAMETERS = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
TOOLS = ToolSet([Tool("f", "", PARAMETERS), Tool("f_more", "", {})])
HARMONY = spelled_out("harmony")
THOUGHT = "<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant"
PREAMBLE = "<|channel|>commentary<|message|>Checking.<|end|><|start|>assistant"
#: The headers that OpenAI's renderer, its chat template and the model itself write.
HEADERS = tuple(
    header
    for channel, kind in product(("commentary", "analysis"), (" <|constrain|>json", "<|constrain|>json", " json", ""))
    for header in (
        f"<|channel|>{channel} to=functions.f{kind}<|message|>",
        f" to=functions.f<|channel|>{channel}{kind}<|message|>",
    )
)


@pytest.mark.parametrize("before", ["", THOUGHT, PREAMBLE, THOUGHT + PREAMBLE])
@pytest.mark.parametrize("header", HEADERS)
def test_every_header_is_admitted_and_read(header: str, before: str) -> None:
    """In each spelling, behind reasoning and a preamble: as text and as control tokens, without a leniency."""
    turn = f'{before}{header}{{"city": "Oslo"}}'
    assert TOOLS.grammar(HARMONY, reasoning="optional").matches(turn)
    assert not TOOLS.grammar(HARMONY, reasoning="optional").matches(turn.replace('"Oslo"', "5"))
    vocabulary = byte_vocabulary(get_format("harmony").special)  # type: ignore[attr-defined]
    wire = get_format("harmony").for_vocabulary(vocabulary.special)
    matcher = TOOLS.grammar(wire, reasoning="optional").bind(vocabulary).matcher()
    assert all(matcher.accept(token) for token in token_ids(turn, vocabulary))
    assert matcher.accept(min(vocabulary.eos))
    for pieces in ([turn], list(turn)):
        parser = TOOLS.parser(HARMONY)
        events = [event for piece in pieces for event in parser.feed(piece)] + parser.close()
        assert parser.leniencies == []
        (call,) = [event.call for event in events if hasattr(event, "call")]
        assert (call.name, dict(call.arguments), call.error) == ("f", {"city": "Oslo"}, None)
    message = TOOLS.parse(turn, HARMONY)
    assert message.text == ("Checking." if PREAMBLE in before else "")
    assert (message.reasoning or "") == ("Hm." if THOUGHT in before else "")


def test_text_before_a_call_is_written_as_a_preamble() -> None:
    """It is a message of its own, not the final one."""
    turn = HARMONY.render("Checking.", [ToolCall("1", "f", {"city": "Oslo"})])
    assert turn.startswith(PREAMBLE)
    assert TOOLS.grammar(HARMONY).matches(turn)
    assert TOOLS.parse(turn, HARMONY).text == "Checking."


@pytest.mark.parametrize(
    "turn",
    [
        '<|channel|>commentary to=python <|constrain|>code<|message|>print("hello")',
        '<|channel|>analysis to=python code<|message|>print("hello")',
        ' to=python<|channel|>analysis code<|message|>print("hello")',
    ],
)
def test_a_tool_of_the_models_own_is_a_call_that_failed(turn: str) -> None:
    """Its code is in the call, and no markup is in the text; no grammar writes it."""
    assert not TOOLS.grammar(HARMONY, reasoning="optional").matches(turn)
    for pieces in ([turn], list(turn)):
        *_, end = events_of(TOOLS, HARMONY, pieces)
        assert not isinstance(end, ReasoningDelta)
        call = end.call  # type: ignore[union-attr]
        assert (call.name, call.error is not None) == ("python", True)
        assert 'print("hello")' in (call.raw or "")
    assert TOOLS.parse(turn, HARMONY).text == ""
