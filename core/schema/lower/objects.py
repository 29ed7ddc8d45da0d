"""Objects to grammar nodes: members in the schema's order or in any, undeclared names, counts, and what must exist."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import pairwise
from json.encoder import encode_basestring
from typing import TYPE_CHECKING, Any

from ...errors import LimitError
from ...language.json_text import escaped
from ...language.lookback import Written
from ...language.node_kinds import AFTER_NAME, BEYOND
from ..normal.conjunction import FALSE, Formula, Goal, Literal, Objects, is_deniable, negated
from ..normal.inhabited import is_surely_satisfiable
from ..read.resolve import Located
from .merged_objects import Meets, Member, ObjectShape, Region, Shapes
from .object_plan import UNKNOWN, Layout
from .values import canonical, decoded

if TYPE_CHECKING:
    from .arguments_object import Outermost
    from .lowering import Lowering

_NONE: frozenset[str] = frozenset()

#: From how many different things on that demands ask of one member it is found out which of them a value may satisfy
#: together; and how many there may be.
MAX_SUBSETS, MAX_DIFFERENT = 3, 12

#: For how many lists of written names an object remembers what names are left.
MAX_REMEMBERED = 256


class _Place:
    """Where an object is; as a rule, what may stand there.

    Attributes:
        at: the first member that may come (in any order: the set of those written, as bits).
        first: nothing was written yet.
        members: how many members were written, as far as that matters.
        open: which demands are still open, as bits.
        alike: the objects that this one must differ from, and that have all the members written so far.
        names: the names of those members, if there are such objects.
        start: in any order, the first member that may come where only one order is tried, as for a shortest text
            the order does not matter; None: all are.
    """

    __slots__ = ("_objects", "alike", "at", "first", "layout", "members", "names", "open", "start")

    def __init__(
        self,
        objects: ObjectLowering,
        layout: Layout,
        at: int,
        first: bool,
        members: int = 0,
        open: int = 0,
        alike: frozenset[str] = _NONE,
        names: frozenset[str] = _NONE,
        start: int | None = None,
    ) -> None:
        self._objects = objects
        self.layout = layout
        self.at = at
        self.first = first
        self.members = members
        self.open = open
        self.alike = alike
        self.names = names
        self.start = start

    def __call__(self) -> int:
        return self._objects.expand(self)

    def in_order(self) -> int:
        """The same, but for the order of members: they are written as they are numbered."""
        return self._objects.in_order(self.layout, 0, self.at, self.first, self.members, self.open)


class _Named:
    """The rule of what follows a name that was written at a place: a member's, or (below zero, from the last) a
    region's, and of that perhaps a name that other objects have (see `_Place.alike`)."""

    __slots__ = ("_name", "_number", "_objects", "_place")

    def __init__(self, objects: ObjectLowering, place: _Place, number: int, name: str | None) -> None:
        self._objects = objects
        self._place = place
        self._number = number
        self._name = name

    def __call__(self) -> int:
        return self._objects.expand_named(self._place, self._number, self._name)


