"""Anthropic's messages (``POST /v1/messages``): requests with strict tools, and streamed answers.

Source: the types of the ``anthropic`` package, version 2, and Anthropic's guides ("Structured outputs", "Strict tool
use", "Extended thinking", "Prompt caching").
"""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from ...conversation.events import Usage
from ...conversation.messages import ImagePart, Message, ToolCall
from ...errors import ModelError
from ...generation.params import GenerateParams
from .answer import Answer, count, member
from .answer_judge import Task
from .form import Form
from .provider import failed
from .servers import sampling
from .strict_tools import Limits, Sent, StrictToolsProtocol, Thought, plain_id

#: Version of the API, a header of every request.
_VERSION = "2023-06-01"

#: Limits of the strict tools of one request (guide "Structured outputs", "Schema complexity limits").
LIMITS = Limits(tools=20, optional=24, unions=16)

#: Token budget, which the API demands, if neither the request nor the server's list of models names one.
DEFAULT_BUDGET = 4_096

#: Maximum token budget by default, for models that could write much more.
_MOST_BUDGET = 16_384

#: Minimum token budget of thinking.
_LEAST_THINKING = 1_024

#: Finish reasons that have another name here.
_FINISHES: Mapping[str, str] = {"refusal": "content_filter"}

#: The value of ``cache_control`` at the end of what is cached.
_MARK = {"type": "ephemeral"}


