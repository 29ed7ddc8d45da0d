"""`ChatToolGrammar`, the chat model."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, cast

from pydantic import AliasChoices, BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from toolgrammar.core.conversation import Event, Finish
from toolgrammar.core.errors import ModelError
from toolgrammar.core.generation import GenerateParams
from toolgrammar.core.grammar import Grammar
from toolgrammar.core.models import LocalModel

from .. import _shared

try:
    from langchain_core.callbacks import AsyncCallbackManagerForLLMRun, CallbackManagerForLLMRun
    from langchain_core.language_models import BaseChatModel, LangSmithParams, LanguageModelInput
    from langchain_core.messages import AIMessage, BaseMessage
    from langchain_core.outputs import ChatGenerationChunk, ChatResult
    from langchain_core.runnables import Runnable, RunnableConfig
    from langchain_core.tools import BaseTool
    from langchain_core.utils.utils import LC_ID_PREFIX
except ImportError as error:
    raise _shared.missing("langchain-core", "langchain") from error

from . import messages as translation
from . import structured as structured
from .bound import BoundChat
from .events import NATIVE, Blocks
from .saved import Saved

if TYPE_CHECKING:
    from langchain_core.language_models import ModelProfile

__all__ = ["ChatToolGrammar"]

_IDENTITY = ("options", "reasoning_effort", *_shared.PROBABILITIES, *_shared.GENERATION)
_PER_CALL = frozenset(
    {
        *_shared.GENERATION,
        *_shared.PROBABILITIES,
        "model",
        "tools",
        "tool_choice",
        "response_format",
        "output_type",
        "allow_cut",
        "answer_class",
        "reasoning_effort",
    }
    # `stream` speaks to LangChain itself. The other two ask for what is always so.
    | {"stream", "strict", "stream_usage"}
)


def _answer(request: _shared.Request) -> translation.Answer:
    """Return the metadata of the answer."""
    model, params = request.model, request.params
    return translation.Answer(model.name, _shared.guarantee(model, params), _shared.vocabulary_of(model, params))


def _one_or_more(stop: Any) -> Any:
    """Return stop strings as a list: a single one is not a sequence of letters."""
    return [stop] if isinstance(stop, str) else list(stop) if isinstance(stop, tuple) else stop


class ChatToolGrammar(Saved, BaseChatModel, _shared.Settings):
    """A local model under a grammar, as a LangChain chat model.

    Args:
        model: the address of a model, as `load_model` takes it, or a loaded model, which several objects may share.
        options: keyword options for loading ``model``.
        **settings: the options of `GenerateParams` (``temperature``, ``max_tokens``, ``thinking``, ...; see
            `Settings`).
        reasoning_effort: how much reasoning, in the words of providers, instead of ``thinking``: ``"none"``,
            ``"minimal"`` (128 tokens), ``"low"`` (512), ``"medium"`` (2,048), or ``"high"``, ``"xhigh"`` and ``"max"``
            (no budget of its own).
        streaming: let ``invoke`` stream to callbacks.
        logprobs: put the log-probabilities of the tokens of a text answer into ``response_metadata["logprobs"]``, in
            OpenAI's form.
        top_logprobs: with this many of the likeliest tokens at each place.
        masses: put how much of the model's probability the grammar left in each value into
            ``response_metadata["masses"]`` (`GenerateParams`).
        api_key: for a model on a server: sent as a bearer token; ``"env:NAME"`` reads it from the environment.
        base_url: for a model on a server: where its API begins, unless the address says so.
        max_retries: for a model on a server: how often a request is sent again when the server is busy or fails.

    The last three are options for loading (``options`` may hold them as well); a model that is not on a server, or is
    given loaded, does not take them.

    Raises:
        ModelError: the model cannot be loaded, or a setting is not known, has a wrong value or is not for this model.

    Attributes:
        loaded: the loaded model, shared with copies of this object; LangChain's copies hand it on, users need not.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True)

    model: Any = Field(default="embedded", validation_alias=AliasChoices("model", "model_name"))
    options: dict[str, Any] = Field(default_factory=dict)
    reasoning_effort: str | None = None
    stop: Annotated[list[str] | None, BeforeValidator(_one_or_more)] = None
    streaming: bool = False
    logprobs: bool | None = None
    top_logprobs: int | None = None
    masses: bool | None = None

    loaded: Any = Field(default=None, exclude=True, repr=False)

    @model_validator(mode="before")
    @classmethod
    def _read_settings(cls, values: Any) -> Any:
        """Refuse unknown settings, which would change nothing, unseen; hand those of a server to the loader."""
        if not isinstance(values, Mapping):
            return values
        known = {*cls.model_fields, *_shared.CONNECTION, "model_name"}
        known |= {field.alias for field in cls.model_fields.values() if field.alias}
        _shared.require_known(values, known, "unknown setting:", {"options": _shared.LOADING})
        if "model" in values and "model_name" in values:
            raise ModelError("model and model_name are one setting", hint="leave out model_name")
        connection = {name: values[name] for name in _shared.CONNECTION if name in values}
        rest = {name: value for name, value in values.items() if name not in connection}
        return {**rest, "options": _shared.loading_options(values.get("options"), connection)} if connection else rest

    def model_post_init(self, context: Any, /) -> None:
        """Load the model; before LangChain's own validators, which ask for the profile."""
        super().model_post_init(context)
        # A wrong value is an error now, not at the first call.
        settings = {name: getattr(self, name) for name in _shared.GENERATION}
        _shared.generation_params({**settings, **self._probabilities({}), **self._thinking({})})
        if self.loaded is None or not self.loaded.is_for(self.model, self.options):
            self.loaded = _shared.LoadedModel(self.model, self.options)
        # The name, not the object: what is traced, cached or compared holds no live model.
        self.model, self.options = self.loaded.name, self.loaded.options
        if "profile" in type(self).model_fields and self.profile is None:
            self.profile = self._resolve_model_profile()  # LangChain asks by itself only since 1.3

    # -- what LangChain asks about the model -----------------------------------------------------------------------

    @property
    def _llm_type(self) -> str:
        return "toolgrammar"

    @property
    def _identifying_params(self) -> Mapping[str, Any]:
        """Return every setting that changes the output: it is part of the key under which answers are cached."""
        # LangChain writes the stop strings of the call, or None, over an entry named "stop".
        named = {"model": self.model, "own_stop": self.stop}
        return {**named, **{name: getattr(self, name) for name in _IDENTITY}}

    def _get_ls_params(self, stop: list[str] | None = None, **kwargs: Any) -> LangSmithParams:
        params = super()._get_ls_params(stop=stop or self.stop, **kwargs)
        params["ls_provider"] = translation.PROVIDER
        return params

    def _resolve_model_profile(self) -> ModelProfile | None:
        """Return what the model can do, in LangChain's terms."""
        model = self.loaded.model()
        thinks = _shared.thinks(model, self.tool_format)
        images, is_remote = model.capabilities.images, not isinstance(model, LocalModel)
        profile: dict[str, Any] = {
            "name": model.name,
            "max_input_tokens": model.context_window,
            "max_output_tokens": min(self.max_tokens or model.context_window, model.context_window),
            "text_inputs": True,
            "text_outputs": True,
            "image_inputs": images,
            # A server fetches an image; a local model needs its bytes, or a function that fetches.
            "image_url_inputs": images and (is_remote or getattr(model.backend, "fetch_image", None) is not None),
            "reasoning_output": thinks,
            "reasoning_effort_levels": [*_shared.EFFORTS] if thinks and not is_remote else [],
            "tool_calling": True,
            "tool_choice": True,
            "tool_call_streaming": True,
            # Agents then ask for a constrained final answer instead of forcing a call on every turn.
            "structured_output": True,
            "temperature": True,
            "open_weights": True,
            # A later system message stays where it is. A tool that one adds is of the grammar from there on, but the
            # prompt is written with all tools at its beginning: not LangChain's "the prefix stays unchanged".
            "mid_conversation_system_messages": True,
            "mid_conversation_tools": False,
        }
        return cast("ModelProfile", _known_to_langchain(profile))

    def _get_llm_string(self, stop: list[str] | None = None, **kwargs: Any) -> str:
        """Return the key under which answers are cached, by content: classes and grammars may look alike and differ."""
        with _shared.translated(translation.errors):
            key = {**kwargs, "response_format": translation.response_schema(kwargs.get("response_format"))}
            # What the output type means for the model: a grammar, or JSON of a schema.
            params = self.loaded.with_tools(GenerateParams(), (), None, None, kwargs.get("output_type"))
            if tools := kwargs.get("tools"):
                key["tools"] = translation.openai_tools(tools)
        # The validators of a class are no part of its schema, and classes of equal schemas may differ in them.
        if isinstance(answer_type := kwargs.get("response_format") or kwargs.get("output_type"), type):
            key["validators"] = f"{answer_type.__module__}.{answer_type.__qualname__}"
        if (grammar := kwargs.get("grammar", params.grammar)) is not None:
            key["grammar"] = hash(Grammar.from_any(grammar))
        if kwargs.get("output_type") is not None:
            key["output_type"] = None if params.json_mode is None else params.json_mode.schema
        model = kwargs.get("model")
        key["model"] = self.loaded.identity if model is None else model if isinstance(model, str) else model.identity
        return str(sorted({**self._get_invocation_params(stop=stop), **key}.items()))

    def get_token_ids(self, text: str) -> list[int]:
        """Return the token ids of a text, by the model's own tokenizer.

        Raises:
            ModelInvalidRequestError: the model is on a server, which does not show its tokens.
        """
        if self.custom_get_token_ids is not None:
            return self.custom_get_token_ids(text)
        with _shared.translated(translation.errors):
            ids: list[int] = self.loaded.model().encode(text)
        return ids

    def get_num_tokens(self, text: str) -> int:
        """Return how many tokens a text has; an estimate from its bytes for a model on a server."""
        if self.custom_get_token_ids is not None:
            return len(self.custom_get_token_ids(text))
        return _shared.count_text(self.loaded.model(), text)

    def get_num_tokens_from_messages(
        self, messages: Sequence[BaseMessage], tools: Sequence[Any] | None = None, **kwargs: Any
    ) -> int:
        """Return how many tokens the prompt of these messages and tools has, by the model's tokenizer and template.

        For a model on a server it is an estimate from the bytes.
        """
        with _shared.translated(translation.errors):
            all_tools = translation.tools_at_the_end(messages, translation.openai_tools(tools or ()))
            count: int = self.loaded.count_tokens(translation.to_messages(messages), all_tools, self.tools_in_prompt)
            return count

    def _combine_llm_outputs(self, llm_outputs: list[dict[str, Any] | None], /) -> dict[str, Any]:
        usages = [output["token_usage"] for output in llm_outputs if output]
        total = {key: sum(usage[key] for usage in usages) for key in (usages[0] if usages else ())}
        return {"token_usage": total, "model_name": self.model}

    # -- what users bind ---------------------------------------------------------------------------------------------

    def bind(self, **kwargs: Any) -> BoundChat:  # type: ignore[override]  # LangChain's is private, and adds types only
        """Bind settings of single calls: any generation option by name, and whatever else `bind_tools` takes.

        What is bound stays bound when tools are bound to the result, as agents do.
        """
        return BoundChat(bound=self, kwargs=kwargs, config={})

    def with_config(self, config: RunnableConfig | None = None, **kwargs: Any) -> BoundChat:
        """Bind LangChain's configuration (tags, callbacks, ...), which stays when tools are bound to the result."""
        return cast(BoundChat, self.bind().with_config(config, **kwargs))

    def bind_tools(
        self,
        tools: Sequence[dict[str, Any] | type | Callable[..., Any] | BaseTool],
        *,
        tool_choice: str | bool | dict[str, Any] | None = None,
        strict: bool | None = None,
        parallel_tool_calls: bool | None = None,
        response_format: Any = None,
        **kwargs: Any,
    ) -> Runnable[LanguageModelInput, AIMessage]:
        """Give the model tools. Nothing is compiled before the first call.

        Args:
            tools: tools in any form that LangChain or `ToolSet` knows; equal ones under one name count once.
            tool_choice: None, False or ``"auto"`` leave the choice to the model; ``"any"``, ``"required"`` or True
                demand a call; ``"none"`` forbids it; a name, or a provider's dict with one, demands that tool; OpenAI's
                ``{"type": "allowed_tools", ...}`` offers some of the tools only.
            strict: None or True: arguments always follow the schema.
            parallel_tool_calls: several calls in one turn are allowed.
            response_format: what a text answer looks like, where it is not free: a class, a JSON Schema, or
                ``{"type": "json_schema", ...}`` as providers take it. The model then calls a tool or answers so. Where
                a Pydantic class has validators, and one objects, the model is asked again, twice at most.
            **kwargs: more to bind: any generation option by name, ``output_type=`` instead of ``response_format`` (a
                class, any Python type, a JSON Schema, or a `Grammar` that the whole answer follows), or
                ``allow_cut=True`` (take structured text that the token budget closed by force).

        Raises:
            ModelInvalidRequestError: something is no tool, or the choice is not among them.
        """
        with _shared.translated(translation.errors):
            formatted = [translation.openai_tool(tool) for tool in tools]
            # A wrong choice is an error now, not at the first call, which reads it again.
            _shared.tool_choice(tool_choice, [*map(_shared.tool_name, formatted)])
        bound: dict[str, Any] = {"tools": formatted, "tool_choice": tool_choice}
        if strict is not None:
            bound["strict"] = strict
        if parallel_tool_calls is not None:
            bound["parallel_tool_calls"] = parallel_tool_calls
        if response_format is not None:
            bound["response_format"] = response_format
        return self.bind(**bound, **kwargs)

    def with_structured_output(
        self,
        schema: dict[str, Any] | type | None = None,
        *,
        method: str = "json_schema",
        include_raw: bool = False,
        strict: bool | None = None,
        tools: Sequence[Any] | None = None,
        allow_cut: bool = False,
        **kwargs: Any,
    ) -> Runnable[LanguageModelInput, dict[str, Any] | BaseModel]:
        """Return a chain whose answers match a schema.

        Where a Pydantic class has validators, and one objects to an answer, the model is asked again with its message,
        twice at most; an answer that has to pass validators is streamed in one piece.

        Args:
            schema: a Pydantic class (answers are instances), or a typed dict, dataclass, JSON Schema or tool dict
                (dicts). None, with ``"json_mode"`` alone, is any JSON object.
            method: ``"json_schema"`` and ``"json_mode"`` constrain the text of the answer, ``"function_calling"``
                forces a call of one tool. All three enforce the whole schema.
            include_raw: return a dict of ``raw``, ``parsed`` and ``parsing_error`` instead of raising.
            strict: None or True for all three; the schema is always enforced.
            tools: other tools that the model may call instead of answering (not with ``"function_calling"``); the
                answer is None then, and the calls are in the message (``include_raw``).
            allow_cut: take an answer whose text the token budget cut short; it is valid, but not whole.

        Raises:
            OutputParserException: when invoked: the token budget ran out inside the answer.
        """
        return structured.asking(
            self,
            schema,
            method=method,
            include_raw=include_raw,
            strict=strict,
            tools=tools,
            allow_cut=allow_cut,
            **kwargs,
        )

    # -- generation ----------------------------------------------------------------------------------------------------

    def _probabilities(self, kwargs: Mapping[str, Any]) -> dict[str, Any]:
        """Return the options for probabilities; settings of a call go before those of the object."""
        own = {name: getattr(self, name) for name in _shared.PROBABILITIES}
        given = {name: kwargs[name] for name in own if kwargs.get(name) is not None}
        return _shared.probability_params({**own, **given})

    def _thinking(self, kwargs: Mapping[str, Any]) -> dict[str, Any]:
        """Return the option ``thinking`` of a call: from the settings of the call, else from those of the object; empty
        if neither has ``thinking`` or ``reasoning_effort``.

        Raises:
            ModelError: the same settings have both, or the effort is not known.
        """
        of_object = {"thinking": self.thinking, "reasoning_effort": self.reasoning_effort}
        for settings in (kwargs, of_object):
            thinking, effort = settings.get("thinking"), settings.get("reasoning_effort")
            if thinking is not None and effort is not None:
                raise ModelError("thinking and reasoning_effort are both given", hint="give one of them")
            if thinking is not None:
                return {"thinking": thinking}
            if effort is not None:
                if not isinstance(effort, str) or effort not in _shared.EFFORTS:
                    raise ModelError(f"reasoning_effort is {effort!r}", hint=f"one of {[*_shared.EFFORTS]}")
                return {"thinking": _shared.EFFORTS[effort]}
        return {}

    def _request(self, messages: Sequence[BaseMessage], stop: Any, kwargs: Mapping[str, Any]) -> _shared.Request:
        """Return one call, ready for the model."""
        _shared.require_known(kwargs, _PER_CALL)
        if kwargs.get("stream_usage") is False:
            raise ModelError("stream_usage is False", hint="usage is in the last chunk of every stream: leave it out")
        settings = {name: getattr(self, name) for name in _shared.GENERATION}
        settings |= {name: kwargs[name] for name in _shared.GENERATION if name in kwargs}
        settings |= {**self._probabilities(kwargs), **self._thinking(kwargs)}
        settings["stop"] = self.stop if stop is None else stop
        params = _shared.generation_params(settings)
        tools = translation.tools_at_the_end(messages, translation.openai_tools(kwargs.get("tools") or ()))
        response_format, output_type = kwargs.get("response_format"), kwargs.get("output_type")
        schema = translation.response_schema(response_format)
        params = self.loaded.with_tools(params, tools, kwargs.get("tool_choice"), schema, output_type)
        allow_cut = bool(kwargs.get("allow_cut"))
        validators = _shared.validators_of(response_format or output_type, must_pass=not allow_cut)
        if (answer_class := kwargs.get("answer_class")) is not None:  # of the arguments of the demanded call
            validators = _shared.validators_of(answer_class, params.tool_choice, must_pass=False)
        model, conversation = self.loaded.model(kwargs.get("model")), translation.to_messages(messages)
        return _shared.Request(model, conversation, params, validators, allow_cut)

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        """Return a whole answer."""
        with _shared.translated(translation.errors):
            request = self._request(messages, stop, kwargs)
            generation = request.generate()
            request.check(generation)
            return _answer(request).result(generation)

    async def _agenerate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        """Do what `_generate` does without blocking the event loop."""
        with _shared.translated(translation.errors):
            request = self._request(messages, stop, kwargs)
            generation = await request.agenerate()
            request.check(generation)
            return _answer(request).result(generation)

    def _stream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> Iterator[ChatGenerationChunk]:
        """Yield an answer in chunks."""
        with _shared.translated(translation.errors):
            request = self._request(messages, stop, kwargs)
            chunks = translation.Chunks(_answer(request), blocks=self.output_version == "v1")
            with request.stream() as events:
                for event in events:
                    for chunk in _checked(request, chunks, event):
                        if run_manager:
                            run_manager.on_llm_new_token(chunk.text, chunk=chunk)
                        yield chunk

    async def _astream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> AsyncIterator[ChatGenerationChunk]:
        """Do what `_stream` does without blocking the event loop."""
        with _shared.translated(translation.errors):
            request = self._request(messages, stop, kwargs)
            chunks = translation.Chunks(_answer(request), blocks=self.output_version == "v1")
            async with request.astream() as events:
                async for event in events:
                    for chunk in _checked(request, chunks, event):
                        if run_manager:
                            await run_manager.on_llm_new_token(chunk.text, chunk=chunk)
                        yield chunk

    if NATIVE:

        def _stream_chat_model_events(
            self,
            messages: list[BaseMessage],
            stop: list[str] | None = None,
            run_manager: CallbackManagerForLLMRun | None = None,
            **kwargs: Any,
        ) -> Iterator[Any]:
            """Yield an answer as LangChain's content-block events."""
            with _shared.translated(translation.errors):
                request = self._request(messages, stop, kwargs)
                chunks, blocks = translation.Chunks(_answer(request)), _blocks(request, run_manager)
                with request.stream() as events:
                    for event in events:
                        new_chunks = _checked(request, chunks, event)
                        if run_manager:
                            for chunk in new_chunks:
                                run_manager.on_llm_new_token(chunk.text, chunk=chunk)
                        yield from blocks.of(event, new_chunks)

        async def _astream_chat_model_events(
            self,
            messages: list[BaseMessage],
            stop: list[str] | None = None,
            run_manager: AsyncCallbackManagerForLLMRun | None = None,
            **kwargs: Any,
        ) -> AsyncIterator[Any]:
            """Do what `_stream_chat_model_events` does without blocking the event loop."""
            with _shared.translated(translation.errors):
                request = self._request(messages, stop, kwargs)
                chunks, blocks = translation.Chunks(_answer(request)), _blocks(request, run_manager)
                async with request.astream() as events:
                    async for event in events:
                        new_chunks = _checked(request, chunks, event)
                        if run_manager:
                            for chunk in new_chunks:
                                await run_manager.on_llm_new_token(chunk.text, chunk=chunk)
                        for one in blocks.of(event, new_chunks):
                            yield one


def _known_to_langchain(profile: dict[str, Any]) -> dict[str, Any]:
    """Return the keys of a profile that the installed LangChain has; it warns of others."""
    from langchain_core import language_models

    kind = getattr(language_models, "ModelProfile", None)
    known = profile if kind is None else kind.__annotations__
    return {name: value for name, value in profile.items() if name in known}


def _blocks(request: _shared.Request, run_manager: Any) -> Blocks:
    """Return the conversion of an answer into content-block events, under LangChain's id of the run."""
    return Blocks(_answer(request), f"{LC_ID_PREFIX}-{run_manager.run_id}" if run_manager else None)


def _checked(request: _shared.Request, chunks: translation.Chunks, event: Event) -> list[ChatGenerationChunk]:
    """Return the chunks of an event; the last one of an answer only if that passes the check of the request."""
    if isinstance(event, Finish):
        request.check(event)
    return chunks.of(event)
