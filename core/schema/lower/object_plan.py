"""Plans of objects: members by number, and the nodes that were built of them so far.

A member's number is its index among the declared members. A region (undeclared names with the same schemas) has a
number below zero, counted from the last: -1 is the last region.

A *demand* is a condition on some member: ``{"not": {"patternProperties": {"^x": S}}}`` demands a member whose name
begins with x and whose value is not of S. A demand may also be met by the absence of a member. It is *open* until a
member that meets it is written, or one whose absence meets it can no longer come.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import reduce
from operator import or_
from typing import NamedTuple

from ...dependent.live import Mark
from ...language.node_kinds import UNASKED
from ..keywords.row import Steps
from ..normal.conjunction import Goal
from ..read.live import marks_of
from ..read.located import Located, SignedSchema
from .object_shape import Meets, ObjectShape

#: Not computed yet.
UNKNOWN = -1


class MemberMark(NamedTuple):
    """A place in the schemas of a member where values are live.

    Attributes:
        formula: the schema of the member's goal.
        steps: the steps from there to the place.
        mark: what the place says of its values.
    """

    formula: SignedSchema
    steps: Steps
    mark: Mark


@dataclass(slots=True, eq=False)
class Component:
    """Demands that share members, so that they must be met together, and these members. Whether the demands of one
    component can be met does not depend on the others.

    Attributes:
        numbers: the numbers of the members, in order.
        members: the same, as bits.
        demands: the demands, as bits.
        able: for each member of ``numbers``, the demands that it or a later one may meet, as bits; last, the demands
            that regions may meet.
    """

    numbers: tuple[int, ...]
    members: int
    demands: int
    able: list[int]


class ObjectPlan:
    """An object's members in order, and the nodes of each: built when a text reaches them.

    Attributes:
        located: a schema that the object is of; None: it is not known.
        members: the declared members.
        size: their number.
        names: their names.
        required: the required members, as bits.
        others: regions of undeclared names.
        demands: the number of demands (see `ObjectShape`).
        absent: for each member, the demands that its absence meets, as bits.
        open_to: for each member, the demands that it or a later one may meet, as bits; last, the demands that regions
            may meet.
        bars: for each member, the members that must not be written if it is, as bits; empty if there are none.
        spared: for each member, the demands that their absence meets, as bits; empty likewise.
        absentees: the numbers of the members whose absence meets a demand, in order.
        gone: for each demand, the members whose absence meets it, as bits.
        components: the demands, divided by the members that they share. With bounds on the number of members, all are
            one component.
        met: number of states of components that were met in searches for a text.
        allowed: number of those that the states of texts add to the maximum.
        is_given_up: a search met more than the maximum, so that some states count as ones without a text.
        least: the minimum number of members.
        most: the maximum number of members.
        free: there are no demands and no counts, so that members which may be left out do not matter.
        plain: the plan is free, and no member bars others, so that a state does not depend on the members before it.
        sure: for each member, then for each region, True if it surely has a value; `UNKNOWN`: not computed yet.
        sure_from: for each member, the number of members from it on that are required or surely have a value; None: not
            computed yet.
        spelled: for each member of a plain object in JSON, the text of its name; empty until it is needed.
        words: for each member, the texts of its name (empty: it is never valid); None: not computed yet.
        values: for each member, then for each region, the node of its value; `UNKNOWN`: not built yet.
        lists: the names of ranges of members, each with the rest of the object after it, by the first member, the end
            and if they begin the object, if members come in the schema's order.
        follow: by member, or (below zero, from the last) by region: the rest of the object after its name, if it is the
            same after every state.
        following: for each member, the number of the first required member from it on.
        region_names: for each region, the texts of its names; `UNKNOWN` until they are built.
        rests: the rest of the object after a member, by the state.
        like: by the state after a member, the rest of an object that has had the members of some excluded objects so
            far: by their keys, or the key of the only one.
        start: the whole object; `UNKNOWN` until it is built.
        witness: see `ObjectLowering`; `UNKNOWN` until it is built.
        witnesses: for each member, then for each region, the witness of the rest after its name, if it is the same
            after every state; `UNASKED` until it is built.
        marks: for each member, the marks of its live values; None: not computed yet.
        answered: the rest of the object from the name of a member with live values on, by the member, the state and
            the texts of the answers.
        deciding: the number of the member after which an object is compared with the items before it (see
            `DistinctObjects`); None: it is not.
        endless: the number of a member that may be one of all but finitely many strings; `UNKNOWN`: there is none;
            None until it is asked.
    """

    def __init__(self, shape: ObjectShape, located: Located | None, deciding: int | None = None) -> None:
        self.located = located
        self.deciding = deciding
        members = shape.members
        size = len(members)
        self.members = members
        self.size = size
        self.names = [""] * size
        following = size
        self.following = [size] * (size + 1)
        required: list[int] = []
        for number in range(size - 1, -1, -1):
            member = members[number]
            self.names[number] = member.name
            if member.required:
                required.append(number)
                following = number
            self.following[number] = following
        self.required = _bits(required, size)
        self.others = shape.others
        self.demands = len(shape.demands)
        self.absent = [0] * size
        self.open_to = [0] * (size + 1)
        self.absentees: list[int] = []
        self.gone: list[int] = []
        self.components: list[Component] = []
        self.met = 0
        self.allowed = 0
        self.is_given_up = False
        self._able = [0] * size  # for each member, the demands that it may meet, as bits
        self._optional = 0  # the members that are not required, as bits; no demands: not computed
        self._uninvolved = 0  # of these, the members whose value and whose absence meet no demand
        if shape.demands:
            self._index_demands(shape)
        self.bars: list[int] = []
        self.spared: list[int] = []
        if shape.exclusive:
            self._find_bars(shape)
        self.least = shape.least
        self.most = shape.most
        if shape.demands or shape.least or shape.most is not None:
            self._divide(bool(shape.least or shape.most is not None), shape.exclusive)
        self.free = not shape.demands and not shape.least and shape.most is None
        self.plain = self.free and not self.bars
        self.words: list[tuple[bytes, ...] | None] = [None] * size
        self.spelled: list[bytes] = []
        self.lists: dict[tuple[int, int, bool], int] = {}
        self.follow: dict[object, int] = {}
        self.rests: dict[object, int] = {}
        self.like: dict[object, dict[str | frozenset[str], int]] = {}
        self.start = UNKNOWN
        self.witness: int | None = UNKNOWN
        self.endless: int | None = None
        self.values = [UNKNOWN] * (size + len(shape.others))
        self.sure = [UNKNOWN] * len(self.values)
        self.witnesses = [UNASKED] * len(self.values)
        self.sure_from: list[int] | None = None
        self.region_names = [UNKNOWN] * len(shape.others)
        self.marks: list[tuple[MemberMark, ...] | None] = [None] * size
        self.answered: dict[object, int] = {}

    def _index_demands(self, shape: ObjectShape) -> None:
        """Fill the attributes that say which members meet which demands, by their absence (``absent``, ``gone``,
        ``absentees``) or by their value (``_able``), and what follows from these."""
        numbers = {name: number for number, name in enumerate(self.names)}
        for demand, names in enumerate(shape.demands):
            gone = 0
            for name in names:
                number = numbers[name]
                self.absent[number] |= 1 << demand
                gone |= 1 << number
            self.gone.append(gone)
        self.absentees = [number for number, bits in enumerate(self.absent) if bits]
        for number, member in enumerate(shape.members):
            for demand, _ in member.meets:
                self._able[number] |= 1 << demand
            if not member.required:
                self._optional |= 1 << number
                if not self._able[number] and not self.absent[number]:
                    self._uninvolved |= 1 << number
        able = 0
        for region in shape.others:
            for demand, _ in region.meets:
                able |= 1 << demand
        self.open_to[-1] = able
        for number in reversed(range(len(shape.members))):
            able |= self.absent[number] | self._able[number]
            self.open_to[number] = able

    def _find_bars(self, shape: ObjectShape) -> None:
        """Fill ``bars``: a member bars all others of its exclusive sets; and ``spared``: these are then absent, which
        meets demands."""
        numbers = {name: number for number, name in enumerate(self.names)}
        self.bars, self.spared = [0] * self.size, [0] * self.size
        for names in shape.exclusive:
            those = [numbers[name] for name in names]
            every = _bits(those, self.size)
            for number in those:
                self.bars[number] |= every & ~(1 << number)
        for number, barred in enumerate(self.bars):
            for other in self.absentees:
                if barred >> other & 1:
                    self.spared[number] |= self.absent[other]

    def _divide(self, is_counted: bool, exclusive: tuple[frozenset[str], ...]) -> None:
        """Fill ``components``. Two demands are in one component if one member, the regions, or the members of one
        exclusive set have to do with both.

        Args:
            is_counted: the number of members has bounds, to which each member counts: all are one component.
            exclusive: sets of names of which at most one is written.
        """
        by_regions = self.open_to[-1]
        reach = [absent | able for absent, able in zip(self.absent, self._able, strict=True)]  # demands by member
        if is_counted:
            divided = [((1 << self.demands) - 1, list(range(self.size)))]
        else:
            numbers_of = {name: number for number, name in enumerate(self.names)}
            linked = {reduce(or_, [reach[numbers_of[name]] for name in names]) for names in exclusive}
            parts = _joined([*reach, by_regions, *linked])
            part_of = {demand: index for index, part in enumerate(parts) for demand in bits_of(part)}
            divided = [(part, []) for part in parts]
            for number, demands in enumerate(reach):
                if demands:  # all of them are in one part
                    divided[part_of[next(bits_of(demands))]][1].append(number)
        for part, numbers in divided:
            able = by_regions & part
            suffixes = [able]
            for number in reversed(numbers):
                able |= reach[number]
                suffixes.append(able)
            self.components.append(Component(tuple(numbers), _bits(numbers, self.size), part, suffixes[::-1]))

    def unmet(self, at: int, open: int) -> int:
        """Return the open demands, as bits, that stay open if no further member is written.

        Args:
            at: the members that were written, as bits.
            open: the open demands, as bits.
        """
        found = open
        for demand in bits_of(open):
            if self.gone[demand] & ~at:
                found ^= 1 << demand
        return found

    def without_idle(self, at: int, open: int, among: int = -1) -> tuple[int, int]:
        """Return the written members and the open demands of a state, as bits, after dropping idle members: optional
        members that cannot meet an open demand. A shortest text has none, so the search for one has fewer states. A
        dropped member counts as written, and its absence meets demands, which may make other members idle.

        With bounds on the number of members, nothing is dropped: an idle member still counts.

        Args:
            at: the members that were written.
            open: the open demands.
            among: the members that may be dropped; -1: all.
        """
        if self.least or self.most is not None:
            return at, open
        optional = self._optional & among
        at |= self._uninvolved & among
        if not open:
            return at | optional, 0
        useful = optional & ~at
        changed = True
        while changed:
            changed = False
            for number in bits_of(useful):
                if not self._able[number] & open:
                    open &= ~self.absent[number]
                    useful ^= 1 << number
                    changed = True
        return at | optional & ~useful, open

    def marks_of(self, number: int) -> tuple[MemberMark, ...]:
        """Return the marks of a member's live values."""
        marks = self.marks[number]
        if marks is None:
            marks = self.marks[number] = tuple(
                MemberMark(formula, steps, mark)
                for formula in self.goal(number)
                if isinstance(formula, SignedSchema) and formula.positive
                for steps, mark in marks_of(formula.located.schema, self.names[number], self.names[:number])
            )
        return marks

    def goal(self, number: int) -> Goal:
        """Return the goal of a member's value, or (below zero, counted from the last) of a region's."""
        if number < 0:
            return self.others[number].goal
        return self.members[number].goal

    def meets(self, number: int) -> Meets:
        """Return the demands that a member, or a region's, may meet (`Meets`)."""
        if number < 0:
            return self.others[number].meets
        return self.members[number].meets


