"""A CrewAI LLM whose tool calls and structured answers are valid by construction.

::

    from toolgrammar.adapters.crewai import ToolGrammarLLM

    llm = ToolGrammarLLM(model="hf:Qwen/Qwen2.5-1.5B-Instruct")
    agent = Agent(role="Clerk", goal="Answer", backstory="...", tools=[find_order], llm=llm)

Agents take CrewAI's native tool path: the model is offered the tools and returns calls, no text is searched for
"Action:". Grammars are compiled from the agent's own tools where they can be reached, since the schemas that CrewAI
passes on have lost recursion, maps and optional arguments. CrewAI runs every call whose arguments parse, so a call that
the token budget cut short is handed over in a form that does not parse: CrewAI then tells the model what went wrong.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

from pydantic import BaseModel, PrivateAttr

from ..core.errors import ContextOverflowError
from ..core.events import ArgumentsDelta, CallStart, Event, Generation, ReasoningDelta, TextDelta, Usage
from ..core.messages import Message, ToolCall
from ..core.models import Model
from ..core.params import GenerateParams, JsonMode
from . import _shared

try:
    from crewai.events.types.llm_events import LLMCallType
    from crewai.hooks.dispatch import HookAborted
    from crewai.llms.base_llm import BaseLLM, LLMCallBlockedError, llm_call_context
    from crewai.utilities.agent_utils import convert_tools_to_openai_schema
    from crewai.utilities.exceptions.context_window_exceeding_exception import LLMContextLengthExceededError
except ImportError as error:
    raise _shared.missing("crewai", "crewai") from error

__all__ = ["ToolGrammarLLM"]

# CrewAI's own providers leave this much of the window for the answer.
_USABLE = 0.85


class ToolGrammarLLM(BaseLLM):
    """A local model under a grammar, as a CrewAI LLM: for an agent's ``llm``, ``function_calling_llm`` and the others.

    Args:
        model: the URI of a model (``"embedded"``, ``"hf:NAME-OR-PATH"``), or a loaded ``toolgrammar`` model, which
            several objects may share (token usage is counted for each object).
        options: keyword options for loading ``model``.
        tool_choice: CrewAI has no way to demand a call, so it is said here: ``"auto"``, ``"required"`` (in every turn
            that has tools) or ``"required_first"`` (until the first tool result is in the conversation).
        parallel_tool_calls: several calls in one turn are allowed.
        **fields: CrewAI's (``temperature``, ``top_p``, ``max_tokens``, ``seed``, ``stop``, ``stream``) and ours
            (``top_k``, ``min_p``, ``timeout``, ``tool_format``, ``on_budget``; see `GenerateParams`).
    """

    llm_type: str = "toolgrammar"
    tool_choice: str = "auto"
    parallel_tool_calls: bool = True
    top_k: int | None = None
    min_p: float | None = None
    timeout: float | None = None
    tool_format: str | None = None
    on_budget: str | None = None

    _engine: _shared.Engine = PrivateAttr()

    def __init__(self, model: str | Model = "embedded", *, options: Mapping[str, Any] | None = None, **fields: Any):
        engine = _shared.Engine(model, options or {})
        # CrewAI takes a provider it does not know for OpenAI, and would send it the text of some tasks.
        fields["provider"] = "toolgrammar"
        super().__init__(model=engine.name, **fields)
        self._engine = engine

    # -- what CrewAI asks about the model ------------------------------------------------------------------------------

    def supports_function_calling(self) -> bool:
        """True: tools go the native way."""
        return True

    def get_context_window_size(self) -> int:
        """The part of the context window that a conversation may fill."""
        return int(self._engine.model().context_window * _USABLE)

    def get_input_tokens_count(
        self, messages: Any, tools: list[dict[str, Any]] | None = None, response_model: type[BaseModel] | None = None
    ) -> int:
        """How many tokens the prompt has, by the model's own tokenizer and template."""
        conversation = [_shared.from_openai(message) for message in self._format_messages(messages)]
        return _shared.count_tokens(self._engine.model(), conversation, self._engine.tools(tools or ()))

    # -- calls -------------------------------------------------------------------------------------------------

    def call(
        self,
        messages: Any,
        tools: list[dict[str, Any]] | None = None,
        callbacks: list[Any] | None = None,
        available_functions: dict[str, Any] | None = None,
        from_task: Any = None,
        from_agent: Any = None,
        response_model: type[BaseModel] | None = None,
    ) -> Any:
        """Answer a conversation.

        Args:
            messages: a text, or messages in OpenAI's form.
            tools: OpenAI-style tools.
            callbacks: passed on to CrewAI's events.
            available_functions: run the first call by these functions and return its result.
            from_task: the task that asks.
            from_agent: the agent that asks.
            response_model: the answer is an instance of this class.

        Returns:
            The text, a list of OpenAI-style tool calls for CrewAI to run, the result of a call, or the instance.

        Raises:
            LLMContextLengthExceededError: the prompt does not fit; CrewAI summarises and tries again.
            BudgetError: the token budget ran out inside a structured answer.
        """
        turn = _Turn(self, messages, tools, callbacks, available_functions, from_task, from_agent, response_model)
        with turn.reported():
            conversation, params = turn.request()
            for event in self._engine.model().stream(conversation, params):
                turn.take(event)
            return turn.result()

    async def acall(
        self,
        messages: Any,
        tools: list[dict[str, Any]] | None = None,
        callbacks: list[Any] | None = None,
        available_functions: dict[str, Any] | None = None,
        from_task: Any = None,
        from_agent: Any = None,
        response_model: type[BaseModel] | None = None,
    ) -> Any:
        """`call`, without blocking the event loop; cancelling the task stops the model."""
        turn = _Turn(self, messages, tools, callbacks, available_functions, from_task, from_agent, response_model)
        with turn.reported():
            conversation, params = turn.request()
            async for event in self._engine.model().astream(conversation, params):
                turn.take(event)
            return turn.result()

    def _params(self, conversation: Sequence[Message], tools: Any, schema: type[BaseModel] | None) -> GenerateParams:
        names = ("temperature", "top_p", "seed", "top_k", "min_p", "timeout", "tool_format", "on_budget")
        given = {name: value for name in names if (value := getattr(self, name)) is not None}
        if (limit := self._effective_max_tokens()) is not None:
            given["max_tokens"] = int(limit)
        # Read here and not at construction: an executor adds stop words for the length of one call.
        params = GenerateParams(**given, stop=tuple(self.stop_sequences))
        tool_set = self._engine.tools(tools)
        if tool_set is None:
            return params if schema is None else replace(params, json_mode=JsonMode(schema=_shared.closed(schema)))
        choice = self.tool_choice
        if choice == "required_first":
            choice = "auto" if any(message.role == "tool" for message in conversation) else "required"
        return replace(
            params,
            tools=tool_set,
            tool_choice=choice,
            parallel_tool_calls=self.parallel_tool_calls,
            response_schema=None if schema is None else _shared.closed(schema),
        )


