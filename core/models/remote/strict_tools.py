"""Strict tools of providers that compile them to one grammar, whose size is limited: as many as are taken."""

from __future__ import annotations

import json
import re
from abc import abstractmethod
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from ...conversation.messages import Message
from ...generation.params import GenerateParams
from .answer_judge import Task
from .form import Form
from .provider import ProviderProtocol
from .schema_dialects import CLAUDE, Subset, costs, plain_schema, strict_schema, with_notes
from .servers import known


@dataclass(frozen=True)
class Limits:
    """Limits of the strict tools of one request.

    Attributes:
        tools: maximum number of strict tools.
        optional: maximum number of optional members in all of them.
        unions: maximum number of unions (``anyOf``, several types) in all of them.
    """

    tools: int
    optional: int
    unions: int


@dataclass(frozen=True)
class Sent:
    """The tools of one request, some of them strict.

    Attributes:
        schemas: the parameters of each tool, in order.
        strict: names of the strict ones.
        left_out: pointers of removed keywords after the tool's name; the name alone: the tool is not strict.
        size: number of characters of the strict schemas.
    """

    schemas: Mapping[str, Any]
    strict: frozenset[str]
    left_out: tuple[str, ...]
    size: int


@dataclass(frozen=True)
class _Candidate:
    name: str
    schema: Any
    left_out: tuple[str, ...]
    optional: int
    unions: int
    size: int


def strict_ladder(
    tools: Sequence[Mapping[str, Any]], subset: Subset, limits: Limits, unknown: Collection[str], beside: int = 0
) -> Iterator[Sent]:
    """Yield the tools of a request with ever fewer strict ones, at last none: all that fit, then half of them each.

    The smallest stay strict: a provider's limit is used up by few large schemas.

    Args:
        tools: OpenAI-style dicts with closed schemas.
        subset: what the provider enforces.
        limits: its limits.
        unknown: keywords that the server has refused, which are removed.
        beside: size of another schema in the same grammar.
    """
    plain: dict[str, Any] = {}
    removed: dict[str, tuple[str, ...]] = {}
    candidates: list[_Candidate] = []
    for tool in tools:
        function = tool["function"]
        name, given = function["name"], function.get("parameters", {"type": "object", "properties": {}})
        reduced, gone = known(given, unknown)
        plain[name], removed[name] = plain_schema(reduced), tuple(name + place for place in gone)
        taken = strict_schema(reduced, subset)
        if taken is None:
            continue
        schema = with_notes(taken[0], given, (*gone, *taken[1]))
        left_out = (*removed[name], *(name + place for place in taken[1]))
        candidates.append(_Candidate(name, schema, left_out, *costs(schema), len(json.dumps(schema))))
    candidates.sort(key=lambda one: (one.optional + one.unions, one.size))
    number = 0
    optional = unions = 0
    for one in candidates[: limits.tools]:
        optional, unions = optional + one.optional, unions + one.unions
        if optional > limits.optional or unions > limits.unions:
            break
        number += 1
    while True:
        chosen = {one.name: one for one in candidates[:number]}
        places: list[str] = []
        for name in plain:
            places.extend(chosen[name].left_out if name in chosen else removed[name])
            if chosen and name not in chosen:
                places.append(name)
        yield Sent(
            {name: chosen[name].schema if name in chosen else schema for name, schema in plain.items()},
            frozenset(chosen),
            tuple(places),
            sum(one.size for one in chosen.values()) + beside,
        )
        if not number:
            return
        number //= 2


_NO_STRICT = re.compile(
    r"\bstrict\b.{0,80}(not permitted|not supported|unsupported|unknown)|not support\w*.{0,40}strict", re.I | re.S
)


