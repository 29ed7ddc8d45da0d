"""What arrays ask of their items, position by position."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from ..normal.conjunction import AnyOf, Arrays, Formula, Goal, negated


def fixed_positions(arrays: Arrays) -> int:
    """Return how many positions there are of whose items something is asked that is not asked of all."""
    sizes = [len(part.prefix) for part in arrays.parts]
    sizes += [len(part.prefix) for rest in arrays.unevaluated for part in rest.parts]
    sizes += [each.first if each.end is None else each.end for each in arrays.contains]
    return max(sizes, default=0)


def item_goal(arrays: Arrays, index: int) -> Goal:
    """Return what is asked of the item at a position."""
    goal: list[Formula] = []
    for part in arrays.parts:
        if index < len(part.prefix):
            goal.append(part.prefix[index])
        elif part.items is not None:
            goal.append(part.items)
    for rest in arrays.unevaluated:
        if all(index >= len(part.prefix) for part in rest.parts):
            goal.append(AnyOf((rest.formula, *rest.found)) if rest.found else rest.formula)
    return tuple(goal)


def item_goals(arrays: Arrays, count: int = 0, found: tuple[int, ...] | None = None) -> tuple[Goal, ...]:
    """Return everything that may be asked of an item from a place on (default: wherever it is)."""
    size = fixed_positions(arrays)
    found = (0,) * len(arrays.contains) if found is None else found
    return tuple(
        {
            (*item_goal(arrays, index), *asked): None
            for index in range(min(count, size), size + 1)
            for asked, _ in ways_to_count(arrays, index, found)
        }
    )


def ways_to_count(arrays: Arrays, count: int, found: tuple[int, ...]) -> Iterator[tuple[Goal, tuple[int, ...]]]:
    """Yield the ways in which an item may count for what must be contained, and what each asks of it.

    Args:
        arrays: what is asked of the array.
        count: the position of the item.
        found: how many items were counted for each `Contains` before it.
    """
    ways: list[list[tuple[Goal, int]]] = []
    for number, each in zip(found, arrays.contains, strict=True):
        if count < each.first or (each.end is not None and count >= each.end):
            ways.append([((), number)])
        elif each.most is None:  # whether it matches is of no interest once enough do
            ways.append([((each.formula,), number + 1), ((), number)] if number < each.least else [((), number)])
        else:
            beside: tuple[Goal, int] = ((negated(each.formula),), number)
            ways.append([((each.formula,), number + 1), beside] if number < each.most else [beside])
    for way in product(*ways):
        yield tuple(formula for goal, _ in way for formula in goal), tuple(number for _, number in way)


def ample_count(arrays: Arrays) -> int:
    """Return how many values are so many that items which must not repeat cannot use them up before the array may
    end; 0 if it may always end."""
    needed = arrays.least + sum(each.least for each in arrays.contains)
    return 2 * (needed + fixed_positions(arrays)) + 4 if needed else 0
