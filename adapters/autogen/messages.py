"""Translation between AutoGen's messages, tools and calls and ours, and the names that its teams ask for in prompts.

Teams ask for names in plain words: a selector for the next role, Magentic-One's ledger for the next speaker. An answer
that is none of the names in the prompt makes the team ask again and then give up, so the names are read from there.
"""

from __future__ import annotations

import asyncio
import json
import re
import warnings
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from toolgrammar.core.conversation import FinishReason, ImagePart, Message, Part, TextPart, ToolCall
from toolgrammar.core.errors import LimitError, ModelError, SchemaError, ToolGrammarError
from toolgrammar.core.generation import GenerateParams
from toolgrammar.tools import ToolSet

from .. import _shared

try:
    from autogen_core import FunctionCall, Image
    from autogen_core.models import (
        AssistantMessage,
        ChatCompletionTokenLogprob,
        FunctionExecutionResultMessage,
        LLMMessage,
        SystemMessage,
        TopLogprob,
        UserMessage,
    )
    from autogen_core.models._types import FinishReasons
    from autogen_core.tools import BaseTool, Tool, ToolSchema
except ImportError as error:
    raise _shared.missing("autogen-core", "autogen") from error

#: The argument that is ours alone: see `selection`.
SELECT = "select_speaker"

_LOST_DEFINITIONS = (
    ". AutoGen's McpWorkbench drops the definitions of MCP tools; toolgrammar's page on AutoGen shows how to keep them"
)

REASONS: Mapping[FinishReason, FinishReasons] = {
    "stop": "stop",
    "length": "length",
    "tool_calls": "function_calls",
    "cancelled": "unknown",
}

# A list of names as Python prints it: AutoGen puts one into the prompts of its selectors.
_LIST = r"\[((?:'\w+'(?:, )?)+)\]"
_OWN_SELECTION = re.compile(rf"select the next role from {_LIST} to play\. Only return the role\.")
_ANY_SELECTION = re.compile(_LIST)
# Where Magentic-One's prompt says who may speak next.
_NEXT_SPEAKER = re.compile(r'"next_speaker":\s*\{+\s*"reason": string,\s*"answer": string \(select from: ([^)\n]*)\)')


def sampling(arguments: Mapping[str, Any]) -> GenerateParams:
    """Return the arguments of a client, or of one call, as parameters.

    Raises:
        ModelError: an argument is not known, or its value is wrong.
    """
    _shared.require_known(arguments, {SELECT, "output_type", *_shared.GENERATION, "logprobs", "top_logprobs"})
    if (select := arguments.get(SELECT)) is not None and not isinstance(select, bool):
        raise ModelError(f"{SELECT} is {select!r}", hint="give True, False, or None")
    given = {name: arguments[name] for name in _shared.GENERATION if name in arguments}
    probabilities = _shared.probability_params({**arguments, "masses": None})  # AutoGen has no place for masses
    return _shared.generation_params({**given, **probabilities})


def token_logprob(token: Mapping[str, Any]) -> ChatCompletionTokenLogprob:
    """Return a token in OpenAI's form as AutoGen's."""
    top = [TopLogprob(logprob=one["logprob"], bytes=one["bytes"]) for one in token["top_logprobs"]]
    return ChatCompletionTokenLogprob(
        token=token["token"], logprob=token["logprob"], top_logprobs=top, bytes=token["bytes"]
    )


def errors() -> Mapping[str, type[BaseException]]:
    """Return which of our errors AutoGen acts on by another name.

    It has no errors of its own for models. Cancelled calls are asyncio's, and a tool that is not in the list is a
    ``ValueError``; timeouts and connections are Python's ``TimeoutError`` and ``ConnectionError`` already.
    """
    return {"timeout": TimeoutError, "cancelled": asyncio.CancelledError, "unknown_tool": ValueError}


def openai_tools(tools: Sequence[Tool | ToolSchema]) -> list[dict[str, Any]]:
    """Return tools as OpenAI-style dicts, without those of workbenches that cannot be used.

    A workbench gives schemas, mostly of tools that an MCP server lists: one that has no grammar does not cost the
    others. A warning names each that is left out.
    """
    usable = []
    for tool in tools:
        if not isinstance(tool, Mapping):
            usable.append(openai_tool(tool))
            continue
        problem: ToolGrammarError | None
        try:
            converted = openai_tool(tool)
            problem = _problem(json.dumps(converted))
        except (SchemaError, LimitError) as error:
            problem = error
        if problem is None:
            usable.append(converted)
        else:
            remedy = _LOST_DEFINITIONS if problem.place.keyword == "$ref" else ""
            warnings.warn(f"the tool {tool.get('name')!r} is left out: {problem}{remedy}", stacklevel=2)
    return usable


