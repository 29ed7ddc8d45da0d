"""Translation between LangChain's tools, messages, schemas, answers, usage and errors and ours.

Source: the message, tool and exception classes of langchain-core 1.x.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, is_dataclass
from typing import Any

from typing_extensions import is_typeddict

from toolgrammar.core.conversation import (
    ArgumentsDelta,
    CallEnd,
    CallStart,
    Event,
    Finish,
    Generation,
    Message,
    ReasoningDelta,
    TextDelta,
    TokenWritten,
    ToolCall,
    Usage,
)
from toolgrammar.core.errors import ModelError
from toolgrammar.core.vocabulary import Vocabulary

from .. import _shared

try:
    from langchain_core import exceptions
    from langchain_core.messages import (
        AIMessage,
        AIMessageChunk,
        BaseMessage,
        ChatMessage,
        FunctionMessage,
        HumanMessage,
        SystemMessage,
        ToolMessage,
    )
    from langchain_core.messages.ai import InputTokenDetails, OutputTokenDetails, UsageMetadata
    from langchain_core.messages.tool import invalid_tool_call, tool_call, tool_call_chunk
    from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
    from langchain_core.tools import BaseTool
    from langchain_core.tools.base import create_schema_from_function
    from langchain_core.utils.function_calling import convert_to_openai_tool
except ImportError as error:
    raise _shared.missing("langchain-core", "langchain") from error

PROVIDER = "toolgrammar"

# -- requests ------------------------------------------------------------------------------------------------------


def openai_tool(tool: Any) -> dict[str, Any]:
    """Return any tool that LangChain or `ToolSet` reads as an OpenAI-style dict with its whole schema."""
    if is_typeddict(tool):
        with suppress(TypeError):  # of Required and NotRequired, which their conversion cannot read
            return convert_to_openai_tool(tool)  # Annotated[int, default, "description"] is theirs
    name = getattr(tool, "__name__", "<lambda>")
    is_function = callable(tool) and not isinstance(tool, (type, BaseTool))
    if is_function and name != "<lambda>":
        # LangChain leaves out the parameters that it injects.
        model = create_schema_from_function(
            name, tool, parse_docstring=True, error_on_invalid_docstring=False, include_injected=False
        )
        tool = {"name": name, "description": model.__doc__ or "", "parameters": model}
    return _shared.openai_tool(tool)


def openai_tools(tools: Iterable[Any]) -> list[dict[str, Any]]:
    """Return tools as OpenAI-style dicts; those that are such dicts already stay as they are."""
    return [tool if _is_openai(tool) else openai_tool(tool) for tool in tools]


def _is_openai(tool: Any) -> bool:
    function = tool.get("function") if isinstance(tool, dict) and tool.get("type") == "function" else None
    return isinstance(function, dict) and isinstance(function.get("parameters"), dict) and "name" in function


def response_schema(response_format: Any) -> dict[str, Any] | bool | None:
    """Return the schema of a text answer, or None where it is free.

    Raises:
        ModelError: it is none of the forms that are known.
        SchemaError: the schema cannot be taken.
    """
    if _shared.is_free(response_format):
        return None
    if _is_tool(response_format):
        return _shared.closed(openai_tool(response_format)["function"]["parameters"])
    return _shared.closed(_shared.schema_in(response_format))


def _is_tool(response_format: Any) -> bool:
    """Return True for what LangChain reads by its own conventions: tool dicts, typed dicts, dataclasses, functions."""
    if isinstance(response_format, Mapping):
        # Of Anthropic and of functions, of OpenAI, of Bedrock.
        names_a_tool = any(key in response_format for key in ("name", "function", "toolSpec"))
        return names_a_tool and response_format.get("type") not in ("json_object", "json_schema")
    if isinstance(response_format, type):
        return is_typeddict(response_format) or is_dataclass(response_format)
    return callable(response_format) or isinstance(response_format, BaseTool)


def to_messages(messages: Sequence[BaseMessage]) -> list[Message]:
    """Return LangChain's messages as ours.

    Raises:
        ModelError: a message that is none of a conversation (a removal), or content that no model here reads.
    """
    return [_to_message(message) for message in map(_without_changes, messages) if message is not None]


def _without_changes(message: BaseMessage) -> BaseMessage | None:
    """Return a message without changes of the tools (`tools_at_the_end`); None if it is nothing else."""
    if not _change_blocks(message):
        return message
    rest = [block for block in message.content if not _is_change(block)]
    return SystemMessage(content=rest) if rest else None


def _to_message(message: BaseMessage) -> Message:
    """Return a message of LangChain as ours.

    Raises:
        ModelError: it is not part of a conversation, or its content cannot be read.
    """
    content = _shared.parts_of(message.content)
    if isinstance(message, HumanMessage):
        return Message("user", content, name=message.name)
    if isinstance(message, SystemMessage):
        return Message("system", content)
    if isinstance(message, AIMessage):
        calls = [_shared.past_call(call["id"], call["name"], call["args"]) for call in message.tool_calls]
        calls += [_shared.past_call(c["id"], c["name"] or "", c["args"]) for c in message.invalid_tool_calls]
        return Message("assistant", content, reasoning=_reasoning(message), tool_calls=tuple(calls), name=message.name)
    if isinstance(message, ToolMessage):
        failed = message.status == "error"
        return Message("tool", content, tool_call_id=message.tool_call_id, name=message.name, is_error=failed)
    if isinstance(message, FunctionMessage):
        return Message("tool", content, name=message.name)
    if isinstance(message, ChatMessage):
        return Message(_shared.role_of(message.role), content, name=message.name)
    raise ModelError(f"a message of type {message.type!r} is not part of a conversation", hint="leave it out")


def _reasoning(message: AIMessage) -> str | None:
    """Return the reasoning of a message, which LangChain keeps beside the content or as blocks of it."""
    if reasoning := message.additional_kwargs.get("reasoning_content"):
        return str(reasoning)
    blocks = message.content if isinstance(message.content, list) else []
    thought = [block.get("reasoning") or block.get("thinking") for block in blocks if isinstance(block, dict)]
    return "".join(filter(None, thought)) or None


#: Blocks of a system message that change the tools from there on: Anthropic's two, and OpenAI's.
_CHANGES = ("tool_addition", "tool_removal", "additional_tools")


def tools_at_the_end(messages: Sequence[BaseMessage], tools: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the tools of the next answer: those of the request, and what system messages added and removed.

    Args:
        messages: the conversation.
        tools: the tools of the request, as OpenAI-style dicts.

    Raises:
        ModelError: a change has an unknown form, or names a tool that there is not.
    """
    changes = [_unwrapped(block) for message in messages for block in _change_blocks(message)]
    if not changes:
        return list(tools)  # equal tools under one name are found where the grammar is made
    known = {_shared.tool_name(tool): tool for tool in tools}
    for change in changes:
        kind, tool = change["type"], change.get("tool")
        tool = tool if isinstance(tool, Mapping) else {}
        added: Any = []
        if kind == "additional_tools":
            added = change.get("tools")
            if not isinstance(added, list):
                raise ModelError("additional_tools without a list of tools", hint='{"type": ..., "tools": [...]}')
        elif kind == "tool_addition" and "definition" in tool:
            added = [tool["definition"]]
        else:  # the removal, or the addition of a tool that is there, by its name
            name = tool.get("name", tool.get("tool_name"))
            if name not in known:
                hint = f"the tools there are {list(known)}; a new tool has a tool_definition"
                raise ModelError(f"{kind} names {name!r}, which is none of the tools", hint=hint)
            if kind == "tool_removal":
                del known[name]
        for each in openai_tools(added):
            known[_shared.tool_name(each)] = each
    return list(known.values())


