"""Rules of objects: the states between their members, and the parts that are expanded when a text reaches them."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from ...dependent.written import Written
from ...errors import LimitError
from ...language.nodes import Nodes
from ..normal.conjunction import Goal
from .context import placed
from .object_plan import UNKNOWN, ObjectPlan

NO_OBJECTS: frozenset[str] = frozenset()


class MembersState(NamedTuple):
    """State between two members of an object; the rest of the object depends on nothing else.

    Attributes:
        at: in the schema's order, the number of the first member that may come; in any order, the set of the written
            members, and of those that they bar, as bits.
        is_first: no member is written yet.
        members: number of members written, as far as it matters.
        open: the demands that are still open, as bits.
        excluded: the objects that this one must differ from, and that have all members written so far.
        names: the names of the members written so far, if ``excluded`` is not empty.
        barred: in the schema's order, the members from ``at`` on that the written ones bar, as bits.
        start: with members in any order, in the search for a shortest text, for which one order suffices: the number of
            the first member that may come. None: any order.
    """

    at: int
    is_first: bool = False
    members: int = 0
    open: int = 0
    excluded: frozenset[str] = NO_OBJECTS
    names: frozenset[str] = NO_OBJECTS
    barred: int = 0
    start: int | None = None


class Expansions(Protocol):
    """What expands the rules of the objects of one document: `ObjectLowering`."""

    nodes: Nodes
    any_order: bool

    def expand(self, plan: ObjectPlan, state: MembersState) -> int:
        """Return the rest of an object from a state on, expanded."""

    def in_order(self, plan: ObjectPlan, state: MembersState) -> int:
        """Return the rest of an object, in any order, with members in the order of the numbers."""

    def expand_after_name(self, rule: AfterNameRule, number: int) -> int:
        """Return the rest of an object after the name of a member, expanded."""

    def witnesses_after_names(self, rule: AfterNameRule, numbers: Collection[int]) -> list[int]:
        """Return the witness of the rest of an object after the name of each of some members."""

    def witness_after_name(self, plan: ObjectPlan, number: int) -> int:
        """Return the witness of the rest of an object after the name of a member, if it is the same in every state."""

    def resolved(self, live: LiveRule, before: Written) -> int:
        """Return the rest of an object from a member with live values on, after a text."""

    def planned(self, live: LiveRule) -> int:
        """Return the same with as many tokens as are kept for the values."""


def is_used_up(nodes: Nodes, plan: ObjectPlan) -> bool:
    """Return True if too few nodes are left for the states of members in any order; then note the limit in
    ``nodes``."""
    if not nodes.is_scarce:
        return False
    error = LimitError(
        "a text has used up the states for members in any order",
        hint='shorten the text, or set property_order="schema"',
    )
    nodes.exceed(placed(error, plan.located))
    return True


@dataclass(slots=True, eq=False)
class RestRule:
    """The rule of the rest of an object from a state on."""

    objects: Expansions
    plan: ObjectPlan
    state: MembersState

    def __call__(self) -> int:
        """Return the node of the rest: with members in any order, or in one order if the states of this text are used
        up."""
        if self.state.start is None and self.objects.any_order and is_used_up(self.objects.nodes, self.plan):
            return self.in_order()
        return self.objects.expand(self.plan, self.state)

    def in_order(self) -> int:
        """Return the rest of the object with members in the order of their numbers only."""
        return self.objects.in_order(self.plan, self.state._replace(start=0))


@dataclass(slots=True, eq=False)
class AfterNameRule:
    """The rule of the rest of an object after a name, by the number of the member; below zero, counted from the last,
    that of a region of undeclared names.

    Attributes:
        objects: expands the rule.
        plan: the plan of the object.
        state: the state before the name.
        name: an undeclared name that excluded objects have (see `MembersState`); None: any other.
        value: the node of the value; `UNKNOWN`: that of its goal.
        goal: the goal of the value, if it is not that of the member.
    """

    objects: Expansions
    plan: ObjectPlan
    state: MembersState
    name: str | None = None
    value: int = UNKNOWN
    goal: Goal = ()

    def __call__(self, index: int) -> int:
        """Return the node of the rest after the name of a member, by its index: its number from that of the regions."""
        return self.objects.expand_after_name(self, index - len(self.plan.others))

    def as_empty_as(self, index: int) -> int:
        """Return the witness of the rest after the name of a member, by its index."""
        return self.objects.witness_after_name(self.plan, index - len(self.plan.others))

    def each(self, numbers: Collection[int]) -> list[int]:
        """Return the node of the rest after the name of each of some members: expanded when a text reaches it."""
        skipped = len(self.plan.others)
        witnesses = self.objects.witnesses_after_names(self, numbers)
        return self.objects.nodes.lazy_each(self, [number + skipped for number in numbers], witnesses)


@dataclass(slots=True, eq=False)
class LiveRule:
    """The rest of an object from a member with live values on: the function of a dependent node.

    Attributes:
        objects: resolves it.
        plan: the plan of the object.
        state: the state before the member.
        number: the number of the member.
        rest: makes what the dependent node stands for of the node after the member's name: the name and that node, or
            that node alone, if the name comes before the dependent node.
        kept: the result of `planned`; `UNKNOWN` until it is built.
    """

    objects: Expansions
    plan: ObjectPlan
    state: MembersState
    number: int
    rest: Callable[[int], int]
    kept: int = UNKNOWN

    def __call__(self, before: Written) -> int:
        """Return the node after a text."""
        return self.objects.resolved(self, before)

    def planned(self) -> int:
        """Return the node from which completions are planned."""
        if self.kept == UNKNOWN:
            self.kept = self.objects.planned(self)
        return self.kept