@lru_cache(maxsize=1_000)  # agents list the same tools on every turn
def _problem(tool: str) -> ToolGrammarError | None:
    """Return why a tool, as the text of an OpenAI-style dict, has no grammar; None if it has one."""
    return next(iter(ToolSet.from_any([json.loads(tool)], on_unusable="skip").skipped), None)


def openai_tool(tool: Tool | ToolSchema) -> dict[str, Any]:
    """Return a tool or its schema as an OpenAI-style dict, from the tool's own argument type if possible."""
    if isinstance(tool, Mapping):
        return _shared.openai_tool({key: tool[key] for key in ("name", "description", "parameters") if key in tool})
    if not hasattr(tool, "schema") or (isinstance(tool, BaseTool) and type(tool).schema is BaseTool.schema):
        return _shared.openai_tool(tool)
    return openai_tool(tool.schema)  # a tool that says itself what its schema is


def to_messages(messages: Sequence[LLMMessage]) -> list[Message]:
    """Return AutoGen's messages as ours; a message with several results becomes several messages."""
    return [translated for message in messages for translated in _to_messages(message)]


def _to_messages(message: LLMMessage) -> list[Message]:
    """Return a message of AutoGen as ours; one with the results of several calls is several of ours."""
    if isinstance(message, SystemMessage):
        return [Message("system", message.content)]
    if isinstance(message, UserMessage):
        if isinstance(message.content, str):
            return [Message("user", message.content, name=message.source)]
        return [Message("user", tuple(_part(part) for part in message.content), name=message.source)]
    if isinstance(message, AssistantMessage):
        if isinstance(message.content, str):
            return [Message("assistant", message.content, reasoning=message.thought, name=message.source)]
        calls = tuple(_shared.past_call(call.id, call.name, call.arguments) for call in message.content)
        return [Message("assistant", reasoning=message.thought, tool_calls=calls, name=message.source)]
    if not isinstance(message, FunctionExecutionResultMessage):
        raise ValueError(f"unknown message type: {type(message).__name__}")  # as AutoGen's own clients say
    return [
        Message("tool", result.content, tool_call_id=result.call_id, name=result.name, is_error=bool(result.is_error))
        for result in message.content
    ]


def _part(part: str | Image) -> Part:
    if isinstance(part, str):
        return TextPart(part)
    return ImagePart.at(part.data_uri)


def function_call(call: ToolCall) -> FunctionCall:
    """Return a call for AutoGen to run."""
    return FunctionCall(id=call.id, name=call.name, arguments=_shared.executable_text(call))


def selection(messages: Sequence[Message], select: bool | None) -> tuple[str, ...]:
    """Return the names of which a selector's prompt wants one; empty for any other prompt.

    Args:
        messages: the conversation.
        select: None takes AutoGen's own prompt for one, True any that lists names, False none.
    """
    if select is False:
        return ()
    prompts = [message.text for message in messages if message.role in ("system", "user")]
    pattern = _ANY_SELECTION if select else _OWN_SELECTION
    lists = [match[1] for prompt in prompts for match in pattern.finditer(prompt)]
    return tuple(dict.fromkeys(re.findall(r"'(\w+)'", lists[-1]))) if lists else ()


def with_speakers(schema: Any, messages: Sequence[Message]) -> Any:
    """Return the schema of Magentic-One's ledger with the speakers that the prompt names; other schemas unchanged."""
    listed = _NEXT_SPEAKER.search(messages[-1].text) if messages else None
    speaker = schema.get("properties", {}).get("next_speaker") if isinstance(schema, Mapping) else None
    if listed is None or speaker is None:
        return schema
    names = [name.strip() for name in listed[1].split(",")]
    next_speaker = {
        "type": "object",
        "properties": {"reason": {"type": "string"}, "answer": {"enum": names}},
        "required": ["reason", "answer"],
        "additionalProperties": False,
    }
    return {**schema, "properties": {**schema["properties"], "next_speaker": next_speaker}}
