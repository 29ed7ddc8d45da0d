"""The shape of the objects of a conjunction: declared members, regions of undeclared names, demands. `MergedObjects`
makes it."""

from __future__ import annotations

from dataclasses import dataclass

from ..normal.conjunction import Formula, Goal

#: The demands that a member may meet: for each, its number and the formula that the member's value must satisfy.
Meets = tuple[tuple[int, Formula], ...]


@dataclass(slots=True, eq=False)
class Member:
    """A declared property, and which of the shape's demands it may meet."""

    name: str
    goal: Goal
    required: bool
    meets: Meets = ()


@dataclass(slots=True, eq=False)
class Region:
    """Undeclared names to which the same schemas apply.

    Attributes:
        names: the names, a term.
        goal: the goal of their values.
        meets: the demands that a member of the region may meet.
        roomy: every prefix of a name is a prefix of infinitely many names, so that the written names never exclude all
            others.
    """

    names: int
    goal: Goal
    meets: Meets
    roomy: bool


@dataclass(slots=True, eq=False)
class ObjectShape:
    """Objects of a conjunction.

    A demand is met by a member (`Member.meets`), or by the absence of a name.

    Attributes:
        members: the declared members, in order.
        others: regions of undeclared members.
        demands: for each demand, the names whose absence meets it.
        exclusive: sets of names of which at most one member is written.
        least: the minimum number of members.
        most: the maximum number of members; None: no maximum.
    """

    members: tuple[Member, ...]
    others: tuple[Region, ...]
    demands: tuple[frozenset[str], ...]
    exclusive: tuple[frozenset[str], ...]
    least: int
    most: int | None
