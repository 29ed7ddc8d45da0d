"""`ToolGrammarChatCompletionClient`, the model client, and its configuration."""

from __future__ import annotations

import asyncio
import logging
import threading
import warnings
from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import replace
from types import NoneType
from typing import Any, Literal, Union

from pydantic import BaseModel, Field
from typing_extensions import Self

from toolgrammar.core.conversation import Generation, Message, TextDelta
from toolgrammar.core.errors import ModelError
from toolgrammar.core.generation import GenerateParams
from toolgrammar.core.grammar import Grammar
from toolgrammar.core.models import Model

from .. import _shared
from .messages import (
    REASONS,
    SELECT,
    errors,
    function_call,
    openai_tools,
    sampling,
    selection,
    to_messages,
    token_logprob,
    with_speakers,
)

try:
    from autogen_core import EVENT_LOGGER_NAME, CancellationToken, Component
    from autogen_core.logging import LLMCallEvent, LLMStreamEndEvent, LLMStreamStartEvent
    from autogen_core.models import ChatCompletionClient, CreateResult, LLMMessage, ModelFamily, ModelInfo, RequestUsage
    from autogen_core.tools import Tool, ToolSchema
except ImportError as error:
    raise _shared.missing("autogen-core", "autogen") from error

__all__ = ["ToolGrammarChatCompletionClient", "ToolGrammarClientConfig", "ToolGrammarCreateResult"]

_events = logging.getLogger(EVENT_LOGGER_NAME)

ToolChoice = Union[Tool, Literal["auto", "required", "none"]]
JsonOutput = Union[bool, "type[BaseModel]", None]


def _in_extra(
    tool_choice: Any, json_output: JsonOutput, extra: Mapping[str, Any]
) -> tuple[Any, JsonOutput, Mapping[str, Any]]:
    """Return the three arguments, with the ``tool_choice`` and ``response_format`` of the extra ones moved into the
    others: the latter is ``json_output``, or the extra argument ``output_type``.

    Raises:
        ModelError: something is given twice, or in no known form.
    """
    others = dict(extra)
    choice, response_format = others.pop("tool_choice", None), others.pop("response_format", None)
    for name, is_twice in (
        ("json_output", response_format is not None and json_output),
        ("tool_choice", choice is not None and tool_choice != "auto"),
    ):
        if is_twice:
            raise ModelError(f"{name} is given twice", hint=f"give it as {name}=, and not in extra_create_args")
    if isinstance(response_format, type):
        json_output = response_format
    elif response_format == {"type": "json_object"}:
        json_output = True
    elif not _shared.is_free(response_format):
        others["output_type"] = _shared.schema_in(response_format)
    return tool_choice if choice is None else choice, json_output, others


class ToolGrammarClientConfig(BaseModel):
    """The configuration of a client: ``dump_component`` writes it and ``load_component`` reads it.

    Attributes:
        model: the URI of the model.
        options: keyword options for loading it.
        create_args: sampling and limits for every call (fields of `GenerateParams`).
    """

    model: str
    options: dict[str, Any] = Field(default_factory=dict)
    create_args: dict[str, Any] = Field(default_factory=dict)


class ToolGrammarCreateResult(CreateResult):
    """AutoGen's result of a call, and how the answer was held to what was asked for.

    Attributes:
        guarantee: ``"constrained"``: every token was chosen under the grammar; ``"validated"``: something was checked
            afterwards. ``"cut"``: the last call has no arguments, because the budget of a server ended inside them.
        form: for a model on a server: form of the request that it took; None otherwise.
        left_out: places in the schemas that the server was not sent; they were checked here.
        attempts: number of requests to the server for this answer.
    """

    guarantee: Literal["constrained", "validated", "cut"]
    form: str | None = None
    left_out: list[str] = Field(default_factory=list)
    attempts: int = 1


