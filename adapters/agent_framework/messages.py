"""Translation between Agent Framework's options, tools, messages, contents, usage and errors and ours."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from toolgrammar.core.conversation import (
    ArgumentsDelta,
    CallEnd,
    CallStart,
    Event,
    FinishReason,
    Generation,
    ImagePart,
    Message,
    Part,
    ReasoningDelta,
    TextDelta,
    TextPart,
    ToolCall,
    Usage,
)
from toolgrammar.core.errors import ModelError
from toolgrammar.core.generation import GenerateParams

from .. import _shared

try:
    from agent_framework import Content, FunctionTool, UsageDetails
    from agent_framework import Message as FrameworkMessage
    from agent_framework._types import FinishReasonLiteral
    from agent_framework.exceptions import (
        ChatClientContentFilterException,
        ChatClientException,
        ChatClientInvalidAuthException,
        ChatClientInvalidRequestException,
        ChatClientInvalidResponseException,
    )
except ImportError as error:
    raise _shared.missing("agent-framework-core", "agent-framework") from error

# Options of the framework that `_request` reads, beside the generation options.
_READ = frozenset(
    {"model", "tools", "tool_choice", "allow_multiple_tool_calls", "response_format", "output_type", "instructions"}
)
# Its name for one of ours.
_OURS = {*_shared.GENERATION} - {"parallel_tool_calls"}
# Options that ask a service to keep something; False asks for nothing.
_KEPT = frozenset({"store"})

REASONS: Mapping[FinishReason, FinishReasonLiteral] = {
    "stop": "stop",
    "length": "length",
    "tool_calls": "tool_calls",
    "cancelled": "stop",
}


def errors() -> Mapping[str, type[Exception]]:
    """Return the framework's errors by the codes of ours.

    The framework does not say which of its errors may be tried again; ours do (``retryable``).
    """
    return {
        **dict.fromkeys(("authentication", "permission_denied"), ChatClientInvalidAuthException),
        "content_filter": ChatClientContentFilterException,
        **dict.fromkeys(("rate_limit", "server_failure", "server_connection"), ChatClientException),
        **dict.fromkeys(("server_timeout", "timeout"), ChatClientException),
        **dict.fromkeys(("invalid_arguments", "parse", "budget"), ChatClientInvalidResponseException),
        **dict.fromkeys(("context_overflow", *_shared.REQUEST_ERRORS), ChatClientInvalidRequestException),
    }


def sampling(options: Mapping[str, Any]) -> GenerateParams:
    """Return the options of a call, or of a client, as parameters.

    Raises:
        ModelError: an option is not known, or its value is wrong.
    """
    names = {name for name, value in options.items() if value is not None and not (name in _KEPT and value is False)}
    _shared.require_known(names, {*_OURS, *_READ, *_shared.PROBABILITIES})
    given = {name: options[name] for name in _OURS & names} | _shared.probability_params(options)
    return _shared.generation_params({**given, "parallel_tool_calls": options.get("allow_multiple_tool_calls")})


def answer_properties(generation: Generation, request: _shared.Request) -> dict[str, Any]:
    """Return the ``additional_properties`` of an answer: `_shared.reported_fields`, how it was held to what was asked
    for (`Request.details`), and ``logprobs`` in OpenAI's form if they are wanted."""
    vocabulary = _shared.vocabulary_of(request.model, request.params)
    tokens = _shared.text_tokens(vocabulary, generation.tokens, generation.text)
    logprobs = {} if tokens is None else {"logprobs": {"content": tokens, "refusal": None}}
    return {**request.details(generation), **_shared.reported_fields(generation), **logprobs}


def openai_tool(tool: Any) -> dict[str, Any]:
    """Return a tool as an OpenAI-style dict with its whole schema."""
    if isinstance(tool, FunctionTool):
        tool = {"name": tool.name, "description": tool.description or "", "parameters": tool.parameters()}
    return _shared.openai_tool(tool)


