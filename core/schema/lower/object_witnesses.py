"""Witnesses of objects: nodes that are empty if and only if an object cannot be completed.

The search for a text uses a witness instead of the states of the object, which may be as many as sets of members. It is
made of the names and values of the members, which are written here too.
"""

from __future__ import annotations

from collections.abc import Collection
from functools import partial
from itertools import pairwise
from json.encoder import encode_basestring

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


class ObjectWitnesses:
    """The part of an `ObjectLowering` that knows whether an object can be completed."""

    def __init__(self, lowering: GoalNodes, merged: MergedObjects, members: MemberSyntax | None) -> None:
        self.lowering = lowering
        self.nodes = lowering.nodes
        self.any_order = lowering.options.property_order == "any"
        self._members = members
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
        """Return the texts of the names of a term."""
        if self._members is not None:
            return self._members.name(names)
        syntax = self.lowering.syntax
        return self.nodes.json_string(names) if syntax is None else syntax.name(self.nodes, names)

    def member_value(self, plan: ObjectPlan, number: int) -> int:
        """Return the value of a member, or of a region's members."""
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
        """Return the witness of an object from each of its states: the sequence of the values of its required members.
        None: it depends on the state."""
        if plan.witness == UNKNOWN:
            nodes = self.nodes
            if not plan.free and (plan.demands or plan.most is not None or plan.bars or not self.any_order):
                plan.witness = None
            elif plan.least:
                plan.witness = nodes.lazy(("counted", plan), lambda: self._counted_witness(plan))
            else:
                values: list[int] = []
                for number in range(plan.size):
                    if plan.members[number].required and not self._is_inhabited(plan, number):
                        values.append(self.member_value(plan, number))
                plan.witness = nodes.sequence(values)
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
        if not plan.free or not self._direct:
            return False
        if plan.endless is None:
            numbers = reversed(range(len(plan.names)))  # the last, which may follow more members than the others
            unbarred = (at for at in numbers if not plan.bars or not plan.bars[at])
            plan.endless = next((at for at in unbarred if self.lowering.is_nearly_any(plan.goal(at))), UNKNOWN)
        if plan.endless == UNKNOWN:
            return False
        return not state.at >> plan.endless & 1 if self.any_order else state.at <= plan.endless

    def _has_enough(self, plan: ObjectPlan, state: MembersState) -> bool:
        """Return True if the members from the start of a state on are surely as many as are missing there."""
        if plan.demands or plan.bars or plan.most is not None:
            return False
        missing = plan.least - state.members
        if missing <= 0 or self._has_region(plan):
            return True
        return missing <= self._sure_from(plan)[state.start or 0]

    def _sure_from(self, plan: ObjectPlan) -> list[int]:
        """Return, for each member, how many from there on are required or surely have a value."""
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
        """Return the witness of an object from a state on: one for each component of its demands, but for those that
        can be left as they are."""
        at = state.at if self.any_order else (1 << state.at) - 1 | state.barred
        missing = plan.required & ~at
        unmet = plan.unmet(at, state.open)
        plan.allowed += MORE_MET
        is_counted = plan.least or plan.most is not None
        parts: list[int] = []
        if unmet & ~plan.open_to[0]:  # nothing can meet it
            return self.nodes.EMPTY
        for number, part in enumerate(plan.components):
            if is_counted or part.demands & unmet or part.members & missing:
                waiting = state.open & part.demands
                parts.append(self._either_witness(plan, number, at & part.members, state.members, waiting))
                missing &= ~part.members
        for number in bits_of(missing):
            if not self._is_inhabited(plan, number):
                parts.append(self.member_value(plan, number))
        return self.nodes.sequence(parts)

    def _either_witness(self, plan: ObjectPlan, which: int, at: int, count: int, open: int) -> int:
        """Return the witness of the demands of a component: that of the search from its first member on, or if one was
        given up, from each member on that may have been written last. So a text that follows, with members in any
        order, what a search found is never in a state without a witness.
        """
        whole = self._component_witness(plan, which, 0, at, count, open)
        if not self.any_order or whole == self.nodes.EMPTY:
            return whole
        rule = partial(self._expand_after, plan, which, at, count, open)
        return self.nodes.alt([whole, self.nodes.lazy(("after", plan, which, at, count, open), rule)])

    def _expand_after(self, plan: ObjectPlan, which: int, at: int, count: int, open: int) -> int:
        """Return the witnesses of a component from each of its written members on (see `_either_witness`)."""
        options: list[int] = []
        numbers = plan.components[which].numbers if plan.is_given_up else ()
        for position, number in enumerate(numbers, 1):
            if at >> number & 1:
                options.append(self._component_witness(plan, which, position, at, count, open))
            elif plan.required >> number & 1:
                return self.nodes.alt(options)
            else:
                open &= ~plan.absent[number]
        options += [self._component_witness(plan, which, len(numbers), at, count, open)] if numbers else []
        return self.nodes.alt(options)

    def _component_witness(self, plan: ObjectPlan, which: int, position: int, at: int, count: int, open: int) -> int:
        """Return the witness of the demands of a component with members from a position on only, in the order of the
        numbers: in any order there are as many states as sets of members, but whether there is a text does not depend
        on the order.

        Args:
            plan: the plan of the object.
            which: the number of the component.
            position: the index of the first member, among those of the component.
            at: the members that were written, as bits.
            count: the number of members that were written, as far as it matters.
            open: the demands that are not met yet, as bits.
        """
        part = plan.components[which]
        decided = (1 << (part.numbers[position] if position < len(part.numbers) else plan.size)) - 1
        at, open = plan.without_idle(at | decided, open, part.members)
        while position < len(part.numbers) and at >> part.numbers[position] & 1:
            position += 1
        if open & ~part.able[position]:
            return self.nodes.EMPTY
        at = at >> part.numbers[position] if position < len(part.numbers) else 0
        key = ("rest", plan, which, position, at, count, open)
        return self.nodes.lazy(key, lambda: self._expand_witness(plan, which, position, at, count, open))

    def _expand_witness(self, plan: ObjectPlan, which: int, position: int, at: int, count: int, open: int) -> int:
        """Return one text for each choice of members from a position on: a subset that is enough to find a shortest
        object (``at``: the written members from that one on; the others are those of `_component_witness`)."""
        nodes = self.nodes
        part = plan.components[which]
        is_last = position == len(part.numbers)
        number = plan.size if is_last else part.numbers[position]
        plan.met += 1
        plan.is_given_up = plan.is_given_up or plan.met > MAX_MET + plan.allowed
        if plan.met > MAX_MET + plan.allowed:
            error = LimitError(
                f"the search for a text of one object meets more than {MAX_MET:,} sets of demands",
                hint="simplify the conditions on its members",
            )
            raise placed(error, plan.located)
        options: list[int] = []
        if is_last:
            if not open and count >= plan.least:
                return nodes.EPSILON
        elif not plan.required >> number & 1:
            unmet = open & ~plan.absent[number]
            options.append(self._component_witness(plan, which, position + 1, at << number, count, unmet))
        if plan.most is not None and count >= plan.most:
            return nodes.alt(options)
        following = position if is_last else position + 1
        more = count + 1 if plan.least > count or plan.most is not None else count
        for each in range(-len(plan.others), 0) if is_last else (number,):
            name = None if each < 0 else plan.names[each]
            if name is not None and not self._words(plan, each):
                continue
            for met, demanded in self.merged.meeting(plan.goal(each), plan.meets(each) if open else (), open):
                if is_last and not met and more == count:
                    continue  # it changes nothing
                goal = plan.goal(each)
                value = self._written_value(name, (*goal, *demanded)) if demanded else self.member_value(plan, each)
                written = at << number
                if plan.bars and name is not None:
                    written |= plan.bars[each]
                    met |= plan.spared[each]
                rest = self._component_witness(plan, which, following, written, more, open & ~met)
                options.append(nodes.seq(value, rest))
        return nodes.alt(options)

    def _counted_witness(self, plan: ObjectPlan) -> int:
        """Return the `_witness` of an object with a minimum number of members: enough optional or undeclared members
        have a value. A table over the optional members and the number that is missing."""
        nodes = self.nodes
        required: list[int] = []
        optional: list[int] = []
        missing = plan.least
        for number in range(len(plan.names)):
            if plan.required >> number & 1:
                required.append(self.member_value(plan, number))
            elif not self._is_inhabited(plan, number):
                optional.append(self.member_value(plan, number))
                continue
            missing -= 1
        if self._has_region(plan):
            missing = 0
        regions = nodes.alt([self.lowering.value(region.goal) for region in plan.others])
        row = [nodes.EPSILON] + [regions] * max(0, missing)
        for value in reversed(optional) if len(row) > 1 else ():
            row = [row[0], *(nodes.alt([nodes.seq(value, less), same]) for less, same in pairwise(row))]
        return nodes.sequence([*required, row[-1]])


def spelled_name(name: str) -> bytes:
    """Return a property name as JSON."""
    return escaped(encode_basestring(name)).encode()


def spelled_names(names: list[str], ending: bytes) -> list[bytes]:
    """Return property names as JSON, each with an ending: many at once (JSON has no line break in a string)."""
    lines = "\n".join(map(encode_basestring, names))
    return [line + ending for line in escaped(lines).encode().split(b"\n")] if names else []
