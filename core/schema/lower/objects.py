"""Lowering of objects: members in the schema's order or in any, undeclared names, counts and demands."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
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
from ..keywords.row import Steps
from ..normal.conjunction import Goal, Objects
from ..read.live import require_schema, with_answers
from ..read.located import Located, SignedSchema
from .context import GoalNodes, MemberSyntax
from .merged_objects import MergedObjects
from .object_plan import UNKNOWN, ObjectPlan, bits_of, has_marks
from .object_rules import NO_OBJECTS, AfterNameRule, LiveRule, MembersState, RestRule
from .object_shape import Member, ObjectShape, Region
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
        """Return the result of `distinct`, computed. Of the members that could be deciding, the last is: the members
        before it are read from the text."""
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
        """Return the rest of an object after its deciding member, of this number: without its rivals, the items before
        that have the same members so far.

        ``rest`` is the node of the rest where there are no rivals.
        """

        def following(rivals: frozenset[str], names: frozenset[str]) -> int:
            return self.after_member(plan, MembersState(number + 1, excluded=rivals, names=names))

        resolve = DistinctObjects(plan.names[:number], plan.names[number], following)
        return self.nodes.dynamic(("after deciding", plan), rest, resolve, RIVALS)

    # -- states ------------------------------------------------------------------------------------------------

    def tagged(self, name: str, rest: int) -> int:
        """Return the objects in JSON whose first member has a name; ``rest`` is its value and all that follows."""
        member = self.nodes.seq(self.nodes.literal(spelled_name(name) + self.ending), self.after_colon(rest))
        return self.opened(member)

    def after_first(self, objects: Objects) -> int:
        """Return the rest of an object after its first member. The member is required, and the plan is plain."""
        plan = self.plan(objects)
        assert plan.plain and not self.any_order and plan.required & 1
        return self.after_member(plan, MembersState(1))

    def after_member(self, plan: ObjectPlan, state: MembersState) -> int:
        """Return the rest of an object after a member, from the state after it on."""
        if state.start is not None:
            return self.nodes.seq(self.lowering.space, self.in_order(plan, state))
        if state.open and not self.any_order and state.open & ~plan.open_to[state.at]:  # no later member meets it
            return self.nodes.EMPTY
        if state.excluded:
            key: object = state
        else:
            key = state.at if plan.plain else (state.at, state.members, state.open, state.barred)
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
        has_required = not plan.required & ~state.at if self.any_order else plan.following[state.at] == plan.size
        if not has_required or state.members < plan.least or (state.open and self._unmet(plan, state, plan.size)):
            return False
        # An excluded object has all members written so far: it is equal if it has no others.
        return all(len(value_of_key(other)) != len(state.names) for other in state.excluded)

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
        """Return the witness of an object from a state on; None: the rest of the object from there, which has few
        states."""
        if state.start is not None:
            return self.witness(plan) if not state.excluded and self._has_enough(plan, state) else None
        if state.excluded:
            if self._is_endless(plan, state):
                return self.witness(plan)
            return self.in_order(plan, state._replace(start=0)) if self.any_order else None
        witness = self.witness(plan)
        if witness is not None:
            return witness
        is_counted = plan.least or plan.most is not None
        if is_counted:  # in the schema's order, a state is a position and a count
            return self._witness_by_demands(plan, state) if self.any_order else None
        return self._witness_by_demands(plan, state) if plan.demands else None

    def are_endless(self, objects: Objects) -> bool:
        """Return True if infinitely many objects surely satisfy a conjunction; False: not known."""
        plan = self.plan(objects)
        if not plan.free or not self._direct:
            return False
        witness = self.witness(plan)
        if witness is None or self.nodes.is_empty(witness):
            return False
        if self._is_endless(plan, _start(plan)):
            return True
        regions = range(-len(plan.others), 0)  # a roomy one has infinitely many names
        return any(plan.others[number].roomy and self._is_inhabited(plan, number) for number in regions)

    def expand(self, plan: ObjectPlan, state: MembersState) -> int:
        """Return the rest of an object from a state on, expanded: its end, if it may end here, or a next member and
        what follows it."""
        nodes = self.nodes
        members = nodes.EMPTY  # each without the comma before it
        live: list[int] = []  # the numbers of the members with live values
        if plan.most is None or state.members < plan.most:
            numbers = self._next_members(plan, state)
            if self._has_plain_names(plan, state):
                members = self._plain_names(plan, state, numbers)
            else:
                numbers = self._nameable(plan, numbers)
                live = [number for number in numbers if plan.marks_of(number)] if self.lowering.is_live else []
                named = [number for number in numbers if number not in live] if live else numbers
                members = self._names(plan, state, named)
            if plan.others and self._may_be_undeclared(plan, state):
                members = self._or_undeclared(plan, state, members)
        if self._members is not None:
            separator = nodes.EPSILON if state.is_first else self._members.separator
            members = nodes.sequence([separator, self._members.before_name, members])
        else:
            members = self.after_comma(members, state.is_first)
        options = [members]
        options += [self._live(plan, state, number) for number in live]
        start = state.start
        if start is not None and start < plan.size and not plan.required >> start & 1:  # it is passed over
            options.append(self.in_order(plan, state._replace(start=start + 1, open=state.open & ~plan.absent[start])))
        if self._may_end(plan, state):
            options.insert(0, self._closing)  # the end first: it decides at once that there is a text
        return nodes.alt(options)

    def _next_members(self, plan: ObjectPlan, state: MembersState) -> Sequence[int]:
        """Return the numbers of the declared members that may come next: in the schema's order, those up to the first
        required one."""
        if state.start is not None and state.start < plan.size:
            return (state.start,)
        if self.any_order:
            written = frozenset(bits_of(state.at))
            return [number for number in range(plan.size) if number not in written] if written else range(plan.size)
        numbers = range(state.at, min(plan.following[state.at] + 1, plan.size))
        if state.barred:
            return [number for number in numbers if not state.barred >> number & 1]
        return numbers

    def _may_be_undeclared(self, plan: ObjectPlan, state: MembersState) -> bool:
        """Return True if the next member may be an undeclared one, where the object has any: in the schema's order,
        they come after the required members."""
        if state.start is not None:
            return state.start >= plan.size
        return self.any_order or plan.following[state.at] == plan.size

    def _or_undeclared(self, plan: ObjectPlan, state: MembersState, declared: int) -> int:
        """Return the node of declared members, or any undeclared member: each without the comma before it, unless this
        is a part of the name's text."""
        nodes = self.nodes
        lead = b"" if state.is_first else self.lead
        options = [declared]
        for index in range(len(plan.others)):
            for member in self._undeclared(plan, state, index):
                options.append(nodes.seq(nodes.literal(lead), member) if lead else member)
        return nodes.alt(options)

    def after_comma(self, member: int, is_first: bool) -> int:
        """Return a member with the comma before it; the first has none. Where whitespace is fixed, the comma is a part
        of the name's text (``lead``), and nothing is added."""
        return member if is_first else self.nodes.seq(self._loose_comma, member)

    def _has_plain_names(self, plan: ObjectPlan, state: MembersState) -> bool:
        """Return True if the names of an object are nothing but JSON strings, and what follows a name depends, in the
        schema's order, on the member alone: `_plain_names` writes them faster."""
        lowering = self.lowering
        is_special = lowering.is_marked or lowering.is_live or state.excluded or state.start is not None
        return plan.plain and self._direct and not is_special

    def _plain_names(self, plan: ObjectPlan, state: MembersState, numbers: Sequence[int]) -> int:
        """Return the names of members, each with what follows it (see `_has_plain_names`).

        In the schema's order, the members are a range, which begins elsewhere in each state. It is divided at multiples
        of `SHARED_NAMES`, into parts as long as a power of two allows, so that states share parts: all states of n
        members need n log n names.
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

    def _nameable(self, plan: ObjectPlan, numbers: Sequence[int]) -> list[int]:
        """Return the members whose names can be written; fill their names in the plan (``words``)."""
        found: list[int] = []
        for number in numbers:
            words = plan.words[number]
            if words is None:
                words = self._words(plan, number)
            if words:
                found.append(number)
        return found

    def _names(self, plan: ObjectPlan, state: MembersState, numbers: list[int]) -> int:
        """Return the names of members (see `_nameable`), each with what follows it, and with the comma before it where
        that is a part of the name's text."""
        entries: list[tuple[bytes, int]] = []
        lead = b"" if state.is_first else self.lead
        for number, rest in zip(numbers, self._after_names(plan, state, numbers), strict=True):
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
        return any(not names.isdisjoint(place.mark.after) for place in plan.marks_of(number))

    def resolved(self, live: LiveRule, before: Written) -> int:
        """Return the rest of an object from a member with live values on, after a text; EMPTY if it may not come.

        Raises:
            Unasked: its values are not known yet.
            LiveValuesError: they cannot be known; or the member is required, and there are none.
        """
        plan, state, number = live.plan, live.state, live.number
        marks = [place.mark for place in plan.marks_of(number)]
        if before.live is None:
            raise unbound(marks[0])
        answers = [before.live.known(mark, before.text(), before.is_plan) for mark in marks]
        known = [answer for answer in answers if answer is not None]  # of a completion, some may be None
        error = next((answer.error for answer in known if answer.error is not None), None)
        if error is None and len(known) == len(answers):
            node = self._answered(live, known)
            if node != self.nodes.EMPTY:
                return node
            error = before.live.missing = no_values(marks[0], known)
            is_optional = not plan.required >> number & 1
            if is_optional and not before.is_plan:
                before.live.warn(marks[0], known)
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
        room = [self.nodes.special(RESERVED)] * sum(place.mark.longest for place in marks)
        return live.rest(self._after_value(live.plan, live.state, live.number, value=self.nodes.sequence(room)))

    def _answered(self, live: LiveRule, answers: list[Answer]) -> int:
        """Return the rest of an object from a member with live values on, with the answers of their callables, one for
        each mark of the member; EMPTY if it has no value then."""
        plan, state, number = live.plan, live.state, live.number
        key = (number, state, *(answer.text for answer in answers))
        node = plan.answered.get(key)
        if node is None:
            goal = self._answered_goal(plan, number, answers)
            node = self.nodes.EMPTY
            if not self.nodes.is_empty(self._written_value(plan.names[number], goal)):
                node = live.rest(self._after_value(plan, state, number, goal=goal))
            if len(plan.answered) >= MAX_REMEMBERED:
                plan.answered.clear()
            plan.answered[key] = node
        return node

    def _answered_goal(self, plan: ObjectPlan, number: int, answers: list[Answer]) -> Goal:
        """Return the goal of a member's value: that of the schema, and each schema of it with the answers in the places
        of its marks.

        Raises:
            LiveValuesError: an answer is no schema, or one that cannot be enforced.
        """
        marks = plan.marks_of(number)
        for answer, place in zip(answers, marks, strict=True):
            require_schema(answer, place.mark)
            if not answer.is_list and (problem := self.lowering.problem(answer.schema)) is not None:
                raise LiveValuesError(
                    f"the schema of the values cannot be enforced: {problem.message}",
                    hint=problem.hint,
                    place=Place(tool=answer.tool, parameter=place.mark.member),
                )
        by_formula: dict[int, dict[Steps, Any]] = {}  # by the identity of a formula: its answers, by their places
        for answer, place in zip(answers, marks, strict=True):
            by_formula.setdefault(id(place.formula), {})[place.steps] = self._schema_of(answer)
        goal = plan.goal(number)
        for formula in {id(place.formula): place.formula for place in marks}.values():
            said = by_formula[id(formula)]
            located = formula.located
            schema = said[()] if set(said) == {()} else with_answers(located.schema, said)
            goal = (*goal, SignedSchema(Located(schema, located.pointer, scope=located.scope)))
        return goal

    def _schema_of(self, answer: Answer) -> Any:
        """Return the schema of an answer: the same object for equal answers, so that its nodes are made once."""
        if answer.schema is None:
            return False
        return self._schemas.setdefault(answer.text, _Schema(answer.schema))

    def _after_value(
        self, plan: ObjectPlan, state: MembersState, number: int, value: int = UNKNOWN, goal: Goal = ()
    ) -> int:
        """Return the rest of an object after the name of a member whose value is not that of the schema: it is of
        ``goal``, or is the node ``value`` (the tokens that are kept for it, see `planned`)."""
        if state.open and not self.any_order:
            state = state._replace(open=self._unmet(plan, state, number))
        return AfterNameRule(self, plan, state, value=value, goal=goal).each([number])[0]

    def _after_name(self, plan: ObjectPlan, state: MembersState, number: int, name: str | None = None) -> int:
        """Return the rest of an object after a name (see `AfterNameRule`): expanded when a text reaches it."""
        open = state.open
        if open and (not self.any_order or state.start is not None):  # the members passed over can no longer come
            open = self._unmet(plan, state, number if number >= 0 else plan.size)
        if open != state.open:
            state = state._replace(open=open)
        if state.excluded:
            return AfterNameRule(self, plan, state, name).each([number])[0]
        if self.any_order:
            return AfterNameRule(self, plan, state).each([number])[0]
        key = number if plan.plain else (number, state.members, state.open, state.barred)
        node = plan.follow.get(key)  # in the schema's order, the rest is the same from every position before
        if node is None:
            node = plan.follow[key] = AfterNameRule(self, plan, state).each([number])[0]
        return node

    def expand_after_name(self, rule: AfterNameRule, number: int) -> int:
        """Return the rest of an object after the name of a member (see `AfterNameRule`), expanded."""
        rest = self._member(rule, number)
        if self.lowering.is_marked:
            rest = self.nodes.seq(self._begun, rest)
        return self.after_colon(rest)

    def after_colon(self, rest: int) -> int:
        """Return the colon after a name and ``rest``: the value and all that follows. Where whitespace is fixed, the
        colon is a part of the name's text, and nothing is added."""
        nodes, space = self.nodes, self._loose_space
        if space is None:
            return rest
        return nodes.seq(space, nodes.seq(self._colon, nodes.seq(space, rest)))  # one by one, which is cheapest

    def _member(self, rule: AfterNameRule, number: int) -> int:
        """Return the value of a member and the rest of the object after it: an alternative for each set of demands that
        the value may meet."""
        plan, state, nodes = rule.plan, rule.state, self.nodes
        name = rule.name if number < 0 else plan.names[number]
        reached = self._state_after(plan, state, number)
        if plan.plain and not state.excluded:
            rest = self.after_member(plan, reached)
            if number == plan.deciding:
                rest = self._after_deciding(plan, number, rest)
            return nodes.seq(self._ruled(rule, number), rest)
        alike = _by_value(state.excluded, name)  # by the key of a value, the excluded objects that have it here
        goal = rule.goal or plan.goal(number)
        options = []
        for met, demanded in self.merged.meeting(goal, plan.meets(number) if state.open else (), state.open):
            following = reached._replace(open=reached.open & ~met)
            after = self.after_member(plan, following)
            asked = (*goal, *demanded)
            if alike and name is not None:
                choices = self._after_alike(plan, following._replace(names=state.names | {name}), alike)
                options.append(self.lowering.filter_values(asked, choices))
                value = self.lowering.without(asked, frozenset(alike))
            else:
                value = self._written_value(name, asked) if demanded else self._ruled(rule, number)
            options.append(nodes.seq(value, after))
        return nodes.alt(options)

    def _state_after(self, plan: ObjectPlan, state: MembersState, number: int) -> MembersState:
        """Return the state after a member (below zero: of a region), if its value meets no demand and differs from that
        of each excluded object."""
        start = None
        if state.start is not None:
            start = plan.size if number < 0 else number + 1
        at, open, barred, count = state.at, state.open, state.barred, state.members
        if number < 0:
            at = at if self.any_order else plan.size
        else:
            at = at | 1 << number if self.any_order else number + 1
            if plan.bars:
                barred |= plan.bars[number]
                open &= ~plan.spared[number]
        if self.any_order:
            at |= barred
            barred = 0
        else:
            barred = barred >> at << at  # the members before no longer matter
        if plan.least > count or plan.most is not None:
            count += 1
        return MembersState(at, False, count, open, barred=barred, start=start)

    def _after_alike(
        self, plan: ObjectPlan, following: MembersState, alike: dict[str, list[str]]
    ) -> list[tuple[str, int]]:
        """Return the keys of the values that a member has in excluded objects, each with the rest of the object after
        it: it must still differ from these objects.

        Args:
            plan: the plan of the object.
            following: the state after the member, without excluded objects.
            alike: by the key of a value, the excluded objects that have it.
        """
        known = plan.like.setdefault(following, {})  # a text of many objects comes to the same ones again
        choices: list[tuple[str, int]] = []
        for value, others in sorted(alike.items()):
            those = others[0] if len(others) == 1 else frozenset(others)
            rest = known.get(those)
            if rest is None:
                rest = known[those] = self.after_member(plan, following._replace(excluded=frozenset(others)))
            choices.append((value, rest))
        return choices

    def _ruled(self, rule: AfterNameRule, number: int) -> int:
        """Return the value after the name of a rule."""
        if rule.value != UNKNOWN:
            return rule.value
        if rule.goal:
            return self._written_value(rule.plan.names[number], rule.goal)
        return self.member_value(rule.plan, number)

    def _unmet(self, plan: ObjectPlan, state: MembersState, end: int) -> int:
        """Return the demands that stay open in a state if no further member with a number below ``end`` is written."""
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
        """Yield the members of a region, by its index, without a comma before them."""
        if state.excluded:
            yield from self._undeclared_unlike(plan, state, index)
            return
        nodes = self.nodes
        name = plan.region_names[index]
        if name == UNKNOWN:
            name = plan.region_names[index] = self._name(plan, plan.others[index])
        ending = nodes.literal(self.ending)
        after = self._after_name(plan, state, index - len(plan.others))
        if self.lowering.is_marked:
            marked = self.lowering.marked
            yield nodes.sequence([marked(OPENED), name, ending, marked(NAMED, ending=len(self.ending)), after])
            return
        yield nodes.sequence([name, ending, after])

    def _undeclared_unlike(self, plan: ObjectPlan, state: MembersState, index: int) -> Iterator[int]:
        """Yield the same of an object with excluded objects. A name that one of these has is an alternative of its own,
        as its value decides whether the objects still differ."""
        nodes, terms = self.nodes, self.nodes.terms
        names = plan.others[index].names
        number = index - len(plan.others)
        ending = nodes.literal(self.ending)
        theirs = {name for other in state.excluded for name in value_of_key(other)}.difference(plan.names)
        own = sorted(name for name in theirs if terms.matches(names, name))
        for name in own:
            if name not in state.names:
                written = self._written(terms.literal(name))
                yield nodes.sequence([written, ending, self._after_name(plan, state, number, name)])
        rest = terms.and_([names, terms.not_(terms.words(own))]) if own else names
        yield nodes.sequence([self._written(rest), ending, self._after_name(plan, state, number)])

    def _name(self, plan: ObjectPlan, region: Region) -> int:
        """Return the node of the names of a region, without those that the object has already."""
        nodes, syntax = self.nodes, self.lowering.syntax
        name = self._written(region.names)
        if plan.most == 1:  # no member is written before
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
        """Return the goals of the members of these names, in the order in which they are written. Each name that is not
        declared is in a region."""
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
        unmet = {index for index, absent in enumerate(shape.demands) if absent <= value.keys()}  # by no absence
        for name, item in value.items():
            found: Member | Region | None = members.get(name)
            if found is None:
                found = next((region for region in shape.others if terms.matches(region.names, name)), None)
            if found is None or not self.lowering.goal_holds(found.goal, item):
                return False
            if self.lowering.is_live and has_marks(found.goal):  # nobody knows yet whether it has this value
                return False
            unmet -= {index for index, formula in found.meets if self.lowering.goal_holds((formula,), item)}
        return not unmet


def _member_keys(key: str) -> dict[str, str]:
    """Return the key of the value of each member of an object, which is given by its own key (`value_key`)."""
    return {name: value_key(value) for name, value in value_of_key(key).items()}


_short_member_keys = lru_cache(maxsize=MAX_ITEMS)(_member_keys)  # each item is compared with all before it


def _by_value(others: frozenset[str], name: str | None) -> dict[str, list[str]]:
    """Return the objects that have a member of a name, by the key of its value there; ``name`` None: a name that none
    of them has. The objects are given by their keys (`value_key`)."""
    found: dict[str, list[str]] = {}
    if name is not None:
        for other in others:
            keys = _short_member_keys(other) if len(other) <= MAX_SHORT else _member_keys(other)
            value = keys.get(name)
            if value is not None:
                found.setdefault(value, []).append(other)
    return found


def _start(plan: ObjectPlan, excluded: frozenset[str] = NO_OBJECTS) -> MembersState:
    """Return the state before the first member."""
    return MembersState(0, True, 0, (1 << plan.demands) - 1, excluded)