class ToolGrammarChatCompletionClient(ChatCompletionClient, Component[ToolGrammarClientConfig]):
    """A local model under a grammar, as an AutoGen model client.

    Args:
        model: the address of a model, as `load_model` takes it, or a loaded model, which several clients may share.
        options: keyword options for loading ``model``.
        api_key: for a model on a server: sent as a bearer token; ``"env:NAME"`` reads it from the environment.
        base_url: for a model on a server: where its API begins, unless the address says so.
        max_retries: for a model on a server: how often a request is sent again when the server is busy or fails.
        **create_args: for every call: the generation options by name (``temperature``, ``max_tokens``, ``stop``,
            ``output_type``, ...; see `GenerateParams`), ``logprobs=True`` and ``top_logprobs`` (those of a text are in
            ``CreateResult.logprobs``), and ``select_speaker``: the prompt of a `SelectorGroupChat` is
            answered with one of the names that it lists. By default AutoGen's own prompt is known; True for a client
            that serves a selector with a prompt of yours.

    Raises:
        ModelError: the model cannot be loaded, or an argument is not known.
    """

    component_type = "model"
    component_config_schema = ToolGrammarClientConfig
    component_provider_override = "toolgrammar.adapters.autogen.ToolGrammarChatCompletionClient"

    def __init__(
        self,
        model: str | Model = "embedded",
        *,
        options: Mapping[str, Any] | None = None,
        api_key: Any = None,
        base_url: str | None = None,
        max_retries: int | None = None,
        **create_args: Any,
    ) -> None:
        sampling(create_args)  # wrong arguments are an error now, not at the first call
        self._loaded = _shared.LoadedModel(model, options, api_key=api_key, base_url=base_url, max_retries=max_retries)
        self._create_args = create_args
        self._actual = RequestUsage(prompt_tokens=0, completion_tokens=0)
        self._total = RequestUsage(prompt_tokens=0, completion_tokens=0)

    # -- generation ----------------------------------------------------------------------------------------------

    async def create(
        self,
        messages: Sequence[LLMMessage],
        *,
        tools: Sequence[Tool | ToolSchema] = [],
        tool_choice: ToolChoice = "auto",
        json_output: JsonOutput = None,
        extra_create_args: Mapping[str, Any] = {},
        cancellation_token: CancellationToken | None = None,
    ) -> ToolGrammarCreateResult:
        """Answer a conversation.

        Args:
            messages: the conversation.
            tools: tools, or their schemas.
            tool_choice: ``"auto"``, ``"required"``, ``"none"``, or one of ``tools`` (or its name) that must be called.
            json_output: a Pydantic class that a text answer must match, or True for any JSON object. Where a validator
                of the class objects, the model is asked again with its message, twice at most.
            extra_create_args: overrides of the client's own arguments; also ``tool_choice`` and ``response_format`` as
                OpenAI has them, which earlier versions of AutoGen gave so.
            cancellation_token: stops the model within one step.

        Raises:
            ToolGrammarError: what was asked for cannot be done, or the server failed.
            TimeoutError: the ``timeout`` passed, or the server was silent for too long.
            asyncio.CancelledError: the token was cancelled.
        """
        with _shared.translated(errors):
            tool_choice, json_output, extra = _in_extra(tool_choice, json_output, extra_create_args)
            request = self._request(messages, tools, tool_choice, json_output, extra, cancellation_token)
            answer = asyncio.ensure_future(request.agenerate())
            if cancellation_token is not None:
                cancellation_token.link_future(answer)
            result = self._result(await answer, request)
        _events.info(
            LLMCallEvent(
                messages=[message.model_dump(mode="json") for message in messages],
                response=result.model_dump(mode="json"),
                prompt_tokens=result.usage.prompt_tokens,
                completion_tokens=result.usage.completion_tokens,
            )
        )
        return result

    async def create_stream(
        self,
        messages: Sequence[LLMMessage],
        *,
        tools: Sequence[Tool | ToolSchema] = [],
        tool_choice: ToolChoice = "auto",
        json_output: JsonOutput = None,
        extra_create_args: Mapping[str, Any] = {},
        cancellation_token: CancellationToken | None = None,
    ) -> AsyncGenerator[str | ToolGrammarCreateResult, None]:
        """Do what `create` does, and yield the pieces of a text answer as they are certain, the whole result last.

        AutoGen streams text only: tool calls and reasoning are in the result. The answer comes in one piece where it
        has to pass validators of ``json_output``.
        """
        _events.info(LLMStreamStartEvent(messages=[message.model_dump(mode="json") for message in messages]))
        with _shared.translated(errors):
            tool_choice, json_output, extra = _in_extra(tool_choice, json_output, extra_create_args)
            request = self._request(messages, tools, tool_choice, json_output, extra, cancellation_token)
            async with request.astream() as stream:
                async for event in stream:
                    if isinstance(event, TextDelta):
                        yield event.text
                result = self._result(await stream.result(), request)
        _events.info(
            LLMStreamEndEvent(
                response=result.model_dump(mode="json"),
                prompt_tokens=result.usage.prompt_tokens,
                completion_tokens=result.usage.completion_tokens,
            )
        )
        yield result

    def _request(
        self,
        messages: Sequence[LLMMessage],
        tools: Sequence[Tool | ToolSchema],
        tool_choice: ToolChoice,
        json_output: JsonOutput,
        extra: Mapping[str, Any],
        token: CancellationToken | None,
    ) -> _shared.Request:
        """Return the request of a call; a token that is cancelled stops the model."""
        conversation = to_messages(messages)
        stop = threading.Event()
        if token is not None:
            token.add_callback(stop.set)  # no more than a flag: the token's lock is held while it calls back
        params = replace(self._params(conversation, tools, tool_choice, json_output, extra), cancel=stop.is_set)
        check = _shared.validators_of(json_output or self._output_type(json_output, extra))
        return _shared.Request(self._loaded.model(), conversation, params, check)

    def _params(
        self,
        conversation: Sequence[Message],
        tools: Sequence[Tool | ToolSchema],
        tool_choice: ToolChoice,
        json_output: JsonOutput,
        extra: Mapping[str, Any],
    ) -> GenerateParams:
        """Return the options of a request: the client's, replaced by those of the call."""
        arguments = {**self._create_args, **extra}
        choice = tool_choice.name if isinstance(tool_choice, Tool) else tool_choice
        schema: Any = None
        if json_output:
            if json_output is not True and not isinstance(json_output, type):
                raise ModelError(f"json_output is {json_output!r}", hint="give True, or a Pydantic class")
            schema = {"type": "object"} if json_output is True else _shared.closed(json_output)
            schema = with_speakers(schema, conversation)
        output_type = self._output_type(json_output, extra)
        params = self._loaded.with_tools(sampling(arguments), openai_tools(tools), choice, schema, output_type)
        if params.tools is not None:
            if "parallel_tool_calls" in arguments:
                return params
            # Agents pass handoffs as tools, and act on the first of several only.
            has_handoffs = any(name.startswith("transfer_to_") for name in params.tools.names)
            return replace(params, parallel_tool_calls=not has_handoffs)
        if params.json_mode is None and params.grammar is None:
            names = selection(conversation, arguments.get(SELECT))
            return replace(params, grammar=Grammar.choice(*map(Grammar.literal, names))) if names else params
        return params

    def _output_type(self, json_output: JsonOutput, extra: Mapping[str, Any]) -> Any:
        """Return the ``output_type`` of a call; the client's own gives way to what the call asks for."""
        own = None if json_output else self._create_args.get("output_type")
        return extra.get("output_type", own)

    def _result(self, generation: Generation, request: _shared.Request) -> ToolGrammarCreateResult:
        """Return an answer as AutoGen's result, and count its tokens.

        Text beside calls is in ``thought``, as AutoGen has no other place for it.
        """
        usage = RequestUsage(generation.usage.prompt_tokens, generation.usage.completion_tokens)
        for counter in (self._actual, self._total):
            counter.prompt_tokens += usage.prompt_tokens
            counter.completion_tokens += usage.completion_tokens
        _shared.require_whole(generation, request.params)
        vocabulary = _shared.vocabulary_of(request.model, request.params)
        tokens = _shared.text_tokens(vocabulary, generation.tokens, generation.text)
        calls = [function_call(call) for call in generation.tool_calls]
        text, reasoning = generation.text, generation.message.reasoning
        return ToolGrammarCreateResult(
            finish_reason=REASONS[generation.finish_reason],
            content=calls or text,
            usage=usage,
            cached=False,
            logprobs=None if tokens is None else [*map(token_logprob, tokens)],
            thought=(reasoning or text or None) if calls else reasoning,
            **request.details(generation),
        )

    # -- what AutoGen asks about the client --------------------------------------------------------------------------

    async def close(self) -> None:
        """Do nothing: the model is freed with the last object that holds it."""

    def actual_usage(self) -> RequestUsage:
        """Return the tokens of all calls; no call is answered from a cache."""
        return replace(self._actual)

    def total_usage(self) -> RequestUsage:
        """Return the tokens of all calls."""
        return replace(self._total)

    def count_tokens(self, messages: Sequence[LLMMessage], *, tools: Sequence[Tool | ToolSchema] = []) -> int:
        """Return the number of tokens of the prompt, by the model's tokenizer and template."""
        mode = self._create_args.get("tools_in_prompt")
        return self._loaded.count_tokens(to_messages(messages), openai_tools(tools), mode)

    def remaining_tokens(self, messages: Sequence[LLMMessage], *, tools: Sequence[Tool | ToolSchema] = []) -> int:
        """Return the tokens left in the context window; negative if the prompt is too long."""
        return self._loaded.model().context_window - self.count_tokens(messages, tools=tools)

    @property
    def model_info(self) -> ModelInfo:
        """The capabilities of the model."""
        return ModelInfo(
            vision=self._loaded.model().capabilities.images,
            function_calling=True,
            json_output=True,
            family=ModelFamily.UNKNOWN,
            structured_output=True,
            multiple_system_messages=True,
        )

    @property
    def capabilities(self) -> Any:
        """AutoGen's old name for `model_info`."""
        warnings.warn("capabilities is deprecated, use model_info instead", DeprecationWarning, stacklevel=2)
        return self.model_info

    def _to_config(self) -> ToolGrammarClientConfig:
        """Return the configuration of an equal client: the address of the model, and arguments as JSON has them.

        Raises:
            ModelError: the model was given loaded, has a key, or an argument cannot be written.
        """
        if self._loaded.uri is None:
            raise ModelError(
                "a client around a loaded model cannot be written as a component",
                hint='name the model instead: ToolGrammarChatCompletionClient(model="hf:...")',
            )
        options = self._loaded.options
        _shared.require_storable(options)
        arguments = dict(self._create_args)
        if isinstance(arguments.get("grammar"), Grammar):
            arguments["grammar"] = arguments["grammar"].dumps()
        if not isinstance(output_type := arguments.get("output_type"), (NoneType, Mapping, bool)):
            raise ModelError(f"{output_type!r} cannot be written as a component", hint="give it to the call")
        return ToolGrammarClientConfig(model=self._loaded.uri, options=options, create_args=arguments)

    @classmethod
    def _from_config(cls, config: ToolGrammarClientConfig) -> Self:
        return cls(config.model, options=config.options, **config.create_args)
