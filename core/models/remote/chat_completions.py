"""OpenAI's chat completions: requests in several forms, and answers, complete or in chunks.

Source: OpenAI's reference of ``POST /v1/chat/completions``; parsing is lenient, because servers omit different fields.
"""

from __future__ import annotations

import base64
import json
from collections.abc import AsyncGenerator, Collection, Mapping, Sequence
from contextlib import aclosing
from types import MappingProxyType
from typing import Any

from ...basics.logs import logger_of
from ...conversation.events import Usage
from ...conversation.messages import ImagePart, Message, Part, TextPart, ToolCall
from ...errors import ServerError, ServerFailureError
from ...generation.params import GenerateParams
from ...json import dump_json
from ..call_ids import with_call_ids
from ..chat_template import ChatTemplate
from .answer import Answer, brief, count, member
from .answer_judge import Task
from .detect import detect_server
from .enforced import has_plugin, is_enforceable
from .form import GRAMMAR, Form
from .own_grammar import completion_pieces, grammar_form, template_of, text_forms
from .protocol import Protocol
from .servers import completion_options, enforced_form, forms

_LOG = logger_of("remote")

# -- out -----------------------------------------------------------------------------------------------------------


def openai_messages(messages: Sequence[Message]) -> list[dict[str, Any]]:
    """Return a conversation as OpenAI's ``messages``; earlier calls and results without ids get generated ones."""
    turns: list[dict[str, Any]] = []
    for message in with_call_ids(messages):
        turn: dict[str, Any] = {"role": message.role, "content": _content(message.content)}
        if message.tool_calls:  # the content stays a string, even if empty, because some servers refuse null
            turn["tool_calls"] = [_past_call(call) for call in message.tool_calls]
        if message.role == "tool":
            turn["tool_call_id"] = message.tool_call_id
        elif message.name:
            turn["name"] = message.name
        turns.append(turn)
    return turns


def _past_call(call: ToolCall) -> dict[str, Any]:
    # Arguments are serialised again, because servers and their templates fail on invalid JSON in the history.
    function = {"name": call.name, "arguments": dump_json(dict(call.arguments))}
    return {"id": call.id, "type": "function", "function": function}


def _content(content: str | tuple[Part, ...]) -> Any:
    if isinstance(content, str):
        return content
    if all(isinstance(part, TextPart) for part in content):
        return "".join(part.text for part in content if isinstance(part, TextPart))
    return [_part(part) for part in content]


def _part(part: Part) -> dict[str, Any]:
    if isinstance(part, TextPart):
        return {"type": "text", "text": part.text}
    return {"type": "image_url", "image_url": {"url": _address(part)}}


def _address(image: ImagePart) -> str:
    if image.data is None:
        return image.url or ""
    return f"data:{image.type_of_file};base64,{base64.b64encode(image.data).decode()}"


# -- the protocol --------------------------------------------------------------------------------------------------


