"""Lowering of arrays: items by position, counts of items, ``contains``, and items that must not repeat."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from ...dependent.roomy import is_roomy
from ...dependent.unrepeated import unless_repeated
from ...dependent.written import Written
from ...errors import LimitError, Place
from ..normal.conjunction import Arrays, Contains, Goal, negated, same_value
from ..read.located import Located
from .array_items import (
    MAX_CONTAINS,
    ample_count,
    fixed_positions,
    item_goal,
    item_goals,
    leaves_ways_out,
    ways_to_count,
)
from .context import GoalNodes, Supply, placed
from .value_key import value_key, value_of_key

#: Maximum number of special values (see `ArrayLowering`) of one array.
MAX_SPECIAL = 200

_NONE: frozenset[str] = frozenset()

#: By goal of items, its strings, and True if it has other values.
_ItemStrings = dict[Goal, tuple[int, bool]]


class _ArrayPlan:
    """Data that the places of one array share.

    Attributes:
        arrays: the conjunction.
        located: a schema that it is of; None: it is not known.
        is_plain: items are neither counted nor compared.
        goals: the goals of items, ``contains`` aside, by position.
        limit: the number of items from which on it does not matter how many there are; None: it always may.
        places: the nodes of the places, by what `ArrayLowering._rest` takes for their key.
        few: where items must not repeat, the values (value keys) of those goals of items that have few; None: not
            computed yet.
        classes: the results of `ArrayLowering._classes`.
        late: items that must not repeat have infinitely many values, so that the items before them only matter where
            the next one begins; None: not computed yet.
        late_items: the nodes of such a next item and what follows, by its position and the items before it.
        strings: where every string item is checked at its end (see `ArrayLowering`), the strings of each goal of items,
            and True if the goal has other values; None: some cannot be checked so; empty: not computed yet.
    """

    def __init__(self, arrays: Arrays, checked: bool, located: Located | None) -> None:
        self.arrays = arrays
        self.located = located
        self.is_plain = not arrays.contains and not arrays.unique
        self.goals: dict[int, Goal] = {}
        self.strings: _ItemStrings | None = {} if checked else None
        self.limit: int | None = None
        if arrays.most is None:
            self.limit = max(arrays.least, 1, fixed_positions(arrays))
        self.places: dict[object, int] = {}
        self.few: dict[Goal, frozenset[str]] | None = None
        self.late: bool | None = None
        self.late_items: dict[tuple[int, frozenset[str]], int] = {}
        self.classes: dict[object, dict[str, int]] = {}


@dataclass(slots=True, eq=False)
class _Place:
    """A state between two items of an array; as a rule, the rest of the array from there.

    Attributes:
        lowering: expands the rule.
        plan: the plan of the array.
        count: the number of items written, as far as it matters.
        counted: for each `Contains`, the number of items that were counted, as far as it matters.
        written: the items, where they must not repeat (None: they may, or it is not known what they were).
        left: for each class of special values, the number that were not written yet; where it is planned without the
            text before it, as far as the rest of an array may need them.
        alike: the arrays that this one must differ from, and that begin with the items written so far.
    """

    lowering: ArrayLowering
    plan: _ArrayPlan
    count: int
    counted: tuple[int, ...]
    written: frozenset[str] | None = None
    left: tuple[int, ...] = ()
    alike: frozenset[str] = _NONE

    def __call__(self) -> int:
        try:
            return self.lowering.expand(self)
        except LimitError as error:
            raise placed(error, self.plan.located) from None

    def otherwise(self) -> int:
        """Return the end of the array, where it may end and its next items exceed a limit."""
        return self.lowering.end(self)


class ArrayLowering:
    """Lowering of the arrays of one document.

    Where items must not repeat, the node of each item leaves out the values of the items before it, so that every item
    that was begun can be finished. Those values are read from the text (a dependent node after each item).

    Strings are only compared at their end (`unless_repeated`) where the strings of every goal of items are *roomy*:
    whatever was written before, a string that was begun can be finished. Then no state depends on them.

    Where all items have the same goal, with infinitely many values, the dependent node stands before each item instead
    of after it (`_ArrayPlan.late`): another item may always begin, so tokens that end one and go on to the next comma
    depend on nothing.

    It is decided beforehand that enough different values will be left. A goal with many values cannot run out of them
    before the array may end. The values of a goal with few (see `Values`) are *special*: a place counts how many of
    them are left. Special values that satisfy the same goals of later items form a class, in which only their number
    counts, up to the number that can be needed; so places stay few.
    """

    def __init__(self, lowering: GoalNodes) -> None:
        self.lowering = lowering
        self.nodes = lowering.nodes
        self._plans: dict[tuple[Arrays, bool], _ArrayPlan] = {}
        self._opening = self.nodes.literal(b"[")
        self._closing = self.nodes.literal(b"]")
        self._comma = self.nodes.seq(self.nodes.literal(lowering.comma), lowering.space)

    def node(self, arrays: Arrays, excluded: frozenset[str] = _NONE) -> int:
        """Return the arrays that satisfy a conjunction, but for some (value keys)."""
        # An array that must differ from others spells out the items that it shares with them.
        checked = arrays.unique and not arrays.contains and not excluded and self.lowering.syntax is None
        plan = self._plans.get((arrays, checked))
        if plan is None:
            plan = _ArrayPlan(self._bounded(arrays) if arrays.unique else arrays, checked, self.lowering.here)
            self._plans[arrays, checked] = plan
        arrays = plan.arrays
        if arrays.most is not None and arrays.least > arrays.most:
            return self.nodes.EMPTY
        written = _NONE if arrays.unique else None
        counted = (0,) * len(arrays.contains)
        left: tuple[int, ...] = ()
        if arrays.unique:
            sizes = Counter(self._classes(plan, 0, counted).values())
            most = self._needed(arrays, 0, counted) + len(excluded)
            left = tuple([min(sizes[number], most) for number in range(len(sizes))])
        start = self._rest(_Place(self, plan, 0, counted, written, left, excluded))
        return self.nodes.seq(self._opening, start)

    def _rest(self, place: _Place) -> int:
        """Return the rest of an array from a place; the same node for equal places."""
        plan = place.plan
        if plan.limit is not None and place.count > plan.limit and not place.alike:
            place.count = plan.limit
        if plan.arrays.unique or place.alike:
            key: object = (place.count, place.counted, place.written, place.left, place.alike)
        else:
            key = (place.count, place.counted) if place.counted else place.count
        node = plan.places.get(key)
        if node is None:
            instead = self.nodes.EPSILON if self._may_close(place) else None
            node = plan.places[key] = self.nodes.lazy(place, place, as_empty_as=instead)
        return node

    def end(self, place: _Place) -> int:
        """Return the end of an array from a place without further items; EMPTY if it may not end there."""
        return self.nodes.seq(self.lowering.space, self._closing) if self._may_close(place) else self.nodes.EMPTY

    def _may_close(self, place: _Place) -> bool:
        """Return True if an array may end at a place."""
        arrays = place.plan.arrays
        if place.count < arrays.least:
            return False
        for array in place.alike:
            if len(value_of_key(array)) == place.count:
                return False
        return not arrays.contains or all(map(_is_enough, place.counted, arrays.contains))

    def _goal(self, plan: _ArrayPlan, count: int) -> Goal:
        """Return the goal of the item at a position, ``contains`` aside."""
        goal = plan.goals.get(count)
        if goal is None:
            goal = plan.goals[count] = item_goal(plan.arrays, count)
        return goal

    def expand(self, place: _Place) -> int:
        """Return the rest of an array from a place, expanded."""
        nodes = self.nodes
        lowering = self.lowering
        arrays = place.plan.arrays
        count = place.count
        options: list[int] = []
        if self._may_close(place):
            options.append(self._closing)
        if arrays.most is None or count < arrays.most:
            goal = self._goal(place.plan, count)
            comma = nodes.EPSILON if count == 0 else self._comma
            if place.plan.is_plain and not place.alike:
                after = self._rest(_Place(self, place.plan, count + 1, ()))
                options.append(nodes.seq(comma, nodes.seq(lowering.value(goal), after)))
            elif count and not place.alike and self._is_late(place.plan):
                options.append(nodes.seq(comma, self._late_item(place, goal)))
            else:
                if leaves_ways_out(arrays):
                    error = LimitError(
                        f"an item may count for several of more than {MAX_CONTAINS} contains at once",
                        hint="give fewer contains for one array",
                        place=Place(keyword="contains"),
                    )
                    nodes.exceed(placed(error, place.plan.located))
                for asked, counted in ways_to_count(arrays, count, place.counted):
                    options.append(nodes.seq(comma, self._item(place, (*goal, *asked), counted)))
        return nodes.seq(lowering.space, nodes.alt(options))

    # -- items that differ -------------------------------------------------------------------------------------

    def _item(self, place: _Place, goal: Goal, counted: tuple[int, ...]) -> int:
        """Return an item at a place, and everything after it."""
        nodes, lowering, plan = self.nodes, self.lowering, place.plan
        heads: dict[str, set[str]] = {}  # by the value that they have here, the arrays that it must differ from
        for array in place.alike:
            items = value_of_key(array)
            if len(items) > place.count:
                heads.setdefault(value_key(items[place.count]), set()).add(array)
        written = place.written or _NONE
        strings = self._strings(plan)
        if strings is not None:
            text, has_others = strings[goal]
            late = has_others and self._is_late(plan)
            after = self._rest(_Place(self, plan, place.count + 1, counted, None if late else place.written))
            checked = nodes.sequence([text, unless_repeated(nodes), after])
            if not has_others:
                return checked
            others = lowering.without(goal, written, strings=False)
            return nodes.alt([checked, nodes.seq(others, self._after(place, None, counted, _NONE))])
        alone = set(heads)
        classes: dict[str, int] = {}
        if plan.arrays.unique:
            classes = self._classes(plan, place.count, place.counted)
            # An item beyond those that the array needs may be any that was not written, also one of a class of which
            # as many are gone as it needed.
            needed = self._needed(plan.arrays, place.count, place.counted)
            is_spare = needed == self._needed(plan.arrays, place.count + 1, counted)
            alone.update(value for value, number in classes.items() if is_spare or place.left[number])
            alone -= written
        choices = [(value, self._after(place, value, counted, frozenset(heads.get(value, _NONE)))) for value in alone]
        others = lowering.without(goal, written.union(alone, classes))
        return nodes.alt(
            [lowering.chosen(goal, sorted(choices)), nodes.seq(others, self._after(place, None, counted, _NONE))]
        )

    def _after(self, place: _Place, value: str | None, counted: tuple[int, ...], alike: frozenset[str]) -> int:
        """Return the rest of an array after an item at a place.

        Args:
            place: the place before the item.
            value: the item, where it is a special value or one that `alike` arrays have there; None: any other.
            counted: `_Place.counted` after it.
            alike: the arrays that the array must still differ from.
        """
        plan, count = place.plan, place.count + 1
        if not plan.arrays.unique:
            return self._rest(_Place(self, plan, count, counted, alike=alike))
        left = self._left(place, value, counted, len(alike))
        if alike:
            assert place.written is not None and value is not None
            known = place.written | {value}
            left = self._left_beside(plan, count, counted, known)
            return self._rest(_Place(self, plan, count, counted, known, left, alike))
        if plan.limit is not None:
            count = min(count, plan.limit)
        if self._is_late(plan):
            return self._rest(_Place(self, plan, count, counted))

        def resolve(before: Written) -> int:
            known = self._written(plan, before)
            return self._rest(_Place(self, plan, count, counted, known, self._left_beside(plan, count, counted, known)))

        # While items are missing that the array must contain, a shortest text is planned without the items that are
        # known to be written: else it might again and again plan others first, because they look shorter.
        written = None if all(map(_is_enough, counted, plan.arrays.contains)) else place.written
        static = self._rest(_Place(self, plan, count, counted, written, left))
        return self.nodes.dynamic(("item", plan, count, counted, left, written), static, resolve)

    def _late_item(self, place: _Place, goal: Goal) -> int:
        """Return an item that differs from all that the text has before it, and everything after it."""

        plan, count = place.plan, place.count

        def resolve(before: Written) -> int:
            written = self._written(plan, before)
            node = plan.late_items.get((count, written))  # asked for each token that would go on to the next item
            if node is None:
                node = plan.late_items[count, written] = self._item(_Place(self, plan, count, (), written), goal, ())
            return node

        static = self._item(place, goal, ())
        return self.nodes.dynamic(("next item", plan, count), static, resolve)

    def _written(self, plan: _ArrayPlan, before: Written) -> frozenset[str]:
        """Return the items of the innermost open array, but for strings that are compared at their end."""
        syntax = self.lowering.syntax
        if syntax is not None:  # strings are never compared at their end
            return frozenset([value_key(item) for item in syntax.items_before(before.text())])
        items = before.items()
        return frozenset([_read(item) for item in items if plan.strings is None or item[:1] != b'"'])

    def _is_late(self, plan: _ArrayPlan) -> bool:
        """Return `_ArrayPlan.late`, computed once."""
        if plan.late is None:
            plan.late = self._find_late(plan)
        return plan.late

    def _find_late(self, plan: _ArrayPlan) -> bool:
        arrays = plan.arrays
        if not arrays.unique or arrays.contains or self.lowering.syntax is not None:
            return False
        goals = item_goals(arrays)
        if len(goals) > 1:
            return False
        strings = self._strings(plan)
        if strings is not None:  # infinitely many
            return any(has_others for _, has_others in strings.values())
        return self.lowering.is_endless(goals[0])

    def _strings(self, plan: _ArrayPlan) -> _ItemStrings | None:
        """Return `_ArrayPlan.strings`, computed once."""
        if plan.strings == {}:
            plan.strings = None if plan.few else self._roomy_strings(plan.arrays)
        return plan.strings

    def _roomy_strings(self, arrays: Arrays) -> _ItemStrings | None:
        """Return the strings of each goal of items if all are roomy, and True if the goal has other values; else
        None."""
        lowering, terms = self.lowering, self.nodes.terms
        strings: _ItemStrings = {}
        for goal in item_goals(arrays):
            term = lowering.strings(goal)
            is_empty = terms.is_empty(term)
            if not is_empty and not is_roomy(terms, term):
                return None
            strings[goal] = lowering.string(term), is_empty or lowering.has_more_than_strings(goal)
        return strings if any(text != self.nodes.EMPTY for text, _ in strings.values()) else None

    # -- whether enough values are left ------------------------------------------------------------------------

    def _bounded(self, arrays: Arrays) -> Arrays:
        """Return the conjunction with at most as many items as there are values, where all items have the same goal."""
        bound = ample_count(arrays)
        goals = item_goals(arrays) if bound else ()
        if len(goals) != 1:
            return arrays
        supply = self._supply(arrays, goals[0], bound)
        if not supply.is_complete:
            return arrays
        number = len(supply.values)
        return replace(arrays, most=number if arrays.most is None else min(arrays.most, number))

    def _needed(self, arrays: Arrays, count: int, counted: tuple[int, ...]) -> int:
        """Return the maximum number of further items that an array needs, if it can be finished at all."""
        missing = sum([max(0, part.least - number) for number, part in zip(counted, arrays.contains, strict=True)])
        return max(arrays.least, fixed_positions(arrays), count) - count + missing

    def _left(self, place: _Place, value: str | None, counted: tuple[int, ...], alike: int) -> tuple[int, ...]:
        """Return `_Place.left` after an item; the arguments are those of `_after`, and the number of alike arrays."""
        plan = place.plan
        before = self._classes(plan, place.count, place.counted)
        after = self._classes(plan, place.count + 1, counted)
        left = [0] * (1 + max(after.values(), default=-1))
        for number, member in {number: member for member, number in before.items()}.items():
            if member in after:  # with all of its class, as fewer goals are left
                left[after[member]] += place.left[number]
        if value in before and value in after:
            left[after[value]] = max(0, left[after[value]] - 1)
        most = self._needed(plan.arrays, place.count + 1, counted) + alike
        return tuple([min(number, most) for number in left])

    def _left_beside(
        self, plan: _ArrayPlan, count: int, counted: tuple[int, ...], written: frozenset[str]
    ) -> tuple[int, ...]:
        """Return `_Place.left` where all items before are known: the number of values of each class, not reduced to
        those that an array may need, as an array may have more items than it needs."""
        classes = self._classes(plan, count, counted)
        left = [0] * (1 + max(classes.values(), default=-1))
        for value, number in classes.items():
            if value not in written:
                left[number] += 1
        return tuple(left)

    def _classes(self, plan: _ArrayPlan, count: int, counted: tuple[int, ...]) -> dict[str, int]:
        """Return the special values at a place, each with the number of its class."""
        arrays = plan.arrays
        size = fixed_positions(arrays)
        open_ones = tuple(
            number < (part.least if part.most is None else part.most)
            for number, part in zip(counted, arrays.contains, strict=True)
        )
        key = min(count, size), open_ones
        result = plan.classes.get(key)
        if result is None:
            if plan.few is None:
                plan.few = self._few(arrays)
            goals = [goal for goal in item_goals(arrays, count, counted) if goal in plan.few]
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
        """Return the goals of items that have few values, with these values; none, if all items have the same goal."""
        bound = ample_count(arrays)
        goals = item_goals(arrays) if bound else ()
        if len(goals) < 2:
            return {}
        special = _NONE
        while True:  # a goal that seemed to have many values may have few besides the special ones
            supplies = {goal: self._supply(arrays, goal, bound + len(special)) for goal in goals}
            few = {goal: frozenset(supply.values) for goal, supply in supplies.items() if supply.is_complete}
            more = special.union(*few.values())
            if len(more) > MAX_SPECIAL:
                raise LimitError(
                    f"uniqueItems depends on more than {MAX_SPECIAL} values of items",
                    hint="drop uniqueItems, or the minimum number of items",
                )
            if more == special:
                return few
            special = more

    def _supply(self, arrays: Arrays, goal: Goal, bound: int) -> Supply:
        supply = self.lowering.supply(goal, bound)
        if not supply.is_complete and not supply.is_ample:
            raise LimitError(
                "the different values of items under uniqueItems are too many to be counted one by one",
                hint="drop uniqueItems, or the minimum number of items",
            )
        return supply

    # -- listed values -----------------------------------------------------------------------------------------

    def holds(self, arrays: Arrays, value: Any) -> bool:
        """Return True if a decoded array satisfies a conjunction."""
        lowering = self.lowering
        if len(value) < arrays.least or (arrays.most is not None and len(value) > arrays.most):
            return False
        if arrays.unique and any(same_value(value[i], value[j]) for i in range(len(value)) for j in range(i)):
            return False
        if not all(lowering.goal_holds(item_goal(arrays, index), item) for index, item in enumerate(value)):
            return False
        return all(self._contains(part, value) for part in arrays.contains)

    def _contains(self, contains: Contains, value: Any) -> bool:
        items = value[contains.first : contains.end]
        number = sum(self.lowering.goal_holds((contains.formula,), item) for item in items)
        if number < contains.least or contains.most is None:
            return number >= contains.least
        # Of a narrowed format it may not be known whether an item has it: then neither a schema nor its negation holds.
        without = sum(self.lowering.goal_holds((negated(contains.formula),), item) for item in items)
        return len(items) - without <= contains.most


def _is_enough(number: int, contains: Contains) -> bool:
    return number >= contains.least


def _read(spelled: bytes) -> str:
    if len(spelled) <= 1_000:
        return _short_item(spelled)
    return _long_item(spelled) if len(spelled) <= 100_000 else value_key(json.loads(spelled))


@lru_cache(maxsize=8_192)  # the items of an array are read again at each of its items
def _short_item(spelled: bytes) -> str:
    return value_key(json.loads(spelled))


@lru_cache(maxsize=64)
def _long_item(spelled: bytes) -> str:
    return value_key(json.loads(spelled))
