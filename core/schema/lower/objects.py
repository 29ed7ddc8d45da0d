"""Lowering of objects: members in the schema's order or in any, undeclared names, counts and demands."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Any
from weakref import WeakValueDictionary

from ...dependent.distinct import DistinctObjects
from ...dependent.live import Answer, no_values, unbound
from ...dependent.roomy import is_roomy
from ...dependent.unrepeated import unless_repeated
from ...dependent.written import Written
from ...errors import LimitError, LiveValuesError, Place, SchemaError
from ...json import value_key, value_of_key
from ...language.node_kinds import ALL, LITERAL, RESERVED, RIVALS
from ...language.reading_marks import CLOSED, ENTERED, NAMED, OPENED, VALUE
from ..normal.conjunction import Goal, Objects
from ..read.live import require_schema, with_answers
from ..read.located import Located, SignedSchema
from .context import GoalNodes, MemberSyntax
from .merged_objects import Member, MergedObjects, ObjectShape, Region
from .object_plan import UNKNOWN, ObjectPlan, bits_of, has_marks
from .object_rules import NO_OBJECTS, AfterNameRule, LiveRule, MembersState, RestRule
from .object_witnesses import ObjectWitnesses, spelled_name, spelled_names

#: Maximum number of lists of written names for which an object keeps the term of the names that are left.
MAX_REMEMBERED = 256

#: Maximum number of excluded objects whose members are memoised, and length of their keys.
MAX_ITEMS, MAX_SHORT = 16_384, 1_000

#: Number of members whose names are one list, shared by the states before them: a power of two.
SHARED_NAMES = 256


class _Schema(dict[str, Any]):
    """A schema of an answer, which can be referred to weakly."""

    __slots__ = ("__weakref__",)


class ObjectLowering(ObjectWitnesses):
    """Lowering of the objects of one document, or, with ``members``, of its arguments object.

    Where members may come in any order, there are as many states as sets of members, and each names all that are left.
    When nodes run short (`Nodes.is_scarce`), the members that are left come in the order of the schema.
    """

    def __init__(self, lowering: GoalNodes, merged: MergedObjects, members: MemberSyntax | None = None) -> None:
        ObjectWitnesses.__init__(self, lowering, merged, members)
        self._plans: dict[Objects, ObjectPlan] = {}
        self._distinct: dict[Objects, int | None] = {}
        self._schemas: WeakValueDictionary[str, _Schema] = WeakValueDictionary()  # of answers, while nodes need them
        nodes = self.nodes
        fixed = self._is_fixed
        self.lead = lowering.comma if fixed else b""
        self._loose_comma = nodes.EPSILON if fixed else nodes.seq(nodes.literal(lowering.comma), lowering.space)
        self._loose_space = None if fixed or members is not None else lowering.space
        self._colon = nodes.literal(b":")
        opened = nodes.sequence([nodes.literal(b"{"), lowering.marked(ENTERED, name="{"), lowering.space])
        self._opening = nodes.EPSILON if members else opened
        self._closing = nodes.EPSILON if members else nodes.seq(nodes.literal(b"}"), lowering.marked(CLOSED))
        self._begun = nodes.EPSILON if members else lowering.marked(VALUE)

    def shape(self, objects: Objects) -> ObjectShape:
        """Return the merged shape of a conjunction."""
        return self.merged.of(objects)

    def node(self, objects: Objects, excluded: frozenset[str] = NO_OBJECTS) -> int:
        """Return the node of the objects that satisfy a conjunction, without the whole objects whose keys (`value_key`)
        are ``excluded``."""
        if objects.most is not None and objects.least > objects.most:
            return self.nodes.EMPTY
        plan = self.plan(objects)
        if excluded and not self.lowering.is_marked:
            return self.opened(self._rest(plan, _start(plan, excluded)))
        if plan.start == UNKNOWN:
            plan.start = self.opened(self.begun(plan))
        return plan.start

    def plan(self, objects: Objects) -> ObjectPlan:
        """Return the plan of a conjunction; made once."""
        plan = self._plans.get(objects)
        if plan is None:
            plan = self._plans[objects] = ObjectPlan(self.shape(objects), self.lowering.here)
        return plan

    def distinct(self, objects: Objects) -> int | None:
        """Return the node of the objects that satisfy a conjunction, as items of an array, without those that are equal
        to an item before; None if they have no deciding member (see `DistinctObjects`)."""
        if objects not in self._distinct:
            self._distinct[objects] = self._without_repeated(objects)
        return self._distinct[objects]

    def _without_repeated(self, objects: Objects) -> int | None:
        """Return the result of `distinct`, computed."""
        plan = self.plan(objects)
        is_usual = self._direct and not (self.any_order or self.lowering.is_live or self.lowering.is_marked)
        if not is_usual or not plan.plain:
            return None
        for number in reversed(range(plan.size)):
            if plan.required >> number & 1 and self._is_deciding(plan.goal(number)):
                plan = ObjectPlan(self.shape(objects), self.lowering.here, number)
                return self.opened(self._rest(plan, _start(plan)))
        return None

    def _is_deciding(self, goal: Goal) -> bool:
        """Return True if the values of a goal are strings of a roomy language."""
        lowering = self.lowering
        try:
            for branch in lowering.branches(goal):
                if branch.values is not None or branch.types != {"string"} or lowering.string_parts(branch)[0]:
                    return False
            return is_roomy(self.nodes.terms, lowering.strings(goal))
        except (LimitError, SchemaError):  # reported where a text reaches the member
            return False

    def _after_deciding(self, plan: ObjectPlan, number: int, rest: int) -> int:
        """Return the rest of an object after its deciding member, by the number of that; ``rest``: the same if the
        object has no rivals."""

        def following(rivals: frozenset[str], names: frozenset[str]) -> int:
            return self.after_member(plan, MembersState(number + 1, excluded=rivals, names=names))

        resolve = DistinctObjects(plan.names[:number], plan.names[number], following)
        return self.nodes.dynamic(("after deciding", plan), rest, resolve, RIVALS)

    # -- states ------------------------------------------------------------------------------------------------

    def tagged(self, name: str, rest: int) -> int:
        """Return the objects in JSON whose first member has a name: ``rest`` is its value, and what follows."""
        named = self.nodes.seq(self.nodes.literal(spelled_name(name) + self.ending), self.after_colon(rest))
        return self.opened(named)

    def after_first(self, objects: Objects) -> int:
        """Return the rest of an object after its first member, which is required, if only members are asked of it."""
        plan = self.plan(objects)
        assert plan.plain and not self.any_order and plan.required & 1
        return self.after_member(plan, MembersState(1))

    def after_member(self, plan: ObjectPlan, state: MembersState) -> int:
        """Return the rest of an object after a member, from a state on."""
        if state.start is not None:
            return self.nodes.seq(self.lowering.space, self.in_order(plan, state))
        if state.open and not self.any_order and state.open & ~plan.open_to[state.at]:  # no other member decides it
            return self.nodes.EMPTY
        key: object = state.at if plan.plain else (state.at, state.members, state.open, state.barred)
        if state.excluded:
            key = state
        node = plan.rests.get(key)
        if node is None:
            node = plan.rests[key] = self.nodes.seq(self.lowering.space, self._rest(plan, state))
        return node

    def _rest(self, plan: ObjectPlan, state: MembersState) -> int:
        """Return the node of the rest of an object from a state on: expanded when a text reaches it."""
        rule = RestRule(self, plan, state)
        shorter = rule.in_order if self.any_order else None
        if self._may_end(plan, state):
            shorter = self.closed
        return self.nodes.lazy(rule, rule, as_empty_as=self._witness_from(plan, state), as_short_as=shorter)

    def opened(self, rest: int) -> int:
        """Return an object from all that follows its opening brace."""
        return self.nodes.seq(self._opening, rest)

    def begun(self, plan: ObjectPlan) -> int:
        """Return an object without its opening brace."""
        return self._rest(plan, _start(plan))

    def closed(self) -> int:
        """Return the end of an object."""
        return self._closing

    def _may_end(self, plan: ObjectPlan, state: MembersState) -> bool:
        """Return True if an object is complete in a state."""
        if state.start is not None and state.start < plan.size:
            return False
        done = not plan.required & ~state.at if self.any_order else plan.following[state.at] == plan.size
        if not done or state.members < plan.least or (state.open and self._unmet(plan, state, plan.size)):
            return False
        return not state.excluded or all(len(value_of_key(other)) != len(state.names) for other in state.excluded)

    def in_order(self, plan: ObjectPlan, state: MembersState) -> int:
        """Return the rest of an object, in any order, with members from ``start`` on only, in the order of the numbers.

        A shortest text is among these, and there are fewer states than sets of members.
        """
        at, open, start = state.at, state.open, state.start or 0
        if not state.excluded:  # an idle member may be what differs
            at, open = plan.without_idle(at, open)
        while start < plan.size and at >> start & 1:
            start += 1
        if open & ~plan.open_to[start]:
            return self.nodes.EMPTY
        at |= (1 << start) - 1  # the members before no longer matter
        state = state._replace(at=at, open=open, start=start)
        rule = RestRule(self, plan, state)
        return self.nodes.lazy(("in order", plan, state), rule, as_empty_as=self._witness_from(plan, state))

    # -- whether an object can be completed ---------------------------------------------------------------------

    def _witness_from(self, plan: ObjectPlan, state: MembersState) -> int | None:
        """Return the witness of an object from a state on; None: the rest of the object from there."""
        if state.start is not None:
            return self.witness(plan) if not state.excluded and self._has_enough(plan, state) else None
        if state.excluded:
            if self._is_endless(plan, state):
                return self.witness(plan)
            return self.in_order(plan, state._replace(start=0)) if self.any_order else None
        witness = self.witness(plan)
        is_counted = plan.least or plan.most is not None
        if witness is None and (self.any_order or not is_counted) and (plan.demands or is_counted):
            witness = self._witness_by_demands(plan, state)
        return witness

    def are_endless(self, objects: Objects) -> bool:
        """Return True if infinitely many objects surely satisfy a conjunction; False: they may do so all the same."""
        self.node(objects)
        plan: ObjectPlan | None = self._plans.get(objects)
        if plan is None or not plan.free or not self._direct:
            return False
        witness = self.witness(plan)
        if witness is None or self.nodes.is_empty(witness):
            return False
        count = len(plan.others)
        return self._is_endless(plan, _start(plan)) or any(
            plan.others[number].roomy and self._is_inhabited(plan, number - count) for number in range(count)
        )

    def expand(self, plan: ObjectPlan, state: MembersState) -> int:
        """Return the rest of an object from a state on, expanded."""
        nodes = self.nodes
        at = state.at
        size = plan.size
        keys = nodes.EMPTY
        live: list[int] = []  # the members with live values
        allowed = plan.most is None or state.members < plan.most
        skipped = nodes.EMPTY
        done = False  # all required members are written
        if state.start is not None and state.start < size:
            number = state.start
            if not plan.required >> number & 1:
                skipped = self.in_order(plan, state._replace(start=number + 1, open=state.open & ~plan.absent[number]))
            numbers: Sequence[int] = (number,)
        elif self.any_order:
            done = not plan.required & ~at
            written = frozenset(bits_of(at))
            numbers = [number for number in range(size) if number not in written] if at else range(size)
        else:
            following = plan.following[at]
            done = following == size
            numbers = range(at, following if done else following + 1)
            if state.barred:
                numbers = [number for number in numbers if not state.barred >> number & 1]
        if allowed and self._has_plain_names(plan, state):
            keys = self._plain_names(plan, state, numbers)
        elif allowed:
            keys = self._names(live, plan, state, numbers)
        if allowed and plan.others and (done or (self.any_order and state.start is None)):
            lead = b"" if state.is_first else self.lead
            options = [keys]
            for number in range(len(plan.others)):
                for node in self._undeclared(plan, state, number):
                    options.append(nodes.seq(nodes.literal(lead), node) if lead else node)
            keys = nodes.alt(options)
        if self._members is not None:
            separator = nodes.EPSILON if state.is_first else self._members.separator
            keys = nodes.sequence([separator, self._members.before_name, keys])
        else:
            keys = self.after_comma(keys, state.is_first)
        if live:
            keys = nodes.alt([keys, *(self._live(plan, state, number) for number in live)])
        if state.start is not None:
            keys = nodes.alt([keys, skipped])
        if not self._may_end(plan, state):
            return keys
        return nodes.alt([self._closing, keys])  # the end first: it decides at once that there is a text

    def after_comma(self, keys: int, is_first: bool) -> int:
        """Return the next member of an object with the comma before it, from the member; the comma is a part of the
        name's text (``lead``), where whitespace is fixed."""
        return keys if is_first else self.nodes.seq(self._loose_comma, keys)

    def _has_plain_names(self, plan: ObjectPlan, state: MembersState) -> bool:
        """Return True if the names of an object are nothing but JSON strings, and what follows a name depends, in the
        schema's order, on the member alone."""
        special = self.lowering.is_marked or self.lowering.is_live or state.excluded or state.start is not None
        return plan.plain and self._direct and not special

    def _plain_names(self, plan: ObjectPlan, state: MembersState, numbers: Sequence[int]) -> int:
        """Return the names of members, each with what follows it (see `_has_plain_names`).

        In the schema's order, the members are a range, which begins elsewhere in each state. It is divided where those
        of other states are, and long parts are shared: all states of n members need n log n names.
        """
        if self.any_order or not numbers:
            return self._listed(plan, state, numbers)
        parts: list[int] = []
        first, end = numbers[0], numbers[-1] + 1
        while first < end:
            size = SHARED_NAMES
            while not first % (2 * size) and first + 2 * size <= end:
                size *= 2
            stop = min(end, first - first % SHARED_NAMES + size)
            key = (first, stop, state.is_first)
            if key not in plan.lists:
                plan.lists[key] = self._listed(plan, state, range(first, stop))
            parts.append(plan.lists[key])
            first = stop
        return self.nodes.alt(parts)

    def _listed(self, plan: ObjectPlan, state: MembersState, numbers: Sequence[int]) -> int:
        """Return the names of members, each with what follows it, in one list."""
        if not plan.spelled:
            plan.spelled = spelled_names(plan.names, self.ending)
        words = [plan.spelled[number] for number in numbers]
        if self.lead and not state.is_first:
            words = [self.lead + word for word in words]
        rule = AfterNameRule(self, plan, state)
        if self.any_order:
            return self.nodes.words(dict(zip(words, rule.each(numbers), strict=True)))
        follow = plan.follow
        missing = [number for number in numbers if number not in follow]
        follow.update(zip(missing, rule.each(missing), strict=True))
        return self.nodes.words(dict(zip(words, map(follow.__getitem__, numbers), strict=True)))

    def _names(self, live: list[int], plan: ObjectPlan, state: MembersState, numbers: Sequence[int]) -> int:
        """Return the names of members, each with what follows it; those with live values go to ``live`` instead."""
        entries: list[tuple[bytes, int]] = []
        named: list[int] = []
        for number in numbers:
            words = plan.words[number]
            if words is None:
                words = self._words(plan, number)
            if words:
                (live if self.lowering.is_live and plan.marks_of(number) else named).append(number)
        lead = b"" if state.is_first else self.lead
        for number, rest in zip(named, self._after_names(plan, state, named), strict=True):
            for word in plan.words[number] or ():
                if self.lowering.is_marked:
                    marked = self.lowering.marked
                    mark = marked(NAMED, name=plan.names[number], size=len(word), ending=len(self.ending))
                    entries.append((lead + word, self.nodes.seq(mark, rest)))
                else:
                    entries.append((lead + word, rest))
        return self.nodes.words(entries)

    def _after_names(self, plan: ObjectPlan, state: MembersState, numbers: list[int]) -> list[int]:
        """Return the rest of an object after the name of each of some members."""
        if not self.any_order or state.start is not None or state.excluded:
            return [self._after_name(plan, state, number) for number in numbers]
        return AfterNameRule(self, plan, state).each(numbers)

    def _live(self, plan: ObjectPlan, state: MembersState, number: int) -> int:
        """Return the rest of an object from a member with live values on, with the separator before it.

        If the member must come now, the dependent node is after its name. Else it is where a text decides for the
        member, so that a member without values is not begun: after the comma, which shows that a number before it is
        whole; or before the markup, if a value has an end of its own.
        """
        nodes = self.nodes
        begin, lead = nodes.EPSILON, nodes.EPSILON
        if self._members is not None:
            lead = nodes.EPSILON if state.is_first else self._members.separator
            if not self._members.ends_values and nodes.kind(lead) == LITERAL:
                (data,) = nodes.args(lead)
                begin, lead = nodes.literal(data[:1]), nodes.literal(data[1:])
            lead = nodes.seq(lead, self._members.before_name)
        elif not state.is_first:
            begin = nodes.literal(b",")
            lead = nodes.literal(self.lead[1:]) if self.lead else self.lowering.space

        def rest(after: int) -> int:
            return nodes.seq(lead, nodes.words([(word, after) for word in plan.words[number] or ()]))

        after = self._after_name(plan, state, number)
        key = ("live", self, plan, state, number)
        if plan.required >> number & 1 and not self._undecided(plan, state, number):
            live = nodes.dynamic(key, after, LiveRule(self, plan, state, number, lambda node: node), ALL)
            return nodes.seq(begin, rest(live))
        return nodes.seq(begin, nodes.dynamic(key, rest(after), LiveRule(self, plan, state, number, rest), ALL))

    def _undecided(self, plan: ObjectPlan, state: MembersState, number: int) -> bool:
        """Return True if a member that live values read may still come before them."""
        names = {plan.names[other] for other in range(state.at, number)}
        return any(not names.isdisjoint(mark.after) for _, _, mark in plan.marks_of(number))

    def resolved(self, live: LiveRule, before: Written) -> int:
        """Return the rest of an object from a member with live values on, after a text; EMPTY if it may not come.

        Raises:
            Unasked: its values are not known yet.
            LiveValuesError: they cannot be known; or the member is required, and there are none.
        """
        plan, state, number, rest = live.plan, live.state, live.number, live.rest
        marks = plan.marks_of(number)
        required = plan.required >> number & 1
        if before.live is None:
            raise unbound(marks[0][2])
        answers = [before.live.known(mark, before.text(), before.is_plan) for _, _, mark in marks]
        known = [answer for answer in answers if answer is not None]
        error = next((answer.error for answer in known if answer.error is not None), None)
        if error is None and len(known) == len(answers):
            node = self._answered(plan, state, number, rest, known)
            if node != self.nodes.EMPTY:
                return node
            error = before.live.missing = no_values(marks[0][2], known)
            if not required and not before.is_plan:
                before.live.warn(marks[0][2], known)
                return node
        if before.is_plan:  # a text that is only measured
            return self.planned(live)
        if self._undecided(plan, state, number):
            return self.nodes.EMPTY  # after another member, there may be values
        assert error is not None
        raise error

    def planned(self, live: LiveRule) -> int:
        """Return the rest of an object from a member with live values on, with as many tokens as are kept for them."""
        marks = live.plan.marks_of(live.number)
        room = [self.nodes.special(RESERVED)] * sum(mark.longest for _, _, mark in marks)
        return live.rest(self._after_value(live.plan, live.state, live.number, self.nodes.sequence(room)))

    def _answered(
        self, plan: ObjectPlan, state: MembersState, number: int, rest: Callable[[int], int], answers: list[Answer]
    ) -> int:
        """Return the rest of an object from a member with live values on, with the answers of their callables."""
        key = (number, state, *(answer.text for answer in answers))
        known = plan.answered.get(key)
        if known is None:
            schemas = [self._schema_of(answer) for answer in answers]
            goal = plan.goal(number)
            for answer, (_, _, mark) in zip(answers, plan.marks_of(number), strict=True):
                require_schema(answer, mark)
                if not answer.is_list and (problem := self.lowering.problem(answer.schema)) is not None:
                    raise LiveValuesError(
                        f"the schema of the values cannot be enforced: {problem.message}",
                        hint=problem.hint,
                        place=Place(tool=answer.tool, parameter=mark.member),
                    )
            for formula in {id(formula): formula for formula, _, _ in plan.marks_of(number)}.values():
                said = {
                    steps: schema
                    for (each, steps, _), schema in zip(plan.marks_of(number), schemas, strict=True)
                    if each is formula
                }
                located = formula.located
                schema = said[()] if set(said) == {()} else with_answers(located.schema, said)
                goal = (*goal, SignedSchema(Located(schema, located.pointer, scope=located.scope)))
            value = self._written_value(plan.names[number], goal)
            if self.nodes.is_empty(value):
                node = self.nodes.EMPTY
            else:
                node = rest(self._after_value(plan, state, number, goal=goal))
            if len(plan.answered) >= MAX_REMEMBERED:
                plan.answered.clear()
            known = plan.answered[key] = node
        return known

    def _schema_of(self, answer: Answer) -> Any:
        """Return the schema of an answer: the same object for equal answers, so that its nodes are made once."""
        if answer.schema is None:
            return False
        return self._schemas.setdefault(answer.text, _Schema(answer.schema))

    def _after_value(
        self, plan: ObjectPlan, state: MembersState, number: int, value: int = UNKNOWN, goal: Goal = ()
    ) -> int:
        """Return the rest of an object after a name whose value is of a goal, or (for a text that is only measured) a
        node."""
        if state.open and not self.any_order:
            state = state._replace(open=self._unmet(plan, state, number))
        return AfterNameRule(self, plan, state, None, value, goal).each([number])[0]

    def _after_name(self, plan: ObjectPlan, state: MembersState, number: int, name: str | None = None) -> int:
        """Return the rest of an object after a name (see `AfterNameRule`): expanded when a text reaches it."""
        open = state.open
        if open and (not self.any_order or state.start is not None):
            open = self._unmet(plan, state, number if number >= 0 else plan.size)
        if open != state.open:
            state = state._replace(open=open)
        if state.excluded:
            return AfterNameRule(self, plan, state, name).each([number])[0]
        key = number if plan.plain else (number, state.members, state.open, state.barred)
        if not self.any_order:  # the rest is the same from every state before
            follow = plan.follow.get(key)
            if follow is not None:
                return follow
        node = AfterNameRule(self, plan, state).each([number])[0]
        if not self.any_order:
            plan.follow[key] = node
        return node

    def expand_after_name(self, rule: AfterNameRule, number: int) -> int:
        """Return the rest of an object after the name of a member (see `AfterNameRule`), expanded."""
        nodes = self.nodes
        written = self._member(rule, number)
        if self.lowering.is_marked:
            written = nodes.seq(self._begun, written)
        return self.after_colon(written)

    def after_colon(self, written: int) -> int:
        """Return the rest of an object after a name, from the rest after the colon; the colon is a part of the name's
        text, where whitespace is fixed."""
        nodes, space = self.nodes, self._loose_space
        if space is None:
            return written
        return nodes.seq(space, nodes.seq(self._colon, nodes.seq(space, written)))  # one by one, which is cheapest

    def _member(self, rule: AfterNameRule, number: int) -> int:
        """Return the value of a member, and the rest of the object after it."""
        plan, state, name = rule.plan, rule.state, rule.name
        nodes = self.nodes
        start: int | None = None
        if state.start is not None:
            start = plan.size if number < 0 else number + 1
        if number < 0:
            at = state.at if self.any_order else plan.size
        else:
            at = state.at | 1 << number if self.any_order else number + 1
            name = plan.names[number]
        if plan.plain and not state.excluded:
            rest = self.after_member(plan, MembersState(at, start=start))
            if number == plan.deciding:
                rest = self._after_deciding(plan, number, rest)
            return nodes.seq(self._ruled(rule, number), rest)
        barred, spared = state.barred, 0
        if plan.bars and number >= 0:
            barred |= plan.bars[number]
            spared = plan.spared[number]
        if self.any_order:
            at |= barred
            barred = 0
        else:
            barred = barred >> at << at  # the members before no longer matter
        same: dict[str, list[str]] = {}  # by the value of this member, the excluded objects that have it
        if name is not None:
            for other in state.excluded:
                keys = _short_member_keys(other) if len(other) <= MAX_SHORT else _member_keys(other)
                value = keys.get(name)
                if value is not None:
                    same.setdefault(value, []).append(other)
        goal = rule.goal or plan.goal(number)
        count = state.members
        if plan.least > count or plan.most is not None:
            count += 1
        options = []
        for met, demanded in self.merged.meeting(goal, plan.meets(number) if state.open else (), state.open):
            open = state.open & ~(met | spared)
            following = MembersState(at, False, count, open, barred=barred, start=start)
            after = self.after_member(plan, following)
            if same and name is not None:
                asked = (*goal, *demanded)
                following = following._replace(names=state.names | {name})
                known = plan.like.setdefault(following, {})  # a text of many objects comes to the same ones again
                choices: list[tuple[str, int]] = []
                for value, others in sorted(same.items()):
                    those = others[0] if len(others) == 1 else frozenset(others)
                    like = known.get(those)
                    if like is None:
                        excluded = frozenset(others)
                        like = known[those] = self.after_member(plan, following._replace(excluded=excluded))
                    choices.append((value, like))
                options.append(self.lowering.filter_values(asked, choices))
                options.append(nodes.seq(self.lowering.without(asked, frozenset(same)), after))
            elif demanded:
                options.append(nodes.seq(self._written_value(name, (*goal, *demanded)), after))
            else:
                options.append(nodes.seq(self._ruled(rule, number), after))
        return nodes.alt(options)

    def _ruled(self, rule: AfterNameRule, number: int) -> int:
        """Return the value after the name of a rule."""
        if rule.value != UNKNOWN:
            return rule.value
        if rule.goal:
            return self._written_value(rule.plan.names[number], rule.goal)
        return self.member_value(rule.plan, number)

    def _unmet(self, plan: ObjectPlan, state: MembersState, end: int) -> int:
        """Return the demands that stay open in a state if no further member before ``end`` is written."""
        open = state.open
        if not open:
            return open
        first = 0 if self.any_order else state.at
        for number in plan.absentees[bisect_left(plan.absentees, first) :]:
            if not open or number >= end:
                break
            if not (self.any_order and state.at >> number & 1):
                open &= ~plan.absent[number]
        return open

    def _undeclared(self, plan: ObjectPlan, state: MembersState, index: int) -> Iterator[int]:
        """Yield the members of a region, without a comma before them."""
        nodes = self.nodes
        number = index - len(plan.others)
        ending = nodes.literal(self.ending)
        region = plan.others[index]
        if state.excluded:  # the names that those objects have get alternatives of their own
            terms = nodes.terms
            theirs = {name for other in state.excluded for name in value_of_key(other)}.difference(plan.names)
            own = sorted(name for name in theirs if terms.matches(region.names, name))
            for name in own:
                if name not in state.names:
                    spelled = self._written(terms.literal(name))
                    yield nodes.sequence([spelled, ending, self._after_name(plan, state, number, name)])
            rest = terms.and_([region.names, terms.not_(terms.words(own))]) if own else region.names
            yield nodes.sequence([self._written(rest), ending, self._after_name(plan, state, number)])
            return
        spelled = plan.region_names[index]
        if spelled == UNKNOWN:
            spelled = plan.region_names[index] = self._name(plan, region)
        after = self._after_name(plan, state, number)
        if self.lowering.is_marked:
            marked = self.lowering.marked
            yield nodes.sequence([marked(OPENED), spelled, ending, marked(NAMED, ending=len(self.ending)), after])
            return
        yield nodes.sequence([spelled, ending, after])

    def _name(self, plan: ObjectPlan, region: Region) -> int:
        """Return the undeclared names of a region, decoded, without those that the object has already."""
        nodes, syntax = self.nodes, self.lowering.syntax
        name = self._written(region.names)
        if plan.most == 1:
            return name
        if region.roomy and syntax is None:
            return nodes.seq(name, unless_repeated(nodes))

        remembered: dict[tuple[str, ...], int] = {}  # the tokens of one mask ask for few different ones

        def fresh(before: Written) -> int:
            """Return the name of a member that is none of the names written so far; computed once for the same
            names."""
            written = tuple(before.names() if syntax is None else syntax.names_before(before.text()))
            node = remembered.get(written)
            if node is None:
                terms = nodes.terms
                node = self._written(terms.and_([region.names, terms.not_(terms.words(written))]))
                if len(remembered) >= MAX_REMEMBERED:
                    remembered.clear()
                remembered[written] = node
            return node

        where = "outermost" if self._members is not None else ""
        key = ("fresh", region.names) if syntax is None else ("fresh", self.lowering.number, where, region.names)
        return nodes.dynamic(key, name, fresh)

    # -- listed values -----------------------------------------------------------------------------------------

    def goals(self, objects: Objects, names: Iterable[str]) -> dict[str, Goal]:
        """Return the goals of the members of these names, in the order in which they are written."""
        shape, terms = self.shape(objects), self.nodes.terms
        wanted = frozenset(names)
        goals = {member.name: member.goal for member in shape.members if member.name in wanted}
        for name in sorted(wanted.difference(goals)):
            goals[name] = next(region.goal for region in shape.others if terms.matches(region.names, name))
        return goals

    def holds(self, objects: Objects, value: dict[str, Any]) -> bool:
        """Return True if a decoded object satisfies a conjunction."""
        shape = self.shape(objects)
        if len(value) < shape.least or (shape.most is not None and len(value) > shape.most):
            return False
        members = {member.name: member for member in shape.members}
        if any(member.required and member.name not in value for member in shape.members):
            return False
        terms = self.nodes.terms
        if any(len(names & value.keys()) > 1 for names in shape.exclusive):
            return False
        unmet = {index for index, absent in enumerate(shape.demands) if absent <= value.keys()}
        for name, item in value.items():
            rule: Member | Region | None = members.get(name)
            if rule is None:
                rule = next((region for region in shape.others if terms.matches(region.names, name)), None)
            if rule is None or not self.lowering.goal_holds(rule.goal, item):
                return False
            if self.lowering.is_live and has_marks(rule.goal):  # nobody knows yet whether it has this value
                return False
            unmet -= {index for index, formula in rule.meets if self.lowering.goal_holds((formula,), item)}
        return not unmet


def _member_keys(key: str) -> dict[str, str]:
    """Return the key of the value of each member of an object, which is given by its own key (`value_key`)."""
    return {name: value_key(value) for name, value in value_of_key(key).items()}


_short_member_keys = lru_cache(maxsize=MAX_ITEMS)(_member_keys)  # each item is compared with all before it


def _start(plan: ObjectPlan, excluded: frozenset[str] = NO_OBJECTS) -> MembersState:
    """Return the state before the first member."""
    return MembersState(0, True, 0, (1 << plan.demands) - 1, excluded)
