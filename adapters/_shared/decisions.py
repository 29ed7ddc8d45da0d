"""Questions and answers of System One, whose form LangChain, pydantic-ai and a protocol of the server have.

A question has a *kind*, and *criteria* which say what its answers mean:

- ``"noul"``, yes or no: the meanings of yes and of no, or None;
- ``"choice"``, one of some labels: a mapping of each label to its meaning;
- ``"score"``, a level: the meanings of the levels in ascending order.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from toolgrammar.core.errors import ModelError
from toolgrammar.core.models import Decision, LocalModel, OneOf, Question, Scale, YesNo

from .loaded_model import LoadedModel


def text_of(value: Any) -> str:
    """Return instructions or a meaning, which may be any JSON value, as text; an absent one (None) is empty."""
    return value or "" if value is None or isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def question_of(kind: str, instructions: Any, criteria: Any) -> Question:
    """Return a question of System One as ours.

    Args:
        kind: ``"noul"``, ``"choice"`` or ``"score"``.
        instructions: the question, as JSON.
        criteria: what the answers mean; see the module.
    """
    text = text_of(instructions)
    if kind == "choice":
        return OneOf(text, {label: text_of(meaning) for label, meaning in criteria.items()})
    if kind == "score":
        return Scale(text, [*map(text_of, criteria)])
    yes, no = criteria or (None, None)
    return YesNo(text, text_of(yes), text_of(no))


def answer_fields(kind: str, criteria: Any, decision: Decision) -> dict[str, Any]:
    """Return the fields of an answer of System One, for a question of this kind and with these criteria.

    ``{"noul": 0.9}``, or ``{"choice": LABEL, "confidence": ..., "probabilities": {LABEL: ...}}``; a score is the mean
    level, its probabilities are by the number of the level, and its ``legend`` has the criteria by number.
    """
    shares = dict(decision.probabilities)
    if kind == "noul":
        return {"noul": shares[True]}
    fields = {kind: decision.value, "confidence": decision.confidence, "probabilities": shares}
    return fields if kind == "choice" else {**fields, "legend": dict(enumerate(criteria))}


def prompt_tokens(decisions: Mapping[str, Decision]) -> int:
    """Return the number of tokens of all prompts of some decisions."""
    return sum(one.prompt_tokens for one in decisions.values())


def require_logits(loaded: LoadedModel) -> None:
    """Refuse a model that cannot decide.

    Raises:
        ModelError: it is on a server.
    """
    if not isinstance(loaded.model(), LocalModel):
        raise ModelError(
            f"{loaded.name!r} is on a server, and shows no logits to decide by",
            hint="load the model here, for example as 'hf:NAME-OR-PATH' or 'gguf:PATH'",
        )
