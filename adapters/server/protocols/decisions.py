"""Decisions: OpenAI's ``POST /v1/decisions``, and ``POST /v1/systemone``.

Sources: the types of the ``openai`` package, version 3.57, and of ``pydantic_ai.models.system_one``, version 2.68.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from toolgrammar.core.models import Decision, LocalModel, OneOf, Question, Scale, YesNo

from ..._shared import decisions as system_one
from .. import rows
from ..fields import Fields, RequestError, at_field
from ..rows import Choice, Form, Row, Rows
from ..served import Served
from . import openai_form
from .base import Endpoint


@dataclass(frozen=True)
class ParsedDecisions:
    """One request for decisions, whatever its protocol.

    Attributes:
        model: the name under which the model is served.
        state: what the questions are about.
        questions: by name, in order.
        options: of `Model.decide`.
        details: what the protocol's own response repeats of each question.
        stream: there are no streams.
    """

    model: str
    state: Any
    questions: Mapping[str, Question]
    options: Mapping[str, Any]
    details: Mapping[str, Any] = field(default_factory=dict)
    stream: bool = False


class DecisionProtocol(Endpoint):
    """One endpoint for decisions."""

    @abstractmethod
    def read(self, fields: Fields, served: Served) -> ParsedDecisions:
        """Return a request."""

    @abstractmethod
    def whole(self, parsed: ParsedDecisions, decisions: Mapping[str, Decision]) -> dict[str, Any]:
        """Return the response."""


_OWN: Rows = {"orders": rows.WHOLE(default=1, schema={"minimum": 1, "maximum": 24}), "prior": rows.FLAG}
_PART_LABELS: Rows = dict.fromkeys(("prompt_cache_breakpoint", "annotations", "logprobs"), rows.LABEL)
_TEXT_PART = Form({"text": rows.TEXT(needed=True), **_PART_LABELS})
_CONTENT = rows.TEXT | rows.objects(
    Choice(
        "type",
        {
            **dict.fromkeys(("input_text", "output_text"), _TEXT_PART),
            "refusal": {"refusal": rows.TEXT(needed=True), **_PART_LABELS},
            "input_json": {"data": (rows.OBJECT | rows.LIST)(needed=True), **_PART_LABELS},
        },
    ),
    needed=True,
)
_LABELS: Rows = dict.fromkeys(("id", "status", "phase"), rows.LABEL)
_CALL: Rows = {"call_id": rows.TEXT(needed=True), "name": rows.TEXT(needed=True), "namespace": rows.TEXT, **_LABELS}
_OUTPUT = Form({"call_id": rows.TEXT(needed=True), "output": _CONTENT, **_LABELS})
_ITEM = Choice(
    "type",
    {
        "message": {
            "role": rows.word("user", "developer", "system", "assistant", needed=True),
            "content": _CONTENT,
            **_LABELS,
        },
        "function_call": {"arguments": rows.TEXT(needed=True), **_CALL},
        "custom_tool_call": {"input": rows.TEXT(needed=True), **_CALL},
        **dict.fromkeys(("function_call_output", "custom_tool_call_output"), _OUTPUT),
    },
    "message",
)
_ASKED: Rows = {"name": rows.TEXT, "instructions": _CONTENT}
_ANSWER = Form({"value": (rows.TEXT | Row((bool,)))(needed=True), "description": rows.TEXT(default="")}, exact=True)
_LEVEL = Form({"label": rows.TEXT(needed=True), "description": rows.TEXT}, exact=True)
_QUESTION = Choice(
    "type",
    {
        "predicate": Form(_ASKED, exact=True),
        "choice": Form({"choices": rows.objects(_ANSWER, needed=True), **_ASKED}, exact=True),
        "score": Form({"levels": rows.objects(_LEVEL, needed=True), **_ASKED}, exact=True),
    },
)


class Decisions(DecisionProtocol):
    """OpenAI's decisions."""

    path = "/v1/decisions"
    summary = "Decide questions with the probability of each answer, as OpenAI's decisions"
    form = Form(
        {
            "model": rows.TEXT(needed=True),
            "input": (rows.TEXT | rows.objects(_ITEM))(needed=True),
            "questions": rows.objects(_QUESTION, needed=True, least=1),
            "toolgrammar": rows.inner(Form({**_OWN, "refusal": rows.FLAG}, exact=True)),
            **openai_form.LABELS,
        }
    )

    def read(self, fields: Fields, served: Served) -> ParsedDecisions:
        """Return a request."""
        name = _model(fields, served)
        state = _input(fields)
        options = _options(fields)
        questions: dict[str, Question] = {}
        details: dict[str, Any] = {}
        for asked in fields["questions"]:
            own = asked["name"]
            key = asked.place if own is None else own  # a question may have no name
            if key in questions:
                raise RequestError(f"two questions have the name {key!r}", field=asked.path("name"))
            question, values = _question(asked)
            with at_field(asked.place):
                LocalModel.check_question(key, question, bool(options["refusal"]))
            questions[key], details[key] = question, (own, values)
        with at_field("questions"):
            LocalModel.check_questions(questions)
        return ParsedDecisions(name, state, questions, options, details)

    def whole(self, parsed: ParsedDecisions, decisions: Mapping[str, Decision]) -> dict[str, Any]:
        """Return the response: an answer to each question, and the usage."""
        answers = []
        for key, one in decisions.items():
            name, values = parsed.details[key]
            answers.append(_answer(name, values, parsed.questions[key], one))
        tokens = system_one.prompt_tokens(decisions)
        usage = {
            "input_tokens": tokens,
            "input_tokens_details": {"cache_write_tokens": 0, "cached_tokens": 0},
            "output_tokens": 0,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": tokens,
        }
        return {"model": parsed.model, "answers": answers, "usage": usage}


