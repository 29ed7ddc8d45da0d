"""Results of remote answers: what was streamed already, and the whole of it in the end."""

from __future__ import annotations

from dataclasses import dataclass

from ...conversation.events import Event, Finish, Generation, TextDelta
from ...conversation.messages import Message
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


def remaining_events(sent: str, verdict: Verdict) -> list[Event]:
    """Return the events of an answer that was found valid, but for the text that was sent already.

    Args:
        sent: the text that was streamed, of earlier attempts too.
        verdict: the valid answer.
    """
    more = verdict.text
    if sent and more.startswith(sent):
        more = more[len(sent) :]
    elif sent:
        # An answer that was asked for again: the text before its calls has been sent once.
        more = "" if verdict.calls else f"\n{more}"
    return [*([TextDelta(more)] if more else ()), *call_events(verdict.calls)]


def remote_generation(message: Message, finish: RemoteFinish, raw: str) -> RemoteGeneration:
    """Return the whole result of an answer."""
    return RemoteGeneration(
        message,
        finish.reason,
        finish.usage,
        raw=raw,
        form=finish.form,
        left_out=finish.left_out,
        attempts=finish.attempts,
    )
