"""When at most one of several schemas can hold, ``oneOf`` is ``anyOf``."""

from __future__ import annotations

from collections.abc import Sequence

from .conjunction import Conjunction, Normaliser, same_value
from .resolve import Located


def provably_disjoint(normaliser: Normaliser, options: Sequence[Located]) -> bool:
    """Whether no value can satisfy two of the options: by type, by value, or by a required property's value."""
    branches = [normaliser.branches((option,)) for option in options]
    return all(
        _disjoint(normaliser, left, right)
        for index, lefts in enumerate(branches)
        for rights in branches[index + 1 :]
        for left in lefts
        for right in rights
    )


def _disjoint(normaliser: Normaliser, left: Conjunction, right: Conjunction) -> bool:
    common = left.types & right.types
    if not common:
        return True
    if left.values is not None and right.values is not None:
        return not any(same_value(one, two) for one in left.values for two in right.values)
    if common != {"object"}:
        return False
    for name in _required(left) & _required(right):
        one, two = _values(normaliser, left, name), _values(normaliser, right, name)
        if one is not None and two is not None and not any(same_value(a, b) for a in one for b in two):
            return True
    return False


def _required(branch: Conjunction) -> set[str]:
    return {name for part in branch.objects for name in part.required}


def _values(normaliser: Normaliser, branch: Conjunction, name: str) -> list[object] | None:
    """Every value that a property may have, if they are listed."""
    goal = tuple(part.properties[name] for part in branch.objects if name in part.properties)
    if not goal:
        return None
    found: list[object] = []
    for option in normaliser.branches(goal):
        if option.values is None:
            return None
        found.extend(option.values)
    return found
