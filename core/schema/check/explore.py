"""Exploration of the places of a schema that a text may reach, to refuse the schema before any text is written.

Subschemas are lowered when a text reaches them. Most cannot fail; but where several schemas constrain one member or
item, or items must not repeat, a limit may be exceeded only there. So these places are brought to normal form at once,
up to a bound; the results are kept for the text that reaches them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

from ...errors import LimitError, Place, SchemaError
from ...json_pointer import resolve_local
from ..lower.array_items import item_goals
from ..lower.lowering import Lowering
from ..normal.conjunction import Arrays, Conjunction, Goal, Objects
from ..read.keywords import KEYWORDS
from ..read.located import SignedSchema

#: Maximum number of goals, and of steps of their expansion, before the rest is left for later.
MAX_GOALS, MAX_STEPS = 1_000, 10_000

#: Keywords beside which lowering may fail although each subschema is well-formed.
_HAZARDS = frozenset(row.name for row in KEYWORDS.values() if row.risky)


def explore(lowering: Lowering) -> None:
    """Bring the goals of a document to normal form.

    Raises:
        SchemaError: a goal cannot be enforced.
        LimitError: a goal exceeds a limit.
    """
    normaliser = lowering.normaliser
    document = normaliser.document
    if not document.demanding and not document.may_fail:  # most need no graph of risks
        return
    risks = _Risks(document.root.schema, document.demanding)
    steps = normaliser.steps
    root: Goal = (SignedSchema(document.root),)
    seen: set[Goal] = {root}
    stack: list[tuple[Goal, str]] = [(root, "")]
    try:
        while stack and len(seen) <= MAX_GOALS and normaliser.steps - steps <= MAX_STEPS:
            goal, pointer = stack.pop()
            pointer = next((part.located.pointer for part in goal if isinstance(part, SignedSchema)), pointer)
            try:
                for branch in lowering.branches(goal):
                    for inner in _inner(lowering, branch):
                        if inner in seen or not risks.reach(inner):
                            continue
                        if not lowering.is_false(inner):
                            seen.add(inner)
                            stack.append((inner, pointer))
            except (SchemaError, LimitError) as error:
                if error.place != Place():
                    raise
                raise type(error)(error.message, hint=error.hint, place=Place(pointer=pointer)) from None
    finally:
        normaliser.steps = steps  # the results are kept: a text that gets there takes no steps again


class _Risks:
    """The parts of a document from which a keyword of `_HAZARDS` can be reached, references included.

    Args:
        schema: the document.
        more: identities of other schemas that may fail to be lowered.
    """

    def __init__(self, schema: Any, more: Collection[int]) -> None:
        users: dict[int, list[int]] = {id(schema): []}  # by part: the parts that hold it or refer to it
        risky: list[int] = []
        stack = [schema]

        def use(user: int, part: Any) -> None:
            if isinstance(part, (dict, list, tuple)):
                if id(part) not in users:
                    users[id(part)] = []
                    stack.append(part)
                users[id(part)].append(user)

        while stack:
            part = stack.pop()
            if not isinstance(part, dict):
                for item in part if isinstance(part, (list, tuple)) else ():
                    use(id(part), item)
                continue
            if not _HAZARDS.isdisjoint(part) or id(part) in more:
                risky.append(id(part))
            for value in part.values():
                use(id(part), value)
            if isinstance(reference := part.get("$ref"), str):
                try:
                    use(id(part), resolve_local(schema, reference))
                except LookupError:  # an anchor, or another document
                    risky.append(id(part))
        self._parts = users.keys()
        self._risky: set[int] = set()
        while risky:
            if (part_id := risky.pop()) not in self._risky:
                self._risky.add(part_id)
                risky.extend(users[part_id])

    def reach(self, goal: Goal) -> bool:
        """Return True if lowering a goal, or what is inside of it, may fail."""
        if len(goal) != 1 or not isinstance(goal[0], SignedSchema) or not goal[0].positive:
            return True
        part = id(goal[0].located.schema)
        return part in self._risky or part not in self._parts


def _inner(lowering: Lowering, branch: Conjunction) -> Iterator[Goal]:
    """Yield the goals of the members and items of an alternative."""
    if branch.values is not None:
        return
    if "number" in branch.types:
        lowering.scalar_term(branch, "number")
    if "string" in branch.types:
        lowering.scalar_term(branch, "string")
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
