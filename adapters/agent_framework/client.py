"""`ToolGrammarChatClient`, the chat client."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import AsyncIterable, Awaitable, Mapping, Sequence
from inspect import signature
from typing import Any, ClassVar, NamedTuple

from pydantic import BaseModel

from toolgrammar.core.conversation import Generation
from toolgrammar.core.models import Model

from .. import _shared
from .messages import (
    REASONS,
    answer_properties,
    contents_of,
    delta_of,
    errors,
    openai_tool,
    sampling,
    to_messages,
    usage_of,
)

try:
    from agent_framework import (
        BaseChatClient,
        ChatMiddlewareLayer,
        ChatResponse,
        ChatResponseUpdate,
        Content,
        FunctionInvocationLayer,
        ResponseStream,
    )
    from agent_framework import Message as FrameworkMessage
    from agent_framework.observability import ChatTelemetryLayer
except ImportError as error:
    raise _shared.missing("agent-framework-core", "agent-framework") from error

__all__ = ["ToolGrammarChatClient"]

#: Maximum number of calls of which a client remembers how sure the model was.
MAX_CALLS = 1_024


class _Call(NamedTuple):
    """What a client remembers of a call: see its `sureness` and `asked`."""

    sureness: dict[str, Any] | None
    ask: tuple[str, ...]


_UNKNOWN_CALL = _Call(None, ("",))


class ToolGrammarChatClient(
    FunctionInvocationLayer[Any], ChatMiddlewareLayer[Any], ChatTelemetryLayer[Any], BaseChatClient[Any]
):
    """A local model under a grammar, as a chat client of Microsoft Agent Framework.

    Args:
        model: the address of a model, as `load_model` takes it, or a loaded model, which several clients may share.
        options: keyword options for loading ``model``.
        api_key: for a model on a server: sent as a bearer token; ``"env:NAME"`` reads it from the environment.
        base_url: for a model on a server: where its API begins, unless the address says so.
        max_retries: for a model on a server: how often a request is sent again when the server is busy or fails.
        default_options: options of every call; those of a call win. The framework's (``temperature``, ``top_p``,
            ``max_tokens``, ``stop``, ``seed``, ``tool_choice``, ...) and ours (``output_type``, ``top_k``, ``timeout``,
            ``jump_forward``, ...; see `GenerateParams`). ``logprobs=True``, ``top_logprobs`` and ``masses`` put
            probabilities into the response's ``additional_properties``, and ``exact_choice`` its choices.
        **layers: of the framework: ``middleware``, ``function_invocation_configuration``, ``compaction_strategy``,
            ``tokenizer`` (by default the model's own), ``additional_properties``.

    Raises:
        ModelError: the model cannot be loaded, or an option is not known.
    """

    OTEL_PROVIDER_NAME: ClassVar[str] = "toolgrammar"

    def __init__(
        self,
        model: str | Model = "embedded",
        *,
        options: Mapping[str, Any] | None = None,
        api_key: Any = None,
        base_url: str | None = None,
        max_retries: int | None = None,
        default_options: Mapping[str, Any] | None = None,
        **layers: Any,
    ) -> None:
        self._default_options = dict(default_options or {})
        sampling(self._default_options)  # wrong options are an error now, not at the first call
        self._loaded = _shared.LoadedModel(model, options, api_key=api_key, base_url=base_url, max_retries=max_retries)
        if layers.get("compaction_strategy") is not None:
            layers.setdefault("tokenizer", _Tokenizer(self._loaded))
        # Each of the framework's layers takes the settings that it knows, and passes on the others.
        constructors = [vars(base).get("__init__", object) for base in type(self).__mro__]
        known = {name for constructor in constructors for name in signature(constructor).parameters} - {"self"}
        inside = {"options": _shared.LOADING, "default_options": (*_shared.GENERATION, "output_type")}
        _shared.require_known(layers, known, "unknown setting:", inside)
        super().__init__(**layers)
        self.model = self._loaded.name
        self._calls: OrderedDict[str, _Call] = OrderedDict()  # the latest `MAX_CALLS`, by their ids

    @property
    def policy(self) -> Any:
        """The policy of its default options, or None."""
        return self._default_options.get("policy")

    def sureness(self, call_id: str) -> dict[str, Any] | None:
        """Return how sure the model was of a recent call, as ``additional_properties["sureness"]`` of its response has
        it (`CallSureness`, with ``least``, the least of its probabilities); None if nothing is known of it: without
        ``exact_choice``, for a model on a server, and for calls before the last 1,024."""
        return self._calls.get(call_id, _UNKNOWN_CALL).sureness

    def asked(self, call_id: str) -> tuple[str, ...]:
        """Return the JSON pointers of the values of a recent call that a policy lets a person confirm (``""``: the call
        itself); also of a call of which nothing is known, such as one before the last 1,024."""
        return self._calls.get(call_id, _UNKNOWN_CALL).ask

    def _properties(self, generation: Generation, request: _shared.Request) -> dict[str, Any]:
        """Return the additional properties of an answer, and remember how sure the model was of its calls."""
        properties = answer_properties(generation, request)
        sureness = {sure["id"]: sure for sure in properties.get("sureness", ())}
        for call in generation.tool_calls:
            self._calls[call.id] = _Call(sureness.get(call.id), call.ask)
            while len(self._calls) > MAX_CALLS:
                self._calls.popitem(last=False)
        return properties

    def _inner_get_response(
        self, *, messages: Sequence[FrameworkMessage], stream: bool, options: Mapping[str, Any], **kwargs: Any
    ) -> Awaitable[ChatResponse[Any]] | ResponseStream[ChatResponseUpdate, ChatResponse[Any]]:
        given = {**self._default_options, **{name: value for name, value in options.items() if value is not None}}
        if stream:
            return self._build_response_stream(self._updates(messages, given), response_format=_class_of(given))
        return self._response(messages, given)

    async def _response(self, messages: Sequence[FrameworkMessage], options: Mapping[str, Any]) -> ChatResponse[Any]:
        """Return a whole answer."""
        with _shared.translated(errors):
            request = await self._request(messages, options)
            generation = await request.agenerate()
            request.check(generation)
        return ChatResponse(
            messages=FrameworkMessage("assistant", contents_of(generation)),
            model=request.model.name,
            finish_reason=REASONS[generation.finish_reason],
            usage_details=usage_of(generation.usage),
            response_format=_class_of(options),
            additional_properties=self._properties(generation, request),
        )

    async def _updates(
        self, messages: Sequence[FrameworkMessage], options: Mapping[str, Any]
    ) -> AsyncIterable[ChatResponseUpdate]:
        """Yield an answer in pieces, and at its end what it cost and why it ended."""
        collected = _shared.Collector()
        with _shared.translated(errors):
            request = await self._request(messages, options)
            async with request.astream() as stream:
                async for event in stream:
                    collected.add(event)
                    if contents := delta_of(event, collected.started):
                        yield ChatResponseUpdate(contents=contents, role="assistant", model=request.model.name)
                generation = await stream.result()
            request.check(generation)
        yield ChatResponseUpdate(
            contents=[Content.from_usage(usage_of(generation.usage))],
            role="assistant",
            model=request.model.name,
            finish_reason=REASONS[generation.finish_reason],
            additional_properties=self._properties(generation, request),
        )

    async def _request(self, messages: Sequence[FrameworkMessage], options: Mapping[str, Any]) -> _shared.Request:
        """Return one call, ready for the model: the options of the client and of the call are merged already."""
        params = sampling(options)
        checked = await self._validate_options(options)
        tools = [openai_tool(tool) for tool in checked.get("tools") or ()]
        response_format = _format_of(checked)
        schema = None if response_format is None else _shared.closed(_shared.schema_in(response_format))
        params = self._loaded.with_tools(params, tools, checked.get("tool_choice"), schema, checked.get("output_type"))
        conversation = to_messages(messages, checked.get("instructions"))
        check = _shared.validators_of(_class_of(options))
        return _shared.Request(self._loaded.model(checked.get("model")), conversation, params, check)

    def get_token_count(self, messages: Sequence[FrameworkMessage], tools: Sequence[Any] = ()) -> int:
        """Return how many tokens a prompt has, by the model's tokenizer and template; an estimate for a server's."""
        with _shared.translated(errors):
            mode = self._default_options.get("tools_in_prompt")
            return self._loaded.count_tokens(to_messages(messages), [*map(openai_tool, tools)], mode)


def _class_of(options: Mapping[str, Any]) -> Any:
    """Return the response format, or the Pydantic class that ``output_type`` gives instead."""
    output_type = options.get("output_type")
    if isinstance(output_type, type(BaseModel)):
        return output_type
    response_format = _format_of(options)
    if isinstance(response_format, type) and not isinstance(response_format, type(BaseModel)):
        return _shared.closed(response_format)  # the framework reads no dataclass and no typed dict
    return response_format


def _format_of(options: Mapping[str, Any]) -> Any:
    """Return the response format; None: a text answer is free."""
    response_format = options.get("response_format")
    return None if _shared.is_free(response_format) else response_format


class _Tokenizer:
    """Counts tokens of texts, for the framework's compaction strategies."""

    def __init__(self, loaded: _shared.LoadedModel) -> None:
        self._loaded = loaded

    def count_tokens(self, text: str) -> int:
        return _shared.count_text(self._loaded.model(), text)
