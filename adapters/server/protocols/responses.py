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
    ReasoningDelta,
    TextDelta,
    TokenWritten,
    ToolCall,
    Usage,
    arguments_text,
)
from toolgrammar.core.models import LocalModel, Model

from ... import _shared
from ..asked import (
    INPUT,
    Asked,
    Served,
    custom_input,
    custom_tool,
    direct_callers,
    distinct,
    function_tool,
    is_deferred,
    require_images,
    sampling,
    schema_of,
    thinking_of,
    tool_kind,
)
from ..failures import Failure
from ..fields import Fields, RequestError
from . import openai_form
from .base import Protocol, StreamWriter, frame
from .logprobs import checked

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


class Responses(Protocol):
    """OpenAI's responses.

    Args:
        memory: the conversations that a request may continue.
    """

    path = "/v1/responses"
    names = MappingProxyType({"max_tokens": "max_output_tokens", "schema": "text.format"})
    streams_overflow = True

    def __init__(self, memory: Memory) -> None:
        self._memory = memory

    def read(self, fields: Fields, served: Served) -> Asked:
        """Return a request in the neutral form."""
        fields.required("model")
        model_name = fields.text("model")
        model = served.model(model_name)
        previous = fields.text("previous_response_id")
        earlier = None if previous is None else self._memory.find(previous, "previous_response_id")
        offered = _Offered(model)
        found: list[Any] = [] if earlier is None else [*earlier.found]
        kept = (*(() if earlier is None else earlier.messages), *_read_input(fields, self._memory, offered, found))
        instructions = fields.text("instructions")
        messages = (Message("system", instructions), *kept) if instructions else kept
        require_images(model, messages, "input")
        given = distinct(_tools(fields, offered))
        names = {*map(_shared.tool_name, given)}
        tools = [*given, *(tool for tool in found if _shared.tool_name(tool) not in names)]
        choice = fields.one_of("tool_choice", (str, dict))
        parallel = fields.one_of("parallel_tool_calls", (bool,))
        text = fields.inner("text") or Fields({})
        text.not_offered("verbosity", "medium")
        form = text.take("format")
        schema = schema_of(None if form is None else text.within(form, text.path("format")))
        text.end(lacks_schema=form is None)
        reasoning = fields.inner("reasoning") or Fields({})
        thinking = thinking_of(reasoning, "effort", model, optional=True)
        reasoning.not_offered("summary", "auto")
        reasoning.not_offered("generate_summary", "auto")
        reasoning.end()
        included = _included(fields)
        options = {
            **sampling(fields),
            "max_tokens": fields.whole("max_output_tokens"),
            "parallel_tool_calls": parallel,
            "thinking": thinking,
            "logprobs": _logprobs(fields, included, model),
        }
        stream = fields.flag("stream")
        openai_form.stream_options(fields, stream).end()
        keeps = fields.flag("store", True)
        metadata = openai_form.labels(fields)
        fields.refuse("background", False)
        fields.not_offered("truncation", "disabled")  # a conversation that does not fit is an error in any case
        fields.refuse("conversation", hint="send the whole conversation as input")
        fields.refuse("prompt", hint="send its text")
        fields.end()
        params = served.params(model_name, options, tools, _with_names(choice), schema)
        echo = {
            "instructions": instructions,
            "metadata": metadata,
            "parallel_tool_calls": params.parallel_tool_calls,
            "temperature": params.temperature,
            "top_p": params.top_p,
            "max_output_tokens": params.max_tokens,
            "previous_response_id": previous,
            "tool_choice": choice or "auto",
            "tools": [_echo(tool, offered) for tool in tools],
            "text": {"format": form or {"type": "text"}},
            "truncation": "disabled",
        }
        details = {
            "echo": echo,
            "kept": kept if keeps else None,
            "custom": offered.custom,
            "spaces": offered.spaces,
            "searches": offered.searches,
            "found": tuple(found),
            "seals": _SEALED in included,
            "vocabulary": None if params.logprobs is None else model.vocabulary,
        }
        return Asked(model_name, messages, params, stream, details=details)

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
    custom, spaces = offered.custom, offered.spaces
    for tool in fields.objects("tools"):
        kind = tool_kind(tool, custom, () if space else (_NAMESPACE, _SEARCH))
        if not kind:
            continue
        if kind == _SEARCH:
            tools += _search(tool, offered)
            continue
        if kind == _NAMESPACE:
            tool.required("name")
            name = tool.text("name")
            tool.ignore("description")
            tools += _tools(tool, offered, name)
            tool.end()
            continue
        deferred = is_deferred(tool, offered.model)
        direct_callers(tool)
        if space:
            tool.required("name")
            own = tool.text("name")
            tool.put("name", _joined(space, own))
            spaces[_joined(space, own)] = space, own
        if kind == "custom":
            tools.append(custom_tool(tool, deferred=deferred))
            custom.add(_shared.tool_name(tools[-1]))
        else:
            tool.ignore("output_schema")
            tools.append(function_tool(tool, deferred=deferred))
    return tools


def _search(tool: Fields, offered: _Offered) -> list[Any]:
    """Return the search of deferred tools as a function, if the client runs it.

    OpenAI's own search has nothing to find here: the prompt of a local model has the names of all deferred tools, and a
    model on a server gets their schemas.
    """
    if tool.word("execution", ("server", "client"), "server") == "server":
        tool.ignore("description", "parameters")
        tool.end()
        return []
    offered.searches = _SEARCH
    tool.put("name", _SEARCH)
    return [function_tool(tool)]


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
    included = fields.items("include")
    fields.unused += [f"include[{n}]" for n, one in enumerate(included) if one not in (_LOGPROBS, _SEALED)]
    return [one for one in included if one in (_LOGPROBS, _SEALED)]