class ChatCompletions(Protocol):
    """OpenAI's chat completions, on any kind of server.

    vLLM with our plug-in enforces whole requests; llama.cpp's server, vLLM and SGLang our exported grammar. The kind
    ``"auto"`` is detected. Arguments as of `Protocol`.
    """

    own_fields = MappingProxyType(
        {
            "messages": "give the conversation as the prompt",
            "n": "ask as often as there should be answers",
            "stop": "give stop=... with the request, which looks for it where no call can be cut by it",
            "stream": "call stream() or generate()",
        }
    )

    def __init__(self, kind: str, *args: Any, **options: Any) -> None:
        super().__init__(kind, *args, **options)
        self._is_probed = False  # for our plug-in
        self._is_asked = False  # for its template
        self._template: ChatTemplate | None = None  # of a server that enforces our grammars
        self.is_found = kind != "auto"

    async def find(self) -> None:
        """Detect the kind of the server, once."""
        if not self.is_found:
            self.kind, self.window = await detect_server(self.transport, self.name)
            self.is_found = True

    async def prepare(self, task: Task) -> bool:
        """Ask the server, until it has answered once, for our plug-in and for support of our grammar. Return True if it
        has the plug-in and the plug-in can enforce the task."""
        await self.find()
        enforced = is_enforceable(task)
        if enforced and not self._is_probed:
            self.has_plugin = self.kind == "vllm" and await has_plugin(self.transport, self.name)
            self._is_probed = True
        if self.kind == "llama.cpp" and not self._is_asked:
            self._template = await template_of(self.transport)
            self._is_asked = True
        return enforced and self.has_plugin

    def forms(self, task: Task, unknown: Collection[str], messages: Sequence[Message], *, enforced: bool) -> list[Form]:
        """Return the forms for the kind of the server."""
        found = self._standard_forms(task, unknown, enforced)
        if enforced:
            return found
        # The server's own form is first, because its calls have the model's format, unless it cannot say all: a schema
        # beside tools, or a grammar.
        is_both = task.tools is not None and task.schema is not None
        says_all = found[0].name in ("strict tools", "json_schema") and not is_both
        own_forms = text_forms(self.kind, task, self.planner, self.taken)
        found = [found[0], *own_forms, *found[1:]] if says_all else [*own_forms, *found]
        if self._template is not None and (own := grammar_form(task, self.planner, self._template, messages)):
            found.insert(0, own)
        return [form for form in found if form.name not in self.ignored]

    def _standard_forms(self, task: Task, unknown: Collection[str], enforced: bool) -> list[Form]:
        """Return the forms without an exported grammar: for our plug-in (``enforced``) one, else those of the kind of
        the server. Without constrained decoding (``task.free``), JSON is asked for in the prompt, the last form."""
        if task.tools is not None:
            tools = task.tools.to_openai(closed=True)
            if enforced:
                bound = task.tools.to_openai(closed=True, bound=True)
                return [enforced_form(self.kind, task.params, tools, bound, task.rules)]
            return forms(self.kind, task.params, tools, task.schema, unknown)
        if enforced:
            return [enforced_form(self.kind, task.params, (), (), task.rules)]
        possible = forms(self.kind, task.params, (), task.schema if task.is_json else None, unknown)
        return possible[-1:] if task.free else possible

    def body(self, params: GenerateParams, form: Form, messages: Sequence[Message], *, is_free: bool) -> dict[str, Any]:
        """Return the body of a chat completion."""
        turns = {"model": self.name, "messages": openai_messages(messages)}
        body = {**turns, **form.fields, **completion_options(self.kind, params)}
        if not is_free:
            body.pop("stop", None)  # some servers search for it inside of arguments and strings
        return body

    def budget(self, body: Mapping[str, Any]) -> int | None:
        """Return the token budget by either name."""
        budgets = [body[name] for name in ("max_tokens", "max_completion_tokens") if isinstance(body.get(name), int)]
        return min(budgets, default=None)

    def refused_field(self, body: Mapping[str, Any], reason: str) -> str:
        """Return ``max_tokens`` if the server knows the budget by its newer name only, as that of OpenAI does."""
        return "max_tokens" if "max_tokens" in body and "max_completion_tokens" in reason else ""

    def without_field(self, body: Mapping[str, Any], name: str) -> Mapping[str, Any]:
        """Return a request with the other name of the budget."""
        return {"max_completion_tokens" if key == name else key: value for key, value in body.items()}

    async def _events(self, form: Form, body: Mapping[str, Any], live: bool) -> AsyncGenerator[Any, None]:
        """Yield the JSON of an answer: the chunks of a stream if ``live``, else the complete one. A grammar has an
        endpoint of its own (`completion_pieces`). A stream that ends before its first event is replaced by a request
        without streaming."""
        if form.name == GRAMMAR:
            own = {key: value for key, value in body.items() if key != "messages"}
            async with aclosing(completion_pieces(self.transport, form, own, live)) as pieces:
                async for piece in pieces:
                    yield piece
            return
        if live:
            is_empty = True
            streamed = {**body, "stream": True, "stream_options": {"include_usage": True}}
            async with aclosing(self.transport.events("chat/completions", streamed)) as events:
                async for event in events:
                    is_empty = False
                    yield event
            if not is_empty:
                return
            # llama_cpp.server cannot stream an answer that may call tools, and ends the stream before its first event.
            _LOG.info("the server of %s ended a stream before it began; asking for the answer in one piece", self.name)
        yield await self.transport.fetch("chat/completions", body)

    def read(self, event: Any, answer: Answer) -> tuple[str, str]:
        """Add a complete completion, or the next chunk of one."""
        return read_completion(event, answer)