_MEANINGS = Form({"true": rows.ANY, "false": rows.ANY}, exact=True)
_SYSTEM_ONE = Choice(
    "type",
    {
        "noul": Form({"instructions": rows.ANY, "criteria": rows.inner(_MEANINGS)}, exact=True),
        "choice": Form({"instructions": rows.ANY, "criteria": rows.OBJECT(needed=True)}, exact=True),
        "score": Form({"instructions": rows.ANY, "criteria": rows.LIST(needed=True)}, exact=True),
    },
)


class SystemOne(DecisionProtocol):
    """The decisions of System One, which pydantic-ai and Ollama speak; for its words see `_shared/decisions.py`."""

    path = "/v1/systemone"
    summary = "Decide questions with the probability of each answer, as System One"
    form = Form(
        {
            "model": rows.TEXT(needed=True),
            "state": rows.ANY(needed=True),
            "questions": rows.members(_SYSTEM_ONE, needed=True, least=1),
            "toolgrammar": rows.inner(Form(_OWN, exact=True)),
            "temperature": rows.refused(1, 1.0, hint="the probabilities are the model's own; leave it out"),
        }
    )

    def read(self, fields: Fields, served: Served) -> ParsedDecisions:
        """Return a request."""
        name = _model(fields, served)
        options = _options(fields)
        questions: dict[str, Question] = {}
        details: dict[str, Any] = {}
        for key, asked in fields["questions"].items():
            criteria = asked["criteria"]
            if asked.kind == "noul" and criteria is not None:
                criteria = criteria["true"], criteria["false"]
            questions[key] = system_one.question_of(asked.kind, asked["instructions"], criteria)
            details[key] = asked.kind, criteria
            with at_field(asked.place):
                LocalModel.check_question(key, questions[key])
        with at_field("questions"):
            LocalModel.check_questions(questions)
        return ParsedDecisions(name, fields["state"], questions, options, details)

    def whole(self, parsed: ParsedDecisions, decisions: Mapping[str, Decision]) -> dict[str, Any]:
        """Return answers by the names of the questions."""
        answers = {
            key: {"type": kind, **system_one.answer_fields(kind, criteria, decisions[key])}
            for key, (kind, criteria) in parsed.details.items()
        }
        usage = {"input_tokens": system_one.prompt_tokens(decisions), "output_tokens": 0}
        return {"model": parsed.model, "answers": answers, "usage": usage}


DECISIONS, SYSTEM_ONE = Decisions(), SystemOne()


def _model(fields: Fields, served: Served) -> str:
    """Return the name of a model that can decide.

    Raises:
        RequestError: it is on a server.
    """
    name: str = fields["model"]
    if not isinstance(served.model(name), LocalModel):
        hint = "ask a model that is loaded here"
        raise RequestError("this model is on a server, and shows no logits to decide by", field="model", hint=hint)
    return name


