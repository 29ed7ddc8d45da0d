"""Lower bounds of the lengths of values, by their normal form: alternatives that no model can finish are left out.

Only of documents whose counts and references multiply far enough (`check.vast`). The normal form shows counts that
keywords ask for, and counts that follow from the failure of others (``not``, ``oneOf``, ``if``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from ...errors import LimitError
from ...language import least_text as limits
from ...language.least_text import MAX_LEAST_TEXT
from .conjunction import Arrays, Conjunction, Formula, Goal, Objects
from .parts import fixed_positions, item_goal, member_goal

#: Nesting from which on a part counts as one byte, and the maximum number of items that are looked at one by one.
MAX_DEPTH, MAX_ITEMS = 64, 64

#: The quotes of a name, the colon after it, and the comma or bracket after its value.
_AROUND_NAME = 4

_WORDS = {"null": 4, "boolean": 4, "number": 1}


class LeastTexts:
    """Lower bounds of the values of the goals of one document.

    Args:
        branches: returns the alternatives of a goal.
    """

    def __init__(self, branches: Callable[[Goal], list[Conjunction]]) -> None:
        self._branches = branches
        self._known: dict[Goal, int] = {}
        self._depth = 0

    def kept(self, branches: list[Conjunction]) -> list[Conjunction]:
        """Return the alternatives of which a model may finish a value, as far as the lower bound shows it."""
        return [branch for branch in branches if self.of(branch) <= MAX_LEAST_TEXT]

    def of(self, branch: Conjunction) -> int:
        """Return a number of bytes that each value of an alternative has at least."""
        if branch.values is not None:
            return min(map(least_text, branch.values), default=1)
        return min([self._of_type(kind, branch) for kind in branch.types], default=1)

    def _of_type(self, kind: str, branch: Conjunction) -> int:
        if kind == "string":
            return 2 + branch.strings.least
        if kind == "array":
            return self._array(branch.arrays)
        return self._object(branch.objects) if kind == "object" else _WORDS[kind]

    def _array(self, arrays: Arrays) -> int:
        """Return a lower bound of the length of an array's text: the brackets, commas, and items."""
        count = arrays.fewest
        listed = min(count, fixed_positions(arrays), MAX_ITEMS)
        size = sum([self._least_of_goal(item_goal(arrays, index)) for index in range(listed)])
        if count > listed:
            size += (count - listed) * (self._least_of_goal(item_goal(arrays, count - 1)) if listed < MAX_ITEMS else 1)
        for part in arrays.contains:
            size = max(size, part.least * self._least_of_goal((part.formula,)) if part.least else 0)
        return 2 + size + max(0, count - 1)

    def _object(self, objects: Objects) -> int:
        """Return a lower bound of the length of an object's text: its required members, and others up to the
        minimum."""
        names = objects.needed
        size = sum([_AROUND_NAME + len(name) + self._least_of_goal(tuple(_formulas(objects, name))) for name in names])
        others = objects.least - len(names)
        if others > 0:
            of_name = max([self._name(formula) for formula in objects.names], default=0)  # all must hold
            undeclared, _ = member_goal(objects, matched=(), name=None)
            # The value of an undeclared member (1 if patterns may constrain it), or of a declared one.
            of_value = 1 if any(part.patterns for part in objects.parts) else self._least_of_goal(tuple(undeclared))
            for name in {name for part in objects.parts for name in part.properties} - names:
                of_value = min(of_value, self._least_of_goal(tuple(_formulas(objects, name))))
            size += others * (_AROUND_NAME + of_name + of_value)
        return max(2, 1 + size)

    def _name(self, formula: Formula) -> int:
        """Return a lower bound of the length of the strings of a formula."""
        found: list[int] = []
        for branch in self._alternatives((formula,)):
            if "string" not in branch.types:
                continue
            if branch.values is None:
                found.append(branch.strings.least)
            else:
                found += [len(word) for word in branch.values if isinstance(word, str)]
        return min(found, default=0)

    def _least_of_goal(self, goal: Goal) -> int:
        """Return a lower bound of the length of a goal's values. While it is computed it counts as 1: a value may have
        values of the same goal inside."""
        found = self._known.get(goal)
        if found is None and self._depth < MAX_DEPTH:
            self._known[goal] = 1
            self._depth += 1
            try:
                found = min([self.of(branch) for branch in self._alternatives(goal)], default=1)
            finally:
                self._depth -= 1
            self._known[goal] = found
        return found or 1

    def _alternatives(self, goal: Goal) -> list[Conjunction]:
        try:
            return self._branches(goal)
        except LimitError:  # of a part that no text may reach
            return []


def least_text(value: Any) -> int:
    """Return a lower bound of the length of a JSON value."""
    if isinstance(value, str):
        return 2 + len(value)
    if isinstance(value, (list, tuple)):
        return 2 + sum([least_text(each) for each in value])
    if isinstance(value, Mapping):
        return 2 + sum([3 + len(name) + least_text(inner) for name, inner in value.items()])
    return 1


def too_long(size: int) -> LimitError:
    """Return the error for values that are too long for any model."""
    return LimitError(
        limits.too_long("each value", size, "bytes"),
        hint="lower required, minItems and minProperties, of the subschemas that it is made of too; a value that must "
        "fail an upper bound (maxLength, maxItems, maxProperties) is longer than that",
    )


def _formulas(objects: Objects, name: str) -> Iterable[Any]:
    """Yield formulas that a member's value must satisfy, among them those of its declarations."""
    for part in objects.parts:
        if name in part.properties:
            yield part.properties[name]
    for exists in objects.exists:
        if exists.name == name:
            yield exists.formula
