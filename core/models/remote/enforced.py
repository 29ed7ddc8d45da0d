"""Answers of a server that enforces our grammar: detected by a probe, streamed, and not retried.

This is vLLM with the plug-in of ``toolgrammar.adapters.vllm``. Its output is certain immediately, as that of a local
model. The complete answer is still validated; an invalid one raises an error.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from ...basics.options import ENVELOPE_VERSION
from ...conversation.events import ArgumentsDelta, CallEnd, CallStart, Event, TextDelta
from ...conversation.messages import ToolCall, new_call_id
from ...generation.live_shape import LiveShape
from ...generation.params import GenerateParams
from ...json import read_json
from .answer import Answer
from .answer_judge import CUT, Task, Verdict
from .transport import RefusedError, Transport

#: An envelope of an unknown version, which the plug-in rejects by name.
_PROBE = json.dumps({"toolgrammar": 0})
_PROBE_TOOL = {"type": "function", "function": {"name": "probe", "parameters": {"type": "object", "properties": {}}}}


#: Maximum number of calls of an envelope that says nothing else.
MAX_CALLS = 16


def envelope(tools: Sequence[Mapping[str, Any]], params: GenerateParams, schema: Any) -> str:
    """Return the envelope of a request with tools; its fields are those of ``toolgrammar.adapters.vllm.envelope``."""
    parallel = params.parallel_tool_calls
    asked = {"tools": list(tools), "tool_choice": params.tool_choice, "parallel_tool_calls": parallel}
    beside = {} if schema is None else {"response_schema": schema}
    most = getattr(params.tools, "max_calls", MAX_CALLS)
    if most != MAX_CALLS:
        beside["max_calls"] = most
    return json.dumps({"toolgrammar": ENVELOPE_VERSION, **asked, **beside})


async def has_plugin(transport: Transport, model: str) -> bool:
    """Return True if a server has the plug-in, its backend and its tool parser.

    The probe requests one token with an envelope that the plug-in rejects; a server without the plug-in writes a token.

    Raises:
        ServerError: the server did not answer.
    """
    body = {
        "model": model,
        "messages": [{"role": "user", "content": "."}],
        "max_tokens": 1,
        "tools": [_PROBE_TOOL],
        "tool_choice": "required",
        "structured_outputs": {"grammar": _PROBE},
    }
    try:
        await transport.fetch("chat/completions", body)
    except RefusedError as refusal:
        return "toolgrammar" in refusal.reason and "envelope" in refusal.reason
    return False


def asks_callables(params: GenerateParams) -> bool:
    """Return True if values of a request come from callables, which do not leave this process."""
    asked = getattr(params.tools, "live_places", None)
    shape: Any = params.json_mode and params.json_mode.schema
    is_asked = asked is not None and params.tool_choice != "none" and bool(asked(True))
    return is_asked or (isinstance(shape, LiveShape) and bool(shape.places(True)))


def is_enforceable(task: Task) -> bool:
    """Return True if the plug-in can enforce a task completely."""
    params = task.params
    if task.free or task.convert is not None or params.tool_format is not None:
        return False
    if asks_callables(params):
        return False
    if task.tools is not None:
        return not params.stop  # the server also searches for stop strings in arguments
    return task.is_json and task.schema is not None


class EnforcedReader:
    """Reader of such an answer, with the interface of `answer_judge.AnswerReader`.

    Args:
        task: the requirements of the request.
    """

    def __init__(self, task: Task) -> None:
        self._task = task
        self._ids: list[str] = []
        self._sent: list[int] = []  # number of characters of each call's arguments

    def feed(self, text: str) -> list[Event]:
        """Read the next piece of the text, all of which is certain."""
        return [TextDelta(text)]

    def calls(self, answer: Answer) -> list[Event]:
        """Return the events of calls since the last call of this method."""
        events: list[Event] = []
        for index, call in enumerate(answer.calls):
            if index == len(self._sent):
                self._ids.append(call.id or new_call_id())
                self._sent.append(0)
                events.append(CallStart(index, self._ids[index], call.name))
            if len(call.arguments) > self._sent[index]:
                events.append(ArgumentsDelta(index, call.arguments[self._sent[index] :]))
                self._sent[index] = len(call.arguments)
        return events

    def ends(self, verdict: Verdict) -> list[Event]:
        """Return the end events of the calls of a valid answer."""
        return [CallEnd(index, call) for index, call in enumerate(verdict.calls)]

    def close(self) -> list[Event]:
        """End the text; nothing was held back."""
        return []

    def verdict(self, answer: Answer, used_up: bool | None) -> Verdict:
        """Judge the complete answer of a server that enforced its grammar: calls are checked, not repaired, and get the
        pointers of their truncated values. The server reports these in `Answer.cut` as ``TOOL/POINTER``
        (``"get_weather/city"``), or as ``""`` for a whole call."""
        places = list(answer.cut)
        calls: list[ToolCall] = []
        # The budget truncates the end of an answer, so a place is in the last call of its tool.
        for index, raw in reversed(list(enumerate(answer.calls))):
            named = {place for place in places if place in ("", raw.name) or place.startswith(f"{raw.name}/")}
            pointers = tuple(place[len(raw.name) :] for place in places if place in named)
            places = [place for place in places if place not in named]
            call = ToolCall(self._ids[index], raw.name, {}, raw=raw.arguments)
            calls.insert(0, self._call(call, pointers, used_up is True))
        wrong = [call.error for call in calls if call.error is not None and not call.cut]
        demanded = self._task.tools is not None and self._task.params.tool_choice != "auto"
        if demanded and not calls:
            wrong.append("no tool was called")
        choice, most = self._task.params.tool_choice, self._task.max_calls
        if choice not in ("auto", "required"):
            wrong += [f"{call.name!r} was called; call {choice!r}" for call in calls if call.name != choice]
        if most is not None and len(calls) > most:
            wrong.append(f"{len(calls)} calls; at most {most} are allowed")
        if calls or wrong or not self._task.is_json:
            return Verdict(answer.text, tuple(calls), tuple(wrong), cut=bool(used_up and wrong), is_sent=True)
        verdict = self._task.text_verdict(answer.text, used_up)
        return replace(verdict, text=answer.text, is_sent=True, places=tuple(places))

    def _call(self, call: ToolCall, pointers: tuple[str, ...], used_up: bool) -> ToolCall:
        """Return the call with its arguments read and checked. One that is not JSON is truncated if the budget was
        ``used_up``, else malformed; ``pointers`` are the server's truncated values."""
        tools = self._task.tools
        try:
            value = read_json(call.raw or "")
        except ValueError as error:
            if used_up:
                return ToolCall.unread(call.id, call.name, call.raw or "", CUT, cut=("",))
            return ToolCall.unread(call.id, call.name, call.raw or "", str(error))
        if tools is None or not isinstance(value, dict):
            return ToolCall.unread(call.id, call.name, call.raw or "", "no tool may be called so")
        return replace(tools.check_call(replace(call, arguments=value)), cut=pointers)