def has_marks(goal: Goal) -> bool:
    """Return True if the values of a goal are live values."""
    return any(
        isinstance(formula, SignedSchema) and formula.positive and any(marks_of(formula.located.schema, "", ()))
        for formula in goal
    )


def _bits(numbers: list[int], size: int) -> int:
    """Return the bits of some numbers."""
    found = 0
    if size <= 64:
        for number in numbers:
            found |= 1 << number
        return found
    octets = bytearray((size + 7) // 8)
    for number in numbers:  # a large integer is copied by each operation on it
        octets[number >> 3] |= 1 << (number & 7)
    return int.from_bytes(octets, "little")


def bits_of(number: int) -> Iterator[int]:
    """Yield the indices of the bits of a number, from the lowest."""
    while number:
        bit = number & -number
        yield bit.bit_length() - 1
        number ^= bit


def _joined(sets: list[int]) -> list[int]:
    """Return some sets, as bits, joined where they share an element: `[0b0011, 0b0110, 0b1000]` -> `[0b0111, 0b1000]`.
    Empty sets are left out."""
    found: list[int] = []
    for each in filter(None, sets):
        apart = [other for other in found if not other & each]
        meeting = [other for other in found if other & each]
        found = [*apart, reduce(or_, meeting, each)]
    return found
