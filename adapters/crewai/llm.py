"""`ToolGrammarLLM`, the LLM."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import replace
from math import inf
from typing import Any, cast

from pydantic import BaseModel, PrivateAttr

from toolgrammar.core.conversation import ArgumentsDelta, Event, Generation, Message, ReasoningDelta, TextDelta
from toolgrammar.core.generation import GenerateParams
from toolgrammar.core.models import Model

from .. import _shared
from .messages import (
    TOO_LONG,
    answer_model,
    called_tools,
    errors,
    is_answered,
    is_forced_to_answer,
    openai_call,
    original_tools,
    text_tools,
    usage_dict,
)
from .react import React, spelled

try:
    from crewai.events.types.llm_events import LLMCallType
    from crewai.hooks.dispatch import HookAborted
    from crewai.llms.base_llm import BaseLLM, LLMCallBlockedError, llm_call_context
except ImportError as error:
    raise _shared.missing("crewai", "crewai") from error

__all__ = ["ToolGrammarLLM"]

# Fields that CrewAI has for hosted models, and the values of them that ask for nothing else than what is done.
_HOSTED: Mapping[str, tuple[Any, ...]] = {
    "frequency_penalty": (None, 0),
    "presence_penalty": (None, 0),
    "n": (None, 1),
    "prefer_upload": (False,),
    "is_litellm": (False,),
    "provider": ("toolgrammar",),
    "llm_type": ("toolgrammar",),
}
# Settings that a saved flow lacks, or has from CrewAI.
_UNSAVED = ("grammar", "stop", "parallel_tool_calls")
# CrewAI's own providers leave this much of the window for the answer.
_USABLE = 0.85


class ToolGrammarLLM(BaseLLM, _shared.Settings):  # type: ignore[misc]  # CrewAI's own fields go first
    """A local model under a grammar, as a CrewAI LLM: for an agent's ``llm``, ``function_calling_llm`` and the others.

    Args:
        model: the address of a model, as `load_model` takes it, or a loaded model, which several objects may share
            (token usage is counted for each object).
        options: keyword options for loading ``model``.
        tool_choice: CrewAI has no way to demand a call, so it is said here: ``"auto"``, ``"required"`` or ``"any"`` (in
            every turn that has tools), ``"required_first"`` (until the first tool result is in the conversation),
            ``"none"``, or the name of a tool, as CrewAI calls it, that all agents with this object have.
        parallel_tool_calls: several calls in one turn are allowed.
        native_tools: False has CrewAI describe the tools in its prompts and read "Action:" from the text; for models
            that were trained for that form.
        **fields: CrewAI's (``stream``, ``stop``, ...); the options of `GenerateParams` (see `Settings`), of which
            ``empty_answer`` is False here, because CrewAI raises an error for an empty answer, and ``grammar`` is for
            answers without tools and without a shape of their own; and for a model on a server ``api_key``,
            ``base_url`` and ``max_retries``, which go to its loader.

    Raises:
        ModelError: the model cannot be loaded, or a field is not known, has a wrong value or is not for this model.
    """

    llm_type: str = "toolgrammar"
    tool_choice: str = "auto"
    parallel_tool_calls: bool = True
    native_tools: bool = True

    _loaded: _shared.LoadedModel = PrivateAttr()

    def __init__(self, model: str | Model = "embedded", *, options: Mapping[str, Any] | None = None, **fields: Any):
        connection = {name: fields.pop(name) for name in _shared.CONNECTION if name in fields}
        loaded = _shared.LoadedModel(model, options, **connection)
        # CrewAI takes a provider it does not know for OpenAI, and would send it the text of some tasks.
        super().__init__(model=loaded.name, **{"provider": "toolgrammar", **fields})
        self._loaded = loaded
        known = {*type(self).model_fields, *_shared.CONNECTION, "options"} - set(_HOSTED)
        _shared.require_known(self.additional_params, known, "unknown setting:", {"options": _shared.LOADING})
        hosted = [name for name, accepted in _HOSTED.items() if getattr(self, name) not in accepted]
        _shared.require_known(hosted, known, "no model here has, or not with this value:")
        if self.tool_choice != "required_first":
            # The tools are not known yet: any name is taken for the name of one, and looked up at each call.
            _shared.tool_choice(self.tool_choice, [self.tool_choice or "a tool"])
        self._params()  # a wrong value is an error now, not at the first call

    # -- what CrewAI asks about the model ------------------------------------------------------------------------------

    def supports_function_calling(self) -> bool:
        """Return True if tools are called natively, not in text."""
        return self.native_tools

    def supports_multimodal(self) -> bool:
        """Return True if the model reads images; files of other kinds are refused with the request."""
        return self._loaded.model().capabilities.images

    def _multimodal_formatter_name(self) -> str:
        return "openai"  # the form of content blocks

    def to_config_dict(self) -> dict[str, Any]:
        """Return the model's address and the settings that differ from their defaults, for a flow that is saved.

        A flow restores its LLM as ``LLM(**config)``, which reaches the model through LiteLLM if it is registered under
        its address there (`toolgrammar.adapters.litellm.register`).
        """
        fields = {name: getattr(self, name) for name in _shared.GENERATION if name not in _UNSAVED}
        config = {**super().to_config_dict(), **{name: value for name, value in fields.items() if value is not None}}
        return {**config, "model": f"toolgrammar/{self.model}"}

    def get_context_window_size(self) -> int:
        """Return the tokens of the context window that a conversation may fill."""
        return int(self._loaded.model().context_window * _USABLE)

    def get_input_tokens_count(
        self, messages: Any, tools: list[dict[str, Any]] | None = None, response_model: type[BaseModel] | None = None
    ) -> int:
        """Return how many tokens the prompt has, by the model's tokenizer and template; an estimate for a server's."""
        conversation = [_shared.message_of(message) for message in self._format_messages(messages)]
        return self._loaded.count_tokens(conversation, tools or (), self.tools_in_prompt)

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
            InvalidArgumentsError: a validator of the class objected to every answer, or a call must not run.
        """
        turn = _Turn(self, messages, tools, callbacks, available_functions, from_task, from_agent, response_model)
        with turn.reported(), turn.request().stream() as stream:
            for event in stream:
                turn.take(event)
            return turn.result(stream.result)

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
        """Do what `call` does without blocking the event loop; cancelling the task stops the model."""
        turn = _Turn(self, messages, tools, callbacks, available_functions, from_task, from_agent, response_model)
        with turn.reported():
            async with turn.request().astream() as stream:
                async for event in stream:
                    turn.take(event)
                return turn.result(await stream.result())

    def _params(self) -> GenerateParams:
        """Return the generation options of this object's fields.

        Raises:
            ModelError: a field has a wrong value.
        """
        given = {name: getattr(self, name) for name in _shared.GENERATION}
        given["empty_answer"] = bool(self.empty_answer)  # CrewAI raises an error for an empty answer
        max_tokens: Any = self._effective_max_tokens()
        # CrewAI's field also takes 100.0, and infinity for no limit; other fractions are refused with the rest.
        if isinstance(max_tokens, float) and (max_tokens == inf or max_tokens.is_integer()):
            max_tokens = None if max_tokens == inf else int(max_tokens)
        given["max_tokens"] = max_tokens
        # Read here and not at construction: an executor adds stop words for the length of one call.
        return _shared.generation_params({**given, "stop": self.stop_sequences})


