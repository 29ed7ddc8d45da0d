"""`ToolGrammarModel`: a model of pydantic-ai whose requests and streams a model of this library answers."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from threading import Event as Flag
from typing import Any

from toolgrammar.core.conversation import Event, Finish
from toolgrammar.core.errors import CancelledError
from toolgrammar.core.models import AsyncStream, LocalModel, Model

from .. import _shared
from .messages import (
    REASONS,
    SYSTEM,
    delta_of,
    instructed,
    parts_of,
    sampling,
    to_messages,
    to_tool,
    translated,
    usage_of,
)

try:
    from pydantic_ai.messages import ModelMessage, ModelResponse, ModelResponseStreamEvent
    from pydantic_ai.models import Model as FrameworkModel
    from pydantic_ai.models import ModelRequestParameters, StreamedResponse, check_allow_model_requests
    from pydantic_ai.models._tool_choice import resolve_tool_choice
    from pydantic_ai.profiles import ModelProfile, ModelProfileSpec, merge_profile
    from pydantic_ai.settings import ModelSettings
    from pydantic_ai.usage import RequestUsage
except ImportError as error:
    raise _shared.missing("pydantic-ai-slim", "pydantic-ai") from error

__all__ = ["ToolGrammarModel"]


class ToolGrammarModel(FrameworkModel[Any]):  # type: ignore[misc]
    """A local model under a grammar, as a model of pydantic-ai.

    Args:
        model: the address of a model, as `load_model` takes it, or a loaded model, which several objects may share.
        options: keyword options for loading ``model``.
        api_key: for a model on a server: sent as a bearer token; ``"env:NAME"`` reads it from the environment.
        base_url: for a model on a server: where its API begins, unless the address says so.
        max_retries: for a model on a server: how often a request is sent again when the server is busy or fails.
        settings: of every request; those of an agent and of a run win. The framework's, and ours with the prefix
            ``toolgrammar_`` (`ToolGrammarModelSettings`).
        profile: changes to the model's profile, for example ``{"default_structured_output_mode": "tool"}``.

    Raises:
        ModelError: the model cannot be loaded, or a setting is not known or has a wrong value.
    """

    # Messages have texts and images.
    _unsupported_file_inputs = frozenset({"document", "audio", "video"})

    def __init__(
        self,
        model: str | Model = "embedded",
        *,
        options: Mapping[str, Any] | None = None,
        api_key: Any = None,
        base_url: str | None = None,
        max_retries: int | None = None,
        settings: ModelSettings | None = None,
        profile: ModelProfileSpec | None = None,
    ) -> None:
        sampling(settings or {}, None)  # a wrong setting is an error now, not at the first request
        self._loaded = _shared.LoadedModel(model, options, api_key=api_key, base_url=base_url, max_retries=max_retries)
        super().__init__(settings=settings, profile=profile)

    @property
    def model_name(self) -> str:
        """The address of the model, or the loaded model's own name."""
        return self._loaded.name

    @property
    def system(self) -> str:
        """The provider: toolgrammar."""
        return SYSTEM

    def _instance_profile_defaults(self, profile: ModelProfile) -> ModelProfile:
        """Return the framework's profile of this model: what it can do."""
        model = self._loaded.model()
        known = ModelProfile(
            supports_json_schema_output=True,
            supports_json_object_output=True,
            default_structured_output_mode="native",
            supports_image_input=model.capabilities.images,
            supports_thinking=_shared.thinks(model),
        )
        if isinstance(model, LocalModel):  # a server would have to be asked
            known["context_window"] = model.context_window
        return merge_profile(profile, known)

    async def request(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: ModelRequestParameters,
    ) -> ModelResponse:
        """Return the answer to a conversation.

        Raises:
            ToolGrammarError: the request cannot be done, or failed; also an error of pydantic-ai.
        """
        check_allow_model_requests()
        with translated(self.model_name):
            request, _ = self._request(messages, model_settings, model_request_parameters)
            generation = await request.agenerate()
            request.check(generation)
        return ModelResponse(
            parts=parts_of(generation),
            usage=usage_of(generation.usage),
            model_name=self.model_name,
            provider_name=SYSTEM,
            finish_reason=REASONS[generation.finish_reason],
            provider_details=request.details(generation),
        )

    @asynccontextmanager
    async def request_stream(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: ModelRequestParameters,
        run_context: Any = None,
    ) -> AsyncGenerator[StreamedResponse]:
        """Open a stream of the answer: thinking, text, and calls with their arguments in pieces.

        Raises:
            ToolGrammarError: the request cannot be done, or failed before the first event; also an error of
                pydantic-ai. Later errors come while the stream is read.
        """
        check_allow_model_requests()
        stop = Flag()
        with translated(self.model_name):
            request, parameters = self._request(messages, model_settings, model_request_parameters)
            request = replace(request, params=replace(request.params, cancel=stop.is_set))
            events = request.astream()
            # A request that fails at once is an error here, where the framework may try another model.
            first = await anext(events)
        async with events:
            yield _Stream(parameters, self.model_name, request, first, events, stop)

    async def count_tokens(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: ModelRequestParameters,
    ) -> RequestUsage:
        """Return the tokens of a prompt, by the model's own tokenizer and template; an estimate for a server's.

        Raises:
            ToolGrammarError: the request cannot be done; also an error of pydantic-ai.
        """
        with translated(self.model_name):
            request, _ = self._request(messages, model_settings, model_request_parameters)
            return RequestUsage(
                input_tokens=_shared.count_tokens(
                    request.model, request.messages, request.params.tools, request.params.tools_in_prompt
                )
            )

    def _request(
        self, messages: list[ModelMessage], settings: ModelSettings | None, parameters: ModelRequestParameters
    ) -> tuple[_shared.Request, ModelRequestParameters]:
        """Return one request, ready for the model, and the parameters as the framework completed them."""
        settings, parameters = self.prepare_request(settings, parameters)
        params = sampling(settings or {}, parameters.thinking)
        tools = parameters.declared_tool_defs
        choice = resolve_tool_choice(settings, parameters)
        if not isinstance(choice, str):  # a choice among some of the tools
            choice, allowed = choice
            tools = {name: tool for name, tool in tools.items() if name in allowed}
        schema = None
        if parameters.output_object is not None and parameters.allow_text_output:  # else a tool has the output
            schema = _shared.closed(parameters.output_object.json_schema)
        params = self._loaded.with_tools(params, [*map(to_tool, tools.values())], choice, schema)
        conversation = instructed(to_messages(messages), self._get_instruction_parts(messages, parameters))
        return _shared.Request(self._loaded.model(), conversation, params), parameters


