"""Properties that explain come before those that answer."""

from __future__ import annotations

import json
import logging
from typing import Any

import pytest

from toolgrammar.core import JsonMode, load_model, reasoning_first
from toolgrammar.core.schema.read.reasoning_order import answers_before_reasons, explains
from toolgrammar.tools import ToolSet

GRADED: dict[str, Any] = {
    "type": "object",
    "properties": {
        "score": {"enum": [1, 2]},
        "explanation": {"enum": ["bad", "good"]},
        "parts": {
            "type": "array",
            "maxItems": 1,
            "items": {"type": "object", "properties": {"label": {"const": "x"}, "chainOfThought": {"const": "y"}}},
        },
        "why_not": {"const": {"properties": {"answer": 1, "reason": 2}}},
    },
    "required": ["score", "explanation"],
    "propertyOrdering": ["score", "explanation"],
}


def test_explanations_come_first_at_every_depth() -> None:
    """Names keep their order otherwise; data is not touched; the schema is not changed."""
    before = json.dumps(GRADED)
    ordered = reasoning_first(GRADED)
    assert json.dumps(GRADED) == before
    assert list(ordered["properties"]) == ["explanation", "why_not", "score", "parts"]
    assert list(ordered["properties"]["parts"]["items"]["properties"]) == ["chainOfThought", "label"]
    assert ordered["propertyOrdering"] == ["explanation", "score"]
    assert ordered["properties"]["why_not"] == GRADED["properties"]["why_not"]
    assert reasoning_first(True) is True


@pytest.mark.parametrize(
    ("name", "is_one"),
    [("reasoning", True), ("chain_of_thought", True), ("whyNot", True), ("season", False), ("analysis_score", False)],
)
def test_names(name: str, is_one: bool) -> None:
    """Words of a name decide; a score of an analysis is an answer."""
    assert explains(name) is is_one


def test_places_are_named() -> None:
    """The pointers of explanations that come after an answer."""
    assert list(answers_before_reasons(GRADED)) == [
        "/properties/explanation",
        "/properties/parts/items/properties/chainOfThought",
    ]
    assert list(answers_before_reasons(reasoning_first(GRADED))) == []


def test_json_mode_writes_them_first(caplog: pytest.LogCaptureFixture) -> None:
    """With the option the explanation is written first; without it the order of the schema is kept, with a warning."""
    model = load_model("embedded")
    with caplog.at_level(logging.WARNING):
        first = json.loads(model.generate("Go.", json_mode=JsonMode(GRADED, reasoning_first=True)).text)
    assert list(first)[:1] == ["explanation"] and not caplog.records
    with caplog.at_level(logging.WARNING):
        plain = json.loads(model.generate("Go.", json_mode=JsonMode(GRADED)).text)
    assert list(plain)[:1] == ["score"]
    assert [record.args[0] for record in caplog.records if record.args] == list(answers_before_reasons(GRADED))


def test_tools() -> None:
    """`ToolSet.reasoning_first` orders the arguments of its tools; they allow the same calls."""

    def judge(verdict: bool, reasoning: str) -> str:
        """Judge."""
        return "judged"

    tools = ToolSet.from_any([judge])
    ordered = tools.reasoning_first()
    assert list(ordered["judge"].parameters["properties"]) == ["reasoning", "verdict"]
    assert ordered.call({"name": "judge", "arguments": {"reasoning": "so", "verdict": True}}) == "judged"
