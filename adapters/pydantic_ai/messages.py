"""Translation between pydantic-ai's settings, tools, messages, parts, usage and errors and ours."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
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
    ToolCall,
    Usage,
)
from toolgrammar.core.conversation import TextPart as OurText
from toolgrammar.core.errors import ModelError, ToolGrammarError
from toolgrammar.core.generation import GenerateParams

from .. import _shared

try:
    from pydantic_ai import exceptions as theirs
    from pydantic_ai import messages as parts
    from pydantic_ai.tools import ToolDefinition
    from pydantic_ai.usage import RequestUsage
except ImportError as error:
    raise _shared.missing("pydantic-ai-slim", "pydantic-ai") from error

#: The name of the provider.
SYSTEM = "toolgrammar"

_PREFIX = f"{SYSTEM}_"

# Settings of the framework that are ours under these names.
_OURS = {
    **{name: name for name in ("max_tokens", "temperature", "top_p", "top_k", "seed", "timeout", "logit_bias")},
    "parallel_tool_calls": "parallel_tool_calls",
    "stop_sequences": "stop",
}
# Settings that the framework acts on, or that are read elsewhere.
_READ = frozenset(
    {"tool_choice", "thinking", "cache", "request_timeout", "first_event_timeout", "framing_announcement"}
)
# Settings of hosted models: a value that asks for nothing is taken, any other is an error.
_NOTHING: Mapping[str, tuple[Any, ...]] = {
    **dict.fromkeys(("presence_penalty", "frequency_penalty"), (0,)),
    **dict.fromkeys(("extra_headers", "extra_body"), ({},)),
    "citations": (False,),
    "service_tier": ("auto", "default"),
}
# Settings with these prefixes are for one class of models of the framework, and ignored by all others.
_OTHERS = tuple(
    f"{name}_"
    for name in (
        "anthropic", "bedrock", "cerebras", "cohere", "crusoe", "deepseek", "fireworks", "github_copilot", "google",
        "grok", "groq", "huggingface", "mcp", "mistral", "ollama", "openai", "openrouter", "snowflake", "together",
        "xai", "zai",
    )
)  # fmt: skip

REASONS: Mapping[FinishReason, parts.FinishReason] = {
    "stop": "stop",
    "length": "length",
    "tool_calls": "tool_call",
    "cancelled": "error",
}

# What the framework's own errors have beside a message.
_ERROR_ATTRIBUTES = ("body", "provider_error_code", "provider_error_type", "retry_after", "phase")


def errors() -> Mapping[str, type[Exception]]:
    """Return the framework's errors by the codes of ours."""
    return {
        **dict.fromkeys(("authentication", "permission_denied"), theirs.ModelAuthenticationError),
        "not_found": theirs.ModelNotFoundError,
        "rate_limit": theirs.ModelRateLimitError,
        "content_filter": theirs.ContentFilterError,
        "server_failure": theirs.ModelServerError,
        **dict.fromkeys(("server_timeout", "timeout"), theirs.ModelTimeoutError),
        "server_connection": theirs.ModelConnectionError,
        "server": theirs.ModelRequestRejectedError,
        "context_overflow": theirs.ModelContextWindowExceededError,
        "budget": theirs.OutputTokenLimitExceeded,
        **dict.fromkeys(("invalid_arguments", "parse"), theirs.UnexpectedModelBehavior),
        **dict.fromkeys(_shared.REQUEST_ERRORS, theirs.UserError),
    }


@contextmanager
def translated(model_name: str) -> Iterator[None]:
    """Raise our errors as the framework's own, with the attributes that its fallbacks and logs read."""
    try:
        with _shared.translated(errors):
            yield
    except (theirs.ModelAPIError, theirs.UnexpectedModelBehavior) as error:
        if isinstance(error, ToolGrammarError):  # made without the framework's constructor, which sets these
            attributes = {"model_name": model_name, "in_stream": False, **dict.fromkeys(_ERROR_ATTRIBUTES)}
            for name, value in attributes.items():
                vars(error).setdefault(name, value)
        raise


def sampling(settings: Mapping[str, Any], thinking: Any) -> GenerateParams:
    """Return settings as parameters.

    Args:
        settings: of a request, or of a model; None means not given.
        thinking: the framework's thinking level, where the model can think.

    Raises:
        ModelError: a setting is not known or not supported, or its value is wrong.
    """
    given: dict[str, Any] = {"empty_answer": False}  # the framework asks again after an empty answer
    for name, value in settings.items():
        ours = name.removeprefix(_PREFIX)
        if name in _OURS:
            given[_OURS[name]] = value
        elif ours != name and ours in _shared.GENERATION:
            given[ours] = value
        elif value is None or name in _READ or name.startswith(_OTHERS) or value in _NOTHING.get(name, ()):
            continue
        else:
            known = {*_OURS, *_READ, *_NOTHING, *(_PREFIX + option for option in _shared.GENERATION)}
            if name in _NOTHING:  # with a value that asks for something
                known -= set(_NOTHING)
            _shared.require_known({name}, known)
    timeout = given.get("timeout")
    if timeout is not None and not isinstance(timeout, (int, float)):
        raise ModelError(f"timeout is {timeout!r}", hint="give a number of seconds")
    if thinking is not None:
        # A level of effort has no number of tokens of its own: the model thinks as long as it does.
        given.setdefault("thinking", thinking is not False)
    return _shared.generation_params(given)


def to_tool(tool: ToolDefinition) -> dict[str, Any]:
    """Return a tool as an OpenAI-style dict with its whole schema."""
    function = {"name": tool.name, "description": tool.description or "", "parameters": tool.parameters_json_schema}
    return _shared.openai_tool({"type": "function", "function": function})


