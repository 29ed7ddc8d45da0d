"""A stream is the whole answer: the same seed writes the same tokens, in every format and with every way to choose."""

from __future__ import annotations

from typing import Any, Literal

import pytest

from toolgrammar.core import CallStart, Finish, Generation, TextDelta
from toolgrammar.core.models.local_model import LocalModel
from toolgrammar.core.models.requests import request_of
from toolgrammar.tools import ToolSet
from toolgrammar.tools.formats import format_names, get_format

from ...core.backends import Noise


def paint(colour: Literal["red", "green", "dark red"], big: bool, places: list[int] | None = None) -> str:
    """Paint."""
    return colour


def find(word: str, kind: Literal["noun", "verb"] = "noun") -> str:
    """Find."""
    return word


TOOLS = ToolSet.from_any([paint, find])
DRAWN = {"temperature": 1.0, "top_p": 0.9}
WAYS: tuple[dict[str, Any], ...] = (
    {**DRAWN, "exact_choice": True},
    {**DRAWN, "exact_choice": True, "tool_choice": "required", "parallel_tool_calls": False},
    {**DRAWN, "tool_choice": "required", "jump_forward": False},
    {"temperature": 0.7, "min_p": 0.1, "repetition_penalty": 1.2, "tool_choice": "required"},
    {"temperature": 0.0, "tool_choice": "required", "exact_choice": True},
    {**DRAWN, "tool_choice": "required", "draft": 20, "equal_calls": True},
)


def answers(model: LocalModel, **options: Any) -> tuple[Generation, Generation, list[Any]]:
    """The whole answer, and the answer and the events of the stream, to one request."""
    whole = model.generate("Do.", **options)
    items = list(model._items(request_of("Do.", None, options, live=True)))
    streamed = next(item for item in items if isinstance(item, Generation))
    return whole, streamed, list(model.stream("Do.", **options))


@pytest.mark.parametrize(("number", "name"), [*enumerate(each for each in format_names() if each != "none")])
def test_a_stream_is_the_whole_answer(number: int, name: str, thorough: bool) -> None:
    """By seed and options, whole answer and stream have the same tokens, text, calls and counts: two ways in each
    format, so that each way meets a third of the formats, and all with ``--slow``."""
    wire = get_format(name)
    # Logits of a real model may differ in their last bits from one order of the same sums to another: here they do not.
    model = LocalModel(Noise(sorted(getattr(wire, "special", ())), seed=3, context_window=4_000))
    for seed, way in enumerate(WAYS):
        if seed % 3 != number % 3 and not thorough:
            continue
        whole, streamed, events = answers(model, tools=TOOLS, tool_format=name, seed=seed, max_tokens=260, **way)
        assert (streamed.raw, streamed.token_ids) == (whole.raw, whole.token_ids), (seed, way)
        assert "".join(event.text for event in events if isinstance(event, TextDelta)) == whole.text
        names = [event.name for event in events if isinstance(event, CallStart)]
        assert names == [call.name for call in whole.tool_calls]
        assert isinstance(events[-1], Finish)
        assert events[-1].usage.completion_tokens == whole.usage.completion_tokens
        assert events[-1].reason == whole.finish_reason
