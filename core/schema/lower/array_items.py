"""Goals of the items of an array, by position."""

from __future__ import annotations

from typing import NamedTuple

from ...errors import LimitError
from ..normal.conjunction import Arrays, Goal, negated
from ..normal.parts import fixed_positions, item_goal
from .merged_objects import MAX_SUBSETS, MAX_WAYS, MergedObjects, too_many_ways


def item_goals(
    merged: MergedObjects, arrays: Arrays, count: int = 0, counted: tuple[int, ...] | None = None
) -> tuple[Goal, ...]:
    """Return the goals that the items from a position on may have, each once.

    Args:
        merged: knows which conditions one value may satisfy.
        arrays: the conjunction of the array.
        count: the position.
        counted: for each `Contains`, the number of items counted before it; None: no items.
    """
    size = fixed_positions(arrays)
    counted = (0,) * len(arrays.contains) if counted is None else counted
    return tuple(
        {
            (*item_goal(arrays, index), *asked): None
            for index in range(min(count, size), size + 1)
            for asked, _ in ways_to_count(merged, arrays, index, counted)
        }
    )


class Way(NamedTuple):
    """A way to count an item for some of the `Contains` of an array.

    Attributes:
        asked: the further goal of the item.
        counted: for each `Contains`, the number of items counted after it.
    """

    asked: Goal
    counted: tuple[int, ...]


def ways_to_count(merged: MergedObjects, arrays: Arrays, count: int, counted: tuple[int, ...]) -> list[Way]:
    """Return the sets of `Contains` for which an item may count.

    A `Contains` with a maximum counts every item that satisfies it: any other item must satisfy its negation. Without a
    maximum, items are counted up to its minimum, and an item that is not counted may be anything.

    Args:
        merged: knows which conditions one value may satisfy.
        arrays: the conjunction of the array.
        count: the position of the item.
        counted: for each `Contains`, the number of items counted before it.

    Raises:
        LimitError: they are too many.
    """
    if not arrays.contains:
        return [Way((), counted)]
    here = [
        index
        for index, part in enumerate(arrays.contains)
        if part.first <= count and (part.end is None or count < part.end)
    ]
    # Those without a maximum are met like the demands on an object. Not if items must not repeat: then the values of
    # each goal are counted, so that all combinations are goals.
    as_demands = [index for index in here if arrays.contains[index].most is None and not arrays.unique]
    meets = tuple([(index, arrays.contains[index].formula) for index in as_demands])
    open = sum([1 << index for index in as_demands if counted[index] < arrays.contains[index].least])
    own = item_goal(arrays, count)
    try:
        # Each way: the `Contains` that count the item, as bits, and the further goal of the item.
        ways = merged.meeting(own, meets, open) if open else [(0, ())]
    except LimitError:
        raise too_many_ways("contains") from None
    for index in here:
        part = arrays.contains[index]
        most = part.least if part.most is None else part.most  # further items are not counted
        if index in as_demands or (part.most is None and counted[index] >= most):
            continue
        counting = [(bits | 1 << index, (*goal, part.formula)) for bits, goal in ways if counted[index] < most]
        if part.most is not None:  # an item that satisfies it is counted
            denied = negated(part.formula)
            ways = [(bits, (*goal, denied)) for bits, goal in ways]
        ways = [*counting, *ways]
        if len(here) > MAX_SUBSETS and not arrays.unique:  # few of all combinations have items
            ways = [(bits, goal) for bits, goal in ways if merged.lowering.branches((*own, *goal))]
        if len(ways) > MAX_WAYS:
            raise too_many_ways("contains")
    return [
        Way(goal, tuple([number + (bits >> index & 1) for index, number in enumerate(counted)])) for bits, goal in ways
    ]


def ample_count(arrays: Arrays) -> int:
    """Return a number of values that items which must not repeat cannot use up before the array may end; 0 if it may
    always end."""
    needed = arrays.least + sum(part.least for part in arrays.contains)
    return 2 * (needed + fixed_positions(arrays)) + 4 if needed else 0
