"""Witnesses of objects: nodes that are empty if and only if an object cannot be completed.

The search for a text uses a witness instead of the states of the object, which may be as many as sets of members. So
the witness of an object with two required members is the sequence of their two values: without names, commas and order.
It is made of the names and values of the members, which are written here too.

`object_plan` explains demands and components.
"""

from __future__ import annotations

from collections.abc import Collection
from functools import partial
from json.encoder import encode_basestring
from typing import NamedTuple

from ...errors import LimitError
from ...json import escaped
from ...language.node_kinds import UNASKED
from ..normal.conjunction import Goal
from .context import GoalNodes, MemberSyntax, placed
from .merged_objects import MergedObjects
from .object_plan import UNKNOWN, ObjectPlan, bits_of
from .object_rules import AfterNameRule, MembersState

#: Maximum number of states of the demands on one object that the search for a text meets, and the number of further
#: ones for each state that a text may reach.
MAX_MET, MORE_MET = 20_000, 4


class _SearchState(NamedTuple):
    """State of the search for members that meet the demands of one component. Its members are tried in the order of
    their numbers: in any order there are as many states as sets of members, but whether there is a text does not depend
    on the order.

    Attributes:
        component: the index of the component.
        position: the index of the next member, among those of the component; their number: only regions are left.
        at: the members that were written, as bits.
        members: the number of members that were written, as far as it matters.
        open: the demands that are not met yet, as bits.
    """

    component: int
    position: int
    at: int
    members: int
    open: int


