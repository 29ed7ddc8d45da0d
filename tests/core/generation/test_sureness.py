"""How sure a model was of a call: the choices of its tool and of its values, by place."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from typing import Any, Literal

import pytest

from toolgrammar.core import (
    ChoiceMade,
    Generation,
    ToolCall,
    load_model,
)
from toolgrammar.core.generation.call_places import AnswerReading, CallPlaces
from toolgrammar.core.generation.sureness import sureness
from toolgrammar.core.models import LocalModel
from toolgrammar.core.testing import ScriptedModel
from toolgrammar.tools import Tool, ToolSet
from toolgrammar.tools.formats import format_names, get_format

from ..backends import Noise


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


def _closed(names: str, **properties: Any) -> ToolSet:
    """Tools of these names, each with the same arguments."""
    schema = {"type": "object", "properties": properties, "additionalProperties": False}
    return ToolSet([Tool(name, "", schema) for name in names])


def _places(raw: str, tools: ToolSet, format: str) -> list[CallPlaces]:
    """The places of the calls of a text."""
    reading = AnswerReading(lambda: tools.grammar(get_format(format).for_vocabulary(()), marked=True))
    reading.feed(raw, 0)
    return reading.calls()


def test_places_are_found_in_the_text() -> None:
    """A value that is written like the tool's name is a value; names of members are none."""
    raw = '[{"name": "b", "arguments": {"b": "b", "x": [true, "a"]}}]'
    call = ToolCall("1", "b", {"b": "b", "x": [True, "a"]})
    made = _made(raw, ("b", 0.9), ("b", 0.8), ("b", 0.7), ("x", 0.6), ("true", 0.5), ("a", 0.4))
    (places,) = _places(raw, _closed("ab", b={"type": "string"}, x={"type": "array"}), "json")
    (sure,) = sureness([call], made, {"1": places})
    assert sure.tool == 0.9
    assert sure.values == {"/b": 0.7, "/x/0": 0.5, "/x/1": 0.4}
    assert sure.other == 0.6 and sure.least == 0.4  # the names


# -- every wire format -------------------------------------------------------------------------------------------------


def lift(floor: Literal[1, 2, 3], door: Literal["left", "right"], alarm: bool) -> str:
    """Lift."""
    return door


LIFTS = ToolSet([lift, stop])


def _word(written: str) -> str:
    """A word as JSON would write it, without the namespace of a tool."""
    word = written.strip("'\"").rpartition(".")[2]
    return word.lower() if word in ("True", "False") else word


def _words(call: ToolCall) -> Iterator[tuple[str | None, str]]:
    """The words of a call in order: the pointer and the word; None is the tool's."""
    yield None, call.name
    for name, value in call.arguments.items():
        yield f"/{name}", str(value).lower() if isinstance(value, bool) else str(value)


def _expected(answer: Generation, tools: set[str]) -> list[dict[str | None, float]]:
    """By calls, the probability of the tool (None) and of each value, from the choices in their order."""
    known = {"1", "2", "3", "left", "right", "true", "false", *tools}
    choices = [made for made in answer.choices if _word(made.value) in known]
    found = []
    for call in answer.tool_calls:
        found.append({})
        for pointer, word in _words(call):
            if choices and _word(choices[0].value) == word:
                made = choices.pop(0)
                found[-1][pointer] = made.probabilities[made.value]
    return found


@pytest.mark.parametrize(("number", "name"), [*enumerate(format_names())])
def test_each_choice_belongs_to_its_call(number: int, name: str, thorough: bool) -> None:
    """In every format, with its markers as text and as control tokens, two tools in a turn, and calls that are left out
    because they repeat another: the choices of names and values are those of the calls, in the same order."""
    specials = sorted(getattr(get_format(name), "special", ()))
    seen = 0
    models = (load_model("embedded"), LocalModel(Noise(specials, seed=7, context_window=2000)))
    for (seed, model), equal_calls in itertools.product(enumerate(models), (False, True)):
        if (seed + number) % 2 != equal_calls and not thorough:  # one model each
            continue
        answer = model.generate(
            "Lift it.",
            tools=LIFTS,
            tool_choice="required",
            max_tokens=600,
            exact_choice=True,
            temperature=1.0,
            seed=seed,
            tool_format=name,
            equal_calls=equal_calls,
        )
        assert answer.tool_calls and len(answer.sureness) == len(answer.tool_calls)
        for sure, expected in zip(answer.sureness, _expected(answer, {"lift", "stop"}), strict=True):
            given = dict(sure.values) if sure.tool is None else {None: sure.tool, **sure.values}
            assert given == expected, answer.raw
            least = [*expected.values(), *(() if sure.other is None else (sure.other,))]
            assert sure.least == min(least, default=1.0)
            seen += len(expected)
    assert seen


@pytest.mark.parametrize("name", ["hermes", "qwen3-coder", "pythonic", "kimi-k2"])
def test_a_call_without_a_choice_has_no_entry(name: str) -> None:
    """One tool, and free text: nothing is said, so that nobody takes what tokens decided for certain."""
    schema = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
    tools = ToolSet([Tool("say", "", {**schema, "additionalProperties": False})])
    answer = load_model("embedded").generate(
        "Say.", tools=tools, tool_choice="say", max_tokens=300, exact_choice=True, temperature=1.0, tool_format=name
    )
    assert answer.tool_calls and answer.sureness == ()


