"""A draft: free text first, then the answer under its grammar, which the model writes after reading the draft."""

from __future__ import annotations

import json
from typing import Any

import pytest

from toolgrammar.core import BudgetError, JsonMode, ModelError, load_model
from toolgrammar.core.conversation import ReasoningDelta, TextDelta
from toolgrammar.core.models import LocalModel
from toolgrammar.core.testing import ScriptedModel
from toolgrammar.core.validation import is_valid
from toolgrammar.tools import ToolSet

SCHEMA = {
    "type": "object",
    "properties": {"a": {"enum": ["x", "yy"]}, "b": {"type": "string", "maxLength": 5}},
    "required": ["a", "b"],
    "additionalProperties": False,
}


def get_weather(city: str, days: int = 1) -> str:
    """Look up the weather."""


TOOLS = ToolSet.from_any([get_weather])


@pytest.fixture(scope="module")
def model() -> LocalModel:
    """The embedded model."""
    loaded = load_model("embedded")
    assert isinstance(loaded, LocalModel)
    return loaded


@pytest.mark.parametrize("size", [1, 5, 30])
def test_answers_after_a_draft_are_valid(model: LocalModel, size: int) -> None:
    """The draft is no longer than asked, and what follows is an answer of the grammar within the budget."""
    for seed in range(8):
        options: dict[str, Any] = {"temperature": 1.5, "seed": seed, "draft": size, "max_tokens": 90}
        answer = model.generate("Go.", output_type=SCHEMA, **options)
        assert is_valid(json.loads(answer.text), SCHEMA)
        assert answer.usage.reasoning_tokens <= size and answer.usage.completion_tokens <= 90
        call = model.generate("Go.", tools=TOOLS, tool_choice="required", **options)
        assert [TOOLS.validate(one).name for one in call.tool_calls][:1] == ["get_weather"]
        assert call.raw.startswith(call.message.reasoning or "")


def test_it_streams_as_reasoning(model: LocalModel) -> None:
    """Deltas of reasoning come first; joined they are the message's reasoning."""
    options: dict[str, Any] = {"output_type": SCHEMA, "draft": 12, "temperature": 1.0, "seed": 4, "max_tokens": 60}
    events = list(model.stream("Go.", **options))
    kinds = [type(event) for event in events if isinstance(event, (ReasoningDelta, TextDelta))]
    assert kinds == sorted(kinds, key=lambda kind: kind is TextDelta) and ReasoningDelta in kinds
    whole = model.generate("Go.", **options)
    assert "".join(event.text for event in events if isinstance(event, ReasoningDelta)) == whole.message.reasoning


def test_the_model_reads_its_draft() -> None:
    """The answer is written in the same turn, behind the draft and a line break."""
    model = ScriptedModel(["I think it is x.\n" + json.dumps({"a": "x", "b": "ok"})])
    drafted = model.generate("Go.", json_mode=JsonMode(SCHEMA), draft=len("I think it is x."))
    assert drafted.message.reasoning == "I think it is x."
    assert json.loads(drafted.text) == {"a": "x", "b": "ok"} and drafted.finish_reason == "stop"


def test_a_draft_may_end_early() -> None:
    """Where the model ends its turn the answer begins."""
    model = ScriptedModel(["Hm."])
    answer = model.generate("Go.", json_mode=JsonMode({"enum": ["yes"]}), draft=500)
    assert answer.message.reasoning == "Hm." and json.loads(answer.text) == "yes"


def test_wrong_requests(model: LocalModel) -> None:
    """No draft of no tokens; not beside thinking or a prefix; a budget below the shortest answer is an error."""
    with pytest.raises(ModelError, match="draft"):
        model.generate("x", draft=0)
    for options in ({"thinking": True, "thinking_markers": ("<r>", "</r>")}, {"prefix": "I "}):
        with pytest.raises(ModelError, match="exclude each other"):
            model.generate("x", draft=5, **options)  # type: ignore[arg-type]
    with pytest.raises(BudgetError):
        model.generate("x", output_type=SCHEMA, draft=5, max_tokens=2)