def _unwrapped(block: Any) -> Any:
    """Return a block of a provider that LangChain's standard content wraps."""
    wrapped = block.get("value") if isinstance(block, Mapping) and block.get("type") == "non_standard" else None
    return wrapped if isinstance(wrapped, Mapping) else block


def _is_change(block: Any) -> bool:
    block = _unwrapped(block)
    return isinstance(block, Mapping) and block.get("type") in _CHANGES


def _change_blocks(message: BaseMessage) -> list[Any]:
    """Return the blocks of a system message that change the tools."""
    blocks = message.content if isinstance(message, SystemMessage) and isinstance(message.content, list) else []
    return [block for block in blocks if _is_change(block)]


# -- answers -------------------------------------------------------------------------------------------------------

#: Our reasons under LangChain's normalized names; it has none for an answer that the caller cancelled.
_NORMALIZED = {"stop": "stop", "tool_calls": "tool_call", "length": "length"}


@dataclass(frozen=True)
class Answer:
    """The metadata of an answer, streamed or not.

    Attributes:
        model_name: who wrote it.
        guarantee: how it was held to what was asked for: ``"constrained"`` or ``"validated"`` (see
            `_shared.guarantee`); a model on a server reports its own for each answer, which may be ``"cut"``, too.
        vocabulary: of its tokens, if their log-probabilities are wanted.
    """

    model_name: str
    guarantee: str
    vocabulary: Vocabulary | None = None

    def metadata(
        self,
        end: Finish | Generation,
        cut: Sequence[str],
        calls: Sequence[ToolCall],
        tokens: list[dict[str, Any]] | None,
    ) -> dict[str, Any]:
        """Return LangChain's ``response_metadata``.

        Args:
            end: the answer, or the last event of its stream.
            cut: the places that the token budget cut.
            calls: the calls; ``ask`` names the values of each that a policy lets a person confirm.
            tokens: tokens of the text in OpenAI's form; None: log-probabilities were not asked for.
        """
        reason = end.reason if isinstance(end, Finish) else end.finish_reason
        metadata = {
            "finish_reason": reason,
            "model_name": self.model_name,
            "model_provider": PROVIDER,
            "guarantee": self.guarantee,
            "forced_share": _shared.forced_share(end.usage),
            **end.details,  # of a server, with its own ``guarantee``, which replaces ours
            **_shared.reported_fields(end, cut),
        }
        if reason in _NORMALIZED:
            metadata["normalized_finish_reason"] = _NORMALIZED[reason]
        if cut or reason in ("length", "cancelled"):
            metadata["finish_state"] = "incomplete"
        if to_confirm := [{"id": call.id, "ask": list(call.ask)} for call in calls if call.ask]:
            metadata["ask"] = to_confirm
        return metadata if tokens is None else {**metadata, "logprobs": _logprobs(tokens)}

    def result(self, generation: Generation) -> ChatResult:
        """Return a whole answer as LangChain's result."""
        message = generation.message
        usage = usage_of(generation.usage)
        problems = [(call, _shared.problem(call)) for call in message.tool_calls]
        cut = _shared.cut_places(message, generation.cut)
        tokens = _shared.text_tokens(self.vocabulary, generation.tokens, generation.text)
        answer = AIMessage(
            content=message.text,
            additional_kwargs={"reasoning_content": message.reasoning} if message.reasoning else {},
            tool_calls=[
                tool_call(name=call.name, args=dict(call.arguments), id=call.id)
                for call, reason in problems
                if reason is None
            ],
            invalid_tool_calls=[
                invalid_tool_call(name=call.name, args=call.arguments_text, id=call.id, error=reason)
                for call, reason in problems
                if reason is not None
            ],
            usage_metadata=usage,
            response_metadata=self.metadata(generation, cut, message.tool_calls, tokens),
        )
        counts = {"prompt_tokens": usage["input_tokens"], "completion_tokens": usage["output_tokens"]}
        output = {"token_usage": {**counts, "total_tokens": usage["total_tokens"]}, "model_name": self.model_name}
        return ChatResult(generations=[ChatGeneration(message=answer)], llm_output=output)


