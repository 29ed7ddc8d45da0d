"""What the places of one object have in common: its members by number, and what was built of them so far."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from ..normal.conjunction import Formula, Goal, SignedSchema
from ..read.resolve import Located
from .merged_objects import Meets, ObjectShape, Region

#: Not asked yet.
UNKNOWN = -1


class ObjectPlan:
    """An object's members in order, and what was built of each: nothing, until a text comes to where it may stand.

    Attributes:
        names: the declared members' names.
        required: which of them must be there, as bits.
        others: regions of undeclared names.
        demands: what must be so of some member: how many demands there are.
        absent: for each member, which demands are met if it is not there, as bits.
        open_to: for each member, which demands it or a later one may decide still, as bits; last, what regions may.
        least: how many members there are at least.
        most: how many there are at most.
        plain: there are no demands and no counts: a place is where it is, whatever was written before.
        sure: for each member, then for each region, whether it has a value at first sight; `UNKNOWN`: not asked yet.
        words: for each member, how its name is written (empty: it cannot be there); None: not known yet.
        values: for each member what stands after the colon, then for each region; `UNKNOWN` until it is built.
        follow: what stands after the name of a member, or (below zero, from the last) of a region, where that is the
            same from wherever one comes to it.
        following: for each member, the number of the first required one from there on.
        region_names: for each region, its names as they are written; `UNKNOWN` until it is built.
        places: what may stand after a member, by place.
        start: what may stand at the beginning; `UNKNOWN` until it is built.
        skeleton: see `ObjectLowering`; `UNKNOWN` until it is built.
    """

    __slots__ = (
        "_goals",
        "_located",
        "_meets",
        "_properties",
        "_undeclared",
        "absent",
        "demands",
        "follow",
        "following",
        "least",
        "most",
        "names",
        "open_to",
        "others",
        "places",
        "plain",
        "region_names",
        "required",
        "skeleton",
        "start",
        "sure",
        "values",
        "words",
    )

    def __init__(self, names: list[str], required: Collection[str]) -> None:
        size = len(names)
        self.names = names
        self.required = 0
        self.following = [size] * (size + 1)
        following = size
        for number in range(size - 1, -1, -1) if required else ():
            if names[number] in required:
                self.required |= 1 << number
                following = number
            self.following[number] = following
        self.others: tuple[Region, ...] = ()
        self.demands = 0
        self.absent = [0] * size
        self.open_to = [0] * (size + 1)
        self.least = 0
        self.most: int | None = None
        self.plain = True
        self.words: list[tuple[bytes, ...] | None] = [None] * size
        self.follow: dict[Any, int] = {}
        self.places: dict[Any, int] = {}
        self.start = UNKNOWN
        self.skeleton: int | None = UNKNOWN
        self._goals: list[Goal | None] = [None] * size
        self._meets: list[Meets] = []
        self._located: Located | None = None
        self._properties: Mapping[str, Any] | None = None
        self._undeclared: Goal = ()

    @classmethod
    def of_shape(cls, shape: ObjectShape) -> ObjectPlan:
        """The plan of what several schemas say."""
        found = cls([member.name for member in shape.members], {each.name for each in shape.members if each.required})
        found._goals = [member.goal for member in shape.members]
        found._meets = [member.meets for member in shape.members]
        found.demands, found.least, found.most = len(shape.demands), shape.least, shape.most
        for index, names in enumerate(shape.demands):
            for number, member in enumerate(shape.members) if names else ():
                found.absent[number] |= (member.name in names) << index
        able = found.open_to[-1] = sum(
            1 << index for index in {index for each in shape.others for index, _ in each.meets}
        )
        for number in reversed(range(len(shape.members))):
            able |= found.absent[number] | sum(1 << index for index, _ in shape.members[number].meets)
            found.open_to[number] = able
        found.plain = not shape.demands and not shape.least and shape.most is None
        return found._with(shape.others)

    @classmethod
    def of_schema(
        cls, located: Located, required: Collection[str], additional: Formula | None, others: tuple[Region, ...]
    ) -> ObjectPlan:
        """The plan of one schema that says nothing of objects but ``properties``, ``required`` and
        ``additionalProperties``."""
        properties: Mapping[str, Any] = located.schema.get("properties", {})
        names = list(properties)
        names += [name for name in dict.fromkeys(required) if name not in properties]
        found = cls(names, frozenset(required))
        found._located, found._properties = located, properties
        found._undeclared = () if additional is None else (additional,)
        return found._with(others)

    def _with(self, others: tuple[Region, ...]) -> ObjectPlan:
        self.others = others
        self.values = [UNKNOWN] * (len(self.names) + len(others))
        self.sure = [UNKNOWN] * len(self.values)
        self.region_names = [UNKNOWN] * len(others)
        return self

    def goal(self, number: int) -> Goal:
        """What is asked of the value of a member, or (below zero, from the last) of a region's."""
        if number < 0:
            return self.others[number].goal
        found = self._goals[number]
        if found is None:
            assert self._located is not None
            found = self._undeclared if self.schema(number) is None else (SignedSchema(self.subschema(number)),)
            self._goals[number] = found
        return found

    def schema(self, number: int) -> Any:
        """The one schema that a member's value must satisfy, as far as it is known to be one (None: it is not)."""
        return None if self._properties is None or number < 0 else self._properties.get(self.names[number])

    def subschema(self, number: int) -> Located:
        """Where `schema` stands."""
        assert self._located is not None
        return self._located.child("properties", self.names[number])

    def meets(self, number: int) -> Meets:
        """Which of the demands a member, or a region's, may meet, and what that asks of its value."""
        return self.others[number].meets if number < 0 else self._meets[number]
