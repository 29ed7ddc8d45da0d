"""How sure a model was of a call: the probabilities of its tool and of its finite values."""

from __future__ import annotations

from collections.abc import Sequence

from ..conversation.events import CallSureness, ChoiceMade
from ..conversation.messages import ToolCall
from .json_places import Places

#: Roles of text that is a value, not a name or a bracket (see `Places.at`).
_VALUES = ("string", "number", "literal")


def sureness(raw: str, calls: Sequence[ToolCall], choices: Sequence[ChoiceMade]) -> tuple[CallSureness, ...]:
    """Return how sure the model was of each call.

    Args:
        raw: the text of the answer.
        calls: its calls.
        choices: its choices among whole words, in order.

    Returns:
        For each call the probability of its tool, and those of its values, as far as they were exact choices. Values in
        other notations than JSON have none.
    """
    found: list[CallSureness] = []
    rest = list(choices)
    place = 0
    for call in calls:
        start = -1 if call.raw is None else raw.find(call.raw, place)
        end = start + len(call.raw or "")
        before = [made for made in rest if made.value == call.name and (start < 0 or made.start < start)]
        tool = before[0].probabilities.get(call.name) if before else None
        if before:
            rest = rest[rest.index(before[0]) + 1 :]
        values: dict[str, float] = {}
        if start >= 0:
            places = Places(raw[start:end])
            for made in [made for made in rest if start <= made.start < end]:
                pointer, role = places.at(made.start - start)
                if role in _VALUES:
                    values[pointer] = made.probabilities[made.value]
            rest = [made for made in rest if made.start >= end]
            place = end
        found.append(CallSureness(call.id, call.name, tool, values))
    return tuple(found)