def to_messages(messages: Sequence[FrameworkMessage], instructions: Any = None) -> list[Message]:
    """Return the framework's messages as ours, after the instructions; each result of a call becomes a message."""
    texts = [instructions] if isinstance(instructions, str) else list(instructions or ())
    result = [Message("system", text) for text in texts]
    for message in messages:
        results = [content for content in message.contents if content.type == "function_result"]
        for content in results:
            value: Any = content.result if isinstance(content.result, str) else str(content.result)
            if any(item.type != "text" for item in content.items or ()):  # parts, among them images
                value = tuple(part for item in content.items or () if (part := _part(item)) is not None)
            name, failed = _name_of(result, content), content.exception is not None
            result.append(Message("tool", value, tool_call_id=content.call_id, name=name, is_error=failed))
        if len(results) < len(message.contents) or not results:  # there is more than results
            result.append(_to_message(message))
    return result


def _name_of(before: Sequence[Message], result: Content) -> str | None:
    """Return the name of the tool that a result belongs to; the framework gives only the id of the call."""
    calls = (call for message in before for call in message.tool_calls)
    return next((call.name for call in calls if call.id == result.call_id), None)


def _to_message(message: FrameworkMessage) -> Message:
    """Return a message of the framework, without results of tools, as ours."""
    parts: list[Part] = []
    calls: list[ToolCall] = []
    reasoning = ""
    for content in message.contents:
        if (part := _part(content)) is not None:
            parts.append(part)
        elif content.type == "text_reasoning":
            reasoning += content.text or ""
        elif content.type == "function_call":
            calls.append(_shared.past_call(content.call_id, content.name or "", content.arguments))
    return Message(
        _shared.role_of(str(message.role)),
        _shared.content_of(parts),
        reasoning=reasoning or None,
        tool_calls=tuple(calls),
        name=message.author_name,
    )


def _part(content: Content) -> Part | None:
    """Return a text or an image; None for another kind of content."""
    if content.type == "text":
        return TextPart(content.text or "")
    if content.type not in ("data", "uri"):
        return None
    if not (content.media_type or "").startswith("image/"):
        raise ModelError(f"unsupported content {content.media_type}", hint="only text and images are supported")
    return ImagePart.at(content.uri)


def contents_of(generation: Generation) -> list[Content]:
    """Return an answer as the contents of one message: reasoning, text, calls."""
    contents: list[Content] = []
    if generation.message.reasoning:
        contents.append(Content.from_text_reasoning(text=generation.message.reasoning))
    if generation.text:
        contents.append(Content.from_text(generation.text))
    return contents + [
        _call(call.id, call.name, call.arguments_text, _shared.problem(call)) for call in generation.tool_calls
    ]


def delta_of(event: Event, calls: Mapping[int, CallStart]) -> list[Content]:
    """Return an event as contents that the framework joins; every piece of a call names the call.

    Law: joined, the contents of a stream are those of `contents_of`.
    """
    if isinstance(event, TextDelta):
        return [Content.from_text(event.text)]
    if isinstance(event, ReasoningDelta):
        return [Content.from_text_reasoning(text=event.text)]
    if isinstance(event, CallStart):
        return [_call(event.id, event.name, "")]
    if isinstance(event, ArgumentsDelta):
        return [_call(calls[event.index].id, calls[event.index].name, event.text)]
    if isinstance(event, CallEnd) and (reason := _shared.problem(event.call)) is not None:
        return [_call(calls[event.index].id, calls[event.index].name, "", reason)]
    return []


def _call(call_id: str, name: str, arguments: str, reason: str | None = None) -> Content:
    """Return a call, or a piece of one; with a reason, the framework records it and does not run it."""
    return Content.from_function_call(
        call_id,
        name,
        arguments=arguments,
        id=call_id,  # the framework makes one up for pieces of calls that it may run, and then joins no others to them
        exception=reason,
        informational_only=reason is not None,
    )


def usage_of(usage: Usage) -> UsageDetails:
    """Return token counts under the framework's names."""
    return UsageDetails(
        input_token_count=usage.prompt_tokens,
        output_token_count=usage.completion_tokens,
        total_token_count=usage.prompt_tokens + usage.completion_tokens,
        cache_read_input_token_count=usage.cached_tokens,
        reasoning_output_token_count=usage.reasoning_tokens,
    )