@dataclass
class _Stream(StreamedResponse):  # type: ignore[misc]
    """One answer, as it is written.

    Attributes:
        _name: the name of the model.
        _request: the request.
        _first: the first event of the answer, which was awaited before the stream was handed out.
        _events: the other events.
        _stop: set: the model stops.
    """

    _name: str
    _request: _shared.Request
    _first: Event
    _events: AsyncStream
    _stop: Flag
    _timestamp: datetime = field(default_factory=lambda: datetime.now(timezone.utc))

    async def _get_event_iterator(self) -> AsyncIterator[ModelResponseStreamEvent]:
        """Yield the framework's events; the details of the answer are there after the last one."""
        collected = _shared.Collector()
        with translated(self._name):
            for event in self._taken(self._first, collected):
                yield event
            async for ours in self._events:
                for event in self._taken(ours, collected):
                    yield event
            try:
                generation = await self._events.result()
            except CancelledError:
                if self.cancelled:  # by `close_stream`: the reader wants no more
                    return
                raise
            self._request.check(generation)
        self.provider_details = self._request.details(generation)

    def _taken(self, event: Event, collected: _shared.Collector) -> Iterator[ModelResponseStreamEvent]:
        """Collect an event, and yield it as the framework's; the last one gives the usage and the reason instead."""
        collected.add(event)
        if isinstance(event, Finish):
            self._usage = usage_of(event.usage)
            self.finish_reason = REASONS[event.reason]
        else:
            yield from delta_of(event, collected.started, self._parts_manager)

    async def close_stream(self) -> None:
        self._stop.set()

    @property
    def model_name(self) -> str:
        return self._name

    @property
    def provider_name(self) -> str:
        return SYSTEM

    @property
    def provider_url(self) -> None:
        return None

    @property
    def timestamp(self) -> datetime:
        return self._timestamp
