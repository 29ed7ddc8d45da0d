"""Exploration of the places of a schema that a text may reach, to refuse the schema before any text is written.

Subschemas are lowered when a text reaches them. Most cannot fail; but where several schemas constrain one member or
item, or items must not repeat, a limit may be exceeded only there. So these places are brought to normal form at once,
up to a bound; the results are kept for the text that reaches them.
"""

from __future__ import annotations

from ...errors import LimitError, Place, SchemaError
from ..lower.array_items import item_goals
from ..lower.lowering import Lowering
from ..lower.merged_objects import Meets
from ..normal.conjunction import EVERY, Conjunction, Goal
from ..read.keywords import APPLICATORS
from ..read.located import SignedSchema
from .hazards import RISKY, Hazards

#: Maximum number of goals that are brought to normal form, and of steps of their expansion, before the rest is left for
#: later.
MAX_GOALS, MAX_STEPS = 1_000, 10_000

_ANY_NUMBER, _ANY_STRING = EVERY.numbers, EVERY.strings


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
        self.normaliser = lowering.normaliser
        self.merged = lowering.merged
        self.document = self.normaliser.document
        self.hazards = hazards
        # identities of the schemas from which one can be reached that may fail; that may fail beside others; that makes
        # alternatives (the last two: None until they are asked for)
        self.failing = self.document.reaching(hazards.failing)
        self.risky: set[int] | None = None
        self.forking: set[int] = set()

    def run(self, steps: int) -> None:
        """Bring goals to normal form until the normaliser has taken a number of steps."""
        lowering, normaliser = self.lowering, self.normaliser
        root: Goal = (SignedSchema(self.document.root),)
        seen = {root}
        stack = [(root, self.document.root)]
        expanded = 0
        while stack and expanded < MAX_GOALS and normaliser.steps <= steps:
            goal, place = stack.pop()
            for part in goal:
                if isinstance(part, SignedSchema):
                    place = part.located
                    break
            try:
                within: list[Goal] | None = self._parts(goal)
                if within is None:
                    expanded += 1
                    within = []
                    for branch in lowering.branches(goal):
                        self._inner(branch, within)
                for inner in within:
                    if inner not in seen and not lowering.is_false(inner):
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
            if not isinstance(part, SignedSchema):
                return True
            if not part.positive:
                return True
            schema = part.located.schema
            if schema is True or schema is False:
                continue
            key = part.located.key if part.located.scope is None else id(schema)
            if key in self.failing or key not in self.document.users:
                return True
            if len(goal) > 1:
                if self.risky is None:
                    self.risky = self.document.reaching(self.hazards.failing | self.hazards.tame)
                    self.forking = self.document.reaching(self.document.forking)
                if key in self.risky:
                    return True
                forking += key in self.forking
        return forking > 1

    def _add(self, goal: Goal, found: list[Goal]) -> bool:
        """Add a goal that may fail; True if it may."""
        may_fail = self._may_fail(goal)
        if may_fail:
            found.append(goal)
        return may_fail

    def _parts(self, goal: Goal) -> list[Goal] | None:
        """Return the goals that may fail inside of one that cannot fail by itself and is lowered part by part; None: it
        is another.

        These are the schemas of members and items, where nothing else constrains those; or the schemas of which a
        schema is the union.
        """
        if len(goal) != 1 or not isinstance(goal[0], SignedSchema):
            return None
        only = goal[0]
        if not only.positive or isinstance(only.located.schema, bool) or self.normaliser.unenforced:
            return None
        located = self.document.enter(only.located)
        schema = located.schema
        found: list[Goal] = []
        is_tame = id(schema) in self.hazards.tame
        if APPLICATORS.isdisjoint(schema) and (is_tame or RISKY.isdisjoint(schema)):
            own = self.normaliser.assertions(located)
            if own is None or own.values is not None:
                return []
            self._add_formulas(own, found)
            # A member that also matches a pattern may have no value, so that nothing inside of it can be reached.
            return None if found and is_tame and "patternProperties" in schema and "properties" in schema else found
        if is_tame and "allOf" in schema:
            parts = self.hazards.joined(located)
            if parts is not None:
                for each in parts:
                    for formula in self.normaliser.object_part(each).properties.values():
                        if self._may_fail((formula,)):
                            return None
                return []
        target = self.lowering.synonym(located)
        options = [target] if target is not None else self.lowering.options_of(located)
        if options is None:
            return None
        for option in options:
            self._add((SignedSchema(option),), found)
        return found

    def _add_formulas(self, own: Conjunction, found: list[Goal]) -> None:
        """Add what one schema asks of members and items."""
        if "object" in own.types:
            for members in own.objects.parts:
                for formula in members.properties.values():
                    self._add((formula,), found)
                for formula in members.patterns.values():
                    self._add((formula,), found)
                if members.additional is not None:
                    self._add((members.additional,), found)
        if "array" in own.types:
            for items in own.arrays.parts:
                for formula in items.prefix:
                    self._add((formula,), found)
                if items.items is not None:
                    self._add((items.items,), found)

    def _inner(self, branch: Conjunction, found: list[Goal]) -> None:
        """Add the goals of the members and items of an alternative."""
        if branch.values is not None:
            return
        if "number" in branch.types and branch.numbers is not _ANY_NUMBER:
            self.lowering.scalar_term(branch, "number")
        if "string" in branch.types and branch.strings is not _ANY_STRING:
            self.lowering.string_parts(branch)
        if "object" in branch.types:
            shape = self.merged.of(branch.objects)
            for member in shape.members:
                self._add_place(member.goal, member.meets, found)
            for region in shape.others:
                self._add_place(region.goal, region.meets, found)
        if "array" in branch.types:
            arrays = branch.arrays
            if arrays.most is None or arrays.least <= arrays.most:
                self.lowering.arrays.node(arrays)
                for goal in item_goals(arrays):
                    self._add(goal, found)
        return None

    def _add_place(self, goal: Goal, meets: Meets, found: list[Goal]) -> None:
        """Add the goal of a member's value, also beside the demands that it may meet."""
        self._add(goal, found)
        if meets:
            for _, asked in self.merged.meeting(goal, meets, -1):
                self._add((*goal, *asked), found)
