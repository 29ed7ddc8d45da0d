"""Arrays to grammar nodes: items by position, counts, what must be contained, and items that do not repeat."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from functools import lru_cache
from typing import Any

from ...errors import LimitError
from ...language.lookback import Written
from ...language.node_kinds import BEYOND
from ..normal.conjunction import Arrays, Contains, Goal, same_value
from .array_items import ample_count, fixed_positions, item_goal, item_goals, ways_to_count
from .context import GoalNodes, Supply
from .value_key import value_key, value_of_key

#: Maximum number of values that are followed one by one, because items of which there are few may be any of them.
MAX_SPECIAL = 200

_NONE: frozenset[str] = frozenset()


class _ArrayPlan:
    """What the places of one array share.

    Attributes:
        arrays: what is asked.
        limit: from how many items on their number does not matter; None: it always may.
        places: what may stand after ``[`` or after an item, by place.
        few: where items must not repeat, the values (value keys) of those goals of items that have few; None: not
            asked yet.
        classes: what `ArrayLowering._classes` found.
    """

    __slots__ = ("arrays", "classes", "few", "limit", "places")

    def __init__(self, arrays: Arrays) -> None:
        self.arrays = arrays
        self.limit: int | None = None
        if arrays.most is None:
            self.limit = max(arrays.least, 1, fixed_positions(arrays))
        self.places: dict[Any, int] = {}
        self.few: dict[Goal, frozenset[str]] | None = None
        self.classes: dict[Any, dict[str, int]] = {}


class _Place:
    """Where an array is. As a rule: what may stand there.

    Attributes:
        count: how many items were written, as far as that matters.
        found: how many of them each `Contains` was given, as far as that matters.
        written: the items, where they must not repeat (None: they may, or it is not known what they were).
        left: how many values of each class of special values were not written yet, as far as that matters.
        alike: the arrays that this one must differ from, and that begin with the items written so far.
    """

    __slots__ = ("_lowering", "alike", "count", "found", "left", "plan", "written")

    def __init__(
        self,
        lowering: ArrayLowering,
        plan: _ArrayPlan,
        count: int,
        found: tuple[int, ...],
        written: frozenset[str] | None,
        left: tuple[int, ...],
        alike: frozenset[str],
    ) -> None:
        self._lowering = lowering
        self.plan = plan
        self.count = count
        self.found = found
        self.written = written
        self.left = left
        self.alike = alike

    def __call__(self) -> int:
        return self._lowering.expand(self)


class ArrayLowering:
    """Lowers the arrays of one document.

    Items that must not repeat: each is written as a value of its goal that none of the items before it has, so what
    begins as an item can be finished as one. What the items were is read in the text (a DYNAMIC place after each), and
    nothing is ever refused there. Whether enough different values will be left is decided beforehand. Where a goal has
    many values, what was written cannot use them up before the array may end. Where it has few (`Values`), these are
    special: a place counts how many of them are left, by class. Values that satisfy the same of the goals that may
    still be asked are of one class (which of them is left does not matter), and more than can be needed are not told
    apart; so the places stay few.
    """

    def __init__(self, lowering: GoalNodes) -> None:
        self.lowering = lowering
        self.nodes = lowering.nodes
        self._plans: dict[Arrays, _ArrayPlan] = {}
        self._opening = self.nodes.literal(b"[")
        self._closing = self.nodes.literal(b"]")
        self._comma = self.nodes.seq(self.nodes.literal(lowering.comma), lowering.space)

    def node(self, arrays: Arrays, excluded: frozenset[str] = _NONE) -> int:
        """Return the arrays that satisfy a conjunction, but for some (value keys)."""
        plan = self._plans.get(arrays)
        if plan is None:
            plan = self._plans[arrays] = _ArrayPlan(self._bounded(arrays) if arrays.unique else arrays)
        arrays = plan.arrays
        if arrays.most is not None and arrays.least > arrays.most:
            return self.nodes.EMPTY
        written = _NONE if arrays.unique else None
        found = (0,) * len(arrays.contains)
        left: tuple[int, ...] = ()
        if arrays.unique:
            sizes = Counter(self._classes(plan, 0, found).values())
            most = self._needed(arrays, 0, found) + len(excluded)
            left = tuple(min(sizes[number], most) for number in range(len(sizes)))
        start = self._items(plan, 0, found, written, left, excluded)
        return self.nodes.seq(self._opening, start)

    def _items(
        self,
        plan: _ArrayPlan,
        count: int,
        found: tuple[int, ...],
        written: frozenset[str] | None,
        left: tuple[int, ...],
        alike: frozenset[str],
    ) -> int:
        """Return what may stand after ``[`` or after an item."""
        if plan.limit is not None and count > plan.limit and not alike:  # so that the same places meet
            count = plan.limit
        key: Any = (count, found, written, left, alike)
        if not plan.arrays.unique and not alike:
            key = (count, found) if found else count
        known = plan.places.get(key)
        if known is None:
            place = _Place(self, plan, count, found, written, left, alike)
            known = plan.places[key] = self.nodes.lazy(place, place)
        return known

    def expand(self, place: _Place) -> int:
        """Return what may stand at a place."""
        nodes, lowering, arrays, count = self.nodes, self.lowering, place.plan.arrays, place.count
        options = []
        enough = all(found >= each.least for found, each in zip(place.found, arrays.contains, strict=True))
        if count >= arrays.least and enough and all(len(value_of_key(array)) != count for array in place.alike):
            options.append(self._closing)
        if arrays.most is None or count < arrays.most:
            goal = item_goal(arrays, count)
            comma = nodes.EPSILON if count == 0 else self._comma
            if not arrays.contains and not arrays.unique and not place.alike:
                after = self._items(place.plan, count + 1, (), None, (), _NONE)
                options.append(nodes.seq(comma, nodes.seq(lowering.value(goal), after)))
            else:
                for asked, found in ways_to_count(arrays, count, place.found):
                    options.append(nodes.seq(comma, self._item(place, (*goal, *asked), found)))
        return nodes.seq(lowering.space, nodes.alt(options))

    # -- items that differ -------------------------------------------------------------------------------------

    def _item(self, place: _Place, goal: Goal, found: tuple[int, ...]) -> int:
        """Return an item, and everything after it."""
        nodes, lowering, plan = self.nodes, self.lowering, place.plan
        heads: dict[str, set[str]] = {}  # what arrays that it must differ from have here
        for array in place.alike:
            items = value_of_key(array)
            if len(items) > place.count:
                heads.setdefault(value_key(items[place.count]), set()).add(array)
        written: frozenset[str] = place.written or _NONE
        alone: set[str] = set(heads)
        classes: dict[str, int] = {}
        if plan.arrays.unique:
            classes = self._classes(plan, place.count, place.found)
            alone.update(value for value, number in classes.items() if place.left[number])
            alone -= written
        choices = [(value, self._after(place, value, found, frozenset(heads.get(value, _NONE)))) for value in alone]
        others = lowering.without(goal, written.union(alone, classes))
        return nodes.alt(
            [lowering.chosen(goal, sorted(choices)), nodes.seq(others, self._after(place, None, found, _NONE))]
        )

    def _after(self, place: _Place, value: str | None, found: tuple[int, ...], alike: frozenset[str]) -> int:
        """Return what may stand after an item: one of the special values, of those that other arrays have there, or
        (None) any other."""
        plan, count = place.plan, place.count + 1
        if not plan.arrays.unique:
            return self._items(plan, count, found, None, (), alike)
        left = self._left(place, value, found, len(alike))
        if alike:
            assert place.written is not None and value is not None
            return self._items(plan, count, found, place.written | {value}, left, alike)
        if plan.limit is not None:
            count = min(count, plan.limit)

        def resolve(before: Written) -> int:
            spelling = self.lowering.spelling
            if spelling is None:
                items = [_read(item) for item in before.items()]
            else:
                items = [value_key(item) for item in spelling.items_before(before.text())]
            return self._items(plan, count, found, frozenset(items), left, _NONE)

        # As long as some items must be contained, what is known to be written is not planned once more: else others
        # might be planned before them, because they only look shorter, again and again.
        counts = zip(found, plan.arrays.contains, strict=True)
        written = place.written if any(number < each.least for number, each in counts) else None
        static = self._items(plan, count, found, written, left, _NONE)
        return self.nodes.dynamic(("item", plan, count, found, left, written), static, resolve, BEYOND)

    # -- whether enough values are left ------------------------------------------------------------------------

    def _bounded(self, arrays: Arrays) -> Arrays:
        """Return the same arrays, with no more items than there are values for them, where all have the same goal."""
        bound = ample_count(arrays)
        goals = item_goals(arrays) if bound else ()
        if len(goals) != 1:
            return arrays
        supply = self._supply(arrays, goals[0], bound)
        if not supply.is_complete:
            return arrays
        number = len(supply.values)
        return replace(arrays, most=number if arrays.most is None else min(arrays.most, number))

    @staticmethod
    def _needed(arrays: Arrays, count: int, found: tuple[int, ...]) -> int:
        """Return how many more items an array needs at most, if it can be finished at all."""
        missing = sum(max(0, each.least - number) for number, each in zip(found, arrays.contains, strict=True))
        return max(arrays.least, fixed_positions(arrays), count) - count + missing

    def _left(self, place: _Place, value: str | None, found: tuple[int, ...], alike: int) -> tuple[int, ...]:
        """Return `_Place.left` after an item: a special value, or (None) another."""
        plan = place.plan
        before = self._classes(plan, place.count, place.found)
        after = self._classes(plan, place.count + 1, found)
        left = [0] * (1 + max(after.values(), default=-1))
        for number, each in {number: each for each, number in before.items()}.items():
            if each in after:  # with all of its class: less is asked than before
                left[after[each]] += place.left[number]
        if value in before and value in after:
            left[after[value]] -= 1
        most = self._needed(plan.arrays, place.count + 1, found) + alike
        return tuple(min(number, most) for number in left)

    def _classes(self, plan: _ArrayPlan, count: int, found: tuple[int, ...]) -> dict[str, int]:
        """Return the special values at a place with the numbers of their classes: the values on which it may depend
        whether the array can be finished."""
        arrays = plan.arrays
        size = fixed_positions(arrays)
        open_ones = tuple(
            number < (each.least if each.most is None else each.most)
            for number, each in zip(found, arrays.contains, strict=True)
        )
        key = min(count, size), open_ones
        result = plan.classes.get(key)
        if result is None:
            if plan.few is None:
                plan.few = self._few(arrays)
            goals = [goal for goal in item_goals(arrays, count, found) if goal in plan.few]
            satisfied: dict[str, list[int]] = {}
            for index, goal in enumerate(goals):
                for value in plan.few[goal]:
                    satisfied.setdefault(value, []).append(index)
            numbers: dict[tuple[int, ...], int] = {}
            result = plan.classes[key] = {
                value: numbers.setdefault(tuple(satisfied[value]), len(numbers)) for value in sorted(satisfied)
            }
        return result

    def _few(self, arrays: Arrays) -> dict[Goal, frozenset[str]]:
        """Return those goals of items that have few values, with these; none, if all items have the same goal."""
        bound = ample_count(arrays)
        goals = item_goals(arrays) if bound else ()
        if len(goals) < 2:
            return {}
        special: frozenset[str] = _NONE
        while True:  # what seemed many may be few without the special values
            supplies = {goal: self._supply(arrays, goal, bound + len(special)) for goal in goals}
            few = {goal: frozenset(supply.values) for goal, supply in supplies.items() if supply.is_complete}
            found = special.union(*few.values())
            if len(found) > MAX_SPECIAL:
                raise LimitError(
                    f"items that must not repeat depend on more than {MAX_SPECIAL} values",
                    hint="leave out uniqueItems, or what else is asked of the number of items",
                )
            if found == special:
                return few
            special = found

    def _supply(self, arrays: Arrays, goal: Goal, bound: int) -> Supply:
        supply = self.lowering.supply(goal, bound)
        if not supply.is_complete and not supply.is_ample:
            raise LimitError(
                "the values that items which must not repeat can have could not be counted",
                hint="leave out uniqueItems, or what else is asked of the number of items",
            )
        return supply

    # -- listed values -----------------------------------------------------------------------------------------

    def holds(self, arrays: Arrays, value: list[Any]) -> bool:
        """Whether a decoded array satisfies a conjunction."""
        lowering = self.lowering
        if len(value) < arrays.least or (arrays.most is not None and len(value) > arrays.most):
            return False
        if arrays.unique and any(same_value(value[i], value[j]) for i in range(len(value)) for j in range(i)):
            return False
        if not all(lowering.goal_holds(item_goal(arrays, index), item) for index, item in enumerate(value)):
            return False
        return all(self._contains(each, value) for each in arrays.contains)

    def _contains(self, contains: Contains, value: list[Any]) -> bool:
        items = value[contains.first : contains.end]
        found = sum(self.lowering.goal_holds((contains.formula,), item) for item in items)
        return contains.least <= found and (contains.most is None or found <= contains.most)


def _read(spelled: bytes) -> str:
    return _remembered(spelled) if len(spelled) <= 1_000 else value_key(json.loads(spelled))


@lru_cache(maxsize=8_192)  # the items of an array are read again at each of its items
def _remembered(spelled: bytes) -> str:
    return value_key(json.loads(spelled))
