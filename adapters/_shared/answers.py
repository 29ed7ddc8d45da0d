"""Checks of answers before a framework gets them: calls that must not run, cut answers, collected streams."""

from __future__ import annotations

from collections.abc import Sequence

from toolgrammar.core.conversation import (
    ArgumentsDelta,
    CallStart,
    Event,
    Finish,
    Generation,
    Message,
    MessageBuilder,
    ToolCall,
    Usage,
)
from toolgrammar.core.errors import BudgetError, CancelledError, InvalidArgumentsError, Place
from toolgrammar.core.generation import GenerateParams


def problem(call: ToolCall) -> str | None:
    """Return why a call must not be executed; None for a call that may."""
    if call.error is not None:
        return call.error
    if call.cut:
        return "cut short by the token budget at " + ", ".join(pointer or "(root)" for pointer in call.cut)
    return None


def executable_text(call: ToolCall) -> str:
    """Return the arguments for a framework that executes what parses: a call that must not run does not parse.

    A cut call is valid JSON, and frameworks do not look at the finish reason. The reason follows the arguments, so
    that the framework's own handling of malformed arguments reports it to the model instead of running the tool.
    """
    reason = problem(call)
    return call.arguments_text if reason is None else f"{call.arguments_text} <{reason}>"


def require_executable(call: ToolCall) -> None:
    """Refuse a call that must not be executed.

    Raises:
        InvalidArgumentsError: it is not valid, or the token budget cut it short.
    """
    if reason := problem(call):
        raise InvalidArgumentsError(f"the call of {call.name!r} must not run: {reason}", place=Place(tool=call.name))


def cut_places(message: Message, cut: Sequence[str]) -> list[str]:
    """Return where the budget cut an answer: pointers into its text, or name and pointer for calls."""
    return [*cut, *(call.name + pointer for call in message.tool_calls for pointer in call.cut)]


def require_whole(generation: Generation | Finish, params: GenerateParams) -> None:
    """Refuse a structured answer that the token budget cut: the framework would take it for a whole one.

    Raises:
        BudgetError: the token budget ran out inside the structured answer.
    """
    if generation.cut and params.json_mode is not None:
        places = ", ".join(pointer or "(root)" for pointer in generation.cut)
        raise BudgetError(f"the token budget ran out inside the answer, at {places}", hint="raise max_tokens")


def require_ended(finish: Finish) -> None:
    """Refuse an answer that was cancelled on the way: frameworks take what came for all of it.

    Raises:
        CancelledError: it was.
    """
    if finish.reason == "cancelled":
        raise CancelledError("the generation was cancelled", hint="the partial text is in the stream's events")


def forced_share(usage: Usage) -> float:
    """Return the share of forced tokens in the output."""
    return round(usage.forced_tokens / usage.completion_tokens, 4) if usage.completion_tokens else 0.0


class Collector(MessageBuilder):
    """Collector of the events of one stream so far.

    Attributes:
        started: the calls that have begun, by index.
        arguments: the arguments so far of each, as JSON text.
    """

    def __init__(self) -> None:
        super().__init__()
        self.started: dict[int, CallStart] = {}
        self.arguments: dict[int, str] = {}

    def add(self, event: Event | Generation) -> None:
        """Take the next event."""
        super().add(event)
        if isinstance(event, CallStart):
            self.started[event.index] = event
        elif isinstance(event, ArgumentsDelta):
            self.arguments[event.index] = self.arguments.get(event.index, "") + event.text