class AnthropicMessages(StrictToolsProtocol):
    """Anthropic's messages. Arguments as of `Protocol`.

    Claude compiles all strict tools and the schema of the answer to one grammar, and refuses one that is too large; so
    fewer tools are strict then. Thinking excludes a forced call, so a call is only demanded in words then.
    """

    limits = LIMITS
    own_answers = "Anthropic's messages"
    address_hint = "Anthropic's API, or of a compatible one, often http://HOST:PORT/v1"
    url = "https://api.anthropic.com/v1"
    version = "v1"
    key_names = ("ANTHROPIC_API_KEY",)
    own_fields = MappingProxyType(
        {
            "messages": "give the conversation as the prompt",
            "stop_sequences": "give stop=... with the request",
            "stream": "call stream() or generate()",
        }
    )
    optional = ("strict", "top_k", "top_p", "temperature", "budget_tokens", "adaptive", "thinking", "tool_choice")

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.is_found = False
        self._most_tokens: int | None = None
        self._is_adaptive = True  # the model's thinking has no budget

    @classmethod
    def key_headers(cls, key: str) -> dict[str, str]:
        """Return the headers of Anthropic's API."""
        return {"anthropic-version": _VERSION, **({"x-api-key": key} if key else {})}

    async def find(self) -> None:
        """Ask for the model's limits, once; a server that does not tell them is no error."""
        if self.is_found:
            return
        facts = await self._told(f"models/{self.name}")
        self.window = count(facts.get("max_input_tokens")) or None
        self._most_tokens = count(facts.get("max_tokens")) or None
        capabilities = facts.get("capabilities")
        thinking = member(member(capabilities, "thinking"), "types")
        self.takes_strict = member(member(capabilities, "structured_outputs"), "supported") is not False
        self._is_adaptive = member(member(thinking, "adaptive"), "supported") is not False

    # -- requests ----------------------------------------------------------------------------------------------

    def tool_fields(self, tools: Sequence[Mapping[str, Any]], sent: Sent, choice: Any) -> dict[str, Any]:
        """Return the fields with the tools and the choice among them."""
        return {"tools": _tools(tools, sent), **choice}

    def without_strict(self, body: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return a request whose tools are not strict."""
        if "tools" not in body:
            return body
        return {**body, "tools": [{key: tool[key] for key in tool if key != "strict"} for tool in body["tools"]]}

    def answer_fields(self, schema: Any) -> dict[str, Any]:
        """Return the fields with the schema of the answer."""
        return {"output_config": {"format": {"type": "json_schema", "schema": schema}}}

    def choice_fields(self, choice: str, parallel: bool) -> dict[str, Any]:
        """Return the field of the tool choice; empty for the default."""
        fields: dict[str, Any] = {"type": {"auto": "auto", "required": "any"}.get(choice, "tool")}
        if fields["type"] == "tool":
            fields["name"] = choice
        if not parallel:
            fields["disable_parallel_tool_use"] = True
        return {} if fields == {"type": "auto"} else {"tool_choice": fields}

    def no_calls(self, task: Task, messages: Sequence[Message]) -> dict[str, Any]:
        """Return the fields that declare the tools of earlier calls, which the API demands, and forbid new ones."""
        if task.forbidden is not None:
            given = [tool["function"] for tool in task.forbidden.to_openai(closed=True)]
            tools = [_tool(one, one.get("parameters", {"type": "object"})) for one in given]
        else:
            names = dict.fromkeys(call.name for turn in messages for call in turn.tool_calls)
            tools = [_tool({"name": name}, {"type": "object"}) for name in names]
        return {"tools": tools, "tool_choice": {"type": "none"}} if tools else {}

    def body(self, params: GenerateParams, form: Form, messages: Sequence[Message], *, is_free: bool) -> dict[str, Any]:
        """Return the body of a message."""
        chosen = sampling(self.kind, params)
        budget = params.max_tokens or min(self._most_tokens or DEFAULT_BUDGET, _MOST_BUDGET)
        thinking = thinking_of(params.thinking, budget, is_adaptive=self._is_adaptive)
        body: dict[str, Any] = {"model": self.name, "max_tokens": budget, "stream": True, **thinking}
        if thinking.get("thinking", {}).get("type") in (None, "disabled"):  # thinking has sampling of its own
            body |= chosen
        if params.stop and is_free:
            body["stop_sequences"] = list(params.stop)
        system, turns = self.turns(messages)
        if system:
            body["system"] = [{"type": "text", "text": system}]
        body |= {"messages": turns, **form.fields}
        is_repeated = bool(form.fields.get("tools")) or any(turn["role"] == "assistant" for turn in turns)
        return _marked(body) if self.prompt_cache and is_repeated else body

    def has_field(self, body: Mapping[str, Any], name: str) -> bool:
        """Return True if a request has an optional field; two of them are forms of thinking."""
        if name not in _THINKING:
            return super().has_field(body, name)
        return bool(body.get("thinking", {}).get("type") == _THINKING[name])

    def without_field(self, body: Mapping[str, Any], name: str) -> Mapping[str, Any]:
        """Return a request without an optional field. Thinking stays: a model that refuses ``adaptive`` takes a
        budget, and one that refuses ``budget_tokens`` is ``adaptive``."""
        if name not in _THINKING or not self.has_field(body, name):
            return super().without_field(body, name)
        if name == "budget_tokens":
            return {**body, "thinking": {"type": "adaptive"}}
        budget = self.budget(body) or DEFAULT_BUDGET
        if budget <= _LEAST_THINKING:
            return super().without_field(body, "thinking")
        thinking = {"type": "enabled", "budget_tokens": max(_LEAST_THINKING, budget // 2)}
        return {**body, "thinking": thinking}

    def budget(self, body: Mapping[str, Any]) -> int | None:
        """Return the token budget, which every request has."""
        return body["max_tokens"] if isinstance(body.get("max_tokens"), int) else None

    def _text(self, text: str) -> dict[str, Any]:
        return {"type": "text", "text": text}

    def _image(self, image: ImagePart) -> dict[str, Any]:
        if image.data is None:
            return {"type": "image", "source": {"type": "url", "url": image.url or ""}}
        data = base64.b64encode(image.data).decode()
        source = {"type": "base64", "media_type": image.type_of_file, "data": data}
        return {"type": "image", "source": source}

    def _call(self, call: ToolCall) -> dict[str, Any]:
        return {"type": "tool_use", "id": plain_id(call.id), "name": call.name, "input": dict(call.arguments)}

    def _result(self, message: Message) -> list[dict[str, Any]]:
        call_id, content = plain_id(message.tool_call_id or ""), self.blocks(message.content)
        result = {"type": "tool_result", "tool_use_id": call_id, "content": content}
        return [{**result, "is_error": True} if message.is_error else result]

    def _thoughts(self, message: Message) -> list[Thought]:
        """Return the blocks of thinking, without those that the API would refuse: they need a signature, or are
        encrypted (``data``)."""
        kept = self.blocks_of(message, "anthropic")
        return [
            Thought(one.call_id, dict(one.data)) for one in kept if one.data.get("signature") or one.data.get("data")
        ]

    # -- answers -----------------------------------------------------------------------------------------------

    def _path_of_answers(self) -> str:
        return "messages"

    def _read(self, event: Any, answer: Answer) -> tuple[str, str]:
        kind = event["type"]
        if kind == "message":
            return self._whole(event, answer)
        if kind == "message_start":
            return self._whole(event["message"], answer)
        if kind == "content_block_start":
            return _start(event["index"], event["content_block"], answer)
        if kind == "content_block_delta":
            return _delta(event["index"], event["delta"], answer)
        if kind == "message_delta":
            self._end(event["delta"], event.get("usage"), answer)
        elif kind == "error":
            error = event.get("error")
            raise failed(error.get("message") if isinstance(error, Mapping) else error)
        elif kind not in ("message_stop", "content_block_stop", "ping"):
            raise KeyError(kind)
        return "", ""

    def _whole(self, message: Mapping[str, Any], answer: Answer) -> tuple[str, str]:
        answer.model = message.get("model") or answer.model
        pieces = [_start(index, block, answer) for index, block in enumerate(message["content"])]
        self._end(message, message.get("usage"), answer)
        return "".join(thought for thought, _ in pieces), "".join(text for _, text in pieces)

    def _end(self, facts: Mapping[str, Any], usage: Any, answer: Answer) -> None:
        """Record the end of an answer: why it ended, an explanation of a refusal as its text, the token counts."""
        reason = facts.get("stop_reason")
        answer.finish = _FINISHES.get(reason, reason) if isinstance(reason, str) else answer.finish
        if answer.finish is not None:
            answer.end_blocks()
        if explanation := member(facts.get("stop_details"), "explanation"):
            answer.text = answer.text or str(explanation)
        if isinstance(usage, Mapping):
            answer.usage = _usage(usage, answer.usage)


#: The types of thinking, by the words with which a refusal names them.
_THINKING = {"budget_tokens": "enabled", "adaptive": "adaptive"}


def thinking_of(asked: Any, budget: int, *, is_adaptive: bool) -> dict[str, Any]:
    """Return the field for thinking, if it is asked for or forbidden.

    Args:
        asked: ``GenerateParams.thinking``.
        budget: token budget of the answer, which includes thinking.
        is_adaptive: the model chooses how much it thinks.

    Raises:
        ModelError: the budget leaves no room for thinking.
    """
    if asked is None:
        return {}
    if asked is False:
        return {"thinking": {"type": "disabled"}}
    if isinstance(asked, bool) or asked == "auto":
        if is_adaptive:
            return {"thinking": {"type": "adaptive"}}
        asked = budget // 2
    if budget <= _LEAST_THINKING:
        hint = f"raise max_tokens above {_LEAST_THINKING}, or give thinking=False"
        raise ModelError(f"max_tokens={budget} leaves no room for thinking", hint=hint)
    return {"thinking": {"type": "enabled", "budget_tokens": min(max(asked, _LEAST_THINKING), budget - 1)}}


def _tools(given: Sequence[Mapping[str, Any]], sent: Sent) -> list[dict[str, Any]]:
    made = []
    for one in given:
        function = one["function"]
        tool = _tool(function, sent.schemas[function["name"]])
        made.append({**tool, "strict": True} if function["name"] in sent.strict else tool)
    return made


def _tool(function: Mapping[str, Any], schema: Any) -> dict[str, Any]:
    described = {"description": function["description"]} if function.get("description") else {}
    return {"name": function["name"], **described, "input_schema": schema}


def _marked(body: dict[str, Any]) -> dict[str, Any]:
    """Return a request with marks at the ends of its tools, its system prompt and its conversation."""

    def last(blocks: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
        return [*blocks[:-1], {**blocks[-1], "cache_control": _MARK}]

    body = {**body, **{name: last(body[name]) for name in ("tools", "system") if body.get(name)}}
    turns = body["messages"]
    if turns and turns[-1]["role"] == "user":
        body["messages"] = [*turns[:-1], {**turns[-1], "content": last(turns[-1]["content"])}]
    return body


def _start(index: Any, block: Mapping[str, Any], answer: Answer) -> tuple[str, str]:
    """Add the start of a block, or a whole one; return the reasoning and the text that it adds. Thinking is also kept
    as a block; one before a call belongs to that call, and is sent back before it."""
    kind = block["type"]
    if kind == "text":
        return answer.write(text=block.get("text") or "")
    if kind == "tool_use":
        answer.begin_call(index, str(block["id"]), str(block["name"]), block.get("input"))
    elif kind in ("thinking", "redacted_thinking"):
        data = {key: value for key, value in block.items() if key in ("type", "thinking", "signature", "data")}
        answer.reasoning_block(index, "anthropic").update(data)
        return answer.write(reasoning=block.get("thinking") or "")
    return "", ""


def _delta(index: Any, delta: Mapping[str, Any], answer: Answer) -> tuple[str, str]:
    """Add the next piece of the block with number ``index``; return the reasoning and the text that it adds."""
    kind = delta["type"]
    if kind == "text_delta":
        return answer.write(text=delta["text"])
    if kind == "input_json_delta" and index in answer.by_index:
        answer.call(index, arguments=delta["partial_json"])
    elif kind == "thinking_delta":
        answer.open[index]["thinking"] += delta["thinking"]
        return answer.write(reasoning=delta["thinking"])
    elif kind == "signature_delta":
        answer.open[index]["signature"] = delta["signature"]
    return "", ""


def _usage(given: Mapping[str, Any], before: Usage) -> Usage:
    """Return the token counts; those of the prompt come at the start of a stream, all at its end."""
    cached = count(given.get("cache_read_input_tokens"))
    prompt = count(given.get("input_tokens")) + cached + count(given.get("cache_creation_input_tokens"))
    thought = count(member(given.get("output_tokens_details"), "thinking_tokens"))
    return Usage(
        prompt_tokens=prompt or before.prompt_tokens,
        completion_tokens=count(given.get("output_tokens")) or before.completion_tokens,
        reasoning_tokens=thought or before.reasoning_tokens,
        cached_tokens=cached or before.cached_tokens,
    )
