"""Decisions: OpenAI's ``POST /v1/decisions``, and ``POST /v1/systemone``.

Sources: the types of the ``openai`` package, version 3.57, and of ``pydantic_ai.models.system_one``, version 2.68.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from toolgrammar.core.models import Decides, Decision, LocalModel, OneOf, Question, Scale, YesNo

from ..asked import Served
from ..failures import Failure
from ..fields import Fields, RequestError, at_field
from . import openai_form


@dataclass(frozen=True)
class AskedDecisions:
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


class DecisionProtocol(ABC):
    """One endpoint for decisions.

    Attributes:
        path: of the endpoint.
        names: the options that the protocol calls otherwise: none.
    """

    path: str
    names: Mapping[str, str] = {}

    @abstractmethod
    def read(self, fields: Fields, served: Served) -> AskedDecisions:
        """Return a request in the neutral form.

        Raises:
            RequestError: a field is wrong, unknown, or cannot be met.
        """

    @abstractmethod
    def whole(self, asked: AskedDecisions, decisions: Mapping[str, Decision]) -> dict[str, Any]:
        """Return the response."""

    def error(self, failure: Failure) -> dict[str, Any]:
        """Return an error in OpenAI's form."""
        return openai_form.error(failure)


class Decisions(DecisionProtocol):
    """OpenAI's decisions."""

    path = "/v1/decisions"

    def read(self, fields: Fields, served: Served) -> AskedDecisions:
        """Return a request in the neutral form."""
        name = _model(fields, served)
        fields.required("input")
        state = _input(fields)
        fields.required("questions")
        options = _options(fields, refusal=True)
        questions: dict[str, Question] = {}
        details: dict[str, Any] = {}
        for index, one in enumerate(fields.objects("questions")):
            path = f"questions[{index}]"
            own = one.text("name")
            key = path if own is None else own
            if key in questions:
                raise RequestError(f"two questions have the name {key!r}", field=one.path("name"))
            question, values = _question(one)
            with at_field(path):
                Decides.check_question(key, question, bool(options["refusal"]))
            questions[key], details[key] = question, (own, values)
        with at_field("questions"):
            Decides.check_questions(questions)
        openai_form.labels(fields)
        fields.end()
        return AskedDecisions(name, state, questions, options, details)

    def whole(self, asked: AskedDecisions, decisions: Mapping[str, Decision]) -> dict[str, Any]:
        """Return a decision."""
        answers = []
        for key, one in decisions.items():
            name, values = asked.details[key]
            answers.append(_answer(name, values, asked.questions[key], one))
        tokens = prompt_tokens(decisions)
        usage = {
            "input_tokens": tokens,
            "input_tokens_details": {"cache_write_tokens": 0, "cached_tokens": 0},
            "output_tokens": 0,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": tokens,
        }
        return {"model": asked.model, "answers": answers, "usage": usage}


class SystemOne(DecisionProtocol):
    """The decisions of System One, which pydantic-ai and Ollama speak."""

    path = "/v1/systemone"

    def read(self, fields: Fields, served: Served) -> AskedDecisions:
        """Return a request in the neutral form."""
        name = _model(fields, served)
        fields.required("state")
        state = fields.take("state")
        fields.required("questions")
        fields.refuse("temperature", 1, 1.0, hint="the probabilities are the model's own; leave it out")
        options = _options(fields, refusal=False)
        given = fields.one_of("questions", (dict,))
        questions: dict[str, Question] = {}
        details: dict[str, Any] = {}
        for key, value in given.items():
            one = fields.within(value, f"questions.{key}")
            questions[key], details[key] = _system_one_question(one)
            with at_field(f"questions.{key}"):
                Decides.check_question(key, questions[key])
        with at_field("questions"):
            Decides.check_questions(questions)
        fields.end()
        return AskedDecisions(name, state, questions, options, details)

    def whole(self, asked: AskedDecisions, decisions: Mapping[str, Decision]) -> dict[str, Any]:
        """Return answers by the names of the questions."""
        answers = {
            key: _system_one_answer(asked.questions[key], asked.details[key], one) for key, one in decisions.items()
        }
        usage = {"input_tokens": prompt_tokens(decisions), "output_tokens": 0}
        return {"model": asked.model, "answers": answers, "usage": usage}


DECISIONS, SYSTEM_ONE = Decisions(), SystemOne()


def prompt_tokens(decisions: Mapping[str, Decision]) -> int:
    """Return the number of tokens of all prompts of some decisions."""
    return sum(one.prompt_tokens for one in decisions.values())


def _model(fields: Fields, served: Served) -> str:
    """Return the name of a model that can decide.

    Raises:
        RequestError: it is on a server.
    """
    fields.required("model")
    name = str(fields.text("model"))
    if not isinstance(served.model(name), LocalModel):
        hint = "ask a model that is loaded here"
        raise RequestError("this model is on a server, and shows no logits to decide by", field="model", hint=hint)
    return name


def _options(fields: Fields, *, refusal: bool) -> dict[str, Any]:
    """Return the options in the extension field ``toolgrammar``; not every protocol has a form of refusals."""
    own = fields.inner("toolgrammar") or Fields({})
    options = {"orders": own.whole("orders", 1), "prior": own.flag("prior"), "refusal": False}
    if refusal:
        options["refusal"] = own.flag("refusal")
    own.end_exactly()
    with at_field("toolgrammar.orders"):
        Decides.check_options(timeout=None, **options)
    return options


def _text(value: Any) -> str:
    """Return a JSON value as text; one that is absent is empty."""
    return "" if value is None else value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


