"""A LangChain chat model whose tool calls and structured answers are valid by construction.

::

    from toolgrammar.adapters.langchain import ChatToolGrammar

    model = ChatToolGrammar(model="hf:Qwen/Qwen2.5-1.5B-Instruct")
    model.bind_tools([get_weather], tool_choice="any").invoke("Is it cold in Oslo?").tool_calls

Grammars are compiled from the tools' own schemas, not from LangChain's rendering of them, which loses recursion and
maps. A call that the token budget cut short is never among ``tool_calls``: it is in ``invalid_tool_calls``, with the
reason, and ``response_metadata["cut"]`` says where.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from operator import itemgetter
from typing import Any, cast

from pydantic import BaseModel, ConfigDict, Field, PrivateAttr
from typing_extensions import is_typeddict

from ..core.errors import (
    BudgetError,
    CancelledError,
    ContextOverflowError,
    GrammarError,
    LimitError,
    ModelError,
    SchemaError,
    ToolGrammarError,
    UnknownToolError,
)
from ..core.events import (
    ArgumentsDelta,
    CallEnd,
    CallStart,
    Event,
    Finish,
    Generation,
    ReasoningDelta,
    TextDelta,
    Usage,
)
from ..core.messages import Message, ToolCall
from ..core.models import Model
from ..core.params import GenerateParams, JsonMode
from . import _shared

try:
    from langchain_core import exceptions
    from langchain_core.callbacks import AsyncCallbackManagerForLLMRun, CallbackManagerForLLMRun
    from langchain_core.language_models import BaseChatModel, LangSmithParams, LanguageModelInput, ModelProfile
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
    from langchain_core.output_parsers import JsonOutputParser, PydanticOutputParser
    from langchain_core.output_parsers.openai_tools import JsonOutputKeyToolsParser, PydanticToolsParser
    from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
    from langchain_core.runnables import Runnable, RunnableGenerator, RunnableMap, RunnablePassthrough
    from langchain_core.tools import BaseTool, Tool
    from langchain_core.tools.base import create_schema_from_function
    from langchain_core.utils.function_calling import convert_to_openai_tool
    from langchain_core.utils.pydantic import is_basemodel_subclass
except ImportError as error:
    raise _shared.missing("langchain-core", "langchain") from error

__all__ = ["ChatToolGrammar"]

_SAMPLING = ("temperature", "max_tokens", "top_p", "top_k", "min_p", "seed", "timeout", "tool_format", "on_budget")
_IDENTITY = ("options", "parallel_tool_calls", *_SAMPLING)
_PER_CALL = frozenset(
    {*_SAMPLING, "model", "tools", "tool_choice", "parallel_tool_calls", "response_format", "grammar", "jump_forward"}
    # Accepted and without effect: enforcement is always strict, and `stream` speaks to LangChain itself.
    | {"strict", "stream"}
)


class ChatToolGrammar(BaseChatModel):
    """A local model under a grammar, as a LangChain chat model.

    Args:
        model: the URI of a model (``"embedded"``, ``"hf:NAME-OR-PATH"``), or a loaded ``toolgrammar`` model, which
            several objects may share.
        options: keyword options for loading ``model``.
        temperature: 0 is greedy.
        max_tokens: token budget of an answer.
        top_p: keep the smallest set of tokens with this much probability.
        top_k: keep this many tokens.
        min_p: drop tokens below this share of the most likely one's probability.
        seed: makes sampling reproducible.
        stop: strings that end a text answer.
        timeout: seconds for one answer.
        streaming: let ``invoke`` stream to callbacks.
        tool_format: wire format of tool calls, if not the model's own.
        on_budget: what to do near the budget: ``"close"`` the answer validly, or raise (``"error"``).
        parallel_tool_calls: several calls in one turn are allowed, where a binding does not say.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True)

    model: Any = "embedded"
    options: dict[str, Any] = Field(default_factory=dict)
    temperature: float | None = None
    max_tokens: int | None = None
    top_p: float | None = None
    top_k: int | None = None
    min_p: float | None = None
    seed: int | None = None
    stop: list[str] | None = None
    timeout: float | None = None
    streaming: bool = False
    tool_format: str | None = None
    on_budget: str | None = None
    parallel_tool_calls: bool | None = None

    _engine: _shared.Engine = PrivateAttr()

    def model_post_init(self, context: Any, /) -> None:
        """Load the model; before LangChain's own validators, which ask for the profile."""
        super().model_post_init(context)
        self._engine = _shared.Engine(self.model, self.options)
        # The name, not the object: what is traced, cached or compared holds no live model.
        self.model = self._engine.name

    # -- what LangChain asks about the model -----------------------------------------------------------------------

    @property
    def _llm_type(self) -> str:
        return "toolgrammar"

    @property
    def _identifying_params(self) -> Mapping[str, Any]:
        """Everything that changes the output: it is part of the key under which answers are cached."""
        # LangChain writes the stop strings of the call, or None, over an entry named "stop".
        named = {"model": self.model, "own_stop": self.stop}
        return {**named, **{name: getattr(self, name) for name in _IDENTITY}}

    def _get_ls_params(self, stop: list[str] | None = None, **kwargs: Any) -> LangSmithParams:
        params = super()._get_ls_params(stop=stop or self.stop, **kwargs)
        params["ls_provider"] = "toolgrammar"
        return params

    def _resolve_model_profile(self) -> ModelProfile | None:
        # structured_output: agents then ask for a constrained final answer instead of forcing a call on every turn.
        return ModelProfile(
            max_input_tokens=self._engine.model().context_window,
            text_inputs=True,
            text_outputs=True,
            image_inputs=False,
            tool_calling=True,
            tool_choice=True,
            tool_call_streaming=True,
            structured_output=True,
            temperature=True,
            open_weights=True,
        )

    def get_token_ids(self, text: str) -> list[int]:
        """Token ids of a text, by the model's own tokenizer."""
        if self.custom_get_token_ids is not None:
            return self.custom_get_token_ids(text)
        return self._engine.model().backend.encode(text)

    def get_num_tokens_from_messages(
        self, messages: Sequence[BaseMessage], tools: Sequence[Any] | None = None, **kwargs: Any
    ) -> int:
        """How many tokens the prompt of these messages and tools has, by the model's own tokenizer and template."""
        with _shared.translated(_errors):
            tool_set = self._engine.tools([openai_tool(tool) for tool in tools or ()])
            return _shared.count_tokens(self._engine.model(), to_messages(messages), tool_set)

    def _combine_llm_outputs(self, llm_outputs: list[dict[str, Any] | None], /) -> dict[str, Any]:
        usages = [output["token_usage"] for output in llm_outputs if output]
        total = {key: sum(usage[key] for usage in usages) for key in (usages[0] if usages else ())}
        return {"token_usage": total, "model_name": self.model}

    # -- what users bind ---------------------------------------------------------------------------------------------

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
                demand a call; ``"none"`` forbids it; a name, or a dict with one, demands that tool.
            strict: accepted for compatibility; arguments always follow the schema.
            parallel_tool_calls: several calls in one turn are allowed.
            response_format: what a text answer looks like, where it is not free (see `_generate`).

        Raises:
            ModelInvalidRequestError: something is no tool, or the choice is not among them.
        """
        with _shared.translated(_errors):
            formatted = [openai_tool(tool) for tool in tools]
            bound: dict[str, Any] = {
                "tools": formatted,
                "tool_choice": _choice(tool_choice, [*map(_shared.tool_name, formatted)]),
            }
        if parallel_tool_calls is not None:
            bound["parallel_tool_calls"] = parallel_tool_calls
        if response_format is not None:
            bound["response_format"] = response_format
        return self.bind(**bound, **kwargs)

    def with_structured_output(
        self,
        schema: dict[str, Any] | type,
        *,
        method: str = "json_schema",
        include_raw: bool = False,
        strict: bool | None = None,
        tools: Sequence[Any] | None = None,
        allow_cut: bool = False,
        **kwargs: Any,
    ) -> Runnable[LanguageModelInput, dict[str, Any] | BaseModel]:
        """Answers that match a schema.

        Args:
            schema: a Pydantic class (answers are instances), or a typed dict, JSON Schema or tool dict (dicts).
            method: ``"json_schema"`` and ``"json_mode"`` constrain the text of the answer, ``"function_calling"``
                forces a call of one tool. All three enforce the whole schema.
            include_raw: return a dict of ``raw``, ``parsed`` and ``parsing_error`` instead of raising.
            strict: accepted for compatibility; the schema is always enforced.
            tools: other tools that the model may call instead of answering (not with ``"function_calling"``).
            allow_cut: take an answer whose text the token budget cut short; it is valid, but not whole.

        Raises:
            OutputParserException: when invoked: the token budget ran out inside the answer.
        """
        known = {"kwargs": {"method": method}, "schema": schema}
        is_class = isinstance(schema, type) and is_basemodel_subclass(schema)
        parser: Runnable[Any, Any]
        if method == "function_calling":
            with _shared.translated(_errors):
                name = _shared.tool_name(openai_tool(schema))
            kwargs = {"tool_choice": name, "parallel_tool_calls": False, **kwargs}
            bound = self.bind_tools([schema], ls_structured_output_format=known, **kwargs)
            if is_class:
                parser = PydanticToolsParser(tools=[cast("type[BaseModel]", schema)], first_tool_only=True)
            else:
                parser = JsonOutputKeyToolsParser(key_name=name, first_tool_only=True)
        elif method in ("json_schema", "json_mode"):
            bound = self.bind_tools(tools or (), response_format=schema, ls_structured_output_format=known, **kwargs)
            parser = PydanticOutputParser(pydantic_object=cast(Any, schema)) if is_class else JsonOutputParser()
        else:
            raise ValueError(f"unknown method {method!r}: json_schema, json_mode or function_calling")
        if not allow_cut:
            parser = RunnableGenerator(_refuse_cut, _arefuse_cut) | parser
        if not include_raw:
            return bound | parser
        parsed = RunnablePassthrough.assign(parsed=itemgetter("raw") | parser, parsing_error=lambda _: None)
        failed = RunnablePassthrough.assign(parsed=lambda _: None)
        return RunnableMap(raw=bound) | parsed.with_fallbacks([failed], exception_key="parsing_error")

    # -- generation ----------------------------------------------------------------------------------------------------

    def _request(self, stop: list[str] | None, kwargs: Mapping[str, Any]) -> tuple[Model, GenerateParams]:
        """The model and the parameters of one call."""
        if unknown := sorted(set(kwargs) - _PER_CALL):
            raise ModelError(f"unknown arguments {unknown}", hint=f"known are {sorted(_PER_CALL)}")
        given = {name: kwargs.get(name, getattr(self, name)) for name in _SAMPLING}
        given |= {name: kwargs[name] for name in ("grammar", "jump_forward") if name in kwargs}
        tools = self._engine.tools(kwargs.get("tools") or ())
        if tools is not None:
            parallel = kwargs.get("parallel_tool_calls", self.parallel_tool_calls)
            given |= {"tools": tools, "parallel_tool_calls": parallel}
            given["tool_choice"] = _choice(kwargs.get("tool_choice"), tools.names)
        elif _choice(kwargs.get("tool_choice"), ()) == "required":
            raise ModelError("a tool call is required, but there are no tools", hint="bind at least one tool")
        schema = _response_schema(kwargs.get("response_format"))
        if schema is not None:
            given |= {"response_schema": schema} if tools else {"json_mode": JsonMode(schema=schema)}
        params = GenerateParams(**{name: value for name, value in given.items() if value is not None})
        return self._engine.model(kwargs.get("model")), replace(params, stop=tuple(stop or self.stop or ()))

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        with _shared.translated(_errors):
            model, params = self._request(stop, kwargs)
            return _result(model.generate(to_messages(messages), params), model.name)

    async def _agenerate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        with _shared.translated(_errors):
            model, params = self._request(stop, kwargs)
            return _result(await model.agenerate(to_messages(messages), params), model.name)

    def _stream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> Iterator[ChatGenerationChunk]:
        with _shared.translated(_errors):
            model, params = self._request(stop, kwargs)
            chunks = _Chunks(model.name)
            for event in model.stream(to_messages(messages), params):
                for chunk in chunks.of(event):
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
        with _shared.translated(_errors):
            model, params = self._request(stop, kwargs)
            chunks = _Chunks(model.name)
            async for event in model.astream(to_messages(messages), params):
                for chunk in chunks.of(event):
                    if run_manager:
                        await run_manager.on_llm_new_token(chunk.text, chunk=chunk)
                    yield chunk


# -- translation: requests -----------------------------------------------------------------------------------------


def openai_tool(tool: Any) -> dict[str, Any]:
    """A tool in any form that LangChain or `ToolSet` knows, as an OpenAI-style dict with its whole schema."""
    if isinstance(tool, Tool) and not tool.args_schema:
        return convert_to_openai_tool(tool)  # one string, by LangChain's own convention
    if is_typeddict(tool):
        return convert_to_openai_tool(tool)  # Annotated[int, default, "description"] is theirs
    if callable(tool) and not isinstance(tool, (type, BaseTool)) and hasattr(tool, "__name__"):
        model = create_schema_from_function(
            tool.__name__, tool, parse_docstring=True, error_on_invalid_docstring=False, include_injected=False
        )
        tool = {"name": tool.__name__, "description": model.__doc__ or "", "parameters": model}
    return _shared.openai_tool(tool)


def _choice(choice: Any, names: Sequence[str]) -> str:
    """LangChain's and the providers' ways to say which tool must be called, as ours."""
    if isinstance(choice, Mapping):
        inner = choice.get("function", choice)
        choice = inner.get("name") or choice.get("type")
    if choice in (None, False, "auto"):
        return "auto"
    if choice in (True, "any", "required"):
        return "required"
    if choice == "none" or choice in names:
        return str(choice)
    raise UnknownToolError(f"the tool choice {choice!r} is none of the tools", hint=f"the tools are {list(names)}")


def _response_schema(response_format: Any) -> Any:
    """The schema of a text answer, or None where it is free."""
    if response_format is None or response_format == {"type": "text"}:
        return None
    if isinstance(response_format, Mapping):
        if response_format.get("type") == "json_object":
            return {"type": "object"}
        if response_format.get("type") == "json_schema":
            return _shared.closed(response_format["json_schema"]["schema"])
        if not any(key in response_format for key in ("name", "function", "toolSpec")):
            return _shared.closed(response_format)
    if isinstance(response_format, type) and not is_typeddict(response_format):
        return _shared.closed(response_format)
    return _shared.closed(openai_tool(response_format)["function"]["parameters"])


def to_messages(messages: Sequence[BaseMessage]) -> list[Message]:
    """LangChain's messages as ours.

    Raises:
        ModelError: a message that is none of a conversation (a removal), or content that no model here reads.
    """
    return [_to_message(message) for message in messages]


def _to_message(message: BaseMessage) -> Message:
    content = _shared.parts_of(message.content)
    if isinstance(message, HumanMessage):
        return Message("user", content, name=message.name)
    if isinstance(message, SystemMessage):
        return Message("system", content)
    if isinstance(message, AIMessage):
        calls = [_shared.past_call(call["id"], call["name"], call["args"]) for call in message.tool_calls]
        calls += [_shared.past_call(c["id"], c["name"] or "", c["args"]) for c in message.invalid_tool_calls]
        reasoning = message.additional_kwargs.get("reasoning_content")
        return Message("assistant", content, reasoning=reasoning, tool_calls=tuple(calls), name=message.name)
    if isinstance(message, ToolMessage):
        failed = message.status == "error"
        return Message("tool", content, tool_call_id=message.tool_call_id, name=message.name, is_error=failed)
    if isinstance(message, FunctionMessage):
        return Message("tool", content, name=message.name)
    if isinstance(message, ChatMessage):
        return Message(_shared.role_of(message.role), content, name=message.name)
    raise ModelError(f"a message of type {message.type!r} is not part of a conversation", hint="leave it out")


# -- translation: results ------------------------------------------------------------------------------------------


def _result(generation: Generation, model_name: str) -> ChatResult:
    message = generation.message
    usage = _usage(generation.usage)
    answer = AIMessage(
        content=message.text,
        additional_kwargs={"reasoning_content": message.reasoning} if message.reasoning else {},
        tool_calls=[_valid(call) for call in message.tool_calls if _shared.problem(call) is None],
        invalid_tool_calls=[
            invalid_tool_call(name=call.name, args=_shared.arguments_text(call), id=call.id, error=reason)
            for call in message.tool_calls
            if (reason := _shared.problem(call))
        ],
        usage_metadata=usage,
        response_metadata=_metadata(
            generation.finish_reason, model_name, generation.usage, _shared.cut_places(message, generation.cut)
        ),
    )
    counts = {"prompt_tokens": usage["input_tokens"], "completion_tokens": usage["output_tokens"]}
    output = {"token_usage": {**counts, "total_tokens": usage["total_tokens"]}, "model_name": model_name}
    return ChatResult(generations=[ChatGeneration(message=answer)], llm_output=output)


def _valid(call: ToolCall) -> Any:
    return tool_call(name=call.name, args=dict(call.arguments), id=call.id)


def _usage(usage: Usage) -> UsageMetadata:
    return UsageMetadata(
        input_tokens=usage.prompt_tokens,
        output_tokens=usage.completion_tokens,
        total_tokens=usage.prompt_tokens + usage.completion_tokens,
        input_token_details=InputTokenDetails(cache_read=usage.cached_tokens),
        output_token_details=OutputTokenDetails(reasoning=usage.reasoning_tokens),
    )


def _metadata(reason: str, model_name: str, usage: Usage, cut: list[str]) -> dict[str, Any]:
    metadata = {
        "finish_reason": reason,
        "model_name": model_name,
        "model_provider": "toolgrammar",
        "forced_share": _shared.forced_share(usage),
    }
    return {**metadata, "cut": cut} if cut else metadata


class _Chunks:
    """Turns events into chunks: text or one piece of a call in each, and all that must come once in the last."""

    def __init__(self, model_name: str) -> None:
        self._model_name = model_name
        self._cut: list[str] = []

    def of(self, event: Event) -> list[ChatGenerationChunk]:
        """The chunks of one event."""
        if isinstance(event, TextDelta):
            return _chunk(content=event.text)
        if isinstance(event, ReasoningDelta):
            return _chunk(content="", additional_kwargs={"reasoning_content": event.text})
        if isinstance(event, CallStart):
            return _call_chunk(name=event.name, args="", id=event.id, index=event.index)
        if isinstance(event, ArgumentsDelta):
            return _call_chunk(name=None, args=event.text, id=None, index=event.index)
        if isinstance(event, CallEnd):
            self._cut += [event.call.name + pointer for pointer in event.call.cut]
            # LangChain makes a valid call of any streamed arguments that its lenient parser can mend, and a cut call
            # is valid JSON. A closing brace too many is the one thing that parser gives up on.
            bad = _shared.problem(event.call) is not None
            return _call_chunk(name=None, args="}", id=None, index=event.index) if bad else []
        if isinstance(event, Finish):
            metadata = _metadata(event.reason, self._model_name, event.usage, [*event.cut, *self._cut])
            usage = _usage(event.usage)
            return _chunk(content="", response_metadata=metadata, usage_metadata=usage, chunk_position="last")
        return []


def _chunk(**fields: Any) -> list[ChatGenerationChunk]:
    return [ChatGenerationChunk(message=AIMessageChunk(**fields))]


def _call_chunk(**fields: Any) -> list[ChatGenerationChunk]:
    return _chunk(content="", tool_call_chunks=[tool_call_chunk(**fields)])


def _check_whole(message: BaseMessage) -> BaseMessage:
    """Structured output that was closed by force is not what was asked for, and nothing after us would notice."""
    if cut := message.response_metadata.get("cut"):
        raise exceptions.OutputParserException(
            f"the token budget ran out inside the answer, at {', '.join(cut)}: raise max_tokens",
            llm_output=message.text,
        )
    return message


def _refuse_cut(messages: Iterator[BaseMessage]) -> Iterator[BaseMessage]:
    for message in messages:
        yield _check_whole(message)


async def _arefuse_cut(messages: AsyncIterator[BaseMessage]) -> AsyncIterator[BaseMessage]:
    async for message in messages:
        yield _check_whole(message)


def _errors() -> list[tuple[type[ToolGrammarError], type[Exception]]]:
    """Which of our errors LangChain's agents and middleware know by another name."""
    refused = (SchemaError, GrammarError, LimitError, BudgetError, UnknownToolError, ModelError)
    return [
        (ContextOverflowError, exceptions.ContextOverflowError),  # agents summarise and try again
        (CancelledError, exceptions.ModelTimeoutError),  # nothing but the timeout cancels a call from inside
        *((ours, exceptions.ModelInvalidRequestError) for ours in refused),
    ]
