"""`ToolGrammarConfig`, a configuration, and `ToolGrammarClient`, which answers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import Any

from toolgrammar.core.conversation import Generation, ReasoningDelta, TextDelta
from toolgrammar.core.generation import GenerateParams
from toolgrammar.core.models import Model

from .. import _shared
from .messages import NAME, response_of, to_messages, to_tool

try:
    from ag2.config import LLMClient, ModelConfig
    from ag2.events import BaseEvent, ModelMessageChunk, ModelReasoning, ModelResponse
except ImportError as error:
    raise _shared.missing("ag2", "ag2") from error


class ToolGrammarConfig(ModelConfig):  # type: ignore[misc]
    """A local model under a grammar, as the ``config`` of an agent of AG2.

    Args:
        model: the address of a model, as `load_model` takes it, or a loaded model, which several objects may share.
        options: keyword options for loading ``model``.
        api_key: for a model on a server: sent as a bearer token; ``"env:NAME"`` reads it from the environment.
        base_url: for a model on a server: where its API begins, unless the address says so.
        max_retries: for a model on a server: how often a request is sent again when the server is busy or fails.
        streaming: True if text is sent to the stream of the agent as it is written (`ModelMessageChunk`).
        tool_choice: "auto", "required", "none", or the name of a tool.
        settings: options of `GenerateParams`.

    Raises:
        ModelError: the model cannot be loaded, or a setting is not known or has a wrong value.
    """

    def __init__(
        self,
        model: str | Model = "embedded",
        *,
        options: Mapping[str, Any] | None = None,
        api_key: Any = None,
        base_url: str | None = None,
        max_retries: int | None = None,
        streaming: bool = False,
        tool_choice: Any = None,
        **settings: Any,
    ) -> None:
        connection = {"api_key": api_key, "base_url": base_url, "max_retries": max_retries}
        self._arguments: dict[str, Any] = {"model": model, "options": options, **connection}
        self._params = _shared.generation_params(settings)  # a wrong setting is an error now, not at the first request
        self._settings = {"streaming": streaming, "tool_choice": tool_choice, **settings}
        self._loaded = _shared.LoadedModel(model, options, **connection)

    @property
    def model(self) -> str:
        """The address of the model, or the loaded model's own name."""
        return self._loaded.name

    @property
    def provider(self) -> Any:
        """Not implemented: AG2's list of providers is closed, and AG2 takes this as unknown."""
        raise NotImplementedError("AG2 has no name for local models in its list of providers")

    def copy(self, **overrides: Any) -> ToolGrammarConfig:
        """Return this configuration with other arguments; the loaded model is shared unless one of its own differs."""
        made = ToolGrammarConfig(**{**self._arguments, **self._settings, **overrides})
        if made._arguments == self._arguments:
            made._loaded = self._loaded
        return made

    def create(self) -> ToolGrammarClient:
        """Return a client; clients of one configuration share its model."""
        return ToolGrammarClient(
            self._loaded, self._params, self._settings["tool_choice"], streaming=self._settings["streaming"]
        )

    def create_files_client(self) -> Any:
        """Not implemented: no files are kept for a model."""
        raise NotImplementedError("ToolGrammarConfig has no files; give their content in the conversation")


class ToolGrammarClient(LLMClient):  # type: ignore[misc]
    """Answers the requests of an agent; made by `ToolGrammarConfig.create`."""

    def __init__(
        self, loaded: _shared.LoadedModel, params: GenerateParams, tool_choice: Any, *, streaming: bool
    ) -> None:
        self._loaded = loaded
        self._params = params
        self._tool_choice = tool_choice
        self._streaming = streaming

    async def __call__(
        self,
        messages: Sequence[BaseEvent],
        context: Any,
        *,
        tools: Iterable[Any],
        response_schema: Any,
        serializer: Any,
    ) -> ModelResponse:
        """Return the answer to a conversation; its reasoning and text are sent to the context as well.

        Raises:
            ToolGrammarError: the request cannot be done, or failed.
        """
        prompt: Iterable[str] = context.prompt
        schema = None
        if response_schema is not None:
            prompt = chain(prompt, filter(None, (response_schema.system_prompt,)))
            schema = response_schema.json_schema and _shared.closed(response_schema.json_schema)
        params = self._loaded.with_tools(self._params, [*map(to_tool, tools)], self._tool_choice, schema)
        conversation = to_messages(prompt, messages, serializer)
        request = _shared.Request(self._loaded.model(), conversation, params)
        generation = await (self._streamed(request, context) if self._streaming else request.agenerate())
        request.check(generation)
        response = response_of(generation, self._loaded.name, request.details(generation))
        if not self._streaming and generation.message.reasoning:
            await context.send(ModelReasoning(generation.message.reasoning))
        if response.message is not None:
            await context.send(response.message)
        return response

    async def _streamed(self, request: _shared.Request, context: Any) -> Generation:
        """Return an answer; send its pieces as they are written."""
        async with request.astream() as stream:
            async for event in stream:
                if isinstance(event, TextDelta):
                    await context.send(ModelMessageChunk(event.text))
                elif isinstance(event, ReasoningDelta):
                    await context.send(ModelReasoning(event.text))
            return await stream.result()

    def __repr__(self) -> str:
        return f"<{NAME}: {self._loaded.name}>"
