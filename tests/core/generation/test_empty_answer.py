"""Answers after the result of a tool may be empty: a model that has nothing to add is not made to call again."""

from __future__ import annotations

from typing import Any

import pytest

from toolgrammar.core import CallEnd, Message, ToolCall
from toolgrammar.core.testing import ScriptedModel
from toolgrammar.tools import ToolSet
from toolgrammar.tools.formats.registry import format_names


def fill(litres: int) -> str:
    """Fill the tank."""
    return "full"


TOOLS = ToolSet([fill])
CALLED = Message("assistant", tool_calls=(ToolCall("call00000", "fill", {"litres": 5}),))
ANSWERED = [Message("user", "Fill it."), CALLED, Message("tool", "full", tool_call_id="call00000", name="fill")]


def asked(conversation: Any, **options: Any) -> Any:
    """Return the answer of a model that would end at once."""
    return ScriptedModel([""]).generate(conversation, tools=TOOLS, **{"max_tokens": 100, **options})


@pytest.mark.parametrize("name", format_names())
def test_an_answer_after_a_result_may_be_empty(name: str) -> None:
    """In every wire format: no text, no call, the reason of an answer that ended."""
    answer = asked(ANSWERED, tool_format=name)
    assert (answer.text, answer.tool_calls, answer.finish_reason) == ("", (), "stop")


@pytest.mark.parametrize(
    ("conversation", "options"),
    [
        (ANSWERED, {"empty_answer": False}),
        (ANSWERED, {"tool_choice": "required"}),
        (ANSWERED, {"tool_choice": "none"}),
        (ANSWERED, {"response_schema": {"type": "integer"}}),
        (ANSWERED[:1], {}),
        ([*ANSWERED, Message("user", "And now?")], {}),
    ],
)
def test_other_answers_are_not_empty(conversation: Any, options: dict[str, Any]) -> None:
    """With the option off, after other messages, and where a call, text or JSON is demanded."""
    answer = asked(conversation, **options)
    assert answer.text or answer.tool_calls


def test_what_is_not_empty_is_as_before() -> None:
    """Text and calls after a result, whole and as events; a budget of one token is not an empty answer's excuse."""
    for wish in (Message("assistant", "Done."), CALLED):
        model = ScriptedModel([wish])
        answer = model.generate(ANSWERED, tools=TOOLS, max_tokens=100)
        assert (answer.text, [call.arguments for call in answer.tool_calls]) == (
            wish.text,
            [call.arguments for call in wish.tool_calls],
        )
    events = ScriptedModel([CALLED]).stream(ANSWERED, tools=TOOLS, max_tokens=100)
    assert [event.call.arguments for event in events if isinstance(event, CallEnd)] == [{"litres": 5}]
