"""Plans of arrays: what the states of one array share, computed when it is first asked for."""

from __future__ import annotations

from typing import NamedTuple

from ..normal.conjunction import Arrays, Goal
from ..normal.parts import fixed_positions
from ..read.located import Located

_NO_TYPES: frozenset[str] = frozenset()


class Compared(NamedTuple):
    """The values of a goal of items that are compared with earlier items when they are written, not where they begin.

    Attributes:
        node: their texts, without those that are equal to an item before.
        has_others: the goal has other values.
    """

    node: int
    has_others: bool


class ComparedItems(NamedTuple):
    """The items of an array that are compared when they are written.

    Attributes:
        types: their JSON types.
        of: by goal of items.
    """

    types: frozenset[str]
    of: dict[Goal, Compared]


class ArrayPlan:
    """Data that the states of one array share.

    Attributes:
        arrays: the conjunction.
        located: the schema of the conjunction; None: it is not known.
        is_plain: items are neither counted nor compared.
        is_counting: items are counted, and their order does not matter.
        awaited: the sets of `Contains`, as bits, that a state of the search for a text still waits for.
        goals: the goals of items by position, without ``contains``.
        limit: all numbers of items from this one on are equivalent; None: there is no such number.
        rests: the nodes of the rest of the array, by the keys of states (see `ArrayLowering._rest`).
        few: with ``uniqueItems``, the keys of the values of each goal of items that has few; None: not computed yet.
        classes: the results of `ArrayLowering._classes`.
        late: with ``uniqueItems``, items have infinitely many values, so that the written items only matter at the
            start of the next one; None: not computed yet.
        late_items: by position and written items: the node of the next item and the rest, if ``late`` is set.
        all_values: with ``uniqueItems``, the keys of the values of items, if they are few enough for a state for each
        set
            of earlier items, else (None,); None: not computed yet.
        compared: the items that are compared when they are written (see `ArrayLowering`); None: there are none; empty:
            not computed yet.
    """

    def __init__(self, arrays: Arrays, may_compare: bool, located: Located | None) -> None:
        self.arrays = arrays
        self.located = located
        self.is_plain = not arrays.contains and not arrays.unique
        self.is_counting = bool(arrays.contains) and not arrays.unique and not fixed_positions(arrays)
        self.awaited: set[int] = set()
        self.goals: dict[int, Goal] = {}
        self.compared: ComparedItems | None = ComparedItems(_NO_TYPES, {}) if may_compare else None
        self.limit: int | None = None
        if arrays.most is None:
            self.limit = max(arrays.least, 1, fixed_positions(arrays))
        self.rests: dict[object, int] = {}
        self.few: dict[Goal, frozenset[str]] | None = None
        self.all_values: tuple[frozenset[str] | None] | None = None
        self.late: bool | None = None
        self.late_items: dict[tuple[int, frozenset[str]], int] = {}
        self.classes: dict[object, dict[str, int]] = {}
