"""Goals of the items of an array, by position."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from ..normal.conjunction import Arrays, Goal, negated
from ..normal.parts import fixed_positions, item_goal

#: Maximum number of `Contains` of one array for which an item may count in any combination; each subset is one option.
MAX_CONTAINS = 7


def item_goals(arrays: Arrays, count: int = 0, counted: tuple[int, ...] | None = None) -> tuple[Goal, ...]:
    """Return the goals that the items from a position on may have (default: all items)."""
    size = fixed_positions(arrays)
    counted = (0,) * len(arrays.contains) if counted is None else counted
    return tuple(
        {
            (*item_goal(arrays, index), *asked): None
            for index in range(min(count, size), size + 1)
            for asked, _ in ways_to_count(arrays, index, counted)
        }
    )


def ways_to_count(arrays: Arrays, count: int, counted: tuple[int, ...]) -> Iterator[tuple[Goal, tuple[int, ...]]]:
    """Yield the subsets of the `Contains` for which an item may count: each as a further goal of the item, and the
    counts after it.

    Of more than `MAX_CONTAINS`, an item counts for all, for one, or for none.

    Args:
        arrays: the conjunction of the array.
        count: the position of the item.
        counted: for each `Contains`, the number of items counted before it.
    """
    ways: list[list[tuple[Goal, int]]] = []
    for number, part in zip(counted, arrays.contains, strict=True):
        if count < part.first or (part.end is not None and count >= part.end):
            ways.append([((), number)])
        elif part.most is None:  # no item is counted once there are enough
            ways.append([((part.formula,), number + 1), ((), number)] if number < part.least else [((), number)])
        else:
            other: tuple[Goal, int] = ((negated(part.formula),), number)
            ways.append([((part.formula,), number + 1), other] if number < part.most else [other])
    for way in _few(ways) if leaves_ways_out(arrays) else product(*ways):
        yield tuple(formula for goal, _ in way for formula in goal), tuple(number for _, number in way)


def leaves_ways_out(arrays: Arrays) -> bool:
    """Return True if there are too many `Contains` for items to count for any of them at once."""
    return len(arrays.contains) > MAX_CONTAINS


def _few(ways: list[list[tuple[Goal, int]]]) -> Iterator[list[tuple[Goal, int]]]:
    """Yield the ways to count for all, for one or for none."""
    free = [index for index, way in enumerate(ways) if len(way) > 1]
    chosen = [free, *([index] for index in free)] if len(free) > 1 else [free]
    for some in [*chosen, []] if free else chosen:
        yield [way[0] if len(way) == 1 or index in some else way[1] for index, way in enumerate(ways)]


def ample_count(arrays: Arrays) -> int:
    """Return a number of values that items which must not repeat cannot use up before the array may end; 0 if it may
    always end."""
    needed = arrays.least + sum(part.least for part in arrays.contains)
    return 2 * (needed + fixed_positions(arrays)) + 4 if needed else 0
