"""The law of streams: wherever a text is cut into steps, its deltas add up to the same message."""

from __future__ import annotations

import asyncio
import itertools
import json
import re
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolgrammar.core import (
    ArgumentsDelta,
    BudgetError,
    CallEnd,
    CallStart,
    Event,
    Finish,
    GenerateParams,
    Generation,
    Grammar,
    Message,
    ReasoningDelta,
    TextDelta,
    TokenWritten,
    ToolCall,
)
from toolgrammar.core.generation.loop import Decoding
from toolgrammar.core.generation.output import Output
from toolgrammar.core.generation.reasoning import Reasoning, ReasoningPlan
from toolgrammar.core.testing import ScriptedModel, byte_vocabulary
from toolgrammar.tools import ToolSet


def note(text: str, tags: list[str]) -> str:
    """Write a note."""
    return text


def stop_clock(now: bool) -> bool:
    """Stop the clock."""
    return now


TOOLS = ToolSet.from_any([note, stop_clock])
CALLS = (
    '<tool_call>\n{"name": "note", "arguments": {"text": "né \\"日\\" <tool_call> END", "tags": ["a", "é"]}}\n</tool_call>\n'
    '<tool_call>\n{"name": "stop_clock", "arguments": {"now": true}}\n</tool_call>'
)
TURNS = {
    "calls": ("", CALLS),
    "text and calls": ("", "Gladly, 日本 <b>\n" + CALLS),
    "reasoning and calls": ("<think>\nWell, né.\n\nSo?\n</think>", "\n\n" + CALLS),
    "text that stops": ("", "naïve EN END and more"),
    "reasoning and text": ("<think>I see</thin</think>", "\nEEEN"),
    "nothing but a beginning": ("", "Enough. EN"),
}


class Backend:
    """A vocabulary, and nothing else that `Output` reads."""

    vocabulary = byte_vocabulary()


def fed(name: str, cuts: Sequence[int], closed_at: int | None = None) -> tuple[list[Event], Generation]:
    """The events and the result of a turn, cut into steps at these bytes."""
    thought, answer = (part.encode() for part in TURNS[name])
    backend: Any = Backend()
    matcher = Grammar.text().bind(backend.vocabulary).matcher()
    decoding = Decoding(
        backend, [1], matcher, GenerateParams(), Reasoning(ReasoningPlan(Grammar.text()), matcher) if thought else None
    )
    decoding.closed_at = closed_at
    output = Output(decoding, TOOLS.parser(new_id=lambda: "id"), stop=("END",), reasoning=("<think>", "</think>"))
    whole = thought + answer
    places = sorted({0, len(thought), len(whole), *(place % (len(whole) + 1) for place in cuts)})
    events: list[Event] = []
    for begin, end in itertools.pairwise(places):
        events += output.feed(TokenWritten(0, whole[begin:end], False, None, end <= len(thought)))
    events += output.close()
    finish = output.finish(1)
    return events, output.generation(finish)


def joined(events: Sequence[Event]) -> list[Event]:
    """Neighbouring deltas of one kind made one."""
    found: list[Event] = []
    for event in events:
        last = found[-1] if found else None
        if isinstance(event, TextDelta) and isinstance(last, TextDelta):
            found[-1] = TextDelta(last.text + event.text)
        elif isinstance(event, ReasoningDelta) and isinstance(last, ReasoningDelta):
            found[-1] = ReasoningDelta(last.text + event.text)
        elif isinstance(event, ArgumentsDelta) and isinstance(last, ArgumentsDelta) and event.index == last.index:
            found[-1] = ArgumentsDelta(event.index, last.text + event.text)
        else:
            found.append(event)
    return found


@pytest.mark.parametrize("name", TURNS)
@given(cuts=st.lists(st.integers(0, 1000), max_size=40))
def test_events_do_not_depend_on_where_a_text_is_cut(name: str, cuts: list[int]) -> None:
    """Cut anywhere, in the middle of a character too, the joined events are those of the text byte by byte."""
    events, generation = fed(name, cuts)
    expected, whole = fed(name, range(2000))
    assert joined(events) == joined(expected)
    assert generation.message == whole.message
    assert "".join(each.text for each in events if isinstance(each, TextDelta)) == generation.text
    thoughts = "".join(each.text for each in events if isinstance(each, ReasoningDelta))
    assert thoughts == (generation.message.reasoning or "")
    for number, call in enumerate(generation.tool_calls):
        pieces = [each.text for each in events if isinstance(each, ArgumentsDelta) and each.index == number]
        assert json.loads("".join(pieces)) == call.arguments
    assert all(getattr(each, "text", "-") for each in events)


