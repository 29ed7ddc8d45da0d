"""Unions of formulas with few alternatives, and facts that other facts are made of."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from heapq import heappop, heappush
from typing import cast

from .conjunction import AnyExists, AnyOf, Conjunction, Exists, Formula, ObjectPart, Objects, fact

#: Maximum product of the numbers of alternatives of several negations. Above it, the alternatives of objects become
#: demands of one alternative.
MAX_PRODUCT = 64


def has(*names: str) -> Conjunction:
    """Return the fact that an object has members of these names."""
    return fact("object", objects=Objects(required=names))


def either(options: Sequence[Formula]) -> Formula:
    """Return the union of some formulas, with related alternatives merged.

    "No member ``n``, or one that satisfies ``f``" is merged to one fact, and so are facts about different types.
    """
    absent: dict[str, Conjunction] = {}
    members: dict[str, list[Formula]] = {}
    others: list[Formula] = []
    for option in options:
        name = _only_absent(option)
        if name is not None and isinstance(option, Conjunction):
            absent[name] = option
            continue
        exists = _only_exists(option)
        if exists is not None:
            members.setdefault(exists.name or "", []).append(exists.formula)
        else:
            others.append(option)
    for name, formulas in members.items():
        formula = formulas[0] if len(formulas) == 1 else AnyOf(tuple(formulas))
        if absent.pop(name, None) is not None:
            others.append(fact("object", objects=Objects(parts=(ObjectPart({name: formula}),))))
        else:
            others.append(fact("object", objects=Objects(exists=(Exists(formula, name),))))
    if len(absent) == 2:  # one of two members is missing: one fact, as there may be one for each pair of many names
        others.append(fact("object", objects=Objects(exclusive=(frozenset(absent),))))
        absent = {}
    merged: list[Formula] = []
    joinable: dict[frozenset[str], list[int]] = {}  # indices of the facts that may be joined, by their types
    for option in [*others, *absent.values()]:
        if not isinstance(option, Conjunction) or not _is_joinable(option):
            merged.append(option)
            continue
        types = option.types
        disjoint = [kinds for kinds in joinable if types.isdisjoint(kinds)]
        apart = min(disjoint, key=lambda kinds: joinable[kinds], default=None)
        index = len(merged)
        if apart is None:
            merged.append(option)
        else:
            index = heappop(joinable[apart])
            merged[index] = _joined(cast("Conjunction", merged[index]), option)
            types |= apart
            if not joinable[apart]:
                del joinable[apart]
        heappush(joinable.setdefault(types, []), index)
    return merged[0] if len(merged) == 1 else AnyOf(tuple(merged))


def together(failures: Iterable[Conjunction]) -> Formula:
    """Return the union of alternatives, in which alternatives that constrain one member of objects are joined to one
    `AnyExists`."""
    members: dict[Exists, None] = {}
    absent: set[str] = set()
    options: list[Formula] = []
    for failure in failures:
        member = _of_one_member(failure)
        if member is None:
            options.append(failure)
            continue
        exists, name = member
        if exists is not None:
            members[exists] = None
        if name is not None:
            absent.add(name)
        others = failure.types - {"object"}
        if others:
            options.append(replace(failure, types=others, objects=Objects()))
    if members or absent:
        some = AnyExists(tuple(members), frozenset(absent))
        options.insert(0, fact("object", objects=Objects(any_exists=(some,))))
    return either(options)


def _of_one_member(failure: Conjunction) -> tuple[Exists | None, str | None] | None:
    """Return the member that an alternative requires, and the name that it requires to be absent, if the alternative
    is no more than one of them, or their union; else None."""
    objects = failure.objects
    if "object" not in failure.types or failure.values is not None:
        return None
    if len(objects.exists) == 1 and objects == Objects(exists=objects.exists):
        return objects.exists[0], None
    if len(objects.absent) == 1 and objects == Objects(absent=objects.absent):
        return None, next(iter(objects.absent))
    if len(objects.parts) == 1 and objects == Objects(parts=objects.parts):
        (part,) = objects.parts
        if len(part.properties) == 1 and not part.patterns and part.additional is None and not part.names_properties:
            ((name, formula),) = part.properties.items()
            return Exists(formula, name), name
    return None


def _only_absent(option: Formula) -> str | None:
    """Return the name if a fact is no more than the absence of this member from an object; else None."""
    if isinstance(option, Conjunction) and option.types == {"object"} and len(option.objects.absent) == 1:
        (name,) = option.objects.absent
        return name if option.objects == Objects(absent=option.objects.absent) else None
    return None


def _only_exists(option: Formula) -> Exists | None:
    """Return the member if a fact is no more than the existence of a named member that satisfies a formula; else
    None."""
    if isinstance(option, Conjunction) and option.types == {"object"} and len(option.objects.exists) == 1:
        (exists,) = option.objects.exists
        if exists.name is not None and option.objects == Objects(exists=option.objects.exists):
            return exists
    return None


def _is_joinable(option: Conjunction) -> bool:
    """Return True if a fact is one of each of its types apart: it lists no values."""
    return option.values is None and not option.not_values


def _joined(left: Conjunction, right: Conjunction) -> Conjunction:
    """Return two facts about different types as one fact."""

    def of(kind: str) -> Conjunction:
        return left if kind in left.types else right

    return Conjunction(
        left.types | right.types,
        numbers=of("number").numbers,
        strings=of("string").strings,
        arrays=of("array").arrays,
        objects=of("object").objects,
    )