class Chunks:
    """Conversion of events into chunks: text or one piece of a call each, and the metadata in the last.

    Args:
        answer: their metadata.
        blocks: text and reasoning are content blocks, with indices of their own: LangChain numbers blocks that have
            none from 0, as calls are numbered, and would add the first text to the first call.

    Law: the chunks of a stream add up to the message of `Answer.result`, but for the form of calls that must not run.
    """

    def __init__(self, answer: Answer, *, blocks: bool = False) -> None:
        self._answer = answer
        self._blocks = blocks
        self._tokens = _shared.TextTokens(answer.vocabulary)
        self._cut: list[str] = []
        self._calls: list[ToolCall] = []

    def of(self, event: Event) -> list[ChatGenerationChunk]:
        """Return the chunks of one event."""
        if isinstance(event, TokenWritten):
            self._tokens.add(event)
        if isinstance(event, TextDelta):
            tokens = self._tokens.next_tokens(event.text)
            metadata = {} if tokens is None else {"logprobs": _logprobs(tokens)}
            return _chunk(content=self._content("text", event.text), response_metadata=metadata)
        if isinstance(event, ReasoningDelta):
            content = self._content("reasoning", event.text) if self._blocks else ""
            return _chunk(content=content, additional_kwargs={"reasoning_content": event.text})
        if isinstance(event, CallStart):
            return _call_chunk(name=event.name, args="", id=event.id, index=event.index)
        if isinstance(event, ArgumentsDelta):
            return _call_chunk(name=None, args=event.text, id=None, index=event.index)
        if isinstance(event, CallEnd):
            self._calls.append(event.call)
            self._cut += [event.call.name + pointer for pointer in event.call.cut]
            reason = _shared.problem(event.call)
            # LangChain makes a valid call of any streamed arguments that its lenient parser can mend, and a cut call
            # is valid JSON. A closing brace too many is the one thing that parser gives up on; and LangChain keeps
            # nothing of a streamed call but its text, so the text has the reason too.
            if reason is None:
                return []
            return _call_chunk(name=None, args=f"}} <{reason}>", id=None, index=event.index)
        if isinstance(event, Finish):
            _shared.require_ended(event)
            # LangChain joins the metadata of chunks, so the last one adds no tokens to those of the texts.
            tokens = None if self._answer.vocabulary is None else []
            metadata = self._answer.metadata(event, [*event.cut, *self._cut], self._calls, tokens)
            usage = usage_of(event.usage)
            return _chunk(content="", response_metadata=metadata, usage_metadata=usage, chunk_position="last")
        return []

    def _content(self, kind: str, text: str) -> Any:
        """Return the content of a chunk with text or reasoning: a list of one block, or the text."""
        return [{"type": kind, kind: text, "index": f"lc_{kind}"}] if self._blocks else text


