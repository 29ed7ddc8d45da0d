"""How sure a model was of a call: the probabilities of its tool and of its finite values.

A choice belongs to a call by its place (`CallPlaces`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..conversation.events import CallSureness, ChoiceMade
from ..conversation.messages import ToolCall
from .call_places import VALUES, CallPlaces


def sureness(
    calls: Sequence[ToolCall], choices: Sequence[ChoiceMade], places: Mapping[str, CallPlaces]
) -> tuple[CallSureness, ...]:
    """Return how sure the model was of each call.

    Args:
        calls: the calls of the answer.
        choices: its choices among whole words, in order.
        places: the places of its calls, by their ids.

    Returns:
        One result for each call, by the choices that were exact (see `CallSureness`).
    """
    made = [(_differs_at(one), one.probabilities[one.value]) for one in choices]
    return tuple(_of_call(call, made, places[call.id]) for call in calls if call.id in places)


def _of_call(call: ToolCall, choices: Sequence[tuple[int, float]], places: CallPlaces) -> CallSureness:
    """Return how sure the model was of a call. Choices outside of its name and arguments are of the markup: an id, a
    channel, whether there is a call."""
    tool: list[float] = []
    values: dict[str, float] = {}
    other: list[float] = []
    begin, end = places.name
    for at, probability in choices:
        if begin <= at < end:
            tool.append(probability)
        elif (found := places.at(at)) is not None:
            pointer, role = found
            if role in VALUES:
                values[pointer] = min(values.get(pointer, 1.0), probability)
            else:
                other.append(probability)
    return CallSureness(call.id, call.name, min(tool, default=None), values, min(other, default=None))


def _differs_at(made: ChoiceMade) -> int:
    """Return the index of the first character of a choice in which the words differ; before, the text was certain."""
    # Of all words, the first and the last in order have the least in common.
    pairs = enumerate(zip(min(made.probabilities), max(made.probabilities), strict=False))
    last = max(len(made.value) - 1, 0)
    return made.start + min(next((index for index, (one, other) in pairs if one != other), last), last)
