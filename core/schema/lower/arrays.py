"""Lowering of arrays: items by position, counts of items, ``contains``, and items that must not repeat."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import Any

from ...dependent.roomy import is_roomy
from ...dependent.unrepeated import unless_repeated
from ...dependent.written import Written
from ...errors import LimitError, Place
from ...json import value_key, value_of_key
from ...json.values import same_value
from ...language.reading_marks import CLOSED, ENTERED, VALUE
from ..normal.conjunction import Arrays, Contains, Goal, negated
from ..normal.parts import fixed_positions, item_goal
from .array_items import Way, ample_count, item_goals, ways_to_count
from .array_plan import ArrayPlan, Compared, ComparedItems
from .context import GoalNodes, Supply, placed
from .merged_objects import MergedObjects

#: Maximum number of different sets of `Contains` that the search for a text of one array may wait for.
MAX_AWAITED = 4_096

#: Maximum number of special values (see `ArrayLowering`) of one array.
MAX_SPECIAL = 200

#: Maximum number of values of items for which each set of earlier items has a state: 2 to the power of it are possible.
MAX_LISTED_ITEMS = 6

#: Number of `Contains` of which all sets may be awaited.
_FEW = 12

_NONE: frozenset[str] = frozenset()

#: By the first byte of a value: its JSON type, of those that can be compared when they are written.
_COMPARED = {b'"': "string", b"{": "object"}


@dataclass(slots=True, eq=False)
class _ItemsState:
    """The state between two items of an array. As a rule, it expands to the rest of the array.

    Attributes:
        lowering: expands the rule.
        plan: the plan of the array.
        count: the number of items written, as far as it matters.
        counted: for each `Contains`, the number of items that were counted, as far as it matters.
        written: the items, where they must not repeat (None: they may, or it is not known what they were).
        left: for each class of special values, the number that were not written yet; where it is planned without the
            text before it, as far as the rest of an array may need them.
        excluded: the arrays that this one must differ from, and that begin with the items written so far.
        in_order: each item counts for the first `Contains` that still needs items: in the search for a text, for which
            one order of the items suffices.
    """

    lowering: ArrayLowering
    plan: ArrayPlan
    count: int
    counted: tuple[int, ...]
    written: frozenset[str] | None = None
    left: tuple[int, ...] = ()
    excluded: frozenset[str] = _NONE
    in_order: bool = False

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

    ``uniqueItems``:

    - The node of each item excludes the values of the items before it, so that every begun item can be finished. The
      written values are read from the text, by a dependent node after each item.
    - Strings are compared at their end only (`unless_repeated`), if the strings of every goal of items are *roomy*:
      after any written items, every begun string can be finished. Then no state depends on strings.
    - Objects are compared after a member that such strings are the values of (`DistinctObjects`), if those of every
      goal have one.
    - If all items have the same goal, with infinitely many values, the dependent node is before each item instead of
      after it (`ArrayPlan.late`). Another item may always begin, so tokens that end an item and continue to the next
      comma do not depend on the text.
    - Lowering decides in advance that enough different values are left. A goal with many values cannot run out of them
      before the array may end. The values of a goal with few (see `Values`) are *special*: a state counts how many are
      left. Special values that satisfy the same goals of later items form a class; only the number of unused values of
      a class matters, up to the number that can be needed. So states stay few.
    """

    def __init__(self, lowering: GoalNodes, merged: MergedObjects) -> None:
        self.lowering = lowering
        self._merged = merged
        self.nodes = lowering.nodes
        self._plans: dict[tuple[Arrays, bool], ArrayPlan] = {}
        self._opening = self.nodes.seq(self.nodes.literal(b"["), lowering.marked(ENTERED, name="["))
        self._closing = self.nodes.seq(self.nodes.literal(b"]"), lowering.marked(CLOSED))
        self._begun = lowering.marked(VALUE)
        self._comma = self.nodes.seq(self.nodes.literal(lowering.comma), lowering.space)

    def node(self, arrays: Arrays, excluded: frozenset[str] = _NONE) -> int:
        """Return the arrays that satisfy a conjunction, without those whose keys are ``excluded``."""
        if self.lowering.is_marked:  # a text that is read was written under these constraints
            arrays, excluded = replace(arrays, unique=False), _NONE
        # Not if the array must differ from others: it spells out the items that it shares with them.
        may_compare = arrays.unique and not arrays.contains and not excluded and self.lowering.syntax is None
        plan = self._plans.get((arrays, may_compare))
        if plan is None:
            plan = ArrayPlan(self._bounded(arrays) if arrays.unique else arrays, may_compare, self.lowering.here)
            self._plans[arrays, may_compare] = plan
        arrays = plan.arrays
        if arrays.most is not None and arrays.least > arrays.most:
            return self.nodes.EMPTY
        written = _NONE if arrays.unique else None
        counted = (0,) * len(arrays.contains)
        left: tuple[int, ...] = ()
        if arrays.unique:  # of each class, all values, but no more than may be needed
            sizes = Counter(self._classes(plan, 0, counted).values())
            most = self._needed(arrays, 0, counted) + len(excluded)
            left = tuple([min(sizes[number], most) for number in range(len(sizes))])
        if arrays.contains:  # for its error, if there are too many ways: before any item is written
            for index in range(fixed_positions(arrays) + 1):
                ways_to_count(self._merged, arrays, index, counted)
        start = self._rest(_ItemsState(self, plan, 0, counted, written, left, excluded))
        return self.nodes.seq(self._opening, start)

    def _rest(self, state: _ItemsState) -> int:
        """Return the rest of an array from a state; the same node for equal states. Lowers ``state.count`` to the limit
        of the plan, from which on all counts are equivalent."""
        plan = state.plan
        if plan.limit is not None and state.count > plan.limit and not state.excluded:
            state.count = plan.limit
        if plan.arrays.unique or state.excluded:
            key: object = (state.count, state.counted, state.written, state.left, state.excluded)
        else:
            key = (state.count, state.counted, state.in_order) if state.counted else state.count
        node = plan.rests.get(key)
        if node is None:
            shorter = None
            if plan.is_counting and not state.excluded and not state.in_order:
                shorter = partial(self._in_order, state)
            node = self.nodes.lazy(state, state, as_empty_as=self._witness(state), as_short_as=shorter)
            plan.rests[key] = node
        return node

    def _in_order(self, state: _ItemsState) -> int:
        """Return the rest of an array of which each item counts for the first `Contains` that still needs items. A
        shortest text is among these, and there are fewer states than sets of `Contains`."""
        return self._rest(replace(state, in_order=True))

    def _witness(self, state: _ItemsState) -> int | None:
        """Return the witness of the rest of an array from a state on; None: the rest itself, which has few states."""
        plan, arrays = state.plan, state.plan.arrays
        if self._may_close(state):
            return self.nodes.EPSILON
        if not plan.is_counting or state.excluded or state.in_order:
            return None
        if arrays.most is not None or any(part.most is not None for part in arrays.contains):
            return self._in_order(state)
        goal = self._goal(plan, 0)  # of every item
        missing = [(*goal, arrays.contains[index].formula) for index in self._awaited(state)]
        # Without a maximum, each condition may have an item of its own; if none is missing, any item may follow.
        return self.nodes.sequence([self.lowering.value(each) for each in missing or [goal]])

    def _awaited(self, state: _ItemsState) -> list[int]:
        """Return the numbers of the `Contains` that still need items.

        Raises:
            LimitError: the search for a text of the array meets too many different sets of them.
        """
        plan = state.plan
        found = [
            index
            for index, (number, part) in enumerate(zip(state.counted, plan.arrays.contains, strict=True))
            if number < part.least
        ]
        if state.in_order and len(plan.arrays.contains) > _FEW:
            plan.awaited.add(sum([1 << index for index in found]))
            if len(plan.awaited) > MAX_AWAITED:
                raise LimitError(
                    f"the search for a text of one array meets more than {MAX_AWAITED:,} sets of contains",
                    hint="give fewer contains, or no maxItems beside them",
                    place=Place(keyword="contains"),
                )
        return found

    def _ways(self, state: _ItemsState) -> list[Way]:
        """Return the ways to count the next item (see `_ItemsState.in_order`)."""
        ways = ways_to_count(self._merged, state.plan.arrays, state.count, state.counted)
        awaited = self._awaited(state) if state.in_order else []
        if not awaited:
            return ways
        first = awaited[0]
        return [way for way in ways if way.counted[first] > state.counted[first]]

    def end(self, state: _ItemsState) -> int:
        """Return the end of an array from a state without further items; EMPTY if it may not end there."""
        return self.nodes.seq(self.lowering.space, self._closing) if self._may_close(state) else self.nodes.EMPTY

    def _may_close(self, state: _ItemsState) -> bool:
        """Return True if an array may end at a state."""
        arrays = state.plan.arrays
        if state.count < arrays.least:
            return False
        for array in state.excluded:  # it begins with the written items: it is equal if it has no others
            if len(value_of_key(array)) == state.count:
                return False
        return not arrays.contains or all(map(_is_enough, state.counted, arrays.contains))

    def _goal(self, plan: ArrayPlan, count: int) -> Goal:
        """Return the goal of the item at a position, ``contains`` aside."""
        goal = plan.goals.get(count)
        if goal is None:
            goal = plan.goals[count] = item_goal(plan.arrays, count)
        return goal

    def expand(self, state: _ItemsState) -> int:
        """Return the rest of an array from a state, expanded."""
        nodes = self.nodes
        lowering = self.lowering
        arrays = state.plan.arrays
        count = state.count
        options: list[int] = []
        if self._may_close(state):
            options.append(self._closing)
        if arrays.most is None or count < arrays.most:
            goal = self._goal(state.plan, count)
            comma = nodes.EPSILON if count == 0 else self._comma
            if self.lowering.is_marked:
                comma = nodes.seq(comma, self._begun)
            if state.plan.is_plain and not state.excluded:  # items are independent of each other
                after = self._rest(_ItemsState(self, state.plan, count + 1, ()))
                options.append(nodes.seq(comma, nodes.seq(lowering.value(goal), after)))
            elif count and not state.excluded and self._is_late(state.plan):  # the text is asked before the item
                options.append(nodes.seq(comma, self._late_item(state, goal)))
            else:
                for asked, counted in self._ways(state):
                    options.append(nodes.seq(comma, self._item(state, (*goal, *asked), counted)))
        return nodes.seq(lowering.space, nodes.alt(options))

    # -- items that differ -------------------------------------------------------------------------------------

    def _item(self, state: _ItemsState, goal: Goal, counted: tuple[int, ...]) -> int:
        """Return an item of a goal at a state, and everything after it; ``counted`` is `_ItemsState.counted` after it.

        Where items must not repeat, or the array must differ from others, values are told apart in one of three ways:
        all one by one, if they are few; at their end, with any others beside them; or some one by one, with all others
        beside them.
        """
        plan, lowering, count = state.plan, self.lowering, state.count + 1
        values = self._all_values(plan, goal)
        written = state.written
        if values is not None and written is not None and not state.excluded:
            rests = {
                value: self._rest(_ItemsState(self, plan, count, state.counted, written | {value}))
                for value in sorted(values - written)
            }
            return lowering.filter_values(goal, rests.items())
        compared = self._compared(plan)
        if compared is None:
            return self._item_beside(state, goal, counted)
        own = compared.of[goal]
        is_late = own.has_others and self._is_late(plan)
        at_end = self.nodes.seq(
            own.node, self._rest(_ItemsState(self, plan, count, counted, None if is_late else written))
        )
        if not own.has_others:
            return at_end
        others = lowering.without(goal, written or _NONE, compared.types)
        return self.nodes.alt([at_end, self.nodes.seq(others, self._after(state, None, counted, _NONE))])

    def _item_beside(self, state: _ItemsState, goal: Goal, counted: tuple[int, ...]) -> int:
        """Return an item at a state, and everything after it: special values, and those that excluded arrays have here,
        one by one, as the rest depends on them; and beside them all other values."""
        plan, lowering = state.plan, self.lowering
        written = state.written or _NONE
        alike: dict[str, set[str]] = {}  # by the value that they have here, the excluded arrays
        for array in state.excluded:
            items = value_of_key(array)
            if len(items) > state.count:
                alike.setdefault(value_key(items[state.count]), set()).add(array)
        one_by_one = set(alike)
        classes: dict[str, int] = {}
        if plan.arrays.unique:
            classes = self._classes(plan, state.count, state.counted)
            # A spare item, beyond the items that the array needs, may be any unwritten value, also one of a class whose
            # count is used up.
            needed = self._needed(plan.arrays, state.count, state.counted)
            is_spare = needed == self._needed(plan.arrays, state.count + 1, counted)
            one_by_one.update(value for value, number in classes.items() if is_spare or state.left[number])
            one_by_one -= written
        choices = [
            (value, self._after(state, value, counted, frozenset(alike.get(value, _NONE)))) for value in one_by_one
        ]
        others = lowering.without(goal, written.union(one_by_one, classes) if one_by_one or classes else written)
        rest = self.nodes.seq(others, self._after(state, None, counted, _NONE))
        return self.nodes.alt([lowering.filter_values(goal, sorted(choices)), rest])

    def _all_values(self, plan: ArrayPlan, goal: Goal) -> frozenset[str] | None:
        """Return the values of items that must not repeat, if all items have this goal, and at most `MAX_LISTED_ITEMS`
        values; else None."""
        if plan.all_values is None:
            arrays, supply = plan.arrays, None
            if arrays.unique and not arrays.contains and len(item_goals(self._merged, arrays)) == 1:
                supply = self.lowering.supply(goal, MAX_LISTED_ITEMS + 1)
            plan.all_values = (frozenset(supply.values) if supply is not None and supply.is_complete else None,)
        return plan.all_values[0]

    def _after(self, state: _ItemsState, value: str | None, counted: tuple[int, ...], excluded: frozenset[str]) -> int:
        """Return the rest of an array after an item at a state.

        Args:
            state: the state before the item.
            value: the item, where it is a special value or one that `excluded` arrays have there; None: any other.
            counted: `_ItemsState.counted` after it.
            excluded: the arrays that the array must still differ from.
        """
        plan, count = state.plan, state.count + 1
        if not plan.arrays.unique:
            return self._rest(_ItemsState(self, plan, count, counted, excluded=excluded, in_order=state.in_order))
        left = self._left(state, value, counted, len(excluded))
        if excluded:
            assert state.written is not None and value is not None
            known = state.written | {value}
            left = self._left_beside(plan, count, counted, known)
            return self._rest(_ItemsState(self, plan, count, counted, known, left, excluded))
        if plan.limit is not None:
            count = min(count, plan.limit)
        if self._is_late(plan):
            return self._rest(_ItemsState(self, plan, count, counted))

        def resolve(before: Written) -> int:
            known = self._written(plan, before)
            return self._rest(
                _ItemsState(self, plan, count, counted, known, self._left_beside(plan, count, counted, known))
            )

        # While items are missing that the array must contain, a shortest text is planned without the items that are
        # known to be written: else it might again and again plan others first, because they look shorter.
        written = None if all(map(_is_enough, counted, plan.arrays.contains)) else state.written
        static = self._rest(_ItemsState(self, plan, count, counted, written, left))
        return self.nodes.dynamic(("item", plan, count, counted, left, written), static, resolve)

    def _late_item(self, state: _ItemsState, goal: Goal) -> int:
        """Return an item that differs from all that the text has before it, and everything after it: a dependent node
        before the item (see `ArrayPlan.late`)."""
        plan, count = state.plan, state.count

        def resolve(before: Written) -> int:
            written = self._written(plan, before)
            node = plan.late_items.get((count, written))  # asked for each token that would go on to the next item
            if node is None:
                node = plan.late_items[count, written] = self._item(
                    _ItemsState(self, plan, count, (), written), goal, ()
                )
            return node

        static = self._item(state, goal, ())  # the items before are not known
        return self.nodes.dynamic(("next item", plan, count), static, resolve)

    def _written(self, plan: ArrayPlan, before: Written) -> frozenset[str]:
        """Return the items of the innermost open array, without those that are compared at their end."""
        syntax = self.lowering.syntax
        if syntax is not None:  # no items are compared at their end
            return frozenset({value_key(item) for item in syntax.items_before(before.text())})
        items = before.items()
        # The copy of a set has room for no more items. There is one for each item, so it counts.
        types = _NONE if plan.compared is None else plan.compared.types
        return frozenset({_read(item) for item in items if _COMPARED.get(item[:1]) not in types})

    def _is_late(self, plan: ArrayPlan) -> bool:
        """Return `ArrayPlan.late`, computed once."""
        if plan.late is None:
            plan.late = self._find_late(plan)
        return plan.late

    def _find_late(self, plan: ArrayPlan) -> bool:
        """Return True if the items of ``uniqueItems`` surely never run out, so that equal ones can be excluded when
        they are written."""
        arrays = plan.arrays
        if not arrays.unique or arrays.contains or self.lowering.syntax is not None:
            return False
        goals = item_goals(self._merged, arrays)
        if len(goals) > 1:
            return False
        compared = self._compared(plan)
        if compared is not None:  # infinitely many; without other values, no item depends on the text where it begins
            return any(values.has_others for values in compared.of.values())
        return self.lowering.is_endless(goals[0])

    def _compared(self, plan: ArrayPlan) -> ComparedItems | None:
        """Return `ArrayPlan.compared`, computed once."""
        if plan.compared is not None and not plan.compared.of:
            plan.compared = None if plan.few else self._compared_items(item_goals(self._merged, plan.arrays))
        return plan.compared

    def _compared_items(self, goals: tuple[Goal, ...]) -> ComparedItems | None:
        """Return the items of an array that can be compared when they are written; None if there are none.

        Args:
            goals: the goals of all of its items.
        """
        nodes, lowering = self.nodes, self.lowering
        strings = [self._distinct_strings(goal) for goal in goals]
        objects = [lowering.distinct_objects(goal) for goal in goals]
        types: set[str] = set()
        found = [nodes.EMPTY] * len(goals)
        for kind, parts in (("string", strings), ("object", objects)):
            known = [part for part in parts if part is not None]
            if len(known) == len(goals) and any(part != nodes.EMPTY for part in known):
                types.add(kind)
                found = [nodes.alt(pair) for pair in zip(found, known, strict=True)]
        if not types:
            return None
        compared = {
            goal: Compared(node, node == nodes.EMPTY or lowering.has_other_types(goal, frozenset(types)))
            for goal, node in zip(goals, found, strict=True)
        }
        return ComparedItems(frozenset(types), compared)

    def _distinct_strings(self, goal: Goal) -> int | None:
        """Return the strings of a goal, without those that are equal to an item before; None if the language of the
        strings is not roomy."""
        nodes = self.nodes
        term = self.lowering.strings(goal)
        if nodes.terms.is_empty(term):
            return nodes.EMPTY
        if not is_roomy(nodes.terms, term):
            return None
        return nodes.seq(self.lowering.string(term), unless_repeated(nodes))

    # -- whether enough values are left ------------------------------------------------------------------------

    def _bounded(self, arrays: Arrays) -> Arrays:
        """Return the conjunction of arrays with at most as many items as there are values: if all items have the same
        goal, and it has few values."""
        bound = ample_count(arrays)
        goals = item_goals(self._merged, arrays) if bound else ()
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

    def _left(self, state: _ItemsState, value: str | None, counted: tuple[int, ...], excluded: int) -> tuple[int, ...]:
        """Return `_ItemsState.left` after an item. The arguments are those of `_after`, with the number of excluded
        arrays: each may take one value more than the array needs."""
        plan = state.plan
        before = self._classes(plan, state.count, state.counted)
        after = self._classes(plan, state.count + 1, counted)
        left = [0] * (1 + max(after.values(), default=-1))
        one_of = {number: member for member, number in before.items()}  # by class, one of its values
        for number, member in one_of.items():
            if member in after:  # with all of its class: classes only merge, as fewer goals are left
                left[after[member]] += state.left[number]
        if value in before and value in after:
            left[after[value]] = max(0, left[after[value]] - 1)
        most = self._needed(plan.arrays, state.count + 1, counted) + excluded
        return tuple([min(number, most) for number in left])

    def _left_beside(
        self, plan: ArrayPlan, count: int, counted: tuple[int, ...], written: frozenset[str]
    ) -> tuple[int, ...]:
        """Return `_ItemsState.left` where all items before are known: the number of values of each class, not reduced
        to those that an array may need, as an array may have more items than it needs."""
        classes = self._classes(plan, count, counted)
        left = [0] * (1 + max(classes.values(), default=-1))
        for value, number in classes.items():
            if value not in written:
                left[number] += 1
        return tuple(left)

    def _classes(self, plan: ArrayPlan, count: int, counted: tuple[int, ...]) -> dict[str, int]:
        """Return the special values at a state, each with the number of its class: values that satisfy the same goals
        of later items."""
        arrays = plan.arrays
        size = fixed_positions(arrays)
        still_counting = tuple(
            number < (part.least if part.most is None else part.most)
            for number, part in zip(counted, arrays.contains, strict=True)
        )
        key = min(count, size), still_counting
        result = plan.classes.get(key)
        if result is None:
            if plan.few is None:
                plan.few = self._few(arrays)
            goals = [goal for goal in item_goals(self._merged, arrays, count, counted) if goal in plan.few]
            satisfied: dict[str, list[int]] = {}  # by value, the indices of its goals
            for index, goal in enumerate(goals):
                for value in plan.few[goal]:
                    satisfied.setdefault(value, []).append(index)
            numbers: dict[tuple[int, ...], int] = {}  # by these indices, the number of the class
            result = plan.classes[key] = {
                value: numbers.setdefault(tuple(satisfied[value]), len(numbers)) for value in sorted(satisfied)
            }
        return result

    def _few(self, arrays: Arrays) -> dict[Goal, frozenset[str]]:
        """Return the goals of items that have few values, with these values; none, if all items have the same goal."""
        bound = ample_count(arrays)
        goals = item_goals(self._merged, arrays) if bound else ()
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
                    hint="remove uniqueItems, or lower minItems",
                )
            if more == special:
                return few
            special = more

    def _supply(self, arrays: Arrays, goal: Goal, bound: int) -> Supply:
        """Return the values of a goal, or that they are at least ``bound``.

        Raises:
            LimitError: it is not known.
        """
        supply = self.lowering.supply(goal, bound)
        if not supply.is_complete and not supply.is_ample:
            raise LimitError(
                "the different values of items under uniqueItems are too many to be counted one by one",
                hint="remove uniqueItems, or lower minItems",
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
        """Return True if a decoded array surely has as many items of a `Contains` as it asks for."""
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