class _Turn:
    """One call, from CrewAI's arguments to its result, with the events that CrewAI's bus expects on the way."""

    def __init__(
        self,
        llm: ToolGrammarLLM,
        messages: Any,
        tools: list[dict[str, Any]] | None,
        callbacks: list[Any] | None,
        functions: dict[str, Any] | None,
        task: Any,
        agent: Any,
        response_model: type[BaseModel] | None,
    ) -> None:
        self.llm = llm
        self.messages = messages
        self.tools = tools
        self.callbacks = callbacks
        self.functions = functions
        self.who: dict[str, Any] = {"from_task": task, "from_agent": agent}
        self.response_model = response_model
        self.collected = _shared.Collector()
        self.streaming = bool(llm._effective_stream())
        self.started: dict[int, CallStart] = {}

    @contextlib.contextmanager
    def reported(self) -> Iterator[None]:
        """Report the start and every failure to CrewAI."""
        with llm_call_context():
            try:
                self.llm._emit_call_started_event(self.messages, self.tools, self.callbacks, self.functions, **self.who)
                try:
                    yield
                except ContextOverflowError as overflow:
                    raise _ContextLengthExceeded(overflow) from overflow
            except (HookAborted, LLMCallBlockedError) as denial:
                self.llm._emit_call_denied_event(denial, **self.who)
                raise
            except Exception as error:
                self.llm._emit_call_failed_event(str(error), **self.who)
                raise

    def request(self) -> tuple[list[Message], GenerateParams]:
        """The conversation and the parameters, after CrewAI's hooks have seen the messages."""
        self.formatted = self.llm._format_messages(self.messages)
        self.llm._invoke_before_llm_call_hooks(self.formatted, self.who["from_agent"])
        conversation = [_shared.from_openai(message) for message in cast("list[Any]", self.formatted)]
        tools = original_tools(self.tools or [], self.who["from_agent"], self.who["from_task"])
        return conversation, self.llm._params(conversation, tools, self.response_model)

    def take(self, event: Event) -> None:
        """Collect an event, and show it on CrewAI's bus where it streams."""
        self.collected.add(event)
        if isinstance(event, CallStart):
            self.started[event.index] = event
        if not self.streaming:
            return
        if isinstance(event, TextDelta):
            self.llm._emit_stream_chunk_event(event.text, **self.who, call_type=LLMCallType.LLM_CALL)
        elif isinstance(event, ReasoningDelta):
            self.llm._emit_thinking_chunk_event(event.text, **self.who)
        elif isinstance(event, ArgumentsDelta):
            start = self.started[event.index]
            written = {"name": start.name, "arguments": self.collected.arguments[event.index]}
            call = {"id": start.id, "function": written, "type": "function", "index": event.index}
            self.llm._emit_stream_chunk_event(event.text, **self.who, tool_call=call, call_type=LLMCallType.TOOL_CALL)

    def result(self) -> Any:
        """What CrewAI gets."""
        generation = self.collected.generation
        usage = _usage(generation.usage)
        self.llm._track_token_usage_internal(usage)
        calls = generation.tool_calls
        if calls and self.functions and calls[0].name in self.functions:
            _shared.require_executable(calls[0])
            return self.llm._handle_tool_execution(
                calls[0].name, dict(calls[0].arguments), self.functions, self.who["from_task"], self.who["from_agent"]
            )
        answer = [_openai_call(call) for call in calls] if calls else self._text(generation)
        self.llm._emit_call_completed_event(
            response=answer,
            call_type=LLMCallType.TOOL_CALL if calls else LLMCallType.LLM_CALL,
            messages=self.formatted,
            usage=usage,
            finish_reason=generation.finish_reason,
            **self.who,
        )
        if isinstance(answer, str):
            return self.llm._invoke_after_llm_call_hooks(self.formatted, answer, self.who["from_agent"])
        return answer

    def _text(self, generation: Generation) -> str | BaseModel:
        if self.response_model is None:
            return generation.text
        _shared.require_whole(generation)
        return self.response_model.model_validate_json(generation.text)


