"""Answers that a server wrote under our own grammar: recognised by a probe, read as they come, and not asked for twice.

Such a server is vLLM with the plug-in of ``toolgrammar.adapters.vllm``. What it sends is certain at once, as with a
local model. It is validated all the same when it is whole; that it is not valid then is an error.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from ...basics.options import ENVELOPE_VERSION
from ...conversation.events import ArgumentsDelta, CallEnd, CallStart, Event, TextDelta
from ...conversation.messages import ToolCall, new_call_id
from ...language.json_text import read_json
from .answer_judge import CUT, Task, Verdict
from .chat_completions import Answer
from .transport import RefusedError, Transport

#: An envelope that no version reads, so that the plug-in refuses it by its name.
_PROBE = json.dumps({"toolgrammar": 0})
_PROBE_TOOL = {"type": "function", "function": {"name": "probe", "parameters": {"type": "object", "properties": {}}}}


def envelope(tools: Sequence[Mapping[str, Any]], choice: str, parallel: bool, schema: Any) -> str:
    """Return the envelope of a request with tools; its fields are those of ``toolgrammar.adapters.vllm.envelope``."""
    asked = {"tools": list(tools), "tool_choice": choice, "parallel_tool_calls": parallel}
    beside = {} if schema is None else {"response_schema": schema}
    return json.dumps({"toolgrammar": ENVELOPE_VERSION, **asked, **beside})


async def has_plugin(transport: Transport, model: str) -> bool:
    """Return True if a server has the plug-in, its backend and its tool parser.

    It is asked for one token under an envelope that the plug-in refuses; a server without it may write that token.

    Raises:
        ServerError: the server did not answer, so that nothing is known of it; the request itself would fail so too.
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


def is_enforceable(task: Task) -> bool:
    """Return True if the plug-in can enforce all of a task while the answer is written."""
    params = task.params
    if task.free or task.convert is not None or params.tool_format is not None:
        return False
    if task.tools is not None:
        return not params.stop  # which ends a text, and the server looks for it in arguments too
    return task.is_json and task.schema is not None


class EnforcedReader:
    """Reader of one such answer; used as `answer_judge.AnswerReader`.

    Args:
        task: demands of the request.
    """

    def __init__(self, task: Task) -> None:
        self._task = task
        self._ids: list[str] = []
        self._sent: list[int] = []  # number of characters of each call's arguments

    def feed(self, text: str) -> list[Event]:
        """Take the next piece of the text, all of which is certain."""
        return [TextDelta(text)]

    def calls(self, answer: Answer) -> list[Event]:
        """Return what has come of calls since this was last asked."""
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
        """Return the ends of the calls of a valid answer."""
        return [CallEnd(index, call) for index, call in enumerate(verdict.calls)]

    def close(self) -> list[Event]:
        """End the text; nothing was held back."""
        return []

    def verdict(self, answer: Answer, used_up: bool | None) -> Verdict:
        """Judge the answer, now that all of it has come."""
        places = list(answer.cut)
        calls: list[ToolCall] = []
        wrong: list[str] = []
        for index, raw in reversed(list(enumerate(answer.calls))):
            # The budget cuts the end of an answer: of two calls of one tool, the last, and where no tool is named, the
            # last of all.
            named = {place for place in places if place in ("", raw.name) or place.startswith(f"{raw.name}/")}
            pointers = tuple(place[len(raw.name) :] for place in places if place in named)
            places = [place for place in places if place not in named]
            call = ToolCall(self._ids[index], raw.name, {}, raw=raw.arguments)
            calls.insert(0, self._call(call, pointers, used_up is True))
        wrong += [call.error for call in calls if call.error is not None and not call.cut]
        demanded = self._task.tools is not None and self._task.params.tool_choice != "auto"
        if demanded and not calls:
            wrong.append("no tool was called")
        if calls or wrong or not self._task.is_json:
            return Verdict(answer.text, tuple(calls), tuple(wrong), cut=bool(used_up and wrong), is_sent=True)
        verdict = self._task.text_verdict(answer.text, used_up)
        return replace(verdict, text=answer.text, is_sent=True, places=tuple(places))

    def _call(self, call: ToolCall, pointers: tuple[str, ...], used_up: bool) -> ToolCall:
        tools = self._task.tools
        try:
            value = read_json(call.raw or "")
        except ValueError as error:
            if used_up:
                return replace(call, cut=("",), error=CUT)
            return replace(call, error=f"malformed call: {error}")
        if tools is None or not isinstance(value, dict):
            return replace(call, error="malformed call: no tool may be called so")
        return replace(tools.check_call(replace(call, arguments=value)), cut=pointers)