def test_what_the_turns_say() -> None:
    """Markers and newlines around reasoning are dropped, text ends before a stop string, calls are typed and in order."""
    events, generation = fed("reasoning and calls", range(2000))
    assert generation.message.reasoning == "Well, né.\n\nSo?"
    kinds = [type(each).__name__ for each in joined(events)]
    call = ["CallStart", "ArgumentsDelta", "CallEnd"]
    assert kinds == ["ReasoningDelta", *call, *call]
    starts = [each for each in events if isinstance(each, CallStart)]
    ends = [each for each in events if isinstance(each, CallEnd)]
    assert [(each.index, each.name) for each in starts] == [(0, "note"), (1, "stop_clock")]
    assert [each.call.arguments for each in ends] == [call.arguments for call in generation.tool_calls]
    assert fed("text that stops", [])[1].text == "naïve EN "
    assert fed("reasoning and text", [3])[1].message.reasoning == "I see</thin"
    assert fed("nothing but a beginning", [3])[1].text == "Enough. EN"


def test_a_name_is_told_before_the_arguments_are_written() -> None:
    """`CallStart` comes as soon as the name is certain; argument deltas come while they are written."""
    model = ScriptedModel([CALLS])
    seen: list[Event] = []
    for event in model.stream("x", tools=TOOLS, tool_choice="required"):
        seen.append(event)
        if isinstance(event, CallStart) and event.index == 0:
            assert not any(isinstance(each, ArgumentsDelta) for each in seen)
    pieces = [each.text for each in seen if isinstance(each, ArgumentsDelta) and each.index == 0]
    assert len(pieces) > 3
    assert isinstance(seen[-1], Finish) and seen[-1].usage.completion_tokens > 0
    assert sum(isinstance(each, Finish) for each in seen) == 1


def test_an_async_stream_yields_the_same_events() -> None:
    """`astream` yields what `stream` does, ids apart."""

    def typed(events: Sequence[Event]) -> list[Any]:
        return [
            (type(each).__name__, getattr(each, "text", None), getattr(each, "name", None)) for each in joined(events)
        ]

    async def collect() -> list[Event]:
        return [event async for event in ScriptedModel([CALLS]).astream("x", tools=TOOLS, tool_choice="required")]

    assert typed(asyncio.run(collect())) == typed(
        list(ScriptedModel([CALLS]).stream(Message("user", "x"), tools=TOOLS, tool_choice="required"))
    )


def test_calls_before_the_end_of_the_budget_are_whole() -> None:
    """What was written before the budget had its say is not cut; what is open there is named."""
    place = CALLS.encode().index(b'"a", ')
    first, second = fed("calls", [], closed_at=place)[1].tool_calls
    assert (first.cut, second.cut) == (("/tags", "/tags/0", "/tags/1"), ("",))
    whole, _ = fed("calls", [], closed_at=CALLS.encode().index(b"true"))[1].tool_calls
    assert whole.cut == ()


def write_file(path: str, content: str, lines: list[str], mode: str = "w") -> str:
    """Write a file."""
    return path


@pytest.mark.parametrize("name", ["pythonic", "qwen3-coder", "glm-4.5", "minimax-m2", "lfm2"])
def test_cut_arguments_are_named_where_calls_are_no_json(name: str, thorough: bool) -> None:
    """At every other budget, what is not named is what the model writes when it has room; what it was writing is named."""
    tools = ToolSet.from_any([write_file])
    arguments = {"path": "notes/a.txt", "content": "word " * 12, "lines": ["one", "two"], "mode": "a"}
    vocabulary = byte_vocabulary()
    wire = tools.wire_format(name, "", vocabulary.special)
    script = wire.render("", [ToolCall("1", "write_file", arguments)])
    request = GenerateParams(tools=tools, tool_choice="required", tool_format=name, parallel_tool_calls=False)
    with pytest.raises(BudgetError) as caught:
        ScriptedModel([script]).generate("x", request, max_tokens=1)
    least = int(re.findall(r"needs (\d+) tokens", str(caught.value))[0])
    seen = set()
    for budget in range(least, len(script.encode()) + 40, 1 if thorough else 2):
        generation = ScriptedModel([script]).generate("x", request, max_tokens=budget)
        (call,) = generation.tool_calls
        assert tools.validate(call).name == "write_file"
        named = {pointer.split("/")[1] for pointer in call.cut if pointer}
        if "" not in call.cut:
            for key, value in arguments.items():
                assert key in named or call.arguments.get(key) == value or key not in call.arguments
        assert call.cut or call.arguments == arguments
        assert generation.finish_reason == "length" or not call.cut
        seen.add(call.cut)
    # Each argument is, at some budget, the first that is not whole; what follows it is named with it.
    assert {("/path", "/content", "/lines"), ("/content", "/lines"), ("/lines",), ()} <= seen
