"""OpenAI's responses: ``POST /v1/responses``.

Source: the types of the ``openai`` package, version 2.
"""

from __future__ import annotations

import base64
import json
import threading
import time
from collections import OrderedDict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

from toolgrammar.core.basics import shared_lock
from toolgrammar.core.conversation import (
    ArgumentsDelta,
    CallEnd,
    CallStart,
    Event,
    Finish,
    Generation,
    Message,
    MessageBuilder,
    Part,
    ReasoningDelta,
    TextDelta,
    TokenWritten,
    ToolCall,
    Usage,
    arguments_text,
)
from toolgrammar.core.models import LocalModel, Model

from ... import _shared
from .. import parts, rows
from ..asked import Asked, Served
from ..failures import Failure
from ..fields import Fields, RequestError, at_field
from ..rows import Choice, Form, Rows
from . import openai_form
from .base import Protocol, StreamWriter, frame
from .logprobs import LIKELIEST, checked

#: Maximum number of characters of the conversations that are kept for ``previous_response_id``.
MAX_KEPT = 32 << 20

#: What a client may ask to have in an answer; all the rest is of tools that there are not here.
_LOGPROBS = "message.output_text.logprobs"
_SEALED = "reasoning.encrypted_content"


@dataclass(frozen=True)
class Kept:
    """A response that is kept.

    Attributes:
        messages: the conversation, its answer included.
        response: as its client got it.
        found: the tools that the client's searches have found, as OpenAI-style dicts.
    """

    messages: tuple[Message, ...]
    response: Mapping[str, Any]
    found: tuple[Mapping[str, Any], ...] = ()

    @property
    def size(self) -> int:
        """Approximate size in characters."""
        return sum(map(_size, self.messages)) + len(json.dumps(self.response))


class Memory:
    """Responses by their ids; the least recently used go first.

    Args:
        max_characters: maximum size of all that is kept, in characters of text.
    """

    def __init__(self, max_characters: int = MAX_KEPT) -> None:
        self._lock = shared_lock(self, "_lock", threading.Lock())
        self._kept: OrderedDict[str, tuple[Kept, int]] = OrderedDict()
        self._items: dict[str, tuple[str, Mapping[str, Any]]] = {}  # by id: the response that has it, and the item
        self._max = max_characters
        self._size = 0

    def keep(self, name: str, one: Kept) -> None:
        """Keep a response; others may have to go."""
        size = one.size
        with self._lock:
            self._kept[name] = one, size
            self._items.update({item["id"]: (name, item) for item in one.response.get("output", ())})
            self._size += size
            while self._size > self._max:
                self._drop(next(iter(self._kept)))

    def find(self, name: str, field: str | None = None) -> Kept:
        """Return a response.

        Args:
            name: its id.
            field: that names it in the request.

        Raises:
            RequestError: it is not kept any more, or never was (404).
        """
        with self._lock:
            if name not in self._kept:
                hint = "send the whole conversation as input" if field else None
                raise RequestError("this response is not stored, or no longer", field=field, hint=hint, status=404)
            self._kept.move_to_end(name)
            return self._kept[name][0]

    def item(self, name: str, field: str) -> Mapping[str, Any]:
        """Return an item of the output of a response that is kept.

        Args:
            name: its id.
            field: that names it in the request.

        Raises:
            RequestError: its response is not kept any more, or never was (404).
        """
        with self._lock:
            if name not in self._items:
                hint = "send the item itself"
                raise RequestError("this item is not stored, or no longer", field=field, hint=hint, status=404)
            response, item = self._items[name]
            self._kept.move_to_end(response)
            return item

    def forget(self, name: str) -> None:
        """Forget a response.

        Raises:
            RequestError: it is not kept any more, or never was (404).
        """
        self.find(name)
        with self._lock:
            self._drop(name)

    def _drop(self, name: str) -> None:
        if name in self._kept:
            one, size = self._kept.pop(name)
            self._size -= size
            for item in one.response.get("output", ()):
                self._items.pop(item["id"], None)