class _Turn:
    """One call, from CrewAI's arguments to its result, with the events that CrewAI's bus expects on the way.

    Attributes:
        functions: the functions by which the call of a tool is run here; None or empty: CrewAI runs it.
        who: the task and the agent that ask, as CrewAI's events take them.
        response_model: the class of the answer, which is returned as an instance; None: as a text.
        answer_model: the class that a text answer must match; None: it is free.
        shown: the text that was streamed so far.
    """

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
        self.calls_as_text = False  # CrewAI reads the calls from the text (`React`)
        self.shown = ""
        self.answer_model: type[BaseModel] | None = None

    @contextlib.contextmanager
    def reported(self) -> Iterator[None]:
        """Report the start and every failure to CrewAI; raise our errors as CrewAI's (`_shared.translated`)."""
        with llm_call_context():
            try:
                self.llm._emit_call_started_event(self.messages, self.tools, self.callbacks, self.functions, **self.who)
                with _shared.translated(errors, TOO_LONG):
                    yield
            except (HookAborted, LLMCallBlockedError) as denial:
                self.llm._emit_call_denied_event(denial, **self.who)
                raise
            except Exception as error:
                self.llm._emit_call_failed_event(str(error), **self.who)
                raise

    def request(self) -> _shared.Request:
        """Return the request, after CrewAI's hooks have seen the messages; keep what `take` and `result` need of it."""
        llm = self.llm
        self.formatted = llm._format_messages(self.messages)
        llm._invoke_before_llm_call_hooks(self.formatted, self.who["from_agent"])
        conversation = [_shared.message_of(message) for message in cast("list[Any]", self.formatted)]
        tools, choice = self._tools_and_choice(conversation)
        self.answer_model = self.response_model
        if tools and self.answer_model is None and not self.functions:
            self.answer_model = answer_model(self.who["from_agent"], self.who["from_task"])
        schema = None if self.answer_model is None else _shared.closed(self.answer_model)
        params = llm._params()
        if (tools and choice != "none") or schema is not None or self.calls_as_text:
            params = replace(params, grammar=None)  # the grammar of the fields is for free text
        params = llm._loaded.with_tools(params, tools, choice, schema)
        if self.calls_as_text:
            form: Any = React(tuple(params.stop))
            params = replace(params, tool_format=form)
        several = llm.parallel_tool_calls and not self.calls_as_text and not self.functions
        self.params = replace(params, parallel_tool_calls=several)
        # In text, CrewAI reads the answer itself.
        check = None if self.calls_as_text else _shared.validators_of(self.answer_model)
        self.sent = _shared.Request(llm._loaded.model(), conversation, self.params, check)
        return self.sent

    def _tools_and_choice(self, conversation: list[Message]) -> tuple[list[dict[str, Any]], str]:
        """Return the tools of the request, and the choice among them; set ``calls_as_text``."""
        agent, task = self.who["from_agent"], self.who["from_task"]
        tools = original_tools(self.tools or [], agent, task)
        if not tools and self.response_model is None:
            tools = text_tools(conversation, agent, task)
            self.calls_as_text = bool(tools)
        if self.response_model is None and is_forced_to_answer(conversation):
            # Its tools are not sent; a prompt with earlier calls needs them.
            return tools or called_tools(conversation), "none"
        if not tools:
            return tools, "none"
        if self.functions:
            return tools, "required"  # what CrewAI reads is the function's result
        choice = self.llm.tool_choice
        if choice == "required_first":
            choice = "auto" if is_answered(conversation) else "required"
        return tools, choice

    def take(self, event: Event) -> None:
        """Collect an event, and show it on CrewAI's bus where it streams."""
        self.collected.add(event)
        if not self.streaming:
            return
        if isinstance(event, ReasoningDelta):
            self.llm._emit_thinking_chunk_event(event.text, **self.who)
        elif self.calls_as_text:
            before, self.shown = self.shown, self._spelled()
            if chunk := self.shown[len(before) :]:
                self.llm._emit_stream_chunk_event(chunk, **self.who, call_type=LLMCallType.LLM_CALL)
        elif isinstance(event, TextDelta):
            self.llm._emit_stream_chunk_event(event.text, **self.who, call_type=LLMCallType.LLM_CALL)
        elif isinstance(event, ArgumentsDelta):
            start = self.collected.started[event.index]
            written = {"name": start.name, "arguments": self.collected.arguments[event.index]}
            call = {"id": start.id, "function": written, "type": "function", "index": event.index}
            self.llm._emit_stream_chunk_event(event.text, **self.who, tool_call=call, call_type=LLMCallType.TOOL_CALL)

    def result(self, generation: Generation) -> Any:
        """Return the answer in CrewAI's form."""
        usage = usage_dict(generation.usage)
        self.llm._track_token_usage_internal(usage)
        usage |= self.sent.details(generation)  # CrewAI's event of an answer takes further members in its usage only
        calls = generation.tool_calls
        if calls and self.functions and calls[0].name in self.functions:
            _shared.require_executable(calls[0])
            return self.llm._handle_tool_execution(
                calls[0].name, dict(calls[0].arguments), self.functions, self.who["from_task"], self.who["from_agent"]
            )
        for call in calls if self.calls_as_text else ():
            _shared.require_executable(call)  # CrewAI repairs text that does not parse, and would run it
        as_text = self.calls_as_text or not calls
        answer = self._text(generation) if as_text else [openai_call(call) for call in calls]
        self.llm._emit_call_completed_event(
            response=answer,
            call_type=LLMCallType.LLM_CALL if as_text else LLMCallType.TOOL_CALL,
            messages=self.formatted,
            usage=usage,
            finish_reason=generation.finish_reason,
            **self.who,
        )
        if isinstance(answer, str):
            return self.llm._invoke_after_llm_call_hooks(self.formatted, answer, self.who["from_agent"])
        return answer

    def _text(self, generation: Generation) -> str | BaseModel:
        """Return an answer without native calls: its text, or the instance of the class that was asked for.

        Raises:
            BudgetError: the token budget ran out inside a structured answer.
        """
        if self.answer_model is not None and not generation.tool_calls:
            # In a text, words stand before the answer: what is cut has no pointers into it.
            cut = ("",) if self.calls_as_text and generation.finish_reason == "length" else generation.cut
            _shared.require_whole(replace(generation, cut=cut), self.params)
        if self.calls_as_text:
            return self._spelled()
        if self.response_model is None:
            return generation.text
        return self.response_model.model_validate_json(generation.text)

    def _spelled(self) -> str:
        """Return the answer so far as a text, in the form that CrewAI searches for actions."""
        call = next(iter(self.collected.started.values()), None)
        return spelled(self.collected.text, call.name if call else None, self.collected.arguments.get(0, ""))
