"""Results of remote answers: the last events of a stream, and the complete generation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Literal

from ...conversation.events import Event, Finish, Generation, TextDelta, call_events
from ...conversation.messages import Message
from .answer_judge import Verdict
from .form import ENFORCED, EXPORTED, EnforcedBy

#: ``"cut"``: the last call has no arguments, because the server's token budget ended inside them (`ToolCall.error`);
#: the text and the calls before it are as with ``"validated"``.
Guarantee = Literal["constrained", "validated", "cut"]


@dataclass(frozen=True, kw_only=True)
class Served:
    """How a server came to an answer.

    Attributes:
        form: the form of the request that the server accepted, for example ``"strict tools"``, ``"json_schema"`` or,
            for instructions only, ``"prompt"``.
        left_out: keywords that were removed from schemas, because the server does not support them: the tool's name, or
            ``response``, and a JSON pointer; for the forms with our grammar, each constraint in
            words. All of them were validated here.
        attempts: number of requests for the answer: those after an invalid one, in forms that the server refused, and
            those that were sent again to a busy server, included. Questions what the server can do are not.
        enforced: for each tool, for ``response`` (the schema of a text answer) and for each entry of ``left_out``:
            ``"server"`` if the server was told to constrain its tokens by it, ``"validation"`` if only the complete
            answer was checked. (Everything is validated, in any case.)
        is_unfinished: the budget ended inside the last call, which has no arguments.
    """

    form: str = "text"
    left_out: tuple[str, ...] = ()
    attempts: int = 1
    enforced: Mapping[str, EnforcedBy] = field(default_factory=dict)
    is_unfinished: bool = False

    @property
    def guarantee(self) -> Guarantee:
        """``"constrained"``: the server chose each token under our grammar, by our plug-in or by its own means; else
        ``"validated"``, also if `left_out` names a constraint. ``"cut"``: the last call has no arguments."""
        if self.is_unfinished:
            return "cut"
        return "constrained" if self.form == ENFORCED or (self.form in EXPORTED and not self.left_out) else "validated"

    @property
    def details(self) -> dict[str, Any]:
        """``form``, ``left_out``, ``attempts``, ``enforced`` and ``guarantee``, as JSON."""
        told = {"form": self.form, "left_out": list(self.left_out), "attempts": self.attempts}
        return {**told, "enforced": dict(self.enforced), "guarantee": self.guarantee}


@dataclass(frozen=True)
class RemoteFinish(Served, Finish):
    """End of a streamed answer by a server."""


@dataclass(frozen=True)
class RemoteGeneration(Served, Generation):
    """Result of one generation by a server."""

    def finish(self) -> RemoteFinish:
        """Return the last event of its stream."""
        return RemoteFinish(self.finish_reason, self.usage, self.cut, **_served(self))


def _served(end: Served) -> dict[str, Any]:
    return {one.name: getattr(end, one.name) for one in fields(Served)}


def remaining_events(sent: str, verdict: Verdict) -> list[Event]:
    """Return the events of a valid answer, without the text that was already streamed.

    Args:
        sent: the streamed text, including that of earlier attempts.
        verdict: the valid answer.
    """
    if verdict.is_sent:
        return []
    more = verdict.text
    if more.startswith(sent):
        more = more[len(sent) :]
    elif verdict.calls:
        more = ""  # a retried answer: an earlier attempt has sent a text before the calls
    else:
        more = f"\n{more}"  # what was sent is invalid, and cannot be taken back
    return [*([TextDelta(more)] if more else ()), *call_events(verdict.calls)]


def remote_generation(message: Message, finish: RemoteFinish, raw: str) -> RemoteGeneration:
    """Return the complete result of an answer."""
    return RemoteGeneration(message, finish.reason, finish.usage, finish.cut, raw=raw, **_served(finish))
