"""OpenAI's responses: ``POST /v1/responses``.

Source: the types of the ``openai`` package, version 2.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

from toolgrammar.core.conversation import Generation, Message, Part
from toolgrammar.core.generation import GenerateParams
from toolgrammar.core.models import LocalModel, Model

from ... import _shared
from .. import parts, rows
from ..fields import Fields, RequestError, at_field
from ..images import RequestImages
from ..rows import Choice, Form, Rows
from ..served import Served
from . import openai_form
from .base import ParsedRequest, Protocol, StreamWriter
from .response_events import SEARCH_CALL, Events, call_item, end_of, head_of, held_names, reasoning_item, text_item
from .response_memory import Kept, Memory

#: What a client may ask to have in an answer; all the rest is of tools that there are not here.
_LOGPROBS = "message.output_text.logprobs"
_SEALED = "reasoning.encrypted_content"


# -- forms ---------------------------------------------------------------------------------------------------------

_REFERENCE = "item_reference"
_NAMESPACE = "namespace"
#: Items of tools that OpenAI's server runs, from an earlier answer of another server.
_HOSTED_ITEMS = (
    "web_search_call",
    "file_search_call",
    "image_generation_call",
    "code_interpreter_call",
    "computer_call",
    "computer_call_output",
    "local_shell_call",
    "local_shell_call_output",
    "shell_call",
    "shell_call_output",
    "apply_patch_call",
    "apply_patch_call_output",
    "mcp_list_tools",
    "mcp_approval_request",
    "mcp_approval_response",
    "mcp_call",
)
#: The search of deferred tools, its call and its output.
_SEARCH = "tool_search"
_SEARCH_OUTPUT = "tool_search_output"

_OFFERED: Rows = {"defer_loading": rows.FLAG, "allowed_callers": rows.LIST}
_CUSTOM_TOOL = Form({**parts.CUSTOM, **_OFFERED})
_FUNCTION_TOOL = Form({**parts.FUNCTION, **_OFFERED, "output_schema": rows.LABEL}, schema="parameters")
_TOOLS = {"function": _FUNCTION_TOOL, "custom": _CUSTOM_TOOL}
_FOUND: Rows = {name: row for name, row in parts.FUNCTION.items() if name != "name"}
_SPACE = Form(
    {
        "name": rows.TEXT(needed=True),
        "description": rows.LABEL,
        "tools": rows.objects(Choice("type", _TOOLS, "function", others=True)),
    }
)
_TOOL = Choice(
    "type",
    {
        **_TOOLS,
        _NAMESPACE: _SPACE,
        _SEARCH: {"execution": rows.word("server", "client"), **_FOUND},
    },
    "function",
    others=True,
)

_HINT: Rows = {"prompt_cache_breakpoint": rows.LABEL}
_TEXT_LABELS: Rows = {**_HINT, **dict.fromkeys(("annotations", "logprobs"), rows.LABEL)}
_TEXT_PART = Form({"text": rows.TEXT(needed=True), **_TEXT_LABELS})
_CONTENT = rows.TEXT | rows.objects(
    Choice(
        "type",
        {
            **dict.fromkeys(("input_text", "output_text", "text"), _TEXT_PART),
            "refusal": {"refusal": rows.TEXT(needed=True), **_TEXT_LABELS},
            "input_image": {"image_url": rows.TEXT(needed=True), "detail": rows.not_offered("auto"), **_HINT},
        },
    ),
    default=None,
)
_LABELS: Rows = dict.fromkeys(("id", "status", "phase"), rows.LABEL)
_CALL: Rows = {"call_id": rows.TEXT(needed=True), "caller": rows.LABEL, **_LABELS}
_NAMED: Rows = {"name": rows.TEXT(needed=True), "namespace": rows.TEXT, **_CALL}
_OUTPUT = Form({"output": _CONTENT, **_CALL})
_THOUGHTS = rows.objects({"type": rows.LABEL, "text": rows.TEXT(default="")})
_SEARCHED: Rows = {"call_id": rows.TEXT(needed=True), "created_by": rows.LABEL, **_LABELS}
_ROLE = rows.word("system", "developer", "user", "assistant", needed=True)
#: An item of the input.
_ITEM = Choice(
    "type",
    {
        "message": {"role": _ROLE, "content": _CONTENT, **_LABELS},
        "function_call": {"arguments": rows.TEXT(default=""), **_NAMED},
        "function_call_output": _OUTPUT,
        "custom_tool_call": {parts.INPUT: rows.TEXT(default=""), **_NAMED},
        "custom_tool_call_output": _OUTPUT,
        "reasoning": {
            "content": _THOUGHTS,
            "summary": _THOUGHTS,
            "encrypted_content": rows.TEXT(default=""),
            **_LABELS,
        },
        SEARCH_CALL: Choice(
            "execution",
            {"server": None, "client": {"arguments": (rows.OBJECT | rows.TEXT)(default={}), **_SEARCHED}},
            "server",
        ),
        _SEARCH_OUTPUT: Choice(
            "execution", {"server": None, "client": {"tools": rows.objects(_TOOL), **_SEARCHED}}, "server"
        ),
        **dict.fromkeys(_HOSTED_ITEMS),
        _REFERENCE: {"id": rows.TEXT(needed=True)},
    },
    "message",
)


#: The query with which a stored response is read. It has what was asked for when it was made.
STORED = Form(
    {
        "stream": rows.refused("false", hint="a stored response cannot be streamed"),
        **dict.fromkeys(("include", "include[]", "include_obfuscation"), rows.LABEL),
    }
)


class Responses(Protocol):
    """OpenAI's responses.

    Args:
        memory: the conversations that a request may continue; None: an empty one.
    """

    path = "/v1/responses"
    summary = "Answer, as OpenAI's responses"
    form = Form(
        {
            "model": rows.TEXT(needed=True),
            "input": (rows.TEXT | rows.objects(_ITEM))(needed=True),
            "instructions": rows.TEXT,
            "previous_response_id": rows.TEXT,
            "tools": rows.objects(_TOOL),
            "tool_choice": rows.TEXT | rows.OBJECT,
            "parallel_tool_calls": rows.FLAG(default=None),
            "text": rows.inner(
                Form({"format": rows.inner(parts.FORMAT), "verbosity": rows.not_offered("medium")}, schema="format")
            ),
            "reasoning": rows.inner(
                {"effort": parts.EFFORT, **dict.fromkeys(("summary", "generate_summary"), rows.not_offered("auto"))}
            ),
            "include": rows.TEXTS,
            "max_output_tokens": rows.COUNT,
            "top_logprobs": parts.LIKELIEST,
            "store": rows.FLAG(default=True),
            **parts.SAMPLING,
            **openai_form.STREAMING,
            **openai_form.LABELS,
            "background": rows.refused(False),
            "truncation": rows.not_offered("disabled"),  # a conversation that does not fit is an error in any case
            "conversation": rows.refused(hint="send the whole conversation as input"),
            "prompt": rows.refused(hint="send its text"),
        }
    )
    names = MappingProxyType({"max_tokens": "max_output_tokens", "schema": "text.format"})
    streams_overflow = True

    def __init__(self, memory: Memory | None = None) -> None:
        self._memory = memory or Memory()

    def read(self, fields: Fields, served: Served) -> ParsedRequest:
        """Return a request."""
        model_name = fields["model"]
        model = served.model(model_name)
        previous = fields["previous_response_id"]
        earlier = Kept((), {}) if previous is None else self._memory.find(previous, "previous_response_id")
        facts = _ToolFacts(model)
        found: list[Any] = [*earlier.found]  # tools that searches have found; `_read_input` adds some
        images = served.images(model_name)
        conversation = (
            *(images.checked(message, "previous_response_id") for message in earlier.messages),
            *_read_input(fields, self._memory, facts, found, images),
        )
        instructions = fields["instructions"]  # of this response alone: they are not kept
        messages = (Message("system", instructions), *conversation) if instructions else conversation
        declared = parts.distinct(_tools(fields, facts))
        names = {*map(_shared.tool_name, declared)}
        tools = [*declared, *(tool for tool in found if _shared.tool_name(tool) not in names)]
        choice = _with_names(fields["tool_choice"])
        schema = parts.schema_of(_text_format(fields))
        reasoning = fields["reasoning"]
        thinking = None if reasoning is None else parts.thinking_of(reasoning, "effort", model, optional=True)
        included = _included(fields)
        options = {
            **parts.sampling(fields),
            "max_tokens": fields["max_output_tokens"],
            "parallel_tool_calls": fields["parallel_tool_calls"],
            "thinking": thinking,
            "logprobs": _logprobs(fields, included, model),
        }
        openai_form.includes_usage(fields)  # refuses what is for streams alone; a stream always ends with them
        params = served.params(model_name, options, fields["toolgrammar"], tools, choice, schema)
        details = {
            "echo": _echo(fields, params),
            "kept": conversation if fields["store"] else None,
            "custom": facts.custom,
            "spaces": facts.spaces,
            "searches": facts.searches,
            "found": tuple(found),
            "seals": _SEALED in included,
            "vocabulary": None if params.logprobs is None else model.vocabulary,
        }
        return ParsedRequest(model_name, messages, params, fields["stream"], details=details)

    def whole(self, parsed: ParsedRequest, answers: Sequence[Generation]) -> dict[str, Any]:
        """Return a response."""
        (answer,) = answers
        head = head_of(parsed)
        held = held_names(parsed)
        tokens = _shared.text_tokens(parsed.details["vocabulary"], answer.tokens, answer.text) or []
        thoughts, seals = answer.message.reasoning, parsed.details["seals"]
        # The last item is the one that the budget has cut; calls have a status of their own.
        is_cut = answer.finish_reason == "length" and not answer.tool_calls
        text_status = "incomplete" if is_cut else "completed"
        thoughts_status = "completed" if answer.text else text_status
        output = [
            *([reasoning_item(openai_form.new_id("rs_"), thoughts, thoughts_status, seals=seals)] if thoughts else []),
            *([text_item(openai_form.new_id("msg_"), answer.text, text_status, tokens)] if answer.text else []),
            *(
                call_item(openai_form.new_id("fc_"), call, parsed.details)
                for call in answer.tool_calls
                if call.name not in held or _shared.problem(call) is None
            ),
        ]
        note = _shared.extension_field(answer, _shared.cut_places(answer.message, answer.cut))
        response = {**head, **end_of(answer.finish_reason, answer.usage, output), **note}
        self.keep(parsed, response, answer.message)
        return response

    def stream(self, parsed: ParsedRequest) -> StreamWriter:
        """Return the writer of response events."""
        return Events(parsed, self.keep)

    def find(self, name: str) -> Mapping[str, Any]:
        """Return a response that is kept.

        Raises:
            RequestError: there is none of this id (404).
        """
        return self._memory.find(name).response

    def forget(self, name: str) -> dict[str, Any]:
        """Forget a response; return what its client is told.

        Raises:
            RequestError: there is none of this id (404).
        """
        self._memory.forget(name)
        return {"id": name, "object": "response", "deleted": True}

    def keep(self, parsed: ParsedRequest, response: dict[str, Any], message: Message) -> None:
        """Keep the conversation with its answer, unless the request asks not to."""
        if parsed.details["kept"] is not None:
            self._memory.keep(
                response["id"], Kept((*parsed.details["kept"], message), response, parsed.details["found"])
            )


# -- requests ------------------------------------------------------------------------------------------------------


@dataclass
class _ToolFacts:
    """What `_tools` notes of the tools of a request, beside their schemas.

    Attributes:
        model: the model.
        custom: names of custom tools.
        spaces: the namespace and the own name of each tool in a namespace, by the name that the model knows:
            ``"crm__find" -> ("crm", "find")``.
        searches: name of the search of tools that the client runs; empty if there is none.
    """

    model: Model
    custom: set[str] = field(default_factory=set)
    spaces: dict[str, tuple[str, str]] = field(default_factory=dict)
    searches: str = ""


def _tools(fields: Fields, facts: _ToolFacts, space: str = "") -> list[Any]:
    """Return the tools of a request, those in namespaces too; hosted ones are left out.

    Args:
        fields: has ``tools``.
        facts: what is noted of them.
        space: the namespace of these tools.
    """
    tools: list[Any] = []
    for tool in fields["tools"]:
        if tool.kind == _NAMESPACE:
            tools += _tools(tool, facts, tool["name"])
            continue
        name = tool["name"]
        if tool.kind == _SEARCH:
            # OpenAI's own search has nothing to find here: the prompt of a local model has the names of all deferred
            # tools, and a model on a server gets their schemas.
            if tool["execution"] == "client":
                facts.searches = _SEARCH
                tools.append(parts.function_tool(tool, _SEARCH))
            continue
        parts.require_direct_caller(tool)
        if space:
            name = _joined(space, name)
            facts.spaces[name] = space, tool["name"]
        if tool.kind == "custom":
            facts.custom.add(name)
        make = parts.custom_tool if tool.kind == "custom" else parts.function_tool
        tools.append(make(tool, name, deferred=parts.is_deferred(tool, facts.model)))
    return tools


def _joined(space: str, name: str) -> str:
    """Return the one name that the model knows of a tool in a namespace."""
    return f"{space}{name}" if space.endswith("__") else f"{space}__{name}"


def _with_names(choice: Any) -> Any:
    """Return a tool choice whose tools in namespaces have the names that the model knows."""
    if not isinstance(choice, Mapping):
        return choice
    made = {**choice}
    space, name = made.pop("namespace", None), made.get("name")
    if isinstance(space, str) and isinstance(name, str):
        made["name"] = _joined(space, name)
    if isinstance(made.get("tools"), list):
        made["tools"] = [_with_names(tool) for tool in made["tools"]]
    return made


def _text_format(fields: Fields) -> Fields | None:
    """Return ``text.format``."""
    return None if fields["text"] is None else fields["text"]["format"]


def _echo(fields: Fields, params: GenerateParams) -> dict[str, Any]:
    """Return what a response repeats of its request: the options that have effect, and the rest as it was sent."""
    form = _text_format(fields)
    return {
        "instructions": fields["instructions"],
        "metadata": fields["metadata"] or {},
        "parallel_tool_calls": params.parallel_tool_calls,
        "temperature": params.temperature,
        "top_p": params.top_p,
        "max_output_tokens": params.max_tokens,
        "previous_response_id": fields["previous_response_id"],
        "tool_choice": fields["tool_choice"] or "auto",
        "tools": [{**tool.value, "type": tool.kind} for tool in fields["tools"]],
        "text": {"format": {"type": "text"} if form is None else form.value},
        "truncation": "disabled",
    }


def _included(fields: Fields) -> list[Any]:
    """Return what is asked for besides the answer. The rest would be of tools that are not offered here."""
    for index, one in enumerate(fields["include"]):
        if one not in (_LOGPROBS, _SEALED):
            fields.skip(f"include[{index}]")
    return [one for one in fields["include"] if one in (_LOGPROBS, _SEALED)]


def _logprobs(fields: Fields, included: Sequence[Any], model: Model) -> int | None:
    """Return how many likely tokens are asked for at each place; None: no log-probabilities."""
    count = fields["top_logprobs"]
    if _LOGPROBS not in included and not count:
        return None
    return parts.checked_logprobs(count or 0, "top_logprobs" if count else "include", model)


def _read_input(
    fields: Fields, memory: Memory, facts: _ToolFacts, found: list[Any], images: RequestImages
) -> tuple[Message, ...]:
    """Return the messages of ``input``; what the assistant did in one turn is one message.

    An ``item_reference`` stands for an item of an earlier answer. What tools of OpenAI's server did is left out, and so
    is a reference to reasoning that is not kept.

    Args:
        fields: the request.
        memory: the earlier answers.
        facts: what is noted of found tools.
        found: gets the tools that the client's searches have found.
        images: the check of images.
    """
    given = fields["input"]
    if isinstance(given, str):
        return (Message("user", given),)
    messages: list[Message] = []
    for one in given:
        item = _referred(one, memory) if one.kind == _REFERENCE else one
        if item is None:
            continue
        message = _search_output(item, facts, found) if item.kind == _SEARCH_OUTPUT else _READERS[item.kind](item)
        message = images.checked(message, item.path("output" if item.kind.endswith("_output") else "content"))
        if message.role == "assistant" and messages and messages[-1].role == "assistant":
            messages[-1] = _merged(messages[-1], message)
        else:
            messages.append(message)
    if not messages:
        raise fields.error("input", "is empty", "send a text or at least one item")
    return tuple(messages)


def _referred(reference: Fields, memory: Memory) -> Fields | None:
    """Return the item of an earlier answer to which an ``item_reference`` refers; None for reasoning that is not kept.

    Raises:
        RequestError: another item is not kept (404).
    """
    try:
        item = memory.item(reference["id"], reference.path("id"))
    except RequestError:
        if not reference["id"].startswith("rs_"):  # the ids of reasoning
            raise
        reference.skip()
        return None
    return reference.replaced(item, _ITEM)


def _merged(first: Message, second: Message) -> Message:
    reasoning = (first.reasoning or "") + (second.reasoning or "")
    return replace(
        first,
        content=first.text + second.text,
        reasoning=reasoning or None,
        tool_calls=first.tool_calls + second.tool_calls,
    )


def _message(fields: Fields) -> Message:
    return Message(_shared.role_of(fields["role"]), _parts(fields, "content"))


def _parts(fields: Fields, name: str) -> str | tuple[Part, ...]:
    """Return the text or the parts in a field."""
    content = fields[name]
    if isinstance(content, list):
        content = [
            {"type": "image_url", "image_url": part["image_url"]}
            if part.kind == "input_image"
            else {"type": "text", "text": part["refusal" if part.kind == "refusal" else "text"]}
            for part in content
        ]
    with at_field(fields.path(name)):
        return _shared.parts_of(content)


def _function_call(fields: Fields) -> Message:
    return Message("assistant", tool_calls=(_shared.past_call(*_called(fields), fields["arguments"]),))


def _search_call(fields: Fields) -> Message:
    call = _shared.past_call(fields["call_id"], _SEARCH, fields["arguments"])
    return Message("assistant", tool_calls=(call,))


def _search_output(fields: Fields, facts: _ToolFacts, found: list[Any]) -> Message:
    """Return the result of a search that the client has run, the names of the tools; and add the tools to ``found``.

    They may be called from now on. The prompt of a local model has the schema of a found tool when it is called, like
    that of a deferred one.
    """
    tools = _tools(fields, facts)
    if isinstance(facts.model, LocalModel):
        for tool in tools:
            tool["defer_loading"] = True
    known = {_shared.tool_name(tool) for tool in found}
    found += [tool for tool in tools if _shared.tool_name(tool) not in known]
    text = "\n".join(map(_shared.tool_name, tools)) or "No tools were found."
    return Message("tool", text, tool_call_id=fields["call_id"])


def _custom_call(fields: Fields) -> Message:
    return Message("assistant", tool_calls=(_shared.past_call(*_called(fields), fields.of(parts.INPUT)),))


def _called(fields: Fields) -> tuple[str, str]:
    """Return the id of a call, and the name that the model knows of its tool."""
    space, name = fields["namespace"], fields["name"]
    return fields["call_id"], _joined(space, name) if space else name


def _function_call_output(fields: Fields) -> Message:
    return Message("tool", _parts(fields, "output"), tool_call_id=fields["call_id"])


def _past_reasoning(fields: Fields) -> Message:
    text = "".join(part["text"] for part in (*fields["content"], *fields["summary"]))
    return Message("assistant", reasoning=text or _unsealed(fields["encrypted_content"]) or None)


def _unsealed(text: str) -> str:
    """Return the reasoning in such a text; empty for one of another server."""
    try:
        return base64.b64decode(text, validate=True).decode()
    except ValueError:
        return ""


_READERS = {
    "message": _message,
    "function_call": _function_call,
    "function_call_output": _function_call_output,
    "custom_tool_call": _custom_call,
    "custom_tool_call_output": _function_call_output,
    "reasoning": _past_reasoning,
    SEARCH_CALL: _search_call,
}
