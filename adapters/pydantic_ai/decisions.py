"""`ToolGrammarDecisionModel`, a decision model of pydantic-ai: probabilities of whole answers under a local model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from toolgrammar.core.errors import ModelError
from toolgrammar.core.models import Decision, Model, Question

from .. import _shared
from .._shared import decisions as system_one
from .messages import SYSTEM, translated

try:
    from pydantic_ai.models.decision import (
        ChoiceAnswer,
        ChoiceQuestion,
        DecisionModel,
        DecisionRequest,
        DecisionResponse,
        NoulAnswer,
        NoulQuestion,
        ScoreAnswer,
        ScoreQuestion,
    )
    from pydantic_ai.profiles import ModelProfileSpec
    from pydantic_ai.settings import ModelSettings
    from pydantic_ai.usage import RequestUsage
except ImportError as error:
    raise _shared.missing("pydantic-ai-slim", "pydantic-ai") from error

__all__ = ["ToolGrammarDecisionModel"]

#: For each kind, the classes of its questions and of their answers.
_KINDS: Mapping[str, tuple[Any, Any]] = {
    "noul": (NoulQuestion, NoulAnswer),
    "choice": (ChoiceQuestion, ChoiceAnswer),
    "score": (ScoreQuestion, ScoreAnswer),
}


class ToolGrammarDecisionModel(DecisionModel[Any]):  # type: ignore[misc]
    """A local model as a decision model: each question gets the probability of each whole answer (`Model.decide`).

    ::

        agent = Agent(ToolGrammarDecisionModel("smollm2"), output_type=Triage)

    Args:
        model: the address of a model, as `load_model` takes it, or a loaded model, which several objects may share.
        options: keyword options for loading ``model``.
        orders: number of orders of the answers over which the probabilities are averaged, 1 to 24.
        prior: divide by the probabilities with an empty state.
        settings: of every request; ``timeout`` is in seconds.
        profile: changes to the model's profile.

    Raises:
        ModelError: the model cannot be loaded, or is on a server, where no logits are seen; or an option is wrong.
    """

    max_choice_options: ClassVar[int | None] = Model.MAX_LABELS
    max_score_levels: ClassVar[int | None] = Model.MAX_LEVELS
    max_questions: ClassVar[int | None] = Model.MAX_QUESTIONS

    def __init__(
        self,
        model: str | Model = "embedded",
        *,
        options: Mapping[str, Any] | None = None,
        orders: int = 1,
        prior: bool = False,
        settings: ModelSettings | None = None,
        profile: ModelProfileSpec | None = None,
    ) -> None:
        Model.check_options(orders, prior, False, None)
        self._orders, self._prior = orders, prior
        self._loaded = _shared.LoadedModel(model, options)
        system_one.require_logits(self._loaded)
        super().__init__(settings=settings, profile=profile)

    @property
    def model_name(self) -> str:
        """The address of the model, or the loaded model's own name."""
        return self._loaded.name

    @property
    def system(self) -> str:
        """The provider: toolgrammar."""
        return SYSTEM

    async def decide(self, request: DecisionRequest, model_settings: Any) -> DecisionResponse:
        """Return the answers to questions about a state.

        Raises:
            ToolGrammarError: the request cannot be done, or failed; also an error of pydantic-ai.
        """
        settings = model_settings or {}
        with translated(self.model_name):
            if request.images:
                raise ModelError("the request has images", hint="send text and JSON only")
            questions = {name: _question(one) for name, one in request.questions.items()}
            decided = await self._loaded.model().adecide(
                request.state, questions, orders=self._orders, prior=self._prior, timeout=settings.get("timeout")
            )
        return DecisionResponse(
            answers={name: _answer(request.questions[name], one) for name, one in decided.items()},
            model_name=self.model_name,
            usage=RequestUsage(input_tokens=system_one.prompt_tokens(decided)),
        )


def _kind(question: Any) -> str:
    """Return the kind of a question: ``"noul"``, ``"choice"`` or ``"score"``."""
    return next(kind for kind, (of_kind, _) in _KINDS.items() if isinstance(question, of_kind))


def _question(question: Any) -> Question:
    kind, criteria = _kind(question), question.criteria
    if kind == "noul" and criteria is not None:
        criteria = criteria.true, criteria.false
    return system_one.question_of(kind, question.instructions, criteria)


def _answer(question: Any, decision: Decision) -> Any:
    kind = _kind(question)
    return _KINDS[kind][1](**system_one.answer_fields(kind, question.criteria, decision))