class ObjectLowering:
    """Lowers the objects of one document, or (``outermost``) the one that is written in a way of its own."""

    def __init__(self, lowering: Lowering, outermost: Outermost | None = None) -> None:
        self.lowering = lowering
        self.nodes = lowering.nodes
        self._outermost = outermost
        self._direct = outermost is None and lowering.spelling is None
        self._shapes = Shapes(lowering)
        self._layouts: dict[Objects, Layout] = {}
        #: See `_together`.
        self._sets: dict[tuple[Goal, Meets], list[tuple[tuple[int, Formula], ...]]] = {}
        nodes = self.nodes
        self.any_order = lowering.options.property_order == "any"
        # With one spelling, the comma and the colon belong to each key's literal; else they stand apart, with spaces
        # around them.
        fixed = outermost is None and not lowering.flexible
        self._lead = lowering.comma if fixed else b""
        self._ending = lowering.fixed_colon if fixed else b""
        self._loose_comma = nodes.EPSILON if fixed else nodes.seq(nodes.literal(lowering.comma), lowering.space)
        self._loose_space = None if fixed or outermost is not None else lowering.space
        self._colon = nodes.literal(b":")
        self._opening = nodes.EPSILON if outermost else nodes.seq(nodes.literal(b"{"), lowering.space)
        self._closing = nodes.EPSILON if outermost else nodes.literal(b"}")

    def shape(self, objects: Objects) -> ObjectShape:
        """What several schemas say of objects, merged; made once."""
        return self._shapes.of(objects)

    def node(self, objects: Objects, excluded: frozenset[str] = _NONE) -> int:
        """Return the objects that satisfy a conjunction, but for some (canonical texts)."""
        if objects.most is not None and objects.least > objects.most:
            return self.nodes.EMPTY
        layout = self._layouts.get(objects)
        if layout is None:
            layout = self._layouts[objects] = Layout.of_shape(self.shape(objects))
        if excluded:
            start = _Place(self, layout, 0, True, 0, (1 << layout.demands) - 1, excluded)
            return self.nodes.seq(self._opening, self.nodes.lazy(start, start))
        return self._node(layout)

    def plain_node(self, located: Located) -> int:
        """The objects that satisfy a schema which says nothing of them but ``properties``, ``required`` and
        ``additionalProperties``."""
        schema = located.schema
        required = schema.get("required", ())
        required = required if isinstance(required, (list, tuple)) else ()
        additional: Formula | None = (
            Literal(located.child("additionalProperties")) if "additionalProperties" in schema else None
        )
        if additional is None and "properties" in schema and not self.lowering.options.additional_properties:
            additional = FALSE
        goal = () if additional is None else (additional,)
        others: tuple[Region, ...] = ()
        if not self.lowering.is_false(goal):
            names = list(dict.fromkeys((*schema.get("properties", ()), *required)))
            others = (self._shapes.undeclared(names, goal),)
        return self._node(Layout.of_schema(located, required, additional, others))

    def _node(self, layout: Layout) -> int:
        if layout.start == UNKNOWN:
            place = _Place(self, layout, 0, True, 0, (1 << layout.demands) - 1)
            members = self._rule(place)
            layout.start = self.nodes.seq(self._opening, members)
        return layout.start

    # -- places ------------------------------------------------------------------------------------------------

    def _after(
        self,
        layout: Layout,
        at: int,
        members: int,
        open: int,
        alike: frozenset[str] = _NONE,
        names: frozenset[str] = _NONE,
        start: int | None = None,
    ) -> int:
        """What may stand after a member."""
        if start is not None:
            return self.nodes.seq(self.lowering.space, self.in_order(layout, start, at, False, members, open))
        if open and not self.any_order and open & ~layout.open_to[at]:  # no other member decides it any more
            return self.nodes.EMPTY
        key: Any = at if layout.plain else (at, members, open)
        if alike:
            key = (at, members, open, alike, names)
        found = layout.places.get(key)
        if found is None:
            place = _Place(self, layout, at, False, members, open, alike, names)
            found = layout.places[key] = self.nodes.seq(self.lowering.space, self._rule(place))
        return found

    def _rule(self, place: _Place) -> int:
        """What may stand at a place, looked into when a text gets there."""
        shorter = place.in_order if self.any_order and not place.alike else None
        return self.nodes.lazy(place, place, as_empty_as=self._instead(place), as_short_as=shorter)

    def in_order(self, layout: Layout, start: int, at: int, first: bool, members: int, open: int) -> int:
        """What may stand at a place, in any order, if only members from a number on may come, in the order of their
        numbers: a shortest text is among these, and there are not as many places as sets of members."""
        while start < len(layout.names) and at >> start & 1:
            start += 1
        if open & ~layout.open_to[start]:
            return self.nodes.EMPTY
        at |= (1 << start) - 1  # whether those before were written is of no interest any more
        place = _Place(self, layout, at, first, members, open, start=start)
        return self.nodes.lazy(("in order", layout, start, at, first, members, open), place)

    def _skeleton(self, layout: Layout) -> int | None:
        """What decides whether an object can be completed, wherever it is: the values of its required members. None:
        more than that decides.

        It spares a look into the places of the object, of which there may be as many as sets of members.
        """
        if layout.skeleton == UNKNOWN:
            nodes = self.nodes
            if not layout.plain and (layout.demands or layout.most is not None or not self.any_order):
                layout.skeleton = None
            elif layout.least:
                layout.skeleton = nodes.lazy(("counted", layout), lambda: self._table(layout))
            else:
                values = []
                needed = layout.required
                while needed:
                    number = (needed & -needed).bit_length() - 1
                    needed &= needed - 1
                    if not self._is_sure(layout, number):
                        values.append(self._value(layout, number))
                layout.skeleton = nodes.sequence(values)
        return layout.skeleton

    def _instead(self, place: _Place) -> int | None:
        """Return what decides whether an object can be completed from a place; None: the place itself."""
        if place.alike:
            return None
        skeleton = self._skeleton(place.layout)
        if skeleton is None and self.any_order:
            skeleton = self._rest(place.layout, place.start or 0, place.at, place.members, place.open)
        return skeleton

    def _rest(self, layout: Layout, number: int, at: int, members: int, open: int) -> int:
        """Return a node that is empty iff an object cannot be completed by members from a number on, in that order:
        in any order there are as many places as sets of members, but the order decides nothing here."""
        if open & ~layout.open_to[number]:
            return self.nodes.EMPTY
        key = ("rest", layout, number, at >> number, members, open)
        return self.nodes.lazy(key, lambda: self._expand_rest(layout, number, at, members, open))

    def _expand_rest(self, layout: Layout, number: int, at: int, members: int, open: int) -> int:
        nodes = self.nodes
        while number < len(layout.names) and at >> number & 1:
            number += 1
        is_last = number == len(layout.names)
        options = []
        if is_last:
            if not open and members >= layout.least:
                return nodes.EPSILON
        elif not layout.required >> number & 1:
            options.append(self._rest(layout, number + 1, at, members, open & ~layout.absent[number]))
        if layout.most is not None and members >= layout.most:
            return nodes.alt(options)
        following = len(layout.names) if is_last else number + 1
        more = members + 1 if layout.least > members or layout.most is not None else members
        for which in range(-len(layout.others), 0) if is_last else (number,):
            name = None if which < 0 else layout.names[which]
            if name is not None and not self._words(layout, which):
                continue
            for met, demanded in self.meeting(layout.goal(which), layout.meets(which) if open else (), open):
                if is_last and not met and more == members:
                    continue  # it changes nothing
                goal = layout.goal(which)
                value = self._written_value(name, (*goal, *demanded)) if met else self._value(layout, which)
                options.append(nodes.seq(value, self._rest(layout, following, at, more, open & ~met)))
        return nodes.alt(options)

    def _table(self, layout: Layout) -> int:
        """The skeleton where so many members are needed: at least that many of the optional ones have a value, or
        undeclared ones have. A table of sub-results."""
        nodes = self.nodes
        required: list[int] = []
        optional: list[int] = []
        for number in range(len(layout.names)):
            (required if layout.required >> number & 1 else optional).append(self._value(layout, number))
        regions = nodes.alt([self.lowering.value(region.goal) for region in layout.others])
        row = [nodes.EPSILON] + [regions] * max(0, layout.least - len(required))
        for value in reversed(optional) if len(row) > 1 else ():
            row = [row[0], *(nodes.alt([nodes.seq(value, less), same]) for less, same in pairwise(row))]
        return nodes.sequence([*required, row[-1]])

    def expand(self, place: _Place) -> int:
        """What may stand at a place."""
        nodes, layout, at = self.nodes, place.layout, place.at
        lead = b"" if place.first else self._lead
        entries: list[tuple[bytes, int]] = []
        allowed = layout.most is None or place.members < layout.most
        skipped = self.nodes.EMPTY
        if place.start is not None and place.start < len(layout.names):
            done, numbers = False, [place.start]
            if not layout.required >> place.start & 1:
                unmet = place.open & ~layout.absent[place.start]
                skipped = self.in_order(layout, place.start + 1, at, place.first, place.members, unmet)
        elif self.any_order:
            done = not layout.required & ~at
            numbers = [number for number in range(len(layout.names)) if not at >> number & 1]
        else:
            following = layout.following[at]
            done = following == len(layout.names)
            numbers = list(range(at, following if done else following + 1))
        for number in numbers if allowed else ():
            words = layout.words[number]
            if words is None:
                words = self._words(layout, number)
            if words:
                named = self._named(place, number)
                for word in words:
                    entries.append((lead + word, named))
        keys = nodes.words(entries)
        if allowed and layout.others and (done or (self.any_order and place.start is None)):
            undeclared = [each for index in range(len(layout.others)) for each in self._undeclared(place, index)]
            keys = nodes.alt([keys, *(nodes.seq(nodes.literal(lead), each) for each in undeclared)])
        if self._outermost is not None:
            separator = nodes.EPSILON if place.first else self._outermost.separator
            keys = nodes.sequence([separator, self._outermost.before_name, keys])
        elif not place.first:
            keys = nodes.seq(self._loose_comma, keys)
        if place.start is not None:
            keys = nodes.alt([keys, skipped])
        if not done or self._unmet(place, len(layout.names)) or place.members < layout.least:
            return keys
        if any(len(decoded(other)) == len(place.names) for other in place.alike):
            return keys
        return nodes.alt([self._closing, keys])  # the end first: it decides at once that there is a text

    def _words(self, layout: Layout, number: int) -> tuple[bytes, ...]:
        """The ways to write a member's name; none if it cannot be there."""
        words: tuple[bytes, ...] = ()
        schema = layout.schema(number)
        if not (self.lowering.is_false(layout.goal(number)) if schema is None else schema is False):
            source = self.lowering if self._outermost is None else self._outermost
            words = source.keys(layout.names[number])
            if self._ending:
                words = tuple(word + self._ending for word in words)
        layout.words[number] = words
        return words

    def _named(self, place: _Place, number: int, name: str | None = None) -> int:
        """What follows the name of a member, or of a region: looked into when the name is written."""
        layout = place.layout
        open = place.open
        if not self.any_order or place.start is not None:
            open = self._unmet(place, number if number >= 0 else len(layout.names))
        if open != place.open:
            place = _Place(
                self, layout, place.at, place.first, place.members, open, place.alike, place.names, place.start
            )
        if place.alike:
            rule = _Named(self, place, number, name)
            return self.nodes.lazy(rule, rule)
        key = number if layout.plain else (number, place.members, place.open)
        if not self.any_order:  # what follows a member is the same from wherever one came to it
            known = layout.follow.get(key)
            if known is not None:
                return known
        instead = self._skeleton(layout)
        if instead is not None and not self._is_sure(layout, number):
            instead = self.nodes.seq(self._value(layout, number), instead)
        rule = _Named(self, place, number, None)
        found = self.nodes.lazy(rule, rule, as_empty_as=instead)
        if not self.any_order:
            layout.follow[key] = found
        return found

    def expand_named(self, place: _Place, number: int, name: str | None) -> int:
        """What follows a name that was written at a place."""
        nodes, layout = self.nodes, place.layout
        at: int
        if number < 0:
            at = place.at if self.any_order else len(layout.names)
        else:
            at = place.at | 1 << number if self.any_order else number + 1
            name = layout.names[number]
        alike = {other: decoded(other) for other in place.alike} if name is not None else {}
        alike = {other: members for other, members in alike.items() if name in members}
        start = None if place.start is None else len(layout.names) if number < 0 else number + 1
        if layout.plain and not alike:
            written = nodes.seq(self._value(layout, number), self._after(layout, at, 0, 0, start=start))
        else:
            goal = layout.goal(number)
            members = place.members
            if layout.least > members or layout.most is not None:
                members += 1
            options = []
            for met, demanded in self.meeting(goal, layout.meets(number) if place.open else (), place.open):
                open = place.open & ~met
                after = self._after(layout, at, members, open, start=start)
                if alike:
                    assert name is not None
                    asked = (*goal, *demanded)
                    same: dict[str, set[str]] = {}  # by the value of this member
                    for other, its in alike.items():
                        same.setdefault(canonical(its[name]), set()).add(other)
                    names = place.names | {name}
                    choices = [
                        (value, self._after(layout, at, members, open, frozenset(others), names))
                        for value, others in sorted(same.items())
                    ]
                    options.append(self.lowering.chosen(asked, choices))
                    options.append(nodes.seq(self.lowering.without(asked, frozenset(same)), after))
                elif met:
                    options.append(nodes.seq(self._written_value(name, (*goal, *demanded)), after))
                else:
                    options.append(nodes.seq(self._value(layout, number), after))
            written = nodes.alt(options)
        if self._loose_space is not None:  # one by one, as concatenation is cheapest
            space = self._loose_space
            return nodes.seq(space, nodes.seq(self._colon, nodes.seq(space, written)))
        return written

    def _unmet(self, place: _Place, end: int) -> int:
        """The demands that are open at a place still, if of the members before ``end`` no more are written."""
        open, number = place.open, 0 if self.any_order else place.at
        while open and number < end:
            if not (self.any_order and place.at >> number & 1):
                open &= ~place.layout.absent[number]
            number += 1
        return open

    def meeting(self, goal: Goal, meets: Meets, open: int) -> list[tuple[int, Goal]]:
        """The sets of open demands, as bits, that a member may be taken to meet, and what each asks of its value.

        Any value may be taken to meet all that it meets, as nothing is lost by that. So of many demands only such sets
        count as are all that some value meets.

        Args:
            goal: what is asked of the value anyway.
            meets: the demands that the member may meet.
            open: the demands that are open.

        Raises:
            LimitError: the demands ask too many different things of the member.
        """
        key = goal, meets
        sets = self._sets.get(key)
        if sets is None:
            sets = self._sets[key] = self._together(goal, meets)
        found: dict[tuple[int, Goal], None] = {}
        for way in sets:
            asked = tuple(formula for bits, formula in way if bits & open)
            found[sum(bits for bits, _ in way) & open, asked] = None
        return list(found)

    def _together(self, goal: Goal, meets: Meets) -> list[tuple[tuple[int, Formula], ...]]:
        """The sets of demands that a value may meet: pairs of demands that ask the same, as bits, and what they ask."""
        meaning = self.lowering.normaliser.contradictions.meaning
        groups: dict[object, tuple[int, Formula]] = {}
        for index, formula in meets:
            bits, first = groups.get(meaning(formula), (0, formula))
            groups[meaning(formula)] = bits | 1 << index, first
        if len(groups) > MAX_DIFFERENT:
            raise LimitError(
                f"more than {MAX_DIFFERENT} alternatives that must fail differ in what they ask of one member",
                hint="give each alternative of oneOf a property with its own const, or use anyOf",
            )
        exact = len(groups) > MAX_SUBSETS
        ways: list[tuple[tuple[tuple[int, Formula], ...], Goal]] = [((), goal)]  # and all that is known
        for group in groups.values():
            _, formula = group
            denied = negated(formula) if exact and is_deniable(formula) else None
            more = []
            for met, known in ways:
                if not exact or self.lowering.branches((*known, formula)):
                    more.append(((*met, group), (*known, formula)))
                if denied is None or self.lowering.branches((*known, denied)):
                    more.append((met, known if denied is None else (*known, denied)))
            ways = more
        return [met for met, _ in ways]

    def _undeclared(self, place: _Place, index: int) -> Iterator[int]:
        """Yield members of a region, without what stands before them."""
        nodes, layout = self.nodes, place.layout
        number = index - len(layout.others)
        ending = nodes.literal(self._ending)
        region = layout.others[index]
        if place.alike:  # then it is known which undeclared names were written, and which to look at
            terms = nodes.terms
            theirs = {name for other in place.alike for name in decoded(other)}.difference(layout.names)
            own = sorted(name for name in theirs if terms.matches(region.names, name))
            for name in own:
                if name not in place.names:
                    spelled = self._written(terms.literal(name))
                    yield nodes.sequence([spelled, ending, self._named(place, number, name)])
            rest = terms.and_([region.names, terms.not_(terms.words(own))]) if own else region.names
            yield nodes.sequence([self._written(rest), ending, self._named(place, number)])
            return
        spelled = layout.region_names[index]
        if spelled == UNKNOWN:
            spelled = layout.region_names[index] = self._name(layout, region)
        yield nodes.sequence([spelled, ending, self._named(place, number)])

    def _name(self, layout: Layout, region: Region) -> int:
        """A name that is not declared, compared as it reads, however it is escaped; never one that was written."""
        nodes, spelling = self.nodes, self.lowering.spelling
        name = self._written(region.names)
        if layout.most == 1:
            return name
        if region.roomy and spelling is None:
            return nodes.seq(name, nodes.dynamic("name", nodes.EPSILON, self._unless_repeated, AFTER_NAME))

        known: dict[tuple[str, ...], int] = {}  # the tokens of one mask all ask for the same few

        def fresh(before: Written) -> int:
            written = tuple(before.names() if spelling is None else spelling.names_before(before.text()))
            found = known.get(written)
            if found is None:
                terms = nodes.terms
                found = self._written(terms.and_([region.names, terms.not_(terms.words(written))]))
                if len(known) >= MAX_REMEMBERED:
                    known.clear()
                known[written] = found
            return found

        where = "outermost" if self._outermost is not None else ""
        key = ("fresh", region.names) if spelling is None else ("fresh", self.lowering.number, where, region.names)
        return nodes.dynamic(key, name, fresh, BEYOND)

    # -- how names and values are written ----------------------------------------------------------------------

    def _written(self, names: int) -> int:
        """The names of a term."""
        if self._outermost is not None:
            return self._outermost.name(names)
        spelling = self.lowering.spelling
        return self.nodes.json_string(names) if spelling is None else spelling.name(self.nodes, names)

    def _value(self, layout: Layout, number: int) -> int:
        """The value of a member, or of a region's."""
        found = layout.values[number]
        if found == UNKNOWN:
            if self._direct and layout.schema(number) is not None:
                found = self.lowering.subschema(layout.subschema(number), self._is_sure(layout, number))
            else:
                name = None if number < 0 else layout.names[number]
                found = self._written_value(name, layout.goal(number))
            layout.values[number] = found
        return found

    def _written_value(self, name: str | None, goal: Goal) -> int:
        """A member's value (``name`` None: of an undeclared one); nothing, if the name cannot be written."""
        source = self.lowering if self._outermost is None else self._outermost
        if name is not None and self.lowering.spelling is not None and not source.keys(name):
            return self.nodes.EMPTY
        return self.lowering.value(goal) if self._outermost is None else self._outermost.value(name, goal)

    def _is_sure(self, layout: Layout, number: int) -> bool:
        """Whether a member, or a region's, has a value, at first sight."""
        sure = layout.sure[number]
        if sure == UNKNOWN:
            schema = layout.schema(number)
            if not self._direct:
                sure = False
            elif schema is not None:
                sure = is_surely_satisfiable(schema)
            else:
                sure = self.lowering.is_sure(layout.goal(number))
            layout.sure[number] = sure
        return sure == 1

    def _unless_repeated(self, before: Written) -> int:
        name, others = before.last_name()
        return self.nodes.EMPTY if name in others else self.nodes.EPSILON

    # -- listed values -----------------------------------------------------------------------------------------

    def goals(self, objects: Objects, names: Iterable[str]) -> dict[str, Goal]:
        """Return what is asked of the members of these names, in the order in which they are written."""
        shape, terms = self.shape(objects), self.nodes.terms
        wanted = frozenset(names)
        found = {member.name: member.goal for member in shape.members if member.name in wanted}
        for name in sorted(wanted.difference(found)):
            found[name] = next(region.goal for region in shape.others if terms.matches(region.names, name))
        return found

    def holds(self, objects: Objects, value: dict[str, Any]) -> bool:
        """Whether a decoded object satisfies a conjunction."""
        shape = self.shape(objects)
        if len(value) < shape.least or (shape.most is not None and len(value) > shape.most):
            return False
        known = {member.name: member for member in shape.members}
        if any(member.required and member.name not in value for member in shape.members):
            return False
        terms = self.nodes.terms
        unmet = {index for index, absent in enumerate(shape.demands) if absent <= value.keys()}
        for name, item in value.items():
            place: Member | Region | None = known.get(name)
            if place is None:
                place = next((region for region in shape.others if terms.matches(region.names, name)), None)
            if place is None or not self.lowering.goal_holds(place.goal, item):
                return False
            unmet -= {index for index, formula in place.meets if self.lowering.goal_holds((formula,), item)}
        return not unmet


def spelled_name(name: str) -> bytes:
    """A property name as JSON."""
    return escaped(encode_basestring(name)).encode()
