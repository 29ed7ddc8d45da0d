"""Arrays to grammar nodes: items by position, counts, what must be contained, and items that do not repeat."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache
from itertools import product
from typing import TYPE_CHECKING, Any

from ...errors import LimitError
from ...language.lookback import Written
from ...language.node_kinds import BEYOND
from ..normal.conjunction import Any_, Arrays, Contains, Formula, Goal, negated, same_value
from .values import Supply, canonical, decoded, fixed

if TYPE_CHECKING:
    from .lowering import Lowering

#: Maximum number of values that are followed one by one, because items of which there are few may be any of them.
MAX_SPECIAL = 200

_NONE: frozenset[str] = frozenset()


class _Layout:
    """What the places of one array share.

    Attributes:
        arrays: what is asked.
        limit: from how many items on their number does not matter; None: it always may.
        places: what may stand after ``[`` or after an item, by place.
        few: where items must not repeat, the values (canonical texts) of those goals of items that have few; None: not
            asked yet.
        classes: what `ArrayLowering._classes` found.
    """

    __slots__ = ("arrays", "classes", "few", "limit", "places")

    def __init__(self, arrays: Arrays) -> None:
        self.arrays = arrays
        self.limit: int | None = None
        if arrays.most is None:
            self.limit = max(arrays.least, 1, fixed(arrays))
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

    __slots__ = ("_lowering", "alike", "count", "found", "layout", "left", "written")

    def __init__(
        self,
        lowering: ArrayLowering,
        layout: _Layout,
        count: int,
        found: tuple[int, ...],
        written: frozenset[str] | None,
        left: tuple[int, ...],
        alike: frozenset[str],
    ) -> None:
        self._lowering = lowering
        self.layout = layout
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

    def __init__(self, lowering: Lowering) -> None:
        self.lowering = lowering
        self.nodes = lowering.nodes
        self._layouts: dict[Arrays, _Layout] = {}
        self._opening = self.nodes.literal(b"[")
        self._closing = self.nodes.literal(b"]")
        self._comma = self.nodes.seq(self.nodes.literal(lowering.comma), lowering.space)

    def node(self, arrays: Arrays, excluded: frozenset[str] = _NONE) -> int:
        """Return the arrays that satisfy a conjunction, but for some (canonical texts)."""
        layout = self._layouts.get(arrays)
        if layout is None:
            layout = self._layouts[arrays] = _Layout(self._bounded(arrays) if arrays.unique else arrays)
        arrays = layout.arrays
        if arrays.most is not None and arrays.least > arrays.most:
            return self.nodes.EMPTY
        written = _NONE if arrays.unique else None
        found = (0,) * len(arrays.contains)
        left: tuple[int, ...] = ()
        if arrays.unique:
            sizes = Counter(self._classes(layout, 0, found).values())
            most = self._needed(arrays, 0, found) + len(excluded)
            left = tuple(min(sizes[number], most) for number in range(len(sizes)))
        start = self._items(layout, 0, found, written, left, excluded)
        return self.nodes.seq(self._opening, start)

    def _items(
        self,
        layout: _Layout,
        count: int,
        found: tuple[int, ...],
        written: frozenset[str] | None,
        left: tuple[int, ...],
        alike: frozenset[str],
    ) -> int:
        """Return what may stand after ``[`` or after an item."""
        if layout.limit is not None and count > layout.limit and not alike:  # so that the same places meet
            count = layout.limit
        key: Any = (count, found, written, left, alike)
        if not layout.arrays.unique and not alike:
            key = (count, found) if found else count
        known = layout.places.get(key)
        if known is None:
            place = _Place(self, layout, count, found, written, left, alike)
            known = layout.places[key] = self.nodes.lazy(place, place)
        return known

    def expand(self, place: _Place) -> int:
        """Return what may stand at a place."""
        nodes, lowering, arrays, count = self.nodes, self.lowering, place.layout.arrays, place.count
        options = []
        enough = all(found >= each.least for found, each in zip(place.found, arrays.contains, strict=True))
        if count >= arrays.least and enough and all(len(decoded(array)) != count for array in place.alike):
            options.append(self._closing)
        if arrays.most is None or count < arrays.most:
            goal = self.goal(arrays, count)
            comma = nodes.EPSILON if count == 0 else self._comma
            if not arrays.contains and not arrays.unique and not place.alike:
                after = self._items(place.layout, count + 1, (), None, (), _NONE)
                options.append(nodes.seq(comma, nodes.seq(lowering.value(goal), after)))
            else:
                for asked, found in self.counted(arrays, count, place.found):
                    options.append(nodes.seq(comma, self._item(place, (*goal, *asked), found)))
        return nodes.seq(lowering.space, nodes.alt(options))

    def goal(self, arrays: Arrays, index: int) -> Goal:
        """Return what is asked of the item at a position."""
        goal: list[Formula] = []
        for part in arrays.parts:
            if index < len(part.prefix):
                goal.append(part.prefix[index])
            elif part.items is not None:
                goal.append(part.items)
        for rest in arrays.rests:
            if all(index >= len(part.prefix) for part in rest.parts):
                goal.append(Any_((rest.formula, *rest.found)) if rest.found else rest.formula)
        return tuple(goal)

    @staticmethod
    def counted(arrays: Arrays, count: int, found: tuple[int, ...]) -> Iterator[tuple[Goal, tuple[int, ...]]]:
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

    # -- items that differ -------------------------------------------------------------------------------------

    def _item(self, place: _Place, goal: Goal, found: tuple[int, ...]) -> int:
        """Return an item, and everything after it."""
        nodes, lowering, layout = self.nodes, self.lowering, place.layout
        heads: dict[str, set[str]] = {}  # what arrays that it must differ from have here
        for array in place.alike:
            items = decoded(array)
            if len(items) > place.count:
                heads.setdefault(canonical(items[place.count]), set()).add(array)
        written: frozenset[str] = place.written or _NONE
        alone: set[str] = set(heads)
        classes: dict[str, int] = {}
        if layout.arrays.unique:
            classes = self._classes(layout, place.count, place.found)
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
        layout, count = place.layout, place.count + 1
        if not layout.arrays.unique:
            return self._items(layout, count, found, None, (), alike)
        left = self._left(place, value, found, len(alike))
        if alike:
            assert place.written is not None and value is not None
            return self._items(layout, count, found, place.written | {value}, left, alike)
        if layout.limit is not None:
            count = min(count, layout.limit)

        def resolve(before: Written) -> int:
            spelling = self.lowering.spelling
            if spelling is None:
                items = [_read(item) for item in before.items()]
            else:
                items = [canonical(item) for item in spelling.items_before(before.text())]
            return self._items(layout, count, found, frozenset(items), left, _NONE)

        # As long as some items must be contained, what is known to be written is not planned once more: else others
        # might be planned before them, because they only look shorter, again and again.
        counts = zip(found, layout.arrays.contains, strict=True)
        written = place.written if any(number < each.least for number, each in counts) else None
        static = self._items(layout, count, found, written, left, _NONE)
        return self.nodes.dynamic(("item", layout, count, found, left, written), static, resolve, BEYOND)

    # -- whether enough values are left ------------------------------------------------------------------------

    @staticmethod
    def bound(arrays: Arrays) -> int:
        """Return how many values are so many that items which must not repeat cannot use them up before the array may
        end; 0 if it may always end."""
        needed = arrays.least + sum(each.least for each in arrays.contains)
        return 2 * (needed + fixed(arrays)) + 4 if needed else 0

    def _bounded(self, arrays: Arrays) -> Arrays:
        """Return the same arrays, with no more items than there are values for them, where all have the same goal."""
        bound = self.bound(arrays)
        goals = self.goals(arrays) if bound else ()
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
        return max(arrays.least, fixed(arrays), count) - count + missing

    def _left(self, place: _Place, value: str | None, found: tuple[int, ...], alike: int) -> tuple[int, ...]:
        """Return `_Place.left` after an item: a special value, or (None) another."""
        layout = place.layout
        before = self._classes(layout, place.count, place.found)
        after = self._classes(layout, place.count + 1, found)
        left = [0] * (1 + max(after.values(), default=-1))
        for number, each in {number: each for each, number in before.items()}.items():
            if each in after:  # with all of its class: less is asked than before
                left[after[each]] += place.left[number]
        if value in before and value in after:
            left[after[value]] -= 1
        most = self._needed(layout.arrays, place.count + 1, found) + alike
        return tuple(min(number, most) for number in left)

    def _classes(self, layout: _Layout, count: int, found: tuple[int, ...]) -> dict[str, int]:
        """Return the special values at a place with the numbers of their classes: the values on which it may depend
        whether the array can be finished."""
        arrays = layout.arrays
        size = fixed(arrays)
        open_ones = tuple(
            number < (each.least if each.most is None else each.most)
            for number, each in zip(found, arrays.contains, strict=True)
        )
        key = min(count, size), open_ones
        result = layout.classes.get(key)
        if result is None:
            if layout.few is None:
                layout.few = self._few(arrays)
            goals = [goal for goal in self.goals(arrays, count, found) if goal in layout.few]
            satisfied: dict[str, list[int]] = {}
            for index, goal in enumerate(goals):
                for value in layout.few[goal]:
                    satisfied.setdefault(value, []).append(index)
            numbers: dict[tuple[int, ...], int] = {}
            result = layout.classes[key] = {
                value: numbers.setdefault(tuple(satisfied[value]), len(numbers)) for value in sorted(satisfied)
            }
        return result

    def _few(self, arrays: Arrays) -> dict[Goal, frozenset[str]]:
        """Return those goals of items that have few values, with these; none, if all items have the same goal."""
        bound = self.bound(arrays)
        goals = self.goals(arrays) if bound else ()
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

    def goals(self, arrays: Arrays, count: int = 0, found: tuple[int, ...] | None = None) -> tuple[Goal, ...]:
        """Return everything that may be asked of an item from a place on (default: wherever it is)."""
        size = fixed(arrays)
        found = (0,) * len(arrays.contains) if found is None else found
        return tuple(
            {
                (*self.goal(arrays, index), *asked): None
                for index in range(min(count, size), size + 1)
                for asked, _ in self.counted(arrays, index, found)
            }
        )

    def _supply(self, arrays: Arrays, goal: Goal, bound: int) -> Supply:
        supply = self.lowering.values.of(goal, bound)
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
        if not all(lowering.goal_holds(self.goal(arrays, index), item) for index, item in enumerate(value)):
            return False
        return all(self._contains(each, value) for each in arrays.contains)

    def _contains(self, contains: Contains, value: list[Any]) -> bool:
        items = value[contains.first : contains.end]
        found = sum(self.lowering.goal_holds((contains.formula,), item) for item in items)
        return contains.least <= found and (contains.most is None or found <= contains.most)


def _read(spelled: bytes) -> str:
    return _remembered(spelled) if len(spelled) <= 1_000 else canonical(json.loads(spelled))


@lru_cache(maxsize=8_192)  # the items of an array are read again at each of its items
def _remembered(spelled: bytes) -> str:
    return canonical(json.loads(spelled))