def _logprobs(tokens: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the log-probabilities of tokens in OpenAI's form."""
    return {"content": tokens, "refusal": None}


def _chunk(**fields: Any) -> list[ChatGenerationChunk]:
    return [ChatGenerationChunk(message=AIMessageChunk(**fields))]


def _call_chunk(**fields: Any) -> list[ChatGenerationChunk]:
    return _chunk(content="", tool_call_chunks=[tool_call_chunk(**fields)])


def usage_of(usage: Usage) -> UsageMetadata:
    """Return token counts under LangChain's names."""
    return UsageMetadata(
        input_tokens=usage.prompt_tokens,
        output_tokens=usage.completion_tokens,
        total_tokens=usage.prompt_tokens + usage.completion_tokens,
        input_token_details=InputTokenDetails(cache_read=usage.cached_tokens),
        output_token_details=OutputTokenDetails(reasoning=usage.reasoning_tokens),
    )


# -- errors --------------------------------------------------------------------------------------------------------


#: LangChain's names for our errors, by code.
_NAMES = {
    "context_overflow": "ContextOverflowError",  # agents summarise and try again
    **dict.fromkeys(("timeout", "server_timeout"), "ModelTimeoutError"),
    "authentication": "ModelAuthenticationError",
    "permission_denied": "ModelPermissionDeniedError",
    "not_found": "ModelNotFoundError",
    "rate_limit": "ModelRateLimitError",
    "server_failure": "ModelAPIError",
    "server_connection": "ModelConnectionError",
    "content_filter": "ModelRefusalError",
    **dict.fromkeys(("budget", *_shared.REQUEST_ERRORS), "ModelInvalidRequestError"),
}


def errors() -> dict[str, type[Exception]]:
    """Return which of our errors, by code, LangChain's agents and middleware know by another name.

    The names came one by one (``ContextOverflowError`` in 1.2, the others in 1.6): an older LangChain does not act on
    what it does not know, and gets our errors as they are.
    """
    return {code: getattr(exceptions, name) for code, name in _NAMES.items() if hasattr(exceptions, name)}
