"""Arrays to grammar nodes: items by position, counts, what must be contained, and items that do not repeat."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache
from itertools import product
from json.encoder import encode_basestring_ascii
from typing import TYPE_CHECKING, Any

from ..language.kinds import BEYOND, HERE
from ..language.lookback import Written
from .conjunction import Any_, Arrays, Contains, Formula, Goal, negated, same_value

if TYPE_CHECKING:
    from .lower import Lowering

#: Sets of at most so many values are known to run out.
MAX_LISTED = 1_000


class _Layout:
    """What the places of one array share.

    Attributes:
        arrays: what is asked.
        limit: from how many items on their number does not matter; None: it always may.
        places: what may stand after ``[`` or after an item, by place.
        bare: the same, but items may repeat; None: they may, or that was not asked yet.
    """

    __slots__ = ("arrays", "bare", "limit", "places")

    def __init__(self, arrays: Arrays) -> None:
        self.arrays = arrays
        self.limit: int | None = None
        if arrays.most is None:
            fixed = [len(part.prefix) for part in arrays.parts]
            fixed += [len(part.prefix) for rest in arrays.rests for part in rest.parts]
            fixed += [each.first if each.end is None else each.end for each in arrays.contains]
            self.limit = max(arrays.least, 1, *fixed)
        self.places: dict[Any, int] = {}
        self.bare: _Layout | None = None

    def without_unique(self) -> _Layout:
        """The layout of the same arrays, if their items may repeat."""
        if self.bare is None:
            self.bare = _Layout(replace(self.arrays, unique=False))
        return self.bare


class _Place:
    """Where an array is: how many items were written and how many of them each `Contains` was given, as far as that
    matters; and, where items must not repeat, what they were (None: that is not asked, or not known). As a rule: what
    may stand there."""

    __slots__ = ("_lowering", "count", "found", "layout", "written")

    def __init__(
        self,
        lowering: ArrayLowering,
        layout: _Layout,
        count: int,
        found: tuple[int, ...],
        written: frozenset[str] | None,
    ) -> None:
        self._lowering = lowering
        self.layout = layout
        self.count = count
        self.found = found
        self.written = written

    def __call__(self) -> int:
        return self._lowering.expand(self)


class ArrayLowering:
    """Lowers the arrays of one document."""

    def __init__(self, lowering: Lowering) -> None:
        self.lowering = lowering
        self.nodes = lowering.nodes
        self._lists: dict[_Layout, bool] = {}
        self._layouts: dict[Arrays, _Layout] = {}
        self._opening = self.nodes.literal(b"[")
        self._closing = self.nodes.literal(b"]")
        self._comma = self.nodes.seq(self.nodes.literal(lowering.comma), lowering.space)

    def node(self, arrays: Arrays) -> int:
        """The arrays that satisfy a conjunction."""
        layout = self._layouts.get(arrays)
        if layout is None:
            layout = self._layouts[arrays] = _Layout(self._bounded(arrays) if arrays.unique else arrays)
        arrays = layout.arrays
        if arrays.most is not None and arrays.least > arrays.most:
            return self.nodes.EMPTY
        written: frozenset[str] | None = frozenset() if arrays.unique else None
        return self.nodes.seq(self._opening, self._items(layout, 0, (0,) * len(arrays.contains), written))

    def _bounded(self, arrays: Arrays) -> Arrays:
        """No more items than there are values that they can have."""
        if any(part.prefix for part in arrays.parts) or any(
            part.prefix for rest in arrays.rests for part in rest.parts
        ):
            return arrays
        listed = self.lowering.listing(self._goal(arrays, 0), MAX_LISTED)
        if listed is None:
            return arrays
        return replace(arrays, most=len(listed) if arrays.most is None else min(arrays.most, len(listed)))

    def _items(self, layout: _Layout, count: int, found: tuple[int, ...], written: frozenset[str] | None) -> int:
        """What may stand after ``[`` or after an item."""
        if layout.limit is not None and count > layout.limit:  # so that the same places meet
            count = layout.limit
        key = count if written is None and not found else (count, found, written)
        known = layout.places.get(key)
        if known is None:
            place = _Place(self, layout, count, found, written)
            known = layout.places[key] = self.nodes.lazy(place, place)
        return known

    def expand(self, place: _Place) -> int:
        """What may stand at a place."""
        nodes, lowering, arrays, count = self.nodes, self.lowering, place.layout.arrays, place.count
        options = []
        enough = all(found >= each.least for found, each in zip(place.found, arrays.contains, strict=True))
        if count >= arrays.least and enough:
            options.append(self._closing)
        if arrays.most is None or count < arrays.most:
            goal = self._goal(arrays, count)
            comma = nodes.EPSILON if count == 0 else self._comma
            if not arrays.contains and not arrays.unique:
                after = self._items(place.layout, count + 1, (), None)
                options.append(nodes.seq(comma, nodes.seq(lowering.value(goal), after)))
            else:
                for asked, found in self._counted(place):
                    options.append(nodes.seq(comma, self._item(place, (*goal, *asked), found)))
        return nodes.seq(lowering.space, nodes.alt(options))

    def _goal(self, arrays: Arrays, index: int) -> Goal:
        """What is asked of the item at a position."""
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
    def _counted(place: _Place) -> Iterator[tuple[Goal, tuple[int, ...]]]:
        """The ways in which an item may count for what must be contained, and what each asks of it."""
        arrays = place.layout.arrays
        ways: list[list[tuple[Goal, int]]] = []
        for found, each in zip(place.found, arrays.contains, strict=True):
            if place.count < each.first or (each.end is not None and place.count >= each.end):
                ways.append([((), found)])
            elif each.most is None:  # whether it matches is of no interest once enough do
                ways.append([((each.formula,), found + 1), ((), found)] if found < each.least else [((), found)])
            else:
                beside: tuple[Goal, int] = ((negated(each.formula),), found)
                ways.append([((each.formula,), found + 1), beside] if found < each.most else [beside])
        for way in product(*ways):
            yield tuple(formula for goal, _ in way for formula in goal), tuple(found for _, found in way)

    # -- items that do not repeat ------------------------------------------------------------------------------

    def _item(self, place: _Place, goal: Goal, found: tuple[int, ...]) -> int:
        """An item, and everything after it."""
        nodes, lowering, layout = self.nodes, self.lowering, place.layout
        if not layout.arrays.unique:
            return nodes.seq(lowering.value(goal), self._items(layout, place.count + 1, found, None))
        # After a scalar it is known that it is a new one; an array or object is compared when it is complete.
        scalars, compounds = lowering.fresh(goal, place.written or frozenset())
        return nodes.alt(
            [
                nodes.seq(scalars, self._from_text(layout, place.count + 1, found, BEYOND)),
                nodes.seq(compounds, self._from_text(layout, place.count + 1, found, HERE)),
            ]
        )

    def _may_list(self, layout: _Layout) -> bool:
        """Whether some item may be one of listed values, so that listed arrays and objects can run out."""
        known = self._lists.get(layout)
        if known is None:
            arrays = layout.arrays
            parts = [*arrays.parts, *(part for rest in arrays.rests for part in rest.parts)]
            positions = 1 + max((len(part.prefix) for part in parts), default=0)
            known = self._lists[layout] = bool(arrays.contains) or any(
                branch.values is not None
                for index in range(positions)
                for branch in self.lowering.branches(self._goal(arrays, index))
            )
        return known

    def _from_text(self, layout: _Layout, count: int, found: tuple[int, ...], kind: int) -> int:
        """What may stand after an item, given all items so far."""
        if layout.limit is not None:
            count = min(count, layout.limit)
        lists = self._may_list(layout)

        def resolve(before: Written) -> int:
            spelling = self.lowering.spelling
            if spelling is None:
                items = [_read(item) for item in before.items()]
            else:
                items = [canonical(item) for item in spelling.items_before(before.text())]
            written = frozenset(items)
            if len(written) < len(items):
                return self.nodes.EMPTY
            if not lists:  # arrays and objects are compared when they are complete: what follows is the same
                written = frozenset(item for item in items if item[0] not in "[{")
            return self._items(layout, count, found, written)

        static = self._items(layout.without_unique(), count, found, None)
        return self.nodes.dynamic(("item", layout, count, found, kind), static, resolve, kind)

    # -- listed values -----------------------------------------------------------------------------------------

    def holds(self, arrays: Arrays, value: list[Any]) -> bool:
        """Whether a decoded array satisfies a conjunction."""
        lowering = self.lowering
        if len(value) < arrays.least or (arrays.most is not None and len(value) > arrays.most):
            return False
        if arrays.unique and any(same_value(value[i], value[j]) for i in range(len(value)) for j in range(i)):
            return False
        if not all(lowering.goal_holds(self._goal(arrays, index), item) for index, item in enumerate(value)):
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


def canonical(value: Any) -> str:
    """The same text for equal values, and only for them: 1 and 1.0 are equal, and the order of members is nothing."""
    if type(value) is str:
        return encode_basestring_ascii(value)
    return json.dumps(_plain(value), sort_keys=True)


def _plain(value: Any) -> Any:
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, dict):
        return {name: _plain(item) for name, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, (list, tuple)) else value
