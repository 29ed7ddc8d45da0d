"""How sure a model was of a call: the choices of its tool and of its values, by place."""

from __future__ import annotations

import itertools
import math
from typing import Any, Literal

import pytest

from toolgrammar.core import ChoiceMade, ToolCall, load_model
from toolgrammar.core.generation.sureness import sureness
from toolgrammar.core.testing import ScriptedModel
from toolgrammar.tools import ToolSet


def paint(colour: Literal["red", "green"], coats: Literal[1, 2], note: str, dry: bool = False) -> str:
    """Paint."""
    return colour


def stop(now: bool) -> str:
    """Stop."""
    return ""


TOOLS = ToolSet([paint, stop])


@pytest.mark.parametrize("tools", [TOOLS, ToolSet([paint])], ids=["two tools", "one tool"])
def test_the_values_are_those_of_the_choices(tools: ToolSet) -> None:
    """Each finite value has the probability of the word that was chosen there, and so has the tool if there are two."""
    model = load_model("embedded")
    answer = model.generate("Paint it.", tools=tools, tool_choice="paint", max_tokens=120, exact_choice=True)
    (call,) = answer.tool_calls
    (sure,) = answer.sureness
    assert (sure.id, sure.name) == (call.id, "paint")
    assert {"/colour", "/coats"} <= set(sure.values) <= {"/colour", "/coats", "/dry"}
    made = {choice.value: choice.probabilities[choice.value] for choice in answer.choices}
    assert sure.values["/colour"] == made[call.arguments["colour"]]
    assert sure.values["/coats"] == made[str(call.arguments["coats"])]
    assert sure.tool is None  # a named tool is no choice
    assert sure.least == min(sure.values.values())


def test_the_tool_is_a_choice_among_several() -> None:
    """With two tools the name has a probability; the probabilities of both add up to one."""
    answer = load_model("embedded").generate(
        "Do.", tools=TOOLS, tool_choice="required", parallel_tool_calls=False, max_tokens=120, exact_choice=True
    )
    (sure,) = answer.sureness
    chosen = next(choice for choice in answer.choices if choice.value == sure.name)
    assert sure.tool == chosen.probabilities[sure.name]
    assert math.isclose(sum(chosen.probabilities.values()), 1)


def test_several_calls_have_their_own() -> None:
    """Equal texts of two calls are told apart by their places."""
    reply = (
        '<tool_call>\n{"name": "stop", "arguments": {"now": true}}\n</tool_call>\n'
        '<tool_call>\n{"name": "stop", "arguments": {"now": true}}\n</tool_call>'
    )
    answer = ScriptedModel([reply]).generate("Do.", tools=TOOLS, exact_choice=True, equal_calls=True)
    first, second = answer.sureness
    assert first.id != second.id and set(first.values) == set(second.values) == {"/now"}


def test_without_exact_choices_nothing_is_known() -> None:
    """There is nothing to be sure of, and the least is 1."""
    answer = ScriptedModel(['<tool_call>\n{"name": "stop", "arguments": {"now": true}}\n</tool_call>']).generate(
        "Do.", tools=TOOLS
    )
    assert answer.sureness == ()


def _made(raw: str, *words: tuple[str, float]) -> list[ChoiceMade]:
    place = 0
    found = []
    for word, share in words:
        place = raw.index(word, place)
        found.append(ChoiceMade(place, word, {word: share}, 1.0))
        place += len(word)
    return found


@pytest.mark.parametrize("order", list(itertools.permutations(("a", "b"))))
def test_places_are_found_in_the_text(order: tuple[str, str]) -> None:
    """A value that is written like the tool's name is a value; names of members are none."""
    raw = '[{"name": "b", "arguments": {"b": "b", "x": [true, "a"]}}]'
    arguments: dict[str, Any] = {"b": "b", "x": [True, "a"]}
    call = ToolCall("1", "b", arguments, raw='{"b": "b", "x": [true, "a"]}')
    made = _made(raw, ("b", 0.9), ("b", 0.8), ("b", 0.7), ("x", 0.6), ("true", 0.5), ("a", 0.4))
    (sure,) = sureness(raw, [call], made)
    assert sure.tool == 0.9
    assert sure.values == {"/b": 0.7, "/x/0": 0.5, "/x/1": 0.4}
    other = ToolCall("2", order[0], {}, raw="(text of another notation)")
    assert sureness(raw, [other], made)[0].values == {}
