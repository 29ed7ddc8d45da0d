"""Every budget from the least on: the call is valid, within it, and honest about what was cut."""

from __future__ import annotations

import re
from typing import Any, Literal

import jsonschema
import pytest

from toolgrammar.core import BudgetError, InvalidArgumentsError, Model, load_model
from toolgrammar.tools import ToolSet


def send_mail(to: list[str], subject: str, body: str, priority: Literal["low", "high"] = "low") -> str:
    """Send a mail."""
    return "sent"


def convert(amount: float, source: str, target: Literal["EUR", "USD", "NOK"]) -> str:
    """Convert money."""
    return "converted"


def plan(steps: list[dict[str, str]], dry: bool = True) -> str:
    """Plan a trip."""
    return "planned"


REQUESTS = {"one": [convert], "three": [send_mail, convert, plan], "nested": [plan]}


@pytest.fixture(scope="module")
def noise() -> Model:
    """The embedded model: what it writes does not end by itself."""
    return load_model("embedded")


@pytest.mark.parametrize("name", REQUESTS)
def test_every_budget(noise: Model, name: str) -> None:
    """Below the least budget an error names it; from there on each call is valid, and a cut one is not run."""
    tools = ToolSet.from_any(REQUESTS[name])
    request: dict[str, Any] = {"tools": tools, "tool_choice": "required", "temperature": 1.0}
    with pytest.raises(BudgetError) as caught:
        noise.generate("x", max_tokens=2, **request)
    least = int(re.findall(r"needs (\d+) tokens", str(caught.value))[0])
    with pytest.raises(BudgetError):
        noise.generate("x", max_tokens=least - 1, **request)
    cut = 0
    for budget in range(least, 60, 4):
        generation = noise.generate("x", max_tokens=budget, seed=budget, **request)
        assert generation.usage.completion_tokens <= budget
        for call in generation.tool_calls:
            jsonschema.validate(dict(call.arguments), dict(tools[call.name].parameters))
            if call.cut:
                cut += 1
                assert generation.finish_reason == "length"
                with pytest.raises(InvalidArgumentsError, match="truncated"):
                    tools.call(call)
                assert tools.execute(call).error is not None
                tools.call(call, allow_cut=True)
    assert cut > 2


def test_closing_can_be_refused(noise: Model) -> None:
    """With on_budget="error" nothing is closed by force: either the call is whole, or there is an error."""
    tools = ToolSet.from_any([convert])
    whole = errors = 0
    for seed in range(6):
        try:
            generation = noise.generate(
                "x", tools=tools, tool_choice="required", temperature=1.0, seed=seed, max_tokens=60, on_budget="error"
            )
        except BudgetError as error:
            assert "ran out" in str(error)
            errors += 1
        else:
            assert all(call.cut == () for call in generation.tool_calls)
            whole += 1
    assert whole + errors == 6 and errors > 0