# -- System One --------------------------------------------------------------------------------------------------------


def _system_one_question(one: Fields) -> tuple[Question, Any]:
    """Return a question, and the legend of a score."""
    one.required("type")
    kind = one.word("type", ("noul", "choice", "score"))
    text = _text(one.take("instructions"))
    question: Question
    legend = None
    if kind == "noul":
        criteria = one.inner("criteria") or Fields({})
        question = YesNo(text, _text(criteria.take("true")), _text(criteria.take("false")))
        criteria.end_exactly()
    else:
        one.required("criteria")
        if kind == "choice":
            given = one.one_of("criteria", (dict,))
            question = OneOf(text, {label: _text(meaning) for label, meaning in given.items()})
        else:
            levels = one.items("criteria")
            question = Scale(text, [*map(_text, levels)])
            legend = {str(number): level for number, level in enumerate(levels)}
    one.end_exactly()
    return question, legend


def _system_one_answer(question: Question, legend: Any, decision: Decision) -> dict[str, Any]:
    shares = decision.probabilities
    if isinstance(question, YesNo):
        return {"type": "noul", "noul": shares[True]}
    made = {"confidence": decision.confidence, "probabilities": {str(value): share for value, share in shares.items()}}
    if isinstance(question, OneOf):
        return {"type": "choice", "choice": decision.value, **made}
    return {"type": "score", "score": decision.value, "legend": legend, **made}


# -- OpenAI ------------------------------------------------------------------------------------------------------------


def _question(one: Fields) -> tuple[Question, Any]:
    """Return a question, and what the answer repeats: the values of choices by label, or the labels of levels."""
    one.required("type")
    kind = one.word("type", ("predicate", "choice", "score"))
    one.required("instructions")
    text = _content(one, "instructions")
    if kind == "predicate":
        one.end_exactly()
        return YesNo(text), None
    return _choices(one, text) if kind == "choice" else _levels(one, text)


def _choices(one: Fields, text: str) -> tuple[Question, Any]:
    one.required("choices")
    values: dict[str, str | bool] = {}
    meanings: dict[str, str] = {}
    for each in one.objects("choices"):
        each.required("value")
        value = each.one_of("value", (str, bool))
        label = value if isinstance(value, str) else str(value).lower()
        if label in values:
            raise RequestError(f"two choices are written {label!r}", field=each.path("value"), hint="give each once")
        values[label], meanings[label] = value, each.text("description", "")
        each.end_exactly()
    one.end_exactly()
    return OneOf(text, meanings), values


def _levels(one: Fields, text: str) -> tuple[Question, Any]:
    one.required("levels")
    labels, lines = [], []
    for each in one.objects("levels"):
        each.required("label")
        label, meaning = each.text("label"), each.text("description")
        labels.append(label)
        lines.append(f"{label} ({meaning})" if meaning else label)
        each.end_exactly()
    one.end_exactly()
    return Scale(text, lines), labels


def _answer(name: str | None, values: Any, question: Question, decision: Decision) -> dict[str, Any]:
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
    given = fields.one_of("input", (str, list))
    if isinstance(given, str):
        return given
    names: dict[str, str] = {}
    items = []
    for index, value in enumerate(given):
        item = fields.within(value, f"input[{index}]")
        items.append(_item(item, names))
        item.end()
    if not items:
        raise RequestError("input is empty", field="input", hint="send a text or messages")
    only = items[0]
    return only["user"] if len(items) == 1 and isinstance(only.get("user"), str) else items


def _item(item: Fields, names: dict[str, str]) -> dict[str, Any]:
    """Return one item of the input; ``names`` has the tool of each call by its id."""
    calls, outputs = ("function_call", "custom_tool_call"), ("function_call_output", "custom_tool_call_output")
    kind = item.word("type", ("message", *calls, *outputs), "message")
    item.ignore("id", "status", "phase")
    if kind == "message":
        item.required("role")
        role = item.word("role", ("user", "developer", "system", "assistant"))
        item.required("content")
        return {role: _content(item, "content")}
    item.required("call_id")
    call = item.text("call_id")
    if kind in calls:
        item.required("name")
        space = item.text("namespace")
        names[call] = item.text("name") if space is None else f"{space}.{item.text('name')}"
        given = "arguments" if kind == "function_call" else "input"
        item.required(given)
        return {"tool_call": {"name": names[call], given: item.text(given)}}
    if call not in names:
        path = item.path("call_id")
        raise RequestError(f"{path} is the id of no call before it", field=path, hint="send the call as well")
    item.required("output")
    return {"tool_output": {"name": names[call], "output": _content(item, "output")}}


def _content(item: Fields, name: str) -> str:
    """Return a text, or the parts of a list as lines of text.

    Raises:
        RequestError: a part is an image.
    """
    given = item.one_of(name, (str, list))
    if isinstance(given, str):
        return given
    lines = []
    for index, value in enumerate(given):
        part = item.within(value, f"{item.path(name)}[{index}]")
        part.required("type")
        kind = part.text("type")
        texts = {"input_text": "text", "output_text": "text", "refusal": "refusal"}
        if kind in texts:
            part.required(texts[kind])
            lines.append(part.text(texts[kind]))
        elif kind == "input_json":
            part.required("data")
            lines.append(_text(part.one_of("data", (dict, list))))
        else:
            path = part.path("type")
            raise RequestError(f"{path} is {kind!r}", field=path, hint="decisions are about texts and JSON")
        part.ignore("prompt_cache_breakpoint", "annotations", "logprobs")
        part.end()
    return "\n".join(lines)
