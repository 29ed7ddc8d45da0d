"""Strict tools of providers that compile them to one grammar, whose size is limited: as many as are taken."""

from __future__ import annotations

import json
import re
from abc import abstractmethod
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

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
class _Tool:
    """A tool as it may be sent.

    Attributes:
        plain: its parameters, if it is not strict.
        removed: pointers of the keywords that ``plain`` lacks.
        strict: its parameters, if it is strict; None: the subset cannot say them.
        left_out: pointers of the keywords that ``strict`` lacks.
        optional: number of optional members of ``strict``.
        unions: number of unions in it.
        size: number of its characters.
    """

    name: str
    plain: Any
    removed: tuple[str, ...]
    strict: Any = None
    left_out: tuple[str, ...] = ()
    optional: int = 0
    unions: int = 0
    size: int = 0

    @classmethod
    def of(cls, function: Mapping[str, Any], subset: Subset, unknown: Collection[str]) -> _Tool:
        """Return the tool of an OpenAI-style function."""
        name, given = function["name"], function.get("parameters", {"type": "object", "properties": {}})
        reduced, gone = known(given, unknown)
        plain, removed = plain_schema(reduced), tuple(name + place for place in gone)
        taken = strict_schema(reduced, subset)
        if taken is None:
            return cls(name, plain, removed)
        strict = with_notes(taken.schema, given, (*gone, *taken.left_out))
        left_out = (*removed, *(name + place for place in taken.left_out))
        cost = costs(strict)
        return cls(name, plain, removed, strict, left_out, cost.optional, cost.unions, size=len(json.dumps(strict)))


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
    all_tools = {tool["function"]["name"]: _Tool.of(tool["function"], subset, unknown) for tool in tools}
    candidates = sorted(
        (tool for tool in all_tools.values() if tool.strict is not None),
        key=lambda tool: (tool.optional + tool.unions, tool.size),
    )
    number = optional = unions = 0  # of the candidates that fit, together
    for tool in candidates[: limits.tools]:
        optional, unions = optional + tool.optional, unions + tool.unions
        if optional > limits.optional or unions > limits.unions:
            break
        number += 1
    while True:
        strict = frozenset(tool.name for tool in candidates[:number])
        left_out: list[str] = []
        for name, tool in all_tools.items():
            left_out += tool.left_out if name in strict else tool.removed
            if strict and name not in strict:
                left_out.append(name)  # none of it is enforced, although the form is called strict
        yield Sent(
            {name: tool.strict if name in strict else tool.plain for name, tool in all_tools.items()},
            strict,
            tuple(left_out),
            size=sum(tool.size for tool in candidates[:number]) + beside,
        )
        if not number:
            return
        number //= 2


class Thought(NamedTuple):
    """A block of reasoning in an earlier answer, and the id of the call that it belongs to (None: to no call)."""

    call_id: str | None
    block: dict[str, Any]


class _Choice(NamedTuple):
    """The tool choice of a request.

    Attributes:
        fields: the fields of the request that say it.
        instruction: what they cannot say, as a text for the system turn.
        unsaid: the name of the option that they cannot say.
    """

    fields: dict[str, Any]
    instruction: str = ""
    unsaid: tuple[str, ...] = ()


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
    def choice_fields(self, choice: str, parallel: bool) -> dict[str, Any]:
        """Return the fields of a tool choice: ``"auto"``, ``"required"``, or the name of a tool."""

    @abstractmethod
    def tool_fields(self, tools: Sequence[Mapping[str, Any]], sent: Sent, choice: Any) -> dict[str, Any]:
        """Return the fields with the tools and the choice among them."""

    @abstractmethod
    def without_strict(self, body: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return a request whose tools are not strict."""

    @abstractmethod
    def no_calls(self, task: Task, messages: Sequence[Message]) -> dict[str, Any]:
        """Return the fields that declare the tools of earlier calls, which the API demands, and forbid new ones."""

    @abstractmethod
    def _thoughts(self, message: Message) -> list[Thought]:
        """Return the blocks of an answer's reasoning."""

    def _past_answer(self, message: Message) -> list[dict[str, Any]]:
        """Return the blocks of an earlier answer: reasoning that belongs to no call, the text, and the calls, each
        after its reasoning."""
        thoughts = self._thoughts(message)
        call_ids = {call.id for call in message.tool_calls}
        blocks = [thought.block for thought in thoughts if thought.call_id not in call_ids]
        blocks += self.blocks(message.content)
        for call in message.tool_calls:
            blocks += [thought.block for thought in thoughts if thought.call_id == call.id]
            blocks.append(self._call(call))
        return blocks

    def _choice(self, params: GenerateParams) -> _Choice:
        """Return the tool choice of a request. Thinking excludes a forced call, so a call is only demanded in words
        then."""
        choice = params.tool_choice
        if choice == "auto" or params.thinking in (None, False):
            return _Choice(self.choice_fields(choice, params.parallel_tool_calls))
        instruction = "Call a tool." if choice == "required" else f"Call the tool {choice}."
        return _Choice(self.choice_fields("auto", params.parallel_tool_calls), instruction, ("tool_choice",))

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
        choice = self._choice(params)
        given = tools.to_openai(closed=True)
        possible: list[Form] = []
        no_answer = Form("")  # the schema of the answer is in the prompt, or there is none
        for beside_tools in (answer, no_answer) if beside and answer is not None else (no_answer,):
            size = len(json.dumps(beside_tools.schemas)) if beside_tools.schemas else 0
            for sent in strict_ladder(given, self.subset, self.limits, unknown, size):
                if sent.strict and not self.takes_strict:
                    continue
                possible.append(
                    Form(
                        _name_of(sent, beside_tools),
                        {**self.tool_fields(given, sent, choice.fields), **beside_tools.fields},
                        sent.left_out + beside_tools.left_out + choice.unsaid,
                        schema_in_prompt=beside and beside_tools is no_answer,
                        schemas=(*sent.schemas.values(), *beside_tools.schemas),
                        instruction=choice.instruction,
                        size=sent.size if sent.strict or beside_tools.schemas else 0,
                    )
                )
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
        return self.without_field(body, name) != body if name == "strict" else super().has_field(body, name)

    def without_field(self, body: Mapping[str, Any], name: str) -> Mapping[str, Any]:
        """Return a request without an optional field."""
        return self.without_strict(body) if name == "strict" else super().without_field(body, name)


def plain_id(call_id: str) -> str:
    """Return the id of a call of another server in the characters that the APIs take."""
    return re.sub(r"[^a-zA-Z0-9_-]", "_", call_id)


def _name_of(sent: Sent, answer: Form) -> str:
    """Return the name of a form, such as ``strict tools (3 of 8) + json_schema``."""
    name = "tools"
    if sent.strict:
        some = "" if len(sent.strict) == len(sent.schemas) else f" ({len(sent.strict)} of {len(sent.schemas)})"
        name = f"strict tools{some}"
    return f"{name} + {answer.name}" if answer.name else name
