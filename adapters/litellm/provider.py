"""`ToolGrammarProvider`: LiteLLM's custom provider, over the application in this process."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator, Mapping
from typing import Any

import httpx
from httpx_sse import aconnect_sse, connect_sse

from toolgrammar.core.generation import GenerateParams
from toolgrammar.core.models import Model

from .. import _shared

try:
    import litellm as _litellm
    from litellm import utils as _utils
except ImportError as error:
    raise _shared.missing("litellm", "litellm") from error

from ..server.app import create_app
from ..server.in_process import BASE_URL, InProcess
from ..server.limits import Limits

litellm: Any = _litellm  # its types do not say what it exports
utils: Any = _utils

#: The part of a model's name before the slash.
PROVIDER = "toolgrammar"

_PATH = "/v1/chat/completions"
#: Arguments of LiteLLM that say how it asks, not what.
_ITS_OWN = frozenset({"stream", "stream_options", "max_retries", "extra_headers", "api_key", "api_base"})

#: Parameters that LiteLLM takes to be supported by every provider of this kind, and that are refused here.
_UNSUPPORTED = (
    "frequency_penalty",
    "presence_penalty",
    "modalities",
    "prediction",
    "audio",
    "web_search_options",
    "functions",
    "function_call",
)


def register(
    models: str | Model | Mapping[str, str | Model],
    *,
    defaults: GenerateParams | None = None,
    limits: Limits | None = None,
) -> ToolGrammarProvider:
    """Make LiteLLM know models as ``toolgrammar/NAME``; what was registered before is replaced.

    LiteLLM's model info says of each that it takes schemas and tools, so that frameworks that ask before they send a
    schema (DSPy, say) send it.

    Args:
        models: a model or its address, which is its name too; or several by name.
        defaults: options of requests that do not say otherwise, for example a temperature.
        limits: bounds of requests.

    Returns:
        The provider; close it to free models that were given by their addresses.

    Raises:
        ModelError: a model cannot be loaded.
        MissingDependencyError: a package of the extra ``litellm`` is not installed.
    """
    provider = ToolGrammarProvider(models, defaults=defaults, limits=limits)
    others = [entry for entry in litellm.custom_provider_map if entry["provider"] != PROVIDER]
    litellm.custom_provider_map = [*others, {"provider": PROVIDER, "custom_handler": provider}]
    utils.custom_llm_setup()  # else LiteLLM knows the provider from the first request on, and nothing of it before
    for name in [name for name in litellm.model_cost if name.startswith(f"{PROVIDER}/")]:
        del litellm.model_cost[name]
    litellm.register_model({f"{PROVIDER}/{name}": facts for name, facts in provider.facts().items()})
    return provider


class ToolGrammarProvider(litellm.CustomLLM):  # type: ignore[misc]
    """LiteLLM's custom provider over models in this process; `register` makes it known.

    Args:
        models: a model or its address, which is its name too; or several by name.
        defaults: options of requests that do not say otherwise.
        limits: bounds of requests.
    """

    def __init__(
        self,
        models: str | Model | Mapping[str, str | Model],
        *,
        defaults: GenerateParams | None = None,
        limits: Limits | None = None,
    ) -> None:
        super().__init__()
        app = create_app(models, defaults=defaults, limits=limits)
        process = InProcess(app, httpx)
        self._process = process
        self._served = app.state.served
        self._client = httpx.Client(transport=process.transport(), base_url=BASE_URL)
        self._aclient = httpx.AsyncClient(transport=process.async_transport(), base_url=BASE_URL)

    def close(self) -> None:
        """End the provider's thread, and free the models that were given by their addresses."""
        self._process.close()

    def facts(self) -> dict[str, dict[str, Any]]:
        """Return LiteLLM's model info of each model by its name."""
        return {name: _facts(self._served.model(name)) for name in self._served}

    def completion(self, model: str, messages: list[Any], *arguments: Any, **options: Any) -> Any:
        """Return the whole answer."""
        answer = self._client.post(_PATH, json=_body(model, messages, options), timeout=options.get("timeout"))
        return _response(model, answer, options["model_response"])

    async def acompletion(self, model: str, messages: list[Any], *arguments: Any, **options: Any) -> Any:
        """Do what `completion` does without blocking the event loop."""
        body = _body(model, messages, options)
        answer = await self._aclient.post(_PATH, json=body, timeout=options.get("timeout"))
        return _response(model, answer, options["model_response"])

    def streaming(self, model: str, messages: list[Any], *arguments: Any, **options: Any) -> Iterator[Any]:
        """Yield the chunks of the answer."""
        body, chunks = _streamed(_body(model, messages, options)), _Chunks()
        with connect_sse(self._client, "POST", _PATH, json=body, timeout=options.get("timeout")) as source:
            if source.response.is_error:
                source.response.read()
                raise _error(model, source.response.status_code, source.response.json())
            for event in source.iter_sse():
                yield from chunks.of(model, event.data)

    async def astreaming(self, model: str, messages: list[Any], *arguments: Any, **options: Any) -> AsyncIterator[Any]:
        """Do what `streaming` does without blocking the event loop."""
        body, chunks = _streamed(_body(model, messages, options)), _Chunks()
        async with aconnect_sse(self._aclient, "POST", _PATH, json=body, timeout=options.get("timeout")) as source:
            if source.response.is_error:
                await source.response.aread()
                raise _error(model, source.response.status_code, source.response.json())
            async for event in source.aiter_sse():
                for chunk in chunks.of(model, event.data):
                    yield chunk


