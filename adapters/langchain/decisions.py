"""`ToolGrammarDecisions`, a decision model of LangChain: probabilities of whole answers under a local model.

::

    from toolgrammar.adapters.langchain import ToolGrammarDecisions

    classifier = ToolGrammarDecisions(model="smollm2")
    classifier.invoke({"state": "It is down!", "questions": {"urgent": Noul(instructions="Is it urgent?")}})
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pydantic import ConfigDict, Field, model_validator

from toolgrammar.core.errors import MissingDependencyError, ModelError
from toolgrammar.core.models import Decision, Model

from .. import _shared
from .._shared import decisions as system_one

try:
    from langchain_core.decisions import BaseDecisionModel, Box, Choice, ClassifierResponse, Noul
    from langchain_core.decisions import Score as ScoreQuestion
    from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
except ImportError as error:
    raise MissingDependencyError(
        "toolgrammar.adapters.langchain.decisions needs langchain-core of version 1.8 or newer, which is not installed",
        hint="pip install 'langchain-core>=1.8'",
    ) from error

from . import messages as translation
from .saved import Saved

if TYPE_CHECKING:
    from toolgrammar.core.models import Question

__all__ = ["ToolGrammarDecisions"]

_KINDS: Mapping[str, Any] = {"noul": Noul, "choice": Choice, "score": ScoreQuestion}

#: Types of LangChain's blocks that no prompt here shows, and the keys of which such a block has one.
_MEDIA = frozenset({"image", "image_url", "input_image", "audio", "input_audio", "video", "file", "document"})
_SOURCES = frozenset({"base64", "url", "file_id", "data", "image_url", "input_audio", "source", "source_type", "file"})


class ToolGrammarDecisions(Saved, BaseDecisionModel):  # type: ignore[misc,unused-ignore]  # it needs langchain-core 1.8
    """A local model as a decision model: a `Noul`, `Choice` or `Score` gets the probability of each whole answer.

    The answers are those of `Model.decide`. ``confidence`` is the largest probability.

    Args:
        model: the address of a model, as `load_model` takes it, or a loaded model, which several objects may share.
        options: keyword options for loading ``model``.
        orders: number of orders of the answers over which the probabilities are averaged, 1 to 24.
        prior: divide by the probabilities with an empty state.
        timeout: seconds for one request.

    Raises:
        ModelError: the model cannot be loaded, or is on a server, where no logits are seen; or a setting is not known
            or has a wrong value.

    Attributes:
        loaded: the loaded model, shared with copies of this object.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True)

    model: Any = "embedded"
    options: dict[str, Any] = Field(default_factory=dict)
    orders: int = 1
    prior: bool = False
    timeout: float | None = None

    loaded: Any = Field(default=None, exclude=True, repr=False)

    @model_validator(mode="before")
    @classmethod
    def _read_settings(cls, values: Any) -> Any:
        """Refuse unknown settings, which would change nothing, unseen."""
        if isinstance(values, Mapping):
            _shared.require_known(values, cls.model_fields, "unknown setting:", {"options": _shared.LOADING})
        return values

    def model_post_init(self, context: Any, /) -> None:
        """Load the model, and check the settings: a wrong one is an error now, not at the first call."""
        super().model_post_init(context)
        Model.check_options(self.orders, self.prior, False, self.timeout)
        if self.loaded is None or not self.loaded.is_for(self.model, self.options):
            self.loaded = _shared.LoadedModel(self.model, self.options)
        system_one.require_logits(self.loaded)
        self.model, self.options = self.loaded.name, self.loaded.options

    @property
    def _provider(self) -> str:
        return translation.PROVIDER

    def _settings(self) -> dict[str, Any]:
        return {"orders": self.orders, "prior": self.prior, "timeout": self.timeout}

    def _classify(self, state: Any, questions: dict[str, Any]) -> ClassifierResponse:
        with _shared.translated(translation.errors):
            converted = {name: _question(name, one) for name, one in questions.items()}
            decided = self.loaded.model().decide(_state(state), converted, **self._settings())
        return self._response(questions, decided)

    async def _aclassify(self, state: Any, questions: dict[str, Any]) -> ClassifierResponse:
        with _shared.translated(translation.errors):
            converted = {name: _question(name, one) for name, one in questions.items()}
            decided = await self.loaded.model().adecide(_state(state), converted, **self._settings())
        return self._response(questions, decided)

    def _response(self, questions: Mapping[str, Any], decided: Mapping[str, Decision]) -> ClassifierResponse:
        tokens = system_one.prompt_tokens(decided)
        answers = {name: _answer(name, questions[name], one) for name, one in decided.items()}
        usage = {"input_tokens": tokens, "output_tokens": 0, "total_tokens": tokens}
        return ClassifierResponse.model_validate({"model": self.model, "answers": answers, "usage": usage})


def _kind(name: str, question: Any) -> str:
    """Return the kind of a question: ``"noul"``, ``"choice"`` or ``"score"``.

    Raises:
        ModelError: it is about a place in an image, or no question.
    """
    for kind, of_kind in _KINDS.items():
        if isinstance(question, of_kind):
            return kind
    kind = "a Box" if isinstance(question, Box) else f"of the type {type(question).__name__}"
    raise ModelError(f"question {name!r} is {kind}", hint="give a Noul, Choice or Score; no model here reads images")


def _question(name: str, question: Any) -> Question:
    """Return a question of LangChain as ours; `_kind` has the errors."""
    kind, criteria = _kind(name, question), question.criteria
    if kind == "noul" and criteria is not None:
        criteria = criteria.true, criteria.false
    return system_one.question_of(kind, _state(question.instructions), _state(criteria))


def _answer(name: str, question: Any, decision: Decision) -> dict[str, Any]:
    kind = _kind(name, question)
    return {"type": kind, **system_one.answer_fields(kind, question.criteria, decision)}


def _state(value: Any) -> Any:
    """Return a state as a JSON value, with its messages as objects.

    Raises:
        ModelError: it has an image, a sound or a file.
    """
    if isinstance(value, BaseMessage):
        return _message(value)
    if isinstance(value, Mapping):
        if value.get("type") in _MEDIA and not _SOURCES.isdisjoint(value):
            raise ModelError(f"the state has a block of the type {value['type']!r}", hint="send text and JSON only")
        return {str(name): _state(item) for name, item in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, (str, bytes)):
        return [_state(item) for item in value]
    return value


def _message(message: BaseMessage) -> dict[str, Any]:
    """Return a message as an object of JSON: role, content, and calls."""
    made: dict[str, Any] = {"role": _shared.role_of(getattr(message, "role", message.type))}
    if isinstance(message.content, list):
        _state(message.content)  # media are refused
    made["content"] = str(message.text)
    if isinstance(message, AIMessage) and message.tool_calls:
        made["tool_calls"] = [{"name": call["name"], "args": _state(call["args"])} for call in message.tool_calls]
    if isinstance(message, ToolMessage):
        made |= {"name": message.name} if message.name else {}
        made |= {"status": "error"} if message.status == "error" else {}
    return made
