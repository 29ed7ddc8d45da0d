"""Messages in OpenAI's chat form, dicts, as ours; and the contents and calls that other protocols share with it.

Source: the request body of OpenAI's ``/v1/chat/completions``, with the blocks of contents that Anthropic, the Responses
API and LangChain write, and Ollama's images.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from ..errors import ModelError
from ..json import SPACE, read_json_prefix
from .messages import ImagePart, Message, Part, Role, TextPart, ToolCall

#: The roles of OpenAI's chat form.
_ROLES: Mapping[str, Role] = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "assistant": "assistant",
    "tool": "tool",
    "function": "tool",
}
# Blocks that repeat what the message says elsewhere (its calls), or that are no input (thinking of other models).
_SILENT_BLOCKS = frozenset(
    {"tool_use", "tool_call", "tool_call_chunk", "invalid_tool_call", "function_call", "thinking", "redacted_thinking"}
    | {"reasoning", "reasoning_content"}
)
_NO_OBJECT = "the arguments are not a JSON object"
#: What our adapters write behind the arguments of a call that must not run, so that it does not parse.
_REASON = re.compile(r"\}?\s*<.*>", re.DOTALL)


def role_of(name: str) -> Role:
    """Return the role that a framework calls ``name``; an unknown name is the user."""
    return {**_ROLES, "human": "user", "ai": "assistant"}.get(name, "user")


def message_of(message: Mapping[str, Any]) -> Message:
    """Return a message in OpenAI's chat form as ours. Keys without a meaning here are passed over.

    Raises:
        ModelError: its role, content or calls have another form.
    """
    name = message.get("role")
    role = _ROLES.get(name) if isinstance(name, str) else None
    if role is None:
        raise ModelError(f"a message has the role {name!r}", hint=f"roles are {', '.join(map(repr, _ROLES))}")
    calls = message.get("tool_calls") or ()
    if not isinstance(calls, Sequence) or isinstance(calls, str):
        raise ModelError(f"tool_calls of a message is {calls!r}", hint="give a list of calls")
    old_call = message.get("function_call")  # the form before tools
    if not calls and old_call is None and "content" not in message:
        raise ModelError(f"a message of the role {name!r} has no content", hint="give 'content'")
    return Message(
        role=role,
        content=_with_images(parts_of(message.get("content")), message.get("images")),
        reasoning=_text(message, "reasoning_content"),
        tool_calls=tuple(map(_call_of, calls if old_call is None else [{"function": old_call}])),
        tool_call_id=_text(message, "tool_call_id"),
        name=_text(message, "name"),
    )


def _with_images(content: str | tuple[Part, ...], images: Any) -> str | tuple[Part, ...]:
    """Return a content behind the images that a message of Ollama's form has beside it: bytes, or texts in Base64."""
    if not images:
        return content
    if isinstance(images, (str, bytes)) or not isinstance(images, Sequence):
        raise ModelError(
            f"images of a message is {type(images).__name__}", hint="give a list of files, as bytes or in Base64"
        )
    made = [ImagePart(one) if isinstance(one, bytes) else ImagePart.from_base64(one) for one in images]
    return (*made, *((TextPart(content),) if isinstance(content, str) else content))


def _text(message: Mapping[str, Any], key: str) -> str | None:
    value = message.get(key)
    if value is not None and not isinstance(value, str):
        raise ModelError(f"{key} of a message is {value!r}", hint="give a text")
    return value


def _call_of(call: Any) -> ToolCall:
    """Return the call of a message in the form of OpenAI's chat interface.

    Raises:
        ModelError: it has another form.
    """
    function = call.get("function") if isinstance(call, Mapping) else None
    name = function.get("name") if isinstance(function, Mapping) else None
    if not isinstance(function, Mapping) or not isinstance(name, str):
        raise ModelError(
            f"a message contains the malformed call {call!r}",
            hint="give {'id': ..., 'type': 'function', 'function': {'name': ..., 'arguments': JSON text or dict}}",
        )
    return past_call(_text(call, "id"), name, function.get("arguments"))


