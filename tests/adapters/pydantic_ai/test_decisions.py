"""The decision model for pydantic-ai: the answers of `Model.decide`, and agents that run on them."""

from __future__ import annotations

from functools import partial
from typing import Any, Literal

import pytest
from pydantic import BaseModel, Field

pytest.importorskip("pydantic_ai", reason="pydantic-ai-slim is not installed")

from pydantic_ai import Agent, BinaryContent
from pydantic_ai.exceptions import UserError
from pydantic_ai.models.decision import ChoiceQuestion, DecisionRequest, NoulCriteria, NoulQuestion, ScoreQuestion

from toolgrammar.adapters.pydantic_ai import ToolGrammarDecisionModel
from toolgrammar.core import ModelError
from toolgrammar.core.models import OneOf, Scale, YesNo, load_model

pytestmark = pytest.mark.asyncio

QUESTIONS: dict[str, Any] = {
    "urgent": NoulQuestion(instructions="Is it urgent?", criteria=NoulCriteria(true="act now", false={"wait": 1})),
    "team": ChoiceQuestion(instructions="Which team?", criteria={"billing": "money", "billing disputes": None}),
    "mood": ScoreQuestion(criteria=["calm", "cross", "furious"]),
}


@pytest.mark.parametrize("options", [{}, {"orders": 2}, {"prior": True}])
async def test_answers_are_those_of_decide(options: dict[str, Any]) -> None:
    """Each kind of question has the probabilities of the whole answers, which add up to 1."""
    model = load_model("embedded")
    found = await ToolGrammarDecisionModel(model, **options).decide(
        DecisionRequest(state={"text": "It is down!"}, questions=QUESTIONS), {}
    )
    ours = {
        "urgent": YesNo("Is it urgent?", "act now", '{"wait": 1}'),
        "team": OneOf("Which team?", {"billing": "money", "billing disputes": ""}),
        "mood": Scale("", ["calm", "cross", "furious"]),
    }
    expected = model.decide({"text": "It is down!"}, ours, **options)
    urgent, team, mood = (found.answers[name] for name in QUESTIONS)
    close = partial(pytest.approx, rel=1e-4)  # prefixes in the cache change the last digits
    assert urgent.noul == close(expected["urgent"].probabilities[True])
    assert team.probabilities == close(dict(expected["team"].probabilities)) and team.choice == expected["team"].value
    assert mood.score == close(expected["mood"].value) and mood.legend == {0: "calm", 1: "cross", 2: "furious"}
    for answer in (team, mood):
        assert sum(answer.probabilities.values()) == pytest.approx(1)
        assert answer.confidence == max(answer.probabilities.values())
    assert found.usage.input_tokens > 0 and found.model_name == model.name


async def test_an_agent_decides() -> None:
    """The output class has a yes/no, a choice and a score; the framework reads the answers."""

    class Triage(BaseModel):
        """What to do with a message."""

        urgent: bool = Field(description="Is it urgent?")
        team: Literal["billing", "support"] = Field(description="Which team?")

    agent = Agent(ToolGrammarDecisionModel("embedded"), output_type=Triage)
    result = await agent.run("It is down!")
    assert isinstance(result.output, Triage)
    async with agent.run_stream("It is down!") as stream:
        assert await stream.get_output() == result.output


async def test_what_cannot_be_decided_is_an_error() -> None:
    """A model on a server, wrong options, images, a field of free text."""
    with pytest.raises(ModelError, match="shows no logits"):
        ToolGrammarDecisionModel("openai:m@http://127.0.0.1:1/v1")
    with pytest.raises(ModelError, match="orders"):
        ToolGrammarDecisionModel("embedded", orders=99)
    model = ToolGrammarDecisionModel("embedded")
    image = BinaryContent(b"\x89PNG", media_type="image/png")
    with pytest.raises(UserError, match="images"):
        await model.decide(DecisionRequest(state="x", questions=QUESTIONS, images=(image,)), {})
    with pytest.raises(UserError):
        await Agent(model, output_type=type("Free", (BaseModel,), {"__annotations__": {"text": str}})).run("x")
