"""Results of remote answers: the last events of a stream, and the whole generation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from ...conversation.builder import call_events
from ...conversation.events import Event, Finish, Generation, TextDelta
from ...conversation.messages import Message
from .answer_judge import Verdict
from .servers import ENFORCED

Guarantee = Literal["constrained", "validated"]


@dataclass(frozen=True)
class RemoteGeneration(Generation):
    """Result of one generation by a server.

    Attributes:
        form: form of the request that the server took, for example ``"strict tools"``, ``"json_schema"`` or, in words
            only, ``"prompt"``.
        left_out: keywords of the schemas that were not sent, since the server does not take them: the tool's name, or
            ``response``, and a JSON pointer. All of them were checked here.
        attempts: number of requests for an answer.
    """

    form: str = "text"
    left_out: tuple[str, ...] = ()
    attempts: int = 1

    @property
    def guarantee(self) -> Guarantee:
        """``"constrained"``: a server with our plug-in chose each token under the grammar; else ``"validated"``."""
        return _guarantee(self.form)


@dataclass(frozen=True)
class RemoteFinish(Finish):
    """End of a streamed answer by a server; attributes as in `RemoteGeneration`."""

    form: str = "text"
    left_out: tuple[str, ...] = ()
    attempts: int = 1

    @property
    def guarantee(self) -> Guarantee:
        """As in `RemoteGeneration`."""
        return _guarantee(self.form)


def _guarantee(form: str) -> Guarantee:
    return "constrained" if form == ENFORCED else "validated"


def remaining_events(sent: str, verdict: Verdict) -> list[Event]:
    """Return the events of a valid answer, without the text that was streamed already.

    Args:
        sent: the text that was streamed, of earlier attempts too.
        verdict: the valid answer.
    """
    if verdict.is_sent:
        return []
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
        finish.cut,
        raw=raw,
        form=finish.form,
        left_out=finish.left_out,
        attempts=finish.attempts,
    )