def _facts(model: Model) -> dict[str, Any]:
    """Return LiteLLM's model info of a model.

    Reasoning is left out: LiteLLM refuses ``reasoning_effort`` for every provider of this kind, and frameworks would
    send it.
    """
    window = model.context_window
    return {
        "litellm_provider": PROVIDER,
        "mode": "chat",
        "max_tokens": window,
        "max_input_tokens": window,
        "max_output_tokens": window,
        "input_cost_per_token": 0.0,
        "output_cost_per_token": 0.0,
        "cache_creation_input_token_cost": 0.0,
        "cache_read_input_token_cost": 0.0,
        "supports_response_schema": True,
        "supports_function_calling": True,
        "supports_parallel_function_calling": True,
        "supports_tool_choice": True,
        "supports_system_messages": True,
        "supports_native_streaming": True,
        "supports_vision": model.capabilities.images,
    }


def _body(model: str, messages: list[Any], options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the request of a chat completion."""
    fields = {name: value for name, value in options["optional_params"].items() if name not in _ITS_OWN}
    if litellm.drop_params or (options.get("litellm_params") or {}).get("drop_params"):
        fields = {name: value for name, value in fields.items() if name not in _UNSUPPORTED}
    more = fields.pop("extra_body", None) or {}
    plain = [message if isinstance(message, dict) else message.model_dump(exclude_none=True) for message in messages]
    return {"model": model, "messages": plain, **fields, **more}


def _streamed(body: dict[str, Any]) -> dict[str, Any]:
    return {**body, "stream": True, "stream_options": {"include_usage": True}}


def _response(model: str, answer: httpx.Response, empty: Any) -> Any:
    """Return an answer as LiteLLM's, in the object that it made for it."""
    if answer.is_error:
        raise _error(model, answer.status_code, answer.json())
    made = litellm.ModelResponse(**answer.json())
    empty.id, empty.choices, empty.created, empty.model = made.id, made.choices, made.created, model
    empty.usage = made.usage
    return empty


def _error(model: str, status: int, body: Mapping[str, Any]) -> Any:
    """Return an error of the application as LiteLLM's own."""
    error = body["error"]
    words = {"message": error["message"], "model": model, "llm_provider": PROVIDER}
    if error.get("code") == "context_length_exceeded":
        return litellm.ContextWindowExceededError(**words)
    kinds = {
        400: litellm.BadRequestError,
        404: litellm.NotFoundError,
        429: litellm.RateLimitError,
        504: litellm.Timeout,
    }
    if status in kinds:
        return kinds[status](**words)
    return litellm.APIError(status_code=status, **words)


class _Chunks:
    """Conversion of chat completion chunks into LiteLLM's; finish reason and token counts come last, together."""

    def __init__(self) -> None:
        self._reason = "stop"

    def of(self, model: str, data: str) -> list[Any]:
        """Return LiteLLM's chunks for one event.

        A delta with reasoning has nothing else: text and calls have deltas of their own.

        Args:
            model: the name of the model, for errors.
            data: text of a server-sent event: a chat completion chunk of OpenAI as JSON, an error, or ``[DONE]``.
        """
        if data == "[DONE]":
            return []
        event = json.loads(data)
        if "error" in event:
            raise _error(model, 500, event)
        if not event["choices"]:
            return [_chunk(is_finished=True, finish_reason=self._reason, usage=event["usage"])]
        (choice,) = event["choices"]
        self._reason = choice["finish_reason"] or self._reason
        delta = choice["delta"]
        if delta.get("reasoning_content"):
            return [_chunk(provider_specific_fields={"reasoning_content": delta["reasoning_content"]})]
        calls = delta.get("tool_calls", ())
        made = [_chunk(tool_use={"id": None, "type": "function", **call}, index=choice["index"]) for call in calls]
        return [*made, *([_chunk(text=delta["content"], index=choice["index"])] if delta.get("content") else [])]


def _chunk(**fields: Any) -> dict[str, Any]:
    """Return a chunk of LiteLLM: a dict in which every field is present."""
    return {
        "text": "",
        "tool_use": None,
        "is_finished": False,
        "finish_reason": "",
        "usage": None,
        "index": 0,
        **fields,
    }
