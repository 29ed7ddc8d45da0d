"""Amazon Bedrock's ``ConverseStream``: requests with strict tools, and streamed answers.

Source: the service model ``bedrock-runtime`` of the ``botocore`` package, version 1.44.
"""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any
from urllib.parse import quote

from ...conversation.events import Usage
from ...conversation.messages import ImagePart, Message, ToolCall
from ...errors import ModelError
from ...generation.params import GenerateParams
from .answer import Answer, count
from .answer_judge import Task
from .anthropic_messages import DEFAULT_BUDGET, LIMITS, thinking_of
from .form import Form
from .provider import failed
from .servers import sampling
from .strict_tools import Sent, StrictToolsProtocol, Thought, plain_id

#: Stop reasons of answers that Bedrock withheld, and of those that it could not read itself.
_WITHHELD = frozenset({"guardrail_intervened", "content_filtered"})
_MALFORMED = frozenset({"malformed_model_output", "malformed_tool_use"})

#: The block up to which a prompt is cached.
_POINT = {"cachePoint": {"type": "default"}}

#: Formats of images.
_FORMATS = ("png", "jpeg", "gif", "webp")


class Converse(StrictToolsProtocol):
    """Bedrock's Converse form, for all its models. Arguments as of `Protocol`.

    Strict tools and thinking are those of Claude; a model that refuses them is asked without.
    """

    limits = LIMITS
    own_answers = "Bedrock's"
    address_hint = "Bedrock's runtime: https://bedrock-runtime.REGION.amazonaws.com"
    key_names = ("AWS_BEARER_TOKEN_BEDROCK",)
    own_fields = MappingProxyType({"messages": "give the conversation as the prompt"})
    optional = ("strict", "cachePoint", "topP", "temperature", "thinking", "toolChoice")

    @classmethod
    def home(cls) -> str | None:
        """Return the address of the region in the environment."""
        region = os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION")
        return f"https://bedrock-runtime.{region}.amazonaws.com" if region else None

    # -- requests ----------------------------------------------------------------------------------------------

    def choice_fields(self, choice: str, parallel: bool) -> dict[str, Any]:
        """Return the field of the tool choice; empty for the default. There is none for parallel calls."""
        if choice == "auto":
            return {}
        return {"toolChoice": {"any": {}} if choice == "required" else {"tool": {"name": choice}}}

    def tool_fields(self, tools: Sequence[Mapping[str, Any]], sent: Sent, choice: Any) -> dict[str, Any]:
        """Return the configuration of the tools."""
        made = [_tool(one["function"], sent.schemas, one["function"]["name"] in sent.strict) for one in tools]
        return {"toolConfig": {"tools": made, **choice}}

    def without_strict(self, body: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return a request whose tools are not strict."""
        if "toolConfig" not in body:
            return body
        entries = [
            {kind: {key: spec[key] for key in spec if key != "strict"} for kind, spec in entry.items()}
            for entry in body["toolConfig"]["tools"]
        ]
        return {**body, "toolConfig": {**body["toolConfig"], "tools": entries}}

    def answer_fields(self, schema: Any) -> dict[str, Any]:
        """Return the format of the answer; the schema is a text here."""
        named = {"jsonSchema": {"name": "answer", "schema": json.dumps(schema)}}
        return {"outputConfig": {"textFormat": {"type": "json_schema", "structure": named}}}

    def no_calls(self, task: Task, messages: Sequence[Message]) -> dict[str, Any]:
        """Return the tools of earlier calls, which the API demands; calls cannot be forbidden, only asked for again."""
        names = dict.fromkeys(call.name for turn in messages for call in turn.tool_calls)
        tools = [_tool({"name": name}, {}, False) for name in names]
        return {"toolConfig": {"tools": tools}} if tools else {}

    def body(self, params: GenerateParams, form: Form, messages: Sequence[Message], *, is_free: bool) -> dict[str, Any]:
        """Return the body of a request."""
        chosen = sampling(self.kind, params)
        thinking = thinking_of(params.thinking, params.max_tokens or DEFAULT_BUDGET, is_adaptive=False)
        config: dict[str, Any] = {"maxTokens": params.max_tokens or (DEFAULT_BUDGET if thinking else None)}
        if thinking.get("thinking", {}).get("type") != "enabled":  # thinking has sampling of its own
            config |= chosen
        config["stopSequences"] = list(params.stop) if params.stop and is_free else None
        system, turns = self.turns(messages)
        body: dict[str, Any] = {"messages": turns, **form.fields}
        body["inferenceConfig"] = {name: value for name, value in config.items() if value is not None}
        if system:
            body["system"] = [{"text": system}]
        if thinking:
            body["additionalModelRequestFields"] = thinking
        is_repeated = "toolConfig" in body or any(turn["role"] == "assistant" for turn in turns)
        return _marked(body) if self.prompt_cache and is_repeated else body

    def budget(self, body: Mapping[str, Any]) -> int | None:
        """Return the token budget."""
        found = body.get("inferenceConfig", {}).get("maxTokens")
        return found if isinstance(found, int) else None

    def has_field(self, body: Mapping[str, Any], name: str) -> bool:
        """Return True if a request has an optional field, at any place."""
        if name == "strict":
            return super().has_field(body, name)
        if name == "cachePoint":
            return _unmarked(body) != body
        return name in body.get(_outer_field(name), {})

    def without_field(self, body: Mapping[str, Any], name: str) -> Mapping[str, Any]:
        """Return a request without an optional field."""
        if name == "strict":
            return super().without_field(body, name)
        if name == "cachePoint":
            return _unmarked(body)
        outer = _outer_field(name)
        inner = {key: value for key, value in body.get(outer, {}).items() if key != name}
        others = {key: value for key, value in body.items() if key != outer}
        return {**others, outer: inner} if inner else others

    def _text(self, text: str) -> dict[str, Any]:
        return {"text": text}

    def _image(self, image: ImagePart) -> dict[str, Any]:
        """Return an image as a block. Raise ModelError for an address instead of bytes, or a type that Bedrock does not
        take."""
        if image.data is None:
            raise ModelError("Bedrock takes no address of an image", hint="give its bytes: ImagePart(data=...)")
        kind = image.type_of_file.removeprefix("image/").replace("jpg", "jpeg")
        if kind not in _FORMATS:
            raise ModelError(
                f"Bedrock takes no image of the type {image.media_type!r}", hint=f"one of {', '.join(_FORMATS)}"
            )
        return {"image": {"format": kind, "source": {"bytes": base64.b64encode(image.data).decode()}}}

    def _call(self, call: ToolCall) -> dict[str, Any]:
        return {"toolUse": {"toolUseId": plain_id(call.id), "name": call.name, "input": dict(call.arguments)}}

    def _result(self, message: Message) -> list[dict[str, Any]]:
        error = {"status": "error"} if message.is_error else {}
        content = self.blocks(message.content) or [{"text": "(nothing)"}]
        return [{"toolResult": {"toolUseId": plain_id(message.tool_call_id or ""), "content": content, **error}}]

    def _thoughts(self, message: Message) -> list[Thought]:
        kept = self.blocks_of(message, "bedrock")
        return [Thought(one.call_id, {"reasoningContent": dict(one.data)}) for one in kept]

    # -- answers -----------------------------------------------------------------------------------------------

    def _path_of_answers(self) -> str:
        return f"model/{quote(self.name, safe='')}/converse-stream"

    def _read(self, event: Any, answer: Answer) -> tuple[str, str]:
        """Read an event of a stream, or a whole answer; return the reasoning and the text that it adds."""
        if "output" in event:
            content = event["output"]["message"]["content"]
            pieces = [_start(index, block, answer) for index, block in enumerate(content)]
            _end(event["stopReason"], answer)
            answer.usage = _usage(event["usage"])
            return "".join(thought for thought, _ in pieces), "".join(text for _, text in pieces)
        ((kind, given),) = event.items()
        if kind.lower().endswith("exception"):
            raise failed(given.get("message") or kind, kind)
        if kind == "contentBlockStart":
            return _start(given["contentBlockIndex"], given["start"], answer)
        if kind == "contentBlockDelta":
            return _delta(given["contentBlockIndex"], given["delta"], answer)
        if kind == "messageStop":
            _end(given["stopReason"], answer)
        elif kind == "metadata":
            answer.usage = _usage(given["usage"])
        elif kind not in ("messageStart", "contentBlockStop"):
            raise KeyError(kind)  # of another API: `read` makes an error of it that shows the event
        return "", ""


def _outer_field(name: str) -> str:
    """Return the field of a request that an optional field is in."""
    return {"thinking": "additionalModelRequestFields", "toolChoice": "toolConfig"}.get(name, "inferenceConfig")


def _tool(function: Mapping[str, Any], schemas: Mapping[str, Any], is_strict: bool) -> dict[str, Any]:
    described = {"description": function["description"]} if function.get("description") else {}
    made = {"name": function["name"], **described}
    made["inputSchema"] = {"json": schemas.get(function["name"], {"type": "object"})}
    return {"toolSpec": {**made, "strict": True} if is_strict else made}


def _marked(body: dict[str, Any]) -> dict[str, Any]:
    """Return a request with cache points after its tools, its system prompt and its conversation."""
    made = dict(body)
    if made.get("toolConfig", {}).get("tools"):
        made["toolConfig"] = {**made["toolConfig"], "tools": [*made["toolConfig"]["tools"], _POINT]}
    if made.get("system"):
        made["system"] = [*made["system"], _POINT]
    turns = made["messages"]
    if turns and turns[-1]["role"] == "user":
        made["messages"] = [*turns[:-1], {**turns[-1], "content": [*turns[-1]["content"], _POINT]}]
    return made


def _unmarked(body: Mapping[str, Any]) -> dict[str, Any]:
    """Return a request without cache points, which are where `_marked` adds them."""

    def unmarked(blocks: Sequence[Any]) -> list[Any]:
        return [block for block in blocks if block != _POINT]

    made = dict(body)
    if "toolConfig" in made:
        made["toolConfig"] = {**made["toolConfig"], "tools": unmarked(made["toolConfig"]["tools"])}
    if "system" in made:
        made["system"] = unmarked(made["system"])
    made["messages"] = [{**turn, "content": unmarked(turn["content"])} for turn in made["messages"]]
    return made


def _start(index: Any, block: Mapping[str, Any], answer: Answer) -> tuple[str, str]:
    """Add the start of a block, or a whole one; return the reasoning and the text that it adds. Reasoning is also kept
    as a block, to be sent back with the next request.

    A stream has the text of a block with citations in the pieces of its text. Calls of Bedrock's own tools, which it
    runs itself, and their results are not the model's answer; images have no place in an answer.
    """
    if "toolUse" in block:
        call = block["toolUse"]
        if call.get("type") == "server_tool_use":
            return "", ""
        answer.begin_call(index, str(call["toolUseId"]), str(call["name"]), call.get("input"))
    elif "text" in block:
        return answer.write(text=block["text"])
    elif "citationsContent" in block:
        return answer.write(text="".join(part["text"] for part in block["citationsContent"].get("content", ())))
    elif "reasoningContent" in block:
        data = answer.reasoning_block(index, "bedrock")
        data.update(block["reasoningContent"])
        return answer.write(reasoning=str(data.get("reasoningText", {}).get("text") or ""))
    return "", ""


def _delta(index: Any, delta: Mapping[str, Any], answer: Answer) -> tuple[str, str]:
    """Add the next piece of the block with number ``index``; return the reasoning and the text that it adds. Reasoning
    is also kept as a block, with its signature, to be sent back with the next request."""
    if "text" in delta:
        return answer.write(text=delta["text"])
    if "toolUse" in delta and index in answer.by_index:
        answer.call(index, arguments=delta["toolUse"]["input"])
    elif "reasoningContent" in delta:
        data, piece = answer.reasoning_block(index, "bedrock"), delta["reasoningContent"]
        if "redactedContent" in piece:
            data["redactedContent"] = data.get("redactedContent", "") + piece["redactedContent"]
            return "", ""
        text = data.setdefault("reasoningText", {"text": ""})
        if "signature" in piece:
            text["signature"] = piece["signature"]
        text["text"] += piece.get("text", "")
        return answer.write(reasoning=piece.get("text", ""))
    return "", ""


def _end(reason: str, answer: Answer) -> None:
    """Record the end of an answer; one that the model itself broke off is asked for again."""
    answer.end_blocks()
    if reason in _MALFORMED:
        answer.malformed = f"the answer could not be read ({reason})"
    answer.finish = "content_filter" if reason in _WITHHELD else "stop" if reason in _MALFORMED else str(reason)


def _usage(given: Mapping[str, Any]) -> Usage:
    cached = count(given.get("cacheReadInputTokens"))
    prompt = count(given.get("inputTokens")) + cached + count(given.get("cacheWriteInputTokens"))
    return Usage(prompt_tokens=prompt, completion_tokens=count(given.get("outputTokens")), cached_tokens=cached)
