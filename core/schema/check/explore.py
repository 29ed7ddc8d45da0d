"""Exploration of the places of a schema that a text may reach, to refuse the schema before any text is written.

Subschemas are lowered when a text reaches them. Most cannot fail; but where several schemas constrain one member or
item, or items must not repeat, a limit may be exceeded only there. So these places are brought to normal form at once,
up to a bound; the results are kept for the text that reaches them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cached_property

from ...errors import LimitError, Place, SchemaError
from ..lower.array_items import item_goals
from ..lower.lowering import Lowering
from ..normal.conjunction import EVERY, Arrays, Conjunction, Formula, Goal, Objects
from ..read.keywords import APPLICATORS
from ..read.located import Located, SignedSchema
from .hazards import RISKY, Hazards

#: Maximum number of goals that are brought to normal form, and of steps of their expansion, before the rest is left for
#: later.
MAX_GOALS, MAX_STEPS = 1_000, 10_000


def explore(lowering: Lowering) -> None:
    """Bring the goals of a document to normal form.

    Raises:
        SchemaError: a goal cannot be enforced.
        LimitError: a goal exceeds a limit.
    """
    normaliser = lowering.normaliser
    document = normaliser.document
    if not document.demanding and not document.risky:  # most
        return
    hazards = Hazards(document)
    if not hazards.failing:
        return
    exploration = _Exploration(lowering, hazards)
    steps = normaliser.steps
    try:
        exploration.run(steps + MAX_STEPS)
    finally:
        normaliser.steps = steps  # the results are kept: a text that gets there takes no steps again


class _Exploration:
    """One exploration of a document."""

    def __init__(self, lowering: Lowering, hazards: Hazards) -> None:
        self.lowering = lowering
        self.document = lowering.normaliser.document
        self._hazards = hazards
        self._failing = self.document.reaching(hazards.failing)

    def run(self, steps: int) -> None:
        """Bring goals to normal form until the normaliser has taken a number of steps."""
        lowering, normaliser = self.lowering, self.lowering.normaliser
        root: Goal = (SignedSchema(self.document.root),)
        seen: set[Goal] = {root}
        stack: list[tuple[Goal, Located]] = [(root, self.document.root)]
        expanded = 0
        while stack and expanded < MAX_GOALS and normaliser.steps <= steps:
            goal, place = stack.pop()
            place = next((part.located for part in goal if isinstance(part, SignedSchema)), place)
            try:
                within = self._parts(goal)
                if within is None:
                    expanded += 1
                    within = (inner for branch in lowering.branches(goal) for inner in _inner(lowering, branch))
                for inner in within:
                    if inner not in seen and self._may_fail(inner) and not lowering.is_false(inner):
                        seen.add(inner)
                        stack.append((inner, place))
            except (SchemaError, LimitError) as error:
                if error.place != Place():
                    raise
                raise type(error)(error.message, hint=error.hint, place=Place(pointer=place.pointer)) from None

    def _may_fail(self, goal: Goal) -> bool:
        """Return True if lowering a goal, or what is inside of it, may fail.

        The check has counted the alternatives of each schema. Several that must hold together have no more, if only one
        of them makes any.
        """
        forking = 0
        for part in goal:
            if not isinstance(part, SignedSchema) or not part.positive:
                return True
            schema = part.located.schema
            if isinstance(schema, bool):
                continue
            if id(schema) in self._failing or id(schema) not in self.document.users:
                return True
            if len(goal) > 1:
                if id(schema) in self._risky:
                    return True
                forking += id(schema) in self._forking
        return forking > 1

    @cached_property
    def _risky(self) -> set[int]:
        """Identities of the schemas from which one can be reached that may fail beside others."""
        return self.document.reaching(self._hazards.failing | self._hazards.tame)

    @cached_property
    def _forking(self) -> set[int]:
        """Identities of the schemas from which one that makes alternatives can be reached."""
        return self.document.reaching(self.document.forking)

    def _parts(self, goal: Goal) -> Iterable[Goal] | None:
        """Return the goals inside of one that cannot fail by itself and is lowered part by part; None: it is another.

        These are the schemas of members and items, where nothing else constrains those; or the schemas of which a
        schema is the union.
        """
        only = goal[0] if len(goal) == 1 else None
        if not isinstance(only, SignedSchema) or not only.positive or isinstance(only.located.schema, bool):
            return None
        normaliser = self.lowering.normaliser
        located = self.document.enter(only.located)
        if normaliser.unenforced:
            return None
        is_tame = id(located.schema) in self._hazards.tame
        if APPLICATORS.isdisjoint(located.schema) and (is_tame or RISKY.isdisjoint(located.schema)):
            own = normaliser.assertions(located)
            if own is None or own.values is not None:
                return ()
            inner = [(formula,) for formula in _formulas(own)]
            # A member that also matches a pattern may have no value, so that nothing inside of it can be reached.
            meets = is_tame and "patternProperties" in located.schema and "properties" in located.schema
            return None if meets and any(map(self._may_fail, inner)) else inner
        parts = self._hazards.joined(located) if is_tame and "allOf" in located.schema else None
        if parts is not None:
            members = (formula for part in parts for formula in normaliser.object_part(part).properties.values())
            return None if any(self._may_fail((formula,)) for formula in members) else ()
        target = self.lowering.synonym(located)
        options = [target] if target is not None else self.lowering.options_of(located)
        return None if options is None else [(SignedSchema(option),) for option in options]


def _formulas(own: Conjunction) -> Iterator[Formula]:
    """Yield what one schema asks of members and items, if no two formulas of members meet in one that may fail."""
    if "object" in own.types:
        for members in own.objects.parts:
            yield from members.properties.values()
            yield from members.patterns.values()
            if members.additional is not None:
                yield members.additional
    if "array" in own.types:
        for items in own.arrays.parts:
            yield from items.prefix
            if items.items is not None:
                yield items.items


def _inner(lowering: Lowering, branch: Conjunction) -> Iterator[Goal]:
    """Yield the goals of the members and items of an alternative."""
    if branch.values is not None:
        return
    if "number" in branch.types and branch.numbers is not EVERY.numbers:
        lowering.scalar_term(branch, "number")
    if "string" in branch.types and branch.strings is not EVERY.strings:
        lowering.string_parts(branch)
    if "object" in branch.types:
        yield from _members(lowering, branch.objects)
    if "array" in branch.types:
        yield from _items(lowering, branch.arrays)


def _members(lowering: Lowering, objects: Objects) -> Iterator[Goal]:
    shape = lowering.merged.of(objects)
    places = [(member.goal, member.meets) for member in shape.members]
    places += [(region.goal, region.meets) for region in shape.others]
    for goal, meets in places:
        yield goal
        if meets:
            yield from ((*goal, *asked) for _, asked in lowering.merged.meeting(goal, meets, -1))


def _items(lowering: Lowering, arrays: Arrays) -> Iterator[Goal]:
    if arrays.most is not None and arrays.least > arrays.most:
        return
    lowering.arrays.node(arrays)
    yield from item_goals(arrays)
