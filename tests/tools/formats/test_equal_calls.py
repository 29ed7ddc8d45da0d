"""Calls that equal an earlier one of their turn are left out, and end it."""

from __future__ import annotations

from typing import Any

import pytest

from toolgrammar.core import CallEnd, CallStart, GenerateParams, Message, ToolCall
from toolgrammar.core.conversation import ArgumentsDelta, Event
from toolgrammar.core.conversation.equal_calls import UnequalCalls
from toolgrammar.core.conversation.events import MessageBuilder, call_events
from toolgrammar.core.testing import ScriptedModel
from toolgrammar.tools import ToolSet
from toolgrammar.tools.formats import format_names

from .common import EVERY


def put(name: str, count: int = 0) -> None:
    """Put something somewhere."""


def take(name: str, count: int = 0) -> None:
    """Take something."""


TOOLS = ToolSet.from_any([put, take])
CUP, CUPS = {"name": "cup", "count": 1}, {"name": "cups", "count": 1}
PARALLEL = [name for name in format_names() if getattr(EVERY[name], "parallel", True)]


def call(name: str, arguments: dict[str, Any], number: int = 0) -> ToolCall:
    """A call with an id of its own."""
    return ToolCall(f"{number:09}", name, arguments)


def made(message: Message) -> list[tuple[str, Any]]:
    """The names and arguments of a message's calls."""
    return [(one.name, dict(one.arguments)) for one in message.tool_calls]


@pytest.mark.parametrize("name", PARALLEL)
def test_a_repeated_call_ends_the_turn(name: str) -> None:
    """In every format the turn ends at a call that was made before, whole and streamed; what goes before it comes."""
    wire = EVERY[name]
    first, other, third = call("put", CUP, 0), call("take", CUP, 1), call("put", CUPS, 2)
    text = wire.render("", [first, other, third, call("put", CUP, 3), call("take", CUPS, 4)])
    options: Any = {"tools": TOOLS, "tool_choice": "required", "tool_format": wire}
    whole = ScriptedModel([text]).generate("Go.", **options)
    wanted = [("put", CUP), ("take", CUP), ("put", CUPS)]
    assert made(whole.message) == wanted and whole.finish_reason == "tool_calls" and whole.text == ""
    built, events = MessageBuilder(), list(ScriptedModel([text]).stream("Go.", **options))
    for event in events:
        built.add(event)
    assert made(built.message()) == wanted
    assert [event.index for event in events if isinstance(event, CallStart)] == [0, 1, 2]
    allowed = ScriptedModel([text]).generate("Go.", equal_calls=True, **options)
    assert made(allowed.message) == [*wanted, ("put", CUP), ("take", CUPS)]


@pytest.mark.parametrize("choice", ["required", "auto"])
def test_a_model_that_repeats_its_call(choice: str) -> None:
    """A model that would write its call again and again has made one call, and the rest is not written."""
    text = EVERY["hermes"].render("", [call("put", CUP)] * 9)
    answer = ScriptedModel([text]).generate("Go.", tools=TOOLS, tool_choice=choice, tool_format=EVERY["hermes"])
    assert made(answer.message) == [("put", CUP)]
    assert text.startswith(answer.raw) and answer.raw.count("<tool_call>") == 2


def test_many_at_a_time_and_traced() -> None:
    """Batches, traces and masses know no call that was left out."""
    text = EVERY["hermes"].render("", [call("put", CUP)] * 3)
    params = GenerateParams(tools=TOOLS, tool_choice="required", trace=True, masses=True)
    for answer in ScriptedModel([text, text]).generate_batch(["Go."] * 2, params):
        assert made(answer.message) == [("put", CUP)] and answer.trace is not None
        assert {token.call for token in answer.trace.tokens} == {None, 0}
        assert {mass.call for mass in answer.masses} <= {None, 0}


def pieces(calls: list[ToolCall], size: int) -> list[Event]:
    """The events of calls, their arguments in pieces."""
    events: list[Event] = []
    for event in call_events(calls):
        if isinstance(event, ArgumentsDelta):
            cut = [event.text[at : at + size] for at in range(0, len(event.text), size)]
            events += [ArgumentsDelta(event.index, piece) for piece in cut]
        else:
            events.append(event)
    return events


@pytest.mark.parametrize("size", [1, 3, 100])
def test_what_differs_is_not_held_back(size: int) -> None:
    """A call comes as soon as it differs from all earlier ones; the sum does not depend on the pieces."""
    calls = [
        call("put", CUP),
        call("put", CUPS),
        call("put", CUP),
        call("take", CUP),
        call("put", {**CUPS, "count": 2}),
    ]
    unequal, passed = UnequalCalls(), []
    for event in pieces(calls, size):
        passed += unequal.feed([event])
        if isinstance(event, ArgumentsDelta) and event.index == 1 and not unequal.left_out and size == 1:
            begun = "".join(one.text for one in passed if isinstance(one, ArgumentsDelta) and one.index == 1)
            assert begun == "" or begun.startswith('{"name": "cups')
    assert unequal.left_out == 1
    ends = [event for event in passed if isinstance(event, CallEnd)]
    assert [(end.index, end.call.arguments) for end in ends] == [
        (0, CUP), (1, CUPS), (2, CUP), (3, {**CUPS, "count": 2}),
    ]  # fmt: skip
    texts = ["".join(e.text for e in passed if isinstance(e, ArgumentsDelta) and e.index == i) for i in range(4)]
    assert texts == ['{"name": "cup", "count": 1}', '{"name": "cups", "count": 1}',
                     '{"name": "cup", "count": 1}', '{"name": "cups", "count": 2}']  # fmt: skip