def _options(fields: Fields) -> dict[str, Any]:
    """Return the options of `LocalModel.decide` in the extension field ``toolgrammar``."""
    own = fields["toolgrammar"]
    options: dict[str, Any] = {"orders": 1, "prior": False, "refusal": False}
    if own is not None:  # that of System One has no field ``refusal``: its answers have no form of one
        options = {"orders": own["orders"], "prior": own["prior"], "refusal": own["refusal"] or False}
    with at_field("toolgrammar.orders"):
        LocalModel.check_options(timeout=None, **options)
    return options


# -- OpenAI ------------------------------------------------------------------------------------------------------------


def _question(asked: Fields) -> tuple[Question, Any]:
    """Return a question, and what the answer repeats: the values of choices by label, or the labels of levels."""
    text = _content(asked["instructions"])
    if asked.kind == "predicate":
        return YesNo(text), None
    if asked.kind == "score":
        levels = [(each["label"], each["description"]) for each in asked["levels"]]
        lines = [f"{label} ({meaning})" if meaning else label for label, meaning in levels]
        return Scale(text, lines), [label for label, _ in levels]
    values: dict[str, str | bool] = {}
    meanings: dict[str, str] = {}
    for each in asked["choices"]:
        value = each["value"]
        label = value if isinstance(value, str) else str(value).lower()
        if label in values:
            raise RequestError(f"two choices are written {label!r}", field=each.path("value"), hint="give each once")
        values[label], meanings[label] = value, each["description"]
    return OneOf(text, meanings), values


def _answer(name: str | None, values: Any, question: Question, decision: Decision) -> dict[str, Any]:
    """Return the answer to a question as the protocol has it: by the kind of the question, or as a refusal.

    Args:
        name: of the question; None: it has none.
        values: what the answer repeats; see `_question`.
        question: the question.
        decision: the model's.
    """
    if decision.refused:
        return {"type": "refusal", "name": name}
    shares = decision.probabilities
    if isinstance(question, YesNo):
        return {"type": "predicate", "name": name, "probability": shares[True]}
    if isinstance(question, OneOf):
        return {
            "type": "choice",
            "name": name,
            "choice": values[decision.value],
            "confidence": decision.confidence,
            "probabilities": [{"value": values[label], "probability": share} for label, share in shares.items()],
        }
    levels = [
        {"label": label, "value": level, "probability": share}
        for label, (level, share) in zip(values, shares.items(), strict=True)
    ]
    return {
        "type": "score",
        "name": name,
        "score": decision.value,
        "confidence": decision.confidence,
        "probabilities": levels,
    }


def _input(fields: Fields) -> Any:
    """Return the input as a state: a text, or a list with an object for each item."""
    given = fields["input"]
    if isinstance(given, str):
        return given
    names: dict[str, str] = {}
    items = [_item(item, names) for item in given]
    if not items:
        raise fields.error("input", "is empty", "send a text or messages")
    only = items[0]
    return only["user"] if len(items) == 1 and isinstance(only.get("user"), str) else items


def _item(item: Fields, names: dict[str, str]) -> dict[str, Any]:
    """Return one item of the input; ``names``, the tool of each call by its id, gets a call and names an output."""
    if item.kind == "message":
        return {item["role"]: _content(item["content"])}
    call_id = item["call_id"]
    if item.kind in ("function_call", "custom_tool_call"):
        space = item["namespace"]
        names[call_id] = item["name"] if space is None else f"{space}.{item['name']}"
        given = "arguments" if item.kind == "function_call" else "input"
        return {"tool_call": {"name": names[call_id], given: item[given]}}
    if call_id not in names:
        raise item.error("call_id", "is the id of no call before it", "send the call as well")
    return {"tool_output": {"name": names[call_id], "output": _content(item["output"])}}


def _content(given: str | list[Fields]) -> str:
    """Return a text, or the parts of a list as lines of text."""
    if isinstance(given, str):
        return given
    names = {"refusal": "refusal", "input_json": "data"}
    return "\n".join(system_one.text_of(part[names.get(part.kind, "text")]) for part in given)