def _size(message: Message) -> int:
    """Return the approximate size of a message in characters."""
    images = sum(len(getattr(part, "data", None) or "") for part in message.content if not isinstance(part, str))
    calls = sum(len(call.name) + len(arguments_text(call)) for call in message.tool_calls)
    return 100 + len(message.text) + len(message.reasoning or "") + images + calls


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
_SEARCH_CALL, _SEARCH_OUTPUT = _SEARCH_ITEMS = ("tool_search_call", "tool_search_output")

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
_TOLD: Rows = {**_HINT, **dict.fromkeys(("annotations", "logprobs"), rows.LABEL)}
_SAID = Form({"text": rows.TEXT(needed=True), **_TOLD})
_CONTENT = rows.TEXT | rows.objects(
    Choice(
        "type",
        {
            **dict.fromkeys(("input_text", "output_text", "text"), _SAID),
            "refusal": {"refusal": rows.TEXT(needed=True), **_TOLD},
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
        _SEARCH_CALL: Choice(
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
        memory: the conversations that a request may continue.
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
            "top_logprobs": LIKELIEST,
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

    def __init__(self, memory: Memory) -> None:
        self._memory = memory

    def read(self, fields: Fields, served: Served) -> Asked:
        """Return a request in the neutral form."""
        model_name = fields["model"]
        model = served.model(model_name)
        previous = fields["previous_response_id"]
        earlier = None if previous is None else self._memory.find(previous, "previous_response_id")
        offered = _Offered(model)
        found: list[Any] = [] if earlier is None else [*earlier.found]
        kept = (*(() if earlier is None else earlier.messages), *_read_input(fields, self._memory, offered, found))
        instructions = fields["instructions"]
        messages = (Message("system", instructions), *kept) if instructions else kept
        parts.require_images(model, messages, "input")
        given = parts.distinct(_tools(fields, offered))
        names = {*map(_shared.tool_name, given)}
        tools = [*given, *(tool for tool in found if _shared.tool_name(tool) not in names)]
        choice = fields["tool_choice"]
        form = None if fields["text"] is None else fields["text"]["format"]
        schema = parts.schema_of(form)
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
        params = served.params(model_name, options, tools, _with_names(choice), schema)
        echo = {
            "instructions": instructions,
            "metadata": fields["metadata"] or {},
            "parallel_tool_calls": params.parallel_tool_calls,
            "temperature": params.temperature,
            "top_p": params.top_p,
            "max_output_tokens": params.max_tokens,
            "previous_response_id": previous,
            "tool_choice": choice or "auto",
            "tools": [_echo(tool, offered) for tool in tools],
            "text": {"format": {"type": "text"} if form is None else form.value},
            "truncation": "disabled",
        }
        details = {
            "echo": echo,
            "kept": kept if fields["store"] else None,
            "custom": offered.custom,
            "spaces": offered.spaces,
            "searches": offered.searches,
            "found": tuple(found),
            "seals": _SEALED in included,
            "vocabulary": None if params.logprobs is None else model.vocabulary,
        }
        return Asked(model_name, messages, params, fields["stream"], details=details)

    def whole(self, asked: Asked, answers: Sequence[Generation]) -> dict[str, Any]:
        """Return a response."""
        (answer,) = answers
        head = _head(asked)
        held = _held(asked)
        told = _shared.text_tokens(asked.details["vocabulary"], answer.tokens, answer.text) or []
        thoughts, seals = answer.message.reasoning, asked.details["seals"]
        is_cut = answer.finish_reason == "length" and not answer.tool_calls
        last = "incomplete" if is_cut else "completed"
        status = "completed" if answer.text else last
        output = [
            *([_reasoning(openai_form.new_id("rs_"), thoughts, status, seals=seals)] if thoughts else []),
            *([_text(openai_form.new_id("msg_"), answer.text, last, told)] if answer.text else []),
            *(
                _call(openai_form.new_id("fc_"), call, asked.details)
                for call in answer.tool_calls
                if call.name not in held or _shared.problem(call) is None
            ),
        ]
        note = _shared.note(answer, _shared.cut_places(answer.message, answer.cut))
        response = {**head, **_end(answer.finish_reason, answer.usage, output), **note}
        self.keep(asked, response, answer.message)
        return response

    def stream(self, asked: Asked) -> StreamWriter:
        """Return the writer of response events."""
        return _Events(asked, self)

    def error(self, failure: Failure) -> dict[str, Any]:
        """Return an error in OpenAI's form."""
        return openai_form.error(failure)

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

    def keep(self, asked: Asked, response: dict[str, Any], message: Message) -> None:
        """Keep the conversation with its answer, unless the request asks not to."""
        if asked.details["kept"] is not None:
            self._memory.keep(response["id"], Kept((*asked.details["kept"], message), response, asked.details["found"]))


# -- requests ------------------------------------------------------------------------------------------------------


@dataclass
class _Offered:
    """What a request says of its tools, beside their schemas.

    Attributes:
        model: the model.
        custom: names of custom tools.
        spaces: the namespace and the own name of each tool in a namespace, by the name that the model knows.
        searches: name of the search of tools that the client runs; empty if there is none.
    """

    model: Model
    custom: set[str] = field(default_factory=set)
    spaces: dict[str, tuple[str, str]] = field(default_factory=dict)
    searches: str = ""


def _tools(fields: Fields, offered: _Offered, space: str = "") -> list[Any]:
    """Return the tools of a request, those in namespaces too; hosted ones are left out.

    Args:
        fields: has ``tools``.
        offered: is given what else there is of them.
        space: the namespace of these tools.
    """
    tools: list[Any] = []
    for tool in fields["tools"]:
        if tool.kind == _NAMESPACE:
            tools += _tools(tool, offered, tool["name"])
            continue
        name = tool["name"]
        if tool.kind == _SEARCH:
            # OpenAI's own search has nothing to find here: the prompt of a local model has the names of all deferred
            # tools, and a model on a server gets their schemas.
            if tool["execution"] == "client":
                offered.searches = _SEARCH
                tools.append(parts.function_tool(tool, _SEARCH))
            continue
        parts.direct_callers(tool)
        if space:
            own, name = name, _joined(space, name)
            offered.spaces[name] = space, own
        if tool.kind == "custom":
            offered.custom.add(name)
        made = parts.custom_tool if tool.kind == "custom" else parts.function_tool
        tools.append(made(tool, name, deferred=parts.is_deferred(tool, offered.model)))
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


def _echo(tool: Mapping[str, Any], offered: _Offered) -> dict[str, Any]:
    """Return a tool as the response repeats it."""
    name, about = _shared.tool_name(tool), tool["function"].get("description", "")
    if name == offered.searches:
        parameters = tool["function"]["parameters"]
        return {"type": _SEARCH, "execution": "client", "description": about, "parameters": parameters}
    deferred = {"defer_loading": True} if "defer_loading" in tool else {}
    if name in offered.custom:
        return {"type": "custom", "name": name, "description": about, **deferred}
    return {"type": "function", "strict": True, **tool["function"], **deferred}


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
    return checked(count or 0, "top_logprobs" if count else "include", model)


def _read_input(fields: Fields, memory: Memory, offered: _Offered, found: list[Any]) -> tuple[Message, ...]:
    """Return the messages of ``input``; what the assistant did in one turn is one message.

    An ``item_reference`` stands for an item of an earlier answer. What tools of OpenAI's server did is left out, and so
    is a reference to reasoning that is not kept.

    Args:
        fields: the request.
        memory: the earlier answers.
        offered: is given what else there is of the found tools.
        found: is given the tools that the client's searches have found.
    """
    given = fields["input"]
    if isinstance(given, str):
        return (Message("user", given),)
    messages: list[Message] = []
    for one in given:
        if one.kind == _REFERENCE:
            try:
                item = memory.item(one["id"], one.path("id"))
            except RequestError:
                if not one["id"].startswith("rs_"):
                    raise
                one.skip()
                continue
            one = one.again(item, _ITEM)
        made = _search_output(one, offered, found) if one.kind == _SEARCH_OUTPUT else _READERS[one.kind](one)
        if made.role == "assistant" and messages and messages[-1].role == "assistant":
            messages[-1] = _merged(messages[-1], made)
        else:
            messages.append(made)
    if not messages:
        raise RequestError("input is empty", field="input", hint="send a text or at least one item")
    return tuple(messages)


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


def _search_output(fields: Fields, offered: _Offered, found: list[Any]) -> Message:
    """Return the result of a search that the client has run: the names of the tools, which may be called from now on.

    The prompt of a local model has the schema of a found tool when it is called, like that of a deferred one.
    """
    tools = _tools(fields, offered)
    for tool in tools if isinstance(offered.model, LocalModel) else ():
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


def _sealed(text: str) -> str:
    """Return reasoning as the text that clients hand back without reading it. It is no secret here."""
    return base64.b64encode(text.encode("utf-8", "replace")).decode()


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
    _SEARCH_CALL: _search_call,
}

# -- responses -----------------------------------------------------------------------------------------------------


def _held(asked: Asked) -> Collection[str]:
    """Return the names of the tools whose calls come when they are whole, or not at all."""
    return {*asked.details["custom"], asked.details["searches"]}


def _head(asked: Asked) -> dict[str, Any]:
    return {
        "id": openai_form.new_id("resp_"),
        "object": "response",
        "created_at": int(time.time()),
        "model": asked.model,
        "error": None,
        **asked.details["echo"],
    }


def _end(reason: str, usage: Usage, output: list[dict[str, Any]]) -> dict[str, Any]:
    """Return how a response ended."""
    is_cut = reason == "length"
    return {
        "status": "incomplete" if is_cut else "completed",
        "incomplete_details": {"reason": "max_output_tokens"} if is_cut else None,
        "output": output,
        "usage": {
            "input_tokens": usage.prompt_tokens,
            "input_tokens_details": {"cached_tokens": usage.cached_tokens, "cache_write_tokens": 0},
            "output_tokens": usage.completion_tokens,
            "output_tokens_details": {"reasoning_tokens": usage.reasoning_tokens},
            "total_tokens": usage.prompt_tokens + usage.completion_tokens,
        },
    }


def _reasoning(name: str, text: str, status: str = "completed", *, seals: bool = False) -> dict[str, Any]:
    content = [{"type": "reasoning_text", "text": text}] if text else []
    made = {"type": "reasoning", "id": name, "summary": [], "content": content, "status": status}
    return {**made, "encrypted_content": _sealed(text)} if seals and text else made


def _part(text: str, logprobs: Sequence[dict[str, Any]] = ()) -> dict[str, Any]:
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": list(logprobs)}


def _text(name: str, text: str, status: str = "completed", logprobs: Sequence[dict[str, Any]] = ()) -> dict[str, Any]:
    content = [_part(text, logprobs)] if text else []
    return {"type": "message", "id": name, "role": "assistant", "content": content, "status": status}


def _call(name: str, call: ToolCall, details: Mapping[str, Any]) -> dict[str, Any]:
    """Return a call, of a tool in a namespace as the client named it.

    Arguments of a cut call do not parse, so that no client runs it.
    """
    if call.name == details["searches"]:
        return {
            "type": _SEARCH_CALL,
            "id": name,
            "call_id": call.id,
            "execution": "client",
            "arguments": dict(call.arguments or {}),
            "status": "completed",
        }
    space, own = details["spaces"].get(call.name, (None, call.name))
    named = {"name": own} if space is None else {"namespace": space, "name": own}
    if call.name in details["custom"]:
        return {"type": "custom_tool_call", "id": name, "call_id": call.id, **named, "input": parts.custom_input(call)}
    return {
        "type": "function_call",
        "id": name,
        "call_id": call.id,
        **named,
        "arguments": _shared.executable_text(call),
        "status": "completed" if _shared.problem(call) is None else "incomplete",
    }


class _Events(StreamWriter):
    """Writer of response events. One item is open at a time."""

    def __init__(self, asked: Asked, protocol: Responses) -> None:
        self._asked = asked
        self._protocol = protocol
        self._head = _head(asked)
        self._built = MessageBuilder()
        self._output: list[dict[str, Any]] = []
        self._number = -1
        self._tokens = None if asked.details["vocabulary"] is None else _shared.TextTokens(asked.details["vocabulary"])
        self._told: list[dict[str, Any]] = []  # log-probabilities of the open item
        self._kind = ""  # of the open item
        self._id = ""
        self._text = ""
        self._held = _held(asked)
        self._is_held = False  # the open call

    def begin(self) -> Iterable[str]:
        """Return the response before its answer."""
        response = {**self._head, "status": "in_progress", "incomplete_details": None, "output": [], "usage": None}
        yield self._frame("response.created", response=response)
        yield self._frame("response.in_progress", response=response)

    def event(self, index: int, event: Event) -> Iterable[str]:
        """Return what one event becomes."""
        self._built.add(event)
        if isinstance(event, TokenWritten) and self._tokens is not None:
            self._tokens.add(event)
        elif isinstance(event, ReasoningDelta):
            yield from self._open("reasoning")
            yield from self._add("response.reasoning_text.delta", event.text)
        elif isinstance(event, TextDelta):
            yield from self._open("message")
            yield from self._add("response.output_text.delta", event.text)
        elif isinstance(event, CallStart):
            yield from self._close()
            self._kind, self._id = "function_call", openai_form.new_id("fc_")
            self._is_held = event.name in self._held
            if self._is_held:
                return  # it comes when it is whole, or not at all
            item = {
                **_call(self._id, ToolCall(event.id, event.name, {}, raw=""), self._asked.details),
                "status": "in_progress",
            }
            yield self._frame("response.output_item.added", output_index=len(self._output), item=item)
        elif isinstance(event, ArgumentsDelta):
            if not self._is_held:
                yield self._inner("response.function_call_arguments.delta", delta=event.text)
        elif isinstance(event, CallEnd):
            item = _call(self._id, event.call, self._asked.details)
            if self._is_held:
                yield from self._held_call(item, _shared.problem(event.call) is None)
                return
            if (reason := _shared.problem(event.call)) is not None:
                yield self._inner("response.function_call_arguments.delta", delta=f" <{reason}>")
            done = {"arguments": item["arguments"], "name": item["name"]}
            yield self._inner("response.function_call_arguments.done", **done)
            yield from self._done(item)
        elif isinstance(event, Finish):
            yield from self._close("incomplete" if event.reason == "length" else "completed")
            message = self._built.message()
            cut = _shared.cut_places(message, event.cut)
            response = {**self._head, **_end(event.reason, event.usage, self._output)}
            response |= _shared.note(event, cut)
            self._protocol.keep(self._asked, response, message)
            yield self._frame(f"response.{response['status']}", response=response)

    def end(self) -> Iterable[str]:
        """Return nothing: the last event says that it is the last."""
        return ()

    def failure(self, failure: Failure) -> Iterable[str]:
        """Return the error, which SDKs raise because of its field ``error``; and the failed response, which Codex reads
        instead."""
        error = openai_form.error(failure)["error"]
        told = {"code": error["code"], "message": error["message"]}
        yield self._frame("error", error=error, **told, param=error["param"])
        ended = {"status": "failed", "error": told, "incomplete_details": None, "output": self._output, "usage": None}
        yield self._frame("response.failed", response={**self._head, **ended})

    def _open(self, kind: str) -> Iterable[str]:
        """Begin an item of text, unless one of this kind is open."""
        if self._kind == kind:
            return
        yield from self._close()
        self._kind, self._text, self._told = kind, "", []
        self._id = openai_form.new_id("rs_" if kind == "reasoning" else "msg_")
        item = (_reasoning if kind == "reasoning" else _text)(self._id, "", "in_progress")
        yield self._frame("response.output_item.added", output_index=len(self._output), item=item)
        yield self._inner("response.content_part.added", content_index=0, part=self._part())

    def _part(self) -> dict[str, Any]:
        if self._kind == "reasoning":
            return {"type": "reasoning_text", "text": self._text}
        return _part(self._text, self._told)

    def _add(self, kind: str, text: str) -> Iterable[str]:
        self._text += text
        logprobs: dict[str, Any] = {}
        if self._kind == "message":
            logprobs["logprobs"] = [] if self._tokens is None else self._tokens.told(self._tokens.take(text))
            self._told += logprobs["logprobs"]
        yield self._inner(kind, content_index=0, delta=text, **logprobs)

    def _held_call(self, item: dict[str, Any], is_whole: bool) -> Iterable[str]:
        """Return the call of a custom tool or of a search; one that was cut is left out, for no client could tell."""
        self._kind = ""
        if not is_whole:
            return
        if item["type"] == _SEARCH_CALL:
            begun = {**item, "arguments": {}, "status": "in_progress"}
            yield self._frame("response.output_item.added", output_index=len(self._output), item=begun)
            yield from self._done(item)
            return
        begun = {**item, "input": ""}
        yield self._frame("response.output_item.added", output_index=len(self._output), item=begun)
        yield self._inner("response.custom_tool_call_input.delta", delta=item["input"])
        yield self._inner("response.custom_tool_call_input.done", input=item["input"])
        yield from self._done(item)

    def _close(self, status: str = "completed") -> Iterable[str]:
        """End the open item of text, if there is one."""
        if self._kind not in ("reasoning", "message"):
            return
        is_text = self._kind == "message"
        word = "response.output_text.done" if is_text else "response.reasoning_text.done"
        yield self._inner(word, content_index=0, text=self._text, **({"logprobs": self._told} if is_text else {}))
        yield self._inner("response.content_part.done", content_index=0, part=self._part())
        yield from self._done(
            _text(self._id, self._text, status, logprobs=self._told)
            if is_text
            else _reasoning(self._id, self._text, status, seals=self._asked.details["seals"])
        )

    def _done(self, item: dict[str, Any]) -> Iterable[str]:
        yield self._frame("response.output_item.done", output_index=len(self._output), item=item)
        self._output.append(item)
        self._kind = ""

    def _inner(self, kind: str, **fields: Any) -> str:
        """Return an event inside the open item."""
        return self._frame(kind, item_id=self._id, output_index=len(self._output), **fields)

    def _frame(self, kind: str, **fields: Any) -> str:
        self._number += 1
        return frame({"type": kind, "sequence_number": self._number, **fields}, kind)