class StrictToolsProtocol(ProviderProtocol):
    """An API with ``strict`` tools, which the provider compiles to one grammar. Arguments as of
    `Protocol`.

    Attributes:
        limits: limits of the strict tools of one request.
        takes_strict: the model takes strict tools and a schema of the answer.
    """

    limits: ClassVar[Limits]
    subset = CLAUDE
    takes_strict = True

    @abstractmethod
    def choice(self, params: GenerateParams) -> tuple[Any, str, tuple[str, ...]]:
        """Return the tool choice, an instruction for what it cannot say, and the name of that."""

    @abstractmethod
    def tool_fields(self, tools: Sequence[Mapping[str, Any]], sent: Sent, choice: Any) -> dict[str, Any]:
        """Return the fields with the tools and the choice among them."""

    @abstractmethod
    def no_calls(self, task: Task, messages: Sequence[Message]) -> dict[str, Any]:
        """Return the fields that declare the tools of earlier calls, which the API demands, and forbid new ones."""

    @abstractmethod
    def _thoughts(self, message: Message) -> list[tuple[str | None, dict[str, Any]]]:
        """Return the blocks of an answer's reasoning, each with the id of the call that it belongs to."""

    def _said(self, message: Message, ids: Sequence[str]) -> list[dict[str, Any]]:
        """Return the blocks of an earlier answer, its reasoning where it was."""
        kept = self._thoughts(message)
        known_ids = {call.id for call in message.tool_calls}
        blocks = [thought for call_id, thought in kept if call_id not in known_ids]
        blocks += self.blocks(message.content)
        for call, call_id in zip(message.tool_calls, ids, strict=True):
            blocks += [thought for own, thought in kept if call.id and own == call.id]
            blocks.append(self._call(call, plain_id(call_id)))
        return blocks

    def forms(self, task: Task, unknown: Collection[str], messages: Sequence[Message], *, enforced: bool) -> list[Form]:
        """Return the forms, the strongest first: with as many strict tools as the limits allow, then fewer, then none;
        beside a schema of the answer, each first with that enforced too; at last everything in the prompt."""
        tools, params, schema = task.tools, task.params, task.schema
        beside = tools is not None and schema is not None
        prompt = Form("prompt", schema_in_prompt=schema is not None or task.is_json, tools_in_prompt=tools is not None)
        answer = self._answer_form(schema, unknown) if task.is_json or beside else None
        if tools is None:
            if not task.is_json:
                return [Form("text", self.no_calls(task, messages))]
            return [prompt] if task.free or answer is None else [answer, prompt]
        if params.tool_format is not None:
            return [prompt]
        choice, instruction, unsaid = self.choice(params)
        given = tools.to_openai(closed=True)
        possible: list[Form] = []
        size = 0 if answer is None else len(json.dumps(answer.schemas))
        for form in (answer, None) if beside and answer is not None else (None,):
            for sent in strict_ladder(given, self.subset, self.limits, unknown, size if form is not None else 0):
                if sent.strict and not self.takes_strict:
                    continue
                made = Form(
                    _named(sent, form),
                    {**self.tool_fields(given, sent, choice), **({} if form is None else form.fields)},
                    sent.left_out + (() if form is None else form.left_out) + unsaid,
                    schema_in_prompt=beside and form is None,
                    schemas=(*sent.schemas.values(), *(() if form is None else form.schemas)),
                    instruction=instruction,
                    size=sent.size if sent.strict or form is not None else 0,
                )
                possible.append(made)
        return [*possible, prompt]

    def _answer_form(self, schema: Any, unknown: Collection[str]) -> Form | None:
        return super()._answer_form(schema, unknown) if self.takes_strict else None

    def refused_field(self, body: Mapping[str, Any], reason: str) -> str:
        """Return the field that a refusal names; ``strict`` if the model does not take it at all."""
        if _NO_STRICT.search(reason) and self.has_field(body, "strict"):
            self.takes_strict = False
            return "strict"
        return super().refused_field(body, reason)

    def has_field(self, body: Mapping[str, Any], name: str) -> bool:
        """Return True if a request has an optional field; ``strict`` is in its tools."""
        return '"strict": true' in json.dumps(body) if name == "strict" else super().has_field(body, name)

    def without_field(self, body: Mapping[str, Any], name: str) -> Mapping[str, Any]:
        """Return a request without an optional field."""
        return _without_strict(body) if name == "strict" else super().without_field(body, name)


def plain_id(call_id: str) -> str:
    """Return the id of a call of another server in the characters that the APIs take."""
    return re.sub(r"[^a-zA-Z0-9_-]", "_", call_id)


def _without_strict(value: Any) -> Any:
    """Return a request whose tools are not strict."""
    if isinstance(value, list):
        return [_without_strict(one) for one in value]
    if not isinstance(value, Mapping):
        return value
    return {key: _without_strict(one) for key, one in value.items() if (key, one) != ("strict", True)}


def _named(sent: Sent, answer: Form | None) -> str:
    name = "tools"
    if sent.strict:
        some = "" if len(sent.strict) == len(sent.schemas) else f" ({len(sent.strict)} of {len(sent.schemas)})"
        name = f"strict tools{some}"
    return name if answer is None else f"{name} + {answer.name}"
