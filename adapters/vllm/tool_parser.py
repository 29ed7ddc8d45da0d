"""The tool parser of vLLM's chat completions: tools go into the grammar, and calls come out of the text.

Imported inside vLLM only. A parser is made for each request, once to adjust the request and once to read the answer.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from vllm.entrypoints.generate.base.protocol import (
    DeltaFunctionCall,
    DeltaMessage,
    DeltaToolCall,
    ExtractedToolCallInformation,
    FunctionCall,
    ToolCall,
)
from vllm.sampling_params import StructuredOutputsParams
from vllm.tool_parsers.abstract_tool_parser import ToolParser

from toolgrammar.core.conversation import ArgumentsDelta, CallEnd, CallStart, Event, TextDelta, UnequalCalls
from toolgrammar.core.errors import ToolGrammarError
from toolgrammar.tools import ToolSet
from toolgrammar.tools.formats import choose_format, format_names

from .. import _shared
from .envelope import envelope, in_conversation, is_envelope


class ToolGrammarParser(ToolParser):  # type: ignore[misc]
    """Reads calls in the wire format that the model's chat template shows.

    Attributes:
        format: the name of another wire format; None: that of the chat template.
    """

    format: str | None = None
    # Calls are read from the format in which the model writes them, whatever the choice was.
    supports_required_and_named = False
    # Text is handed over piece by piece, and the end of the stream is announced.
    engine_based_streaming = True

    def __init__(self, tokenizer: Any, tools: list[Any] | None = None) -> None:
        super().__init__(tokenizer, tools)
        self._tools = [openai_tool(tool) for tool in tools or ()]
        self._reader: _AnswerParser | None = None

    def adjust_request(self, request: Any) -> Any:
        """Return the request with its tools in an envelope, as its grammar; one that brings an envelope keeps it.

        Raises:
            ValueError: the choice or a tool cannot be taken, or there is a policy or another grammar beside them.
        """
        _shared.require_no_policy(getattr(request, "model_extra", None))
        if not self._tools or request.tool_choice == "none":
            return request
        structured = request.extract_structured_outputs()
        if structured is None or structured.grammar is None or not is_envelope(structured.grammar):
            try:
                text = self._envelope(request, None if structured is None else _schema_of(structured))
            except ToolGrammarError as error:
                raise ValueError(str(error)) from error
            request.structured_outputs = StructuredOutputsParams(grammar=text)
        if hasattr(request, "response_format"):
            request.response_format = None
        # Markers of calls may be control tokens; and a stop string may stand in the arguments of a call.
        request.skip_special_tokens = False
        if getattr(request, "stop", None):
            request.stop = []
        return request

    def _envelope(self, request: Any, schema: Any) -> str:
        """Return the envelope of a request's tools; ``schema`` is that of an answer without calls, None: free text."""
        choice = request.tool_choice
        if choice is not None and not isinstance(choice, str):
            choice = choice.model_dump()
        tools, schema = in_conversation(self._tools, choice, getattr(request, "messages", ()), schema)
        return envelope(
            tools,
            tool_choice=choice,
            parallel_tool_calls=request.parallel_tool_calls is not False,
            format=self.format,
            response_schema=schema,
        )

    def extract_tool_calls(self, model_output: str, request: Any) -> ExtractedToolCallInformation:
        """Return the calls and the text of a whole answer."""
        reader = self._new_reader()
        reader.read(self._without_the_end(model_output))
        reader.end()
        calls = [
            ToolCall(id=call.id, function=FunctionCall(name=call.name, arguments="".join(call.arguments)))
            for call in reader.calls
        ]
        return ExtractedToolCallInformation(
            tools_called=bool(calls), tool_calls=calls, content="".join(reader.text) or None
        )

    def extract_tool_calls_streaming(
        self,
        previous_text: str,
        current_text: str,
        delta_text: str,
        previous_token_ids: Sequence[int],
        current_token_ids: Sequence[int],
        delta_token_ids: Sequence[int],
        request: Any,
    ) -> DeltaMessage | None:
        """Return what the next piece of the answer makes certain."""
        if self._reader is None:
            self._reader = self._new_reader()
        if not previous_text:
            delta_text = self._without_the_end(delta_text)
        return _delta(self._reader.read(delta_text))

    def finish_streaming(self) -> DeltaMessage | None:
        """Return what becomes certain by the end of the stream."""
        return None if self._reader is None else _delta(self._reader.end())

    def _without_the_end(self, text: str) -> str:
        """Return an answer without the control token that is all of it: it has no room for its grammar (`Sequence`)."""
        return "" if text in self.model_tokenizer.all_special_tokens else text

    def _new_reader(self) -> _AnswerParser:
        tokenizer = self.model_tokenizer
        template = getattr(tokenizer, "chat_template", None)
        wire = choose_format(self.format, template if isinstance(template, str) else "", tokenizer.all_special_tokens)
        return _AnswerParser(ToolSet.from_any(self._tools).parser(wire))