class ObjectWitnesses:
    """The part of an `ObjectLowering` that knows whether an object can be completed.

    Numbers of members below zero are those of regions (see `object_plan`).

    Args:
        lowering: builds the nodes of the values.
        merged: the constraints of the object.
        members: the syntax of its members; None: that of the lowering.
    """

    def __init__(self, lowering: GoalNodes, merged: MergedObjects, members: MemberSyntax | None) -> None:
        self.lowering = lowering
        self.nodes = lowering.nodes
        self.any_order = lowering.options.property_order == "any"
        self._members = members
        # Members are written as JSON: each name and value can be written, and no syntax has to be asked.
        self._direct = members is None and lowering.syntax is None
        self.merged = merged
        # With fixed whitespace, the comma and the colon are part of each key's literal; else they are nodes of their
        # own, with spaces around them.
        self._is_fixed = members is None and not lowering.flexible
        self.ending = lowering.fixed_colon if self._is_fixed else b""

    # -- how names and values are written ----------------------------------------------------------------------

    def _words(self, plan: ObjectPlan, number: int) -> tuple[bytes, ...]:
        """Return the texts of a member's name; none if the member is never valid."""
        words: tuple[bytes, ...] = ()
        if not self.lowering.is_false(plan.goal(number)):
            if self._direct:
                words = (spelled_name(plan.names[number]) + self.ending,)
            else:
                source = self.lowering if self._members is None else self._members
                words = source.keys(plan.names[number])
                if self.ending:
                    words = tuple([word + self.ending for word in words])
        plan.words[number] = words
        return words

    def _written(self, names: int) -> int:
        """Return the texts of the names that are in a term."""
        if self._members is not None:
            return self._members.name(names)
        syntax = self.lowering.syntax
        return self.nodes.json_string(names) if syntax is None else syntax.name(self.nodes, names)

    def member_value(self, plan: ObjectPlan, number: int) -> int:
        """Return the node of a member's value, or of the values of a region; built once."""
        node = plan.values[number]
        if node == UNKNOWN:
            name = None if number < 0 else plan.names[number]
            node = self._written_value(name, plan.goal(number))
            plan.values[number] = node
        return node

    def _written_value(self, name: str | None, goal: Goal) -> int:
        """Return a member's value (``name`` None: of an undeclared one); EMPTY if the name cannot be written."""
        source = self.lowering if self._members is None else self._members
        if name is not None and self.lowering.syntax is not None and not source.keys(name):
            return self.nodes.EMPTY
        return self.lowering.value(goal) if self._members is None else self._members.value(name, goal)

    def _is_inhabited(self, plan: ObjectPlan, number: int) -> bool:
        """Return True if a member, or a region's members, surely have a value."""
        sure = plan.sure[number]
        if sure == UNKNOWN:
            sure = self._direct and self.lowering.is_inhabited(plan.goal(number))
            plan.sure[number] = sure
        return sure == 1

    # -- whether an object can be completed ---------------------------------------------------------------------

    def witness(self, plan: ObjectPlan) -> int | None:
        """Return the witness of an object, where it is the same in each of its states: the sequence of the values of
        its required members. None: it depends on the state."""
        if plan.witness == UNKNOWN:
            # A minimum alone does not depend on the state if members come in any order: all can still be written.
            has_only_minimum = self.any_order and not plan.demands and plan.most is None and not plan.bars
            if plan.free:
                required = [number for number in range(plan.size) if plan.members[number].required]
                values = [
                    self.member_value(plan, number) for number in required if not self._is_inhabited(plan, number)
                ]
                plan.witness = self.nodes.sequence(values)
            elif has_only_minimum:
                plan.witness = self.nodes.lazy(("counted", plan), lambda: self._counted_witness(plan))
            else:
                plan.witness = None
        return plan.witness

    def witnesses_after_names(self, rule: AfterNameRule, numbers: Collection[int]) -> list[int]:
        """Return the witness of the rest of an object after the name of each of some members; `UNASKED` if it is not
        built yet (`witness_after_name`), `UNKNOWN` if it depends on the state."""
        plan, state = rule.plan, rule.state
        if (
            rule.value != UNKNOWN
            or rule.goal
            or state.excluded
            or (state.start is not None and not self._has_enough(plan, state))
            or self.witness(plan) is None
        ):
            return [UNKNOWN] * len(numbers)
        return [plan.witnesses[number] for number in numbers]

    def witness_after_name(self, plan: ObjectPlan, number: int) -> int:
        """Return the witness of an object after the name of a member, if the plan has a witness."""
        if plan.witnesses[number] == UNASKED:
            whole = self.witness(plan)
            assert whole is not None
            is_sure = self._is_inhabited(plan, number)
            plan.witnesses[number] = whole if is_sure else self.nodes.seq(self.member_value(plan, number), whole)
        return plan.witnesses[number]

    def _is_endless(self, plan: ObjectPlan, state: MembersState) -> bool:
        """Return True if a member that may still come has infinitely many values: then the object can be made to differ
        from others, if it can be completed at all."""
        if not plan.free or not self._direct:  # demands or a maximum may forbid the member
            return False
        if plan.endless is None:
            numbers = reversed(range(plan.size))  # the last, which may follow more members than the others
            unbarred = (number for number in numbers if not plan.bars or not plan.bars[number])
            endless = (number for number in unbarred if self.lowering.is_nearly_any(plan.goal(number)))
            plan.endless = next(endless, UNKNOWN)
        if plan.endless == UNKNOWN:
            return False
        return not state.at >> plan.endless & 1 if self.any_order else state.at <= plan.endless

    def _has_enough(self, plan: ObjectPlan, state: MembersState) -> bool:
        """Return True if the members from the start of a state on surely suffice for the minimum; False: not known."""
        if plan.demands or plan.bars or plan.most is not None:  # members may exclude each other
            return False
        missing = plan.least - state.members
        if missing <= 0 or self._has_region(plan):
            return True
        return missing <= self._sure_from(plan)[state.start or 0]

    def _sure_from(self, plan: ObjectPlan) -> list[int]:
        """Return, for each member, how many from there on are required or surely have a value; last, 0."""
        if plan.sure_from is None:
            counts = [0]
            for number in reversed(range(plan.size)):
                is_sure = plan.members[number].required or self._is_inhabited(plan, number)
                counts.append(counts[-1] + is_sure)
            plan.sure_from = counts[::-1]
        return plan.sure_from

    def _has_region(self, plan: ObjectPlan) -> bool:
        """Return True if undeclared members surely have a value."""
        for number in range(-len(plan.others), 0):
            if self._is_inhabited(plan, number):
                return True
        return False

    def _witness_by_demands(self, plan: ObjectPlan, state: MembersState) -> int:
        """Return the witness of an object from a state on: the sequence of those of its components, and of the values
        of the required members outside of these. A component is left out if it can stay as it is: no further member."""
        at = state.at if self.any_order else (1 << state.at) - 1 | state.barred
        missing = plan.required & ~at
        unmet = plan.unmet(at, state.open)
        plan.allowed += MORE_MET  # each state of a text pays for some states of its search
        is_counted = plan.least or plan.most is not None
        parts: list[int] = []
        if unmet & ~plan.open_to[0]:  # nothing can meet it
            return self.nodes.EMPTY
        for index, component in enumerate(plan.components):
            if is_counted or component.demands & unmet or component.members & missing:
                first = _SearchState(index, 0, at & component.members, state.members, state.open & component.demands)
                parts.append(self._either_witness(plan, first))
                missing &= ~component.members
        for number in bits_of(missing):
            if not self._is_inhabited(plan, number):
                parts.append(self.member_value(plan, number))
        return self.nodes.sequence(parts)

    def _either_witness(self, plan: ObjectPlan, first: _SearchState) -> int:
        """Return the witness of a component: that of the search from its first member on, or if a search was given up,
        from each member on that may have been written last. So a text that follows, with members in any order, what a
        search found is never in a state without a witness.
        """
        whole = self._component_witness(plan, first)
        if not self.any_order or whole == self.nodes.EMPTY:
            return whole
        return self.nodes.alt(
            [whole, self.nodes.lazy(("after", plan, first), partial(self._expand_after, plan, first))]
        )

    def _expand_after(self, plan: ObjectPlan, first: _SearchState) -> int:
        """Return the witnesses of a component from after each of its written members on, and from its end, as if the
        members before were written in the order of their numbers: up to a required member that is not written."""
        options: list[int] = []
        if not plan.is_given_up:
            return self.nodes.EMPTY
        numbers = plan.components[first.component].numbers
        open = first.open
        for position, number in enumerate(numbers, 1):
            if first.at >> number & 1:
                options.append(self._component_witness(plan, first._replace(position=position, open=open)))
            elif plan.required >> number & 1:
                return self.nodes.alt(options)
            else:
                open &= ~plan.absent[number]  # it is passed over
        options.append(self._component_witness(plan, first._replace(position=len(numbers), open=open)))
        return self.nodes.alt(options)

    def _component_witness(self, plan: ObjectPlan, state: _SearchState) -> int:
        """Return the witness of a component from a state of the search on. States that differ only in members that no
        longer matter have the same."""
        component = plan.components[state.component]
        numbers, position = component.numbers, state.position
        at, open = plan.without_idle(state.at | _before(plan, numbers, position), state.open, component.members)
        while position < len(numbers) and at >> numbers[position] & 1:
            position += 1
        if open & ~component.able[position]:
            return self.nodes.EMPTY
        at |= _before(plan, numbers, position)
        state = state._replace(position=position, at=at, open=open)
        return self.nodes.lazy(("rest", plan, state), lambda: self._expand_witness(plan, state))

    def _expand_witness(self, plan: ObjectPlan, state: _SearchState) -> int:
        """Return the witness of a component from a state of the search on, expanded: an alternative for each way to
        write the next member, or (at the end) a member of a region, and one for passing over it.

        Raises:
            LimitError: the searches for a text of this object met too many states.
        """
        nodes = self.nodes
        component, position, at, count, open = state
        numbers = plan.components[component].numbers
        is_last = position == len(numbers)
        self._count_met(plan)
        options: list[int] = []
        if is_last:
            if not open and count >= plan.least:
                return nodes.EPSILON
        elif not plan.required >> numbers[position] & 1:
            unmet = open & ~plan.absent[numbers[position]]
            options.append(self._component_witness(plan, state._replace(position=position + 1, open=unmet)))
        if plan.most is not None and count >= plan.most:
            return nodes.alt(options)
        following = position if is_last else position + 1
        more = count + 1 if plan.least > count or plan.most is not None else count  # beyond a minimum, none counts
        for number in range(-len(plan.others), 0) if is_last else (numbers[position],):
            name = None if number < 0 else plan.names[number]
            if name is not None and not self._words(plan, number):
                continue
            goal = plan.goal(number)
            for met, demanded in self.merged.meeting(goal, plan.meets(number) if open else (), open):
                if is_last and not met and more == count:
                    continue  # it changes nothing
                value = self._written_value(name, (*goal, *demanded)) if demanded else self.member_value(plan, number)
                written = at
                if plan.bars and name is not None:
                    written |= plan.bars[number]
                    met |= plan.spared[number]
                rest = self._component_witness(plan, _SearchState(component, following, written, more, open & ~met))
                options.append(nodes.seq(value, rest))
        return nodes.alt(options)

    @staticmethod
    def _count_met(plan: ObjectPlan) -> None:
        """Count a state of a search for a text of an object; raise `LimitError` if there were too many."""
        plan.met += 1
        if plan.met > MAX_MET + plan.allowed:
            plan.is_given_up = True
            error = LimitError(
                f"the search for a text of one object meets more than {MAX_MET:,} sets of demands",
                hint="simplify the conditions on its members",
            )
            raise placed(error, plan.located)

    def _counted_witness(self, plan: ObjectPlan) -> int:
        """Return the `witness` of an object with a minimum number of members: its required members have values, and as
        many of the others as are missing."""
        nodes = self.nodes
        required: list[int] = []
        unsure: list[int] = []  # the values of the optional members that may have none
        missing = plan.least
        for number in range(plan.size):
            if plan.required >> number & 1:
                required.append(self.member_value(plan, number))
            elif not self._is_inhabited(plan, number):
                unsure.append(self.member_value(plan, number))
                continue
            missing -= 1
        if self._has_region(plan):  # its members are as many as are missing
            missing = 0
        regions = nodes.alt([self.lowering.value(region.goal) for region in plan.others])
        # some_of[k]: k members have values, of the unsure ones looked at so far and of regions.
        some_of = [nodes.EPSILON] + [regions] * max(0, missing)
        for value in reversed(unsure) if len(some_of) > 1 else ():
            with_value = [nodes.seq(value, one_less) for one_less in some_of[:-1]]
            without = some_of[1:]
            some_of = [some_of[0], *(nodes.alt([one, other]) for one, other in zip(with_value, without, strict=True))]
        return nodes.sequence([*required, some_of[-1]])


def _before(plan: ObjectPlan, numbers: tuple[int, ...], position: int) -> int:
    """Return the members of an object, as bits, before the one at a position of ``numbers``; at the end, all."""
    return (1 << (numbers[position] if position < len(numbers) else plan.size)) - 1


def spelled_name(name: str) -> bytes:
    """Return a property name as JSON."""
    return escaped(encode_basestring(name)).encode()


def spelled_names(names: list[str], ending: bytes) -> list[bytes]:
    """Return property names as JSON, each with an ending: many at once (JSON has no line break in a string)."""
    lines = "\n".join(map(encode_basestring, names))
    return [line + ending for line in escaped(lines).encode().split(b"\n")] if names else []
