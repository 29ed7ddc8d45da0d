"""Unions of many objects, lowered together: the state of a text is the set of the objects that it may still be of.

So the names of all objects are one list, and a value that several objects share is followed once. An object is told
apart from the others by a name that they lack, or by a value: `{"type": "cat"` leaves those with this constant. Lowered
one by one, a union of n objects would need n states for each member that is written before.

All such states together may be many more than those of the objects one by one, of which a text reaches few. An export
has all of them, so it takes the node under the name `("apart", union)` of the store instead.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from ...dependent.unrepeated import unless_repeated
from ...language.node_kinds import UNASKED
from ..normal.assertions import asserts_only
from ..normal.conjunction import Conjunction
from ..read.located import SignedSchema
from .object_plan import ObjectPlan
from .object_rules import MembersState, is_used_up
from .object_witnesses import spelled_names
from .tagged_objects import listed_strings

if TYPE_CHECKING:
    from .objects import ObjectLowering

#: Minimum number of objects that are lowered together.
MIN_OBJECTS = 8

#: Bytes that a state takes for each of its objects.
OBJECT_BYTES = 16

_OBJECT = frozenset({"object"})
_NO_NAMES: frozenset[str] = frozenset()


#: A member of one of some plans: the index of the plan, and the number of the member there; -1: an undeclared one. (A
#: plain tuple: there may be thousands for one state.)
PlanMember = tuple[int, int]


class NamedPlans:
    """Some plans, and their members by name.

    Attributes:
        plans: the plans.
        names: the declared names of all plans.
        members: for each name, the declared members that have it.
        spelled: for each name, its text.
        open: the undeclared members, of the plans that allow them.
    """

    def __init__(self, plans: tuple[ObjectPlan, ...], ending: bytes) -> None:
        self.plans = plans
        by_name: dict[str, list[PlanMember]] = {}
        for index, plan in enumerate(plans):
            for number, name in enumerate(plan.names):
                by_name.setdefault(name, []).append((index, number))
        self.names = list(by_name)
        self.members = list(by_name.values())
        self.spelled = spelled_names(self.names, ending)
        self.open: list[PlanMember] = [(index, -1) for index, plan in enumerate(plans) if plan.others]

    def named(self, number: int) -> Iterator[PlanMember]:
        """Yield the members that may have a name, by its number: declared ones, then undeclared ones of the plans that
        do not declare it; -1: any name that no plan declares."""
        declared = self.members[number] if number >= 0 else []
        yield from declared
        declaring = {index for index, _ in declared} if self.open else set()
        for index, undeclared in self.open:
            if index not in declaring:
                yield index, undeclared


class UnionState(NamedTuple):
    """State between two members of an object that is of one of some plans.

    Attributes:
        plans: the plans that the object may be of, and their names.
        at: for each plan, the state of its members (`MembersState.at`).
        written: the names written so far, of those that some plan declares; empty if all plans are closed, as ``at``
            has them then.
        is_first: no member is written yet.
    """

    plans: NamedPlans
    at: tuple[int, ...]
    written: frozenset[str] = _NO_NAMES
    is_first: bool = False


@dataclass(slots=True, eq=False)
class _Rest:
    """The rule of the rest of an object from a state on."""

    unions: ObjectUnions
    state: UnionState

    def __call__(self) -> int:
        return self.unions.expand(self.state)

    def apart(self) -> int:
        """Return the same objects, each plan by itself: with all that may be written, these are fewer rules."""
        return self.unions.nodes.alt([self.unions.objects.begun(plan) for plan in self.state.plans.plans])

    def in_order(self) -> int:
        """Return the rest of the object with members in the order of their numbers only: a shortest one is among
        these."""
        return self.unions.in_order(self.state)


@dataclass(slots=True, eq=False)
class _AfterName:
    """The family of the rules of the rest of an object after a name, by the number of the name plus one (0: any name
    that no plan declares)."""

    unions: ObjectUnions
    state: UnionState

    def __call__(self, number: int) -> int:
        return self.unions.expand_after_name(self.state, number - 1)

    def as_empty_as(self, number: int) -> int:
        """Return a node that is empty if and only if no object can be completed after the name."""
        return self.unions.witness_after_name(self.state, number - 1)


@dataclass(slots=True, eq=False)
class _Followers:
    """The objects that are left after a value: a family of rules, by the number of the value.

    Attributes:
        unions: expands the rules.
        written: the names written so far (see `UnionState`).
        left: for each value, the plans that are left, with the states of their members.
    """

    unions: ObjectUnions
    written: frozenset[str]
    left: list[dict[ObjectPlan, int]]

    def __call__(self, number: int) -> int:
        return self.unions.rest(self.left[number], self.written)

    def as_empty_as(self, number: int) -> int:
        """Return a node that is empty if and only if no object can be completed after the value."""
        return self.unions.witness(self.left[number])


class ObjectUnions:
    """Unions of objects of one document that are plain (see `ObjectPlan`), in JSON.

    Attributes:
        is_used: objects are lowered together: they are written in JSON, not read, and have no live values.
    """

    def __init__(self, objects: ObjectLowering) -> None:
        self.objects = objects
        self.nodes = objects.nodes
        lowering = objects.lowering
        self.is_used = lowering.syntax is None and not lowering.is_marked and not lowering.is_live
        self._named: dict[tuple[ObjectPlan, ...], NamedPlans] = {}
        self._rests: dict[object, int] = {}
        self._typed: dict[str, int] = {}  # by the name of a type, the node of its values

    def plan_of(self, branch: Conjunction) -> ObjectPlan | None:
        """Return the plan of an alternative that can be lowered together with others: objects only, plain, and closed
        or with any undeclared name; None for other alternatives."""
        if branch.values is not None or branch.types != _OBJECT:
            return None
        if branch.objects.most is not None or branch.objects.least:  # not plain: no plan need be made
            return None
        plan = self.objects.plan(branch.objects)
        others = plan.others
        takes_any = len(others) == 1 and others[0].names == self.objects.merged.beside(plan.names)
        return plan if plan.plain and (not others or takes_any) else None

    def node(self, plans: Iterable[ObjectPlan]) -> int:
        """Return the objects of some plans."""
        return self.objects.opened(self.rest(dict.fromkeys(plans, 0), _NO_NAMES, is_first=True))

    def rest(self, left: dict[ObjectPlan, int], written: frozenset[str], is_first: bool = False) -> int:
        """Return the rest of an object after a member.

        Args:
            left: the plans that it may be of, each with the state of its members.
            written: the names written so far (see `UnionState`).
            is_first: no member is written yet.
        """
        if len(left) == 1 and not is_first:  # one object is left: its own states go on
            ((plan, at),) = left.items()
            return self.objects.after_member(plan, MembersState(at))  # which forbids the names written so far
        plans, at_each = tuple(left), tuple(left.values())
        key = (plans, at_each, written, is_first)
        node = self._rests.get(key)
        if node is None:
            named = self._named.get(plans)
            if named is None:
                named = self._named[plans] = NamedPlans(plans, self.objects.ending)
            self.nodes.weight += OBJECT_BYTES * len(plans)
            state = UnionState(named, at_each, written, is_first)
            rule = _Rest(self, state)
            shorter = rule.in_order if self.objects.any_order else None
            if self._may_end(state):
                shorter = self.objects.closed
            rest = self.nodes.lazy(rule, rule, as_empty_as=self.witness(plans), as_short_as=shorter)
            if is_first:  # for exports
                self.nodes.known["apart", rest] = self.nodes.lazy(("apart", rule), rule.apart)
            node = self._rests[key] = rest if is_first else self.nodes.seq(self.objects.lowering.space, rest)
        return node

    def in_order(self, state: UnionState) -> int:
        """Return the rest of an object, in any order, with members in the order of the numbers only."""
        objects = self.objects
        each = zip(state.plans.plans, state.at, strict=True)
        return self.nodes.alt([objects.in_order(plan, MembersState(at, state.is_first, start=0)) for plan, at in each])

    # -- whether an object can be completed ---------------------------------------------------------------------

    def witness(self, plans: Iterable[ObjectPlan]) -> int:
        """Return a node that is empty if and only if no object of some plans can be completed, after any members."""
        return self._any_of(self._witness(plan) for plan in plans)

    def witness_after_name(self, state: UnionState, number: int) -> int:
        """Return a node that is empty if and only if no object can be completed after a name (`NamedPlans.named`)."""
        plans = state.plans.plans
        return self._any_of(
            self.objects.witness_after_name(plans[index], member)
            for index, member in state.plans.named(number)
            if self._after(state, index, member) is not None
        )

    def _witness(self, plan: ObjectPlan) -> int:
        found = self.objects.witness(plan)
        assert found is not None  # it is plain
        return found

    def _any_of(self, found: Iterable[int]) -> int:
        """Return the union of some witnesses; EPSILON if it is among them, as the union is surely not empty then."""
        parts: dict[int, None] = {}
        for node in found:
            if node == self.nodes.EPSILON:
                return node
            parts[node] = None
        return self.nodes.alt(list(parts))

    # -- expansion ----------------------------------------------------------------------------------------------

    def expand(self, state: UnionState) -> int:
        """Return the rest of an object from a state on, expanded."""
        nodes, objects, plans = self.nodes, self.objects, state.plans
        if objects.any_order and is_used_up(nodes, plans.plans[0]):
            return self.in_order(state)
        may_be_undeclared = any(self._after(state, index, member) is not None for index, member in plans.open)
        numbers = [
            number
            for number, name in enumerate(plans.names)
            if name not in state.written and (may_be_undeclared or self._may_come(state, number))
        ]
        family = _AfterName(self, state)  # its rules have the number of a name plus one; 0: an undeclared name
        rests = nodes.lazy_each(family, [number + 1 for number in numbers], [UNASKED] * len(numbers))
        lead = b"" if state.is_first else objects.lead
        members = nodes.words({lead + plans.spelled[number]: rest for number, rest in zip(numbers, rests, strict=True)})
        if may_be_undeclared:
            (after,) = nodes.lazy_each(family, [0], [UNASKED])
            name = nodes.json_string(objects.merged.beside(plans.names))
            parts = [nodes.literal(lead), name, unless_repeated(nodes), nodes.literal(objects.ending), after]
            members = nodes.alt([members, nodes.sequence(parts)])
        members = objects.after_comma(members, state.is_first)
        return nodes.alt([objects.closed(), members]) if self._may_end(state) else members

    def expand_after_name(self, state: UnionState, number: int) -> int:
        """Return the rest of an object after a name, expanded (see `NamedPlans.named`): each value with the objects
        that are left after it."""
        nodes, objects, plans = self.nodes, self.objects, state.plans
        texts: dict[str, dict[ObjectPlan, int]] = {}  # by a listed string, what is left after it
        values: dict[int, dict[ObjectPlan, int]] = {}  # by the node of a value, likewise
        for index, member in plans.named(number):
            after = self._after(state, index, member)
            if after is not None:
                plan = plans.plans[index]
                value = self._value(plan, member)
                if isinstance(value, int):
                    values.setdefault(value, {})[plan] = after
                else:
                    for text in value:
                        texts.setdefault(text, {})[plan] = after
        written = state.written
        if number >= 0 and plans.open:
            written |= {plans.names[number]}
        family = _Followers(self, written, list(texts.values()))
        rests = nodes.lazy_each(family, list(range(len(texts))), [UNASKED] * len(texts))
        options = [nodes.words(dict(zip(spelled_names(list(texts), b""), rests, strict=True)))]
        options += [nodes.seq(value, self.rest(left, written)) for value, left in values.items()]
        return objects.after_colon(nodes.alt(options))

    def _value(self, plan: ObjectPlan, number: int) -> Sequence[str] | int:
        """Return the value of a member: the strings that it is one of, if its schema just lists them; else its node.
        The schema is read as it is, without its normal form, which takes longer."""
        goal = plan.goal(number)
        if self.objects.lowering.knows_lists and len(goal) < 2:
            schema: Any = True  # no goal: any value
            if goal:
                formula = goal[0]
                schema = formula.located.schema if type(formula) is SignedSchema and formula.positive else False
            if schema is True:
                return self._of_type("any", plan, number)
            if schema is not False:
                kind = schema.get("type")
                if type(kind) is str and asserts_only(schema, "type"):
                    return self._of_type(kind, plan, number)
                strings = listed_strings(schema)
                if strings is not None:
                    return strings
        return self.objects.member_value(plan, number)

    def _of_type(self, kind: str, plan: ObjectPlan, number: int) -> int:
        """Return the value of a member that is any value of a type; computed once, as most members are such."""
        node = self._typed.get(kind)
        if node is None:
            node = self._typed[kind] = self.objects.member_value(plan, number)
        return node

    def _after(self, state: UnionState, index: int, number: int) -> int | None:
        """Return the state of the members of a plan, by its index, after one of them (`MembersState.at`); None: it may
        not come."""
        plan, at = state.plans.plans[index], state.at[index]
        if self.objects.any_order:
            if number < 0:
                return at
            return None if at >> number & 1 else at | 1 << number
        following = plan.following[at]
        if number < 0:
            return plan.size if following == plan.size else None
        return number + 1 if at <= number <= following else None

    def _may_come(self, state: UnionState, number: int) -> bool:
        """Return True if a plan that declares a name may have it next."""
        for index, member in state.plans.members[number]:  # no generator: this is asked for each name in each state
            if self._after(state, index, member) is not None:
                return True
        return False

    def _may_end(self, state: UnionState) -> bool:
        """Return True if an object of some plan is complete."""
        for plan, at in zip(state.plans.plans, state.at, strict=True):
            if not plan.required & ~at if self.objects.any_order else plan.following[at] == plan.size:
                return True
        return False