def _logprobs(fields: Fields, included: Sequence[Any], model: Model) -> int | None:
    """Return how many likely tokens are asked for at each place; None: no log-probabilities."""
    count = fields.whole("top_logprobs")
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
    fields.required("input")
    given = fields.one_of("input", (str, list))
    if isinstance(given, str):
        return (Message("user", given),)
    messages: list[Message] = []
    for index, item in enumerate(given):
        one = fields.within(item, f"input[{index}]")
        kind = one.word("type", (*_READERS, _SEARCH_OUTPUT, *_HOSTED_ITEMS, _REFERENCE)) or "message"
        if kind == _REFERENCE:
            one.required("id")
            name = one.text("id")
            try:
                item = memory.item(name, one.path("id"))
            except RequestError:
                if not str(name).startswith("rs_"):
                    raise
                one.skip()
                continue
            one.end()
            one = fields.within(item, f"input[{index}]")
            kind = one.text("type")
        if kind in _HOSTED_ITEMS or (kind in _SEARCH_ITEMS and one.take("execution") != "client"):
            one.skip()
            continue
        one.ignore("id", "status", "phase")
        made = _search_output(one, offered, found) if kind == _SEARCH_OUTPUT else _READERS[kind](one)
        one.end()
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
    role = fields.word("role", ("system", "developer", "user", "assistant"))
    if not role:
        fields.required("role")
    return Message(_shared.role_of(role), _shared.parts_of(_content(fields, "content")))


def _content(fields: Fields, name: str) -> Any:
    """Return a content, its parts checked, in a form that `_shared.parts_of` reads."""
    content = fields.one_of(name, (str, list))
    if not isinstance(content, list):
        return content
    made: list[dict[str, Any]] = []
    for index, part in enumerate(content):
        one = fields.within(part, f"{fields.path(name)}[{index}]")
        kind = one.word("type", ("input_text", "output_text", "text", "refusal", "input_image"))
        if not kind:
            one.required("type")
        if kind == "input_image":
            one.required("image_url")
            made.append({"type": "image_url", "image_url": one.text("image_url")})
            one.not_offered("detail", "auto")
        else:
            word = "refusal" if kind == "refusal" else "text"
            one.required(word)
            made.append({"type": "text", "text": one.text(word)})
            one.ignore("annotations", "logprobs")
        one.ignore("prompt_cache_breakpoint")
        one.end()
    return made


def _function_call(fields: Fields) -> Message:
    call = _shared.past_call(*_called(fields), fields.text("arguments", ""))
    return Message("assistant", tool_calls=(call,))


def _search_call(fields: Fields) -> Message:
    fields.required("call_id")
    arguments = fields.one_of("arguments", (dict, str), {})
    fields.ignore("created_by")
    return Message("assistant", tool_calls=(_shared.past_call(fields.text("call_id"), _SEARCH, arguments),))


def _search_output(fields: Fields, offered: _Offered, found: list[Any]) -> Message:
    """Return the result of a search that the client has run: the names of the tools, which may be called from now on.

    The prompt of a local model has the schema of a found tool when it is called, like that of a deferred one.
    """
    fields.required("call_id")
    fields.ignore("created_by")
    tools = _tools(fields, offered)
    for tool in tools if isinstance(offered.model, LocalModel) else ():
        tool["defer_loading"] = True
    known = {_shared.tool_name(tool) for tool in found}
    found += [tool for tool in tools if _shared.tool_name(tool) not in known]
    text = "\n".join(map(_shared.tool_name, tools)) or "No tools were found."
    return Message("tool", text, tool_call_id=fields.text("call_id"))


def _custom_call(fields: Fields) -> Message:
    call = _shared.past_call(*_called(fields), {INPUT: fields.text(INPUT, "")})
    return Message("assistant", tool_calls=(call,))


def _called(fields: Fields) -> tuple[str, str]:
    """Return the id of a call, and the name that the model knows of its tool."""
    fields.required("call_id")
    fields.required("name")
    fields.ignore("caller")
    space, name = fields.text("namespace"), fields.text("name")
    return fields.text("call_id"), _joined(space, name) if space else name


def _function_call_output(fields: Fields) -> Message:
    fields.required("call_id")
    fields.ignore("caller")
    return Message("tool", _shared.parts_of(_content(fields, "output")), tool_call_id=fields.text("call_id"))


def _past_reasoning(fields: Fields) -> Message:
    texts = [part.text("text", "") for part in (*fields.objects("content"), *fields.objects("summary"))]
    sealed = fields.text("encrypted_content", "")
    return Message("assistant", reasoning="".join(texts) or _unsealed(sealed) or None)


def _sealed(text: str) -> str:
    """Return reasoning as the text that clients hand back without reading it. It is no secret here."""
    return base64.b64encode(text.encode("utf-8", "replace")).decode()


def _unsealed(text: str) -> str:
    """Return the reasoning in such a text; empty for one of another server."""
    try:
        return base64.b64decode(text, validate=True).decode()
    except ValueError:
        return ""


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
        return {"type": "custom_tool_call", "id": name, "call_id": call.id, **named, "input": custom_input(call)}
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