# -- translation ---------------------------------------------------------------------------------------------------


def original_tools(tools: Sequence[Mapping[str, Any]], agent: Any, task: Any) -> list[dict[str, Any]]:
    """The tools, under the names that CrewAI gave them, with the schemas that their authors gave them.

    CrewAI closes maps, cuts recursion and demands every optional argument on the way to the model. The tools
    themselves are reachable through the agent (its executor's, which include those of the task) or the task; a tool
    that is not found there, or has other arguments there, keeps the schema that was passed on.
    """
    executor = getattr(agent, "agent_executor", None)
    sources = (getattr(executor, "original_tools", None), getattr(task, "tools", None), getattr(agent, "tools", None))
    originals: dict[str, Any] = {}
    for source in sources:
        if source and tools:
            originals = {**convert_tools_to_openai_schema(source)[2], **originals}
    result = []
    for tool in tools:
        function = tool.get("function", tool)
        made = _shared.openai_tool(tool)
        schema = getattr(originals.get(function["name"]), "args_schema", None)
        if schema is not None:
            parameters = _shared.openai_tool({**function, "parameters": schema})["function"]["parameters"]
            if _properties(parameters) == _properties(made["function"]["parameters"]):
                made["function"]["parameters"] = parameters
        result.append(made)
    return result


def _properties(schema: Mapping[str, Any]) -> set[str]:
    """The names of the arguments; the schema of a class that contains itself is a reference to a definition."""
    definition = schema.get("$ref", "").removeprefix("#/$defs/")
    return set(schema.get("$defs", {}).get(definition, schema).get("properties", ()))


def _openai_call(call: ToolCall) -> dict[str, Any]:
    function = {"name": call.name, "arguments": _shared.executable_text(call)}
    return {"id": call.id, "type": "function", "function": function}


def _usage(usage: Usage) -> dict[str, Any]:
    return {
        "prompt_tokens": usage.prompt_tokens,
        "completion_tokens": usage.completion_tokens,
        "total_tokens": usage.prompt_tokens + usage.completion_tokens,
        "reasoning_tokens": usage.reasoning_tokens,
        "cached_prompt_tokens": usage.cached_tokens,
    }


class _ContextLengthExceeded(LLMContextLengthExceededError, ContextOverflowError):
    """Our error and CrewAI's, in the words by which CrewAI knows that it must summarise the conversation."""

    def __init__(self, error: ContextOverflowError) -> None:
        message = f"context length exceeded: {error.message}"
        ContextOverflowError.__init__(self, message, hint=error.hint, place=error.place)