# -- in ------------------------------------------------------------------------------------------------------------


def read_completion(event: Any, answer: Answer) -> tuple[str, str]:
    """Add a complete completion, or the next chunk of one, to an answer.

    Returns:
        The added parts of the reasoning and of the text.

    Raises:
        ServerError: it is neither; the message quotes it.
    """
    if error := member(event, "error"):
        reason = brief(_message_of(error))
        raise ServerFailureError(f"the server failed while it answered: {reason}", hint="see its log")
    choices = member(event, "choices")
    if not isinstance(choices, list):
        raise _no_completion(event)
    answer.model = event.get("model") or answer.model
    if isinstance(event.get("usage"), Mapping):
        answer.usage = _usage(event["usage"])
    for choice in choices:
        if not isinstance(choice, Mapping):
            raise _no_completion(event)
        if choice.get("index"):
            continue  # another choice of the same request, interleaved
        answer.finish = choice.get("finish_reason") or answer.finish
        answer.cut = _cut_places(choice.get("stop_reason")) or answer.cut
        delta = choice.get("delta") or choice.get("message") or {}
        if not isinstance(delta, Mapping):
            raise _no_completion(event)
        return _read_delta(delta, answer, event)
    return "", ""


def _read_delta(delta: Mapping[str, Any], answer: Answer, event: Any) -> tuple[str, str]:
    """Add the message of a choice, whole or a chunk of it, to the answer; return the reasoning and the text that it
    adds. Some servers send arguments as JSON values, which become their text; ``event`` is shown in the error for a
    malformed one."""
    answer.refusal += _text_of(delta.get("refusal"))
    calls = delta.get("tool_calls") or ()
    legacy = delta.get("function_call")
    if isinstance(legacy, Mapping):
        calls = [{"index": 0, "function": legacy}]
    if not isinstance(calls, Sequence) or isinstance(calls, str):
        raise _no_completion(event)
    added = answer.write(
        _text_of(delta.get("reasoning_content") or delta.get("reasoning")), _text_of(delta.get("content"))
    )
    for number, piece in enumerate(calls):
        function = (piece.get("function") or {}) if isinstance(piece, Mapping) else None
        if not isinstance(function, Mapping):
            raise _no_completion(event)
        index, arguments = piece.get("index"), function.get("arguments")
        call = answer.call(
            index if isinstance(index, int) else number,
            str(piece.get("id") or ""),
            str(function.get("name") or ""),
            arguments if isinstance(arguments, str) else "",
        )
        if arguments is not None and not isinstance(arguments, str):
            call.arguments = json.dumps(arguments)
    return added


def _cut_places(stop_reason: Any) -> tuple[str, ...]:
    """Return the truncated values in a ``stop_reason`` of our plug-in for vLLM."""
    if not isinstance(stop_reason, str) or not stop_reason.startswith('{"toolgrammar"'):
        return ()
    return tuple(json.loads(stop_reason)["toolgrammar"]["cut"])


def _text_of(content: Any) -> str:
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "".join(str(part.get("text") or "") for part in content if isinstance(part, Mapping))
    return ""


def _usage(given: Mapping[str, Any]) -> Usage:
    """Return the token counts of an answer; 0 for counts that the server leaves out or writes otherwise."""
    return Usage(
        prompt_tokens=count(given.get("prompt_tokens")),
        completion_tokens=count(given.get("completion_tokens")),
        reasoning_tokens=count(member(given.get("completion_tokens_details"), "reasoning_tokens")),
        cached_tokens=count(member(given.get("prompt_tokens_details"), "cached_tokens")),
    )


def _message_of(error: Any) -> str:
    message = error if isinstance(error, str) else member(error, "message")
    return message if isinstance(message, str) else json.dumps(error)


def _no_completion(event: Any) -> ServerError:
    return ServerError(
        f"the server's answer is not a chat completion; received: {brief(json.dumps(event))}",
        hint="give the address of an OpenAI-compatible API, often http://HOST:PORT/v1",
    )
