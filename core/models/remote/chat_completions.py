"""Chat completions: conversations in the format of requests, and answers, complete or in chunks.

Source: OpenAI's reference of ``POST /v1/chat/completions``; parsing is lenient, because servers omit different fields.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ...conversation.events import Usage
from ...conversation.messages import ImagePart, Message, Part, TextPart, ToolCall
from ...errors import ServerError, ServerFailureError
from ...language.json_text import dump_json

# -- out -----------------------------------------------------------------------------------------------------------


def openai_messages(messages: Sequence[Message]) -> list[dict[str, Any]]:
    """Return a conversation as OpenAI's ``messages``; earlier calls and results without ids get generated ones."""
    turns: list[dict[str, Any]] = []
    open_ids: list[str] = []
    for number, message in enumerate(messages):
        turn: dict[str, Any] = {"role": message.role, "content": _content(message.content)}
        if message.tool_calls:
            calls = [_past_call(call, f"call_{number}_{index}") for index, call in enumerate(message.tool_calls)]
            open_ids = [call["id"] for call in calls]
            turn["tool_calls"] = calls  # the content stays a string, even if empty, because some servers refuse null
        if message.role == "tool":
            turn["tool_call_id"] = message.tool_call_id or (open_ids[0] if open_ids else f"call_{number}")
            if turn["tool_call_id"] in open_ids:
                open_ids.remove(turn["tool_call_id"])
        elif message.name:
            turn["name"] = message.name
        turns.append(turn)
    return turns


def _past_call(call: ToolCall, spare_id: str) -> dict[str, Any]:
    # Arguments are serialised again, because servers and their templates fail on invalid JSON in the history.
    function = {"name": call.name, "arguments": dump_json(dict(call.arguments))}
    return {"id": call.id or spare_id, "type": "function", "function": function}


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
    return f"data:{image.media_type or 'image/png'};base64,{base64.b64encode(image.data).decode()}"


#: Finish reasons of complete answers; ``length`` and all others may mean truncation.
_WHOLE = frozenset(
    {"stop", "tool_calls", "function_call", "eos", "eos_token", "end_turn", "stop_sequence", "tool_use", "complete"}
)

#: Minimum power of two that counts as a token budget of the server.
_LEAST_OWN_BUDGET = 1024

# -- in ------------------------------------------------------------------------------------------------------------


@dataclass
class RawCall:
    """A call in a server's answer.

    Attributes:
        id: its id; empty if there is none.
        name: name of the tool.
        arguments: text of the arguments.
    """

    id: str = ""
    name: str = ""
    arguments: str = ""


