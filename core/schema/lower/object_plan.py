"""Plans of objects: members by number, and the nodes that were built of them so far."""

from __future__ import annotations

from ...dependent.live import Answer, Mark
from ..keywords.row import Steps
from ..normal.conjunction import Goal
from ..read.live import marks_of
from ..read.located import Located, SignedSchema
from .merged_objects import Meets, ObjectShape

#: The marks of a member: the formula of its goal, the steps in its schema, and the mark.
Marks = tuple[tuple[SignedSchema, Steps, Mark], ...]

#: Not computed yet.
UNKNOWN = -1


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
        least: the minimum number of members.
        most: the maximum number of members.
        plain: there are no demands and no counts, so that a state does not depend on the members before it.
        sure: for each member, then for each region, True if it surely has a value; `UNKNOWN`: not computed yet.
        sure_from: for each member, the number of members from it on that are required or surely have a value; None: not
            computed yet.
        words: for each member, the texts of its name (empty: it is never valid); None: not computed yet.
        values: for each member, then for each region, the node of its value; `UNKNOWN`: not built yet.
        follow: by member, or (below zero, from the last) by region: the rest of the object after its name, if it is the
            same after every state.
        following: for each member, the number of the first required member from it on.
        region_names: for each region, the texts of its names; `UNKNOWN` until they are built.
        rests: the rest of the object after a member, by the state.
        start: the whole object; `UNKNOWN` until it is built.
        witness: see `ObjectLowering`; `UNKNOWN` until it is built.
        marks: for each member, the marks of its live values; None: not computed yet.
        answered: the rest of the object from the name of a member with live values on, by the member, the state and
            the answers, with the answers.
        endless: the number of a member that may be one of all but finitely many strings; `UNKNOWN`: there is none;
            None until it is asked.
    """

    def __init__(self, shape: ObjectShape, located: Located | None) -> None:
        self.located = located
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
        self._able = [0] * size
        self._optional = 0
        self._silent = 0
        if shape.demands:
            self._find_deciders(shape)
        self.least = shape.least
        self.most = shape.most
        self.plain = not shape.demands and not shape.least and shape.most is None
        self.words: list[tuple[bytes, ...] | None] = [None] * size
        self.follow: dict[object, int] = {}
        self.rests: dict[object, int] = {}
        self.start = UNKNOWN
        self.witness: int | None = UNKNOWN
        self.endless: int | None = None
        self.values = [UNKNOWN] * (size + len(shape.others))
        self.sure = [UNKNOWN] * len(self.values)
        self.sure_from: list[int] | None = None
        self.region_names = [UNKNOWN] * len(shape.others)
        self.marks: list[Marks | None] = [None] * size
        self.answered: dict[object, tuple[list[Answer], int]] = {}

    def _find_deciders(self, shape: ObjectShape) -> None:
        """Fill ``absent`` and ``open_to``."""
        for index, names in enumerate(shape.demands):
            for number, member in enumerate(shape.members) if names else ():
                self.absent[number] |= (member.name in names) << index
        for number, member in enumerate(shape.members):
            self._able[number] = sum(1 << index for index in {index for index, _ in member.meets})
            if not member.required:
                self._optional |= 1 << number
                if not self._able[number] and not self.absent[number]:
                    self._silent |= 1 << number
        able = self.open_to[-1] = sum(
            1 << index for index in {index for region in shape.others for index, _ in region.meets}
        )
        for number in reversed(range(len(shape.members))):
            able |= self.absent[number] | self._able[number]
            self.open_to[number] = able

    def without_idle(self, at: int, open: int) -> tuple[int, int]:
        """Return the written members and the open demands of a state, as bits, after dropping idle members: optional
        members that cannot meet an open demand. A dropped member counts as written, and its absence meets demands.

        With bounds on the number of members, nothing is dropped.
        """
        if self.least or self.most is not None:
            return at, open
        at |= self._silent
        if not open:
            return at | self._optional, 0
        rest = self._optional & ~at
        changed = True
        while changed:
            changed = False
            left = rest
            while left:
                bit = left & -left
                left ^= bit
                number = bit.bit_length() - 1
                if not self._able[number] & open:
                    open &= ~self.absent[number]
                    rest ^= bit
                    changed = True
        return at | self._optional & ~rest, open

    def marks_of(self, number: int) -> Marks:
        """Return the marks of a member's live values."""
        marks = self.marks[number]
        if marks is None:
            marks = self.marks[number] = tuple(
                (formula, steps, mark)
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
