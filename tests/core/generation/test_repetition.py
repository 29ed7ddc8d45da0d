"""Loops of a model inside a string: they are closed, and told; honest text is not touched."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

from toolgrammar.core import BudgetError
from toolgrammar.core.generation.repetition import LEAST_BYTES, bound_of, repeated_unit
from toolgrammar.core.testing import ScriptedModel
from toolgrammar.tools import ToolSet

NOTE: dict[str, Any] = {
    "type": "object",
    "properties": {"note": {"type": "string"}, "n": {"type": "integer"}},
    "required": ["note", "n"],
    "additionalProperties": False,
}


def answer_with(note: str, **options: Any) -> Any:
    """Let a model write a note; return the answer."""
    model = ScriptedModel([json.dumps({"note": note, "n": 7}, ensure_ascii=False)])
    return model.generate("Go.", output_type=NOTE, **{"max_tokens": 3_000, "max_repetition": 384, **options})


@pytest.mark.parametrize("unit", ["a", " ", "\n", "ha ", "é", "I will do it again. ", "x" * 30 + "y" * 30])
def test_a_loop_is_closed_and_told(unit: str) -> None:
    """The string ends soon after the bound; the rest is written; the value is named as cut."""
    answer = answer_with("Now: " + unit * 1_200)
    value = json.loads(answer.text)
    size = len(json.dumps(value["note"], ensure_ascii=False).encode())
    assert value["n"] == 7 and LEAST_BYTES <= size <= LEAST_BYTES + 64 + 16
    assert answer.repeated and answer.finish_reason == "length" and "/note" in answer.cut
    spelled = json.dumps(unit, ensure_ascii=False)[1:-1] * 3
    assert answer.repeated in spelled or len(answer.repeated) <= len(spelled)


def test_honest_text_is_not_cut() -> None:
    """Text without a loop, or with a short one, comes whole."""
    draw = random.Random(1)
    words = " ".join(draw.choice(["red", "green", "blue", "-" * 60, " " * 40]) for _ in range(60))
    for note in (words, "=" * 370, "ab" * 180, "0, " * 100 + words):
        answer = answer_with(note)
        assert json.loads(answer.text) == {"note": note, "n": 7}
        assert answer.repeated is None and answer.finish_reason == "stop"


def test_the_bound_comes_from_the_budget() -> None:
    """By default as many bytes as the budget has tokens, at least 384; 0 switches it off."""
    assert (bound_of(None, 100), bound_of(None, 5_000), bound_of(0, 100), bound_of(50, 5_000)) == (384, 5_000, 0, 50)
    for options in ({"max_repetition": 0}, {"max_repetition": None}):
        assert json.loads(answer_with("a" * 1_500, **options).text)["note"] == "a" * 1_500
    assert answer_with("a" * 2_000, max_repetition=None, max_tokens=2_100, jump_forward=False).repeated is None


def test_a_cut_call_does_not_run() -> None:
    """A call with a closed string is told as cut; with ``on_budget="error"`` there is an error."""

    def write(path: str, content: str) -> str:
        """Write a file."""
        return "written"

    tools = ToolSet.from_any([write])
    call = (
        '<tool_call>\n{"name": "write", "arguments": {"path": "a.txt", "content": "' + "na " * 500 + '"}}\n</tool_call>'
    )
    options: dict[str, Any] = {"tools": tools, "tool_choice": "required", "tool_format": "hermes", "max_tokens": 2_500}
    answer = ScriptedModel([call]).generate("Go.", max_repetition=384, **options)
    assert [one.cut for one in answer.tool_calls] == [("/content",)]
    assert tools.validate(answer.tool_calls[0]).arguments["path"] == "a.txt"
    with pytest.raises(BudgetError, match=r"repeats '(na | na|a n)'"):
        ScriptedModel([call]).generate("Go.", max_repetition=384, on_budget="error", **options)


ROWS: dict[str, Any] = {
    "type": "object",
    "properties": {
        "rows": {"type": "array", "items": {"type": ["integer", "string", "object"]}},
        "n": {"type": "integer"},
    },
    "required": ["rows", "n"],
}


@pytest.mark.parametrize("item", [0, "ha", -12, {"a": 1}])
def test_a_list_that_repeats_an_item_is_closed(item: Any) -> None:
    """The list ends soon after the bound, the rest is written, and the list is named as cut."""
    script = json.dumps({"rows": [1, 2, *[item] * 1_500], "n": 7})
    answer = ScriptedModel([script]).generate("Go.", output_type=ROWS, max_tokens=9_000, max_repetition=600)
    value = json.loads(answer.text)
    assert value["rows"][:3] == [1, 2, item] and value["n"] == 7
    assert 600 <= len(json.dumps(value["rows"])) <= 600 + 64 + 32
    assert answer.repeated and answer.finish_reason == "length" and answer.cut[0].startswith("/rows")


def test_a_list_of_honest_length_is_not_cut() -> None:
    """By default 500 equal items are no loop, and items that differ never are; a list that must be long is left."""
    for rows in ([0] * 500, list(range(2_000)), [0, 1] * 200):
        answer = ScriptedModel([json.dumps({"rows": rows, "n": 7})]).generate("Go.", output_type=ROWS, max_tokens=1_600)
        assert answer.repeated is None
    fixed = {"type": "array", "items": {"type": "integer"}, "minItems": 400, "maxItems": 400}
    zeros = ScriptedModel([json.dumps([0] * 400)]).generate(
        "Go.", output_type=fixed, max_tokens=3_000, max_repetition=90
    )
    assert json.loads(zeros.text) == [0] * 400


def test_a_text_that_repeats_itself_ends() -> None:
    """Free text is over after the bound, told as cut by length; ordinary text is not touched."""
    model = ScriptedModel(["Well. " + "I will do it. " * 400, "Well. " + "I will do it. " * 20])
    answer = model.generate("Go.", max_tokens=6_000, max_repetition=384)
    assert (
        answer.finish_reason == "length" and len(answer.text) < 384 + 6 + 64 and answer.repeated in "I will do it. " * 2
    )
    assert model.generate("Go.", max_tokens=6_000).repeated is None
    loop = ScriptedModel(["no " * 3_000] * 2)
    assert loop.generate("Go.", max_tokens=2_000).repeated is None  # ends with its budget
    with pytest.raises(BudgetError, match="repeats"):
        loop.generate("Go.", max_tokens=6_000, max_repetition=384, on_budget="error")


def test_units() -> None:
    """The shortest repeated text is found; a tail that is too short, or repeats nothing, has none."""
    from toolgrammar.core import Vocabulary

    vocabulary = Vocabulary([bytes((byte,)) for byte in range(256)] + [None], eos=[256])
    for text, size, unit in (
        (b"abab" * 30, 100, b"ab"),
        (b"aaa", 3, b"a"),
        (b"abc" * 5, 16, b""),
        (b"abcdefgh", 8, b""),
    ):
        assert repeated_unit(vocabulary, list(text), size) == unit
