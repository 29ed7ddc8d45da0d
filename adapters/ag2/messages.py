"""Translation between AG2's tools, events and usage and ours."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from toolgrammar.core.conversation import Generation, ImagePart, Message, Part, TextPart
from toolgrammar.core.errors import ModelError

from .. import _shared

try:
    from ag2 import events as theirs
    from ag2.compact import CompactionSummary
    from ag2.exceptions import UnsupportedToolError
    from ag2.tools.final import FunctionToolSchema
except ImportError as error:
    raise _shared.missing("ag2", "ag2") from error

#: The name of the provider.
NAME = "toolgrammar"


def to_tool(tool: Any) -> dict[str, Any]:
    """Return a tool as an OpenAI-style dict.

    Raises:
        UnsupportedToolError: it is one that a provider runs itself.
    """
    if not isinstance(tool, FunctionToolSchema):
        raise UnsupportedToolError(tool.type, NAME)
    known = tool.function
    function = {"name": known.name, "description": known.description or "", "parameters": known.parameters}
    return _shared.openai_tool({"type": "function", "function": function})


def to_messages(prompt: Iterable[str], events: Iterable[Any], serializer: Any) -> list[Message]:
    """Return a conversation as messages; events that are not part of it are left out, as by AG2's clients.

    Raises:
        ModelError: an input is neither text nor data nor an image.
    """
    made = [Message("system", text) for text in prompt]
    for event in events:
        if isinstance(event, theirs.ModelRequest):
            made.append(Message("user", _content(event.parts, serializer)))
        elif isinstance(event, CompactionSummary):
            made.append(Message("user", f"Summary of the earlier conversation:\n{event.summary}"))
        elif isinstance(event, theirs.ModelResponse):
            calls = tuple(_shared.past_call(call.id, call.name, call.arguments) for call in event.tool_calls.calls)
            made.append(Message("assistant", event.content or "", tool_calls=calls))
        elif isinstance(event, theirs.ToolResultsEvent):
            made += _results(event, serializer)
    return made


def _results(event: Any, serializer: Any) -> Iterator[Message]:
    """Yield the results of a turn's calls, then their images, for which a result has no place."""
    images: list[Part] = []
    for each in event.results:
        content = _content(each.result.parts, serializer)
        text = content if isinstance(content, str) else "\n".join(p.text for p in content if isinstance(p, TextPart))
        failed = isinstance(each, theirs.ToolErrorEvent)
        yield Message("tool", text, tool_call_id=each.parent_id, name=each.name, is_error=failed)
        images += [] if isinstance(content, str) else [part for part in content if not isinstance(part, TextPart)]
    if images:
        yield Message("user", tuple(images))


def _content(inputs: Iterable[Any], serializer: Any) -> str | tuple[Part, ...]:
    """Return inputs of AG2 as the content of a message: one text, or parts if there are images.

    Raises:
        ModelError: an input is neither text nor data nor an image.
    """
    made: list[Part] = []
    for each in inputs:
        kind = getattr(each, "kind", None)
        if isinstance(each, theirs.TextInput):
            made.append(TextPart(each.content))
        elif isinstance(each, theirs.DataInput):
            made.append(TextPart(serializer.encode(each.data).decode()))
        elif isinstance(each, theirs.BinaryInput) and kind is theirs.BinaryType.IMAGE:
            media = getattr(each.media_type, "value", each.media_type)
            made.append(ImagePart(each.data, media_type=media or None))
        elif isinstance(each, theirs.UrlInput) and kind is theirs.BinaryType.IMAGE:
            made.append(ImagePart.at(each.url))
        else:
            raise ModelError(
                f"unsupported input {type(each).__name__}", hint="only text, data and images are supported"
            )
    return _shared.content_of(made, "\n")


def response_of(generation: Generation, model: str, details: dict[str, Any]) -> theirs.ModelResponse:
    """Return an answer as AG2's response; the metadata of its text have the details."""
    usage = generation.usage
    calls = [
        theirs.ToolCallEvent(call.name, id=call.id, arguments=_shared.executable_text(call))
        for call in generation.tool_calls
    ]
    return theirs.ModelResponse(
        theirs.ModelMessage(generation.text, metadata=details) if generation.text else None,
        tool_calls=theirs.ToolCallsEvent(calls),
        usage=theirs.Usage(
            prompt_tokens=usage.prompt_tokens,
            completion_tokens=usage.completion_tokens,
            total_tokens=usage.prompt_tokens + usage.completion_tokens,
            cache_read_input_tokens=usage.cached_tokens,
            thinking_tokens=usage.reasoning_tokens or None,
        ),
        model=model,
        provider=NAME,
        finish_reason=generation.finish_reason,
    )
