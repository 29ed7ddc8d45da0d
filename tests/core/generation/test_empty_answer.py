"""Answers after the result of a tool may be empty: a model that has nothing to add is not made to call again."""

from __future__ import annotations

from contextlib import closing
from typing import Any

import numpy as np
import pytest

from toolgrammar.core import BudgetError, CallEnd, Message, ToolCall, load_model
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
        (ANSWERED, {"output_type": {"type": "integer"}}),
        (ANSWERED[:1], {}),
        ([*ANSWERED, Message("user", "And now?")], {}),
    ],
)
def test_other_answers_are_not_empty(conversation: Any, options: dict[str, Any]) -> None:
    """With the option off, after other messages, and where a call, text or JSON is demanded."""
    answer = asked(conversation, **options)
    assert answer.text or answer.tool_calls


def test_what_is_not_empty_is_as_before() -> None:
    """Text and calls after a result, whole and as events."""
    for wish in (Message("assistant", "Done."), CALLED):
        model = ScriptedModel([wish])
        answer = model.generate(ANSWERED, tools=TOOLS, max_tokens=100)
        assert (answer.text, [call.arguments for call in answer.tool_calls]) == (
            wish.text,
            [call.arguments for call in wish.tool_calls],
        )
    events = ScriptedModel([CALLED]).stream(ANSWERED, tools=TOOLS, max_tokens=100)
    assert [event.call.arguments for event in events if isinstance(event, CallEnd)] == [{"litres": 5}]


@pytest.mark.parametrize("budget", [1, 2, 3, 10, 47, 48])
def test_a_budget_keeps_room_for_an_answer(budget: int) -> None:
    """A model that wants a call that does not fit gets what it gets without the option; where that would be nothing but
    the beginning of the call, an empty answer, and without the option an error."""
    answers: list[Any] = []
    for empty in (True, False):
        try:
            model = ScriptedModel([CALLED])
            answers.append(model.generate(ANSWERED, tools=TOOLS, max_tokens=budget, empty_answer=empty))
        except BudgetError:
            answers.append(None)
    with_option, without = answers
    assert with_option.raw != ""
    if without is None:
        assert (with_option.text, with_option.tool_calls, with_option.finish_reason) == ("", (), "length")
    else:
        assert (with_option.raw, with_option.finish_reason) == (without.raw, without.finish_reason)


@pytest.mark.parametrize("options", [{"thinking": True}, {"draft": 4}])
def test_reasoning_leaves_room_for_an_answer(options: dict[str, Any]) -> None:
    """The budget of the reasoning is that of an answer that is not empty."""
    model = load_model("embedded")
    for seed in range(6):
        asked = {"tools": TOOLS, "max_tokens": 40, "temperature": 1.0, "seed": seed, **options}
        answer = model.generate(ANSWERED, **asked)
        assert answer.text or answer.tool_calls or answer.finish_reason == "stop"


def test_the_end_is_as_likely_as_the_model_has_it() -> None:
    """Of 200 sampled answers, as many are empty as the logits of the first token say, with a bias for the end."""
    model = load_model("embedded")
    vocabulary = model.vocabulary
    with closing(model.backend.start()) as session:
        prompt = model.backend.encode_prompt(ANSWERED, TOOLS.to_openai(), TOOLS.prompt("hermes"))
        logits = np.asarray(session.extend(prompt), dtype=np.float64)
    mask = TOOLS.grammar("hermes", other_spellings=True).bind(vocabulary).matcher().allowed_tokens()
    bias = dict.fromkeys(sorted(vocabulary.eos), 10.0)
    logits[list(bias)] += 10.0
    among = np.union1d(mask, sorted(vocabulary.eos))
    weights = np.exp(logits[among] - logits[among].max())
    share = weights[np.isin(among, sorted(vocabulary.eos))].sum() / weights.sum()
    options = {"tools": TOOLS, "tool_format": "hermes", "temperature": 1.0, "max_tokens": 10, "logit_bias": bias}
    empty = sum(not model.generate(ANSWERED, seed=seed, **options).raw for seed in range(200))
    assert 0.05 < share < 0.95
    assert abs(empty / 200 - share) < 4 * (share * (1 - share) / 200) ** 0.5, (empty, share)