def past_call(call_id: str | None, name: str, arguments: Any) -> ToolCall:
    """Return a tool call of an earlier turn. Arguments that are not a JSON object are an error, and kept as written.

    None and an empty text are no arguments. A text that holds the text of an object is that object. An object with a
    reason behind it, which our adapters write for a call that must not run, is that object and an error:
    ``'{"city": "Os"} <cut by the budget>'``.

    Raises:
        ModelError: the arguments are neither a text nor a mapping nor None.
    """
    made = ToolCall(id=call_id or "", name=name, arguments={})
    if arguments is None or (isinstance(arguments, str) and not arguments.strip()):
        return made
    if isinstance(arguments, Mapping):
        try:
            json.dumps(dict(arguments), allow_nan=False, default=str)
        except (ValueError, TypeError, RecursionError):
            return replace(made, raw=repr(arguments), error=_NO_OBJECT)
        return replace(made, arguments=dict(arguments))
    if not isinstance(arguments, str):
        raise ModelError(f"the arguments of a call of {name!r} are {arguments!r}", hint="give a JSON text or a dict")
    try:
        value: Any = arguments
        text, rest = "", ""  # the innermost text, and what stands behind its value
        while isinstance(value, str):  # some clients and models encode twice
            text = value
            value, end = read_json_prefix(text.lstrip(SPACE))
            rest = rest or text.lstrip(SPACE)[end:].strip()
    except ValueError:
        return replace(made, raw=arguments, error=_NO_OBJECT)
    if not isinstance(value, dict) or (rest and not _REASON.fullmatch(rest)):
        return replace(made, raw=arguments, error=_NO_OBJECT)
    return replace(made, arguments=value, raw=text, error=_NO_OBJECT if rest else None)


def parts_of(content: Any) -> str | tuple[Part, ...]:
    """Return the content of a message: None, text, or a list of texts and blocks (OpenAI, Anthropic, LangChain).

    Raises:
        ModelError: it is none of them, or has a block that no model here reads (audio, files, ...).
    """
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    if not isinstance(content, Sequence):
        raise ModelError(f"the content of a message is {content!r}", hint="give a text, or a list of blocks")
    parts = [part for block in content for part in _block_parts(block)]
    if all(isinstance(part, TextPart) for part in parts):
        return "".join(part.text for part in parts if isinstance(part, TextPart))
    return tuple(parts)


def _block_parts(block: Any) -> list[Part]:
    """Return the parts of one block of content, in the forms of OpenAI, Anthropic and LangChain."""
    if isinstance(block, str):
        return [TextPart(block)]
    kind = block.get("type") if isinstance(block, Mapping) else None
    if kind in _SILENT_BLOCKS:
        return []
    if kind in ("text", "input_text", "output_text"):
        return [TextPart(_text(block, "text") or "")]
    if kind in ("image_url", "input_image"):
        address = block.get("image_url")
        return [ImagePart.at(address.get("url") if isinstance(address, Mapping) else address)]
    if kind == "image" and "image" in block:  # as transformers has it; a text is an address, never a file
        given = block["image"]
        return [ImagePart.at(given) if isinstance(given, str) else ImagePart.of(given)]
    if kind == "image":
        source = block.get("source", block)
        source = source if isinstance(source, Mapping) else {}
        data = source.get("base64") or source.get("data")
        media_type = source.get("mime_type") or source.get("media_type")
        return [ImagePart.from_base64(data, media_type) if data else ImagePart.at(source.get("url"))]
    if kind == "tool_result":
        inner = parts_of(block.get("content"))
        return [TextPart(inner)] if isinstance(inner, str) else list(inner)
    raise ModelError(f"unsupported content of type {kind!r}", hint="only text and images are supported")
