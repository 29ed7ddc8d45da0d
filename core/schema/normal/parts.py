"""Goals of the parts of a value: of an item by its position, of a member by its name."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from .conjunction import AnyOf, Arrays, Formula, Goal, ObjectPart, Objects


def fixed_positions(arrays: Arrays) -> int:
    """Return the number of leading positions whose items may have goals of their own; all later items have the same."""
    sizes = [len(part.prefix) for part in arrays.parts]
    sizes += [len(part.prefix) for rest in arrays.unevaluated for part in rest.parts]
    sizes += [part.first if part.end is None else part.end for part in arrays.contains]
    return max(sizes, default=0)


def item_goal(arrays: Arrays, index: int) -> Goal:
    """Return the goal of the item at a position, ``contains`` aside."""
    goal: list[Formula] = []
    for part in arrays.parts:
        if index < len(part.prefix):
            goal.append(part.prefix[index])
        elif part.items is not None:
            goal.append(part.items)
    for rest in arrays.unevaluated:
        if all(index >= len(part.prefix) for part in rest.parts):
            goal.append(AnyOf((rest.formula, *rest.found)) if rest.found else rest.formula)
    return tuple(goal)


def member_goal(objects: Objects, matched: Collection[str], name: str | None) -> tuple[list[Formula], bool]:
    """Return the goal of a member's value, ``exists`` aside, and True if it is declared.

    Args:
        objects: the conjunction of the object.
        matched: the patterns that the name matches.
        name: the name; None: one that no schema names.
    """
    goal: list[Formula] = []
    declared = False
    for part in objects.parts:
        named = [part.properties[name]] if name is not None and name in part.properties else []
        named += [formula for pattern, formula in part.patterns.items() if pattern in matched]
        declared = declared or bool(named)
        if not named and part.additional is not None:
            named = [part.additional]
        goal += named
    for rule in objects.unevaluated:
        if not covers(rule.parts, matched, name):
            goal.append(rule.formula)
    return goal, declared


def covers(parts: Iterable[ObjectPart], matched: Collection[str], name: str | None) -> bool:
    """Return True if some part applies to a name (None: one that no schema names) that matches these patterns."""
    return any(
        name in part.properties or (part.patterns and not part.patterns.keys().isdisjoint(matched)) for part in parts
    )
