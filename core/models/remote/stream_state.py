"""What has been told of an answer while it came, and the whole of it in the end."""

from __future__ import annotations

from dataclasses import dataclass

from ...conversation.events import Event, Finish, Generation, ReasoningDelta, TextDelta, Usage
from ...conversation.messages import Message, ToolCall
from ...generation.driver import Item
from .answer_judge import Verdict, call_events


@dataclass(frozen=True)
class RemoteGeneration(Generation):
    """The whole result of one generation by a server, and how it came to be.

    Attributes:
        form: how the server was asked to hold the answer to what was asked for, for example ``"strict tools"``,
            ``"json_schema"`` or (in words alone) ``"prompt"``.
        left_out: what of the schemas was not sent, since the server's dialect cannot take it: the tool's name, or
            ``response``, and a JSON pointer. All of it was checked here.
        attempts: how often the server was asked.
    """

    form: str = "text"
    left_out: tuple[str, ...] = ()
    attempts: int = 1


@dataclass(frozen=True)
class RemoteFinish(Finish):
    """The end of a streamed answer by a server, and how the answer came to be; attributes as of `RemoteGeneration`."""

    form: str = "text"
    left_out: tuple[str, ...] = ()
    attempts: int = 1


class Told:
    """What has been told of an answer so far."""

    def __init__(self) -> None:
        self.text: list[str] = []
        self.reasoning: list[str] = []
        self.calls: list[ToolCall] = []

    def add(self, event: Item) -> None:
        """Take an item that is handed on."""
        if isinstance(event, TextDelta):
            self.text.append(event.text)
        elif isinstance(event, ReasoningDelta):
            self.reasoning.append(event.text)

    def rest(self, verdict: Verdict) -> list[Event]:
        """The events of a verdict that have not been told; they are told now."""
        shown = "".join(self.text)
        more = verdict.text
        if shown and verdict.text.startswith(shown):
            more = verdict.text[len(shown) :]
        elif shown:
            # An answer that was asked for again: the text before its calls has been told once.
            more = "" if verdict.calls else f"\n{verdict.text}"
        events: list[Event] = [TextDelta(more)] if more else []
        self.text += [more] if more else []
        self.calls = list(verdict.calls)
        return [*events, *call_events(verdict.calls)]

    def message(self) -> Message:
        """The assistant's turn."""
        reasoning = "".join(self.reasoning) or None
        return Message("assistant", "".join(self.text), reasoning=reasoning, tool_calls=tuple(self.calls))

    def generation(self, finish: RemoteFinish, raw: str) -> RemoteGeneration:
        """Return the whole result."""
        return RemoteGeneration(
            self.message(),
            finish.reason,
            finish.usage,
            raw=raw,
            form=finish.form,
            left_out=finish.left_out,
            attempts=finish.attempts,
        )

    def cancelled(self) -> Generation:
        """What there is of an answer that the caller did not want any more."""
        return Generation(self.message(), "cancelled", Usage())