@dataclass
class Answer:
    """One answer, assembled from its chunks.

    Attributes:
        text: text of the answer.
        reasoning: reasoning before it, if the server separates it.
        refusal: the model's refusal to answer.
        calls: tool calls, in order.
        finish: finish reason, in the server's words; None if the answer has not ended.
        usage: the token counts that the server reports.
        model: the model's name in the answer.
        budget: the token budget in the request; None if there was none.
        cut: truncated values reported by a server with our plug-in: pointers into its text, or name and pointer for
            calls.
    """

    text: str = ""
    reasoning: str = ""
    refusal: str = ""
    calls: list[RawCall] = field(default_factory=list)
    finish: str | None = None
    usage: Usage = field(default_factory=Usage)
    model: str | None = None
    budget: int | None = None
    cut: tuple[str, ...] = ()
    _by_index: dict[Any, RawCall] = field(default_factory=dict)

    def used_up(self, window: int | None = None) -> bool | None:
        """Return True if the answer has used up its tokens, so that it may be truncated.

        The finish reason is not sufficient: servers report ``tool_calls`` or ``stop`` for truncated calls (named
            choices of llama_cpp.server, streamed calls of vLLM, incomplete calls of ``transformers serve``), so token
            counts are used too. A server may also have a budget that it does not report (``transformers serve``: 1,024
            tokens), so a count that is a power of two from there counts as one.

        Args:
            window: the context window, if known.

        Returns:
            True: by the finish reason or the token counts. False: no sign of it. None: the request had a budget, but
            there are no token counts.
        """
        if self.finish is not None and self.finish.lower() not in _WHOLE:
            return True
        written = self.usage.completion_tokens
        if not written:
            return False if self.budget is None else None
        full = window is not None and self.usage.prompt_tokens + written >= window
        own = written >= _LEAST_OWN_BUDGET and written.bit_count() == 1
        return full or own or (self.budget is not None and written >= self.budget)

    def add(self, event: Any) -> tuple[str, str]:
        """Add a complete completion, or the next chunk of one.

        Returns:
            The added parts of the reasoning and of the text.

        Raises:
            ServerError: it is neither; the message quotes it.
        """
        if isinstance(event, Mapping) and event.get("error"):
            said = event["error"]
            raise ServerFailureError(
                f"the server failed while it answered: {_brief(_message_of(said))}", hint="see its log"
            )
        choices = event.get("choices") if isinstance(event, Mapping) else None
        if not isinstance(choices, list):
            raise _odd(event)
        self.model = event.get("model") or self.model
        if isinstance(event.get("usage"), Mapping):
            self.usage = _usage(event["usage"])
        for choice in choices:
            if not isinstance(choice, Mapping):
                raise _odd(event)
            if choice.get("index"):
                continue  # another choice of the same request, interleaved
            self.finish = choice.get("finish_reason") or self.finish
            self.cut = _cut_places(choice.get("stop_reason")) or self.cut
            delta = choice.get("delta") or choice.get("message") or {}
            if not isinstance(delta, Mapping):
                raise _odd(event)
            return self._delta(delta, event)
        return "", ""

    def _delta(self, delta: Mapping[str, Any], event: Any) -> tuple[str, str]:
        reasoning = _text_of(delta.get("reasoning_content") or delta.get("reasoning"))
        text = _text_of(delta.get("content"))
        self.reasoning += reasoning
        self.text += text
        self.refusal += _text_of(delta.get("refusal"))
        calls = delta.get("tool_calls") or ()
        legacy = delta.get("function_call")
        if isinstance(legacy, Mapping):
            calls = [{"index": 0, "function": legacy}]
        if not isinstance(calls, Sequence) or isinstance(calls, str):
            raise _odd(event)
        for number, piece in enumerate(calls):
            if not isinstance(piece, Mapping):
                raise _odd(event)
            self._call(piece, number, event)
        return reasoning, text

    def _call(self, piece: Mapping[str, Any], number: int, event: Any) -> None:
        function = piece.get("function") or {}
        if not isinstance(function, Mapping):
            raise _odd(event)
        call_id, index = str(piece.get("id") or ""), piece.get("index")
        index = number if not isinstance(index, int) else index
        call = self._by_index.get(index)
        # Some servers use index 0 for every call, with different ids.
        if call is None or (call_id and call.id and call_id != call.id):
            call = self._by_index[index] = RawCall()
            self.calls.append(call)
        call.id = call.id or call_id
        call.name = call.name or str(function.get("name") or "")
        arguments = function.get("arguments")
        if isinstance(arguments, str):
            call.arguments += arguments
        elif arguments is not None:
            call.arguments = json.dumps(arguments)


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
    def number(holder: Any, name: str) -> int:
        value = holder.get(name) if isinstance(holder, Mapping) else None
        return value if isinstance(value, int) and value > 0 else 0

    return Usage(
        prompt_tokens=number(given, "prompt_tokens"),
        completion_tokens=number(given, "completion_tokens"),
        reasoning_tokens=number(given.get("completion_tokens_details"), "reasoning_tokens"),
        cached_tokens=number(given.get("prompt_tokens_details"), "cached_tokens"),
    )


def _message_of(error: Any) -> str:
    message = error.get("message") if isinstance(error, Mapping) else error
    return message if isinstance(message, str) else json.dumps(error)


def _brief(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= 400 else text[:400] + " ..."


def _odd(event: Any) -> ServerError:
    return ServerError(
        f"the server's answer is not a chat completion; received: {_brief(json.dumps(event))}",
        hint="give the address of an OpenAI-compatible API, often http://HOST:PORT/v1",
    )