class _Call:
    """A call as far as it has come."""

    def __init__(self, start: CallStart) -> None:
        self.id, self.name = start.id, start.name
        self.arguments: list[str] = []


class _AnswerParser:
    """Reads one answer.

    Args:
        parser: of the wire format.
    """

    def __init__(self, parser: Any) -> None:
        self._parser = parser
        self._unequal = UnequalCalls()
        self.text: list[str] = []
        self.calls: list[_Call] = []
        self._held = ""  # the end of the arguments of an open call, without which they do not parse

    def read(self, text: str) -> list[Event]:
        """Take the next piece."""
        return self._collected(self._parser.feed(text)) if text else []

    def end(self) -> list[Event]:
        """End the answer. A call that was cut stays as far as it came: its arguments do not parse."""
        events = self._parser.close()
        nameless = {event.index for event in events if isinstance(event, CallStart) and not event.name}
        return self._collected([event for event in events if getattr(event, "index", None) not in nameless])

    def _collected(self, events: list[Event]) -> list[Event]:
        """Collect the text and the calls of some events; return those that clients get.

        The last character of the arguments, a brace perhaps, is held back until the call has ended.
        """
        shown: list[Event] = []
        for event in self._unequal.feed(events):
            if isinstance(event, TextDelta):
                self.text.append(event.text)
                shown.append(event)
            elif isinstance(event, CallStart):
                self.calls.append(_Call(event))
                shown.append(event)
            elif isinstance(event, (ArgumentsDelta, CallEnd)):
                text = self._held + (event.text if isinstance(event, ArgumentsDelta) else "")
                size = len(text) if isinstance(event, CallEnd) else max(0, len(text.rstrip()) - 1)
                self._held = text[size:]
                if size:
                    self.calls[event.index].arguments.append(text[:size])
                    shown.append(ArgumentsDelta(event.index, text[:size]))
        return shown


def _schema_of(structured: StructuredOutputsParams) -> Any:
    """Return the JSON Schema that a request asks for.

    Raises:
        ValueError: it asks for something else, such as a pattern.
    """
    if structured.json_object:
        return {"type": "object"}
    if structured.json is None:
        raise ValueError("with tools, structured_outputs takes a JSON Schema or an envelope of toolgrammar")
    return json.loads(structured.json) if isinstance(structured.json, str) else structured.json


def _delta(events: Sequence[Event]) -> DeltaMessage | None:
    """Return the events as one piece of a stream; None if they show nothing."""
    text, calls = "", []
    for event in events:
        if isinstance(event, TextDelta):
            text += event.text
        elif isinstance(event, CallStart):
            function = DeltaFunctionCall(name=event.name, arguments="")
            calls.append(DeltaToolCall(index=event.index, id=event.id, type="function", function=function))
        elif isinstance(event, ArgumentsDelta):
            if calls and calls[-1].index == event.index:
                calls[-1].function.arguments += event.text
            else:
                calls.append(DeltaToolCall(index=event.index, function=DeltaFunctionCall(arguments=event.text)))
    if not text and not calls:
        return None
    return DeltaMessage(content=text or None, tool_calls=calls) if calls else DeltaMessage(content=text)


def openai_tool(tool: Any) -> dict[str, Any]:
    """Return a tool of either of OpenAI's APIs as a dict of chat completions.

    Raises:
        ValueError: it is not a function.
    """
    given = tool.model_dump(exclude_none=True)
    if given.get("type") != "function":
        raise ValueError(f"a tool of the type {given.get('type')!r}: only functions are supported")
    function = given.get("function", given)
    known = {name: function[name] for name in ("name", "description", "parameters") if name in function}
    try:
        return _shared.openai_tool(known)
    except ToolGrammarError as error:
        raise ValueError(str(error)) from error


def __getattr__(name: str) -> Any:
    """Return the parser of a wire format, ``parser_FORMAT``."""
    format_name = name.removeprefix("parser_")
    if format_name == name or format_name not in format_names():
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return type(name, (ToolGrammarParser,), {"format": format_name})