def instructed(messages: Sequence[Message], instructions: Sequence[Any] | None) -> list[Message]:
    """Return a conversation with an agent's instructions, after its leading system messages."""
    if not instructions:
        return list(messages)
    leading = next((index for index, each in enumerate(messages) if each.role != "system"), len(messages))
    text = "\n\n".join(part.content for part in instructions)
    return [*messages[:leading], Message("system", text), *messages[leading:]]


def to_messages(messages: Sequence[parts.ModelMessage]) -> list[Message]:
    """Return the framework's messages as ours.

    Parts of an answer that only another provider can read (its own tools, files, compactions) are left out, as the
    framework's models do.

    Raises:
        ModelError: a part of a request is of a kind that cannot be sent.
    """
    result: list[Message] = []
    for message in messages:
        if isinstance(message, parts.ModelResponse):
            if (answer := _answer(message)) is not None:
                result.append(answer)
            continue
        files: list[Any] = []  # of results, which have no place for them: they are a message of the user, at the end
        for part in message.parts:
            if isinstance(part, parts.SystemPromptPart):
                result.append(Message("system", part.content))
            elif isinstance(part, parts.UserPromptPart):
                result.append(_user(part.content))
            elif isinstance(part, parts.ToolReturnPart):
                text, files_of_result = part.model_response_str_and_user_content(wrap_if_error=False)
                files += files_of_result
                is_error = part.outcome in ("failed", "retried")
                result.append(
                    Message("tool", text, tool_call_id=part.tool_call_id, name=part.tool_name, is_error=is_error)
                )
            elif isinstance(part, parts.RetryPromptPart):  # in histories of older versions
                if part.tool_name is None:
                    result.append(Message("user", part.model_response()))
                else:
                    call, name = part.tool_call_id, part.tool_name
                    result.append(Message("tool", part.model_response(), tool_call_id=call, name=name, is_error=True))
            else:
                raise ModelError(
                    f"a request has a part of the kind {part.part_kind!r}",
                    hint="run the model through an agent, or pass the messages through prepare_messages",
                )
        if files:
            result.append(_user(files))
    return result


def _user(content: Any) -> Message:
    """Return a prompt of the user, a text or a list of texts and files, as a message.

    Raises:
        ModelError: it has a file that is no image.
    """
    if isinstance(content, str):
        return Message("user", content)
    made: list[Part] = []
    for item in content:
        if isinstance(item, str):
            made.append(OurText(item))
        elif isinstance(item, parts.TextContent):
            made.append(OurText(item.content))
        elif isinstance(item, parts.ImageUrl):
            made.append(ImagePart.at(item.url))
        elif isinstance(item, parts.BinaryContent) and item.is_image:
            made.append(ImagePart.at(item.data_uri))
        elif not isinstance(item, parts.CachePoint):
            kind = getattr(item, "media_type", None) or type(item).__name__
            raise ModelError(f"unsupported content {kind}", hint="only text and images are supported")
    return Message("user", _shared.content_of(made, "\n"))


def _answer(message: parts.ModelResponse) -> Message | None:
    """Return an earlier answer as a message; None if nothing of it can be read here."""
    text = "".join(part.content for part in message.parts if isinstance(part, parts.TextPart))
    reasoning = "".join(part.content for part in message.parts if isinstance(part, parts.ThinkingPart))
    calls: tuple[ToolCall, ...] = tuple(
        _shared.past_call(part.tool_call_id, part.tool_name, part.args)
        for part in message.parts
        if isinstance(part, parts.ToolCallPart)
    )
    if not (text or reasoning or calls):
        return None  # an answer that the agent asked for again
    return Message("assistant", text, reasoning=reasoning or None, tool_calls=calls)


def parts_of(generation: Generation) -> list[parts.ModelResponsePart]:
    """Return an answer as parts: thinking, text, calls."""
    made: list[parts.ModelResponsePart] = []
    if generation.message.reasoning:
        made.append(parts.ThinkingPart(generation.message.reasoning))
    if generation.text:
        made.append(parts.TextPart(generation.text))
    for call in generation.tool_calls:
        made.append(parts.ToolCallPart(call.name, _shared.executable_text(call), tool_call_id=call.id))
    return made


def delta_of(event: Event, calls: Mapping[int, CallStart], manager: Any) -> Iterator[parts.ModelResponseStreamEvent]:
    """Yield an event as the framework's; ``manager`` joins the pieces.

    Law: joined, the parts of a stream are those of `parts_of`.
    """
    if isinstance(event, TextDelta):
        yield from manager.handle_text_delta(vendor_part_id="text", content=event.text)
    elif isinstance(event, ReasoningDelta):
        yield from manager.handle_thinking_delta(vendor_part_id="thinking", content=event.text)
    elif isinstance(event, (CallStart, ArgumentsDelta, CallEnd)):
        text, name = getattr(event, "text", ""), None
        if isinstance(event, CallStart):
            name = event.name
        elif isinstance(event, CallEnd):
            if (reason := _shared.problem(event.call)) is None:
                return
            text = f" <{reason}>"  # after the arguments: they are no JSON then, so the framework does not run the call
        made = manager.handle_tool_call_delta(
            vendor_part_id=event.index, tool_name=name, args=text, tool_call_id=calls[event.index].id
        )
        if made is not None:
            yield made


def usage_of(usage: Usage) -> RequestUsage:
    """Return token counts under the framework's names."""
    details = {"reasoning_tokens": usage.reasoning_tokens} if usage.reasoning_tokens else {}
    return RequestUsage(
        input_tokens=usage.prompt_tokens,
        output_tokens=usage.completion_tokens,
        cache_read_tokens=usage.cached_tokens,
        details=details,
    )