@pytest.mark.parametrize(
    "reply",
    [
        '[stop(now=True), lift(floor=2, door="left", alarm=False)]',
        "```tool_code\nlift(floor=2, door='left', alarm=False)\n```",
        "<function=lift>\n<parameter=floor>\n2\n</parameter>\n<parameter=door>\nleft\n</parameter>\n"
        "<parameter=alarm>\nfalse\n</parameter>\n</function>",
    ],
)
def test_calls_in_another_spelling(reply: str) -> None:
    """A call in the spelling of another family has its choices, too."""
    answer = ScriptedModel([reply]).generate("Lift.", tools=LIFTS, exact_choice=True)
    *before, sure = answer.sureness
    assert answer.raw == reply and set(sure.values) == {"/floor", "/door", "/alarm"}
    assert all(set(each.values) == {"/now"} for each in before)
    made = [choice.probabilities[choice.value] for choice in answer.choices]
    assert min(each.least for each in answer.sureness) == min(made)


# -- other notations ---------------------------------------------------------------------------------------------------


def test_a_text_like_a_value_is_none() -> None:
    """Free text that is written like a later value, and names that are, are told apart by their places."""
    raw = "[f(note='red', x='note', colour='red')]"
    call = ToolCall("1", "f", {"note": "red", "x": "note", "colour": "red"})
    choices = [
        ChoiceMade(raw.index("x="), "x", {"x": 0.9, "y": 0.1}, 1.0),
        ChoiceMade(raw.index("note'"), "note", {"note": 0.8, "b": 0.2}, 1.0),
        ChoiceMade(raw.rindex("red"), "red", {"red": 0.7, "blue": 0.3}, 1.0),
    ]
    text = {"type": "string"}
    (places,) = _places(raw, _closed("f", note=text, x=text, y=text, colour=text), "pythonic")
    (sure,) = sureness([call], choices, {"1": places})
    assert sure.values == {"/x": 0.8, "/colour": 0.7} and (sure.tool, sure.other, sure.least) == (None, 0.9, 0.7)


def test_a_value_of_several_words_has_the_least() -> None:
    """A choice lowers the probability of the tool or value in which it is; one of a call that is left out, none."""
    raw = "[f(a='x|y', b=10), g(b=10)]"
    calls = [ToolCall("1", "f", {"a": "x|y", "b": 10}), ToolCall("2", "g", {"b": 10})]
    choices = [
        ChoiceMade(raw.index("x"), "x", {"x": 0.9, "z": 0.1}, 1.0),
        ChoiceMade(raw.index("|"), "|", {"|": 0.2, "-": 0.8}, 1.0),
        ChoiceMade(raw.index("y"), "y", {"y": 0.8, "z": 0.2}, 1.0),
        ChoiceMade(raw.index("10"), "10", {"1": 0.3, "10": 0.7}, 1.0),
        ChoiceMade(raw.index("g("), "g", {"f": 0.5, "g": 0.5}, 1.0),
        ChoiceMade(raw.rindex("10"), "10", {"1": 0.4, "10": 0.6}, 1.0),
    ]
    tools = _closed("fg", a={"type": "string"}, b={"type": "integer"})
    places = dict(zip("12", _places(raw, tools, "pythonic"), strict=True))
    first, second = sureness(calls, choices, places)
    assert first.values == {"/a": 0.2, "/b": 0.7} and (first.tool, first.other, first.least) == (None, None, 0.2)
    assert second.values == {"/b": 0.6} and (second.tool, second.other, second.least) == (0.5, None, 0.5)
    assert sureness(calls[1:], choices, places) == (second,)


def test_markup_is_no_choice_of_the_call() -> None:
    """An id before the arguments, and whether another call follows, do not count; text before a call is no call."""
    raw = '{"a": 1} [TOOL_CALLS]f[CALL_ID]abcdefghi[ARGS]{"a": 1}[TOOL_CALLS]f[CALL_ID]ABCDEFGHI[ARGS]{"a": 1}'
    begin = raw.index("f[")
    choices = [
        ChoiceMade(raw.index("1"), "1", {"1": 0.5, "2": 0.5}, 1.0),
        ChoiceMade(begin, "f", {"f": 0.9, "g": 0.1}, 1.0),
        ChoiceMade(raw.index("abc"), "abc", {"abc": 0.1, "abd": 0.9}, 1.0),
        ChoiceMade(raw.index("1", begin), "1", {"1": 0.8, "2": 0.2}, 1.0),
        ChoiceMade(raw.rindex("[TOOL"), "[TOOL_CALLS]", {"[TOOL_CALLS]": 0.2, "more": 0.8}, 1.0),
    ]
    places = _places(raw, _closed("fg", a={"type": "integer"}), "mistral-v11")
    (sure,) = sureness([ToolCall("1", "f", {"a": 1})], choices, {"1": places[0]})
    assert (sure.tool, sure.values, sure.other) == (0.9, {"/a": 0.8}, None)


def test_a_word_counts_where_the_words_differ() -> None:
    """A choice that begins in a call with certain text, and is one of what follows it, is no choice of the call."""
    raw = '[{"name": "f", "arguments": {"a": 1}}, '
    choices = [
        ChoiceMade(raw.index("1"), "1", {"1": 0.7, "2": 0.3}, 1.0),
        ChoiceMade(raw.index("1"), "1}}, ", {"1}}, ": 0.2, "1}}]": 0.8}, 1.0),
    ]
    (places,) = _places(raw, _closed("f", a={"type": "integer"}), "json")
    (sure,) = sureness([ToolCall("1", "f", {"a": 1})], choices, {"1": places})
    assert sure.values == {"/a": 0.7} and sure.least == 0.7
