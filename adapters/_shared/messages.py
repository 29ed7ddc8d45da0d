"""Messages, tools and schemas in the forms that several frameworks share."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from typing import Any

from toolgrammar.core.conversation import ImagePart, Message, Part, Role, TextPart, ToolCall
from toolgrammar.core.errors import ModelError
from toolgrammar.core.schema.pydantic.schema import json_schema_of
from toolgrammar.tools import ToolSet, close_objects, to_json_schema

_ROLES: Mapping[str, Role] = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "human": "user",
    "assistant": "assistant",
    "ai": "assistant",
    "tool": "tool",
    "function": "tool",
}
# Blocks that repeat what the message says elsewhere (its calls), or that are no input (thinking of other models).
_SILENT_BLOCKS = frozenset(
    {"tool_use", "tool_call", "tool_call_chunk", "invalid_tool_call", "function_call", "thinking", "redacted_thinking"}
    | {"reasoning", "reasoning_content"}
)


def role_of(name: str) -> Role:
    """Return the role that a framework calls ``name``; an unknown name is the user."""
    return _ROLES.get(name, "user")


def parts_of(content: Any) -> str | tuple[Part, ...]:
    """Return the content of a message: None, text, or a list of texts and blocks (OpenAI, Anthropic, LangChain).

    Raises:
        ModelError: a block of a kind that no model here reads (audio, files, ...).
    """
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    parts = [part for block in content for part in _block_parts(block)]
    if all(isinstance(part, TextPart) for part in parts):
        return "".join(part.text for part in parts if isinstance(part, TextPart))
    return tuple(parts)


def _block_parts(block: Any) -> list[Part]:
    if isinstance(block, str):
        return [TextPart(block)]
    kind = block.get("type")
    if kind in _SILENT_BLOCKS:
        return []
    if kind in ("text", "input_text", "output_text"):
        return [TextPart(block.get("text") or "")]
    if kind == "image_url":
        address = block["image_url"]
        return [image(address if isinstance(address, str) else address["url"])]
    if kind == "image":
        source = block.get("source", block)
        data = source.get("base64") or source.get("data")
        media_type = source.get("mime_type") or source.get("media_type")
        return [ImagePart(data=base64.b64decode(data), media_type=media_type) if data else image(source.get("url"))]
    if kind == "tool_result":
        inner = parts_of(block.get("content"))
        return [TextPart(inner)] if isinstance(inner, str) else list(inner)
    raise ModelError(f"a message holds content of type {kind!r}", hint="text and images are understood")


def image(url: str | None) -> ImagePart:
    """Return an image by its address; a ``data:`` address holds the image itself."""
    if url and url.startswith("data:"):
        head, _, data = url.partition(",")
        return ImagePart(data=base64.b64decode(data), media_type=head.removeprefix("data:").split(";")[0] or None)
    return ImagePart(url=url)


def past_call(call_id: str | None, name: str, arguments: Any) -> ToolCall:
    """Return a tool call of an earlier turn; arguments that are not a JSON object are kept as written.

    Those that begin with one, as those of `executable_text` do, are that object and an error.
    """
    if isinstance(arguments, Mapping):
        return ToolCall(id=call_id or "", name=name, arguments=dict(arguments))
    text = arguments or ""
    try:
        value, end = json.JSONDecoder().raw_decode(text.lstrip())
    except ValueError:
        value, end = None, -1
    whole = isinstance(value, dict) and end == len(text.strip())
    error = None if whole else "the arguments are not a JSON object"
    decoded = value if isinstance(value, dict) else {}
    return ToolCall(id=call_id or "", name=name, arguments=decoded, raw=text, error=error)


def from_openai(message: Mapping[str, Any]) -> Message:
    """Return a message in OpenAI's chat form as ours."""
    calls = message.get("tool_calls") or ()
    return Message(
        role=role_of(message["role"]),
        content=parts_of(message.get("content")),
        reasoning=message.get("reasoning_content"),
        tool_calls=tuple(
            past_call(call.get("id"), call["function"]["name"], call["function"].get("arguments")) for call in calls
        ),
        tool_call_id=message.get("tool_call_id"),
        name=message.get("name"),
    )


def openai_tool(tool: Any) -> dict[str, Any]:
    """Return any tool that `ToolSet` reads as an OpenAI-style dict with its whole schema."""
    (made,) = ToolSet.from_any([tool])
    return made.to_openai()


def tool_name(tool: Mapping[str, Any]) -> str:
    """Return the name of an OpenAI-style tool."""
    return str(tool["function"]["name"])


def schema_in(response_format: Any) -> Any:
    """Return the schema in a response format of OpenAI; a class or a schema is returned as it is.

    Raises:
        ModelError: it is none of them.
    """
    if isinstance(response_format, type):
        return response_format
    if isinstance(response_format, Mapping):
        kind = response_format.get("type")
        if kind == "json_object":
            return {"type": "object"}
        if kind != "json_schema":
            return response_format
        inner = response_format.get("json_schema", response_format)  # the responses API has no envelope
        if isinstance(inner, Mapping) and "schema" in inner:
            return inner["schema"]
    raise ModelError(
        f"response_format is {response_format!r}",
        hint="give a class, a JSON Schema, {'type': 'json_object'} or {'type': 'json_schema', 'json_schema': {...}}",
    )


def closed(schema: Any) -> dict[str, Any] | bool:
    """Return a schema or a Pydantic class as JSON Schema, its objects closed unless they say otherwise.

    Frameworks mean by a schema "these fields", and none of them writes ``additionalProperties``.

    Raises:
        ModelError: it is a class without fields.
    """
    if isinstance(schema, type):
        # Pydantic of version 2, or of the version 1 that some frameworks still take.
        if not (hasattr(schema, "model_json_schema") or hasattr(schema, "schema")):
            raise ModelError(
                f"{schema.__name__} has no fields that a schema could be made of",
                hint="give a Pydantic class, a dataclass, a typed dict or a JSON Schema; put a plain value in a field",
            )
        schema = json_schema_of(schema)
    return close_objects(to_json_schema(schema))
